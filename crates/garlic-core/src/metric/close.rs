//! Exact answers where 32 bits are too few: distances in double precision, and a proof or an error.
//!
//! Two things are lost in 32 bits. Squares of very small differences vanish; the vectors are as they were given, so
//! that double precision finds the truth. And vectors of the metric cosine are stored with unit length, rounded: each
//! lies within [`UNIT_ROUNDING`] of the direction that was given, and neighbours whose distances from the query differ
//! by less than three times that cannot be told from others. Where rounding is small beside the distances themselves it is
//! left at that, as everywhere; where vectors are so close together that it is not, such neighbours are no exact answer.

use super::Metric;
use super::distance::length;
use super::report::Points;
use crate::error::{Error, Result};
use crate::query::Hit;
use crate::vectors::StoredType;

/// Distance between a unit vector and the same rounded to 32 bits, at most: every coordinate is wrong by a share of
/// 2^-24 of itself.
const UNIT_ROUNDING: f64 = 1.001 / (1 << 24) as f64;

/// Difference of distances beyond which one point is certainly nearer. Each is wrong by the rounding of its point; where
/// query and point become the same, the distance of 0 is wrong by the rounding of both.
const TOLD_APART: f64 = 3.0 * UNIT_ROUNDING;

/// Distances between unit vectors below which their rounding is more than a ten-thousandth of a squared distance.
const CLOSE: f64 = 2.0 * UNIT_ROUNDING / 1e-4;

/// Distances below which squares of 32 bits lose digits.
pub(super) const SMALL: f64 = 1e-17;

/// A point, and its distance from a query in double precision; for cosines that between unit vectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    distance: f64,
    id: u64,
    position: u32,
}

/// What double precision has found.
#[derive(Debug)]
pub struct Settled {
    /// By (distance, id).
    pub hits: Vec<Hit>,
    /// Where points that belong to the answer cannot be told from others: the distance there.
    pub unproved: Option<f32>,
}

impl Settled {
    /// The hits; an error where they are not proved.
    ///
    /// # Errors
    /// [`Error::TooClose`].
    pub fn proved(self, row: usize) -> Result<Vec<Hit>> {
        match self.unproved {
            None => Ok(self.hits),
            Some(distance) => Err(Error::TooClose { row, distance }),
        }
    }
}

/// What double precision adds to [`Points`].
pub(super) trait Close: Points {
    /// The metric.
    fn metric(&self) -> Metric {
        self.embedding().metric()
    }

    /// Whether points at this distance, as it is reported, take double precision to be told apart.
    fn is_close(&self, distance: f32) -> bool {
        let distance = f64::from(distance);
        match self.metric() {
            Metric::Euclidean => distance < SMALL,
            // In half precision distances are those of the rounded vectors, and meant to be.
            Metric::Cosine => {
                self.element() == StoredType::F32 && distance < reported(Metric::Cosine, CLOSE)
            }
            Metric::InnerProduct => false,
        }
    }

    /// Whether the neighbours of an exact search take double precision to be told from others. `inside` is the query
    /// as the index takes it.
    fn takes_double(&self, inside: &[f32], hits: &[(Hit, u32)]) -> bool {
        let Some((last, _)) = hits.last().filter(|(last, _)| self.is_close(last.distance)) else {
            return false;
        };
        // Nothing is nearer than the query itself, and ids decide between equal ones.
        let mut stored = Vec::new();
        let mut is_query = |position: u32| {
            self.read_at(position, &mut stored);
            stored == inside
        };
        last.distance > 0.0 || !hits.iter().all(|(_, position)| is_query(*position))
    }

    /// The `wanted` nearest, from all vectors that are allowed. `inside` is the query as the index takes it.
    fn nearest_in_double(&self, query: &[f32], inside: &[f32], wanted: usize) -> Settled {
        let all = self.measure(query, inside);
        let (near, others) = all.split_at(wanted.min(all.len()));
        let unproved = match (near.last(), others.first()) {
            (Some(last), Some(next)) if self.metric() == Metric::Cosine => {
                let within = next.distance - TOLD_APART;
                let beyond = last.distance + TOLD_APART;
                let near = near.iter().rev().take_while(|m| m.distance >= within);
                let others = others.iter().take_while(|m| m.distance <= beyond);
                let doubtful = near.chain(others).map(|m| m.position);
                let apart = next.distance > beyond;
                (!apart && !self.all_equal(doubtful)).then_some(last.distance)
            }
            _ => None,
        };
        Settled {
            hits: self.hits(near),
            unproved: unproved.map(|d| reported(self.metric(), d) as f32),
        }
    }

    /// All points that are allowed within a reported distance.
    fn range_in_double(&self, query: &[f32], inside: &[f32], radius: f32) -> Settled {
        let metric = self.metric();
        let all = self.measure(query, inside);
        let count = all.partition_point(|m| reported(metric, m.distance) as f32 <= radius);
        let unproved = metric == Metric::Cosine && {
            let limit = (2.0 * f64::from(radius)).sqrt();
            let doubtful =
                |m: &Measured| m.distance > 0.0 && (m.distance - limit).abs() <= UNIT_ROUNDING;
            all.iter().any(doubtful)
        };
        Settled {
            hits: self.hits(&all[..count]),
            unproved: unproved.then_some(radius),
        }
    }

    /// Every point that is allowed, by (distance, id).
    fn measure(&self, query: &[f32], inside: &[f32]) -> Vec<Measured> {
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
            let distance = match stored == inside {
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

    /// Whether the vectors at these positions are one and the same.
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

impl<P: Points> Close for P {}

/// What a metric reports of a distance in double precision.
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
