//! Mahalanobis distances of a tile of points to one cell, a few coordinates at a time.
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
        let residual = &self.residual[..(to - from) * LANES];
        match &model.factors {
            Factors::Full(_) => {
                garlic_simd::solve_rows(factor, from, to, &self.residual, &mut self.solution, sums);
            }
            Factors::Diagonal(_) => scaled(residual, factor[from..to].iter().copied(), sums),
            Factors::Isotropic(_) => scaled(residual, std::iter::repeat(factor[0]), sums),
        }
    }
}

/// Adds the squares of residuals over the scales of their coordinates.
fn scaled(residual: &[f32], scales: impl Iterator<Item = f32>, sums: &mut [f32; LANES]) {
    let (rows, _) = residual.as_chunks::<LANES>();
    for (lanes, scale) in rows.iter().zip(scales) {
        let inverse = 1.0 / scale;
        for (sum, x) in sums.iter_mut().zip(lanes) {
            let y = x * inverse;
            *sum += y * y;
        }
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
