//! Converts the points that a search has found to reported hits.

use super::double_precision::{DoublePrecision, PreciseHits};
use super::{Embedding, Metric};
use crate::error::Result;
use crate::query::{Answer, Hit};
use crate::stats::SearchStats;
use crate::topk::TopK;
use crate::vectors::StoredType;

/// The points of an index that a query may find.
pub trait Points {
    /// The embedding of the user's vectors into the stored ones.
    fn embedding(&self) -> &Embedding;
    /// Number of points of the index.
    fn len(&self) -> usize;
    /// Whether the index has no points.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Dimension of the user's vectors.
    fn dim(&self) -> usize;
    /// The element type of the stored vectors.
    fn element(&self) -> StoredType;
    /// Reads the stored vector at a position into `out`.
    fn read_at(&self, position: u32, out: &mut Vec<f32>);
    /// Calls `each` with position and identifier of every point that the query may find.
    fn each(&self, each: &mut dyn FnMut(u32, u64));
    /// Whether a point may have two positions.
    fn repeats(&self) -> bool {
        false
    }
}

/// A query and the parameters of its answer.
#[derive(Clone, Copy, Debug)]
pub struct QueryContext<'a> {
    /// The query of the user.
    pub query: &'a [f32],
    /// The embedded query.
    pub embedded: &'a [f32],
    /// Number of the query in error messages.
    pub row: usize,
    /// Number of neighbours to report.
    pub wanted: usize,
    /// Whether a proof is required.
    pub exact: bool,
    /// Whether the search considered all points.
    pub complete: bool,
}

impl Metric {
    /// The answer to a query, given the points that a search has found.
    ///
    /// If 32 bits cannot distinguish the neighbours of an exact search from others, all points are compared again in
    /// double precision.
    ///
    /// # Errors
    /// [`Error::TooClose`](crate::Error::TooClose) if a proof is required and rounding decides.
    pub fn answer(
        points: &impl Points,
        asked: &QueryContext<'_>,
        found: &TopK,
        mut stats: SearchStats,
    ) -> Result<Answer> {
        let QueryContext {
            query,
            embedded,
            row,
            wanted,
            exact,
            complete,
        } = *asked;
        let places = report_with_positions(points, query, found, wanted);
        let in_double = complete && points.needs_double(embedded, &places);
        let is_uncertain = complete && !is_order_certain(points, query, &places, found.worst());
        if in_double || is_uncertain {
            stats.candidates += points.len() as u64;
            stats.exact_madds += (points.len() * points.dim()) as u64;
        }
        let mut proved = complete;
        let hits = if in_double {
            let precise = points.nearest_in_double(query, embedded, wanted);
            // Without a required proof, the answer is returned as not exact.
            proved = exact || precise.unproved.is_none();
            match exact {
                true => precise.proved(row)?,
                false => precise.hits,
            }
        } else if is_uncertain {
            report_all(points, query, wanted)
        } else {
            places.into_iter().map(|(hit, _)| hit).collect()
        };
        Ok(Answer::new(hits, stats, proved))
    }

    /// The `wanted` best of the found points by reported distance, ordered by (distance, id).
    pub fn report(points: &impl Points, query: &[f32], found: &TopK, wanted: usize) -> Vec<Hit> {
        let hits = report_with_positions(points, query, found, wanted).into_iter();
        hits.map(|(hit, _)| hit).collect()
    }

    /// The found points whose reported distance is at most `radius`.
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
            // Two positions of one point are adjacent now.
            hits.dedup_by_key(|hit| hit.id);
        }
        hits
    }

    /// All points within a radius that 32 bits cannot resolve. `None` if 32 bits suffice.
    pub fn close_range(
        points: &impl Points,
        query: &[f32],
        embedded: &[f32],
        radius: f32,
    ) -> Option<(PreciseHits, SearchStats)> {
        if radius < 0.0 || !points.is_close(radius) {
            return None;
        }
        let precise = points.range_in_double(query, embedded, radius);
        let stats = SearchStats {
            candidates: points.len() as u64,
            exact_madds: (points.len() * points.dim()) as u64,
            ..SearchStats::default()
        };
        Some((precise, stats))
    }
}

/// The `wanted` best, each with its position.
fn report_with_positions(
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

/// Whether the best points by embedded distance are certainly the best by reported distance. `worst` is the largest
/// squared embedded distance.
fn is_order_certain(points: &impl Points, query: &[f32], hits: &[(Hit, u32)], worst: f32) -> bool {
    let embedding = points.embedding();
    !embedding.reads_vectors()
        || worst == f32::INFINITY
        || hits
            .last()
            .is_some_and(|(last, _)| worst > embedding.limit(query, last.distance))
}

/// The `wanted` best of all admitted points by reported distance.
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
