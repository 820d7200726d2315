//! Encodes the points of one cell.
//!
//! [`Projected`] holds them in the frame of the cell, `assign_bins` clusters them into bins, `encode` writes the
//! codes. A build does this for every cell, an update for added points and rewritten cells.

use crate::quantize::{Steps, code, coded_length, decoded, encode, fit_steps};
use crate::transform;
use garlic_linalg::{Matrix, Operand, gemm, kmeans_plus_plus, lloyd, nearest_centres};
use garlic_simd::CodeBits;

use super::arrays::Bounds;
use crate::quantize::{BIN_BITS, ROUNDING, zero_code};
use garlic_core::{Lists, by_label};

/// Lloyd iterations within a cell.
const KMEANS_ROUNDS: usize = 8;
/// Points in the frame of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Projected {
    /// Coordinates in the frame, one point per row.
    pub(crate) y: Matrix,
    /// Squared distances from the mean of the cell.
    pub(crate) norms: Vec<f32>,
    /// Squared distances from the frame.
    pub(crate) residual_squared: Vec<f32>,
}

/// Quantization steps of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scales {
    /// Inner products of the axes with the mean.
    pub(crate) origin: Vec<f32>,
    /// Steps of the codes of bin centres, `width` values.
    pub(crate) bin_steps: Vec<f32>,
    /// Steps of the codes of points, `width` values.
    pub(crate) steps: Vec<f32>,
}

impl Scales {
    /// The steps of bin codes and point codes.
    pub(crate) fn steps(&self) -> Steps<'_> {
        Steps {
            bins: &self.bin_steps,
            points: &self.steps,
        }
    }
}

/// Assignment of points to bins.
pub(crate) struct BinAssignment {
    centres: Matrix,
    labels: Vec<u32>,
}

/// Bins and codes of the points of a cell.
#[derive(Default)]
pub(crate) struct EncodedCell {
    /// The points in stored order, that is, ordered by bin.
    pub(crate) order: Vec<u32>,
    /// Number of points of each bin.
    pub(crate) sizes: Vec<u32>,
    pub(crate) bin_blocks: Vec<u8>,
    pub(crate) blocks: Vec<u8>,
    pub(crate) bounds: Vec<Bounds>,
}

impl Projected {
    /// Projects transformed points. `residual_squared` holds their squared distances from the truncated space.
    pub(crate) fn new(
        mut points: Matrix,
        residual_squared: Vec<f32>,
        mean: &[f32],
        axes: &[f32],
    ) -> Self {
        let (count, dim) = (points.rows(), mean.len());
        let rank = axes.len() / dim;
        for row in points.as_mut_slice().chunks_exact_mut(dim) {
            for (x, m) in row.iter_mut().zip(mean) {
                *x -= m;
            }
        }
        let mut y = Matrix::zeros(count, rank);
        gemm(
            y.as_mut_slice(),
            Operand::new(points.as_slice(), count, dim),
            Operand::transposed(axes, rank, dim),
            1.0,
            0.0,
        );
        let norms: Vec<f32> = points
            .as_rows()
            .iter()
            .zip(residual_squared)
            .map(|(row, residual_squared)| garlic_simd::dot(row, row) + residual_squared)
            .collect();
        let residual_squared = y
            .as_rows()
            .iter()
            .zip(&norms)
            .map(|(y, norm)| transform::residual_squared(*norm, y))
            .collect();
        Self {
            y,
            norms,
            residual_squared,
        }
    }

    /// Number of points.
    pub(crate) fn len(&self) -> usize {
        self.norms.len()
    }

    /// Clusters the points into bins of about `bin_size`. Points that are held out are assigned to the bins of the
    /// others.
    pub(crate) fn assign_bins(
        &self,
        bin_size: usize,
        seed: u64,
        is_held: impl Fn(u32) -> bool,
    ) -> BinAssignment {
        let numbers = 0..self.len() as u32;
        let (out, seen): (Vec<u32>, Vec<u32>) = numbers.partition(|i| is_held(*i));
        // If all points are held out, bins are fitted to them.
        let (seen, out) = if seen.is_empty() {
            (out, seen)
        } else {
            (seen, out)
        };
        let sample = Matrix::gather(self.y.as_rows(), &seen);
        let count = seen.len().div_ceil(bin_size).max(1);
        let seeds = kmeans_plus_plus(sample.as_rows(), count, seed);
        let clustering = lloyd(sample.as_rows(), seeds, KMEANS_ROUNDS);
        let others = Matrix::gather(self.y.as_rows(), &out);
        let (theirs, _) = nearest_centres(others.as_rows(), clustering.centres.as_rows());
        let mut labels = vec![0; self.len()];
        for (i, label) in seen
            .iter()
            .zip(clustering.labels)
            .chain(out.iter().zip(theirs))
        {
            labels[*i as usize] = label;
        }
        BinAssignment {
            centres: clustering.centres,
            labels,
        }
    }

    /// Steps that fit these points.
    pub(crate) fn scales(
        &self,
        mean: &[f32],
        axes: &[f32],
        width: usize,
        bits: CodeBits,
    ) -> Scales {
        let rows = self.y.as_rows();
        Scales {
            origin: axes
                .chunks_exact(mean.len())
                .map(|a| garlic_simd::dot(a, mean))
                .collect(),
            bin_steps: fit_steps(rows, width, BIN_BITS),
            steps: fit_steps(rows, width, bits),
        }
    }

    /// Encodes bins and points and computes bounds.
    pub(crate) fn encode(
        &self,
        assignment: &BinAssignment,
        steps: Steps<'_>,
        width: usize,
        bits: CodeBits,
    ) -> EncodedCell {
        let bins = Lists::group(assignment.centres.rows(), by_label(&assignment.labels));
        let sizes = (0..assignment.centres.rows()).map(|b| bins.get(b).len() as u32);
        let mut part = EncodedCell {
            order: Vec::with_capacity(self.len()),
            sizes: sizes.collect(),
            ..EncodedCell::default()
        };
        let mut bin_norms = Vec::with_capacity(part.sizes.len());
        for (bin, centre) in assignment.centres.as_rows().iter().enumerate() {
            let inside = bins.get(bin);
            let residual_squared = inside.iter().map(|i| self.residual_squared[*i as usize]);
            let mean_residual_squared = residual_squared.sum::<f32>() / inside.len() as f32;
            bin_norms.push(coded_length(centre, steps.bins) + mean_residual_squared);
            part.bounds.push(self.bounds(centre, steps, bits, inside));
            let rows = inside.iter().map(|i| *i as usize);
            let rows = rows.map(|i| (self.y.row(i), self.norms[i]));
            encode(bits, width, steps.points, rows, &mut part.blocks);
            part.order.extend(inside);
        }
        let rows = assignment.centres.as_rows().iter().zip(bin_norms);
        encode(BIN_BITS, width, steps.bins, rows, &mut part.bin_blocks);
        part
    }

    /// Bounds of a bin around `centre` with these members.
    pub(crate) fn bounds(
        &self,
        centre: &[f32],
        steps: Steps<'_>,
        bits: CodeBits,
        members: &[u32],
    ) -> Bounds {
        let coded = |row: &[f32], steps: &[f32], bits: CodeBits| -> Vec<f32> {
            let values = row.iter().zip(steps);
            values.map(|(v, s)| decoded(bits, *v, *s)).collect()
        };
        let centre = coded(centre, steps.bins, BIN_BITS);
        let steps = steps.points;
        let mut bounds = Bounds {
            low: f32::INFINITY,
            ..Bounds::default()
        };
        for i in members {
            let i = *i as usize;
            let (y, norm, residual_squared) =
                (self.y.row(i), self.norms[i], self.residual_squared[i]);
            let slack = norm * ROUNDING;
            let rounding = slack.sqrt() * ROUNDING.sqrt();
            let radius = garlic_simd::l2_squared(y, &centre).sqrt() + rounding;
            let error = garlic_simd::l2_squared(y, &coded(y, steps, bits)).sqrt() + rounding;
            let code_sum: i32 = y
                .iter()
                .zip(steps)
                .map(|(v, s)| (code(bits, *v, *s) - zero_code(bits)).abs())
                .sum();
            bounds.radius = bounds.radius.max(radius);
            bounds.low = bounds.low.min((residual_squared - slack).max(0.0).sqrt());
            bounds.high = bounds.high.max((residual_squared + slack).sqrt());
            bounds.error = bounds.error.max(error);
            bounds.code_sum = bounds.code_sum.max(code_sum as f32);
        }
        bounds
    }
}
