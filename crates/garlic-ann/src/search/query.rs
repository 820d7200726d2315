//! One approximate query: `route` (rotate, choose cells, project), `scan` (order bins, scan codes), `rerank` (exact
//! distances). `batch` shares the first step among queries. With a neighbour graph, `expand` replaces the first two.

use garlic_simd::Estimate;

use super::rerank::{Observer, Unobserved};
use crate::graph::Expansion;
use crate::plan::Plan;
use crate::quantize::Probe;
use crate::segment::Snapshot;
use garlic_core::vectors::Prepared;
use garlic_core::{SearchStats, TopK};

/// Number of bins and vectors to prefetch ahead of their use.
pub(super) const AHEAD: usize = 8;

/// Buffers of one query.
#[derive(Default)]
pub(crate) struct QueryScratch {
    pub(super) centred: Vec<f32>,
    pub(super) query: Vec<f32>,
    /// Squared distance of the query from the mean of the data.
    pub(super) whole: f32,
    pub(super) distances: Vec<f32>,
    pub(crate) cells: Vec<Estimate>,
    /// Number of means that were compared to find the cells.
    pub(super) scored: usize,
    pub(super) y: Vec<f32>,
    /// Coordinates in the frames of all probed cells, if they are computed already.
    pub(super) projected: Vec<f32>,
    pub(super) bin_weights: Vec<i8>,
    /// Query weights of all probed cells, `width` each.
    pub(super) weights: Vec<i8>,
    pub(super) probes: Vec<Probe>,
    /// Number of the probe of each cell. Valid for the probed cells only.
    pub(super) probe_of: Vec<u32>,
    pub(crate) bins: Vec<Estimate>,
    /// Bins of the first cells that are not in the first scan.
    pub(super) deferred: Vec<Estimate>,
    pub(crate) found: Vec<Estimate>,
    pub(super) spare: Vec<Estimate>,
    /// The query as bytes, if the index stores bytes and the query consists of them.
    pub(super) bytes: Vec<u8>,
    pub(super) sums: Vec<i32>,
    pub(super) expansion: Expansion,
    /// A point that expansion does not visit: the query itself during calibration.
    pub(crate) unvisited: Option<u32>,
}

/// The estimate up to which bins are scanned, given the estimate `limit` of the worst candidate. Estimates may be
/// negative if neighbours are closer together than the resolution of the codes.
pub(crate) fn bin_limit(limit: f32, bin_prune_ratio: f32) -> f32 {
    limit.max(limit * bin_prune_ratio)
}

/// Keeps the `keep` best of `list`. Returns the estimate that a new entry has to beat.
pub(super) fn keep_best(list: &mut Vec<Estimate>, keep: usize) -> f32 {
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
        self.search_observed(query, plan, scratch, best, &mut Unobserved)
    }

    /// Answers one query into `best`. `observer` sees every candidate.
    pub(crate) fn search_observed(
        &self,
        query: &[f32],
        plan: &Plan,
        scratch: &mut QueryScratch,
        best: &mut TopK,
        observer: &mut impl Observer,
    ) -> SearchStats {
        if let Some(search) = self.graph_search(plan) {
            search.graph.prepare(query, &mut scratch.expansion);
            return self.search_prepared(search, query, plan, scratch, best, observer);
        }
        self.search_bins(query, plan, scratch, best, observer)
    }

    /// Answers one query into `best` with cells and bins. `observer` sees each candidate.
    pub(in crate::search) fn search_bins(
        &self,
        query: &[f32],
        plan: &Plan,
        scratch: &mut QueryScratch,
        best: &mut TopK,
        observer: &mut impl Observer,
    ) -> SearchStats {
        let mut work = SearchStats::default();
        let residual_squared = self.rotate_for_estimates(query, scratch);
        // If bins are pruned by their estimates, the choice of cells matters little and the plain distance is
        // cheaper. With a fixed number of bins, the best cells are chosen by the anisotropic score.
        let projected = if plan.bin_prune_ratio.is_finite() {
            self.choose_cells(plan.probes, plan.coarse_routing, scratch);
            if plan.widens && self.is_sparse(scratch) {
                if plan.all_if_sparse {
                    work = self.brute_force(query, plan.k, best);
                    self.count_madds(0, scratch.scored, &mut work);
                    return work;
                }
                self.nearest_cells(usize::MAX, scratch);
            }
            scratch.projected.extend_from_slice(observer.projected());
            scratch.cells.len()
        } else {
            self.best_cells(plan.probes, scratch)
        };
        self.find_candidates(residual_squared, plan, scratch, &mut work);
        let prepared = match scratch.bytes.is_empty() {
            true => Prepared::Float(query),
            false => Prepared::Bytes(&scratch.bytes),
        };
        self.rerank(&prepared, plan, &scratch.found, best, &mut work, observer);
        self.scan_uncovered(query, best, &mut work);
        self.count_madds(projected, scratch.scored, &mut work);
        work
    }

    /// Counts the multiply-adds of a query that compared `scored` means and probed `probed` cells.
    pub(in crate::search) fn count_madds(
        &self,
        probed: usize,
        scored: usize,
        work: &mut SearchStats,
    ) {
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
