//! Exact search: the distances of all vectors that a query may find.

use garlic_core::{SearchStats, TopK};

use super::Plan;
use super::allowed::Seen;
use crate::index::GaussianIndex;

impl GaussianIndex {
    /// Leaves the best of all allowed points in `best`.
    pub(super) fn read_all(&self, query: &[f32], plan: &Plan, best: &mut TopK) -> SearchStats {
        best.start(plan.k);
        self.distances(self.seen(plan), query, |squared, id, position| {
            best.offer(squared, id, position);
        })
    }

    /// Squared distance, identifier and position of every point that a query may find, in order.
    pub(super) fn distances(
        &self,
        points: Seen<'_>,
        query: &[f32],
        mut each: impl FnMut(f32, u64, u32),
    ) -> SearchStats {
        let mut bytes = Vec::new();
        let prepared = self.vectors.prepare(query, &mut bytes);
        let mut stats = SearchStats::default();
        for (position, id) in (0..).zip(&self.ids[..]) {
            if points.admits(position) {
                let squared = self.vectors.distance(&prepared, position as usize);
                each(squared, *id, position);
                stats.candidates += 1;
            }
        }
        stats.exact_madds = stats.candidates * self.transform.dim() as u64;
        stats
    }
}
