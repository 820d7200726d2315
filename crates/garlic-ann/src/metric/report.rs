//! What an index has found, as its metric reports it.

use super::Metric;
use crate::index::Index;
use crate::search::{Best, Hit};

impl Index {
    /// What "near" means to this index.
    pub fn metric(&self) -> Metric {
        self.embedding.metric()
    }

    /// The `wanted` best of what a search has found, as they are reported, by (distance, id).
    pub(crate) fn report(&self, query: &[f32], best: &Best, wanted: usize) -> Vec<Hit> {
        let mut stored = Vec::new();
        let mut hits: Vec<Hit> = best
            .found()
            .map(|found| {
                if self.embedding.reads_vectors() {
                    let at = found.position as usize;
                    self.vectors.read(self.space.dim(), at, &mut stored);
                }
                Hit {
                    id: found.id,
                    distance: self.embedding.reported(query, found.squared, &stored),
                }
            })
            .collect();
        hits.sort_unstable_by(|a, b| a.distance.total_cmp(&b.distance).then(a.id.cmp(&b.id)));
        hits.truncate(wanted);
        hits
    }

    /// Whether the best of an exact search inside, the farthest at the squared distance `worst`, are certainly
    /// the best as they are reported, too.
    pub(crate) fn settles(&self, query: &[f32], hits: &[Hit], worst: f32) -> bool {
        !self.embedding.reads_vectors()
            || worst == f32::INFINITY
            || hits
                .last()
                .is_some_and(|last| worst > self.embedding.limit(query, last.distance))
    }

    /// The `wanted` nearest as they are reported, from all vectors.
    pub(crate) fn report_all(&self, query: &[f32], wanted: usize) -> Vec<Hit> {
        let mut best = Best::default();
        best.start(wanted);
        let mut stored = Vec::new();
        for (position, id) in self.ids.iter().enumerate() {
            self.vectors.read(self.space.dim(), position, &mut stored);
            let distance = self.embedding.reported(query, 0.0, &stored);
            best.offer(distance, *id, position as u32);
        }
        let found = best.found().map(|f| Hit {
            id: f.id,
            distance: f.squared,
        });
        let mut hits: Vec<Hit> = found.collect();
        hits.sort_unstable_by(|a, b| a.distance.total_cmp(&b.distance).then(a.id.cmp(&b.id)));
        hits
    }
}
