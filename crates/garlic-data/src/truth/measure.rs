//! How near two vectors are, twice: roughly in single precision with a proven bound, and exactly.

use std::borrow::Cow;

use crate::dataset::Metric;
use crate::error::{DataError, Origin, Result};

/// Largest relative error of rounding to 32 bits.
const EPSILON: f64 = 1.0 / (1 << 24) as f64;
/// Products of lengths from which on single precision might overflow.
const LARGEST: f64 = 1e37;

/// Vectors to be measured against. Smaller is nearer, for every metric.
pub(super) struct Measure<'a> {
    metric: Metric,
    train: &'a [f32],
    dim: usize,
    /// What rough measures are taken from: of the cosine, vectors of unit length.
    rough: Cow<'a, [f32]>,
    /// The length of the longest vector, where it matters.
    longest: f64,
}

/// A query to be measured from.
pub(super) struct Asked<'a> {
    query: &'a [f32],
    rough: Cow<'a, [f32]>,
    /// Single precision would overflow: nothing can be said roughly.
    vague: bool,
}

impl<'a> Measure<'a> {
    /// `train` has `dim` coordinates a row, all finite.
    pub(super) fn new(metric: Metric, train: &'a [f32], dim: usize) -> Result<Self> {
        let longest = match metric {
            Metric::InnerProduct => train.chunks_exact(dim).map(length).fold(0.0, f64::max),
            _ => 0.0,
        };
        Ok(Self {
            metric,
            train,
            dim,
            rough: rough(metric, train, dim, "train")?,
            longest,
        })
    }

    /// Queries as they are measured from.
    pub(super) fn ask<'q>(&self, queries: &'q [f32]) -> Result<Vec<Asked<'q>>> {
        queries
            .chunks_exact(self.dim)
            .map(|query| {
                Ok(Asked {
                    query,
                    rough: rough(self.metric, query, self.dim, "test")?,
                    vague: self.metric == Metric::InnerProduct
                        && length(query) * self.longest > LARGEST,
                })
            })
            .collect()
    }

    /// Fails for queries that the metric says nothing about.
    pub(super) fn check(&self, queries: &[f32]) -> Result<()> {
        check(self.metric, queries, self.dim, "test")
    }

    /// A block of rows for [`Measure::rough`].
    pub(super) fn rows(&self) -> &[f32] {
        &self.rough
    }

    /// In single precision; `row` is one of [`Measure::rows`].
    pub(super) fn rough(&self, asked: &Asked<'_>, row: &[f32]) -> f32 {
        match self.metric {
            Metric::Euclidean | Metric::Cosine => garlic_simd::l2_squared(&asked.rough, row),
            Metric::InnerProduct if asked.vague => 0.0,
            Metric::InnerProduct => -garlic_simd::dot(&asked.rough, row),
        }
    }

    /// Factor and term such that what is truly among the k nearest is roughly at most the k-th rough measure,
    /// times the factor, plus the term.
    pub(super) fn bound(&self, asked: &Asked<'_>) -> (f64, f64) {
        // A difference, a product and a sum of `dim` terms, in any order: each rounding errs by EPSILON of its
        // result, so a sum of terms that are not negative errs by e = (dim + 2) EPSILON of itself (twice that to be
        // safe). If V is the k-th smallest computed value, k vectors are truly within V / (1 - e), so a vector
        // that belongs to the answer computes to at most V (1 + e) / (1 - e). Products that underflow err by
        // less than 2^-126 each.
        let e = 2.0 * (self.dim as f64 + 2.0) * EPSILON;
        let factor = match e < 0.5 {
            true => (1.0 + e) / (1.0 - e),
            false => f64::INFINITY,
        };
        let tiny = 4.0 * self.dim as f64 * 2_f64.powi(-126);
        match self.metric {
            Metric::Euclidean => (factor, tiny),
            // Unit vectors are off by EPSILON each, their difference by twice that, its square by four times the
            // length of at most 2; once for V and once for the vector.
            Metric::Cosine => (factor, tiny + 32.0 * EPSILON),
            // Terms of both signs: the error is relative to the sum of their sizes.
            Metric::InnerProduct if asked.vague => (1.0, f64::INFINITY),
            Metric::InnerProduct => (1.0, 2.0 * e * length(asked.query) * self.longest + tiny),
        }
    }

    /// In double precision, from the vectors as they are; of Euclid the square.
    pub(super) fn exact(&self, asked: &Asked<'_>, id: usize) -> f64 {
        let row = &self.train[id * self.dim..(id + 1) * self.dim];
        let apart = |x: f64, y: f64| -> f64 {
            let difference = |(a, b): (&f32, &f32)| f64::from(*a) / x - f64::from(*b) / y;
            let terms = row.iter().zip(asked.query).map(difference);
            terms.map(|d| d * d).sum()
        };
        match self.metric {
            Metric::Euclidean => apart(1.0, 1.0),
            // Not one less the cosine: that has no digits left where the angle is small.
            Metric::Cosine => apart(length(row), length(asked.query)) / 2.0,
            Metric::InnerProduct => 0.0 - product(row, asked.query),
        }
    }

    /// The distance that an exact measure stands for.
    pub(super) fn distance(&self, exact: f64) -> f64 {
        match self.metric {
            Metric::Euclidean => exact.sqrt(),
            Metric::Cosine | Metric::InnerProduct => exact,
        }
    }

    /// The size that errors of single precision are relative to, for distances that are given in a file.
    pub(super) fn scale(&self, asked: &Asked<'_>, distance: f64) -> f64 {
        match self.metric {
            Metric::Euclidean => distance,
            Metric::Cosine => 1.0,
            Metric::InnerProduct => length(asked.query) * self.longest,
        }
    }
}

fn check(metric: Metric, vectors: &[f32], dim: usize, set: &'static str) -> Result<()> {
    let zero = |row: &[f32]| row.iter().all(|v| *v == 0.0);
    match vectors.chunks_exact(dim).position(zero) {
        Some(row) if metric == Metric::Cosine => {
            let origin = Origin::memory().set(set);
            Err(DataError::ZeroVector { origin, row })
        }
        _ => Ok(()),
    }
}

fn rough<'a>(
    metric: Metric,
    vectors: &'a [f32],
    dim: usize,
    set: &'static str,
) -> Result<Cow<'a, [f32]>> {
    if metric != Metric::Cosine {
        return Ok(Cow::Borrowed(vectors));
    }
    check(metric, vectors, dim, set)?;
    let unit = |row: &'a [f32]| {
        let length = length(row);
        row.iter().map(move |v| (f64::from(*v) / length) as f32)
    };
    Ok(vectors.chunks_exact(dim).flat_map(unit).collect())
}

fn product(a: &[f32], b: &[f32]) -> f64 {
    let terms = a.iter().zip(b);
    terms.map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

fn length(vector: &[f32]) -> f64 {
    product(vector, vector).sqrt()
}
