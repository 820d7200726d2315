//! How good answers are beyond recall: precision, near misses, and how much farther the returned points are.

use garlic_ann::Hit;
use serde::Serialize;

use crate::metrics::{TOLERANCE, mean, quantile};

/// Returned points that these figures look at, the first ones.
const DEPTH: usize = 10;

/// Means and percentiles over the queries. Precision is of the first ten returned points; everything else is of the nearest
/// one, by its ratio: its distance over that of the true nearest neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quality {
    /// Share of true ten nearest neighbours among the returned points, out of the number returned.
    pub precision_at_10: f64,
    /// Share of queries whose ratio is at most 1.01.
    pub epsilon_recall_1pct: f64,
    /// Share of queries whose ratio is at most 1.1.
    pub epsilon_recall_10pct: f64,
    /// Ratio that 95 % of the queries do not exceed; null when that is without bound.
    pub r95: Option<f64>,
    /// The same for 99 %.
    pub r99: Option<f64>,
    /// Mean ratio less one, of the queries that have one; null when none has.
    pub relative_error: Option<f64>,
}

/// What one query adds to a [`Quality`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    precision: f64,
    /// Infinite without an answer, and for an answer that is away from a neighbour at distance 0.
    ratio: f64,
}

impl Sample {
    /// Compares the answer to a query with its true distances, which ascend.
    ///
    /// Only distances that are not negative have ratios: inner products give ratios of what they are.
    pub(crate) fn new(hits: &[Hit], truth: &[f32]) -> Self {
        let truth = &truth[..truth.len().min(DEPTH)];
        let hits = &hits[..hits.len().min(truth.len())];
        let last = truth.last().copied().map_or(0.0, f64::from);
        let limit = last + TOLERANCE * last.abs();
        let right = hits.iter().filter(|h| f64::from(h.distance) <= limit);
        let first = hits.first().zip(truth.first());
        let ratio =
            first.map(
                |(hit, nearest)| match (f64::from(hit.distance), f64::from(*nearest)) {
                    (d, t) if d == t => 1.0,
                    (_, 0.0) => f64::INFINITY,
                    (d, t) => d / t,
                },
            );
        Self {
            precision: right.count() as f64 / hits.len().max(1) as f64,
            ratio: ratio.unwrap_or(f64::INFINITY),
        }
    }
}

impl Quality {
    /// Sums up, in the order of the queries.
    pub(crate) fn of(samples: &[Sample]) -> Self {
        let mut ratios: Vec<f64> = samples.iter().map(|s| s.ratio).collect();
        let within = |most: f64| mean(ratios.iter().map(|r| f64::from(u8::from(*r <= most))));
        let near = [0.01, 0.1].map(|epsilon| within((1.0 + epsilon) * (1.0 + TOLERANCE)));
        let errors: Vec<f64> = ratios
            .iter()
            .filter(|r| r.is_finite())
            .map(|r| r - 1.0)
            .collect();
        ratios.sort_by(f64::total_cmp);
        let percentile = |q| Some(quantile(&ratios, q)).filter(|r| r.is_finite());
        Self {
            precision_at_10: mean(samples.iter().map(|s| s.precision)),
            epsilon_recall_1pct: near[0],
            epsilon_recall_10pct: near[1],
            r95: percentile(0.95),
            r99: percentile(0.99),
            relative_error: (!errors.is_empty()).then(|| mean(errors)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(distances: &[f32]) -> Vec<Hit> {
        let hit = |(id, &distance)| Hit {
            id: id as u64,
            distance,
        };
        distances.iter().enumerate().map(hit).collect()
    }

    #[test]
    fn perfect_answers_are_perfect() {
        let truth: Vec<f32> = (1..=20).map(|i| i as f32).collect();
        let quality = Quality::of(&[Sample::new(&hits(&truth), &truth)]);
        let wanted = Quality {
            precision_at_10: 1.0,
            epsilon_recall_1pct: 1.0,
            epsilon_recall_10pct: 1.0,
            r95: Some(1.0),
            r99: Some(1.0),
            relative_error: Some(0.0),
        };
        assert_eq!(quality, wanted);
    }

    #[test]
    fn near_misses_of_the_nearest_count_as_near() {
        // The nearest neighbour is at 2; it is found, missed by 0.5 %, by 5 % and by 50 %.
        let truth = [2.0, 4.0];
        let samples = [2.0, 2.01, 2.1, 3.0].map(|first| Sample::new(&hits(&[first, 9.0]), &truth));
        let quality = Quality::of(&samples);
        assert_eq!(quality.epsilon_recall_1pct, 0.5);
        assert_eq!(quality.epsilon_recall_10pct, 0.75);
        assert!((quality.relative_error.unwrap() - 0.555 / 4.0).abs() < 1e-6);
        // Every first answer is no farther than the true second neighbour, and no second one is.
        assert_eq!(quality.precision_at_10, 0.5);
    }

    #[test]
    fn precision_is_out_of_what_was_returned() {
        let truth: Vec<f32> = (1..=10).map(|i| i as f32).collect();
        let sample = Sample::new(&hits(&[1.0, 11.0]), &truth);
        assert_eq!((sample.precision, sample.ratio), (0.5, 1.0));
        let nothing = Sample::new(&[], &truth);
        assert_eq!((nothing.precision, nothing.ratio), (0.0, f64::INFINITY));
        assert_eq!(Quality::of(&[nothing]).relative_error, None);
    }

    #[test]
    fn distances_of_zero_have_no_ratio() {
        let truth = [0.0, 1.0];
        let found = Sample::new(&hits(&[0.0, 1.0]), &truth);
        assert_eq!(found.ratio, 1.0);
        let missed = Sample::new(&hits(&[1.0, 2.0]), &truth);
        assert_eq!(missed.ratio, f64::INFINITY);
        assert_eq!(Quality::of(&[found, missed]).relative_error, Some(0.0));
    }

    #[test]
    fn percentiles_are_by_nearest_rank_and_null_without_bound() {
        let truth = [1.0];
        let mut samples = vec![Sample::new(&hits(&[1.0]), &truth); 95];
        samples.extend([Sample::new(&hits(&[1.5]), &truth); 4]);
        samples.push(Sample::new(&[], &truth));
        let quality = Quality::of(&samples);
        assert_eq!((quality.r95, quality.r99), (Some(1.0), Some(1.5)));
        samples.push(Sample::new(&[], &truth));
        assert_eq!(Quality::of(&samples).r99, None);
        assert_eq!(Quality::of(&[]).relative_error, None);
    }
}
