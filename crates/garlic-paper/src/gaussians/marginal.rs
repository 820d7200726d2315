//! Marginals of the cells along a few leading axes of the data: lower bounds of all distances, at little cost.
//!
//! For any matrix P the Mahalanobis distance of P x in the Gaussian (P mean, P Sigma Pᵀ) is at most that of x in the
//! Gaussian itself. With the leading principal axes as P it comes close, where the first coordinates of the data alone say
//! next to nothing: pruning with it is exact, and needs no rotation of the space that the cells are trained in.

use garlic_core::{Cancel, Result};
use garlic_linalg::{
    Matrix, Operand, Rows, cholesky, gemm, gram, permutation, times_lower, top_components,
};
use rayon::prelude::*;

use super::mahalanobis::STEP;
use super::{Factors, Gaussians, packed_len, unpack};
use crate::config::{Config, Covariance};
use crate::streams;

/// Dimensions below this are evaluated without marginals: there is little to save.
const SMALLEST_DIM: usize = 3 * STEP;
/// Most axes that points are projected to.
const MOST_AXES: usize = 4 * STEP;
/// Points that the axes are fitted to.
const SAMPLE: usize = 10_000;
/// Rows that one task projects.
const CHUNK: usize = 1024;
/// Rounding of a distance in a marginal, as a share of the longest vector over the smallest scale of the factor: a few
/// times the unit of single precision for every axis.
const ROUNDING: f64 = 3e-5;
/// A factor whose diagonal spans more than this is too close to singular for its rounding to be known.
const WORST_FACTOR: f64 = 1e4;

/// Axes to project to, one a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axes(Matrix);

impl Axes {
    /// The leading principal axes of `points`, at most `count`; `None` for points without any spread.
    pub(crate) fn of(points: Rows<'_>, count: usize, seed: u64) -> Option<Self> {
        let mut ids = permutation(points.len(), seed, streams::AXES);
        ids.truncate(SAMPLE);
        ids.sort_unstable();
        let sample = Matrix::gather(points, &ids);
        let axes = top_components(sample.as_rows(), count, seed).basis;
        (axes.rows() > 0).then_some(Self(axes))
    }

    /// Number of axes.
    pub(crate) fn len(&self) -> usize {
        self.0.rows()
    }

    /// Bytes they take.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.0.as_slice())
    }

    /// Writes rows in the coordinates of the axes to `out`.
    pub(crate) fn project(&self, rows: &[f32], out: &mut [f32]) {
        let dim = self.0.cols();
        let left = Operand::new(rows, rows.len() / dim, dim);
        let right = Operand::transposed(self.0.as_slice(), self.len(), dim);
        gemm(out, left, right, 1.0, 0.0);
    }

    /// The marginal of a cell with a full factor: its packed factor goes to `out`, what is returned bounds its rounding.
    pub(crate) fn marginal(
        &self,
        model: &Gaussians,
        cell: usize,
        buffers: &mut Buffers,
        out: &mut [f32],
    ) -> Scales {
        let (dim, count) = (model.dim(), self.len());
        buffers.square.resize(dim * dim, 0.0);
        buffers.product.resize(count * dim, 0.0);
        unpack(model.factor(cell), &mut buffers.square, dim);
        let axes = self.0.as_slice();
        times_lower(&mut buffers.product, axes, count, &buffers.square, dim);
        factor_of_gram(&buffers.product, count, dim, out)
    }

    /// Multiply-adds of one marginal.
    fn marginal_madds(&self) -> u64 {
        let (dim, count) = (self.0.cols() as u64, self.len() as u64);
        count * dim * (dim + count) / 2
    }
}

/// Matrices that computing a marginal needs.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    square: Vec<f32>,
    product: Vec<f32>,
}

/// Writes the packed Cholesky factor of B Bᵀ for a `count` x `dim` matrix B. Returns its smallest and largest diagonal
/// value; the identity and no scale at all where B has not full rank.
fn factor_of_gram(b: &[f32], count: usize, dim: usize, out: &mut [f32]) -> Scales {
    let factor = cholesky(&gram(b, count, dim), count).ok();
    let mut scales = Scales {
        smallest: f64::INFINITY,
        largest: 0.0,
    };
    for i in 0..count {
        let packed = &mut out[packed_len(i)..packed_len(i + 1)];
        match &factor {
            Some(factor) => {
                let row = &factor[i * count..=i * count + i];
                packed.iter_mut().zip(row).for_each(|(p, v)| *p = *v as f32);
                scales.smallest = scales.smallest.min(row[i]);
                scales.largest = scales.largest.max(row[i]);
            }
            None => {
                packed.fill(0.0);
                packed[i] = 1.0;
                scales.smallest = 0.0;
            }
        }
    }
    scales
}

/// Smallest and largest value on the diagonal of a marginal's factor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scales {
    smallest: f64,
    largest: f64,
}

impl Scales {
    /// What rounding may have added to the distance in the marginal, of a point that is no longer than `reach`; infinite
    /// where that is not known.
    pub(crate) fn margin(self, reach: f64) -> f32 {
        match self.largest <= self.smallest * WORST_FACTOR {
            true => (ROUNDING * reach.max(self.largest) / self.smallest) as f32,
            false => f32::INFINITY,
        }
    }
}

/// Marginals of all cells.
#[derive(Clone, Debug)]
pub(super) struct Marginals {
    /// Means and full factors in the coordinates of the axes.
    pub(super) gaussians: Gaussians,
    /// What rounding may have added to a distance, for each cell.
    pub(super) margins: Vec<f32>,
    /// Multiply-adds that computing them took.
    pub(super) madds: u64,
}

/// A set of points in the coordinates of the leading axes.
#[derive(Clone, Debug)]
pub(crate) struct Projected {
    axes: Axes,
    points: Matrix,
    /// Length of the longest of them.
    reach: f64,
}

impl Projected {
    /// Projects `points` to their leading axes. `None` where that saves nothing: few coordinates, or independent ones, or
    /// points whose first coordinates are the leading axes already.
    pub(crate) fn of(points: Rows<'_>, config: &Config) -> Option<Self> {
        let dim = points.dim();
        let simple = config.init.covariance != Covariance::Full;
        if simple || config.rotates() || dim < SMALLEST_DIM {
            return None;
        }
        let most = (dim / 4).next_multiple_of(STEP).min(MOST_AXES);
        let axes = Axes::of(points, most, config.seed)?;
        let count = axes.len();
        let mut projected = Matrix::zeros(points.len(), count);
        projected
            .as_mut_slice()
            .par_chunks_mut(CHUNK * count)
            .enumerate()
            .for_each(|(chunk, out)| {
                let from = chunk * CHUNK;
                let rows = points.slice(from..from + out.len() / count);
                axes.project(rows.data(), out);
            });
        let rows = projected.as_rows();
        let longest = rows
            .iter()
            .map(|row| garlic_simd::dot(row, row))
            .fold(0.0, f32::max);
        Some(Self {
            axes,
            points: projected,
            reach: f64::from(longest).sqrt(),
        })
    }

    /// Some of the points.
    pub(crate) fn gather(&self, ids: &[u32]) -> Self {
        Self {
            axes: self.axes.clone(),
            points: Matrix::gather(self.points.as_rows(), ids),
            reach: self.reach,
        }
    }

    /// Multiply-adds of one cell's marginal.
    pub(super) fn marginal_madds(&self) -> u64 {
        self.axes.marginal_madds()
    }

    /// The points in the coordinates of the axes.
    pub(super) fn points(&self) -> Rows<'_> {
        self.points.as_rows()
    }

    /// Marginals of all cells, which have full factors.
    ///
    /// # Errors
    /// When cancelled.
    pub(super) fn marginals(&self, model: &Gaussians, cancel: &Cancel) -> Result<Marginals> {
        let count = self.axes.len();
        let mut means = Matrix::zeros(model.len(), count);
        self.axes
            .project(model.means.as_slice(), means.as_mut_slice());
        let mut factors = vec![0.0f32; model.len() * packed_len(count)];
        let margins = factors
            .par_chunks_mut(packed_len(count))
            .enumerate()
            .map_init(Buffers::default, |buffers, (cell, out)| {
                cancel.check()?;
                let scales = self.axes.marginal(model, cell, buffers, out);
                Ok(scales.margin(self.reach))
            })
            .collect::<Result<_>>()?;
        let factors = Factors::Full(factors);
        Ok(Marginals {
            gaussians: Gaussians { means, factors },
            margins,
            madds: model.len() as u64 * self.axes.marginal_madds(),
        })
    }
}
