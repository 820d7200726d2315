//! Exact answers in double precision, for distances that 32 bits cannot resolve.
//!
//! 32 bits have two limits. Squares of very small differences vanish. The vectors themselves are exact, so double
//! precision resolves these distances. And vectors of the cosine metric are stored with unit length and rounded: each
//! lies within [`UNIT_ROUNDING`] of the given direction. Points whose distances from the query differ by less than
//! three times that cannot be ordered. If rounding is small compared with the distances, it is accepted, as
//! everywhere. If vectors are so close together that it is not, there is no exact answer.

use super::Metric;
use super::distance::length;
use super::report::Points;
use crate::error::{Error, Result};
use crate::query::Hit;
use crate::vectors::StoredType;

/// Upper limit of the distance between a unit vector and its rounded version. Each coordinate has a relative error of
/// 2^-24.
const UNIT_ROUNDING: f64 = 1.001 / (1 << 24) as f64;

/// Difference of distances above which one point is certainly nearer. Each distance has the rounding error of its
/// point. If query and point coincide after rounding, the distance 0 has the errors of both.
const MIN_DISTANCE_GAP: f64 = 3.0 * UNIT_ROUNDING;

/// Distance between unit vectors below which rounding exceeds a ten-thousandth of the squared distance.
const CLOSE_DISTANCE: f64 = 2.0 * UNIT_ROUNDING / 1e-4;

/// Distance below which squares lose precision in 32 bits.
pub(super) const MIN_F32_DISTANCE: f64 = 1e-17;

/// A point with its distance from a query in double precision. For cosines it is the distance between unit vectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    distance: f64,
    id: u64,
    position: u32,
}

/// Hits in double precision.
#[derive(Debug)]
pub struct PreciseHits {
    /// Hits ordered by (distance, id).
    pub hits: Vec<Hit>,
    /// The distance at which points cannot be distinguished from others, if any.
    pub unproved: Option<f32>,
}

impl PreciseHits {
    /// The hits, if they are proved.
    ///
    /// # Errors
    /// [`Error::TooClose`] if they are not.
    pub fn proved(self, row: usize) -> Result<Vec<Hit>> {
        match self.unproved {
            None => Ok(self.hits),
            Some(distance) => Err(Error::TooClose { row, distance }),
        }
    }
}

/// Double-precision extensions of [`Points`].
pub(super) trait DoublePrecision: Points {
    /// The metric.
    fn metric(&self) -> Metric {
        self.embedding().metric()
    }

    /// Whether points at this reported distance need double precision.
    fn is_close(&self, distance: f32) -> bool {
        let distance = f64::from(distance);
        match self.metric() {
            Metric::Euclidean => distance < MIN_F32_DISTANCE,
            // With f16 and int8, distances refer to the rounded vectors by definition.
            Metric::Cosine => {
                self.element() == StoredType::F32
                    && distance < reported(Metric::Cosine, CLOSE_DISTANCE)
            }
            Metric::InnerProduct => false,
        }
    }

    /// Whether the neighbours of an exact search need double precision. `embedded` is the embedded query.
    fn needs_double(&self, embedded: &[f32], hits: &[(Hit, u32)]) -> bool {
        let Some((last, _)) = hits.last().filter(|(last, _)| self.is_close(last.distance)) else {
            return false;
        };
        // If all hits equal the query, none is nearer, and identifiers break ties.
        let mut stored = Vec::new();
        let mut is_query = |position: u32| {
            self.read_at(position, &mut stored);
            stored == embedded
        };
        last.distance > 0.0 || !hits.iter().all(|(_, position)| is_query(*position))
    }

    /// The `wanted` nearest of all admitted points. `embedded` is the embedded query.
    fn nearest_in_double(&self, query: &[f32], embedded: &[f32], wanted: usize) -> PreciseHits {
        let all = self.measure(query, embedded);
        let (near, others) = all.split_at(wanted.min(all.len()));
        let unproved = match (near.last(), others.first()) {
            (Some(last), Some(next)) if self.metric() == Metric::Cosine => {
                let within = next.distance - MIN_DISTANCE_GAP;
                let beyond = last.distance + MIN_DISTANCE_GAP;
                let near = near.iter().rev().take_while(|m| m.distance >= within);
                let others = others.iter().take_while(|m| m.distance <= beyond);
                let doubtful = near.chain(others).map(|m| m.position);
                let apart = next.distance > beyond;
                (!apart && !self.all_equal(doubtful)).then_some(last.distance)
            }
            _ => None,
        };
        PreciseHits {
            hits: self.hits(near),
            unproved: unproved.map(|d| reported(self.metric(), d) as f32),
        }
    }

    /// All admitted points within a reported distance.
    fn range_in_double(&self, query: &[f32], embedded: &[f32], radius: f32) -> PreciseHits {
        let metric = self.metric();
        let all = self.measure(query, embedded);
        let count = all.partition_point(|m| reported(metric, m.distance) as f32 <= radius);
        let unproved = metric == Metric::Cosine && {
            let limit = (2.0 * f64::from(radius)).sqrt();
            let doubtful =
                |m: &Measured| m.distance > 0.0 && (m.distance - limit).abs() <= UNIT_ROUNDING;
            all.iter().any(doubtful)
        };
        PreciseHits {
            hits: self.hits(&all[..count]),
            unproved: unproved.then_some(radius),
        }
    }

    /// All admitted points, ordered by (distance, id).
    fn measure(&self, query: &[f32], embedded: &[f32]) -> Vec<Measured> {
        let cosine = self.metric() == Metric::Cosine;
        let asked: Vec<f64> = match cosine {
            true => unit(query).collect(),
            false => query.iter().map(|v| f64::from(*v)).collect(),
        };
        let apart = |stored: &mut dyn Iterator<Item = f64>| -> f64 {
            let squares = stored.zip(&asked).map(|(x, q)| (x - q) * (x - q));
            squares.sum::<f64>().sqrt()
        };
        let mut all = Vec::with_capacity(self.len());
        let mut stored = Vec::new();
        self.each(&mut |position, id| {
            self.read_at(position, &mut stored);
            let distance = match stored == embedded {
                true => 0.0,
                false if cosine => apart(&mut unit(&stored)),
                false => apart(&mut stored.iter().map(|v| f64::from(*v))),
            };
            all.push(Measured {
                distance,
                id,
                position,
            });
        });
        all.sort_unstable_by(|a, b| a.distance.total_cmp(&b.distance).then(a.id.cmp(&b.id)));
        if self.repeats() {
            all.dedup_by_key(|m| m.id);
        }
        all
    }

    fn hits(&self, measured: &[Measured]) -> Vec<Hit> {
        let hit = |m: &Measured| Hit {
            id: m.id,
            distance: reported(self.metric(), m.distance) as f32,
        };
        let mut hits: Vec<Hit> = measured.iter().map(hit).collect();
        hits.sort_unstable_by(Hit::by_distance);
        hits
    }

    /// Whether the vectors at these positions are equal.
    fn all_equal(&self, mut positions: impl Iterator<Item = u32>) -> bool {
        let (mut first, mut other) = (Vec::new(), Vec::new());
        if let Some(position) = positions.next() {
            self.read_at(position, &mut first);
        }
        positions.all(|position| {
            self.read_at(position, &mut other);
            other == first
        })
    }
}

impl<P: Points> DoublePrecision for P {}

/// The reported distance of a distance in double precision.
fn reported(metric: Metric, distance: f64) -> f64 {
    match metric {
        Metric::Cosine => 0.5 * distance * distance,
        Metric::Euclidean | Metric::InnerProduct => distance,
    }
}

/// A vector scaled to unit length.
fn unit(vector: &[f32]) -> impl Iterator<Item = f64> + '_ {
    let length = length(vector);
    vector.iter().map(move |v| f64::from(*v) / length)
}
