//! Given cells: Gaussians fitted to groups of points that somebody else has found, without training.
//!
//! In: a cell number for every point. Out: [`Gaussians`] as wide as it takes to cover most of their points, and the
//! [`Assignment`] of every point to its own cell alone.

use garlic_core::{Cancel, Error, Lists, Result};
use garlic_linalg::{Matrix, Rows, cholesky, covariance};
use rayon::prelude::*;

use crate::config::{Config, Covariance, MAX_CELLS};
use crate::gaussians::{AssignWork, Assignment, Factors, Gaussians, packed_len};

/// Share of its points that a cell covers.
const COVERED: f64 = 0.9;

/// Gaussians for given cells, a number for each point.
///
/// # Errors
/// [`Error::Config`] when there are too many cells, or when cancelled.
pub(crate) fn gaussians(
    points: Rows<'_>,
    given: &[u32],
    config: &Config,
    cancel: &Cancel,
) -> Result<Gaussians> {
    let mut labels = given.to_vec();
    let cells = renumber(&mut labels);
    if cells > MAX_CELLS {
        return Err(Error::Config {
            key: "partition".into(),
            message: format!("has {cells} cells; at most {MAX_CELLS} can be"),
        });
    }
    fit(points, &labels, cells, config, cancel)
}

/// The points in those cells, each in its own alone.
pub(crate) fn assignment(given: &[u32]) -> Assignment {
    let mut nearest = given.to_vec();
    renumber(&mut nearest);
    Assignment {
        distance: vec![0.0; nearest.len()],
        covering: Lists::group(nearest.len(), std::iter::empty()),
        work: AssignWork::default(),
        nearest,
    }
}

/// Numbers from 0 on in the place of those that there are; returns how many.
fn renumber(labels: &mut [u32]) -> usize {
    let mut numbers = labels.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    for label in labels {
        *label = numbers.partition_point(|n| *n < *label) as u32;
    }
    numbers.len()
}

/// A Gaussian for every cell, as wide as it takes to cover most of its points; one scale for all where they are round, so
/// that the nearest is that of the nearest mean.
fn fit(
    points: Rows<'_>,
    labels: &[u32],
    cells: usize,
    config: &Config,
    cancel: &Cancel,
) -> Result<Gaussians> {
    let dim = points.dim();
    let members = Lists::by_label(cells, labels);
    let fitted: Vec<(Vec<f32>, Vec<f32>)> = (0..cells)
        .into_par_iter()
        .map(|cell| {
            cancel.check()?;
            let rows = Matrix::gather(points, members.get(cell));
            Ok(gaussian(rows.as_rows(), config))
        })
        .collect::<Result<_>>()?;
    let structure = config.init.covariance;
    let mut means = Vec::with_capacity(cells * dim);
    let mut factors = Vec::with_capacity(cells * Factors::stride(structure, dim));
    for (mean, factor) in fitted {
        means.extend(mean);
        factors.extend(factor);
    }
    if structure == Covariance::Isotropic {
        let mean = factors.iter().sum::<f32>() / cells.max(1) as f32;
        factors.fill(mean);
    }
    Ok(Gaussians {
        means: Matrix::from_vec(means, dim)?,
        factors: Factors::from_values(structure, factors),
    })
}

/// Mean and factor of one cell, in the layout of its structure.
fn gaussian(rows: Rows<'_>, config: &Config) -> (Vec<f32>, Vec<f32>) {
    let dim = rows.dim();
    let (mean, sigma) = covariance(rows);
    let factor = factor(sigma, dim, rows.len(), config);
    let mut distances: Vec<f64> = rows
        .iter()
        .map(|row| mahalanobis(&factor, &mean, row))
        .collect();
    distances.sort_unstable_by(f64::total_cmp);
    let last = (distances.len() as f64 * COVERED) as usize;
    let reach = distances[last.min(distances.len() - 1)];
    let wide = match reach > 0.0 {
        true => reach / config.loss.tau,
        false => 1.0,
    };
    let diagonal =
        |i: usize| (factor[i * dim + i] * wide).max(config.training.diagonal_floor) as f32;
    let values = match config.init.covariance {
        Covariance::Isotropic => vec![diagonal(0)],
        Covariance::Diagonal => (0..dim).map(diagonal).collect(),
        Covariance::Full => {
            let mut packed = Vec::with_capacity(packed_len(dim));
            for i in 0..dim {
                packed.extend(factor[i * dim..][..i].iter().map(|v| (v * wide) as f32));
                packed.push(diagonal(i));
            }
            packed
        }
    };
    (mean.iter().map(|m| *m as f32).collect(), values)
}

/// How much the covariance of `count` points says about `dim` directions, in [0, 1).
pub(crate) fn trust(count: f64, dim: usize) -> f64 {
    count / (count + dim as f64)
}

/// The lower triangular factor of a covariance of `count` points, with the structure that is asked for.
fn factor(mut sigma: Vec<f64>, dim: usize, count: usize, config: &Config) -> Vec<f64> {
    let trace: f64 = (0..dim).map(|i| sigma[i * dim + i]).sum();
    let round = (trace / dim as f64).max(config.training.diagonal_floor.powi(2));
    // Few points say little about many directions: the fewer, the rounder.
    let trust = match config.init.covariance {
        Covariance::Isotropic => 0.0,
        _ => trust(count as f64, dim),
    };
    for (at, value) in sigma.iter_mut().enumerate() {
        let is_diagonal = at % (dim + 1) == 0;
        let kept = match is_diagonal || config.init.covariance == Covariance::Full {
            true => trust * *value,
            false => 0.0,
        };
        *value = kept
            + if is_diagonal {
                (1.0 - trust) * round
            } else {
                0.0
            };
    }
    cholesky(&sigma, dim).unwrap_or_else(|_| {
        let mut plain = vec![0.0; dim * dim];
        (0..dim).for_each(|i| plain[i * dim + i] = round.sqrt());
        plain
    })
}

/// Length of the solution y of `L y = x - mean`.
fn mahalanobis(factor: &[f64], mean: &[f64], row: &[f32]) -> f64 {
    let dim = mean.len();
    let mut y = Vec::with_capacity(dim);
    for i in 0..dim {
        let known: f64 = factor[i * dim..][..i]
            .iter()
            .zip(&y)
            .map(|(l, y)| l * y)
            .sum();
        y.push((f64::from(row[i]) - mean[i] - known) / factor[i * dim + i]);
    }
    y.iter().map(|y: &f64| y * y).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaussians::assign;
    use garlic_linalg::{random_stream, uniform_unit};

    /// Three long clusters.
    fn clusters() -> (Matrix, Vec<u32>) {
        let mut random = random_stream(3, 4);
        let (mut values, mut labels) = (Vec::new(), Vec::new());
        for i in 0..3000u32 {
            let cluster = i % 3;
            let mut noise = || uniform_unit(&mut random) as f32 - 0.5;
            values.extend([6.0 * noise(), 0.5 * noise() + 2.0 * cluster as f32, noise()]);
            labels.push(7 * cluster);
        }
        (Matrix::from_vec(values, 3).unwrap(), labels)
    }

    #[test]
    fn gaussians_cover_most_of_the_points_they_were_given() {
        let (points, labels) = clusters();
        for covariance in [
            Covariance::Full,
            Covariance::Diagonal,
            Covariance::Isotropic,
        ] {
            let mut config = Config::default();
            config.init.covariance = covariance;
            let model = gaussians(points.as_rows(), &labels, &config, &Cancel::default()).unwrap();
            let cells = assignment(&labels);
            assert_eq!((model.len(), model.factors.covariance()), (3, covariance));
            assert!(
                cells
                    .nearest
                    .iter()
                    .zip(&labels)
                    .all(|(cell, label)| 7 * cell == *label)
            );
            let tau = config.loss.tau as f32;
            let found = assign(points.as_rows(), &model, tau, &Cancel::default()).unwrap();
            let covered =
                (0..labels.len()).filter(|p| found.covering(*p).contains(&cells.nearest[*p]));
            let share = covered.count() as f64 / labels.len() as f64;
            assert!((0.88..=0.92).contains(&share), "{covariance:?}: {share}");
            let own = found
                .nearest
                .iter()
                .zip(&cells.nearest)
                .filter(|(a, b)| a == b);
            assert!(own.count() > 2900, "{covariance:?}");
        }
    }

    #[test]
    fn one_point_and_copies_make_a_cell() {
        let points = Matrix::from_vec(vec![1.0, 2.0, 5.0, 5.0, 5.0, 5.0], 2).unwrap();
        let config = Config::default();
        let model = gaussians(points.as_rows(), &[0, 1, 1], &config, &Cancel::default()).unwrap();
        assert_eq!(model.mean(1), [5.0, 5.0]);
        assert!(model.factors.values().iter().all(|v| v.is_finite()));
    }
}
