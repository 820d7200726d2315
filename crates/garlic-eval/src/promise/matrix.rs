//! Recall on every kind of data: kinds by metrics by numbers of neighbours by targets.

use std::time::Instant;

use garlic_ann::{Answer, Index, Metric, Search, SearchStats};
use garlic_linalg::Rows;

use super::reference::{Estimate, Reference};
use super::{all_threads, misses};
use crate::error::Result;
use crate::hostile::{Kind, Sample};

/// What to measure of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Base vectors.
    pub points: usize,
    /// Queries.
    pub queries: usize,
    /// Numbers of neighbours.
    pub ks: Vec<usize>,
    /// Recall targets.
    pub targets: Vec<f64>,
    /// Seed of the data and of the index.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            points: 30_000,
            queries: 500,
            ks: vec![1, 10, 100],
            targets: vec![0.9, 0.95, 0.99, 0.999],
            seed: 1,
        }
    }
}

impl Plan {
    /// Small data, for minutes instead of an hour.
    pub fn short() -> Self {
        Self {
            points: 6000,
            queries: 150,
            targets: vec![0.9, 0.95, 0.99],
            ..Self::default()
        }
    }
}

/// What one search setting measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name of the kind of data.
    pub kind: &'static str,
    /// Metric of the index.
    pub metric: Metric,
    /// Base vectors.
    pub points: usize,
    /// Neighbours asked for.
    pub k: usize,
    /// Recall asked for.
    pub target: f64,
    /// Recall measured.
    pub realised: Estimate,
    /// Mean work of a query in distances to one point.
    pub work: f64,
    /// Whether the queries looked at all points, by their codes or by exact distances.
    pub read_everything: bool,
    /// Seconds that building the index took.
    pub build_seconds: f64,
    /// Seconds that the batch of queries took.
    pub search_seconds: f64,
}

impl Row {
    /// Whether the row breaks the promise.
    pub fn fails(&self) -> bool {
        misses(&self.realised, self.target)
    }
}

/// Whether an index of this metric takes the data: the cosine metric refuses vectors of zeros.
pub fn is_defined(metric: Metric, sample: &Sample) -> bool {
    let is_zero = |row: &[f32]| row.iter().all(|v| *v == 0.0);
    let mut rows = sample
        .base
        .chunks(sample.dim)
        .chain(sample.queries.chunks(sample.dim));
    metric != Metric::Cosine || !rows.any(is_zero)
}

/// Builds one index over a sample of `kind` and measures every number of neighbours with every target; `tell`
/// takes each row when it is measured.
pub fn measure(
    kind: &Kind,
    sample: &Sample,
    metric: Metric,
    plan: &Plan,
    tell: &mut dyn FnMut(Row),
) -> Result<()> {
    let base = Rows::new(&sample.base, sample.dim)?;
    let queries = Rows::new(&sample.queries, sample.dim)?;
    let start = Instant::now();
    let index = Index::builder()
        .metric(metric)
        .seed(plan.seed)
        .build(base)?;
    let build_seconds = start.elapsed().as_secs_f64();
    let most = plan.ks.iter().copied().max().unwrap_or(1);
    let reference = Reference::new(metric, base, |_| true, queries, most, all_threads());
    for &k in &plan.ks {
        for &target in &plan.targets {
            let search = Search::new(k).recall(target).threads(all_threads());
            let start = Instant::now();
            let answers = index.search_batch(queries, &search)?;
            let search_seconds = start.elapsed().as_secs_f64();
            tell(Row {
                kind: kind.name,
                metric,
                points: base.len(),
                k,
                target,
                realised: Estimate::of(&reference.recalls(&answers, k)),
                work: mean_work(&answers, sample.dim),
                read_everything: read_everything(&answers, base.len()),
                build_seconds,
                search_seconds,
            });
        }
    }
    Ok(())
}

/// Mean work of an answer in distances of dimension `dim`.
pub(super) fn mean_work(answers: &[Answer], dim: usize) -> f64 {
    let mut work = SearchStats::default();
    answers.iter().for_each(|answer| work += answer.stats);
    work.distance_equivalents(dim) / answers.len().max(1) as f64
}

/// Whether most queries looked at every one of `points` points.
fn read_everything(answers: &[Answer], points: usize) -> bool {
    let looked_at = |answer: &Answer| answer.stats.codes.max(answer.stats.candidates);
    let complete = |answer: &&Answer| looked_at(answer) >= points as u64;
    2 * answers.iter().filter(complete).count() > answers.len()
}
