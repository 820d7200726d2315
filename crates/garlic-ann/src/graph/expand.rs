//! Best-first expansion: a search along the edges of the graph.

use garlic_core::SearchStats;
use garlic_linalg::Rows;
use garlic_simd::{Estimate, Marks};

use super::codes::QueryBuffers;
use super::nodes::{Flat, Nodes};
use super::{Graph, Grown};
use crate::quantize::RowQuery;

/// A position with this bit was expanded.
pub(super) const EXPANDED: u32 = 1 << 31;
/// Codes that are estimated at once.
pub(super) const BLOCK: usize = 16;
/// The next point is expanded if at most this many codes are left to estimate.
const PENDING: usize = 16;
/// Candidates whose lists are requested ahead of their expansion.
const LISTS_AHEAD: usize = 2;
/// The limit refers to the estimate of a candidate of at least this rank. The best estimate alone is often too low by
/// chance.
pub(super) const MIN_STOP_RANK: usize = 5;
/// Cells whose central points a search starts from.
const START_CELLS: usize = 2;

/// Buffers of one search.
#[derive(Debug, Default)]
pub(crate) struct Expansion {
    buffers: QueryBuffers,
    pub(super) prepared: PreparedQuery,
    /// Candidates from near to far. Expanded ones are marked.
    pub(super) pool: Vec<Estimate>,
    pub(super) marks: Marks,
    /// Marked points in the order in which they were seen.
    pub(super) seen: Vec<u32>,
    /// Points that a search may start from.
    starts: Vec<u32>,
    /// Estimates by heads, of points that a search may start from or of points that a descent has seen.
    pub(super) estimates: Vec<f32>,
    /// Points that a descent has expanded.
    pub(super) path: Vec<u32>,
    /// Estimates of the `k` nearest admitted candidates, if not all points are admitted.
    pub(super) nearest: Vec<f32>,
}

/// Points whose codes are read at once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Block {
    pub(super) items: [Estimate; BLOCK],
    pub(super) len: usize,
}

/// A query, and the points that it starts from.
#[derive(Debug, Default)]
pub(super) struct PreparedQuery {
    pub(super) query: RowQuery,
    /// Central points of the nearest cells.
    starts: [Option<u32>; START_CELLS],
}

/// When an expansion stops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Number of neighbours.
    pub(crate) k: usize,
    /// Candidates are dropped if their estimate exceeds that of the k-th by this factor.
    pub(crate) ratio: f32,
    /// Upper limit of the number of candidates.
    pub(crate) candidates: usize,
    /// A point that is not visited.
    pub(crate) unvisited: Option<u32>,
}

/// Decides which points are results. All points lead to others.
pub(crate) trait Admission {
    /// Whether all points are admitted.
    const ALL: bool;
    /// Whether a point is admitted.
    fn admits(&self, at: u32) -> bool;
}

/// Admits all points.
pub(crate) struct AllAdmitted;

impl Admission for AllAdmitted {
    const ALL: bool = true;

    #[inline]
    fn admits(&self, _: u32) -> bool {
        true
    }
}

/// Work of an expansion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expanded {
    pub(crate) hops: u64,
    pub(crate) edges: u64,
    /// Codes whose heads were read.
    pub(crate) codes: u64,
    /// Codes whose rests were read as well.
    pub(crate) rests: u64,
    /// Whether a candidate within the limits was dropped because there were too many. Then the search may have missed
    /// any part of the data.
    pub(crate) overflowed: bool,
}

impl Expanded {
    /// The work as statistics.
    pub(crate) fn stats(&self) -> SearchStats {
        let mut stats = SearchStats::default();
        (stats.hops, stats.edges, stats.codes) = (self.hops, self.edges, self.codes);
        stats
    }
}

impl Expansion {
    /// Adds a candidate. Returns its place, or `None` if it is not among the best.
    fn offer(&mut self, at: u32, estimate: f32, most: usize) -> Option<usize> {
        if self.pool.len() >= most {
            if self.pool.last().is_some_and(|e| estimate >= e.estimate) {
                return None;
            }
            self.pool.pop();
        }
        let place = self.pool.partition_point(|e| e.estimate <= estimate);
        self.pool.insert(place, Estimate { at, estimate });
        Some(place)
    }

    /// Appends the admitted candidates to `found`, nearest first.
    pub(crate) fn copy_to(&self, admission: &impl Admission, found: &mut Vec<Estimate>) {
        let unmarked = |e: &Estimate| Estimate {
            at: e.at & !EXPANDED,
            estimate: e.estimate,
        };
        let all = self.pool.iter().map(unmarked);
        found.extend(all.filter(|e| admission.admits(e.at)));
    }

    /// The estimate of the k-th admitted candidate after an expansion that does not admit all points. Infinite if there
    /// are fewer.
    pub(crate) fn kth(&self, k: usize) -> f32 {
        match self.nearest.get(k.saturating_sub(1)) {
            Some(estimate) => *estimate,
            None => f32::INFINITY,
        }
    }

    /// Counts an admitted candidate.
    pub(super) fn admit(&mut self, estimate: f32, k: usize) {
        let place = self.nearest.partition_point(|other| *other <= estimate);
        if place < k {
            self.nearest.truncate(k - 1);
            self.nearest.insert(place, estimate);
        }
    }
}

impl Graph {
    /// Estimates up to [`BLOCK`] nodes by their heads and requests the rests of those that may be within the limit.
    #[inline]
    fn read_heads(
        &self,
        nodes: &impl Nodes,
        query: &RowQuery,
        positions: &[u32],
        limit: f32,
    ) -> Block {
        let mut estimates = [0.0; BLOCK];
        nodes.estimate_heads(query, positions, &mut estimates[..positions.len()]);
        let limit = limit * self.codes.head_ratio;
        let mut block = Block::default();
        for (at, estimate) in positions.iter().zip(estimates) {
            // There is no branch, because it could not be predicted.
            block.items[block.len % BLOCK] = Estimate { at: *at, estimate };
            block.len += usize::from(estimate <= limit);
        }
        for e in block.items.iter().take(block.len) {
            nodes.prefetch_rest(e.at);
        }
        block
    }

    /// Completes estimates with the rests of the codes. Estimates are never negative.
    #[inline]
    pub(super) fn read_rests(nodes: &impl Nodes, query: &RowQuery, block: &mut Block) {
        let positions = block.items.map(|e| e.at);
        let mut more = [0.0; BLOCK];
        nodes.estimate_rests(query, &positions[..block.len], &mut more[..block.len]);
        for (e, more) in block.items.iter_mut().zip(more) {
            e.estimate = (e.estimate + more).max(0.0);
        }
    }

    /// Prepares a query.
    pub(crate) fn prepare(&self, query: &[f32], scratch: &mut Expansion) {
        self.codes.rotate_queries(query, &mut scratch.buffers);
        self.prepare_rotated(0, scratch);
    }

    /// Computes the coordinates of consecutive queries, which share the reading of the rotation.
    pub(crate) fn rotate(&self, queries: Rows<'_>, scratch: &mut Expansion) {
        self.codes
            .rotate_queries(queries.data(), &mut scratch.buffers);
    }

    /// Prepares one of the queries whose coordinates are known: weighs them, and finds the nearest central points.
    pub(crate) fn prepare_rotated(&self, number: usize, scratch: &mut Expansion) {
        let Expansion {
            buffers,
            prepared,
            starts,
            estimates,
            ..
        } = scratch;
        self.codes.prepare(number, buffers, &mut prepared.query);
        let (heads, points) = (self.codes.heads(), self.points() as u32);
        starts.clear();
        starts.extend(self.centres.iter().filter(|at| **at < points));
        for at in &*starts {
            heads.prefetch(*at);
        }
        estimates.resize(starts.len(), 0.0);
        prepared.query.estimate_heads(heads, starts, estimates);
        let estimates = estimates.iter().copied();
        prepared.starts = nearest(starts.iter().copied().zip(estimates));
    }

    /// Searches the graph for candidates near the prepared query.
    pub(crate) fn expand(
        &self,
        limits: &Limits,
        admission: &impl Admission,
        scratch: &mut Expansion,
    ) -> Expanded {
        self.expand_in(&Flat::new(self), limits, admission, scratch)
    }

    fn expand_in(
        &self,
        nodes: &impl Nodes,
        limits: &Limits,
        admission: &impl Admission,
        scratch: &mut Expansion,
    ) -> Expanded {
        let entries = nodes.entries();
        let mut work = Expanded {
            codes: (self.centres.len() + entries.len()) as u64,
            ..Expanded::default()
        };
        let Expansion {
            prepared,
            starts,
            seen,
            marks,
            estimates,
            ..
        } = scratch;
        seen.clear();
        marks.resize(nodes.points() as u32);
        starts.clear();
        starts.extend(limits.unvisited);
        marks.mark_new(starts, seen);
        let marked = seen.len();
        starts.clear();
        starts.extend(prepared.starts.iter().flatten());
        estimates.resize(entries.len(), 0.0);
        nodes.estimate_heads(&prepared.query, entries, estimates);
        let nearest = nearest(entries.iter().zip(estimates.iter().copied()));
        starts.extend(nearest.into_iter().flatten());
        marks.mark_new(starts, seen);
        self.descend(nodes, marked, scratch, &mut work);
        self.select(nodes, limits, admission, marked, scratch, &mut work);
        self.walk(nodes, limits, admission, scratch, &mut work);
        work
    }

    /// Expands candidates until none is left within the limits.
    ///
    /// Memory is slow and serves several requests at once. So the next point is expanded before all neighbours of the
    /// last one are estimated, and codes are requested a few at a time, ahead of their use.
    fn walk<N: Nodes, A: Admission>(
        &self,
        nodes: &N,
        limits: &Limits,
        admission: &A,
        scratch: &mut Expansion,
        work: &mut Expanded,
    ) {
        let (k, ratio) = (limits.k.max(MIN_STOP_RANK), limits.ratio);
        let most = limits.candidates.max(k);
        let mut limit = match A::ALL {
            true => scratch
                .pool
                .get(k - 1)
                .map_or(f32::INFINITY, |e| e.estimate),
            false => scratch.kth(k),
        } * ratio;
        // The first candidate that may not be expanded yet, and the first point whose head is not read yet.
        let (mut next, mut read) = (0, scratch.seen.len());
        // Promising points whose rests were requested.
        let mut waiting = Block::default();
        loop {
            while scratch.seen.len() - read <= PENDING {
                while scratch.pool.get(next).is_some_and(|e| e.at & EXPANDED != 0) {
                    next += 1;
                }
                let Some(candidate) = scratch.pool.get_mut(next) else {
                    break;
                };
                if candidate.estimate > limit {
                    break;
                }
                let at = candidate.at;
                candidate.at |= EXPANDED;
                next += 1;
                work.hops += 1;
                let list = nodes.list(at);
                work.edges += list.len() as u64;
                let new = scratch.seen.len();
                scratch.marks.mark_new(list, &mut scratch.seen);
                for at in &scratch.seen[new..] {
                    nodes.prefetch_head(*at);
                }
                for after in scratch.pool.iter().skip(next).take(LISTS_AHEAD) {
                    garlic_simd::prefetch(nodes.list(after.at & !EXPANDED));
                }
            }
            let from = read;
            read = scratch.seen.len().min(from + BLOCK);
            let block = &scratch.seen[from..read];
            let query = &scratch.prepared.query;
            let promising = self.read_heads(nodes, query, block, limit);
            work.codes += block.len() as u64;
            if block.is_empty() && waiting.len == 0 {
                scratch.marks.clear_near(&scratch.seen);
                return;
            }
            Self::read_rests(nodes, query, &mut waiting);
            work.rests += waiting.len as u64;
            let complete = std::mem::replace(&mut waiting, promising);
            for Estimate { at, estimate } in complete.items.into_iter().take(complete.len) {
                if estimate > limit {
                    continue;
                }
                work.overflowed |= scratch.pool.len() >= most;
                let Some(place) = scratch.offer(at, estimate, most) else {
                    continue;
                };
                if place < next + LISTS_AHEAD {
                    next = next.min(place);
                    garlic_simd::prefetch(nodes.list(at));
                }
                if A::ALL {
                    if place < k
                        && let Some(kth) = scratch.pool.get(k - 1)
                    {
                        limit = kth.estimate * ratio;
                    }
                } else if admission.admits(at) {
                    scratch.admit(estimate, k);
                    limit = scratch.kth(k) * ratio;
                }
            }
        }
    }
}

impl Grown {
    /// [`Graph::expand`] in all nodes.
    pub(crate) fn expand(
        &self,
        limits: &Limits,
        admission: &impl Admission,
        scratch: &mut Expansion,
    ) -> Expanded {
        self.base.expand_in(self, limits, admission, scratch)
    }
}

/// The values of the smallest estimates, smallest first.
fn nearest<T: Copy>(values: impl Iterator<Item = (T, f32)>) -> [Option<T>; START_CELLS] {
    let (mut smallest, mut found) = ([f32::INFINITY; START_CELLS], [None; START_CELLS]);
    for (value, estimate) in values {
        if let Some(place) = smallest.iter().position(|other| estimate < *other) {
            smallest[place..].rotate_right(1);
            found[place..].rotate_right(1);
            (smallest[place], found[place]) = (estimate, Some(value));
        }
    }
    found
}
