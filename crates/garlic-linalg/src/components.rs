//! The leading principal components without the full covariance.
//!
//! When the shorter side of the data is small the eigenproblem is solved on that side exactly. Otherwise a
//! block of vectors is iterated: a Chebyshev polynomial of the covariance damps what lies below the block, and
//! a Rayleigh-Ritz step inside the block separates the components. Everything is in double precision, so that
//! the rank of nearly flat cells is told apart from rounding. A flat spectrum, where the iteration would crawl,
//! falls back on the exact solution while the shorter side allows it; past that any block is about as good.

use crate::decompose::symmetric_eigen;
use crate::gemm::{Operand, gemm64};
use crate::pca::{dot, finish, mean, orthonormalise, sum_over_chunks};
use crate::random::{random_stream, uniform_unit};
use crate::triangular::mirror_lower;
use crate::{Pca, Rows};

/// Sides up to this are decomposed exactly: cheaper than iterating.
const DENSE_SIDE: usize = 256;

/// A component whose variance is this small a share of the largest counts as absent.
const RELATIVE_RANK: f64 = 1e-7;

/// Variance below this share of the mean squared length is what rounding to single precision leaves.
const ROUNDING_RANK: f64 = 1e-13;

/// Residual of an eigenpair, as a share of the largest eigenvalue, at which it counts as converged.
const TOLERANCE: f64 = 1e-7;

/// Sides up to this are decomposed exactly when the iteration does not settle.
const FALLBACK_SIDE: usize = 2048;

/// Bound on the products with the covariance; reached only by flat spectra.
const MAX_PRODUCTS: usize = 48;

/// The leading `r` principal components of the rows, fewer when the rows span fewer directions.
///
/// Rows that all coincide have no component. The `seed` chooses the first block of the iteration.
pub fn top_components(rows: Rows<'_>, r: usize, seed: u64) -> Pca {
    let (n, d) = (rows.len(), rows.dim());
    let mean = mean(rows);
    let r = r.min(n).min(d);
    if r == 0 {
        return finish(&mean, &[], &[]);
    }
    let block = (r + (r / 2).max(8)).min(n).min(d);
    let side = n.min(d);
    let (values, mut vectors) = if side <= DENSE_SIDE.max(2 * block) {
        exactly(rows, &mean, r)
    } else {
        let found = by_iteration(rows, &mean, r, block, seed);
        if found.settled || side > FALLBACK_SIDE {
            (found.values, found.vectors)
        } else {
            exactly(rows, &mean, r)
        }
    };
    let scale = mean_squared_length(rows);
    let floor = (RELATIVE_RANK * values.first().copied().unwrap_or(0.0)).max(ROUNDING_RANK * scale);
    let rank = values.iter().take(r).take_while(|&&v| v > floor).count();
    vectors.truncate(rank * d);
    let rank = orthonormalise(&mut vectors, d);
    finish(&mean, &values[..rank], &vectors[..rank * d])
}

/// Eigenvalues and unscaled eigenvectors through the smaller of the two square matrices.
fn exactly(rows: Rows<'_>, mean: &[f64], r: usize) -> (Vec<f64>, Vec<f64>) {
    if rows.len() < rows.dim() {
        by_gram(rows, mean, r)
    } else {
        by_covariance(rows, mean, r)
    }
}

/// Through the `n x n` matrix of inner products between centred rows.
fn by_gram(rows: Rows<'_>, mean: &[f64], r: usize) -> (Vec<f64>, Vec<f64>) {
    let (n, d) = (rows.len(), rows.dim());
    let x = centre(rows, mean);
    let mut gram = vec![0.0; n * n];
    gemm64(
        &mut gram,
        Operand::new(&x, n, d),
        Operand::transposed(&x, n, d),
        1.0 / n as f64,
        false,
    );
    let mut eigen = symmetric_eigen(&gram, n);
    eigen.values.truncate(r);
    // Rows of U^T X are the components times the root of n times their eigenvalue.
    let mut vectors = vec![0.0; r * d];
    gemm64(
        &mut vectors,
        Operand::new(&eigen.vectors, r, n),
        Operand::new(&x, n, d),
        1.0,
        false,
    );
    (eigen.values, vectors)
}

/// Through the `d x d` covariance in double precision.
fn by_covariance(rows: Rows<'_>, mean: &[f64], r: usize) -> (Vec<f64>, Vec<f64>) {
    let d = rows.dim();
    let mut cov = vec![0.0; d * d];
    sum_over_chunks(rows, &mut cov, |chunk, out: &mut Vec<f64>| {
        let x = centre(chunk, mean);
        gemm64(
            out,
            Operand::transposed(&x, chunk.len(), d),
            Operand::new(&x, chunk.len(), d),
            1.0,
            false,
        );
    });
    for value in &mut cov {
        *value /= rows.len() as f64;
    }
    mirror_lower(&mut cov, d);
    let mut eigen = symmetric_eigen(&cov, d);
    eigen.values.truncate(r);
    eigen.vectors.truncate(r * d);
    (eigen.values, eigen.vectors)
}

/// What the iteration found, and whether it met the tolerance.
struct Found {
    values: Vec<f64>,
    vectors: Vec<f64>,
    settled: bool,
}

/// Chebyshev-filtered subspace iteration on a block of `block` vectors.
fn by_iteration(rows: Rows<'_>, mean: &[f64], r: usize, block: usize, seed: u64) -> Found {
    let d = rows.dim();
    let mut rng = random_stream(seed, 0);
    let mut q: Vec<f64> = (0..block * d)
        .map(|_| uniform_unit(&mut rng) - 0.5)
        .collect();
    // One plain product first: it puts the block inside the span of the data.
    q = apply(rows, mean, &q);
    let mut products = 1;
    loop {
        let kept = orthonormalise(&mut q, d);
        q.truncate(kept * d);
        if kept == 0 {
            return Found {
                values: Vec::new(),
                vectors: Vec::new(),
                settled: true,
            };
        }
        let mut cq = apply(rows, mean, &q);
        products += 1;
        let mut values = rayleigh_ritz(&mut q, &mut cq, kept, d);
        let worst = (0..r.min(kept))
            .map(|i| residual(&q[i * d..][..d], &cq[i * d..][..d], values[i]))
            .fold(0.0, f64::max);
        let settled = worst <= TOLERANCE * values[0];
        if settled || products >= MAX_PRODUCTS {
            q.truncate(r * d);
            values.truncate(r);
            return Found {
                values,
                vectors: q,
                settled,
            };
        }
        let degree = filter_degree(&values);
        q = filter(rows, mean, q, cq, &values, degree);
        products += degree - 1;
    }
}

/// Rotates the block and its image so that the rows of `q` are Ritz vectors; returns the Ritz values.
fn rayleigh_ritz(q: &mut Vec<f64>, cq: &mut Vec<f64>, k: usize, d: usize) -> Vec<f64> {
    let mut h = vec![0.0; k * k];
    gemm64(
        &mut h,
        Operand::new(q, k, d),
        Operand::transposed(cq, k, d),
        1.0,
        false,
    );
    let eigen = symmetric_eigen(&h, k);
    for block in [q, cq] {
        let mut rotated = vec![0.0; k * d];
        gemm64(
            &mut rotated,
            Operand::new(&eigen.vectors, k, k),
            Operand::new(block, k, d),
            1.0,
            false,
        );
        *block = rotated;
    }
    eigen.values
}

/// Upper end of the part of the spectrum that a filter damps.
fn filter_edge(values: &[f64]) -> f64 {
    values[values.len() - 1].max(values[0] * 1e-9)
}

fn filter_degree(values: &[f64]) -> usize {
    /// Growth of the leading component over the damped ones in one filter; more would cost the trailing
    /// components their digits.
    const GROWTH: f64 = 1e7;
    const MAX_DEGREE: usize = 10;
    let reach = (2.0 * values[0] / filter_edge(values) - 1.0)
        .max(1.0)
        .acosh();
    ((GROWTH.acosh() / reach) as usize).clamp(1, MAX_DEGREE)
}

/// Applies a Chebyshev polynomial of the covariance that is small from zero to the smallest Ritz value; `cq` is
/// the covariance applied to `q`.
fn filter(
    rows: Rows<'_>,
    mean: &[f64],
    q: Vec<f64>,
    cq: Vec<f64>,
    values: &[f64],
    degree: usize,
) -> Vec<f64> {
    let half = filter_edge(values) / 2.0;
    // T_1 = (C - half) / half applied to q, then T_{j+1} = 2 t T_j - T_{j-1}.
    let shifted = |image: &[f64], of: &[f64]| -> Vec<f64> {
        image
            .iter()
            .zip(of)
            .map(|(c, x)| (c - half * x) / half)
            .collect()
    };
    let mut current = shifted(&cq, &q);
    let mut previous = q;
    for _ in 1..degree {
        let image = apply(rows, mean, &current);
        let mut next = shifted(&image, &current);
        for (n, p) in next.iter_mut().zip(&previous) {
            *n = 2.0 * *n - p;
        }
        previous = std::mem::replace(&mut current, next);
    }
    current
}

/// Length of `C v - value * v`.
fn residual(v: &[f64], cv: &[f64], value: f64) -> f64 {
    let difference: Vec<f64> = cv.iter().zip(v).map(|(c, x)| c - value * x).collect();
    dot(&difference, &difference).sqrt()
}

/// The covariance applied to each row of `q`.
fn apply(rows: Rows<'_>, mean: &[f64], q: &[f64]) -> Vec<f64> {
    let d = rows.dim();
    let k = q.len() / d;
    let mut total = vec![0.0; k * d];
    sum_over_chunks(rows, &mut total, |chunk, out: &mut Vec<f64>| {
        let p = chunk.len();
        let x = centre(chunk, mean);
        let mut along = vec![0.0; k * p];
        gemm64(
            &mut along,
            Operand::new(q, k, d),
            Operand::transposed(&x, p, d),
            1.0,
            false,
        );
        gemm64(
            out,
            Operand::new(&along, k, p),
            Operand::new(&x, p, d),
            1.0,
            false,
        );
    });
    let weight = 1.0 / rows.len() as f64;
    for value in &mut total {
        *value *= weight;
    }
    total
}

fn mean_squared_length(rows: Rows<'_>) -> f64 {
    let mut total = [0.0];
    sum_over_chunks(rows, &mut total, |chunk, out: &mut Vec<f64>| {
        out[0] = chunk
            .data()
            .iter()
            .map(|&x| f64::from(x) * f64::from(x))
            .sum();
    });
    total[0] / rows.len() as f64
}

fn centre(rows: Rows<'_>, mean: &[f64]) -> Vec<f64> {
    let mut out = Vec::with_capacity(rows.data().len());
    for row in rows.iter() {
        out.extend(row.iter().zip(mean).map(|(&x, m)| f64::from(x) - m));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::random;

    /// The exact solver would hide an iteration that never settles, so it is tested by itself.
    #[test]
    fn the_iteration_settles_by_itself_on_decaying_spectra() {
        let (n, d) = (1100, 300);
        for decay in [0.5f32, 0.9, 0.98] {
            let mut data = random(n * d, 1);
            for row in data.chunks_exact_mut(d) {
                row.iter_mut()
                    .enumerate()
                    .for_each(|(j, x)| *x *= decay.powi(j as i32));
            }
            let rows = Rows::new(&data, d).unwrap();
            let mean = mean(rows);
            let (exact, _) = exactly(rows, &mean, 20);
            let found = by_iteration(rows, &mean, 20, 30, 1);
            assert!(found.settled, "decay {decay}");
            for (value, expected) in found.values.iter().zip(&exact) {
                assert!((value - expected).abs() < 1e-9 * exact[0]);
            }
        }
    }
}
