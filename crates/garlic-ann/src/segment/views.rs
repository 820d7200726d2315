//! What a snapshot shows of a cell, of a bin and of a point, wherever they lie.

use garlic_core::vectors::{Prepared, StoredRows, StoredVectors};
use garlic_simd::{CodeBits, CodeQuery, Estimate};

use crate::partition::CellShape;
use crate::quantize::Steps;

/// Axes and quantization steps of a cell.
pub(crate) struct CellFrame<'a> {
    pub(crate) shape: CellShape<'a>,
    /// Inner products of the axes with the mean.
    pub(crate) origin: &'a [f32],
    pub(crate) bin_steps: &'a [f32],
    pub(crate) steps: &'a [f32],
}

impl<'a> CellFrame<'a> {
    /// The steps of bin codes and point codes.
    pub(crate) fn code_steps(&self) -> Steps<'a> {
        Steps {
            bins: self.bin_steps,
            points: self.steps,
        }
    }
}

/// A bin: its codes, and the positions of its points.
#[derive(Clone, Copy, Default)]
pub(crate) struct BinView<'a> {
    pub(crate) cell: u32,
    pub(crate) first: u32,
    pub(crate) len: usize,
    pub(crate) codes: &'a [u8],
}

impl BinView<'_> {
    /// Appends the points whose estimate is below `limit`.
    #[inline]
    pub(crate) fn scan(
        &self,
        bits: CodeBits,
        query: &CodeQuery<'_>,
        limit: f32,
        found: &mut Vec<Estimate>,
    ) {
        let before = found.len();
        garlic_simd::scan_codes(bits, self.codes, query, limit, self.first, found);
        // Padding comes last. In a file that was not verified it may look like a point.
        let end = self.first as usize + self.len;
        while found.len() > before && found.last().is_some_and(|f| f.at as usize >= end) {
            found.pop();
        }
    }
}

/// A stored point.
#[derive(Clone, Copy)]
pub(crate) struct PointView<'a> {
    pub(super) vectors: &'a StoredVectors,
    pub(super) at: usize,
    pub(crate) id: u64,
}

impl PointView<'_> {
    /// Squared distance from a query.
    #[inline]
    pub(crate) fn distance(&self, query: &Prepared<'_>) -> f32 {
        self.vectors.distance(query, self.at)
    }

    /// Reads the vector into `out`.
    pub(crate) fn read(&self, dim: usize, out: &mut Vec<f32>) {
        self.vectors.read(dim, self.at, out);
    }

    /// Appends the vector to `rows`.
    pub(crate) fn push_to(&self, rows: &mut StoredRows, dim: usize) {
        rows.push(self.vectors, dim, self.at);
    }
}
