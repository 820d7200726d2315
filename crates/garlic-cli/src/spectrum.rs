//! Eigenvalues of the cells' covariances: how stretched they are and how many dimensions they fill.

use garlic_ann::config::Covariance;
use garlic_ann::model::Gaussians;
use garlic_linalg::symmetric_eigen;

/// Eigenvalues of one cell, descending; never empty.
pub(crate) struct Spectrum(Vec<f64>);

impl Spectrum {
    /// Largest eigenvalue over the smallest.
    pub(crate) fn anisotropy(&self) -> f64 {
        self.largest() / self.smallest()
    }

    /// Participation ratio: d when all eigenvalues are equal, 1 when one outweighs the rest.
    pub(crate) fn effective_dimension(&self) -> f64 {
        participation(&self.0)
    }

    /// Largest variance.
    pub(crate) fn largest(&self) -> f64 {
        self.0.first().copied().unwrap_or(f64::NAN)
    }

    /// Smallest variance.
    pub(crate) fn smallest(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }
}

/// Participation ratio of some variances: their number when all are equal, 1 when one outweighs the rest, 0 when
/// there is none.
pub(crate) fn participation<T: Copy + Into<f64>>(variances: &[T]) -> f64 {
    let (sum, squares) = variances.iter().fold((0.0, 0.0), |(s, q), v| {
        let v: f64 = (*v).into();
        (s + v, q + v * v)
    });
    if squares > 0.0 {
        sum * sum / squares
    } else {
        0.0
    }
}

/// Spectra of at most `limit` cells, spread evenly over all.
pub(crate) fn sample(model: &Gaussians, limit: usize) -> Vec<Spectrum> {
    let chosen = limit.min(model.len());
    (0..chosen)
        .map(|i| of_cell(model, i * model.len() / chosen))
        .collect()
}

fn of_cell(model: &Gaussians, cell: usize) -> Spectrum {
    let factor: Vec<f64> = model.factor(cell).iter().map(|v| f64::from(*v)).collect();
    let dim = model.dim();
    let mut values = match model.factors.covariance() {
        Covariance::Full => symmetric_eigen(&covariance(&factor, dim), dim).values,
        Covariance::Diagonal => factor.iter().map(|v| v * v).collect(),
        Covariance::Isotropic => vec![factor[0] * factor[0]; dim],
    };
    values.sort_by(|a, b| b.total_cmp(a));
    // Rounding can push a tiny variance below zero, and a ratio with it.
    let floor = values.first().copied().unwrap_or(0.0) * f64::EPSILON;
    values.iter_mut().for_each(|v| *v = v.max(floor));
    Spectrum(values)
}

/// Lower triangle of L Lᵀ, row-major, from the packed rows of L.
fn covariance(packed: &[f64], dim: usize) -> Vec<f64> {
    let row = |i: usize| &packed[i * (i + 1) / 2..][..=i];
    let mut sigma = vec![0.0; dim * dim];
    for i in 0..dim {
        for j in 0..=i {
            sigma[i * dim + j] = row(i).iter().zip(row(j)).map(|(a, b)| a * b).sum();
        }
    }
    sigma
}

#[cfg(test)]
mod tests {
    use garlic_ann::Matrix;
    use garlic_ann::model::Factors;

    use super::*;

    fn model(covariance: Covariance, values: Vec<f32>, dim: usize) -> Gaussians {
        Gaussians {
            means: Matrix::zeros(1, dim),
            factors: Factors::from_values(covariance, values),
        }
    }

    #[test]
    fn a_full_factor_has_the_eigenvalues_of_its_covariance() {
        // L = [[2, 0], [1, 1]]: Sigma = [[4, 2], [2, 2]], eigenvalues 3 +- sqrt(5).
        let s = &sample(&model(Covariance::Full, vec![2.0, 1.0, 1.0], 2), 4)[0];
        assert!((s.largest() - (3.0 + 5_f64.sqrt())).abs() < 1e-12);
        assert!((s.smallest() - (3.0 - 5_f64.sqrt())).abs() < 1e-12);
        assert!((s.effective_dimension() - 36.0 / 28.0).abs() < 1e-12);
    }

    #[test]
    fn simpler_factors_need_no_decomposition() {
        let s = &sample(&model(Covariance::Diagonal, vec![1.0, 3.0], 2), 1)[0];
        assert_eq!((s.largest(), s.smallest(), s.anisotropy()), (9.0, 1.0, 9.0));
        let s = &sample(&model(Covariance::Isotropic, vec![0.5], 5), 1)[0];
        assert_eq!((s.anisotropy(), s.effective_dimension()), (1.0, 5.0));
        assert_eq!(participation(&[2.0_f32, 2.0, 0.0]), 2.0);
        assert_eq!(participation::<f32>(&[0.0]), 0.0);
    }
}
