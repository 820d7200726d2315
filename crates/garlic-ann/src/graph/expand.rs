//! Best-first expansion: a search along the edges of the graph.

use garlic_core::SearchStats;
use garlic_simd::Estimate;

use super::Graph;
use super::codes::QueryBuffers;
use super::visited::Visited;
use crate::quantize::RowQuery;

/// A position with this bit was expanded.
const EXPANDED: u32 = 1 << 31;
/// Codes that are estimated at once.
const BLOCK: usize = 4;
/// The next point is expanded if at most this many codes are left to estimate.
const PENDING: usize = 16;
/// Codes that are requested from memory ahead of their use.
const REQUESTED: usize = 16;
/// The limit refers to the estimate of a candidate of at least this rank. The best estimate alone is often too low by
/// chance.
const MIN_STOP_RANK: usize = 5;
/// Points that a search starts from.
const START_POINTS: usize = 4;

/// Buffers of one search.
#[derive(Debug, Default)]
pub(crate) struct Expansion {
    buffers: QueryBuffers,
    pub(crate) prepared: PreparedQuery,
    /// Cells that have points.
    cells: Vec<u32>,
    /// Candidates from near to far. Expanded ones are marked.
    pool: Vec<Estimate>,
    visited: Visited,
    /// Neighbours in the order in which they were seen.
    pending: Vec<u32>,
    estimates: Vec<f32>,
    /// Estimates of the `k` nearest admitted candidates, if not all points are admitted.
    nearest: Vec<f32>,
}

/// A query, and the cell whose points it starts from.
#[derive(Debug, Default)]
pub(crate) struct PreparedQuery {
    query: RowQuery,
    start: Option<Start>,
}

#[derive(Clone, Copy, Debug)]
struct Start {
    cell: u32,
    centre: u32,
}

impl PreparedQuery {
    /// The cell that the query starts from.
    pub(crate) fn cell(&self) -> u32 {
        self.start.map_or(0, |start| start.cell)
    }
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
    pub(crate) codes: u64,
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
    fn admit(&mut self, estimate: f32, k: usize) {
        let place = self.nearest.partition_point(|other| *other <= estimate);
        if place < k {
            self.nearest.truncate(k - 1);
            self.nearest.insert(place, estimate);
        }
    }
}

impl Graph {
    /// Estimates the pending points and keeps the best `most` in the pool.
    fn read_starts(&self, most: usize, scratch: &mut Expansion) {
        for at in &scratch.pending {
            self.codes.prefetch(*at);
        }
        scratch.estimates.resize(scratch.pending.len(), 0.0);
        let (codes, query) = (self.codes.bytes(), &scratch.prepared.query);
        query.estimate(codes, &scratch.pending, &mut scratch.estimates);
        scratch.pool.clear();
        for i in 0..scratch.pending.len() {
            scratch.offer(scratch.pending[i], scratch.estimates[i], most);
        }
    }

    /// Prepares a query, and finds the cell whose central point is nearest.
    pub(crate) fn prepare(&self, query: &[f32], scratch: &mut Expansion) {
        let Expansion {
            buffers, prepared, ..
        } = scratch;
        self.codes.prepare(query, buffers, &mut prepared.query);
        let points = self.points();
        let centres = (0..).zip(&*self.centres);
        let centres = centres.filter(|(_, at)| (**at as usize) < points);
        scratch.cells.clear();
        scratch.pending.clear();
        for (cell, at) in centres {
            scratch.cells.push(cell);
            scratch.pending.push(*at);
        }
        self.read_starts(1, scratch);
        let nearest = scratch.pool.first().map(|e| e.at);
        let number = scratch.pending.iter().position(|at| Some(*at) == nearest);
        scratch.prepared.start = number.map(|number| Start {
            cell: scratch.cells[number],
            centre: scratch.pending[number],
        });
    }

    /// Searches the graph for candidates near the prepared query. `bin_starts` appends one point of every bin of a
    /// cell.
    pub(crate) fn expand(
        &self,
        limits: &Limits,
        admission: &impl Admission,
        bin_starts: impl Fn(usize, &mut Vec<u32>),
        scratch: &mut Expansion,
    ) -> Expanded {
        let points = self.points();
        let mut work = Expanded {
            codes: self.centres.len() as u64,
            ..Expanded::default()
        };
        scratch.visited.start(points);
        if let Some(at) = limits.unvisited {
            scratch.visited.insert(at);
        }
        scratch.pending.clear();
        if let Some(Start { cell, centre }) = scratch.prepared.start {
            bin_starts(cell as usize, &mut scratch.pending);
            scratch.pending.retain(|at| *at != centre);
            scratch.pending.push(centre);
        }
        let allowed = |at: &u32| (*at as usize) < points && Some(*at) != limits.unvisited;
        scratch.pending.retain(allowed);
        work.codes += scratch.pending.len() as u64;
        self.read_starts(START_POINTS, scratch);
        scratch.nearest.clear();
        for i in 0..scratch.pool.len() {
            let Estimate { at, estimate } = scratch.pool[i];
            scratch.visited.insert(at);
            if admission.admits(at) {
                scratch.admit(estimate, limits.k.max(MIN_STOP_RANK));
            }
        }
        self.walk(limits, admission, scratch, &mut work);
        work
    }

    /// Expands candidates until none is left within the limits.
    ///
    /// Memory is slow and serves several requests at once. So the next point is expanded before all neighbours of the
    /// last one are estimated, and codes are requested a few at a time, ahead of their use.
    fn walk<A: Admission>(
        &self,
        limits: &Limits,
        admission: &A,
        scratch: &mut Expansion,
        work: &mut Expanded,
    ) {
        let (k, ratio) = (limits.k.max(MIN_STOP_RANK), limits.ratio);
        let most = limits.candidates.max(k);
        let (points, lists) = (self.points(), &*self.neighbours);
        let (codes, lines) = (self.codes.bytes(), self.codes.quantizer.lines());
        let mut limit = f32::INFINITY;
        // The first candidate that may not be expanded yet. The first pending codes that are not requested and not
        // estimated yet.
        let (mut next, mut requested, mut read) = (0, 0, 0);
        scratch.pending.clear();
        loop {
            while scratch.pending.len() - read <= PENDING {
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
                let from = at as usize * self.degree;
                let list = lists.get(from..from + self.degree).unwrap_or_default();
                work.edges += list.len() as u64;
                let Expansion {
                    visited, pending, ..
                } = scratch;
                visited.insert_all(list, points, pending);
                if let Some(after) = scratch.pool.get(next) {
                    self.prefetch(after.at & !EXPANDED);
                }
            }
            let request = (read + REQUESTED).min(scratch.pending.len());
            for at in &scratch.pending[requested.min(request)..request] {
                garlic_simd::prefetch_row(codes, lines, *at);
            }
            requested = requested.max(request);
            let block = BLOCK.min(scratch.pending.len() - read);
            if block == 0 {
                scratch.visited.remove_all(&scratch.pending);
                return;
            }
            let mut estimates = [0.0; BLOCK];
            let mut positions = [0; BLOCK];
            positions[..block].copy_from_slice(&scratch.pending[read..read + block]);
            read += block;
            work.codes += block as u64;
            let positions = &positions[..block];
            let query = &scratch.prepared.query;
            query.estimate(codes, positions, &mut estimates[..block]);
            for (at, estimate) in positions.iter().zip(estimates) {
                if estimate > limit {
                    continue;
                }
                work.overflowed |= scratch.pool.len() >= most;
                let Some(place) = scratch.offer(*at, estimate, most) else {
                    continue;
                };
                if place <= next {
                    next = place;
                    self.prefetch(*at);
                }
                if A::ALL {
                    if place < k
                        && let Some(kth) = scratch.pool.get(k - 1)
                    {
                        limit = kth.estimate * ratio;
                    }
                } else if admission.admits(*at) {
                    scratch.admit(estimate, k);
                    limit = scratch.kth(k) * ratio;
                }
            }
        }
    }
}
