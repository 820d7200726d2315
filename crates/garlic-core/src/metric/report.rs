//! What a search has found, as the metric reports it.

use super::close::{Close, Settled};
use super::{Embedding, Metric};
use crate::error::Result;
use crate::query::{Answer, Hit};
use crate::stats::SearchStats;
use crate::topk::TopK;
use crate::vectors::StoredType;

/// The points that a query may find, as an index has them.
pub trait Points {
    /// The way from the user's vectors to the stored ones.
    fn embedding(&self) -> &Embedding;
    /// Number of points of the index.
    fn len(&self) -> usize;
    /// Whether the index has no points.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Dimension of the user's vectors.
    fn dim(&self) -> usize;
    /// The type of the stored coordinates.
    fn element(&self) -> StoredType;
    /// The stored vector at a position, into `out`.
    fn read_at(&self, position: u32, out: &mut Vec<f32>);
    /// Calls `each` with position and identifier of every point that the query may find.
    fn each(&self, each: &mut dyn FnMut(u32, u64));
    /// Whether a point may lie at two positions.
    fn repeats(&self) -> bool {
        false
    }
}

/// A query whose neighbours have been found inside the index.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The query as it was given.
    pub query: &'a [f32],
    /// The query in the metric's embedding.
    pub inside: &'a [f32],
    /// What errors call it.
    pub row: usize,
    /// Neighbours to report.
    pub wanted: usize,
    /// Whether a proof was asked for.
    pub exact: bool,
    /// Whether the search has looked at everything that could matter.
    pub complete: bool,
}

impl Metric {
    /// The answer to a query, from what a search has found inside the index.
    ///
    /// Where 32 bits cannot tell the neighbours of an exact search from others, all points are looked at again.
    ///
    /// # Errors
    /// [`Error::TooClose`](crate::Error::TooClose) where a proof was asked for and rounding decides.
    pub fn answer(
        points: &impl Points,
        asked: &Asked<'_>,
        found: &TopK,
        mut stats: SearchStats,
    ) -> Result<Answer> {
        let Asked {
            query,
            inside,
            row,
            wanted,
            exact,
            complete,
        } = *asked;
        let places = report_places(points, query, found, wanted);
        let in_double = complete && points.takes_double(inside, &places);
        let unsettled = complete && !settles(points, query, &places, found.worst());
        if in_double || unsettled {
            stats.candidates += points.len() as u64;
            stats.exact_madds += (points.len() * points.dim()) as u64;
        }
        let mut proved = complete;
        let hits = if in_double {
            let settled = points.nearest_in_double(query, inside, wanted);
            // Who has not asked for a proof gets the answer without.
            proved = exact || settled.unproved.is_none();
            match exact {
                true => settled.proved(row)?,
                false => settled.hits,
            }
        } else if unsettled {
            report_all(points, query, wanted)
        } else {
            places.into_iter().map(|(hit, _)| hit).collect()
        };
        Ok(Answer::new(hits, stats, proved))
    }

    /// The `wanted` best of what a search has found, as they are reported, by (distance, id).
    pub fn report(points: &impl Points, query: &[f32], found: &TopK, wanted: usize) -> Vec<Hit> {
        let hits = report_places(points, query, found, wanted).into_iter();
        hits.map(|(hit, _)| hit).collect()
    }

    /// Points within a squared distance inside the index that are within `radius` as they are reported.
    pub fn report_range(
        points: &impl Points,
        query: &[f32],
        radius: f32,
        found: impl Iterator<Item = (f32, u64, u32)>,
    ) -> Vec<Hit> {
        let embedding = points.embedding();
        let mut stored = Vec::new();
        let within = found.filter_map(|(squared, id, position)| {
            if embedding.reads_vectors() {
                points.read_at(position, &mut stored);
            }
            let distance = embedding.reported(query, squared, &stored);
            (distance <= radius).then_some(Hit { id, distance })
        });
        let mut hits: Vec<Hit> = within.collect();
        hits.sort_unstable_by(Hit::by_distance);
        if points.repeats() {
            // Two positions of one point are next to each other now.
            hits.dedup_by_key(|hit| hit.id);
        }
        hits
    }

    /// All points within a radius where 32 bits are too few to tell; `None` where they are enough.
    pub fn close_range(
        points: &impl Points,
        query: &[f32],
        inside: &[f32],
        radius: f32,
    ) -> Option<(Settled, SearchStats)> {
        if radius < 0.0 || !points.is_close(radius) {
            return None;
        }
        let settled = points.range_in_double(query, inside, radius);
        let stats = SearchStats {
            candidates: points.len() as u64,
            exact_madds: (points.len() * points.dim()) as u64,
            ..SearchStats::default()
        };
        Some((settled, stats))
    }
}

/// The `wanted` best, each with its position.
fn report_places(
    points: &impl Points,
    query: &[f32],
    found: &TopK,
    wanted: usize,
) -> Vec<(Hit, u32)> {
    let embedding = points.embedding();
    let mut stored = Vec::new();
    let places = found.found().map(|found| {
        if embedding.reads_vectors() {
            points.read_at(found.position, &mut stored);
        }
        let hit = Hit {
            id: found.id,
            distance: embedding.reported(query, found.squared, &stored),
        };
        (hit, found.position)
    });
    let mut hits: Vec<(Hit, u32)> = places.collect();
    hits.sort_unstable_by(|(a, _), (b, _)| Hit::by_distance(a, b));
    hits.truncate(wanted);
    hits
}

/// Whether the best of an exact search inside, the farthest at the squared distance `worst`, are certainly the best as
/// they are reported, too.
fn settles(points: &impl Points, query: &[f32], hits: &[(Hit, u32)], worst: f32) -> bool {
    let embedding = points.embedding();
    !embedding.reads_vectors()
        || worst == f32::INFINITY
        || hits
            .last()
            .is_some_and(|(last, _)| worst > embedding.limit(query, last.distance))
}

/// The `wanted` nearest as they are reported, from all points that the query may find.
fn report_all(points: &impl Points, query: &[f32], wanted: usize) -> Vec<Hit> {
    let mut best = TopK::default();
    best.start_for(wanted, points.repeats());
    let mut stored = Vec::new();
    points.each(&mut |position, id| {
        points.read_at(position, &mut stored);
        let distance = points.embedding().reported(query, 0.0, &stored);
        best.offer(distance, id, position);
    });
    let found = best.found().map(|f| Hit {
        id: f.id,
        distance: f.squared,
    });
    let mut hits: Vec<Hit> = found.collect();
    hits.sort_unstable_by(Hit::by_distance);
    hits
}
