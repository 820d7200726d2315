//! Exact distances of the best candidates.

use garlic_core::{SearchStats, TopK};
use garlic_simd::Estimate;

use super::query::AHEAD;
use crate::plan::Plan;
use crate::segment::Snapshot;
use garlic_core::vectors::Prepared;

/// A candidate whose exact distance has been computed.
pub(crate) struct Reranked {
    pub(crate) at: u32,
    pub(crate) estimate: f32,
    pub(crate) squared: f32,
    /// The squared distance that it had to beat.
    pub(crate) worst: f32,
    /// Whether it is among the best now, and was not before.
    pub(crate) new: bool,
}

impl Snapshot<'_> {
    /// Reads the points that came from where no cell was fitted, which estimates say nothing about.
    pub(super) fn read_strangers(&self, query: &[f32], best: &mut TopK, work: &mut SearchStats) {
        let index = self.index;
        for (id, vector) in index.uncovered.iter(index.transform.dim()) {
            let squared = garlic_simd::l2_squared(query, vector);
            if squared <= best.worst()
                && let Some(position) = index.position_of(id)
                && self.admits(position)
            {
                best.offer_again(squared, id, position);
            }
        }
        work.candidates += index.uncovered.len() as u64;
    }

    /// Exact distances of the candidates in `found`; `watch` sees each of them.
    pub(super) fn rerank(
        &self,
        query: &Prepared<'_>,
        plan: &Plan,
        found: &[Estimate],
        best: &mut TopK,
        work: &mut SearchStats,
        mut watch: impl FnMut(Reranked),
    ) {
        best.start_for(plan.k, self.index.spills());
        for f in found.iter().take(AHEAD) {
            self.prefetch(f.at);
        }
        for (i, f) in found.iter().enumerate() {
            if f.estimate > plan.rerank_prune_ratio * best.worst() {
                break;
            }
            if let Some(next) = found.get(i + AHEAD) {
                self.prefetch(next.at);
            }
            let squared = self.distance(f.at, query);
            work.candidates += 1;
            let worst = best.worst();
            // Equal distances are told apart by their identifiers.
            let new = squared <= worst
                && self
                    .point(f.at)
                    .is_some_and(|point| best.offer(squared, point.id, f.at));
            watch(Reranked {
                at: f.at,
                estimate: f.estimate,
                squared,
                worst,
                new,
            });
        }
    }
}
