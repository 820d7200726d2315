//! Normalisation and rotation: from vectors to the space that the Gaussians live in.
//!
//! In: vectors. Out: a [`Transform`]. With global normalisation it is a similarity: neighbours stay neighbours. Exact
//! distances are always taken between the vectors themselves.

use garlic_core::{Cancel, Result, Transform};
use garlic_linalg::{Matrix, Rows, pca, permutation};
use rayon::prelude::*;

use crate::config::{Config, Normalize};
use crate::streams;

/// Rows that the principal axes are fitted to; more change nothing that matters.
const ROTATION_SAMPLE: usize = 100_000;
/// Rows whose moments one task sums up. Sums are added in this order, whatever the number of threads.
const MOMENT_ROWS: usize = 8192;

/// Fits normalisation and principal axes to `rows`.
///
/// # Errors
/// When cancelled.
pub(crate) fn fit(rows: Rows<'_>, config: &Config, cancel: &Cancel) -> Result<Transform> {
    let moments = Moments::of(rows);
    cancel.check()?;
    let dim = rows.dim();
    let scale = match config.data.normalize {
        Normalize::Global => vec![inverse_deviation(moments.global_variance(), 1.0); dim],
        Normalize::PerCoordinate => {
            // A constant coordinate tells nothing apart: it becomes zero.
            let variances = moments.variances();
            variances.map(|v| inverse_deviation(v, 0.0)).collect()
        }
        Normalize::None => vec![1.0; dim],
    };
    let mut transform = Transform {
        mean: moments.mean.iter().map(|m| *m as f32).collect(),
        scale,
        rotation: None,
    };
    if config.rotates() && dim > 1 {
        let sample = if rows.len() > ROTATION_SAMPLE {
            let mut ids = permutation(rows.len(), config.seed, streams::ROTATION);
            ids.truncate(ROTATION_SAMPLE);
            ids.sort_unstable();
            transform.apply_all(Matrix::gather(rows, &ids).as_rows(), cancel)?
        } else {
            transform.apply_all(rows, cancel)?
        };
        cancel.check()?;
        transform.rotation = Some(pca(sample.as_rows()).basis);
    }
    Ok(transform)
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
                .par_chunks(MOMENT_ROWS * dim)
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

    fn config(normalize: Normalize, rotate: bool) -> Config {
        let mut config = Config::default();
        (config.data.normalize, config.data.rotate) = (normalize, rotate);
        config
    }

    fn sample() -> Vec<f32> {
        (0..300u32)
            .map(|i| ((i * 7919) % 101) as f32 * if i % 3 == 1 { 0.1 } else { 1.0 })
            .collect()
    }

    #[test]
    fn global_normalisation_and_rotation_keep_distances_up_to_one_factor() {
        let data = sample();
        let rows = Rows::new(&data, 3).unwrap();
        let space = fit(rows, &config(Normalize::Global, true), &Cancel::default()).unwrap();
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
        let space = fit(
            rows,
            &config(Normalize::PerCoordinate, false),
            &Cancel::default(),
        )
        .unwrap();
        assert_eq!(space.scale[0], 0.0);
        let mapped = space.apply_all(rows, &Cancel::default()).unwrap();
        let variance: f32 = mapped.as_rows().iter().map(|r| r[1] * r[1]).sum::<f32>() / 30.0;
        assert!((variance - 1.0).abs() < 1e-5, "{variance}");

        let data = vec![3.0; 40];
        let rows = Rows::new(&data, 4).unwrap();
        let space = fit(rows, &config(Normalize::Global, true), &Cancel::default()).unwrap();
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
