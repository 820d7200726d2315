//! The space that cells live in, spanned by the leading principal axes of the data.
//!
//! In: vectors. Out: a [`Transform`] that subtracts the mean and projects onto the axes, and the squared distance of
//! each vector from that space. Exact distances are always computed between the vectors themselves.

mod int8;
mod points;
pub(crate) mod robust;

pub(crate) use int8::Int8Rotation;
pub(crate) use points::{BLOCK_MULTIPLE, Points};

use crate::config::TransformOptions;
use garlic_core::{Cancel, Error, Result, Transform};
use garlic_linalg::{Leading, Matrix, Rows, Wanted, leading_components, pca, permutation};
use rayon::prelude::*;

/// Number of rows that the axes are fitted to. More rows hardly change them.
pub(crate) const SAMPLE_ROWS: usize = 25_000;
/// Number of axes that are cheap compared with the rest of a query, and the share of the variance that they may keep.
const CHEAP_AXES: usize = 96;
const CHEAP_VARIANCE: f64 = 0.95;
/// Largest dimension for which all axes are computed. Above it, only the leading ones are.
const MAX_FULL_PCA_DIM: usize = 800;
/// Upper limit of the number of values of the axes.
const MAX_AXIS_VALUES: usize = 1 << 28;
/// Random stream of the sample.
const SAMPLE_STREAM: u64 = 0x0707;

/// Fits the principal axes of `rows` without scaling.
///
/// The number of axes is a multiple of 16. They keep the share `keep_variance` of the variance, but there are at most
/// `max_dim`. The first [`CHEAP_AXES`] may keep more, up to [`CHEAP_VARIANCE`]. Clusters that are far apart dominate
/// the variance, so the axes also have to separate neighbours.
pub(crate) fn fit(
    rows: Rows<'_>,
    options: &TransformOptions,
    seed: u64,
    cancel: &Cancel,
) -> Result<Transform> {
    let sample = sample_rows(rows.len(), seed).map(|ids| Matrix::gather(rows, &ids));
    let sample = sample.as_ref().map_or(rows, Matrix::as_rows);
    fit_sample(sample, options, seed, cancel)
}

/// The rows that the axes are fitted to, in order, or `None` for all of them.
pub(crate) fn sample_rows(rows: usize, seed: u64) -> Option<Vec<u32>> {
    if rows <= SAMPLE_ROWS {
        return None;
    }
    let mut ids = permutation(rows, seed, SAMPLE_STREAM);
    ids.truncate(SAMPLE_ROWS);
    ids.sort_unstable();
    Some(ids)
}

/// [`fit`] to the rows of [`sample_rows`].
pub(crate) fn fit_sample(
    sample: Rows<'_>,
    options: &TransformOptions,
    seed: u64,
    cancel: &Cancel,
) -> Result<Transform> {
    let (keep, most) = (options.keep_variance, options.max_dim);
    // A few rows far away would dominate the axes.
    let pulled = robust::winsorised(sample);
    let sampled = pulled.as_ref().map_or(sample, Matrix::as_rows);
    let dim = sample.dim();
    let Leading {
        pca: mut fitted,
        total,
    } = axes(sampled, keep, most, seed, cancel)?;
    let needed = |share: f64| {
        let mut kept = 0.0;
        let enough = fitted.values.iter().position(|v| {
            kept += f64::from(*v);
            kept >= share * total
        });
        enough.map_or(fitted.values.len().max(1), |last| last + 1)
    };
    let local = robust::axes_between_neighbours(sampled, fitted.basis.as_rows());
    let needed = needed(keep)
        .max(needed(CHEAP_VARIANCE).min(CHEAP_AXES))
        .max(local);
    let count = needed.min(most).next_multiple_of(16).min(dim);
    fitted.complete(count);
    let mut rotation = fitted.basis.into_vec();
    rotation.truncate(count * dim);
    Ok(Transform {
        mean: fitted.mean,
        scale: vec![1.0; dim],
        rotation: Some(Matrix::from_vec(rotation, dim)?),
    })
}

/// The leading principal axes of `rows`: enough for the share `keep` of the variance, at least [`CHEAP_AXES`], at
/// most `most`. There may be more.
fn axes(rows: Rows<'_>, keep: f64, most: usize, seed: u64, cancel: &Cancel) -> Result<Leading> {
    let dim = rows.dim();
    if dim <= MAX_FULL_PCA_DIM {
        let pca = pca(rows);
        cancel.check()?;
        let total = pca.values.iter().map(|v| f64::from(*v)).sum();
        return Ok(Leading { pca, total });
    }
    let most = most.min(dim).next_multiple_of(16).min(dim);
    let found = most.min(rows.len());
    if found.saturating_mul(dim) > MAX_AXIS_VALUES {
        let affordable = MAX_AXIS_VALUES / dim;
        return Err(Error::Config {
            key: "max_dim".into(),
            message: format!(
                "{found} axes of vectors with {dim} coordinates do not fit in memory; use at most {affordable}"
            ),
        });
    }
    let stop = || cancel.check().is_err();
    let wanted = Wanted {
        least: CHEAP_AXES,
        most,
        share: keep,
    };
    leading_components(rows, wanted, seed ^ SAMPLE_STREAM, &stop).ok_or(Error::Cancelled)
}

/// Squared distance of a point from a space, given its squared distance `whole` from the origin and its coordinates
/// `inside` the space. Rounding cannot make it negative.
#[inline]
pub(crate) fn residual_squared(whole: f32, inside: &[f32]) -> f32 {
    (whole - garlic_simd::dot(inside, inside)).max(0.0)
}

/// Squared distance of every vector from the truncated space. `points` are the transformed vectors.
pub(crate) fn residuals_squared(
    vectors: Rows<'_>,
    space: &Transform,
    points: Rows<'_>,
) -> Vec<f32> {
    // The full space contains every vector. Rounding would suggest otherwise far from the mean.
    if space.out_dim() == space.dim() {
        return vec![0.0; vectors.len()];
    }
    (0..vectors.len())
        .into_par_iter()
        .with_min_len(256)
        .map(|i| {
            let whole = garlic_simd::l2_squared(vectors.row(i), &space.mean);
            residual_squared(whole, points.row(i))
        })
        .collect()
}
