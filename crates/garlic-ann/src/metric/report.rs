//! What an index has found, as its metric reports it.

use super::Metric;
use crate::index::Index;
use crate::search::{Allowed, Best, Hit};

impl Index {
    /// What "near" means to this index.
    pub fn metric(&self) -> Metric {
        self.embedding.metric()
    }

    /// The `wanted` best of what a search has found, as they are reported, by (distance, id).
    pub(crate) fn report(&self, query: &[f32], best: &Best, wanted: usize) -> Vec<Hit> {
        let hits = self.report_places(query, best, wanted).into_iter();
        hits.map(|(hit, _)| hit).collect()
    }

    /// The same, each with its position.
    pub(crate) fn report_places(
        &self,
        query: &[f32],
        best: &Best,
        wanted: usize,
    ) -> Vec<(Hit, u32)> {
        let mut stored = Vec::new();
        let mut hits: Vec<(Hit, u32)> = best
            .found()
            .map(|found| {
                if self.embedding.reads_vectors() {
                    self.read_at(found.position, &mut stored);
                }
                let hit = Hit {
                    id: found.id,
                    distance: self.embedding.reported(query, found.squared, &stored),
                };
                (hit, found.position)
            })
            .collect();
        hits.sort_unstable_by(|(a, _), (b, _)| {
            a.distance.total_cmp(&b.distance).then(a.id.cmp(&b.id))
        });
        hits.truncate(wanted);
        hits
    }

    /// The stored vector at a position, into `out`.
    pub(crate) fn read_at(&self, position: u32, out: &mut Vec<f32>) {
        match self.view() {
            Some(view) => {
                if let Some(point) = view.point(position) {
                    point.read(self.space.dim(), out);
                }
            }
            None => {
                self.vectors.read(self.space.dim(), position as usize, out);
            }
        }
    }

    /// Whether the best of an exact search inside, the farthest at the squared distance `worst`, are certainly
    /// the best as they are reported, too.
    pub(crate) fn settles(&self, query: &[f32], hits: &[(Hit, u32)], worst: f32) -> bool {
        !self.embedding.reads_vectors()
            || worst == f32::INFINITY
            || hits
                .last()
                .is_some_and(|(last, _)| worst > self.embedding.limit(query, last.distance))
    }

    /// The `wanted` nearest as they are reported, from all vectors that are allowed.
    pub(crate) fn report_all(
        &self,
        query: &[f32],
        wanted: usize,
        allowed: Option<&Allowed>,
    ) -> Vec<Hit> {
        let mut best = Best::default();
        best.start_for(wanted, self.spills());
        let mut stored = Vec::new();
        self.each_allowed(allowed, |position, id| {
            self.read_at(position, &mut stored);
            let distance = self.embedding.reported(query, 0.0, &stored);
            best.offer(distance, id, position);
        });
        let found = best.found().map(|f| Hit {
            id: f.id,
            distance: f.squared,
        });
        let mut hits: Vec<Hit> = found.collect();
        hits.sort_unstable_by(|a, b| a.distance.total_cmp(&b.distance).then(a.id.cmp(&b.id)));
        hits
    }

    /// Calls `each` with position and identifier of every vector that is allowed.
    pub(super) fn each_allowed(&self, allowed: Option<&Allowed>, mut each: impl FnMut(u32, u64)) {
        match self.view().map(|view| view.with(allowed)) {
            Some(view) => {
                for position in view.admitted() {
                    if let Some(point) = view.point(position) {
                        each(position, point.id);
                    }
                }
            }
            None => {
                for (position, id) in (0..).zip(&self.ids[..]) {
                    if allowed.is_none_or(|allowed| allowed.contains(position)) {
                        each(position, *id);
                    }
                }
            }
        }
    }
}
