//! What the numbers mean: recall, averages of work, quantiles of time.

use garlic_ann::{Hit, SearchStats};
use serde::Serialize;

/// Relative slack of the true k-th distance, so that rounding does not decide what counts as found.
pub const TOLERANCE: f64 = 1e-6;

/// Recall@k of one query: the share of the first `k` returned points whose distance is at most the true k-th
/// distance, out of `k`.
///
/// `truth` holds the query's true distances in ascending order. Points at the same distance as the true k-th
/// count, whichever of them was returned. When fewer than `k` points exist `truth` is that much shorter, and
/// the share is out of their number. Nothing to find counts as found.
pub fn recall(hits: &[Hit], truth: &[f32], k: usize) -> f64 {
    let k = k.min(truth.len());
    let Some(last) = k.checked_sub(1) else {
        return 1.0;
    };
    let limit = f64::from(truth[last]);
    // Inner products are reported with a minus.
    let limit = limit + TOLERANCE * limit.abs();
    let found = hits
        .iter()
        .take(k)
        .filter(|h| f64::from(h.distance) <= limit)
        .count();
    found as f64 / k as f64
}

/// Mean of `values` in their order; 0 for none.
pub fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, n) = values
        .into_iter()
        .fold((0.0, 0_usize), |(s, n), v| (s + v, n + 1));
    if n == 0 { 0.0 } else { sum / n as f64 }
}

/// The `q`-quantile by nearest rank: the smallest value that at least a share `q` of the values do not exceed.
/// `sorted` is in ascending order; 0 for none.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    if sorted.is_empty() {
        return 0.0;
    }
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// Where the work of an average query went. The first six are in distance equivalents and add up to
/// [`Row::distance_equivalents`](crate::Row::distance_equivalents).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WorkMeans {
    /// Normalising and rotating the query.
    pub rotation: f64,
    /// Choosing the cells.
    pub routing: f64,
    /// Projecting into frames.
    pub projection: f64,
    /// Ordering bins.
    pub ordering: f64,
    /// Estimating distances from codes.
    pub code: f64,
    /// Exact distances.
    pub exact: f64,
    /// Number of cells projected into.
    pub cells_projected: f64,
    /// Number of bins ordered.
    pub bins_ordered: f64,
    /// Number of points whose distance was estimated from their code.
    pub codes: f64,
}

impl WorkMeans {
    /// Averages a sum over `queries` queries in dimension `dim`.
    pub fn new(sum: &SearchStats, queries: usize, dim: usize) -> Self {
        let queries = queries.max(1) as f64;
        let equivalents = |madds: u64| madds as f64 / dim.max(1) as f64 / queries;
        Self {
            rotation: equivalents(sum.rotation_madds),
            routing: equivalents(sum.routing_madds),
            projection: equivalents(sum.projection_madds),
            ordering: equivalents(sum.ordering_madds),
            code: equivalents(sum.code_madds),
            exact: equivalents(sum.exact_madds),
            cells_projected: sum.cells_projected as f64 / queries,
            bins_ordered: sum.bins_ordered as f64 / queries,
            codes: sum.codes as f64 / queries,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(distances: &[f32]) -> Vec<Hit> {
        distances
            .iter()
            .enumerate()
            .map(|(id, &distance)| Hit {
                id: id as u64,
                distance,
            })
            .collect()
    }

    #[test]
    fn recall_counts_distances_not_identifiers() {
        let truth = [1.0, 2.0, 3.0];
        assert_eq!(recall(&hits(&[1.0, 2.0, 3.0]), &truth, 3), 1.0);
        assert_eq!(recall(&hits(&[1.0, 3.0, 4.0]), &truth, 3), 2.0 / 3.0);
        assert_eq!(recall(&hits(&[2.0, 3.0, 4.0]), &truth, 1), 0.0);
        assert_eq!(recall(&hits(&[]), &truth, 2), 0.0);
    }

    #[test]
    fn ties_count_and_never_exceed_one() {
        // Three points share the true second distance: any of them is a right second neighbour.
        let truth = [1.0, 2.0];
        assert_eq!(recall(&hits(&[2.0, 2.0]), &truth, 2), 1.0);
        assert_eq!(recall(&hits(&[1.0, 2.0, 2.0, 2.0]), &truth, 2), 1.0);
        // A query that is a point of the data set.
        assert_eq!(recall(&hits(&[0.0]), &[0.0], 1), 1.0);
        assert_eq!(recall(&hits(&[1e-9]), &[0.0], 1), 0.0);
    }

    #[test]
    fn the_tolerance_is_relative_and_small() {
        assert_eq!(recall(&hits(&[1000.0001]), &[1000.0], 1), 1.0);
        assert_eq!(recall(&hits(&[1000.01]), &[1000.0], 1), 0.0);
    }

    #[test]
    fn negative_distances_have_the_same_tolerance() {
        assert_eq!(recall(&hits(&[-999.9999]), &[-1000.0], 1), 1.0);
        assert_eq!(recall(&hits(&[-1000.0001]), &[-1000.0], 1), 1.0);
        assert_eq!(recall(&hits(&[-999.99]), &[-1000.0], 1), 0.0);
    }

    #[test]
    fn fewer_points_than_k_are_all_there_is_to_find() {
        let truth = [1.0, 2.0];
        assert_eq!(recall(&hits(&[1.0, 2.0]), &truth, 10), 1.0);
        assert_eq!(recall(&hits(&[2.0]), &truth, 10), 0.5);
        assert_eq!(recall(&hits(&[]), &[], 10), 1.0);
    }

    #[test]
    fn only_the_first_k_hits_count() {
        // k = 1 of a search for three: the first one is wrong, the rest do not help.
        assert_eq!(recall(&hits(&[5.0, 1.0, 1.0]), &[1.0, 1.0, 5.0], 1), 0.0);
    }

    #[test]
    fn quantiles_by_nearest_rank() {
        let v: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(
            (quantile(&v, 0.5), quantile(&v, 0.99), quantile(&v, 1.0)),
            (50.0, 99.0, 100.0)
        );
        assert_eq!((quantile(&v[..1], 0.99), quantile(&[], 0.5)), (1.0, 0.0));
    }

    #[test]
    fn parts_of_the_work_add_up() {
        let mut sum = SearchStats::default();
        sum.rotation_madds = 8;
        sum.routing_madds = 16;
        sum.projection_madds = 24;
        sum.ordering_madds = 4;
        sum.codes = 6;
        sum.code_madds = 48;
        sum.exact_madds = 80;
        let m = WorkMeans::new(&sum, 2, 8);
        let parts = m.rotation + m.routing + m.projection + m.ordering + m.code + m.exact;
        assert!((parts - sum.distance_equivalents(8) / 2.0).abs() < 1e-12);
        assert_eq!((m.exact, m.code, m.codes), (5.0, 3.0, 3.0));
    }
}
