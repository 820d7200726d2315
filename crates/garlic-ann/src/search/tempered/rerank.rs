//! Exact distances of the best candidates.

use garlic_simd::Estimate;

use super::{AHEAD, Best, Plan, Work};
use crate::index::View;
use crate::index::stored::Prepared;

impl View<'_> {
    /// Exact distances of the candidates in `found`.
    pub(super) fn rerank(
        &self,
        query: &Prepared<'_>,
        plan: &Plan,
        found: &[Estimate],
        best: &mut Best,
        work: &mut Work,
    ) {
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
            let squared = self.distance(f.at, query);
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
