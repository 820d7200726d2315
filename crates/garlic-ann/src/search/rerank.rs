//! Reranks the best candidates by exact distances.

use garlic_core::{SearchStats, TopK};
use garlic_simd::Estimate;

use super::disk::Reranking;
use super::query::AHEAD;
use crate::plan::Plan;
use crate::segment::Snapshot;
use garlic_core::vectors::Prepared;

/// Bytes of vectors that are requested from memory ahead of their use, at most for [`AHEAD`] vectors.
const AHEAD_BYTES: usize = 4096;

/// A candidate whose exact distance has been computed.
pub(crate) struct Reranked {
    pub(crate) at: u32,
    pub(crate) estimate: f32,
    pub(crate) squared: f32,
    /// The squared distance of the k-th best before this candidate.
    pub(crate) worst: f32,
    /// Whether the candidate is new among the k best.
    pub(crate) new: bool,
}

/// Watches the candidates of a search.
pub(crate) trait Observer {
    /// Coordinates of the query in the frames of its nearest cells, nearest first, as far as they are known.
    fn projected(&self) -> &[f32] {
        &[]
    }

    /// Whether a candidate may be among the best, given the squared distance of the k-th best so far. If not, its
    /// distance is not computed.
    fn may_enter(&self, _at: u32, _worst: f32) -> bool {
        true
    }

    /// Called for every candidate in order.
    fn observe(&mut self, _candidate: Reranked) {}
}

/// Watches nothing.
pub(crate) struct Unobserved;

/// Whether a candidate and all after it are pruned, given the squared distance of the k-th best so far.
#[inline]
pub(super) fn is_pruned(candidate: &Estimate, plan: &Plan, worst: f32) -> bool {
    candidate.estimate > plan.rerank_prune_ratio * worst
}

impl Observer for Unobserved {}

impl Snapshot<'_> {
    /// Computes the distances of uncovered points, for which there are no valid estimates.
    pub(super) fn scan_uncovered(&self, query: &[f32], best: &mut TopK, work: &mut SearchStats) {
        let index = self.index;
        for (id, vector) in index.uncovered.iter(index.transform.dim()) {
            let squared = garlic_simd::l2_squared(query, vector);
            if squared <= best.worst()
                && let Some(position) = index.position_of(id)
                && self.admits(position)
            {
                best.offer_distinct(squared, id, position);
            }
        }
        work.candidates += index.uncovered.len() as u64;
    }

    /// Computes exact distances of the candidates in `found`. `observer` sees each of them.
    pub(super) fn rerank(
        &self,
        query: &Prepared<'_>,
        plan: &Plan,
        found: &[Estimate],
        best: &mut TopK,
        work: &mut SearchStats,
        observer: &mut impl Observer,
    ) {
        best.start_for(plan.k, self.index.spills());
        if let Some(file) = self.on_disk() {
            let query = query.reborrow();
            let asked = Reranking::new(query, plan, found, best, work, observer);
            self.rerank_from_disk(file, &mut [asked]);
            return;
        }
        let row_bytes = self.segment.vectors.row_bytes(self.index.transform.dim());
        let ahead = (AHEAD_BYTES / row_bytes.max(1)).clamp(2, AHEAD);
        for f in found.iter().take(ahead) {
            self.prefetch(f.at);
        }
        for (i, f) in found.iter().enumerate() {
            let worst = best.worst();
            if is_pruned(f, plan, worst) {
                break;
            }
            if let Some(next) = found.get(i + ahead)
                && observer.may_enter(next.at, worst)
            {
                self.prefetch(next.at);
            }
            let distance = || self.distance(f.at, query);
            self.rerank_one(f, distance, best, work, observer);
        }
    }

    /// Offers a candidate with its exact distance.
    #[inline]
    pub(super) fn rerank_one(
        &self,
        f: &Estimate,
        distance: impl FnOnce() -> f32,
        best: &mut TopK,
        work: &mut SearchStats,
        observer: &mut impl Observer,
    ) {
        let worst = best.worst();
        work.candidates += 1;
        let squared = match observer.may_enter(f.at, worst) {
            true => distance(),
            false => f32::INFINITY,
        };
        // Ties are broken by identifier.
        let new = squared <= worst
            && self
                .point(f.at)
                .is_some_and(|point| best.offer(squared, point.id, f.at));
        observer.observe(Reranked {
            at: f.at,
            estimate: f.estimate,
            squared,
            worst,
            new,
        });
    }
}
