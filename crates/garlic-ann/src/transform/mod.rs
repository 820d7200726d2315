//! The space that cells live in: the leading principal axes of the data.
//!
//! In: vectors. Out: a [`Transform`] that subtracts the mean and projects onto the axes, and for every vector its squared
//! distance from that space. Exact distances are always taken between the vectors themselves.

pub(crate) mod robust;

use crate::config::TransformOptions;
use garlic_core::{Cancel, Error, Result, Transform};
use garlic_linalg::{Leading, Matrix, Rows, Wanted, leading_components, pca, permutation};
use rayon::prelude::*;

/// Rows that the axes are fitted to; more change nothing that matters.
const SAMPLE: usize = 25_000;
/// Axes that cost little beside the rest of a query, and the share of the variance that they may keep.
const CHEAP: usize = 96;
const CHEAP_KEEP: f64 = 0.95;
/// Coordinates up to which all axes are computed before the leading ones are chosen; of more, that takes too long.
const ALL_AXES: usize = 800;
/// Values of the axes at most: a gigabyte, and a few times that while they are fitted.
const MOST_AXIS_VALUES: usize = 1 << 28;
/// Stream of the random choice of the sample.
const SAMPLE_STREAM: u64 = 0x0707;

/// Principal axes of `rows`, as many as keep the share `keep` of their variance but at most `most`, in whole
/// multiples of 16; nothing is scaled. The first [`CHEAP`] axes may keep more, up to [`CHEAP_KEEP`]. CoarseQuantizer far apart would
/// own all variance, so the axes also have to tell neighbours apart.
pub(crate) fn fit(
    rows: Rows<'_>,
    options: &TransformOptions,
    seed: u64,
    cancel: &Cancel,
) -> Result<Transform> {
    let (keep, most) = (options.keep_variance, options.max_dim);
    let sample = if rows.len() > SAMPLE {
        let mut ids = permutation(rows.len(), seed, SAMPLE_STREAM);
        ids.truncate(SAMPLE);
        ids.sort_unstable();
        Some(Matrix::gather(rows, &ids))
    } else {
        None
    };
    let sample = sample.as_ref().map_or(rows, Matrix::as_rows);
    // A few rows far away would own the axes.
    let pulled = robust::winsorised(sample);
    let sampled = pulled.as_ref().map_or(sample, Matrix::as_rows);
    let dim = rows.dim();
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
    let needed = needed(keep).max(needed(CHEAP_KEEP).min(CHEAP)).max(local);
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

/// The leading principal axes of `rows`, as many as keep the share `keep` of their variance or [`CHEAP`], but at most
/// `most`; more are no harm.
fn axes(rows: Rows<'_>, keep: f64, most: usize, seed: u64, cancel: &Cancel) -> Result<Leading> {
    let dim = rows.dim();
    if dim <= ALL_AXES {
        let pca = pca(rows);
        cancel.check()?;
        let total = pca.values.iter().map(|v| f64::from(*v)).sum();
        return Ok(Leading { pca, total });
    }
    let most = most.min(dim).next_multiple_of(16).min(dim);
    let found = most.min(rows.len());
    if found.saturating_mul(dim) > MOST_AXIS_VALUES {
        let affordable = MOST_AXIS_VALUES / dim;
        return Err(Error::Config {
            key: "max_dim".into(),
            message: format!(
                "{found} axes of vectors with {dim} coordinates do not fit in memory; use at most {affordable}"
            ),
        });
    }
    let stop = || cancel.check().is_err();
    let wanted = Wanted {
        least: CHEAP,
        most,
        share: keep,
    };
    leading_components(rows, wanted, seed ^ SAMPLE_STREAM, &stop).ok_or(Error::Cancelled)
}

/// Squared distance from a space of a point whose squared distance from the origin is `whole`, and whose coordinates in
/// that space are `inside`. Rounding does not make it negative.
#[inline]
pub(crate) fn beyond(whole: f32, inside: &[f32]) -> f32 {
    (whole - garlic_simd::dot(inside, inside)).max(0.0)
}

/// Squared distance of every vector from the truncated space that `points` are its images in.
pub(crate) fn outside(vectors: Rows<'_>, space: &Transform, points: Rows<'_>) -> Vec<f32> {
    // Nothing lies outside of the whole space; rounding would say otherwise, far from the mean.
    if space.out_dim() == space.dim() {
        return vec![0.0; vectors.len()];
    }
    (0..vectors.len())
        .into_par_iter()
        .with_min_len(256)
        .map(|i| {
            let whole = garlic_simd::l2_squared(vectors.row(i), &space.mean);
            beyond(whole, points.row(i))
        })
        .collect()
}
