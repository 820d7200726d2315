//! The true neighbours of held-out points, by brute force.

use rayon::prelude::*;

use super::measure::{Judge, Query};
use crate::segment::Snapshot;
use garlic_core::Cancel;
use garlic_core::Result;

/// Vectors whose distances to all queries are computed together: they stay in a cache.
const BLOCK: usize = 1024;

/// Queries at positions of an index, with the distances and positions of their true neighbours. There must be more points than
/// the largest k.
pub(super) fn truth(
    view: &Snapshot<'_>,
    held: &[u32],
    ks: &[usize],
    cancel: &Cancel,
) -> Result<Vec<Query>> {
    let points: Vec<u32> = match view.index.spills() {
        true => view.index.first_positions(),
        false => view.admitted().collect(),
    };
    let tasks = 2 * rayon::current_num_threads().max(1);
    held.par_chunks(held.len().div_ceil(tasks).max(1))
        .map(|held| of_some(view, &points, held, ks, cancel))
        .collect::<Result<Vec<Vec<Query>>>>()
        .map(|parts| parts.into_iter().flatten().collect())
}

/// What one task does.
fn of_some(
    view: &Snapshot<'_>,
    points: &[u32],
    held: &[u32],
    ks: &[usize],
    cancel: &Cancel,
) -> Result<Vec<Query>> {
    let most = ks.iter().copied().max().unwrap_or(1);
    let new = |position: &u32| Query {
        position: *position,
        radii: Vec::new(),
        judged: Vec::new(),
        neighbours: Vec::new(),
    };
    let mut queries: Vec<Query> = held.iter().map(new).collect();
    let mut vectors = vec![Vec::new(); held.len()];
    for (query, vector) in queries.iter().zip(&mut vectors) {
        query.read(view, vector);
    }
    let mut bytes = vec![Vec::new(); held.len()];
    let pairs = vectors.iter().zip(&mut bytes);
    let prepared: Vec<_> = pairs
        .map(|(vector, bytes)| view.index.segment.vectors.prepare(vector, bytes))
        .collect();
    let mut lists: Vec<Vec<(f32, u32)>> = vec![Vec::new(); held.len()];
    let nearer = |a: &(f32, u32), b: &(f32, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    let mut judge = Judge::new(*view);
    for block in points.chunks(BLOCK) {
        cancel.check()?;
        for (number, list) in lists.iter_mut().enumerate() {
            let (query, vector) = (&prepared[number], &vectors[number]);
            let others = block.iter().filter(|p| **p != held[number]);
            list.extend(others.map(|p| {
                let squared = view.distance(*p, query);
                (judge.of(vector, *p, squared), *p)
            }));
            if list.len() > most {
                list.select_nth_unstable_by(most - 1, nearer);
                list.truncate(most);
            }
        }
    }
    for ((query, prepared), mut list) in queries.iter_mut().zip(&prepared).zip(lists) {
        list.sort_unstable_by(nearer);
        let farthest = ks.iter().map(|k| list[k - 1]);
        query.judged = farthest.clone().map(|(judged, _)| judged).collect();
        query.radii = farthest.map(|(_, p)| view.distance(p, prepared)).collect();
        query.neighbours = list.into_iter().map(|(_, position)| position).collect();
    }
    Ok(queries)
}
