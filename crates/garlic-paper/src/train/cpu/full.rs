//! Gradients of a cell with a full Cholesky factor: all products are matrix products.

use garlic_linalg::{
    lower_accumulate_outer, lower_gram, lower_of_symmetric_times_lower, solve_lower,
    solve_lower_transpose,
};

use super::CellBatch;
use crate::model::{Factors, Gaussians};

/// Points whose rows are gathered at a time.
const CHUNK: usize = 1024;

/// Square matrices of one worker.
pub(super) struct Scratch {
    factor: Vec<f32>,
    difference: Vec<f32>,
    gradient: Vec<f32>,
    rows: Vec<f32>,
    turned: Vec<f32>,
}

impl Scratch {
    /// Scratch for the model's structure; empty when there is no full factor.
    pub(super) fn for_model(model: &Gaussians) -> Self {
        let square = match model.factors {
            Factors::Full(_) => model.dim() * model.dim(),
            _ => 0,
        };
        Self {
            factor: vec![0.0; square],
            difference: vec![0.0; square],
            gradient: vec![0.0; square],
            rows: Vec::new(),
            turned: Vec::new(),
        }
    }
}

/// Adds one cell's divergence term to the mean's gradient and writes the factor's; returns the squared shape
/// error.
pub(super) fn gradient(
    batch: &CellBatch<'_>,
    model: &Gaussians,
    cell: usize,
    scratch: &mut Scratch,
    mean_gradient: &mut [f32],
    factor_gradient: &mut [f32],
) -> f64 {
    let dim = model.dim();
    unpack(model.factor(cell), &mut scratch.factor, dim);
    scratch.gradient.fill(0.0);
    divergence(batch, model.mean(cell), scratch, mean_gradient);
    let shape_error = shape(batch, scratch, dim);
    pack(&scratch.gradient, factor_gradient, dim);
    shape_error
}

/// With y = L⁻¹(x - mean), u = y/|y| and t = L⁻ᵀu: d|y|/d mean = -t, d|y|/dL = -tril(t uᵀ|y|)= -tril(t yᵀ).
fn divergence(
    batch: &CellBatch<'_>,
    mean: &[f32],
    scratch: &mut Scratch,
    mean_gradient: &mut [f32],
) {
    let dim = mean.len();
    if batch.divergence == 0.0 {
        return;
    }
    for ids in batch.outside.chunks(CHUNK) {
        let Scratch {
            factor,
            gradient,
            rows,
            turned,
            ..
        } = scratch;
        rows.clear();
        for p in ids {
            rows.extend(
                batch
                    .points
                    .row(*p as usize)
                    .iter()
                    .zip(mean)
                    .map(|(x, m)| x - m),
            );
        }
        solve_lower(factor, dim, rows, ids.len());
        turned.clear();
        for y in rows.chunks_exact(dim) {
            let length = garlic_simd::dot(y, y).sqrt();
            turned.extend(y.iter().map(|v| v / length));
        }
        solve_lower_transpose(factor, dim, turned, ids.len());
        lower_accumulate_outer(
            gradient,
            turned,
            rows,
            ids.len(),
            dim,
            -batch.divergence,
            1.0,
        );
        let mut sum = vec![0.0f64; dim];
        for t in turned.chunks_exact(dim) {
            for (s, v) in sum.iter_mut().zip(t) {
                *s += f64::from(*v);
            }
        }
        for (g, s) in mean_gradient.iter_mut().zip(sum) {
            *g -= batch.divergence * s as f32;
        }
    }
}

/// |L Lᵀ - S|² with S the covariance of the cell's points; its derivative is 4 tril((L Lᵀ - S) L).
fn shape(batch: &CellBatch<'_>, scratch: &mut Scratch, dim: usize) -> f64 {
    let count = batch.nearest.len();
    if count < 2 || batch.shape == 0.0 || batch.anchor == 0.0 {
        return 0.0;
    }
    let Scratch {
        factor,
        difference,
        gradient,
        rows,
        ..
    } = scratch;
    lower_gram(difference, factor, dim);
    for ids in batch.nearest.chunks(CHUNK) {
        rows.clear();
        for p in ids {
            let row = batch.points.row(*p as usize).iter();
            rows.extend(
                row.zip(batch.centre)
                    .map(|(x, c)| (f64::from(*x) - c) as f32),
            );
        }
        lower_accumulate_outer(
            difference,
            rows,
            rows,
            ids.len(),
            dim,
            -1.0 / count as f32,
            1.0,
        );
    }
    let mut error = 0.0f64;
    for i in 0..dim {
        let row = &difference[i * dim..i * dim + i];
        error += 2.0 * f64::from(garlic_simd::dot(row, row))
            + f64::from(difference[i * dim + i]).powi(2);
    }
    mirror(difference, dim);
    let alpha = (4.0 * batch.shape * batch.anchor) as f32;
    lower_of_symmetric_times_lower(gradient, difference, factor, dim, alpha, 1.0);
    error
}

/// Copies the lower triangle to the upper one, in squares that fit the nearest cache.
fn mirror(square: &mut [f32], dim: usize) {
    const SIDE: usize = 32;
    for i0 in (0..dim).step_by(SIDE) {
        for j0 in (0..=i0).step_by(SIDE) {
            for i in i0..(i0 + SIDE).min(dim) {
                for j in j0..(j0 + SIDE).min(i) {
                    square[j * dim + i] = square[i * dim + j];
                }
            }
        }
    }
}

/// Packed rows to a square with zeros above the diagonal.
fn unpack(packed: &[f32], square: &mut [f32], dim: usize) {
    let mut rest = packed;
    for (i, row) in square.chunks_exact_mut(dim).enumerate() {
        let (own, after) = rest.split_at(i + 1);
        row[..=i].copy_from_slice(own);
        row[i + 1..].fill(0.0);
        rest = after;
    }
}

fn pack(square: &[f32], packed: &mut [f32], dim: usize) {
    let mut rest = packed;
    for (i, row) in square.chunks_exact(dim).enumerate() {
        let (own, after) = rest.split_at_mut(i + 1);
        own.copy_from_slice(&row[..=i]);
        rest = after;
    }
}
