//! Best-first expansion: a search along the edges of the graph.

use garlic_core::SearchStats;
use garlic_simd::Estimate;

use super::codes::CodedQuery;
use super::visited::Visited;
use super::{Graph, NO_NEIGHBOUR};

/// A position with this bit was expanded.
const EXPANDED: u32 = 1 << 31;
/// Codes that are estimated at once.
const BLOCK: usize = 4;
/// The next point is expanded if at most this many codes are left to estimate.
const PENDING: usize = 16;
/// Codes that are requested from memory ahead of their use.
const REQUESTED: usize = 16;
/// Estimated codes are dropped from the list of pending ones when there are this many.
const DROPPED: usize = 256;
/// Numbers of cells and of bins that a search starts from.
const START_CELLS: usize = 1;
const START_POINTS: usize = 4;

/// Buffers of one search.
#[derive(Debug, Default)]
pub(crate) struct Expansion {
    query: CodedQuery,
    /// Candidates from near to far. Expanded ones are marked.
    pool: Vec<Estimate>,
    visited: Visited,
    /// Points whose codes are prefetched but not read yet.
    pending: Vec<u32>,
    estimates: Vec<f32>,
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

/// Work of an expansion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expanded {
    pub(crate) hops: u64,
    pub(crate) edges: u64,
    pub(crate) codes: u64,
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

    /// Appends the candidates to `found`, nearest first.
    pub(crate) fn copy_to(&self, found: &mut Vec<Estimate>) {
        let unmarked = |e: &Estimate| Estimate {
            at: e.at & !EXPANDED,
            estimate: e.estimate,
        };
        found.extend(self.pool.iter().map(unmarked));
    }
}

impl Graph {
    /// Estimates the points `self.pending`, offers all that pass `limit` and keeps `most`.
    fn read_starts(&self, most: usize, scratch: &mut Expansion) {
        for at in &scratch.pending {
            self.codes.prefetch(*at);
        }
        scratch.estimates.resize(scratch.pending.len(), 0.0);
        let (codes, query) = (self.codes.bytes(), &scratch.query);
        query.estimate(codes, &scratch.pending, &mut scratch.estimates);
        scratch.pool.clear();
        for i in 0..scratch.pending.len() {
            scratch.offer(scratch.pending[i], scratch.estimates[i], most);
        }
    }

    /// Searches the graph for candidates near `query`. `bin_starts` appends one point of every bin of a cell.
    pub(crate) fn expand(
        &self,
        query: &[f32],
        limits: &Limits,
        bin_starts: impl Fn(usize, &mut Vec<u32>),
        scratch: &mut Expansion,
    ) -> Expanded {
        let points = self.points();
        let mut work = Expanded::default();
        self.codes.prepare(query, &mut scratch.query);
        scratch.visited.start(points);
        if let Some(at) = limits.unvisited {
            scratch.visited.insert(at);
        }
        // The nearest cells, by their central points.
        scratch.pending.clear();
        let in_range = |at: &&u32| (**at as usize) < points;
        let centres = self.centres.iter().filter(in_range);
        scratch.pending.extend(centres);
        work.codes += scratch.pending.len() as u64;
        self.read_starts(START_CELLS, scratch);
        let cells: Vec<u32> = scratch.pool.iter().map(|e| e.at).collect();
        scratch.pending.clear();
        for centre in cells {
            scratch.pending.push(centre);
            if let Some(cell) = self.centres.iter().position(|c| *c == centre) {
                bin_starts(cell, &mut scratch.pending);
            }
        }
        let allowed = |at: &u32| (*at as usize) < points && Some(*at) != limits.unvisited;
        scratch.pending.retain(allowed);
        scratch.pending.sort_unstable();
        scratch.pending.dedup();
        work.codes += scratch.pending.len() as u64;
        self.read_starts(START_POINTS, scratch);
        for e in &scratch.pool {
            scratch.visited.insert(e.at);
        }
        self.walk(limits, scratch, &mut work);
        work
    }

    /// Expands candidates until none is left within the limits.
    ///
    /// Memory is slow and serves several requests at once. So the next point is expanded before all neighbours of the
    /// last one are estimated, and codes are requested a few at a time, ahead of their use.
    fn walk(&self, limits: &Limits, scratch: &mut Expansion, work: &mut Expanded) {
        let (k, ratio) = (limits.k, limits.ratio);
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
                if read >= DROPPED {
                    scratch.pending.drain(..read);
                    (requested, read) = (requested - read, 0);
                }
                let from = at as usize * self.degree;
                let list = lists.get(from..from + self.degree).unwrap_or_default();
                for neighbour in list {
                    if *neighbour == NO_NEIGHBOUR {
                        break;
                    }
                    work.edges += 1;
                    if (*neighbour as usize) < points && scratch.visited.insert(*neighbour) {
                        scratch.pending.push(*neighbour);
                    }
                }
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
                return;
            }
            let mut estimates = [0.0; BLOCK];
            let mut positions = [0; BLOCK];
            positions[..block].copy_from_slice(&scratch.pending[read..read + block]);
            read += block;
            work.codes += block as u64;
            let positions = &positions[..block];
            scratch
                .query
                .estimate(codes, positions, &mut estimates[..block]);
            for (at, estimate) in positions.iter().zip(estimates) {
                if estimate > limit {
                    continue;
                }
                let Some(place) = scratch.offer(*at, estimate, most) else {
                    continue;
                };
                if place <= next {
                    next = place;
                    self.prefetch(*at);
                }
                if place < k
                    && let Some(kth) = scratch.pool.get(k - 1)
                {
                    limit = kth.estimate * ratio;
                }
            }
        }
    }
}
