//! Mahalanobis distances of a tile of points to one cell with a full factor, or of a point to one with a simpler factor, a few
//! coordinates at a time.
//!
//! L⁻¹ is lower triangular, so the first m rows of L⁻¹(x - mean) depend on the first m coordinates alone and
//! their squared length is a lower bound of the squared distance. It is summed in the order of the rows, so
//! the bound never exceeds the final value, not even by rounding: pruning with it is exact.

use garlic_linalg::Rows;
use garlic_simd::LANES;

use super::{Factors, Gaussians};

/// Coordinates after which a tile asks whether it can stop. A multiple of the kernels' row blocks, so that
/// the sums do not depend on where a tile was interrupted.
pub(super) const STEP: usize = 32;

/// One cell whose factor is diagonal or isotropic. Its distances are sums over coordinates, so that each point is evaluated
/// by itself, where it lies: tiles would have to be gathered and transposed for every cell.
pub(super) struct SimpleCell<'a> {
    mean: &'a [f32],
    /// One over the scale of each coordinate.
    inverse: Vec<f32>,
}

impl<'a> SimpleCell<'a> {
    /// A cell of a model; none for a full factor.
    pub(super) fn of(model: &'a Gaussians, cell: usize) -> Option<Self> {
        let inverse: Vec<f32> = match &model.factors {
            Factors::Full(_) => return None,
            Factors::Diagonal(_) => model.factor(cell).iter().map(|s| 1.0 / s).collect(),
            Factors::Isotropic(_) => vec![1.0 / model.factor(cell)[0]; model.dim()],
        };
        Some(Self {
            mean: model.mean(cell),
            inverse,
        })
    }

    /// The squared distance of a point, summed step by step as long as it is at most `limit`, and the number of
    /// coordinates behind it. The sum never falls, not even by rounding: what is broken off is a lower bound.
    pub(super) fn distance(&self, point: &[f32], limit: f32) -> (f32, usize) {
        let (mut sum, mut from) = (0.0, 0);
        while from < point.len() && sum <= limit {
            let to = (from + STEP).min(point.len());
            sum += self.part(point, from, to);
            from = to;
        }
        (sum, from)
    }

    /// The lower bound from the first step of coordinates.
    pub(super) fn prefix(&self, point: &[f32]) -> f32 {
        self.part(point, 0, STEP.min(point.len()))
    }

    /// The squares of some coordinates, at most a step of them, in sums side by side.
    fn part(&self, point: &[f32], from: usize, to: usize) -> f32 {
        let mut sums = [0.0f32; PARTS];
        let (points, point_rest) = point[from..to].as_chunks::<PARTS>();
        let (means, mean_rest) = self.mean[from..to].as_chunks::<PARTS>();
        let (inverses, inverse_rest) = self.inverse[from..to].as_chunks::<PARTS>();
        for ((x, m), w) in points.iter().zip(means).zip(inverses) {
            for i in 0..PARTS {
                let y = (x[i] - m[i]) * w[i];
                sums[i] += y * y;
            }
        }
        let rest = point_rest.iter().zip(mean_rest).zip(inverse_rest);
        for (sum, ((x, m), w)) in sums.iter_mut().zip(rest) {
            let y = (x - m) * w;
            *sum += y * y;
        }
        sums.iter().sum()
    }
}

/// Sums of a [`SimpleCell`] that run side by side.
const PARTS: usize = 16;

/// Scratch for one tile of up to [`LANES`] points.
pub(super) struct Tile {
    residual: Vec<f32>,
    solution: Vec<f32>,
}

impl Tile {
    pub(super) fn new(dim: usize) -> Self {
        Self {
            residual: vec![0.0; STEP.min(dim) * LANES],
            solution: vec![0.0; dim * LANES],
        }
    }

    /// Squared Mahalanobis distances from `points[ids]` to `cell`; lanes past the end repeat the last point.
    ///
    /// After every step `go_on` sees the bounds so far and says whether any lane is still of interest.
    /// Returns the bounds and the number of coordinates they cover: final when that is the dimension.
    pub(super) fn distances(
        &mut self,
        points: Rows<'_>,
        ids: &[u32],
        model: &Gaussians,
        cell: usize,
        mut go_on: impl FnMut(&[f32; LANES]) -> bool,
    ) -> ([f32; LANES], usize) {
        let dim = model.dim();
        let mean = model.mean(cell);
        let last = ids[ids.len() - 1];
        let rows: [&[f32]; LANES] =
            std::array::from_fn(|t| points.row(*ids.get(t).unwrap_or(&last) as usize));
        let mut sums = [0.0; LANES];
        let mut from = 0;
        while from < dim {
            let to = (from + STEP).min(dim);
            for (t, row) in rows.iter().enumerate() {
                for (i, (x, m)) in row[from..to].iter().zip(&mean[from..to]).enumerate() {
                    self.residual[i * LANES + t] = x - m;
                }
            }
            self.extend(model, cell, from, to, &mut sums);
            from = to;
            if from < dim && !go_on(&sums) {
                break;
            }
        }
        (sums, from)
    }

    /// Bounds from the first `to` <= [`STEP`] coordinates of points that lie transposed in `columns`.
    pub(super) fn prefix(
        &mut self,
        columns: &[f32],
        model: &Gaussians,
        cell: usize,
        to: usize,
    ) -> [f32; LANES] {
        let mean = &model.mean(cell)[..to];
        let lanes = self
            .residual
            .chunks_exact_mut(LANES)
            .zip(columns.chunks_exact(LANES));
        for ((residual, column), m) in lanes.zip(mean) {
            for t in 0..LANES {
                residual[t] = column[t] - m;
            }
        }
        let mut sums = [0.0; LANES];
        self.extend(model, cell, 0, to, &mut sums);
        sums
    }

    fn extend(
        &mut self,
        model: &Gaussians,
        cell: usize,
        from: usize,
        to: usize,
        sums: &mut [f32; LANES],
    ) {
        let factor = model.factor(cell);
        garlic_simd::solve_rows(factor, from, to, &self.residual, &mut self.solution, sums);
    }
}

/// Multiply-adds of the first `m` coordinates of one Mahalanobis distance.
pub(crate) fn madds(model: &Gaussians, m: usize) -> u64 {
    let m = m as u64;
    match model.factors {
        Factors::Full(_) => m * (m + 1) / 2 + m,
        Factors::Diagonal(_) | Factors::Isotropic(_) => 2 * m,
    }
}
