//! The true neighbours by brute force, and the share of them that an answer holds.

use std::thread;

use garlic_ann::{Answer, Metric};
use garlic_linalg::Rows;

/// Relative difference of two distances that count as equal.
const EQUAL: f64 = 1e-6;
/// Unit vectors are stored as 32-bit numbers: a coordinate is off by at most this share of it.
const UNIT_ROUNDING: f64 = 1.0 / (1 << 24) as f64;

/// A mean over queries and how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Mean over the queries.
    pub mean: f64,
    /// Standard error of the mean; 0 when all queries measured the same.
    pub standard_error: f64,
}

impl Estimate {
    /// The mean of these values.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let standard_error = (squares / (n - 1.0).max(1.0) / n).sqrt();
        Self {
            mean,
            standard_error,
        }
    }
}

/// True distances of queries to some of the rows of a data set.
#[derive(Debug)]
pub struct Reference<'a> {
    metric: Metric,
    points: Rows<'a>,
    queries: Rows<'a>,
    /// Whether each row is among the points that are searched.
    living: Vec<bool>,
    /// One over the length of each row; empty unless the metric is the cosine.
    inverse_lengths: Vec<f64>,
    /// The smallest distances of each query, ascending.
    nearest: Vec<Vec<f64>>,
}

impl<'a> Reference<'a> {
    /// Finds the `k` smallest distances of every query to the rows that `living` names, on `threads` threads.
    ///
    /// An answer's identifiers are numbers of rows.
    pub fn new(
        metric: Metric,
        points: Rows<'a>,
        living: impl Fn(usize) -> bool,
        queries: Rows<'a>,
        k: usize,
        threads: usize,
    ) -> Self {
        let inverse_lengths = match metric {
            Metric::Cosine => points.iter().map(inverse_length).collect(),
            Metric::Euclidean | Metric::InnerProduct => Vec::new(),
        };
        let mut reference = Self {
            metric,
            points,
            queries,
            living: (0..points.len()).map(living).collect(),
            inverse_lengths,
            nearest: Vec::new(),
        };
        let share = queries.len().div_ceil(threads.max(1)).max(1);
        let numbers: Vec<usize> = (0..queries.len()).collect();
        reference.nearest = thread::scope(|scope| {
            let work = |part: &[usize]| -> Vec<Vec<f64>> {
                part.iter().map(|q| reference.nearest(*q, k)).collect()
            };
            let parts = numbers.chunks(share);
            let handles: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
            let join = |handle: thread::ScopedJoinHandle<'_, Vec<Vec<f64>>>| {
                let joined = handle.join();
                joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            handles.into_iter().flat_map(join).collect()
        });
        reference
    }

    /// The distance of a query to a row as the metric defines it.
    pub fn distance(&self, query: usize, row: usize) -> f64 {
        let (a, b) = (self.queries.row(query), self.points.row(row));
        match self.metric {
            Metric::Euclidean => sum(a, b, |x, y| (x - y) * (x - y)).sqrt(),
            // Half the squared distance of unit vectors keeps the digits that one less the cosine loses.
            Metric::Cosine => {
                let (p, q) = (inverse_length(a), self.inverse_lengths[row]);
                0.5 * sum(a, b, |x, y| (x * p - y * q) * (x * p - y * q))
            }
            Metric::InnerProduct => -sum(a, b, |x, y| x * y),
        }
    }

    /// Recall at `k` of each answer: the share of `k`, or of all points where there are fewer, that lie at most
    /// as far away as the true k-th neighbour.
    ///
    /// # Panics
    /// When there are fewer queries than answers, or `k` is larger than what the reference was made for.
    pub fn recalls(&self, answers: &[Answer], k: usize) -> Vec<f64> {
        let wanted = k.min(self.living.iter().filter(|l| **l).count());
        if wanted == 0 {
            return vec![1.0; answers.len()];
        }
        let recall = |(query, answer): (usize, &Answer)| {
            let limit = self.limit(self.nearest[query][wanted - 1]);
            let mut rows: Vec<usize> = answer.hits.iter().map(|hit| hit.id as usize).collect();
            rows.sort_unstable();
            rows.dedup();
            let is_living = |row: &usize| self.living.get(*row) == Some(&true);
            let found = rows.into_iter().filter(is_living);
            let found = found.filter(|row| self.distance(query, *row) <= limit);
            found.count().min(wanted) as f64 / wanted as f64
        };
        answers.iter().enumerate().map(recall).collect()
    }

    /// The largest distance that counts as the k-th one.
    fn limit(&self, kth: f64) -> f64 {
        let relative = kth + EQUAL * kth.abs();
        match self.metric {
            Metric::Euclidean | Metric::InnerProduct => relative + f64::MIN_POSITIVE,
            // Rounding moves both ends of the difference of two unit vectors; what it does to half its square.
            Metric::Cosine => {
                let moved = 2.0 * UNIT_ROUNDING;
                relative + moved * (2.0 * kth).sqrt() + 0.5 * moved * moved
            }
        }
    }

    fn nearest(&self, query: usize, k: usize) -> Vec<f64> {
        let living = (0..self.points.len()).filter(|row| self.living[*row]);
        let mut all: Vec<f64> = living.map(|row| self.distance(query, row)).collect();
        if k < all.len() {
            all.select_nth_unstable_by(k, f64::total_cmp);
            all.truncate(k);
        }
        all.sort_unstable_by(f64::total_cmp);
        all
    }
}

fn inverse_length(row: &[f32]) -> f64 {
    let length = sum(row, row, |x, y| x * y).sqrt();
    if length > 0.0 { 1.0 / length } else { 0.0 }
}

/// The sum of `term` over the coordinates, in eight partial sums that a compiler keeps in registers.
fn sum(a: &[f32], b: &[f32], term: impl Fn(f64, f64) -> f64) -> f64 {
    let mut sums = [0.0; 8];
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest = a.remainder().iter().zip(b.remainder());
    let rest: f64 = rest.map(|(x, y)| term((*x).into(), (*y).into())).sum();
    for (a, b) in a.zip(b) {
        for ((s, x), y) in sums.iter_mut().zip(a).zip(b) {
            *s += term((*x).into(), (*y).into());
        }
    }
    rest + sums.iter().sum::<f64>()
}

#[cfg(test)]
mod tests {
    use garlic_ann::Hit;

    use super::*;

    fn answer(ids: &[u64]) -> Answer {
        let hits = ids.iter().map(|id| Hit {
            id: *id,
            distance: 0.0,
        });
        Answer::new(hits.collect(), Default::default(), false)
    }

    /// Recall at `k` of one answer to the query (1, 0).
    fn recall(metric: Metric, points: &[f32], dead: &[usize], ids: &[u64], k: usize) -> f64 {
        let (points, query) = (Rows::new(points, 2).unwrap(), [1.0, 0.0]);
        let queries = Rows::new(&query, 2).unwrap();
        let living = |row: usize| !dead.contains(&row);
        let reference = Reference::new(metric, points, living, queries, k, 2);
        reference.recalls(&[answer(ids)], k)[0]
    }

    #[test]
    fn recall_is_the_share_of_points_that_are_near_enough() {
        let points = [1.0, 0.0, 1.0, 1.0, 1.0, -1.0, 1.0, 2.0, 9.0, 9.0];
        let at = |ids: &[u64], k| recall(Metric::Euclidean, &points, &[], ids, k);
        assert_eq!(at(&[0, 1], 2), 1.0);
        assert_eq!(at(&[0, 2], 2), 1.0, "a tie is as good");
        assert_eq!(at(&[0, 3], 2), 0.5);
        assert_eq!(at(&[0], 2), 0.5, "too few");
        assert_eq!(at(&[0, 0], 2), 0.5, "one point twice");
        assert_eq!(at(&[0, 77], 2), 0.5, "no point at all");
        assert_eq!(at(&[0, 1, 2, 3, 4], 10), 1.0, "there are no more");
    }

    #[test]
    fn removed_points_are_neither_wanted_nor_found() {
        let points = [1.0, 0.0, 1.0, 1.0, 1.0, 2.0];
        let at = |ids: &[u64]| recall(Metric::Euclidean, &points, &[0], ids, 1);
        assert_eq!(at(&[1]), 1.0);
        assert_eq!(at(&[0]), 0.0);
    }

    #[test]
    fn every_metric_has_its_own_nearest() {
        let points = [1.0, 0.1, 50.0, 20.0, 7.0, 0.0];
        let at = |metric, id| recall(metric, &points, &[], &[id], 1);
        assert_eq!(at(Metric::Euclidean, 0), 1.0);
        assert_eq!(at(Metric::InnerProduct, 1), 1.0);
        assert_eq!(at(Metric::Cosine, 2), 1.0);
        assert_eq!(at(Metric::Cosine, 0), 0.0);
        let negative = [-1.0, 0.0, -2.0, 0.0];
        assert_eq!(recall(Metric::InnerProduct, &negative, &[], &[0], 1), 1.0);
        assert_eq!(recall(Metric::InnerProduct, &negative, &[], &[1], 1), 0.0);
    }

    #[test]
    fn estimates_carry_the_error_of_the_mean() {
        let same = Estimate::of(&[0.9; 10]);
        assert!((same.mean - 0.9).abs() < 1e-12 && same.standard_error < 1e-12);
        let mixed = Estimate::of(&[0.0, 1.0, 0.0, 1.0]);
        assert_eq!(mixed.mean, 0.5);
        assert!((mixed.standard_error - (1.0f64 / 3.0 / 4.0).sqrt()).abs() < 1e-12);
        assert_eq!(Estimate::of(&[0.5]).standard_error, 0.0);
    }
}
