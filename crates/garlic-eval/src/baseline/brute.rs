//! Every distance computed: the truth, and the cost to beat.

use garlic_ann::{Answer, Metric, SearchStats};
use garlic_linalg::{Matrix, Rows};
use rayon::prelude::*;

use super::{Best, measure, scaled};
use crate::error::{Error, Result};
use crate::target::{Params, Target, Worker};
use crate::truth::Truth;

/// Name of exhaustive search in tables, plots and JSON.
pub const BRUTE_FORCE: &str = "brute force";

/// The `k` true nearest neighbours of every query by Euclidean distance, on rayon's current pool.
pub fn brute_force(base: Rows<'_>, queries: Rows<'_>, k: usize) -> Result<Vec<Answer>> {
    brute_force_by(Metric::Euclidean, base, queries, k)
}

/// The `k` true nearest neighbours of every query by a metric, on rayon's current pool.
pub fn brute_force_by(
    metric: Metric,
    base: Rows<'_>,
    queries: Rows<'_>,
    k: usize,
) -> Result<Vec<Answer>> {
    if base.dim() != queries.dim() {
        return Err(Error::Dimension {
            what: "the queries",
            expected: base.dim(),
            found: queries.dim(),
        });
    }
    let all = BruteForce::by(metric, base)?;
    Ok((0..queries.len())
        .into_par_iter()
        .map_init(Vec::new, |scaled, i| all.scan(queries.row(i), k, scaled))
        .collect())
}

impl Truth {
    /// Computes the truth by Euclidean distance: the `k` nearest of `base` for every query, on rayon's current
    /// pool.
    pub fn compute(base: Rows<'_>, queries: Rows<'_>, k: usize) -> Result<Self> {
        Self::compute_by(Metric::Euclidean, base, queries, k)
    }

    /// Computes the truth by a metric.
    pub fn compute_by(metric: Metric, base: Rows<'_>, queries: Rows<'_>, k: usize) -> Result<Self> {
        let answers = brute_force_by(metric, base, queries, k)?;
        let distances = answers
            .iter()
            .flat_map(|a| a.hits.iter().map(|h| h.distance))
            .collect();
        Self::new(metric, distances, k.min(base.len()))
    }
}

/// Exhaustive search as something to measure.
#[derive(Clone, Debug)]
pub struct BruteForce<'a> {
    metric: Metric,
    base: Base<'a>,
}

/// The vectors as they came, or scaled.
#[derive(Clone, Debug)]
enum Base<'a> {
    Given(Rows<'a>),
    Scaled(Matrix),
}

impl<'a> BruteForce<'a> {
    /// Searches all of `base` by Euclidean distance.
    pub fn new(base: Rows<'a>) -> Self {
        Self {
            metric: Metric::Euclidean,
            base: Base::Given(base),
        }
    }

    /// Searches all of `base` by a metric.
    pub fn by(metric: Metric, base: Rows<'a>) -> Result<Self> {
        let base = match metric {
            Metric::Euclidean | Metric::InnerProduct => Base::Given(base),
            Metric::Cosine => Base::Scaled(scaled(metric, base)?),
        };
        Ok(Self { metric, base })
    }

    fn rows(&self) -> Rows<'_> {
        match &self.base {
            Base::Given(rows) => *rows,
            Base::Scaled(matrix) => matrix.as_rows(),
        }
    }

    fn scan(&self, query: &[f32], k: usize, scaled: &mut Vec<f32>) -> Answer {
        scaled.clear();
        self.metric.scale(query, scaled);
        let base = self.rows();
        let mut best = Best::new(self.metric, k);
        for (id, row) in base.iter().enumerate() {
            best.push(measure(self.metric, row, scaled), id as u64);
        }
        let mut stats = SearchStats::default();
        stats.candidates = base.len() as u64;
        stats.exact_madds = (base.len() * base.dim()) as u64;
        Answer::new(best.take(), stats, true)
    }
}

struct BruteWorker<'a> {
    all: &'a BruteForce<'a>,
    scaled: Vec<f32>,
}

impl Worker for BruteWorker<'_> {
    fn search(&mut self, query: &[f32], params: &Params) -> Result<Answer> {
        Ok(self.all.scan(query, params.k, &mut self.scaled))
    }
}

impl Target for BruteForce<'_> {
    fn method(&self) -> &'static str {
        BRUTE_FORCE
    }

    fn len(&self) -> usize {
        self.rows().len()
    }

    fn dim(&self) -> usize {
        self.rows().dim()
    }

    fn metric(&self) -> Metric {
        self.metric
    }

    fn cells(&self) -> usize {
        0
    }

    fn has_bins(&self) -> bool {
        false
    }

    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(BruteWorker {
            all: self,
            scaled: Vec::new(),
        })
    }

    fn search_batch(&self, _: Rows<'_>, _: &Params, _: usize) -> Option<Result<Vec<Answer>>> {
        None
    }
}
