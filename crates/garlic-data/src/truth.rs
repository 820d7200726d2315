//! Exact nearest neighbours, by looking at everything.
//!
//! Distances are computed in single precision first. Its error has a proven bound, so every vector
//! that could be among the nearest stays a candidate, and the few candidates are put in order in
//! double precision: the answer does not depend on how the kernel sums.

use std::ops::Range;

use rayon::prelude::*;

use crate::error::{DataError, Origin, Result};
use crate::ids::Ids;
use crate::vectors::{check_finite, count_rows};

/// Queries that share one pass over the vectors.
const QUERIES: usize = 32;
/// Coordinates of the vectors that stay in the cache while those queries look at them.
const COORDINATES: usize = 32 * 1024;

/// The nearest vectors of each query.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// `k` ids for each query, nearest first, equal distances by lower id.
    pub ids: Vec<i64>,
    /// The Euclidean distances to them.
    pub distances: Vec<f32>,
    /// Neighbours of each query: as many as asked for, or all vectors where there are fewer.
    pub k: usize,
}

impl Truth {
    /// Number of queries.
    pub fn rows(&self) -> usize {
        self.ids.len() / self.k
    }

    /// The ids as a table that can be written to a file.
    pub fn into_ids(self) -> Ids {
        Ids {
            rows: self.rows(),
            cols: self.k,
            data: self.ids,
        }
    }
}

/// The exact `k` nearest vectors of each query, ordered by (distance, id).
///
/// `train` and `queries` are row-major with `dim` coordinates to a row. Runs in rayon's current
/// pool; the result does not depend on its size.
pub fn ground_truth(train: &[f32], dim: usize, queries: &[f32], k: usize) -> Result<Truth> {
    let (vectors, searches) = (Origin::memory().set("train"), Origin::memory().set("test"));
    let rows = count_rows(train.len(), dim, &vectors)?;
    count_rows(queries.len(), dim, &searches)?;
    check_finite(train, dim, &vectors)?;
    check_finite(queries, dim, &searches)?;
    if k == 0 {
        let origin = Origin::memory();
        return Err(DataError::ZeroNeighbors { origin });
    }
    let k = k.min(rows);
    let blocks: Vec<Vec<(f64, usize)>> = queries
        .par_chunks(QUERIES * dim)
        .map(|block| nearest_of_block(train, dim, block, k))
        .collect();
    let found = || blocks.iter().flatten();
    Ok(Truth {
        ids: found().map(|(_, id)| *id as i64).collect(),
        distances: found().map(|(d, _)| d.sqrt() as f32).collect(),
        k,
    })
}

/// The `k` nearest of each query of a block, one query after the other.
fn nearest_of_block(train: &[f32], dim: usize, block: &[f32], k: usize) -> Vec<(f64, usize)> {
    let mut candidates: Vec<Candidates> = block
        .chunks_exact(dim)
        .map(|_| Candidates::new(k, dim))
        .collect();
    let rows = (COORDINATES / dim).max(1);
    for (b, part) in train.chunks(rows * dim).enumerate() {
        for (query, candidates) in block.chunks_exact(dim).zip(&mut candidates) {
            for (i, row) in part.chunks_exact(dim).enumerate() {
                candidates.offer(garlic_simd::l2_squared(query, row), b * rows + i);
            }
        }
    }
    let settled = block.chunks_exact(dim).zip(candidates);
    settled
        .flat_map(|(query, candidates)| candidates.settle(train, query))
        .collect()
}

/// The vectors that may be among the `k` nearest.
struct Candidates {
    k: usize,
    /// Factor and term by which single precision may misjudge the k-th distance.
    factor: f64,
    term: f64,
    /// Squared distances above this are out.
    bound: f32,
    /// When this many have gathered, the bound is drawn tighter.
    limit: usize,
    found: Vec<(f32, usize)>,
}

impl Candidates {
    fn new(k: usize, dim: usize) -> Self {
        // A difference, a product and a sum of `dim` terms that are not negative, in any order:
        // each rounding errs by 2^-24 of its result, so the sum by e = (dim + 2) 2^-24 of itself
        // (twice that to be safe). If V is the k-th smallest computed value, k vectors are truly
        // within V / (1 - e), so a vector that belongs to the answer computes to at most
        // V (1 + e) / (1 - e). Products that underflow err by less than 2^-126 each.
        let e = 2.0 * (dim as f64 + 2.0) * 2_f64.powi(-24);
        let factor = if e < 0.5 {
            (1.0 + e) / (1.0 - e)
        } else {
            f64::INFINITY
        };
        Self {
            k,
            factor,
            term: 4.0 * dim as f64 * 2_f64.powi(-126),
            bound: f32::INFINITY,
            limit: 2 * k + 64,
            found: Vec::new(),
        }
    }

    fn offer(&mut self, squared: f32, id: usize) {
        if squared <= self.bound {
            self.found.push((squared, id));
            if self.found.len() >= self.limit {
                self.tighten();
            }
        }
    }

    fn tighten(&mut self) {
        if self.found.len() < self.k {
            return;
        }
        let (_, kth, _) = self
            .found
            .select_nth_unstable_by(self.k - 1, |a, b| a.0.total_cmp(&b.0));
        let bound = f64::from(kth.0) * self.factor + self.term;
        // The next float up: rounding must not cut off what the bound allows. A product of
        // zero and infinity cannot say anything, so it excludes nothing.
        self.bound = match bound.is_nan() {
            true => f32::INFINITY,
            false => (bound as f32).next_up(),
        };
        self.found.retain(|(squared, _)| *squared <= self.bound);
        // Many equal distances may all have to stay; doubling keeps the work linear.
        self.limit = self.limit.max(2 * self.found.len());
    }

    fn settle(mut self, train: &[f32], query: &[f32]) -> impl Iterator<Item = (f64, usize)> {
        self.tighten();
        let dim = query.len();
        let exact = |id: usize| squared(&train[id * dim..(id + 1) * dim], query);
        let mut settled: Vec<(f64, usize)> =
            self.found.iter().map(|(_, id)| (exact(*id), *id)).collect();
        settled.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        settled.truncate(self.k);
        settled.into_iter()
    }
}

/// Squared distance in double precision.
fn squared(a: &[f32], b: &[f32]) -> f64 {
    let difference = |(x, y): (&f32, &f32)| f64::from(*x) - f64::from(*y);
    a.iter().zip(b).map(difference).map(|d| d * d).sum()
}

/// How given neighbours compare with the exact ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TruthCheck {
    /// Neighbours compared.
    pub compared: usize,
    /// How many of them are as near as the exact neighbour of the same rank.
    pub agree: usize,
    /// The first that is not, as (query, rank).
    pub first_disagreement: Option<(usize, usize)>,
}

/// Compares given neighbours with the exact ones, by distance: where several vectors are equally
/// near, any of them will do, but none may be given twice.
pub fn check_truth(
    train: &[f32],
    dim: usize,
    queries: &[f32],
    neighbors: &Ids,
) -> Result<TruthCheck> {
    /// Files hold neighbours that were ordered in single precision.
    const TOLERANCE: f64 = 1e-6;
    let origin = Origin::memory().set("neighbors");
    let truth = ground_truth(train, dim, queries, neighbors.cols)?;
    if neighbors.rows != truth.rows() {
        return Err(DataError::CountMismatch {
            origin,
            what: "rows",
            expected: truth.rows(),
            found: neighbors.rows,
            fix: "there must be one row of neighbours for each query",
        });
    }
    neighbors.check_below(train.len() / dim, &origin)?;
    let mut check = TruthCheck {
        compared: neighbors.rows * truth.k,
        agree: 0,
        first_disagreement: None,
    };
    let row = |i: usize| -> Range<usize> { i * dim..(i + 1) * dim };
    for query in 0..neighbors.rows {
        let given = &neighbors.row(query)[..truth.k];
        for (rank, id) in given.iter().enumerate() {
            let distance = squared(&train[row(*id as usize)], &queries[row(query)]).sqrt();
            let exact = f64::from(truth.distances[query * truth.k + rank]);
            let near = (distance - exact).abs() <= TOLERANCE * exact;
            if near && !given[..rank].contains(id) {
                check.agree += 1;
            } else if check.first_disagreement.is_none() {
                check.first_disagreement = Some((query, rank));
            }
        }
    }
    Ok(check)
}
