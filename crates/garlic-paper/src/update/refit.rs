//! A cell after some of its points have come or gone: its Gaussian follows their statistics.
//!
//! Training makes a Gaussian wider than the covariance C of its points, and displaces its mean a little. Both stay as they
//! are: the mean moves as the mean of the points does, and Sigma changes by the change of their scatter, times the ratio
//! kappa = tr Sigma / tr C. So Sigma / kappa is the covariance that statistics are added to and taken from, and kappa stays
//! the same. What came can be taken away again, and only points that come or go cost a covariance.

use garlic_core::Result;
use garlic_linalg::{Matrix, Rows, cholesky, gram};

use super::statistics::Statistics;
use crate::config::{Config, Covariance};
use crate::gaussians::{Factors, Gaussians, packed_len, raise_diagonal, unpack};
use crate::partition::trust;

/// Less of the scatter than this is rounding.
const NO_SCATTER: f64 = 1e-9;

/// Mean and factor of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gaussian {
    pub(super) mean: Vec<f32>,
    pub(super) factor: Vec<f32>,
}

/// The points of a cell, and those of them that come and go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moves<'a> {
    pub(super) before: Rows<'a>,
    pub(super) removed: Rows<'a>,
    pub(super) added: Rows<'a>,
}

impl Gaussian {
    /// A cell of a model.
    pub(super) fn of(model: &Gaussians, cell: usize) -> Self {
        Self {
            mean: model.mean(cell).to_vec(),
            factor: model.factor(cell).to_vec(),
        }
    }

    /// Replaces a cell of a model.
    pub(super) fn put(&self, model: &mut Gaussians, cell: usize) {
        let stride = model.stride();
        model.means.row_mut(cell).copy_from_slice(&self.mean);
        model.factors.values_mut()[cell * stride..(cell + 1) * stride]
            .copy_from_slice(&self.factor);
    }

    /// A model of this cell alone.
    pub(super) fn alone(&self, covariance: Covariance) -> Result<Gaussians> {
        Ok(Gaussians {
            means: Matrix::from_vec(self.mean.clone(), self.mean.len())?,
            factors: Factors::from_values(covariance, self.factor.clone()),
        })
    }

    /// The Gaussian after the points of its cell have changed.
    pub(super) fn refit(&self, moves: Moves<'_>, config: &Config) -> Self {
        let structure = config.init.covariance;
        let before = Statistics::of(moves.before, Covariance::Isotropic);
        if before.count == 0.0 {
            return self.clone();
        }
        // Only the change of the scatter is needed: merging depends on counts and means, and adds up.
        let mut after = Statistics::around(before.mean.clone(), before.count, structure);
        after.unmerge(&Statistics::of(moves.removed, structure));
        after.merge(&Statistics::of(moves.added, structure));
        if after.count == 0.0 {
            return self.clone();
        }
        let shift = after.mean.iter().zip(&before.mean);
        let moved = self.mean.iter().zip(shift);
        let mean = moved.map(|(m, (a, b))| (f64::from(*m) + a - b) as f32);
        let trace = before.trace() + after.trace();
        let factor = match trace > NO_SCATTER * before.trace() && before.trace() > 0.0 {
            true => self.refactor(&before, &after, config),
            // Points at one place have no shape.
            false => self.factor.clone(),
        };
        Self {
            mean: mean.collect(),
            factor,
        }
    }

    /// The factor of Sigma after its change, where that is positive definite; else the old one, as wide as the points.
    fn refactor(&self, before: &Statistics, change: &Statistics, config: &Config) -> Vec<f32> {
        let dim = self.mean.len();
        let (structure, floor) = (config.init.covariance, config.training.diagonal_floor);
        let sigma = sigma(&self.factor, structure, dim);
        let kappa = trace(&sigma, structure, dim) * before.count / before.trace();
        // Few points say little about many directions. What comes and goes again must be trusted alike both times.
        let trusted = match structure {
            Covariance::Isotropic => 1.0,
            _ => trust(before.count.max(change.count), dim),
        };
        let round = (1.0 - trusted) * change.trace() / dim as f64;
        let mut next = sigma;
        for (at, (s, c)) in next.iter_mut().zip(spread(change, structure)).enumerate() {
            let even = match structure == Covariance::Full && at % (dim + 1) != 0 {
                true => 0.0,
                false => round,
            };
            *s = (before.count * *s + kappa * (trusted * c + even)) / change.count;
        }
        factor_of(&next, structure, dim, floor).unwrap_or_else(|| {
            let wider = (before.trace() + change.trace()) / before.trace();
            self.widened((wider * before.count / change.count).sqrt(), config)
                .factor
        })
    }

    /// The same shape, `by` times as wide.
    fn widened(&self, by: f64, config: &Config) -> Self {
        let scaled = self.factor.iter().map(|v| (f64::from(*v) * by) as f32);
        let mut factor: Vec<f32> = scaled.collect();
        let floor = config.training.diagonal_floor as f32;
        raise_diagonal(&mut factor, config.init.covariance, self.mean.len(), floor);
        Self {
            mean: self.mean.clone(),
            factor,
        }
    }

    /// A copy of this cell, which has the points `own`, for other `points`: at their mean, and as wide for them as this cell
    /// is for its own.
    pub(super) fn copy_for(&self, own: Rows<'_>, points: Rows<'_>, config: &Config) -> Self {
        let [own, found] =
            [own, points].map(|points| Statistics::of(points, Covariance::Isotropic));
        let by = (found.trace() * own.count / (own.trace() * found.count)).sqrt();
        let mut copy = match by > 0.0 && by.is_finite() {
            true => self.widened(by, config),
            false => self.clone(),
        };
        copy.mean = found.mean.iter().map(|m| *m as f32).collect();
        copy
    }

    /// How much wider than its points a Gaussian is: tr Sigma / tr C. None where the points have no scatter.
    #[cfg(test)]
    pub(super) fn kappa(&self, points: Rows<'_>, config: &Config) -> Option<f64> {
        let found = Statistics::of(points, Covariance::Isotropic);
        let kappa = self.trace(config) * found.count / found.trace();
        (kappa > 0.0 && kappa.is_finite()).then_some(kappa)
    }

    #[cfg(test)]
    fn trace(&self, config: &Config) -> f64 {
        let squares = self.factor.iter().map(|v| f64::from(*v).powi(2));
        match config.init.covariance {
            Covariance::Isotropic => squares.sum::<f64>() * self.mean.len() as f64,
            Covariance::Full | Covariance::Diagonal => squares.sum(),
        }
    }
}

/// Sigma: a square, a diagonal, or the variance of a coordinate.
fn sigma(factor: &[f32], structure: Covariance, dim: usize) -> Vec<f64> {
    if structure != Covariance::Full {
        return factor.iter().map(|v| f64::from(*v).powi(2)).collect();
    }
    let mut square = vec![0.0; dim * dim];
    unpack(factor, &mut square, dim);
    gram(&square, dim, dim)
}

fn trace(sigma: &[f64], structure: Covariance, dim: usize) -> f64 {
    match structure {
        Covariance::Full => sigma.iter().step_by(dim + 1).sum(),
        Covariance::Diagonal => sigma.iter().sum(),
        Covariance::Isotropic => sigma[0] * dim as f64,
    }
}

/// A change of the scatter in the layout of [`sigma`].
fn spread(change: &Statistics, structure: Covariance) -> Vec<f64> {
    let dim = change.mean.len();
    match structure {
        Covariance::Full => {
            let mut square = vec![0.0; dim * dim];
            for i in 0..dim {
                for j in 0..=i {
                    let value = change.scatter[packed_len(i) + j];
                    square[i * dim + j] = value;
                    square[j * dim + i] = value;
                }
            }
            square
        }
        Covariance::Diagonal => change.scatter.clone(),
        Covariance::Isotropic => vec![change.scatter[0] / dim as f64],
    }
}

/// The factor of Sigma, if that is positive definite and no scale on its diagonal falls below the floor.
fn factor_of(sigma: &[f64], structure: Covariance, dim: usize, floor: f64) -> Option<Vec<f32>> {
    if structure != Covariance::Full {
        let is_wide = sigma.iter().all(|v| *v >= floor * floor);
        return is_wide.then(|| sigma.iter().map(|v| v.sqrt() as f32).collect());
    }
    let factor = cholesky(sigma, dim).ok()?;
    let is_wide = factor.iter().step_by(dim + 1).all(|v| *v >= floor);
    is_wide.then(|| {
        let rows = (0..dim).flat_map(|i| &factor[i * dim..=i * dim + i]);
        rows.map(|v| *v as f32).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use garlic_linalg::{random_stream, uniform_unit};

    const DIM: usize = 4;

    fn cloud(count: usize, seed: u64) -> Vec<f32> {
        let mut random = random_stream(seed, 5);
        (0..count * DIM)
            .map(|i| uniform_unit(&mut random) as f32 * (1 + i % DIM) as f32)
            .collect()
    }

    fn cell(structure: Covariance) -> (Gaussian, Config) {
        let mut config = Config::default();
        config.init.covariance = structure;
        let factor = match structure {
            Covariance::Full => vec![1.0, 0.2, 1.5, -0.1, 0.3, 1.2, 0.0, 0.1, -0.4, 2.0],
            Covariance::Diagonal => vec![1.0, 1.5, 1.2, 2.0],
            Covariance::Isotropic => vec![1.4],
        };
        let mean = vec![0.4, 0.9, 1.6, 2.1];
        (Gaussian { mean, factor }, config)
    }

    fn rows(values: &[f32]) -> Rows<'_> {
        Rows::new(values, DIM).unwrap()
    }

    #[test]
    fn what_comes_and_goes_again_leaves_the_gaussian_as_it_was() {
        let (old, new) = (cloud(40, 1), cloud(25, 2));
        let both = [&old[..], &new].concat();
        for structure in [
            Covariance::Full,
            Covariance::Diagonal,
            Covariance::Isotropic,
        ] {
            let (start, config) = cell(structure);
            let grown = start.refit(
                Moves {
                    before: rows(&old),
                    removed: rows(&[]),
                    added: rows(&new),
                },
                &config,
            );
            assert_ne!(start, grown);
            let kappa = |g: &Gaussian, points: &[f32]| g.kappa(rows(points), &config).unwrap();
            let (k0, k1) = (kappa(&start, &old), kappa(&grown, &both));
            assert!((k0 - k1).abs() < 1e-5 * k0, "{structure:?}: {k0} and {k1}");
            let back = grown.refit(
                Moves {
                    before: rows(&both),
                    removed: rows(&new),
                    added: rows(&[]),
                },
                &config,
            );
            let values = |g: &Gaussian| [&g.mean[..], &g.factor].concat();
            for (a, b) in values(&back).iter().zip(values(&start)) {
                assert!((a - b).abs() < 1e-5, "{structure:?}: {a} and {b}");
            }
        }
    }

    #[test]
    fn an_isotropic_cell_follows_its_points_as_computed_by_hand() {
        // Two points at distance 1 from their mean (0, 0), variance 1/2 a coordinate; Sigma = 4 I, so kappa = 8.
        let mut config = Config::default();
        config.init.covariance = Covariance::Isotropic;
        let start = Gaussian {
            mean: vec![0.5, 0.0],
            factor: vec![2.0],
        };
        let plane = |values| Rows::new(values, 2).unwrap();
        let moves = Moves {
            before: plane(&[-1.0, 0.0, 1.0, 0.0]),
            removed: plane(&[]),
            added: plane(&[5.0, 0.0, 7.0, 0.0]),
        };
        // The mean of all is (3, 0), the scatter 2 + 2 + 1 * 36 = 40: variance 5 a coordinate, Sigma = 40 I.
        let grown = start.refit(moves, &config);
        assert_eq!(grown.mean, [3.5, 0.0]);
        assert!((grown.factor[0] - 40f32.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn a_copy_is_to_other_points_what_the_cell_is_to_its_own() {
        let (start, config) = cell(Covariance::Full);
        let (own, other) = (cloud(30, 6), cloud(50, 7));
        let other: Vec<f32> = other.iter().map(|v| 100.0 + 3.0 * v).collect();
        let copy = start.copy_for(rows(&own), rows(&other), &config);
        let kappa = |g: &Gaussian, points: &[f32]| g.kappa(rows(points), &config).unwrap();
        let (k0, k1) = (kappa(&start, &own), kappa(&copy, &other));
        assert!((k0 - k1).abs() < 1e-5 * k0, "{k0} and {k1}");
        assert!(copy.mean.iter().all(|m| *m > 99.0));
        let same = start.copy_for(rows(&own), rows(&other[..DIM]), &config);
        assert_eq!((same.factor, &same.mean[..]), (start.factor, &other[..DIM]));
    }

    #[test]
    fn points_at_one_place_keep_the_shape() {
        let (start, config) = cell(Covariance::Full);
        let (one, four) = (cloud(1, 3), cloud(1, 3).repeat(4));
        let moves = Moves {
            before: rows(&one),
            removed: rows(&[]),
            added: rows(&four),
        };
        assert_eq!(start.refit(moves, &config), start);
        let none = Moves {
            before: rows(&four),
            removed: rows(&four),
            added: rows(&[]),
        };
        assert_eq!(start.refit(none, &config), start);
    }

    #[test]
    fn a_covariance_that_would_not_be_positive_definite_is_scaled() {
        // The cell is narrow where its points are wide: without the widest of them nothing would be left of Sigma.
        let (mut start, config) = cell(Covariance::Diagonal);
        start.factor = vec![2.0, 2.0, 2.0, 0.05];
        let wide = [0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 0.0, -9.0];
        let all = [&cloud(20, 4)[..], &wide].concat();
        let moves = Moves {
            before: rows(&all),
            removed: rows(&wide),
            added: rows(&[]),
        };
        let left = start.refit(moves, &config).factor;
        let ratio = left[0] / start.factor[0];
        assert!(ratio < 0.9 && ratio > 0.1, "{ratio}");
        let same = left.iter().zip(&start.factor).take(3);
        assert!(same.map(|(l, s)| l / s).all(|r| (r - ratio).abs() < 1e-6));
    }
}
