//! The leading principal axes of vectors with many coordinates, without a square matrix of that size.
//!
//! Subspace iteration on a block of random directions: each product with the covariance, done as two products with
//! the data, turns the block towards the leading axes, and it ends when the variance that they keep has settled. A
//! few rows span their own axes, so that the block is the rows themselves and the first step is exact. Axes that the
//! spectrum hardly separates come out mixed; as a frame for the data they keep as much variance.

use rayon::prelude::*;

use crate::decompose::{dominant_sign, symmetric_eigen};
use crate::gemm::{Operand, gemm, gemm64};
use crate::pca::{mean, sum_over_chunks};
use crate::random::{random_stream, uniform_unit};
use crate::{Matrix, Pca, Rows};

/// Products with the covariance at most.
const MAX_PRODUCTS: usize = 8;

/// Growth of the kept variance, as a share of it, that is not worth another product.
const SETTLED: f64 = 5e-4;

/// Squared singular values of a block below this share of the largest are rounding.
const DEPENDENT: f64 = 1e-13;

/// Values that one task centres at once. Part of the result, as all sizes of tasks are.
const TASK_VALUES: usize = 1 << 22;

/// Coordinates in one task of a product with the transposed data.
const TASK_COLUMNS: usize = 128;

/// Rows in one step of such a task, and of a product between blocks.
const TASK_ROWS: usize = 1024;

/// The leading principal components of some rows, and the variance of all of them together.
#[derive(Clone, Debug, PartialEq)]
pub struct Leading {
    /// The components; fewer than were asked for when the rows span fewer directions.
    pub pca: Pca,
    /// Sum of the variances along all axes.
    pub total: f64,
}

/// How many axes are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// At least so many, unless the rows span fewer directions.
    pub least: usize,
    /// At most so many.
    pub most: usize,
    /// As many of those as keep this share of the variance.
    pub share: f64,
}

/// About the leading principal components of the rows, in memory that grows with their number times the dimension.
///
/// The least number is looked for first, and the largest where those do not keep the share. The `seed` chooses the first
/// block. Asks `stop` from time to time, several times a second unless the axes are thousands; `None` when it has said
/// yes.
pub fn leading_components(
    rows: Rows<'_>,
    wanted: Wanted,
    seed: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Option<Leading> {
    let (n, d) = (rows.len(), rows.dim());
    let mean = mean(rows);
    let total = total_variance(rows, &mean);
    let most = wanted.most.min(n).min(d);
    // Variances of about 1 keep products of 32-bit numbers far from the ends of their range.
    let scale = (d as f64 / total).sqrt();
    if stop() {
        return None;
    }
    if most == 0 || !(total > 0.0 && total.is_finite() && scale.is_finite()) {
        return Some(Leading::none(&mean));
    }
    let data = Centred {
        rows,
        mean: &mean,
        scale,
        stop,
    };
    let spanned = n <= 2 * block_width(most, d) && n <= d;
    let mut r = match spanned {
        true => most,
        false => wanted.least.clamp(1, most),
    };
    let mut q = match spanned {
        true => data.transposed(),
        false => random_block(d, block_width(r, d), seed, 0),
    };
    let (mut products, mut kept_before) = (0, 0.0);
    loop {
        // The second pass removes what rounding has left of the dependence between columns.
        let width = q.cols();
        q = orthonormal(&orthonormal(&q, stop)?, stop)?;
        if q.cols() == 0 {
            return Some(Leading::none(&mean));
        }
        let along = data.times(&q)?;
        let complete = spanned || q.cols() < width || q.cols() >= n.min(d);
        // Random columns say nothing yet.
        if products > 0 || complete {
            let mut small = gram(along.as_rows());
            small.iter_mut().for_each(|v| *v /= n as f64);
            let eigen = symmetric_eigen(&small, q.cols());
            let found = r.min(q.cols());
            let kept: f64 = eigen.values[..found].iter().sum();
            let settled = products >= MAX_PRODUCTS || kept - kept_before <= SETTLED * kept;
            let enough = r == most || kept >= wanted.share * d as f64;
            if complete || settled && enough {
                let values: Vec<f64> = eigen.values[..found]
                    .iter()
                    .map(|v| v / (scale * scale))
                    .collect();
                let basis = rotate(&q, &eigen.vectors, found);
                return Some(Leading::new(&mean, &values, basis, total));
            }
            kept_before = kept;
            if settled {
                // What has been found stays, beside new columns.
                r = most;
                q = beside(&q, &random_block(d, block_width(r, d) - q.cols(), seed, 1));
                (products, kept_before) = (0, 0.0);
                continue;
            }
        }
        q = data.transposed_times(&along)?;
        products += 1;
    }
}

/// Columns that are iterated for the sake of `r` axes.
fn block_width(r: usize, d: usize) -> usize {
    (r + (r / 8).max(16)).min(d)
}

/// The columns of both.
fn beside(a: &Matrix, b: &Matrix) -> Matrix {
    let mut out = Matrix::zeros(a.rows(), a.cols() + b.cols());
    for i in 0..a.rows() {
        let (left, right) = out.row_mut(i).split_at_mut(a.cols());
        left.copy_from_slice(a.row(i));
        right.copy_from_slice(b.row(i));
    }
    out
}

impl Leading {
    /// Rows that all coincide.
    fn none(mean: &[f64]) -> Self {
        Self::new(mean, &[], Matrix::zeros(0, mean.len()), 0.0)
    }

    fn new(mean: &[f64], values: &[f64], basis: Matrix, total: f64) -> Self {
        let pca = Pca {
            mean: mean.iter().map(|m| *m as f32).collect(),
            basis,
            values: values.iter().map(|v| v.max(0.0) as f32).collect(),
        };
        Self { pca, total }
    }
}

impl Pca {
    /// Adds axes without variance until there are `count`, or as many as coordinates.
    pub fn complete(&mut self, count: usize) {
        let d = self.mean.len();
        let count = count.min(d);
        let mut axes = std::mem::replace(&mut self.basis, Matrix::zeros(0, d)).into_vec();
        let mut next = 0;
        while axes.len() < count * d && next < d {
            let mut axis = vec![0.0f64; d];
            axis[next] = 1.0;
            next += 1;
            for _ in 0..2 {
                for other in axes.chunks_exact(d) {
                    let pairs = axis.iter().zip(other);
                    let along: f64 = pairs.map(|(a, o)| a * f64::from(*o)).sum();
                    for (a, o) in axis.iter_mut().zip(other) {
                        *a -= along * f64::from(*o);
                    }
                }
            }
            let squared: f64 = axis.iter().map(|a| a * a).sum();
            // The mean of this over all coordinates is twice as much: some of them have it.
            let missing = (d - axes.len() / d) as f64;
            if squared >= missing / (2 * d) as f64 {
                let length = squared.sqrt();
                axes.extend(axis.iter().map(|a| (a / length) as f32));
                self.values.push(0.0);
            }
        }
        let found = axes.len() / d;
        let mut basis = Matrix::zeros(found, d);
        basis.as_mut_slice().copy_from_slice(&axes);
        self.basis = basis;
    }
}

/// The rows less their mean, scaled, and made in parts.
struct Centred<'a> {
    rows: Rows<'a>,
    mean: &'a [f64],
    scale: f64,
    stop: &'a (dyn Fn() -> bool + Sync),
}

impl Centred<'_> {
    /// The columns `from..to` of some rows.
    fn part(&self, rows: Rows<'_>, from: usize, to: usize) -> Vec<f32> {
        let mut out = Vec::with_capacity(rows.len() * (to - from));
        let mean = &self.mean[from..to];
        for row in rows.iter() {
            let values = row[from..to].iter().zip(mean);
            out.extend(values.map(|(x, m)| ((f64::from(*x) - m) * self.scale) as f32));
        }
        out
    }

    /// All of it, a row for every coordinate.
    fn transposed(&self) -> Matrix {
        let (n, d) = (self.rows.len(), self.rows.dim());
        let mut out = Matrix::zeros(d, n);
        for (i, row) in self.rows.iter().enumerate() {
            let values = row.iter().zip(self.mean);
            for (out, (x, m)) in out.as_mut_slice().chunks_exact_mut(n).zip(values) {
                out[i] = ((f64::from(*x) - m) * self.scale) as f32;
            }
        }
        out
    }

    /// Times a block of columns; `None` when it was stopped.
    fn times(&self, q: &Matrix) -> Option<Matrix> {
        let (n, d, width) = (self.rows.len(), q.rows(), q.cols());
        let height = (TASK_VALUES / d).clamp(32, TASK_ROWS);
        let mut out = Matrix::zeros(n, width);
        let tasks = out.as_mut_slice().par_chunks_mut(height * width);
        tasks.enumerate().try_for_each(|(task, out)| {
            if (self.stop)() {
                return None;
            }
            let first = task * height;
            let count = out.len() / width;
            let x = self.part(self.rows.slice(first..first + count), 0, d);
            let q = q.as_slice();
            gemm(
                out,
                Operand::new(&x, count, d),
                Operand::new(q, d, width),
                1.0,
                0.0,
            );
            Some(())
        })?;
        Some(out)
    }

    /// Transposed, times a block with a row for every row; `None` when it was stopped.
    fn transposed_times(&self, along: &Matrix) -> Option<Matrix> {
        let (n, d, width) = (self.rows.len(), self.rows.dim(), along.cols());
        let mut out = Matrix::zeros(d, width);
        let tasks = out.as_mut_slice().par_chunks_mut(TASK_COLUMNS * width);
        tasks.enumerate().try_for_each(|(task, out)| {
            let from = task * TASK_COLUMNS;
            let columns = out.len() / width;
            for first in (0..n).step_by(TASK_ROWS) {
                if (self.stop)() {
                    return None;
                }
                let end = (first + TASK_ROWS).min(n);
                let x = self.part(self.rows.slice(first..end), from, from + columns);
                let along = &along.as_slice()[first * width..end * width];
                gemm(
                    out,
                    Operand::transposed(&x, end - first, columns),
                    Operand::new(along, end - first, width),
                    1.0,
                    1.0,
                );
            }
            Some(())
        })?;
        Some(out)
    }
}

fn random_block(d: usize, width: usize, seed: u64, task: u64) -> Matrix {
    let mut rng = random_stream(seed, task);
    let mut block = Matrix::zeros(d, width);
    for value in block.as_mut_slice() {
        *value = (uniform_unit(&mut rng) - 0.5) as f32;
    }
    block
}

fn total_variance(rows: Rows<'_>, mean: &[f64]) -> f64 {
    let mut total = [0.0];
    sum_over_chunks(rows, &mut total, |chunk, out: &mut Vec<f64>| {
        for row in chunk.iter() {
            let squares = row.iter().zip(mean).map(|(x, m)| {
                let difference = f64::from(*x) - m;
                difference * difference
            });
            out[0] += squares.sum::<f64>();
        }
    });
    total[0] / rows.len().max(1) as f64
}

fn widened(values: &[f32]) -> Vec<f64> {
    values.iter().map(|v| f64::from(*v)).collect()
}

/// Inner products between all columns.
fn gram(rows: Rows<'_>) -> Vec<f64> {
    let width = rows.dim();
    let mut total = vec![0.0; width * width];
    sum_over_chunks(rows, &mut total, |chunk, out: &mut Vec<f64>| {
        let x = widened(chunk.data());
        let n = chunk.len();
        gemm64(
            out,
            Operand::transposed(&x, n, width),
            Operand::new(&x, n, width),
            1.0,
            false,
        );
    });
    total
}

/// An orthonormal basis of what the columns span, as columns, the main directions first; `None` when it was stopped.
fn orthonormal(q: &Matrix, stop: &(dyn Fn() -> bool + Sync)) -> Option<Matrix> {
    let width = q.cols();
    let products = gram(q.as_rows());
    if stop() {
        return None;
    }
    let mut eigen = symmetric_eigen(&products, width);
    let largest = eigen.values.first().copied().unwrap_or(0.0);
    let counts = |v: &&f64| largest > 0.0 && **v > DEPENDENT * largest;
    let kept = eigen.values.iter().take_while(counts).count();
    if kept == 0 {
        return Some(Matrix::zeros(q.rows(), 0));
    }
    let ways = eigen.vectors.chunks_exact_mut(width);
    for (way, value) in ways.zip(&eigen.values).take(kept) {
        way.iter_mut().for_each(|v| *v /= value.sqrt());
    }
    if stop() {
        return None;
    }
    let mut out = Matrix::zeros(q.rows(), kept);
    let tasks = out.as_mut_slice().par_chunks_mut(TASK_ROWS * kept);
    let tasks = tasks.zip(q.as_slice().par_chunks(TASK_ROWS * width));
    tasks.for_each(|(out, q)| {
        for (out, v) in out.iter_mut().zip(combined(q, &eigen.vectors, kept, width)) {
            *out = v as f32;
        }
    });
    Some(out)
}

/// Rows of `width` values times the first `kept` rows of `ways`, transposed.
fn combined(q: &[f32], ways: &[f64], kept: usize, width: usize) -> Vec<f64> {
    let (q, count) = (widened(q), q.len() / width);
    let mut out = vec![0.0; count * kept];
    gemm64(
        &mut out,
        Operand::new(&q, count, width),
        Operand::transposed(ways, kept, width),
        1.0,
        false,
    );
    out
}

/// The columns of a block combined by the first rows of `ways`, as rows whose entry of largest magnitude is positive.
fn rotate(q: &Matrix, ways: &[f64], count: usize) -> Matrix {
    let (d, width) = (q.rows(), q.cols());
    let tasks = q.as_slice().par_chunks(TASK_ROWS * width);
    let parts: Vec<Vec<f64>> = tasks.map(|q| combined(q, ways, count, width)).collect();
    let mut basis = Matrix::zeros(count, d);
    let mut axis = Vec::with_capacity(d);
    for i in 0..count {
        axis.clear();
        axis.extend(parts.iter().flat_map(|p| p.iter().skip(i).step_by(count)));
        let sign = dominant_sign(&axis);
        for (out, v) in basis.row_mut(i).iter_mut().zip(&axis) {
            *out = (sign * v) as f32;
        }
    }
    basis
}
