//! The Gaussians as every index shows its cells, for diagnosis and pictures.

use garlic_core::shapes::{CellShapes, Covered, descending};
use garlic_core::{Cancel, Result, Rows};
use garlic_linalg::symmetric_eigen;

use crate::config::Covariance;
use crate::gaussians::{Gaussians, assign};

/// Trained Gaussians with the radius that covers and the axes of a frame.
pub(crate) struct Shapes<'a> {
    pub(crate) model: &'a Gaussians,
    pub(crate) tau: f64,
    pub(crate) rank: usize,
}

impl CellShapes for Shapes<'_> {
    fn len(&self) -> usize {
        self.model.len()
    }

    fn dim(&self) -> usize {
        self.model.dim()
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn mean(&self, cell: usize) -> &[f32] {
        self.model.mean(cell)
    }

    /// L⁻¹ v.
    fn whiten(&self, cell: usize, v: &[f64]) -> Vec<f64> {
        let factor = self.model.factor(cell);
        let mut y = v.to_vec();
        match self.model.factors.covariance() {
            Covariance::Full => {
                for i in 0..y.len() {
                    let row = &factor[i * (i + 1) / 2..][..=i];
                    let pairs = row[..i].iter().zip(&y);
                    let known: f64 = pairs.map(|(l, y)| f64::from(*l) * y).sum();
                    y[i] = (y[i] - known) / f64::from(row[i]);
                }
            }
            Covariance::Diagonal => y
                .iter_mut()
                .zip(factor)
                .for_each(|(y, l)| *y /= f64::from(*l)),
            Covariance::Isotropic => y.iter_mut().for_each(|y| *y /= f64::from(factor[0])),
        }
        y
    }

    /// L Lᵀ.
    fn covariance(&self, cell: usize) -> Vec<f64> {
        let (dim, factor) = (self.dim(), self.model.factor(cell));
        let mut sigma = vec![0.0; dim * dim];
        match self.model.factors.covariance() {
            Covariance::Full => {
                let row = |i: usize| &factor[i * (i + 1) / 2..][..=i];
                for i in 0..dim {
                    for j in 0..=i {
                        // Single precision inside a short dot product is far more than a histogram shows.
                        sigma[i * dim + j] = f64::from(garlic_simd::dot(&row(i)[..=j], row(j)));
                    }
                }
            }
            Covariance::Diagonal | Covariance::Isotropic => {
                for i in 0..dim {
                    let l = f64::from(*factor.get(i).unwrap_or(&factor[0]));
                    sigma[i * dim + i] = l * l;
                }
            }
        }
        sigma
    }

    fn eigenvalues(&self, cell: usize) -> Vec<f64> {
        let (dim, covariance) = (self.dim(), self.covariance(cell));
        descending(match self.model.factors.covariance() {
            Covariance::Full => symmetric_eigen(&covariance, dim).values,
            Covariance::Diagonal | Covariance::Isotropic => {
                (0..dim).map(|i| covariance[i * dim + i]).collect()
            }
        })
    }

    fn distance_madds(&self) -> f64 {
        (self.model.stride() + self.dim()) as f64
    }

    fn spectrum_madds(&self) -> f64 {
        // A decomposition takes about ten times a product of matrices.
        10.0 * (self.dim() as f64).powi(3)
    }

    fn tau(&self) -> Option<f64> {
        Some(self.tau)
    }

    fn cover(&self, points: Rows<'_>, radius: f64, inner: f64) -> Result<Vec<Covered>> {
        let within = |radius: f64| assign(points, self.model, radius as f32, &Cancel::default());
        let found = within(radius)?;
        let inside = match inner == radius {
            true => None,
            false => Some(within(inner)?),
        };
        let inside = inside.as_ref().unwrap_or(&found);
        let covered = (0..points.len()).map(|point| Covered {
            nearest: found.distance[point],
            within: found.covering(point).len(),
            within_inner: inside.covering(point).len(),
        });
        Ok(covered.collect())
    }
}

#[cfg(test)]
mod tests {
    use garlic_core::Matrix;
    use garlic_linalg::{random_stream, uniform_unit};

    use super::*;
    use crate::gaussians::Factors;

    fn gaussians(
        covariance: Covariance,
        dim: usize,
        means: Vec<f32>,
        values: Vec<f32>,
    ) -> Gaussians {
        Gaussians {
            means: Matrix::from_vec(means, dim).unwrap(),
            factors: Factors::from_values(covariance, values),
        }
    }

    fn shapes(model: &Gaussians) -> Shapes<'_> {
        Shapes {
            model,
            tau: 3.0,
            rank: 3,
        }
    }

    #[test]
    fn whitened_lengths_are_those_of_the_inverse_covariance() {
        // L = [[2, 0], [1, 1]]: Sigma = [[4, 2], [2, 2]], its inverse [[.5, -.5], [-.5, 1]].
        let model = gaussians(Covariance::Full, 2, vec![0.0; 2], vec![2.0, 1.0, 1.0]);
        let full = shapes(&model);
        let squared: f64 = full.whiten(0, &[3.0, -1.0]).iter().map(|v| v * v).sum();
        assert!((squared - (0.5 * 9.0 + 3.0 + 1.0)).abs() < 1e-12);
        assert_eq!(full.covariance(0), [4.0, 0.0, 2.0, 2.0]);
        assert!((full.eigenvalues(0)[0] - (3.0 + 5_f64.sqrt())).abs() < 1e-9);

        let model = gaussians(Covariance::Diagonal, 2, vec![0.0; 2], vec![1.0, 3.0]);
        assert_eq!(shapes(&model).whiten(0, &[2.0, 3.0]), [2.0, 1.0]);
        assert_eq!(shapes(&model).eigenvalues(0), [9.0, 1.0]);
        let model = gaussians(Covariance::Isotropic, 3, vec![0.0; 3], vec![0.5]);
        assert_eq!(shapes(&model).eigenvalues(0), [0.25; 3]);
    }

    #[test]
    fn coverage_agrees_with_a_plain_loop() {
        let (dim, cells) = (4, 5);
        let mut rng = random_stream(1, 1);
        let mut next = || uniform_unit(&mut rng) as f32 * 4.0 - 2.0;
        let means = (0..cells * dim).map(|_| next()).collect();
        let mut factors: Vec<f32> = (0..cells * 10).map(|_| next() * 0.2).collect();
        for factor in factors.chunks_exact_mut(10) {
            [0, 2, 5, 9].iter().for_each(|i| factor[*i] = 0.5);
        }
        let model = gaussians(Covariance::Full, dim, means, factors);
        let shapes = shapes(&model);
        let points: Vec<f32> = (0..200 * dim).map(|_| next()).collect();
        let points = Rows::new(&points, dim).unwrap();
        let found = shapes.cover(points, 3.0, 2.0).unwrap();
        for (point, found) in points.iter().zip(&found) {
            let distance = |cell: usize| {
                let pairs = point.iter().zip(shapes.mean(cell));
                let v: Vec<f64> = pairs.map(|(x, m)| f64::from(*x) - f64::from(*m)).collect();
                let squares = shapes.whiten(cell, &v).into_iter().map(|y| y * y);
                squares.sum::<f64>().sqrt()
            };
            let all: Vec<f64> = (0..cells).map(distance).collect();
            let nearest = all.iter().copied().fold(f64::INFINITY, f64::min);
            assert!((f64::from(found.nearest) / nearest - 1.0).abs() < 1e-3);
            let within = |limit: f64| all.iter().filter(|d| **d <= limit).count();
            assert_eq!(
                (found.within, found.within_inner),
                (within(3.0), within(2.0))
            );
        }
        assert!(found.iter().any(|f| f.within > f.within_inner));
    }
}
