//! The cells as full Gaussians, without the shrinkage of the routing score.

use garlic_core::shapes::{CellShapes, Covered, descending};
use garlic_core::{Matrix, Result};
use garlic_linalg::{Operand, Rows, gemm};
use rayon::prelude::*;

use crate::partition::AnisotropicCells;

/// Lower limit of a variance, as a share of the mean variance of the cells. Cells of few points are flat, and the
/// Mahalanobis distance to a flat cell is infinite.
const MIN_VARIANCE_SHARE: f64 = 1e-6;
/// Number of points per task.
const POINTS_PER_TASK: usize = 64;

/// Cells with a lower limit on their variances.
pub(crate) struct Shapes<'a> {
    cells: &'a AnisotropicCells,
    floor: f64,
}

/// A cell: a variance per axis, and one for all other directions.
struct LowRank<'a> {
    mean: &'a [f32],
    axes: Vec<&'a [f32]>,
    variances: Vec<f64>,
    residual_variance: f64,
}

impl<'a> Shapes<'a> {
    /// Wraps cells whose points have a mean variance of `variance` per dimension.
    pub(super) fn new(cells: &'a AnisotropicCells, variance: f64) -> Self {
        let floor = if variance > 0.0 {
            MIN_VARIANCE_SHARE * variance
        } else {
            1.0
        };
        Self { cells, floor }
    }

    fn low_rank(&self, cell: usize) -> LowRank<'a> {
        let cells = self.cells;
        let pairs = cells
            .axes(cell)
            .chunks_exact(cells.dim())
            .zip(cells.variances(cell));
        // Cells whose points span fewer dimensions end with zero axes.
        let (axes, variances) = pairs
            .filter(|(_, v)| **v > 0.0)
            .map(|(axis, v)| (axis, f64::from(*v).max(self.floor)))
            .unzip();
        LowRank {
            mean: cells.mean(cell),
            axes,
            variances,
            residual_variance: f64::from(cells.residual_variance(cell)).max(self.floor),
        }
    }
}

impl CellShapes for Shapes<'_> {
    fn len(&self) -> usize {
        self.cells.len()
    }

    fn dim(&self) -> usize {
        self.cells.dim()
    }

    fn rank(&self) -> usize {
        self.cells.rank()
    }

    fn mean(&self, cell: usize) -> &[f32] {
        self.cells.mean(cell)
    }

    fn whiten(&self, cell: usize, v: &[f64]) -> Vec<f64> {
        let low = self.low_rank(cell);
        let mut rest = v.to_vec();
        let mut out = Vec::with_capacity(v.len() + low.variances.len());
        for (axis, variance) in low.axes.iter().zip(&low.variances) {
            let along: f64 = axis.iter().zip(v).map(|(a, b)| f64::from(*a) * b).sum();
            rest.iter_mut()
                .zip(*axis)
                .for_each(|(r, a)| *r -= along * f64::from(*a));
            out.push(along / variance.sqrt());
        }
        let scale = low.residual_variance.sqrt();
        out.extend(rest.into_iter().map(|r| r / scale));
        out
    }

    fn covariance(&self, cell: usize) -> Vec<f64> {
        let dim = self.dim();
        let mut sigma = vec![0.0; dim * dim];
        let low = self.low_rank(cell);
        for i in 0..dim {
            sigma[i * dim + i] = low.residual_variance;
        }
        for (axis, variance) in low.axes.iter().zip(&low.variances) {
            for (i, a) in axis.iter().enumerate() {
                let a = f64::from(*a) * (variance - low.residual_variance);
                let row = &mut sigma[i * dim..=i * dim + i];
                row.iter_mut()
                    .zip(*axis)
                    .for_each(|(s, b)| *s += a * f64::from(*b));
            }
        }
        sigma
    }

    fn eigenvalues(&self, cell: usize) -> Vec<f64> {
        let low = self.low_rank(cell);
        let mut values = low.variances;
        values.resize(self.dim().max(values.len()), low.residual_variance);
        descending(values)
    }

    fn distance_madds(&self) -> f64 {
        (self.rank() as f64 + 2.0) * self.dim() as f64
    }

    fn spectrum_madds(&self) -> f64 {
        self.dim() as f64 * self.distance_madds()
    }

    fn tau(&self) -> Option<f64> {
        None
    }

    fn cover(&self, points: Rows<'_>, radius: f64, inner: f64) -> Result<Vec<Covered>> {
        let dim = self.dim();
        let cells: Vec<Prepared<'_>> = (0..self.len())
            .map(|cell| Prepared::of(self.low_rank(cell)))
            .collect();
        let [radius, inner] = [radius, inner].map(|r| (r * r) as f32);
        let chunks = points.data().par_chunks(POINTS_PER_TASK * dim).map(|rows| {
            let count = rows.len() / dim;
            let none = Covered {
                nearest: f32::INFINITY,
                within: 0,
                within_inner: 0,
            };
            let mut part = vec![none; count];
            let mut scratch = Matrix::zeros(count, dim);
            for cell in &cells {
                cell.distances(rows, dim, &mut scratch, |p, squared| {
                    let point = &mut part[p];
                    // `min` ignores NaN, the distance to a cell that is out of reach.
                    point.nearest = point.nearest.min(squared.sqrt());
                    point.within += usize::from(squared <= radius);
                    point.within_inner += usize::from(squared <= inner);
                });
            }
            part
        });
        Ok(chunks.collect::<Vec<_>>().concat())
    }
}

/// A cell prepared for many points.
struct Prepared<'a> {
    mean: &'a [f32],
    axes: Vec<f32>,
    /// Inverse variance along each axis.
    weights: Vec<f32>,
    /// Inverse of the residual variance.
    residual_weight: f32,
}

impl<'a> Prepared<'a> {
    fn of(low: LowRank<'a>) -> Self {
        Self {
            mean: low.mean,
            axes: low.axes.concat(),
            weights: low.variances.iter().map(|v| (1.0 / v) as f32).collect(),
            residual_weight: (1.0 / low.residual_variance) as f32,
        }
    }

    /// Squared Mahalanobis distances of the rows.
    fn distances(
        &self,
        rows: &[f32],
        dim: usize,
        centred: &mut Matrix,
        mut found: impl FnMut(usize, f32),
    ) {
        let (count, rank) = (rows.len() / dim, self.weights.len());
        let centred = centred.as_mut_slice();
        for (out, row) in centred.chunks_exact_mut(dim).zip(rows.chunks_exact(dim)) {
            out.iter_mut()
                .zip(row)
                .zip(self.mean)
                .for_each(|((o, x), m)| *o = x - m);
        }
        let mut along = vec![0.0; count * rank];
        if rank > 0 {
            gemm(
                &mut along,
                Operand::new(centred, count, dim),
                Operand::transposed(&self.axes, rank, dim),
                1.0,
                0.0,
            );
        }
        for (p, row) in centred.chunks_exact(dim).enumerate() {
            let (mut kept, mut squared) = (0.0, 0.0);
            for (y, w) in along[p * rank..(p + 1) * rank].iter().zip(&self.weights) {
                kept += y * y;
                squared += y * y * w;
            }
            let rest = (garlic_simd::dot(row, row) - kept).max(0.0);
            found(p, squared + rest * self.residual_weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use garlic_linalg::symmetric_eigen;

    use super::*;
    use crate::segment::Index;
    use crate::testdata::{rows, uniform};

    /// A small index of points with different spreads along ten coordinates.
    fn index() -> (Index, Vec<f32>) {
        let mut data = uniform(2000, 10, 5);
        for (i, value) in data.iter_mut().enumerate() {
            *value = *value * (10 - i % 10) as f32 + (i / 10 % 3) as f32 * 20.0;
        }
        let built = Index::builder().seed(1).threads(1);
        (built.build(rows(&data, 10)).unwrap(), data)
    }

    #[test]
    fn low_rank_cells_agree_with_their_dense_covariance() {
        let (index, _) = index();
        let shapes = Shapes::new(&index.segment.cells, 1.0);
        let dim = shapes.dim();
        let v: Vec<f64> = (0..dim).map(|i| (i as f64 * 0.7).sin()).collect();
        for cell in 0..shapes.len() {
            let dense = symmetric_eigen(&shapes.covariance(cell), dim);
            for (a, b) in shapes.eigenvalues(cell).iter().zip(&dense.values) {
                assert!((a - b).abs() < 1e-4 * dense.values[0], "{a} {b}");
            }
            let squared: f64 = shapes.whiten(cell, &v).iter().map(|v| v * v).sum();
            // The same length, computed from the eigenvectors of the dense matrix.
            let pairs = dense.values.iter().zip(dense.vectors.chunks_exact(dim));
            let along = |u: &[f64]| u.iter().zip(&v).map(|(a, b)| a * b).sum::<f64>();
            let expected: f64 = pairs.map(|(l, u)| along(u).powi(2) / l).sum();
            assert!(
                (squared / expected - 1.0).abs() < 1e-3,
                "{squared} {expected}"
            );
        }
    }

    #[test]
    fn coverage_agrees_with_a_plain_loop() {
        let (index, data) = index();
        let shapes = Shapes::new(&index.segment.cells, 1.0);
        let rows = rows(&data[..1500], 10);
        let placed = index
            .transform
            .apply_all(rows, &Default::default())
            .unwrap();
        let found = shapes.cover(placed.as_rows(), 3.0, 2.0).unwrap();
        for (point, found) in placed.as_rows().iter().zip(&found) {
            let distance = |cell: usize| {
                let pairs = point.iter().zip(shapes.mean(cell));
                let v: Vec<f64> = pairs.map(|(x, m)| f64::from(*x) - f64::from(*m)).collect();
                shapes
                    .whiten(cell, &v)
                    .iter()
                    .map(|y| y * y)
                    .sum::<f64>()
                    .sqrt()
            };
            let all: Vec<f64> = (0..shapes.len()).map(distance).collect();
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
