//! The cells of either preset as Gaussians: what a vector is inside one, and its covariance.

use garlic_ann::Index;
use garlic_ann::config::Covariance;
use garlic_ann::model::{Gaussians, Tempered};
use garlic_linalg::symmetric_eigen;

/// Variances below this share of the mean variance of the data count as this much: cells of few points are flat, and a
/// Mahalanobis distance to a flat cell is infinite.
const FLAT: f64 = 1e-6;

/// Means and covariances of all cells, in the space of the model.
#[derive(Clone, Copy)]
pub(super) enum Shapes<'a> {
    /// Trained Gaussians.
    Published(&'a Gaussians),
    /// Principal axes and one residual variance a cell, at full strength: not tempered as the score is.
    Tempered {
        /// The cells.
        model: &'a Tempered,
        /// Least variance in any direction.
        floor: f64,
    },
}

impl<'a> Shapes<'a> {
    /// The cells of an index whose points have `variance` a dimension in the space of the model.
    pub(super) fn of(index: &'a Index, variance: f64) -> Option<Self> {
        if let Some(body) = index.published() {
            return Some(Self::Published(body.model()));
        }
        index.tempered().map(|body| Self::Tempered {
            model: body.model(),
            floor: if variance > 0.0 { FLAT * variance } else { 1.0 },
        })
    }

    /// Number of cells.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Published(model) => model.len(),
            Self::Tempered { model, .. } => model.len(),
        }
    }

    /// Dimension of the space of the model.
    pub(super) fn dim(&self) -> usize {
        match self {
            Self::Published(model) => model.dim(),
            Self::Tempered { model, .. } => model.dim(),
        }
    }

    /// Mean of a cell.
    pub(super) fn mean(&self, cell: usize) -> &'a [f32] {
        match self {
            Self::Published(model) => model.mean(cell),
            Self::Tempered { model, .. } => model.mean(cell),
        }
    }

    /// A vector whose dot products are those of `v` under the inverse covariance of the cell: its square is the squared
    /// Mahalanobis length.
    pub(super) fn whiten(&self, cell: usize, v: &[f64]) -> Vec<f64> {
        match self {
            Self::Published(model) => whiten_published(model, cell, v),
            Self::Tempered { .. } => {
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
                let scale = low.residual.sqrt();
                out.extend(rest.into_iter().map(|r| r / scale));
                out
            }
        }
    }

    /// Axes that a tempered cell has, with variances that are not flat. Empty for a published one.
    pub(super) fn low_rank(&self, cell: usize) -> LowRank<'a> {
        let Self::Tempered { model, floor } = self else {
            return LowRank::default();
        };
        let pairs = model
            .axes(cell)
            .chunks_exact(model.dim())
            .zip(model.variances(cell));
        // Cells whose points span less have zero axes at the end.
        let (axes, variances) = pairs
            .filter(|(_, v)| **v > 0.0)
            .map(|(axis, v)| (axis, f64::from(*v).max(*floor)))
            .unzip();
        LowRank {
            axes,
            variances,
            residual: f64::from(model.residual_of(cell)).max(*floor),
        }
    }

    /// Eigenvalues of the covariance of a cell, descending, and none below zero.
    pub(super) fn eigenvalues(&self, cell: usize, covariance: &[f64]) -> Vec<f64> {
        let dim = self.dim();
        let mut values = match self {
            Self::Published(model) if model.factors.covariance() == Covariance::Full => {
                symmetric_eigen(covariance, dim).values
            }
            Self::Published(_) => (0..dim).map(|i| covariance[i * dim + i]).collect(),
            Self::Tempered { .. } => {
                let LowRank {
                    mut variances,
                    residual,
                    ..
                } = self.low_rank(cell);
                variances.resize(dim.max(variances.len()), residual);
                variances
            }
        };
        values.sort_by(|a, b| b.total_cmp(a));
        // Rounding can push a tiny variance below zero, and a ratio with it.
        let floor = values.first().copied().unwrap_or(0.0) * f64::EPSILON;
        values.iter_mut().for_each(|v| *v = v.max(floor));
        values
    }

    /// Lower triangle of the covariance of a cell, row-major; what is above the diagonal is zero.
    pub(super) fn covariance(&self, cell: usize) -> Vec<f64> {
        let dim = self.dim();
        let mut sigma = vec![0.0; dim * dim];
        match self {
            Self::Published(model) => match model.factors.covariance() {
                Covariance::Full => gram(model.factor(cell), dim, &mut sigma),
                Covariance::Diagonal | Covariance::Isotropic => {
                    let factor = model.factor(cell);
                    for i in 0..dim {
                        let l = f64::from(*factor.get(i).unwrap_or(&factor[0]));
                        sigma[i * dim + i] = l * l;
                    }
                }
            },
            Self::Tempered { .. } => {
                let low = self.low_rank(cell);
                for i in 0..dim {
                    sigma[i * dim + i] = low.residual;
                }
                for (axis, variance) in low.axes.iter().zip(&low.variances) {
                    for (i, a) in axis.iter().enumerate() {
                        let a = f64::from(*a) * (variance - low.residual);
                        let row = &mut sigma[i * dim..=i * dim + i];
                        row.iter_mut()
                            .zip(*axis)
                            .for_each(|(s, b)| *s += a * f64::from(*b));
                    }
                }
            }
        }
        sigma
    }
}

/// A tempered cell: variances along axes, and one in all other directions.
#[derive(Default)]
pub(super) struct LowRank<'a> {
    /// Unit axes.
    pub(super) axes: Vec<&'a [f32]>,
    /// Variance along each.
    pub(super) variances: Vec<f64>,
    /// Variance in any direction orthogonal to them.
    pub(super) residual: f64,
}

/// Lower triangle of L Lᵀ from the packed rows of L.
fn gram(packed: &[f32], dim: usize, sigma: &mut [f64]) {
    let row = |i: usize| &packed[i * (i + 1) / 2..][..=i];
    for i in 0..dim {
        for j in 0..=i {
            // Single precision inside a short dot product is far more than a histogram shows.
            sigma[i * dim + j] = f64::from(garlic_simd::dot(&row(i)[..=j], row(j)));
        }
    }
}

/// L⁻¹ v.
fn whiten_published(model: &Gaussians, cell: usize, v: &[f64]) -> Vec<f64> {
    let factor = model.factor(cell);
    let mut y = v.to_vec();
    match model.factors.covariance() {
        Covariance::Full => {
            for i in 0..y.len() {
                let row = &factor[i * (i + 1) / 2..][..=i];
                let known: f64 = row[..i]
                    .iter()
                    .zip(&y)
                    .map(|(l, y)| f64::from(*l) * y)
                    .sum();
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

#[cfg(test)]
pub(super) mod tests {
    use garlic_ann::Matrix;
    use garlic_ann::model::Factors;
    use garlic_linalg::{Rows, random_stream, uniform_unit};

    use super::*;

    pub(in super::super) fn gaussians(
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

    /// A small default index of points with different spreads along ten coordinates.
    pub(in super::super) fn tempered_index() -> Index {
        let mut rng = random_stream(5, 2);
        let data: Vec<f32> = (0..2000 * 10)
            .map(|i| {
                (uniform_unit(&mut rng) as f32 - 0.5) * (10 - i % 10) as f32
                    + (i / 10 % 3) as f32 * 20.0
            })
            .collect();
        let built = Index::builder().seed(1).threads(1);
        built.build(Rows::new(&data, 10).unwrap()).unwrap()
    }

    #[test]
    fn whitened_lengths_are_those_of_the_inverse_covariance() {
        // L = [[2, 0], [1, 1]]: Sigma = [[4, 2], [2, 2]], its inverse [[.5, -.5], [-.5, 1]].
        let model = gaussians(Covariance::Full, 2, vec![0.0; 2], vec![2.0, 1.0, 1.0]);
        let shapes = Shapes::Published(&model);
        let y = shapes.whiten(0, &[3.0, -1.0]);
        let squared: f64 = y.iter().map(|v| v * v).sum();
        assert!((squared - (0.5 * 9.0 + 3.0 + 1.0)).abs() < 1e-12);
        assert_eq!(shapes.covariance(0), [4.0, 0.0, 2.0, 2.0]);
        let values = shapes.eigenvalues(0, &shapes.covariance(0));
        assert!((values[0] - (3.0 + 5_f64.sqrt())).abs() < 1e-9);

        let model = gaussians(Covariance::Diagonal, 2, vec![0.0; 2], vec![1.0, 3.0]);
        let shapes = Shapes::Published(&model);
        assert_eq!(shapes.whiten(0, &[2.0, 3.0]), [2.0, 1.0]);
        assert_eq!(shapes.eigenvalues(0, &shapes.covariance(0)), [9.0, 1.0]);
        let model = gaussians(Covariance::Isotropic, 3, vec![0.0; 3], vec![0.5]);
        let shapes = Shapes::Published(&model);
        assert_eq!(shapes.eigenvalues(0, &shapes.covariance(0)), [0.25; 3]);
    }

    #[test]
    fn low_rank_cells_agree_with_their_dense_covariance() {
        let index = tempered_index();
        let shapes = Shapes::of(&index, 1.0).unwrap();
        let dim = shapes.dim();
        let v: Vec<f64> = (0..dim).map(|i| (i as f64 * 0.7).sin()).collect();
        for cell in 0..shapes.len() {
            let sigma = shapes.covariance(cell);
            let dense = symmetric_eigen(&sigma, dim);
            for (a, b) in shapes.eigenvalues(cell, &sigma).iter().zip(&dense.values) {
                assert!((a - b).abs() < 1e-4 * dense.values[0], "{a} {b}");
            }
            let y = shapes.whiten(cell, &v);
            let squared: f64 = y.iter().map(|v| v * v).sum();
            // The same length through the eigenvectors of the dense matrix.
            let expected: f64 = dense
                .values
                .iter()
                .zip(dense.vectors.chunks_exact(dim))
                .map(|(l, u)| u.iter().zip(&v).map(|(a, b)| a * b).sum::<f64>().powi(2) / l)
                .sum();
            assert!(
                (squared / expected - 1.0).abs() < 1e-3,
                "{squared} {expected}"
            );
        }
    }
}
