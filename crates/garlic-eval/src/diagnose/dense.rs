//! Cells with given covariances, for tests.

use garlic_core::shapes::{CellShapes, Covered, descending};
use garlic_linalg::{Rows, symmetric_eigen};

/// One cell at `mean` with a dense covariance.
pub(super) struct Dense {
    pub(super) mean: Vec<f32>,
    /// Lower triangle, row-major.
    pub(super) covariance: Vec<f64>,
    pub(super) rank: usize,
}

impl Dense {
    /// A cell at the origin with these variances along the coordinates.
    pub(super) fn diagonal(variances: &[f64], rank: usize) -> Self {
        let dim = variances.len();
        let mut covariance = vec![0.0; dim * dim];
        for (i, variance) in variances.iter().enumerate() {
            covariance[i * dim + i] = *variance;
        }
        Self {
            mean: vec![0.0; dim],
            covariance,
            rank,
        }
    }
}

impl CellShapes for Dense {
    fn len(&self) -> usize {
        1
    }

    fn dim(&self) -> usize {
        self.mean.len()
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn mean(&self, _: usize) -> &[f32] {
        &self.mean
    }

    fn whiten(&self, _: usize, v: &[f64]) -> Vec<f64> {
        let dim = self.dim();
        let eigen = symmetric_eigen(&self.covariance, dim);
        let pairs = eigen.values.iter().zip(eigen.vectors.chunks_exact(dim));
        let along = |u: &[f64]| u.iter().zip(v).map(|(a, b)| a * b).sum::<f64>();
        pairs.map(|(l, u)| along(u) / l.sqrt()).collect()
    }

    fn covariance(&self, _: usize) -> Vec<f64> {
        self.covariance.clone()
    }

    fn eigenvalues(&self, _: usize) -> Vec<f64> {
        descending(symmetric_eigen(&self.covariance, self.dim()).values)
    }

    fn distance_madds(&self) -> f64 {
        (self.dim() * self.dim()) as f64
    }

    fn spectrum_madds(&self) -> f64 {
        (self.dim() as f64).powi(3)
    }

    fn tau(&self) -> Option<f64> {
        Some(3.0)
    }

    fn cover(
        &self,
        points: Rows<'_>,
        radius: f64,
        inner: f64,
    ) -> garlic_core::Result<Vec<Covered>> {
        let covered = points.iter().map(|point| {
            let pairs = point.iter().zip(&self.mean);
            let v: Vec<f64> = pairs.map(|(x, m)| f64::from(*x) - f64::from(*m)).collect();
            let squares = self.whiten(0, &v).into_iter().map(|y| y * y);
            let distance = squares.sum::<f64>().sqrt();
            Covered {
                nearest: distance as f32,
                within: usize::from(distance <= radius),
                within_inner: usize::from(distance <= inner),
            }
        });
        Ok(covered.collect())
    }
}
