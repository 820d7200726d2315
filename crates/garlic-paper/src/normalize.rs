//! The space the model lives in: the data normalised and rotated.
//!
//! With global normalisation the change is a similarity: neighbours stay neighbours. Exact distances are
//! always taken in the original space.

use garlic_linalg::{
    Leading, Matrix, Rows, Trans, Wanted, gemm, leading_components, pca, permutation,
};
use rayon::prelude::*;

use crate::cancel::Cancel;
use crate::config::Normalize;
use crate::error::{Error, Result};
use crate::robust;

/// Rows that the principal axes are fitted to; more change nothing that matters.
const ROTATION_SAMPLE: usize = 100_000;
/// Rows that truncated axes are fitted to.
const TRUNCATION_SAMPLE: usize = 25_000;
/// Axes that cost little beside the rest of a query, and the share of the variance that they may keep.
const CHEAP: usize = 96;
const CHEAP_KEEP: f64 = 0.95;
/// Coordinates up to which all axes are computed before the leading ones are chosen; of more, that takes too long.
const ALL_AXES: usize = 800;
/// Values of the axes at most: a gigabyte, and a few times that while they are fitted.
const MOST_AXIS_VALUES: usize = 1 << 28;
/// Stream of the random choice of those rows.
const ROTATION_STREAM: u64 = 0x0707;
/// Rows transformed by one task, fewer of those with more than a thousand coordinates.
const CHUNK: usize = 512;

/// An affine change of coordinates: subtract, scale, rotate.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    /// What is subtracted.
    pub(crate) mean: Vec<f32>,
    /// What each coordinate is multiplied by afterwards.
    pub(crate) scale: Vec<f32>,
    /// Principal axes, one a row; `None` when the coordinates stay.
    pub(crate) rotation: Option<Matrix>,
}

impl Space {
    /// Fits normalisation and principal axes to `rows`.
    pub(crate) fn fit(
        rows: Rows<'_>,
        normalize: Normalize,
        rotate: bool,
        seed: u64,
        cancel: &Cancel,
    ) -> Result<Self> {
        let moments = Moments::of(rows);
        cancel.check()?;
        let dim = rows.dim();
        let scale = match normalize {
            Normalize::Global => vec![inverse_deviation(moments.global_variance(), 1.0); dim],
            Normalize::PerCoordinate => {
                // A constant coordinate tells nothing apart: it becomes zero.
                moments
                    .variances()
                    .map(|v| inverse_deviation(v, 0.0))
                    .collect()
            }
            Normalize::None => vec![1.0; dim],
        };
        let mut space = Self {
            mean: moments.mean.iter().map(|m| *m as f32).collect(),
            scale,
            rotation: None,
        };
        if rotate && dim > 1 {
            let sample = if rows.len() > ROTATION_SAMPLE {
                let mut ids = permutation(rows.len(), seed, ROTATION_STREAM);
                ids.truncate(ROTATION_SAMPLE);
                ids.sort_unstable();
                space.apply_all(Matrix::gather(rows, &ids).as_rows(), cancel)?
            } else {
                space.apply_all(rows, cancel)?
            };
            cancel.check()?;
            space.rotation = Some(pca(sample.as_rows()).basis);
        }
        Ok(space)
    }

    /// Principal axes of `rows`, as many as keep the share `keep` of their variance but at most `most`, in whole
    /// multiples of 16; nothing is scaled. The first [`CHEAP`] axes may keep more, up to [`CHEAP_KEEP`]. Groups far apart would
    /// own all variance, so the axes also have to tell neighbours apart.
    pub(crate) fn fit_truncated(
        rows: Rows<'_>,
        keep: f64,
        most: usize,
        seed: u64,
        cancel: &Cancel,
    ) -> Result<Self> {
        let sample = if rows.len() > TRUNCATION_SAMPLE {
            let mut ids = permutation(rows.len(), seed, ROTATION_STREAM);
            ids.truncate(TRUNCATION_SAMPLE);
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
        Ok(Self {
            mean: fitted.mean,
            scale: vec![1.0; dim],
            rotation: Some(Matrix::from_vec(rotation, dim)?),
        })
    }

    /// Dimension of the vectors.
    pub fn dim(&self) -> usize {
        self.mean.len()
    }

    /// Dimension of the space itself; smaller than [`Space::dim`] when it is truncated.
    pub fn out_dim(&self) -> usize {
        self.rotation.as_ref().map_or(self.dim(), Matrix::rows)
    }

    /// Maps one vector. Panics when a length is not [`Space::dim`], or [`Space::out_dim`] for `out`.
    pub fn apply(&self, row: &[f32], out: &mut [f32]) {
        match &self.rotation {
            None => self.normalise(row, out),
            Some(rotation) => {
                let mut centred = vec![0.0; row.len()];
                self.normalise(row, &mut centred);
                for (axis, value) in rotation.as_rows().iter().zip(out) {
                    *value = garlic_simd::dot(axis, &centred);
                }
            }
        }
    }

    /// Multiply-adds of [`Space::apply`].
    pub(crate) fn apply_madds(&self) -> u64 {
        let dim = self.dim() as u64;
        dim + self.rotation.as_ref().map_or(0, |r| dim * r.rows() as u64)
    }

    /// Maps all rows, in parallel.
    pub(crate) fn apply_all(&self, rows: Rows<'_>, cancel: &Cancel) -> Result<Matrix> {
        let (dim, wide) = (self.dim(), self.out_dim());
        let chunk = (CHUNK * 1024 / dim).clamp(32, CHUNK);
        let mut out = Matrix::zeros(rows.len(), wide);
        out.as_mut_slice()
            .par_chunks_mut(chunk * wide)
            .zip(rows.data().par_chunks(chunk * dim))
            .try_for_each(|(out, rows)| -> Result<()> {
                cancel.check()?;
                let Some(rotation) = &self.rotation else {
                    self.normalise(rows, out);
                    return Ok(());
                };
                let mut centred = vec![0.0; rows.len()];
                self.normalise(rows, &mut centred);
                let count = rows.len() / dim;
                let axes = rotation.as_slice();
                gemm(
                    out,
                    &centred,
                    Trans::No,
                    axes,
                    Trans::Yes,
                    count,
                    wide,
                    dim,
                    1.0,
                    0.0,
                );
                Ok(())
            })?;
        Ok(out)
    }

    fn normalise(&self, rows: &[f32], out: &mut [f32]) {
        let dim = self.dim();
        for (row, out) in rows.chunks_exact(dim).zip(out.chunks_exact_mut(dim)) {
            for (((o, x), m), s) in out.iter_mut().zip(row).zip(&self.mean).zip(&self.scale) {
                *o = (x - m) * s;
            }
        }
    }
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
    leading_components(rows, wanted, seed ^ ROTATION_STREAM, &stop).ok_or(Error::Cancelled)
}

/// Squared distance from a space of a point whose squared distance from the origin is `whole`, and whose coordinates in
/// that space are `inside`. Rounding does not make it negative.
#[inline]
pub(crate) fn beyond(whole: f32, inside: &[f32]) -> f32 {
    (whole - garlic_simd::dot(inside, inside)).max(0.0)
}

/// One over the square root, or `otherwise` when there is no variance to speak of.
fn inverse_deviation(variance: f64, otherwise: f32) -> f32 {
    let inverse = 1.0 / variance.sqrt();
    if variance > 0.0 && inverse.is_finite() && (inverse as f32).is_finite() {
        inverse as f32
    } else {
        otherwise
    }
}

/// First and second moments of every coordinate, in f64, summed chunk by chunk in order.
struct Moments {
    count: f64,
    mean: Vec<f64>,
    /// Mean of the squared differences from the mean, times the count.
    squares: Vec<f64>,
}

impl Moments {
    fn of(rows: Rows<'_>) -> Self {
        let dim = rows.dim();
        let sum = |term: &(dyn Fn(usize, f64) -> f64 + Sync)| -> Vec<f64> {
            let parts: Vec<Vec<f64>> = rows
                .data()
                .par_chunks(CHUNK * 16 * dim)
                .map(|chunk| {
                    let mut part = vec![0.0; dim];
                    for row in chunk.chunks_exact(dim) {
                        for (j, (p, x)) in part.iter_mut().zip(row).enumerate() {
                            *p += term(j, f64::from(*x));
                        }
                    }
                    part
                })
                .collect();
            let mut total = vec![0.0; dim];
            for part in parts {
                for (t, p) in total.iter_mut().zip(part) {
                    *t += p;
                }
            }
            total
        };
        let count = rows.len() as f64;
        let mean: Vec<f64> = sum(&|_, x| x).into_iter().map(|s| s / count).collect();
        let squares = sum(&|j, x| (x - mean[j]) * (x - mean[j]));
        Self {
            count,
            mean,
            squares,
        }
    }

    fn variances(&self) -> impl Iterator<Item = f64> + '_ {
        self.squares.iter().map(|s| s / self.count)
    }

    /// Variance of all values about their one common mean.
    fn global_variance(&self) -> f64 {
        let dim = self.mean.len() as f64;
        let common = self.mean.iter().sum::<f64>() / dim;
        let between: f64 = self.mean.iter().map(|m| (m - common).powi(2)).sum();
        (self.variances().sum::<f64>() + between) / dim
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<f32> {
        (0..300u32)
            .map(|i| ((i * 7919) % 101) as f32 * if i % 3 == 1 { 0.1 } else { 1.0 })
            .collect()
    }

    #[test]
    fn global_normalisation_and_rotation_keep_distances_up_to_one_factor() {
        let data = sample();
        let rows = Rows::new(&data, 3).unwrap();
        let space = Space::fit(rows, Normalize::Global, true, 1, &Cancel::default()).unwrap();
        let mapped = space.apply_all(rows, &Cancel::default()).unwrap();
        let values = data.len() as f64;
        let mean = data.iter().map(|v| f64::from(*v)).sum::<f64>() / values;
        let deviation = (data
            .iter()
            .map(|v| (f64::from(*v) - mean).powi(2))
            .sum::<f64>()
            / values)
            .sqrt();
        let mut one = [0.0; 3];
        for i in 0..rows.len() {
            space.apply(rows.row(i), &mut one);
            let before = f64::from(garlic_simd::l2_squared(rows.row(0), rows.row(i))).sqrt();
            let after = f64::from(garlic_simd::l2_squared(mapped.row(0), mapped.row(i))).sqrt();
            assert!((before - after * deviation).abs() < 1e-3 * before.max(1.0));
            for (a, b) in one.iter().zip(mapped.row(i)) {
                assert!((a - b).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn constant_coordinates_and_constant_data_are_harmless() {
        let data: Vec<f32> = (0..60)
            .map(|i| if i % 2 == 0 { 5.0 } else { i as f32 })
            .collect();
        let rows = Rows::new(&data, 2).unwrap();
        let space =
            Space::fit(rows, Normalize::PerCoordinate, false, 1, &Cancel::default()).unwrap();
        assert_eq!(space.scale[0], 0.0);
        let mapped = space.apply_all(rows, &Cancel::default()).unwrap();
        let variance: f32 = mapped.as_rows().iter().map(|r| r[1] * r[1]).sum::<f32>() / 30.0;
        assert!((variance - 1.0).abs() < 1e-5, "{variance}");

        let data = vec![3.0; 40];
        let rows = Rows::new(&data, 4).unwrap();
        let space = Space::fit(rows, Normalize::Global, true, 1, &Cancel::default()).unwrap();
        assert!(
            space
                .apply_all(rows, &Cancel::default())
                .unwrap()
                .as_slice()
                .iter()
                .all(|v| *v == 0.0)
        );
    }
}
