//! Builds the neighbour lists.
//!
//! Points are inserted in rounds of doubling size. A point searches the graph of the rounds before it for candidates,
//! chooses its neighbours among them, and these get edges back. When all points are in, every point searches the whole
//! graph around itself once more and chooses again. Every step works on the result of the step before it, so the
//! number of threads does not matter.

use super::NO_NEIGHBOUR;
use super::bytes::{ByteTable, Centre};
use super::prune::{Near, PruneScratch, prune};
use garlic_core::{Cancel, Result};
use garlic_simd::Marks;
use rayon::prelude::*;

/// Points of the first round, which are compared with each other.
const FIRST_ROUND: usize = 1000;
/// Candidates that an inserted point keeps, and that a point keeps when it chooses again.
const INSERT_CANDIDATES: usize = 48;
const REFINE_CANDIDATES: usize = 96;
/// Points that are expanded when a point chooses again.
const REFINE_HOPS: usize = 64;
/// Points of its cell that the search of an inserted point starts from.
const STARTS: usize = 24;
/// Candidates that remain when edges back are merged.
pub(super) const MERGED_CANDIDATES: usize = 128;
/// Edges back that join a full list one by one. If there are more, the point chooses again.
const MOST_JOINED: usize = 4;
/// Every point is in at least this many lists, if possible.
const MIN_INCOMING: usize = 8;
/// Points between two tests for cancellation.
const POINTS_PER_TASK: usize = 256;

/// Neighbour lists of fixed length.
#[derive(Clone)]
pub(super) struct Links {
    pub(super) degree: usize,
    pub(super) neighbours: Vec<u32>,
    /// Number of lists that every point is in. Empty until it is needed.
    incoming: Vec<u32>,
    /// Points whose lists were written.
    pub(super) changed: Vec<u32>,
}

/// A point with its neighbours.
pub(super) type Chosen = (u32, Vec<Near>);

impl Links {
    /// Lists of `degree` places, one after the other.
    pub(super) fn new(degree: usize, neighbours: Vec<u32>) -> Self {
        Self {
            degree,
            neighbours,
            incoming: Vec::new(),
            changed: Vec::new(),
        }
    }

    /// Empty lists of some points.
    fn empty(degree: usize, points: usize) -> Self {
        Self::new(degree, vec![NO_NEIGHBOUR; points * degree])
    }

    /// Appends empty lists.
    pub(super) fn grow(&mut self, points: usize) {
        self.neighbours.resize(points * self.degree, NO_NEIGHBOUR);
        if !self.incoming.is_empty() {
            self.incoming.resize(points, 0);
        }
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        4 * (self.neighbours.len() + self.incoming.len())
    }

    /// Counts the lists that every point is in, unless that was done.
    fn count_incoming(&mut self) {
        if self.incoming.is_empty() {
            self.incoming = vec![0; self.neighbours.len() / self.degree];
            for neighbour in self.neighbours.iter().filter(|n| **n != NO_NEIGHBOUR) {
                self.incoming[*neighbour as usize] += 1;
            }
        }
    }

    /// The neighbours of a point.
    pub(super) fn get(&self, at: u32) -> &[u32] {
        let list = &self.neighbours[at as usize * self.degree..][..self.degree];
        let end = list.iter().position(|n| *n == NO_NEIGHBOUR);
        &list[..end.unwrap_or(self.degree)]
    }

    pub(super) fn set(&mut self, at: u32, chosen: &[Near]) {
        let list = &mut self.neighbours[at as usize * self.degree..][..self.degree];
        if !self.incoming.is_empty() {
            for old in list.iter().filter(|n| **n != NO_NEIGHBOUR) {
                self.incoming[*old as usize] -= 1;
            }
            for new in chosen.iter().take(self.degree) {
                self.incoming[new.at as usize] += 1;
            }
        }
        self.changed.push(at);
        list.fill(NO_NEIGHBOUR);
        for (place, near) in list.iter_mut().zip(chosen) {
            *place = near.at;
        }
    }
}

/// Buffers of a search during the build.
#[derive(Default)]
pub(super) struct Walk {
    marks: Marks,
    pub(super) centre: Centre,
    /// Marked points in the order in which they were seen.
    seen: Vec<u32>,
    pub(super) distances: Vec<i32>,
    /// Points of a list.
    others: Vec<u32>,
    /// Candidates in order, and whether each was expanded.
    pool: Vec<(Near, bool)>,
    pub(super) prune: PruneScratch,
}

impl Walk {
    /// Searches the graph for the nearest points of point `at`, from `starts`.
    pub(super) fn search(
        &mut self,
        table: &ByteTable,
        links: &Links,
        at: u32,
        starts: &[u32],
        keep: usize,
        max_hops: usize,
    ) {
        self.marks.resize(table.len() as u32);
        self.marks.clear_near(&self.seen);
        self.seen.clear();
        self.marks.mark_new(&[at], &mut self.seen);
        table.centre(at, &mut self.centre);
        self.pool.clear();
        let mut read = self.seen.len();
        self.marks.mark_new(starts, &mut self.seen);
        let (mut next, mut hops) = (0, 0);
        loop {
            let fresh = &self.seen[read..];
            table.distances(&self.centre, fresh, &mut self.distances);
            for (distance, at) in self.distances.iter().zip(fresh) {
                let near = Near {
                    distance: *distance,
                    at: *at,
                };
                if self.pool.len() == keep {
                    if self.pool.last().is_some_and(|(worst, _)| near > *worst) {
                        continue;
                    }
                    self.pool.pop();
                }
                let place = self.pool.partition_point(|(other, _)| *other < near);
                self.pool.insert(place, (near, false));
                next = next.min(place);
            }
            while self.pool.get(next).is_some_and(|(_, expanded)| *expanded) {
                next += 1;
            }
            let Some((near, expanded)) = self.pool.get_mut(next) else {
                return;
            };
            if hops == max_hops {
                return;
            }
            *expanded = true;
            hops += 1;
            read = self.seen.len();
            self.marks.mark_new(links.get(near.at), &mut self.seen);
            for neighbour in &self.seen[read..] {
                table.prefetch(*neighbour);
            }
        }
    }

    /// Lets points join a full and sorted list: each replaces the neighbour that it occludes most, or the farthest if
    /// it occludes none. A point that a nearer neighbour occludes more than that stays out. Returns whether one joined.
    fn join(
        &mut self,
        table: &ByteTable,
        list: &mut Vec<Near>,
        points: impl Iterator<Item = Near>,
    ) -> bool {
        let ratio = |distance: i32, between: i32| distance as f32 / between.max(1) as f32;
        let mut joined = false;
        for near in points {
            let place = list.partition_point(|other| *other < near);
            if list.get(place) == Some(&near) {
                continue;
            }
            self.others.clear();
            self.others.extend(list.iter().map(|other| other.at));
            table.centre(near.at, &mut self.centre);
            table.distances(&self.centre, &self.others, &mut self.distances);
            let (nearer, farther) = self.distances.split_at(place);
            let occluded = nearer.iter().map(|between| ratio(near.distance, *between));
            let occluded = occluded.fold(1.0, f32::max);
            let last = list.len() - 1;
            let (mut most, mut replaced) = (1.0, last);
            for (i, (between, other)) in farther.iter().zip(&list[place..]).enumerate() {
                let occludes = ratio(other.distance, *between);
                if occludes > most {
                    (most, replaced) = (occludes, place + i);
                }
            }
            if occluded < most || (occluded == 1.0 && place <= last) {
                list.remove(replaced);
                list.insert(place, near);
                joined = true;
            }
        }
        joined
    }

    /// Chooses the neighbours among the candidates.
    pub(super) fn choose(&mut self, table: &ByteTable, degree: usize) -> Vec<Near> {
        let candidates: Vec<Near> = self.pool.iter().map(|(near, _)| *near).collect();
        prune(table, &candidates, degree, &mut self.prune)
    }
}

/// Points of a task, so that small batches occupy all threads. It does not change the result.
fn task_size(points: usize) -> usize {
    let even = points.div_ceil(4 * rayon::current_num_threads());
    even.clamp(1, POINTS_PER_TASK)
}

/// Runs `each` for every point in parallel, with buffers of its own.
pub(super) fn for_all(
    points: &[u32],
    cancel: &Cancel,
    each: impl Fn(u32, &mut Walk) -> Vec<Near> + Sync,
) -> Result<Vec<Chosen>> {
    let chunks =
        points
            .par_chunks(task_size(points.len()))
            .map_init(Walk::default, |walk, points| {
                cancel.check()?;
                Ok(points.iter().map(|at| (*at, each(*at, walk))).collect())
            });
    let chunks: Vec<Vec<Chosen>> = chunks.collect::<Result<_>>()?;
    Ok(chunks.into_iter().flatten().collect())
}

/// What becomes of full lists that get edges back.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Full {
    /// The point chooses again.
    Chosen,
    /// A few edges join one by one, because a point that comes alone pays for every list by itself.
    Joined,
}

/// Adds an edge back for every edge in `chosen`. Lists that grow too long are pruned.
pub(super) fn add_back(
    table: &ByteTable,
    links: &mut Links,
    chosen: &[Chosen],
    full: Full,
    cancel: &Cancel,
) -> Result<()> {
    let edges = chosen
        .iter()
        .flat_map(|(from, list)| list.iter().map(|to| (to.at, to.distance, *from)));
    let mut edges: Vec<(u32, i32, u32)> = edges.collect();
    edges.par_sort_unstable();
    let mut groups: Vec<&[(u32, i32, u32)]> = edges.chunk_by(|a, b| a.0 == b.0).collect();
    let count = groups.len();
    let changed = groups
        .par_chunks_mut(task_size(count))
        .map_init(Walk::default, |walk, groups| {
            cancel.check()?;
            let merge = |group: &&mut &[(u32, i32, u32)], walk: &mut Walk| {
                let at = group[0].0;
                let list = links.get(at);
                table.centre(at, &mut walk.centre);
                table.distances(&walk.centre, list, &mut walk.distances);
                let mut merged: Vec<Near> = nears(&walk.distances, list).collect();
                let back = group.iter().map(|(_, distance, at)| Near {
                    distance: *distance,
                    at: *at,
                });
                if full == Full::Joined && list.len() == links.degree && group.len() <= MOST_JOINED
                {
                    merged.sort_unstable();
                    let joined = walk.join(table, &mut merged, back);
                    return joined.then_some((at, merged));
                }
                merged.extend(back);
                merged.sort_unstable();
                merged.dedup();
                merged.truncate(MERGED_CANDIDATES);
                let kept = prune(table, &merged, links.degree, &mut walk.prune);
                Some((at, kept))
            };
            let merged = groups.iter_mut().filter_map(|group| merge(&group, walk));
            Ok(merged.collect())
        })
        .collect::<Result<Vec<Vec<Chosen>>>>()?;
    for (at, list) in changed.iter().flatten() {
        links.set(*at, list);
    }
    Ok(())
}

/// The neighbour lists of the points in `order`, which is the order of insertion. `cell_of` is the cell of every point.
pub(super) fn link(
    table: &ByteTable,
    degree: usize,
    order: &[u32],
    cell_of: &[u32],
    cancel: &Cancel,
    step: &dyn Fn(usize),
) -> Result<Links> {
    let links = Links::empty(degree, table.len());
    let mut links = insert(table, links, order, 0, cell_of, cancel, step)?;
    let mut all = order.to_vec();
    all.sort_unstable();
    refine(table, &mut links, &all, cancel)?;
    step(2 * order.len());
    Ok(links)
}

/// Inserts the points of `order` from number `done` on. Those before are in the lists already.
pub(super) fn insert(
    table: &ByteTable,
    mut links: Links,
    order: &[u32],
    mut done: usize,
    cell_of: &[u32],
    cancel: &Cancel,
    step: &dyn Fn(usize),
) -> Result<Links> {
    let degree = links.degree;
    let cells = cell_of.iter().max().map_or(0, |most| *most as usize + 1);
    let mut inserted: Vec<Vec<u32>> = vec![Vec::new(); cells];
    for at in &order[..done] {
        inserted[cell_of[*at as usize] as usize].push(*at);
    }
    while done < order.len() {
        let round = done..(2 * done).max(FIRST_ROUND).min(order.len());
        let chosen = for_all(&order[round.clone()], cancel, |at, walk| {
            let same_cell = &inserted[cell_of[at as usize] as usize];
            let starts: Vec<u32> = if done == 0 {
                order[round.clone()].to_vec()
            } else if same_cell.is_empty() {
                order[..STARTS].to_vec()
            } else {
                let count = STARTS.min(same_cell.len());
                let spread = (0..count).map(|i| same_cell[i * same_cell.len() / count]);
                spread.collect()
            };
            walk.search(table, &links, at, &starts, INSERT_CANDIDATES, usize::MAX);
            walk.choose(table, degree)
        })?;
        for (at, list) in &chosen {
            links.set(*at, list);
            inserted[cell_of[*at as usize] as usize].push(*at);
        }
        add_back(table, &mut links, &chosen, Full::Chosen, cancel)?;
        done = round.end;
        step(done);
    }
    Ok(links)
}

/// Points with their distances.
pub(super) fn nears(distances: &[i32], points: &[u32]) -> impl Iterator<Item = Near> {
    let pairs = distances.iter().zip(points);
    pairs.map(|(distance, at)| Near {
        distance: *distance,
        at: *at,
    })
}

/// Lets points choose their neighbours again, in the whole graph.
pub(super) fn refine(
    table: &ByteTable,
    links: &mut Links,
    points: &[u32],
    cancel: &Cancel,
) -> Result<()> {
    let degree = links.degree;
    let chosen = for_all(points, cancel, |at, walk| {
        let starts = links.get(at);
        walk.search(table, links, at, starts, REFINE_CANDIDATES, REFINE_HOPS);
        walk.choose(table, degree)
    })?;
    for (at, list) in &chosen {
        links.set(*at, list);
    }
    add_back(table, links, &chosen, Full::Chosen, cancel)?;
    raise_incoming(links, &chosen);
    Ok(())
}

/// Adds points that are in few lists to the lists of their own neighbours. They replace neighbours that are in many.
pub(super) fn raise_incoming(links: &mut Links, chosen: &[Chosen]) {
    links.count_incoming();
    let Links {
        degree,
        neighbours,
        incoming,
        changed,
    } = links;
    let enough = |incoming: u32| incoming as usize >= MIN_INCOMING;
    for (at, own) in chosen {
        for to in own {
            if enough(incoming[*at as usize]) {
                break;
            }
            let list = &mut neighbours[to.at as usize * *degree..][..*degree];
            if list.contains(at) {
                continue;
            }
            // Lists are sorted, so the farthest is replaced.
            let replaceable =
                |n: &u32| *n == NO_NEIGHBOUR || incoming[*n as usize] as usize > MIN_INCOMING;
            let place = match list.iter().position(|n| *n == NO_NEIGHBOUR) {
                Some(free) => Some(free),
                None => list.iter().rposition(replaceable),
            };
            if let Some(place) = place {
                let old = std::mem::replace(&mut list[place], *at);
                if old != NO_NEIGHBOUR {
                    incoming[old as usize] -= 1;
                }
                incoming[*at as usize] += 1;
                changed.push(to.at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::{rows, uniform};
    use garlic_linalg::permutation;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    fn linked(values: &[f32], dim: usize, threads: usize) -> (ByteTable, Links) {
        let table = ByteTable::of(rows(values, dim));
        let order = permutation(table.len(), 1, 2);
        let cell_of: Vec<u32> = (0..table.len() as u32).map(|i| i % 7).collect();
        let pool = garlic_core::pool::thread_pool(threads).unwrap();
        let build = || link(&table, 16, &order, &cell_of, &Cancel::default(), &|_| ());
        let links = pool.install(build).unwrap();
        (table, links)
    }

    fn cloud(count: usize, dim: usize) -> Vec<f32> {
        let values = uniform(count, dim, 8).into_iter();
        values.map(|v| v * 200.0).collect()
    }

    #[test]
    fn lists_hold_most_of_the_nearest() {
        let (count, dim) = (3000, 8);
        let (table, links) = linked(&cloud(count, dim), dim, 2);
        let all: Vec<u32> = (0..count as u32).collect();
        let (mut centre, mut distances) = (Centre::default(), Vec::new());
        let mut found = 0;
        for at in (0..count as u32).step_by(10) {
            table.centre(at, &mut centre);
            table.distances(&centre, &all, &mut distances);
            let mut near: Vec<(i32, u32)> = distances.iter().copied().zip(0..).collect();
            near.retain(|(_, other)| *other != at);
            near.sort_unstable();
            let list = links.get(at);
            assert!(!list.contains(&at) && list.len() == 16);
            found += near[..3].iter().filter(|(_, n)| list.contains(n)).count();
        }
        assert!(found > 800, "{found} of 900");
    }

    #[test]
    fn every_point_is_in_enough_lists() {
        let (count, dim) = (2500, 6);
        let (_, links) = linked(&cloud(count, dim), dim, 2);
        let mut incoming = vec![0; count];
        links
            .neighbours
            .iter()
            .for_each(|n| incoming[*n as usize] += 1);
        let poor = incoming.iter().filter(|n| **n < MIN_INCOMING).count();
        assert!(poor < count / 100, "{poor}");
    }

    #[test]
    fn the_number_of_threads_does_not_matter() {
        let values = cloud(2100, 10);
        let one = linked(&values, 10, 1).1;
        let three = linked(&values, 10, 3).1;
        assert_eq!(one.neighbours, three.neighbours);
    }

    #[test]
    fn a_point_joins_a_full_list_in_the_place_of_the_one_that_it_occludes_most() {
        let points: [[f32; 2]; 8] = [
            [0.0, 0.0],
            [10.0, 0.0],
            [0.0, 30.0],
            [40.0, 0.0],
            [38.0, 3.0],
            [12.0, 0.0],
            [-20.0, 0.0],
            [2.0, 29.0],
        ];
        let table = ByteTable::of(rows(points.as_flattened(), 2));
        let near = |at: u32| {
            let [x, y] = points[at as usize];
            let distance = (x * x + y * y) as i32;
            Near { distance, at }
        };
        let joined = |new: &[u32]| {
            let mut list: Vec<Near> = [1, 2, 3].map(near).to_vec();
            let new = new.iter().map(|at| near(*at));
            let joined = Walk::default().join(&table, &mut list, new);
            assert!(list.is_sorted());
            (joined, list.into_iter().map(|near| near.at).collect())
        };
        // Point 4 is next to 3, and 7 to 2. Point 5 is next to 1, which is nearer. Point 6 is far from all, so the
        // farthest goes.
        assert_eq!(joined(&[4]), (true, vec![1, 2, 4]));
        assert_eq!(joined(&[7]), (true, vec![1, 7, 3]));
        assert_eq!(joined(&[5]), (false, vec![1, 2, 3]));
        assert_eq!(joined(&[6]), (true, vec![1, 6, 2]));
        assert_eq!(joined(&[2, 3]), (false, vec![1, 2, 3]), "they are there");
        assert_eq!(joined(&[4, 6, 5]), (true, vec![1, 6, 2]));
    }

    #[test]
    fn few_and_equal_points_are_linked() {
        for count in [1, 2, 5, 40] {
            let (_, links) = linked(&vec![3.0; count * 4], 4, 2);
            for at in 0..count as u32 {
                let list = links.get(at);
                assert_eq!(list.len(), 16.min(count - 1), "{count}");
                assert!(!list.contains(&at));
            }
        }
    }

    #[test]
    fn a_cancelled_build_stops() {
        let cancel = Cancel::new(Arc::new(AtomicBool::new(true)));
        let table = ByteTable::of(rows(&cloud(50, 4), 4));
        let order: Vec<u32> = (0..50).collect();
        assert!(link(&table, 8, &order, &[0; 50], &cancel, &|_| ()).is_err());
    }
}
