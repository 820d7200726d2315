//! Brute force, and what share of its answers a search finds.

use std::collections::BTreeMap;

use garlic_ann::{Answer, Index, Metric, Rows, Search};

/// What an index should hold: vectors by identifier.
pub(crate) type Model = BTreeMap<u64, Vec<f32>>;

/// The model of an index of these vectors, numbered from `first` on.
pub(crate) fn model(first: u64, rows: Rows<'_>) -> Model {
    (first..).zip(rows.iter().map(<[f32]>::to_vec)).collect()
}

/// A distance and an identifier, as answers are compared.
pub(crate) type Pair = (f32, u64);

/// The hits of an answer.
pub(crate) fn pairs(answer: &Answer) -> Vec<Pair> {
    answer.hits.iter().map(|h| (h.distance, h.id)).collect()
}

/// All points by (Euclidean distance, identifier), computed as the index computes it: answers can be compared bit by bit.
pub(crate) fn ordered<'a>(
    points: impl Iterator<Item = (u64, &'a [f32])>,
    query: &[f32],
) -> Vec<Pair> {
    let mut all: Vec<Pair> = points
        .map(|(id, v)| (garlic_simd::l2_squared(query, v).sqrt(), id))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all
}

/// The `k` nearest of those points of a model that are allowed.
pub(crate) fn nearest(
    model: &Model,
    query: &[f32],
    k: usize,
    allows: impl Fn(u64) -> bool,
) -> Vec<Pair> {
    let allowed = model.iter().filter(|(id, _)| allows(**id));
    let mut all = ordered(allowed.map(|(id, v)| (*id, &v[..])), query);
    all.truncate(k);
    all
}

/// The `k` nearest of rows that are numbered from 0 on.
pub(crate) fn nearest_rows(rows: Rows<'_>, query: &[f32], k: usize) -> Vec<Pair> {
    let mut all = ordered((0..).zip(rows.iter()), query);
    all.truncate(k);
    all
}

/// The distance as the metric defines it, in double precision.
pub(crate) fn distance(metric: Metric, a: &[f32], b: &[f32]) -> f64 {
    let sum = |term: &dyn Fn(f64, f64) -> f64| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(x, y)| term(f64::from(*x), f64::from(*y))).sum()
    };
    match metric {
        Metric::Euclidean => sum(&|x, y| (x - y).powi(2)).sqrt(),
        // Half the squared difference of unit vectors loses no digits where the angle is small.
        Metric::Cosine => {
            let (la, lb) = (sum(&|x, _| x * x).sqrt(), sum(&|_, y| y * y).sqrt());
            0.5 * sum(&|x, y| (x / la - y / lb).powi(2))
        }
        Metric::InnerProduct => -sum(&|x, y| x * y),
    }
}

/// All rows by (distance, number).
pub(crate) fn ordered_by(metric: Metric, rows: Rows<'_>, query: &[f32]) -> Vec<(f64, u64)> {
    let distances = rows.iter().map(|row| distance(metric, row, query));
    let mut all: Vec<(f64, u64)> = distances.zip(0..).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all
}

/// The share of the true neighbours that each of many queries found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recall(pub(crate) Vec<f64>);

impl Recall {
    /// Of searches for `k` neighbours, the farthest of which is `radius` away. A hit as near as that counts, whichever of
    /// several that are equally near it is.
    pub(crate) fn of(
        index: &Index,
        queries: Rows<'_>,
        search: &Search,
        radius: impl Fn(&[f32]) -> f64,
    ) -> Self {
        let share = |query: &[f32]| {
            let answer = index.search(query, search).unwrap();
            assert_eq!(answer.hits.len(), search.k());
            let limit = radius(query);
            let limit = limit + 1e-6 * limit.abs();
            let near = answer.hits.iter().map(|h| f64::from(h.distance));
            near.filter(|d| *d <= limit).count() as f64 / search.k() as f64
        };
        Self(queries.iter().map(share).collect())
    }

    /// Of searches of an index of these rows, by Euclidean distance.
    pub(crate) fn of_rows(
        index: &Index,
        base: Rows<'_>,
        queries: Rows<'_>,
        search: &Search,
    ) -> Self {
        let farthest = |query: &[f32]| {
            let mut all: Vec<f32> = base
                .iter()
                .map(|row| garlic_simd::l2_squared(query, row).sqrt())
                .collect();
            let (_, kth, _) = all.select_nth_unstable_by(search.k() - 1, f32::total_cmp);
            f64::from(*kth)
        };
        Self::of(index, queries, search, farthest)
    }

    /// The mean over the queries.
    pub(crate) fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// The standard error of the mean.
    pub(crate) fn error(&self) -> f64 {
        let (mean, count) = (self.mean(), self.0.len() as f64);
        let squares: f64 = self.0.iter().map(|share| (share - mean).powi(2)).sum();
        (squares / (count - 1.0) / count).sqrt()
    }

    /// Fails unless the mean is the target or more, as far as so many queries can tell: an index that meets its target
    /// exactly fails by chance in one of 160 cases.
    #[track_caller]
    pub(crate) fn assert_meets(&self, target: f64, what: &str) {
        let (mean, error) = (self.mean(), self.error());
        assert!(
            mean + 2.5 * error >= target,
            "{what}: asked for {target}, got {mean:.4} with a standard error of {error:.4}"
        );
    }
}
