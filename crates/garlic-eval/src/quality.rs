//! How good answers are beyond recall: precision, near misses, and how much farther the returned points are.

use garlic_ann::Hit;
use serde::Serialize;

use crate::metrics::{TOLERANCE, mean, quantile};

/// Returned points that these figures look at, the first ones.
const DEPTH: usize = 10;

/// Means and percentiles over the queries, of the first ten returned points.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quality {
    /// Share of true ten nearest neighbours among the returned points, out of the number returned.
    pub precision_at_10: f64,
    /// Share of returned points no farther than 1.01 times the true tenth distance, out of ten.
    pub epsilon_recall_1pct: f64,
    /// Share of returned points no farther than 1.1 times the true tenth distance, out of ten.
    pub epsilon_recall_10pct: f64,
    /// Nearest returned distance over true nearest distance that 95 % of the queries do not exceed; null when that
    /// is without bound.
    pub r95: Option<f64>,
    /// The same for 99 %.
    pub r99: Option<f64>,
    /// Mean of returned distance over true distance of the same rank, less one; null when no query has such a rank.
    pub relative_error: Option<f64>,
}

/// What one query adds to a [`Quality`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    precision: f64,
    near: [f64; 2],
    ratio: f64,
    error: Option<f64>,
}

impl Sample {
    /// Compares the answer to a query with its true distances, which ascend.
    ///
    /// Only distances that are not negative have ratios: inner products give ratios of what they are.
    pub(crate) fn new(hits: &[Hit], truth: &[f32]) -> Self {
        let truth = &truth[..truth.len().min(DEPTH)];
        let hits = &hits[..hits.len().min(truth.len())];
        let last = truth.last().copied().map_or(0.0, f64::from);
        let within = |more: f64| {
            let limit = last + more * last.abs();
            let near = hits.iter().filter(|h| f64::from(h.distance) <= limit);
            near.count() as f64
        };
        let share = |count: f64, of: usize| if of == 0 { 0.0 } else { count / of as f64 };
        let excess = |hit: &Hit, truth: f32| match (f64::from(hit.distance), f64::from(truth)) {
            (d, t) if d == t => Some(0.0),
            (_, 0.0) => None,
            (d, t) => Some(d / t - 1.0),
        };
        let errors: Vec<f64> = hits
            .iter()
            .zip(truth)
            .filter_map(|(hit, &t)| excess(hit, t))
            .collect();
        let first = hits.first().zip(truth.first());
        Self {
            precision: share(within(TOLERANCE), hits.len()),
            near: [0.01, 0.1].map(|more| share(within(more), truth.len())),
            ratio: first
                .and_then(|(hit, &t)| excess(hit, t))
                .map_or(f64::INFINITY, |e| 1.0 + e),
            error: (!errors.is_empty()).then(|| mean(errors)),
        }
    }
}

impl Quality {
    /// Sums up, in the order of the queries.
    pub(crate) fn of(samples: &[Sample]) -> Self {
        let mut ratios: Vec<f64> = samples.iter().map(|s| s.ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let percentile = |q| Some(quantile(&ratios, q)).filter(|r| r.is_finite());
        let errors: Vec<f64> = samples.iter().filter_map(|s| s.error).collect();
        Self {
            precision_at_10: mean(samples.iter().map(|s| s.precision)),
            epsilon_recall_1pct: mean(samples.iter().map(|s| s.near[0])),
            epsilon_recall_10pct: mean(samples.iter().map(|s| s.near[1])),
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
    fn near_misses_count_as_near() {
        let truth = [1.0, 2.0];
        // The second point is 5 % too far: no true neighbour, not within 1 %, within 10 %.
        let sample = Sample::new(&hits(&[1.0, 2.1]), &truth);
        assert_eq!((sample.precision, sample.near), (0.5, [0.5, 1.0]));
        assert_eq!(sample.ratio, 1.0);
        assert!((sample.error.unwrap() - 0.025).abs() < 1e-6);
    }

    #[test]
    fn precision_is_out_of_what_was_returned() {
        let truth: Vec<f32> = (1..=10).map(|i| i as f32).collect();
        let sample = Sample::new(&hits(&[1.0, 11.0]), &truth);
        assert_eq!((sample.precision, sample.near), (0.5, [0.1, 0.2]));
        // Rank two: 11 instead of 2.
        assert!((sample.error.unwrap() - 2.25).abs() < 1e-12);
        let nothing = Sample::new(&[], &truth);
        assert_eq!((nothing.precision, nothing.ratio), (0.0, f64::INFINITY));
        assert_eq!(nothing.error, None);
    }

    #[test]
    fn distances_of_zero_have_no_ratio() {
        let truth = [0.0, 1.0];
        let found = Sample::new(&hits(&[0.0, 1.0]), &truth);
        assert_eq!((found.ratio, found.error), (1.0, Some(0.0)));
        let missed = Sample::new(&hits(&[1.0, 2.0]), &truth);
        assert_eq!((missed.ratio, missed.error), (f64::INFINITY, Some(1.0)));
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
