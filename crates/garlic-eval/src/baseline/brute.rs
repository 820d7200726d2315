//! Every distance computed: the truth, and the cost to beat.

use garlic_ann::{Answer, Work};
use garlic_linalg::Rows;
use garlic_simd::l2_squared;
use rayon::prelude::*;

use super::Best;
use crate::error::{Error, Result};
use crate::target::{Params, Target, Worker};
use crate::truth::Truth;

/// Name of exhaustive search in tables, plots and JSON.
pub const BRUTE_FORCE: &str = "brute force";

/// The `k` true nearest neighbours of every query, on rayon's current pool.
pub fn brute_force(base: Rows<'_>, queries: Rows<'_>, k: usize) -> Result<Vec<Answer>> {
    if base.dim() != queries.dim() {
        return Err(Error::Dimension {
            what: "the queries",
            expected: base.dim(),
            found: queries.dim(),
        });
    }
    Ok((0..queries.len())
        .into_par_iter()
        .map(|i| scan(base, queries.row(i), k))
        .collect())
}

impl Truth {
    /// Computes the truth: the `k` nearest of `base` for every query, on rayon's current pool.
    pub fn compute(base: Rows<'_>, queries: Rows<'_>, k: usize) -> Result<Self> {
        let answers = brute_force(base, queries, k)?;
        let distances = answers
            .iter()
            .flat_map(|a| a.hits.iter().map(|h| h.distance))
            .collect();
        Self::new(distances, k.min(base.len()))
    }
}

fn scan(base: Rows<'_>, query: &[f32], k: usize) -> Answer {
    let mut best = Best::new(k);
    for (id, row) in base.iter().enumerate() {
        best.push(l2_squared(row, query), id as u64);
    }
    Answer {
        hits: best.take(),
        work: Work {
            candidates: base.len() as u64,
            exact_madds: (base.len() * base.dim()) as u64,
            ..Work::default()
        },
        exact: true,
    }
}

/// Exhaustive search as something to measure.
#[derive(Clone, Copy, Debug)]
pub struct BruteForce<'a> {
    base: Rows<'a>,
}

impl<'a> BruteForce<'a> {
    /// Searches all of `base`.
    pub fn new(base: Rows<'a>) -> Self {
        Self { base }
    }
}

impl Worker for BruteForce<'_> {
    fn search(&mut self, query: &[f32], params: &Params) -> Result<Answer> {
        Ok(scan(self.base, query, params.k))
    }
}

impl Target for BruteForce<'_> {
    fn method(&self) -> &'static str {
        BRUTE_FORCE
    }

    fn len(&self) -> usize {
        self.base.len()
    }

    fn dim(&self) -> usize {
        self.base.dim()
    }

    fn cells(&self) -> usize {
        0
    }

    fn has_bins(&self) -> bool {
        false
    }

    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(*self)
    }

    fn search_batch(&self, _: Rows<'_>, _: &Params, _: usize) -> Option<Result<Vec<Answer>>> {
        None
    }
}
