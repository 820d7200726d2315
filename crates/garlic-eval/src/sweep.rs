//! Measuring many settings and finding those worth having.

mod shared;

use garlic_linalg::Rows;

use crate::error::{Error, Result};
use crate::evaluate::{Options, Row, check, evaluate};
use crate::target::{Params, Target};
use crate::truth::Truth;

/// The settings of a sweep: every number of probes with every share of bins and every number of exact distances.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Numbers of cells to visit.
    pub probes: Vec<usize>,
    /// Shares of bins to scan; ignored by methods without bins.
    pub bins: Vec<f64>,
    /// Numbers of exact distances; ignored by methods without codes. None leaves it to the method.
    pub rerank: Vec<usize>,
}

impl Default for Grid {
    fn default() -> Self {
        Self {
            probes: vec![1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32],
            bins: vec![0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.7, 1.0],
            rerank: Vec::new(),
        }
    }
}

impl Grid {
    /// The grid that suits `target` in a search for `k` neighbours.
    pub fn of(target: &dyn Target, k: usize) -> Self {
        if !target.has_rerank() {
            return Self::default();
        }
        let probes = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64];
        Self {
            // The last one visits all cells where there are fewer than 64.
            probes: probes.map(|p: usize| p.min(target.cells().max(1))).into(),
            bins: vec![0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 1.0],
            rerank: [1, 2, 4, 8, 16, 32].map(|times| times * k).into(),
        }
    }

    /// The settings for `target`, ordered by probes, then bins, then exact distances.
    ///
    /// More probes than cells mean all cells, so only the smallest such number is kept.
    pub fn settings(&self, target: &dyn Target, k: usize) -> Vec<Params> {
        let mut probes = self.probes.clone();
        probes.sort_unstable();
        probes.dedup();
        let covers_all = probes.iter().position(|&p| p >= target.cells());
        probes.truncate(covers_all.map_or(probes.len(), |i| i + 1));
        let mut bins = self.bins.clone();
        bins.sort_by(f64::total_cmp);
        bins.dedup();
        let probes: Vec<Option<usize>> = match target.cells() {
            0 => vec![None],
            _ => probes.into_iter().map(Some).collect(),
        };
        let bins: Vec<Option<f64>> = match target.has_bins() {
            false => vec![None],
            true => bins.into_iter().map(Some).collect(),
        };
        let mut rerank = self.rerank.clone();
        rerank.sort_unstable();
        rerank.dedup();
        let rerank: Vec<Option<usize>> = match target.has_rerank() && !rerank.is_empty() {
            false => vec![None],
            true => rerank.into_iter().map(Some).collect(),
        };
        let mut settings = Vec::with_capacity(probes.len() * bins.len() * rerank.len());
        for &probes in &probes {
            for &bins in &bins {
                settings.extend(rerank.iter().map(|&rerank| Params {
                    probes,
                    bins,
                    rerank,
                    ..Params::new(k)
                }));
            }
        }
        settings
    }
}

/// Measures every setting of `grid` and marks the fronts. `progress` hears (done, total) after each setting.
///
/// Where the method can answer many settings at once, recall and work of all queries are taken that way and
/// only [`Options::timed`] queries are run setting by setting, for the clock. The figures are the same.
///
/// A method with codes has too many settings for that: all of them are measured on the first [`Options::timed`]
/// queries, and those on a front again on all queries; [`Row::queries`] tells which. Only the latter are marked.
pub fn sweep(
    target: &dyn Target,
    queries: Rows<'_>,
    truth: &Truth,
    k: usize,
    grid: &Grid,
    options: &Options,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<Row>> {
    let settings = grid.settings(target, k);
    if settings.is_empty() {
        return Err(Error::Parameter {
            name: "grid",
            value: "empty".to_owned(),
            rule: "give at least one number of probes and one share of bins",
        });
    }
    check(target, queries, truth, &settings[0], options)?;
    if target.has_rerank() {
        return sweep_codes(target, queries, truth, &settings, options, progress);
    }
    let shared = if queries.len() > options.timed && settings.len() > 1 {
        shared::figures(target, queries, truth, &settings, options.threads)?
    } else {
        None
    };
    let few: Vec<u32> = (0..queries.len().min(options.timed.max(1)) as u32).collect();
    let few_truth = truth.select(&few);
    let mut rows = Vec::with_capacity(settings.len());
    for (i, params) in settings.iter().enumerate() {
        rows.push(match &shared {
            None => evaluate(target, queries, truth, params, options)?,
            Some(figures) => {
                let timed = queries.slice(0..few.len());
                let mut row = evaluate(target, timed, &few_truth, params, options)?;
                figures[i].put(&mut row, queries.len(), target.dim());
                row
            }
        });
        progress(i + 1, settings.len());
    }
    mark_fronts(&mut rows);
    Ok(rows)
}

/// All settings on a few queries, those on a front on all queries.
fn sweep_codes(
    target: &dyn Target,
    queries: Rows<'_>,
    truth: &Truth,
    settings: &[Params],
    options: &Options,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<Row>> {
    // What a setting has to reach is k-recall@k: recall@1 is perfect long before.
    let gain = |r: &Row| r.recall_at_k.unwrap_or(r.recall_at_1);
    let few: Vec<u32> = (0..queries.len().min(options.timed.max(1)) as u32).collect();
    let (few_queries, few_truth) = (queries.slice(0..few.len()), truth.select(&few));
    let once = Options {
        repeat: 1,
        batch: false,
        ..*options
    };
    let mut rows = Vec::with_capacity(settings.len());
    for (i, params) in settings.iter().enumerate() {
        rows.push(evaluate(target, few_queries, &few_truth, params, &once)?);
        progress(i + 1, settings.len());
    }
    mark(&mut rows, gain);
    let again: Vec<usize> = (0..rows.len())
        .filter(|&i| rows[i].front || rows[i].front_work)
        .collect();
    let total = settings.len() + again.len();
    let mut front = Vec::with_capacity(again.len());
    for (done, &i) in again.iter().enumerate() {
        front.push(evaluate(target, queries, truth, &settings[i], options)?);
        progress(settings.len() + done + 1, total);
    }
    // More queries can change who beats whom; only rows of the same queries are compared.
    mark(&mut front, gain);
    for (i, row) in again.into_iter().zip(front) {
        rows[i] = row;
    }
    Ok(rows)
}

/// Marks the rows that no other row beats: at most as much cost and at least as much recall@1, one of them
/// strictly better. `front` counts candidates, `front_work` distance equivalents.
pub fn mark_fronts(rows: &mut [Row]) {
    mark(rows, |r| r.recall_at_1);
}

fn mark(rows: &mut [Row], gain: fn(&Row) -> f64) {
    let by = |cost: fn(&Row) -> f64, rows: &[Row]| {
        let points: Vec<(f64, f64)> = rows.iter().map(|r| (cost(r), gain(r))).collect();
        pareto(&points)
    };
    let candidates = by(|r| r.candidates, rows);
    let work = by(|r| r.distance_equivalents, rows);
    for ((row, front), front_work) in rows.iter_mut().zip(candidates).zip(work) {
        row.front = front;
        row.front_work = front_work;
    }
}

/// Which (cost, gain) points are on the Pareto front: no other has at most the cost and at least the gain with
/// one of them strictly better. Equal points are on it together.
pub fn pareto(points: &[(f64, f64)]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| {
        let ((ca, ga), (cb, gb)) = (points[a], points[b]);
        ca.total_cmp(&cb).then(gb.total_cmp(&ga))
    });
    let mut front = vec![false; points.len()];
    let mut best: Option<(f64, f64)> = None;
    for i in order {
        let point = points[i];
        if best.is_none_or(|b| point.1 > b.1 || point == b) {
            front[i] = true;
            best = Some(point);
        }
    }
    front
}

/// Recall that the front reaches at a cost of `budget`: linear in the logarithm of the cost between
/// neighbouring points, the last recall beyond the front, `None` below it.
pub fn recall_at_budget(front: &[(f64, f64)], budget: f64) -> Option<f64> {
    let marks = pareto(front);
    let mut points: Vec<(f64, f64)> = front
        .iter()
        .zip(marks)
        .filter(|(_, m)| *m)
        .map(|(p, _)| *p)
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let after = points.partition_point(|p| p.0 <= budget);
    let below = points[..after].last()?;
    let Some(above) = points.get(after) else {
        return Some(below.1);
    };
    let (low, high) = (below.0.max(f64::MIN_POSITIVE).ln(), above.0.ln());
    let t = (budget.ln() - low) / (high - low);
    Some(below.1 + t * (above.1 - below.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_definition(points: &[(f64, f64)]) -> Vec<bool> {
        points
            .iter()
            .map(|p| {
                !points
                    .iter()
                    .any(|q| q.0 <= p.0 && q.1 >= p.1 && (q.0 < p.0 || q.1 > p.1))
            })
            .collect()
    }

    proptest! {
        #[test]
        fn the_front_is_the_definition(points in prop::collection::vec((0_u8..12, 0_u8..12), 0..40)) {
            let points: Vec<(f64, f64)> = points.iter().map(|&(a, b)| (f64::from(a), f64::from(b))).collect();
            prop_assert_eq!(pareto(&points), by_definition(&points));
        }

        #[test]
        fn budgets_interpolate_monotonically(
            points in prop::collection::vec((1.0..1e4_f64, 0.0..1.0_f64), 1..20),
            a in 1.0..1e4_f64,
            b in 1.0..1e4_f64,
        ) {
            let (a, b) = (a.min(b), a.max(b));
            if let Some(low) = recall_at_budget(&points, a) {
                let high = recall_at_budget(&points, b).unwrap();
                prop_assert!(low <= high + 1e-12);
            }
        }
    }

    #[test]
    fn interpolation_hits_the_points_and_the_middle() {
        let front = [(100.0, 0.5), (1000.0, 0.7), (500.0, 0.1)];
        assert_eq!(recall_at_budget(&front, 99.0), None);
        assert_eq!(recall_at_budget(&front, 100.0), Some(0.5));
        assert_eq!(recall_at_budget(&front, 1e6), Some(0.7));
        let middle = recall_at_budget(&front, 100.0 * 10_f64.sqrt()).unwrap();
        assert!((middle - 0.6).abs() < 1e-12);
    }
}
