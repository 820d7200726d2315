//! Gradients of a cell with a diagonal or isotropic factor.

use super::CellBatch;
use crate::model::{Factors, Gaussians};

/// Adds one cell's divergence term to the mean's gradient and writes the factor's; returns the squared shape
/// error.
///
/// The shape error leaves out the off-diagonal entries of the covariance: no parameter can change them.
pub(super) fn gradient(
    batch: &CellBatch<'_>,
    model: &Gaussians,
    cell: usize,
    mean_gradient: &mut [f32],
    factor_gradient: &mut [f32],
) -> f64 {
    let factor = model.factor(cell);
    let isotropic = matches!(model.factors, Factors::Isotropic(_));
    let scale = |i: usize| f64::from(factor[if isotropic { 0 } else { i }]);
    let dim = model.dim();
    let mut means = vec![0.0f64; dim];
    let mut scales = vec![0.0f64; dim];

    let mut whitened = vec![0.0f64; dim];
    for p in batch.outside {
        let row = batch.points.row(*p as usize).iter().zip(model.mean(cell));
        for (i, (x, m)) in row.enumerate() {
            whitened[i] = (f64::from(*x) - f64::from(*m)) / scale(i);
        }
        let length = whitened.iter().map(|v| v * v).sum::<f64>().sqrt();
        for (i, y) in whitened.iter().enumerate() {
            let turned = y / length / scale(i);
            means[i] -= f64::from(batch.divergence) * turned;
            scales[i] -= f64::from(batch.divergence) * turned * y;
        }
    }

    let mut error = 0.0;
    let count = batch.nearest.len();
    if count >= 2 && batch.shape > 0.0 && batch.anchor > 0.0 {
        let mut variances = vec![0.0f64; dim];
        for p in batch.nearest {
            let row = batch.points.row(*p as usize).iter().zip(batch.centre);
            for (v, (x, c)) in variances.iter_mut().zip(row) {
                *v += (f64::from(*x) - c).powi(2) / count as f64;
            }
        }
        for (i, variance) in variances.iter().enumerate() {
            let difference = scale(i) * scale(i) - variance;
            error += difference * difference;
            scales[i] += 4.0 * batch.shape * batch.anchor * difference * scale(i);
        }
    }

    for (g, m) in mean_gradient.iter_mut().zip(means) {
        *g += m as f32;
    }
    if isotropic {
        factor_gradient[0] = scales.iter().sum::<f64>() as f32;
    } else {
        for (g, s) in factor_gradient.iter_mut().zip(scales) {
            *g = s as f32;
        }
    }
    error
}
