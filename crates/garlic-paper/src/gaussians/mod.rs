//! The Gaussians: means and Cholesky factors of all cells, and the distances they define.
//!
//! `mahalanobis` computes the distances of many points at once, step by step. `assign` uses it to find the nearest cell
//! of every point and the cells that cover it (within tau), exactly, with most of the work pruned; `marginal` gives it
//! bounds along the leading axes of the data.

mod assign;
mod mahalanobis;
mod marginal;

pub(crate) use assign::assign_projected;
pub use assign::{AssignWork, Assignment, assign};
pub(crate) use marginal::{Axes, Buffers, Projected};

use garlic_linalg::Matrix;

use crate::config::Covariance;

/// Number of values of a packed lower-triangular `dim` x `dim` matrix.
pub const fn packed_len(dim: usize) -> usize {
    dim * (dim + 1) / 2
}

/// Cholesky factors L of all cells; Sigma = L Lᵀ.
#[derive(Clone, Debug, PartialEq)]
pub enum Factors {
    /// Lower-triangular factors, packed row by row: entry (i, j) of a cell at `i * (i + 1) / 2 + j`.
    Full(Vec<f32>),
    /// Diagonals, `dim` values a cell.
    Diagonal(Vec<f32>),
    /// One scale a cell.
    Isotropic(Vec<f32>),
}

impl Factors {
    /// Values per cell in dimension `dim`.
    pub fn stride(covariance: Covariance, dim: usize) -> usize {
        match covariance {
            Covariance::Full => packed_len(dim),
            Covariance::Diagonal => dim,
            Covariance::Isotropic => 1,
        }
    }

    /// Factors of structure `covariance` from their flat values.
    pub fn from_values(covariance: Covariance, values: Vec<f32>) -> Self {
        match covariance {
            Covariance::Full => Self::Full(values),
            Covariance::Diagonal => Self::Diagonal(values),
            Covariance::Isotropic => Self::Isotropic(values),
        }
    }

    /// The structure.
    pub fn covariance(&self) -> Covariance {
        match self {
            Self::Full(_) => Covariance::Full,
            Self::Diagonal(_) => Covariance::Diagonal,
            Self::Isotropic(_) => Covariance::Isotropic,
        }
    }

    /// All values, cell after cell.
    pub fn values(&self) -> &[f32] {
        match self {
            Self::Full(v) | Self::Diagonal(v) | Self::Isotropic(v) => v,
        }
    }

    /// All values, cell after cell, for the optimiser.
    pub fn values_mut(&mut self) -> &mut Vec<f32> {
        match self {
            Self::Full(v) | Self::Diagonal(v) | Self::Isotropic(v) => v,
        }
    }
}

/// All cells' Gaussians, in the normalised (and rotated) space.
#[derive(Clone, Debug, PartialEq)]
pub struct Gaussians {
    /// Means, one row a cell.
    pub means: Matrix,
    /// Cholesky factors.
    pub factors: Factors,
}

impl Gaussians {
    /// Number of cells.
    pub fn len(&self) -> usize {
        self.means.rows()
    }

    /// Whether there is no cell.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Dimension.
    pub fn dim(&self) -> usize {
        self.means.cols()
    }

    /// Values of a factor.
    pub fn stride(&self) -> usize {
        Factors::stride(self.factors.covariance(), self.dim())
    }

    /// Mean of a cell.
    pub fn mean(&self, cell: usize) -> &[f32] {
        self.means.row(cell)
    }

    /// Factor of a cell, in the layout of its structure.
    pub fn factor(&self, cell: usize) -> &[f32] {
        let stride = self.stride();
        &self.factors.values()[cell * stride..(cell + 1) * stride]
    }
}

/// Packed rows to a square with zeros above the diagonal.
pub(crate) fn unpack(packed: &[f32], square: &mut [f32], dim: usize) {
    let mut rest = packed;
    for (i, row) in square.chunks_exact_mut(dim).enumerate() {
        let (own, after) = rest.split_at(i + 1);
        row[..=i].copy_from_slice(own);
        row[i + 1..].fill(0.0);
        rest = after;
    }
}

/// Keeps the diagonal of a factor at or above a floor.
pub(crate) fn raise_diagonal(factor: &mut [f32], covariance: Covariance, dim: usize, floor: f32) {
    match covariance {
        Covariance::Full => (0..dim).for_each(|i| {
            let diagonal = &mut factor[packed_len(i) + i];
            *diagonal = diagonal.max(floor);
        }),
        Covariance::Diagonal | Covariance::Isotropic => {
            factor.iter_mut().for_each(|v| *v = v.max(floor));
        }
    }
}
