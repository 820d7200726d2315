//! The divergence loss: points outside every cell should come inside.
//!
//! A point's loss is its Mahalanobis distance to the nearest cell less tau, and zero inside. With y = L⁻¹(x - mean),
//! u = y/|y| and t = L⁻ᵀu the derivatives of |y| are -t by the mean and -tril(t yᵀ) by L.

use garlic_linalg::{lower_accumulate_outer, solve_lower, solve_lower_transpose};

use super::{CellBatch, Scratch};
use crate::gaussians::Assignment;

/// Points whose rows are gathered at a time.
pub(super) const CHUNK: usize = 1024;

/// Sum of the distances of points to the border of their nearest cell.
pub(super) fn loss(assignment: &Assignment, tau: f32) -> f64 {
    let distances = assignment.distance.iter();
    distances.map(|d| f64::from((d - tau).max(0.0))).sum()
}

/// Adds to the gradients of the mean and, in `scratch`, of a full factor.
pub(super) fn full(batch: &CellBatch<'_>, scratch: &mut Scratch, mean_gradient: &mut [f32]) {
    let dim = batch.mean.len();
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
            let row = batch.points.row(*p as usize).iter();
            rows.extend(row.zip(batch.mean).map(|(x, m)| x - m));
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

/// Adds to the gradients of the mean and of a diagonal factor.
pub(super) fn simple(batch: &CellBatch<'_>, means: &mut [f64], scales: &mut [f64]) {
    let mut whitened = vec![0.0f64; batch.mean.len()];
    for p in batch.outside {
        let row = batch.points.row(*p as usize).iter().zip(batch.mean);
        for (i, (x, m)) in row.enumerate() {
            whitened[i] = (f64::from(*x) - f64::from(*m)) / batch.scale(i);
        }
        let length = whitened.iter().map(|v| v * v).sum::<f64>().sqrt();
        for (i, y) in whitened.iter().enumerate() {
            let turned = y / length / batch.scale(i);
            means[i] -= f64::from(batch.divergence) * turned;
            scales[i] -= f64::from(batch.divergence) * turned * y;
        }
    }
}
