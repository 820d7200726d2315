//! A query's way through the default preset: `route` (rotate, choose cells, project), `bins` (order them, scan their
//! codes), `rerank` (exact distances). `batch` shares the first of these among queries, `exact` proves its answers.

use garlic_simd::Estimate;

use super::rerank::Reranked;
use crate::plan::Plan;
use crate::quantize::Probe;
use crate::segment::Snapshot;
use garlic_core::vectors::Prepared;
use garlic_core::{SearchStats, TopK};

/// Bins and vectors that are asked from memory ahead of their use.
pub(super) const AHEAD: usize = 8;

/// Buffers of one query at a time.
#[derive(Default)]
pub(crate) struct QueryScratch {
    pub(super) centred: Vec<f32>,
    pub(super) query: Vec<f32>,
    /// Squared distance of the query from the mean of the space.
    pub(super) whole: f32,
    pub(super) distances: Vec<f32>,
    pub(crate) cells: Vec<Estimate>,
    /// How many means were looked at to find them.
    pub(super) scored: usize,
    pub(super) y: Vec<f32>,
    /// Coordinates in the frames of all probed cells, where they are known already.
    pub(super) projected: Vec<f32>,
    pub(super) bin_weights: Vec<i8>,
    /// Weights of all probed cells, `width` each.
    pub(super) weights: Vec<i8>,
    pub(super) probes: Vec<Probe>,
    /// Number of the probe of a cell; only those of this query are looked at.
    pub(super) probe_of: Vec<u32>,
    pub(crate) bins: Vec<Estimate>,
    /// Bins of the first cells that were not among the first to be scanned.
    pub(super) later: Vec<Estimate>,
    pub(crate) found: Vec<Estimate>,
    pub(super) spare: Vec<Estimate>,
    /// The query as bytes, where it is made of them and vectors are stored so.
    pub(super) bytes: Vec<u8>,
    pub(super) sums: Vec<i32>,
}

/// The estimate up to which bins count when that of the worst candidate is `limit`. Where neighbours are closer together
/// than codes can tell, estimates may be below zero.
pub(crate) fn reach(limit: f32, bin_prune_ratio: f32) -> f32 {
    limit.max(limit * bin_prune_ratio)
}

/// Keeps the `keep` best of `list` and returns the limit below which a newcomer counts.
pub(super) fn shrink(list: &mut Vec<Estimate>, keep: usize) -> f32 {
    garlic_simd::keep_smallest(list, keep).estimate
}

impl Snapshot<'_> {
    /// Answers one query into `best`.
    pub(crate) fn search(
        &self,
        query: &[f32],
        plan: &Plan,
        scratch: &mut QueryScratch,
        best: &mut TopK,
    ) -> SearchStats {
        self.search_watched(query, plan, scratch, best, |_| ())
    }

    /// Answers one query into `best`; `watch` sees every candidate.
    pub(crate) fn search_watched(
        &self,
        query: &[f32],
        plan: &Plan,
        scratch: &mut QueryScratch,
        best: &mut TopK,
        watch: impl FnMut(Reranked),
    ) -> SearchStats {
        let mut work = SearchStats::default();
        let outside = self.rotate_roughly(query, scratch);
        // With bins that are left out by their estimates the choice of cells matters little, and the plain
        // distance is cheaper; a fixed number of cells should be the best ones.
        let projected = if plan.bin_prune_ratio.is_finite() {
            self.cells_for(plan.probes, plan.grouped, scratch);
            if plan.widens && self.is_sparse(scratch) {
                if plan.all_if_sparse {
                    work = self.brute_force(query, plan.k, best);
                    self.count(0, scratch.scored, &mut work);
                    return work;
                }
                self.nearest_cells(usize::MAX, scratch);
            }
            scratch.cells.len()
        } else {
            self.best_cells(plan.probes, scratch)
        };
        self.candidates(outside, plan, scratch, &mut work);
        let prepared = match scratch.bytes.is_empty() {
            true => Prepared::Float(query),
            false => Prepared::Bytes(&scratch.bytes),
        };
        self.rerank(&prepared, plan, &scratch.found, best, &mut work, watch);
        self.read_strangers(query, best, &mut work);
        self.count(projected, scratch.scored, &mut work);
        work
    }

    /// Counts the multiply-adds of a query that looked at `scored` means and probed `probed` cells.
    pub(in crate::search) fn count(&self, probed: usize, scored: usize, work: &mut SearchStats) {
        let (rank, wide) = (self.segment.cells.rank(), self.segment.cells.dim());
        let dim = self.index.transform.dim();
        work.rotation_madds = (dim * (wide + 1) + wide) as u64;
        work.routing_madds = (scored * wide) as u64;
        work.cells_scored = scored as u64;
        work.cells_projected = probed as u64;
        work.projection_madds = (probed * rank * wide) as u64;
        work.ordering_madds = work.bins_ordered * rank as u64;
        work.code_madds = work.codes * rank as u64;
        work.exact_madds = work.candidates * dim as u64;
    }
}
