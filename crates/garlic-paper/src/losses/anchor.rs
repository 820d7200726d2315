//! The anchor loss: a cell should lie where its points lie and have their shape.
//!
//! A cell's loss is |mean - c|² + alpha |L Lᵀ - S|², with c and S the mean and covariance of its points: those within tau
//! of it or nearest to it, or the nearest alone. Both are taken as fixed. The derivative of the shape term by L is 4 tril((L Lᵀ - S) L).

use garlic_linalg::{
    lower_accumulate_outer, lower_gram, lower_of_symmetric_times_lower, mirror_lower,
};

use super::divergence::CHUNK;
use super::{CellBatch, Scratch};

/// Adds the pull on the mean; returns the squared distance to the points' mean.
pub(super) fn mean(batch: &CellBatch<'_>, gradient: &mut [f32]) -> f64 {
    if batch.anchors.is_empty() {
        return 0.0;
    }
    let mut squared = 0.0;
    for ((g, m), c) in gradient.iter_mut().zip(batch.mean).zip(batch.centre) {
        let difference = f64::from(*m) - c;
        squared += difference * difference;
        *g += (2.0 * batch.anchor * difference) as f32;
    }
    squared
}

/// Whether the shape term counts: one point has no covariance.
fn has_shape(batch: &CellBatch<'_>) -> bool {
    batch.anchors.len() >= 2 && batch.shape > 0.0 && batch.anchor > 0.0
}

/// Adds to the gradient of a full factor in `scratch`; returns the squared shape error.
pub(super) fn full_shape(batch: &CellBatch<'_>, scratch: &mut Scratch) -> f64 {
    if !has_shape(batch) {
        return 0.0;
    }
    let (dim, count) = (batch.mean.len(), batch.anchors.len());
    let Scratch {
        factor,
        difference,
        gradient,
        rows,
        ..
    } = scratch;
    lower_gram(difference, factor, dim);
    for ids in batch.anchors.chunks(CHUNK) {
        rows.clear();
        for p in ids {
            let row = batch.points.row(*p as usize).iter();
            let centred = row.zip(batch.centre);
            rows.extend(centred.map(|(x, c)| (f64::from(*x) - c) as f32));
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
    mirror_lower(difference, dim);
    let alpha = (4.0 * batch.shape * batch.anchor) as f32;
    lower_of_symmetric_times_lower(gradient, difference, factor, dim, alpha, 1.0);
    error
}

/// Adds to the gradient of a diagonal factor; returns the squared shape error.
///
/// It leaves out the off-diagonal entries of the covariance: no parameter can change them.
pub(super) fn simple_shape(batch: &CellBatch<'_>, scales: &mut [f64]) -> f64 {
    if !has_shape(batch) {
        return 0.0;
    }
    let count = batch.anchors.len() as f64;
    let mut variances = vec![0.0f64; scales.len()];
    for p in batch.anchors {
        let row = batch.points.row(*p as usize).iter().zip(batch.centre);
        for (v, (x, c)) in variances.iter_mut().zip(row) {
            *v += (f64::from(*x) - c).powi(2) / count;
        }
    }
    let mut error = 0.0;
    for (i, variance) in variances.iter().enumerate() {
        let scale = batch.scale(i);
        let difference = scale * scale - variance;
        error += difference * difference;
        scales[i] += 4.0 * batch.shape * batch.anchor * difference * scale;
    }
    error
}
