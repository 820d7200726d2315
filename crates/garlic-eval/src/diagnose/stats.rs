//! Small statistics: summaries, histograms, groups, rank correlation.

use serde::Serialize;

use crate::metrics::quantile;

/// Numbers that span less than this factor are as easily read on a linear axis.
const NARROW: f64 = 3.0;

/// What some numbers look like; those that are not finite are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// How many finite numbers.
    pub count: usize,
    /// Mean.
    pub mean: f64,
    /// Standard deviation (of the numbers themselves, divided by their count).
    pub deviation: f64,
    /// Smallest.
    pub min: f64,
    /// A tenth of the numbers are at most this.
    pub p10: f64,
    /// Half of the numbers are at most this.
    pub median: f64,
    /// Nine tenths of the numbers are at most this.
    pub p90: f64,
    /// Largest.
    pub max: f64,
}

impl Summary {
    /// Summarises; all zero when there is no finite number.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (values.first(), values.last()) else {
            return Self::default();
        };
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count as f64;
        Self {
            count,
            mean,
            deviation: variance.sqrt(),
            min,
            p10: quantile(&values, 0.1),
            median: quantile(&values, 0.5),
            p90: quantile(&values, 0.9),
            max,
        }
    }
}

/// Counts between edges: one edge more than counts, the last bar includes its upper edge.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Histogram {
    /// Ascending edges.
    pub edges: Vec<f64>,
    /// Numbers between an edge and the next.
    pub counts: Vec<usize>,
    /// Edges in equal ratios instead of equal distances.
    pub log: bool,
}

impl Histogram {
    /// About `bars` bars of equal width; with `log`, of equal ratio when all numbers are positive
    /// and span more than a factor of three.
    pub fn of(values: &[f64], bars: usize, log: bool) -> Self {
        let values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if values.is_empty() {
            return Self::default();
        }
        let log = log && low > 0.0 && high > NARROW * low;
        let there = |v: f64| if log { v.ln() } else { v };
        let back = |v: f64| if log { v.exp() } else { v };
        let (mut a, mut b) = (there(low), there(high));
        // A little room around numbers that are all the same.
        if b - a <= 1e-9 * a.abs().max(1e-9) {
            let room = if log { 0.05 } else { a.abs().max(1.0) * 0.05 };
            (a, b) = (a - room, b + room);
        }
        let bars = bars.max(1);
        let width = (b - a) / bars as f64;
        let mut counts = vec![0; bars];
        for v in values {
            let at = ((there(v) - a) / width)
                .floor()
                .clamp(0.0, bars as f64 - 1.0);
            counts[at as usize] += 1;
        }
        Self {
            edges: (0..=bars).map(|i| back(a + width * i as f64)).collect(),
            counts,
            log,
        }
    }

    /// One bar for every whole number from 0 to the largest, several to a bar when there are more than `bars`.
    pub fn of_counts(values: &[usize], bars: usize) -> Self {
        let Some(&largest) = values.iter().max() else {
            return Self::default();
        };
        let width = (largest + 1).div_ceil(bars.max(1)).max(1);
        let mut counts = vec![0; largest / width + 1];
        for v in values {
            counts[v / width] += 1;
        }
        Self {
            edges: (0..=counts.len()).map(|i| (i * width) as f64).collect(),
            counts,
            log: false,
        }
    }
}

/// Numbers that belong to points of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// The kind, in words.
    pub label: String,
    /// Mean of what the kind is told by.
    pub at: f64,
    /// The numbers.
    pub values: Summary,
}

/// Groups `values` by how often a point is covered: 0, 1, 2, 3-4, 5-8 and so on; groups without points are left out.
pub(super) fn by_count(counts: &[usize], values: &[f64]) -> Vec<Group> {
    let class = |count: usize| match count {
        0 => 0,
        n => (n - 1).checked_ilog2().map_or(1, |l| l as usize + 2),
    };
    let largest = counts.iter().copied().max().unwrap_or(0);
    (0..=class(largest))
        .filter_map(|wanted| {
            let (from, to) = match wanted {
                0 => (0, 0),
                1 => (1, 1),
                c => ((1 << (c - 2)) + 1, 1 << (c - 1)),
            };
            let inside = || {
                let pairs = counts.iter().zip(values);
                pairs.filter(move |(c, _)| (from..=to).contains(*c))
            };
            let values = Summary::of(inside().map(|(_, v)| *v));
            (values.count > 0).then(|| Group {
                label: match from == to {
                    true => from.to_string(),
                    false => format!("{from}-{to}"),
                },
                at: Summary::of(inside().map(|(c, _)| *c as f64)).mean,
                values,
            })
        })
        .collect()
}

/// Cuts points into `parts` of equal number by `keys`, ascending, and summarises the `values` of each.
pub(super) fn by_quantile(keys: &[f64], values: &[f64], parts: usize) -> Vec<Group> {
    let mut order: Vec<usize> = (0..keys.len().min(values.len()))
        .filter(|i| keys[*i].is_finite())
        .collect();
    order.sort_by(|a, b| keys[*a].total_cmp(&keys[*b]).then(a.cmp(b)));
    let parts = parts.clamp(1, order.len().max(1));
    (0..parts)
        .map(|p| &order[p * order.len() / parts..(p + 1) * order.len() / parts])
        .filter(|part| !part.is_empty())
        .enumerate()
        .map(|(p, part)| Group {
            label: format!("part {} of {parts}", p + 1),
            at: Summary::of(part.iter().map(|i| keys[*i])).median,
            values: Summary::of(part.iter().map(|i| values[*i])),
        })
        .collect()
}

/// Spearman's rank correlation; pairs with a number that is not finite are left out. `None` when one side does not vary.
pub(super) fn rank_correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let pairs: Vec<(f64, f64)> = a
        .iter()
        .copied()
        .zip(b.iter().copied())
        .filter(|(a, b)| a.is_finite() && b.is_finite())
        .collect();
    let x = ranks(pairs.iter().map(|p| p.0).collect());
    let y = ranks(pairs.iter().map(|p| p.1).collect());
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        let terms = a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean));
        terms.sum()
    };
    let spread = (product(&x, &x) * product(&y, &y)).sqrt();
    (spread > 0.0).then(|| product(&x, &y) / spread)
}

/// Rank of every value, equal values sharing their mean rank.
fn ranks(values: Vec<f64>) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    for same in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let below = order.partition_point(|i| values[*i] < values[same[0]]);
        let mean = below as f64 + (same.len() as f64 - 1.0) / 2.0;
        same.iter().for_each(|i| ranks[*i] = mean);
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_and_quantiles_of_known_numbers() {
        let s = Summary::of(
            (1..=10)
                .rev()
                .map(f64::from)
                .chain([f64::NAN, f64::INFINITY]),
        );
        assert_eq!((s.count, s.mean, s.min, s.max), (10, 5.5, 1.0, 10.0));
        assert_eq!((s.p10, s.median, s.p90), (1.0, 5.0, 9.0));
        assert!((s.deviation - 8.25_f64.sqrt()).abs() < 1e-12);
        assert_eq!(Summary::of([]), Summary::default());
    }

    #[test]
    fn histograms_lose_nothing() {
        let values: Vec<f64> = (0..100).map(|i| f64::from(i) + 0.5).collect();
        for log in [false, true] {
            let h = Histogram::of(&values, 10, log);
            assert_eq!((h.counts.iter().sum::<usize>(), h.edges.len()), (100, 11));
            assert!(h.edges.is_sorted());
        }
        assert_eq!(Histogram::of(&values, 10, false).counts, [10; 10]);
        let same = Histogram::of(&[3.0; 7], 4, true);
        assert_eq!(same.counts.iter().sum::<usize>(), 7);
        let h = Histogram::of_counts(&[0, 0, 1, 3], 40);
        assert_eq!(
            (h.counts, h.edges),
            (vec![2, 1, 0, 1], vec![0.0, 1.0, 2.0, 3.0, 4.0])
        );
    }

    #[test]
    fn groups_by_count_double_and_skip_what_is_empty() {
        let counts = [0, 1, 2, 3, 4, 8, 5, 0];
        let values = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 6.0, 3.0];
        let groups = by_count(&counts, &values);
        let labels: Vec<&str> = groups.iter().map(|g| g.label.as_str()).collect();
        assert_eq!(labels, ["0", "1", "2", "3-4", "5-8"]);
        let means: Vec<f64> = groups.iter().map(|g| g.values.mean).collect();
        assert_eq!(means, [2.0, 2.0, 3.0, 5.0, 7.0]);
        assert_eq!(groups[4].at, 6.5);
    }

    #[test]
    fn parts_of_equal_number_in_order_of_the_key() {
        let keys = [4.0, 1.0, 3.0, 2.0, f64::INFINITY];
        let values = [40.0, 10.0, 30.0, 20.0, 0.0];
        let parts = by_quantile(&keys, &values, 2);
        assert_eq!(parts.len(), 2);
        assert_eq!((parts[0].values.mean, parts[1].values.mean), (15.0, 35.0));
        assert!(by_quantile(&[], &[], 3).is_empty());
    }

    #[test]
    fn rank_correlation_sees_order_only() {
        let a = [1.0, 2.0, 3.0, 4.0];
        let r = |b: [f64; 4]| rank_correlation(&a, &b);
        assert_eq!(r([1.0, 10.0, 11.0, 1000.0]), Some(1.0));
        assert_eq!(r([5.0, 4.0, 3.0, -9.0]), Some(-1.0));
        assert_eq!(r([1.0; 4]), None);
        // Ties share their rank: 0.5, 0.5, 2, 3 against 0, 1, 2, 3.
        assert!((r([1.0, 1.0, 2.0, 3.0]).unwrap() - 4.5 / 22.5_f64.sqrt()).abs() < 1e-12);
    }
}
