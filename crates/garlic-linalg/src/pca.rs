//! Mean, covariance and principal components of a set of rows.

use rayon::prelude::*;

use crate::decompose::{dominant_sign, symmetric_eigen};
use crate::triangular::{lower_accumulate_outer, mirror_lower};
use crate::{Matrix, Rows};

/// Rows in one task. Part of the result, not only of the schedule: sums are rounded once a chunk.
pub(crate) const CHUNK: usize = 1024;

/// Chunks whose partial results are alive at once, which bounds memory whatever the number of rows.
pub(crate) const BATCH: usize = 16;

/// Principal components: `x` is near `mean + basis^T (basis (x - mean))`.
#[derive(Clone, Debug, PartialEq)]
pub struct Pca {
    /// Mean of the rows.
    pub mean: Vec<f32>,
    /// One component a row, orthonormal, in the order of `values`.
    pub basis: Matrix,
    /// Variance along each component, descending.
    pub values: Vec<f32>,
}

/// Mean and population covariance (`d x d`, row-major, symmetric) of the rows; zeros when there are none.
pub fn covariance(rows: Rows<'_>) -> (Vec<f64>, Vec<f64>) {
    let d = rows.dim();
    let mean = mean(rows);
    let mut sum = vec![0.0; d * d];
    sum_over_chunks(rows, &mut sum, |chunk, out: &mut Vec<f32>| {
        let mut centred = Vec::with_capacity(chunk.data().len());
        for row in chunk.iter() {
            centred.extend(
                row.iter()
                    .zip(&mean)
                    .map(|(&x, m)| (f64::from(x) - m) as f32),
            );
        }
        lower_accumulate_outer(out, &centred, &centred, chunk.len(), d, 1.0, 0.0);
    });
    let weight = 1.0 / rows.len().max(1) as f64;
    for value in &mut sum {
        *value *= weight;
    }
    mirror_lower(&mut sum, d);
    (mean, sum)
}

/// All `d` principal components of the rows.
pub fn pca(rows: Rows<'_>) -> Pca {
    let d = rows.dim();
    let (mean, cov) = covariance(rows);
    let mut eigen = symmetric_eigen(&cov, d);
    orthonormalise(&mut eigen.vectors, d);
    finish(&mean, &eigen.values, &eigen.vectors)
}

/// Rounds a decomposition to single precision.
pub(crate) fn finish(mean: &[f64], values: &[f64], vectors: &[f64]) -> Pca {
    let mut basis = Matrix::zeros(values.len(), mean.len());
    for (out, &v) in basis.as_mut_slice().iter_mut().zip(vectors) {
        *out = v as f32;
    }
    Pca {
        mean: mean.iter().map(|&m| m as f32).collect(),
        basis,
        // A covariance has no negative eigenvalue; rounding can leave one just below zero.
        values: values.iter().map(|&v| v.max(0.0) as f32).collect(),
    }
}

/// Mean of the rows, summed in double precision; zeros when there are none.
pub(crate) fn mean(rows: Rows<'_>) -> Vec<f64> {
    let mut sum = vec![0.0; rows.dim()];
    sum_over_chunks(rows, &mut sum, |chunk, out: &mut Vec<f64>| {
        for row in chunk.iter() {
            for (o, &x) in out.iter_mut().zip(row) {
                *o += f64::from(x);
            }
        }
    });
    let weight = 1.0 / rows.len().max(1) as f64;
    for value in &mut sum {
        *value *= weight;
    }
    sum
}

/// Adds `partial(chunk)` to `total` for every chunk of rows, computed in parallel and added in chunk order.
pub(crate) fn sum_over_chunks<T>(
    rows: Rows<'_>,
    total: &mut [f64],
    partial: impl Fn(Rows<'_>, &mut Vec<T>) + Sync,
) where
    T: Copy + Default + Into<f64> + Send + Sync,
{
    let chunks = rows.len().div_ceil(CHUNK);
    for batch in (0..chunks).step_by(BATCH) {
        let parts: Vec<Vec<T>> = (batch..(batch + BATCH).min(chunks))
            .into_par_iter()
            .map(|c| {
                let mut out = vec![T::default(); total.len()];
                let end = ((c + 1) * CHUNK).min(rows.len());
                partial(rows.slice(c * CHUNK..end), &mut out);
                out
            })
            .collect();
        for part in &parts {
            for (t, &p) in total.iter_mut().zip(part) {
                *t += p.into();
            }
        }
    }
}

/// Makes the rows of `vectors` (`d` values each) orthonormal in place, in order, and returns how many are left.
///
/// Gram-Schmidt with every projection done twice, which keeps the rows orthogonal to working precision. A row
/// that lies in the span of those before it is dropped and the ones after it move up.
pub(crate) fn orthonormalise(vectors: &mut [f64], d: usize) -> usize {
    /// A row that loses this share of its length to the earlier ones has nothing of its own but rounding.
    const DEPENDENT: f64 = 1e-11;
    let count = vectors.len() / d;
    let mut kept = 0;
    for i in 0..count {
        vectors.copy_within(i * d..(i + 1) * d, kept * d);
        let (done, rest) = vectors.split_at_mut(kept * d);
        let row = &mut rest[..d];
        let before = norm(row);
        for _ in 0..2 {
            for other in done.chunks_exact(d) {
                let along = dot(other, row);
                for (r, o) in row.iter_mut().zip(other) {
                    *r -= along * o;
                }
            }
        }
        let after = norm(row);
        if after > DEPENDENT * before {
            let sign = dominant_sign(row);
            for r in row.iter_mut() {
                *r *= sign / after;
            }
            kept += 1;
        }
    }
    kept
}

/// Inner product in double precision over eight running sums, so that it vectorises in a fixed order.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0f64; 8];
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let tail: f64 = a8
        .remainder()
        .iter()
        .zip(b8.remainder())
        .map(|(x, y)| x * y)
        .sum();
    for (x, y) in a8.zip(b8) {
        for ((lane, x), y) in lanes.iter_mut().zip(x).zip(y) {
            *lane += x * y;
        }
    }
    lanes.iter().sum::<f64>() + tail
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}
