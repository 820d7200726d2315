//! Exact distances of the best candidates.

use super::{AHEAD, Best, Plan, TemperedScratch, Work};
use crate::index::View;

impl View<'_> {
    /// Exact distances of the candidates in `scratch`.
    pub(super) fn rerank(
        &self,
        query: &[f32],
        plan: &Plan,
        scratch: &mut TemperedScratch,
        best: &mut Best,
        work: &mut Work,
    ) {
        let TemperedScratch { found, bytes, .. } = scratch;
        let query = self.index.vectors.prepare(query, bytes);
        best.start(plan.k);
        for f in found.iter().take(AHEAD) {
            self.prefetch(f.at);
        }
        for (i, f) in found.iter().enumerate() {
            if f.estimate > plan.trust * best.worst() {
                break;
            }
            if let Some(next) = found.get(i + AHEAD) {
                self.prefetch(next.at);
            }
            let squared = self.distance(f.at, &query);
            work.candidates += 1;
            // Equal distances are told apart by their identifiers.
            if squared <= best.worst()
                && let Some(point) = self.point(f.at)
            {
                best.offer(squared, point.id, f.at);
            }
        }
    }
}
