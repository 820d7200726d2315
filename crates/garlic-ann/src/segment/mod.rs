//! The arrays of an index, and the snapshot of them that a search reads.
//!
//! In: cells, bins, codes and vectors. Out: an immutable [`Segment`], the `delta` of changes since it was encoded, and
//! a [`Snapshot`] of both. [`Index`] owns them. Later folders implement search and updates on top.

use crate::bins::EncodedBins;
use crate::graph::Graph;
use crate::partition::{AnisotropicCells, CoarseQuantizer};
use crate::transform::Int8Rotation;

mod build_stats;
mod delta;
mod filter;
mod index;
mod memory;
mod shapes;
mod snapshot;
mod uncovered;
mod views;

pub(crate) use build_stats::BuildStats;
pub(crate) use delta::{
    AppendBuffer, Bits, CodeShape, Delta, DeltaCell, DeltaSegment, IdMap, Numbering,
    PAGE_POSITIONS, Place, Places, PointsToEncode, RefittedCell, RewrittenCell,
};
pub(crate) use filter::{Allowed, Gathered, translate};
pub use index::Index;
pub(crate) use snapshot::Snapshot;
pub(crate) use uncovered::UncoveredPoints;
pub(crate) use views::BinView;

use std::sync::{Arc, OnceLock};

use garlic_core::buffer::Buffer;
use garlic_core::vectors::StoredVectors;
use garlic_core::{IdLookup, Transform};
use garlic_simd::CodeBits;
use rayon::prelude::*;

/// Cells with their bins, codes, vectors and identifiers, as they were encoded.
///
/// Cloning is cheap: clones share all large arrays.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Segment {
    pub(crate) cells: AnisotropicCells,
    pub(crate) encoded: EncodedBins,
    /// Original vectors in cell order. The row number of a vector is its *position*.
    pub(crate) vectors: StoredVectors,
    /// Identifier of each position.
    pub(crate) ids: Buffer<u64>,
    /// The rotation of the transform, in an allocation of its own.
    pub(crate) rotation: Buffer<f32>,
    /// The neighbour graph, if there is one.
    pub(crate) graph: Option<Arc<Graph>>,
    derived: Arc<Derived>,
}

/// Arrays derived from the segment. Each is computed on first use.
#[derive(Debug, Default)]
struct Derived {
    /// Cell of every bin.
    bin_cell: OnceLock<Buffer<u32>>,
    /// Centres of all bins, `rank` values each.
    centres: OnceLock<Buffer<f32>>,
    int8_rotation: OnceLock<Option<Int8Rotation>>,
    coarse_quantizer: OnceLock<Option<CoarseQuantizer>>,
    lookup: OnceLock<IdLookup>,
}

/// Upper limit of the error that the 8-bit rotation adds to a query's squared distance, as a share of the mean squared
/// distance of a point from its cell mean.
const MAX_INT8_ERROR: f64 = 0.01;

impl PartialEq for Derived {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Segment {
    pub(crate) fn new(
        transform: &Transform,
        cells: AnisotropicCells,
        encoded: EncodedBins,
        vectors: StoredVectors,
        ids: Buffer<u64>,
    ) -> Self {
        let rotation = transform.rotation.as_ref();
        Self {
            cells,
            encoded,
            vectors,
            ids,
            rotation: rotation
                .map_or_else(Vec::new, |r| r.as_slice().to_vec())
                .into(),
            graph: None,
            derived: Arc::default(),
        }
    }

    /// The map from identifiers to positions.
    pub(crate) fn lookup(&self) -> &IdLookup {
        let make = || IdLookup::new(&self.ids);
        self.derived.lookup.get_or_init(make)
    }

    /// Bytes of [`Segment::lookup`], 0 before its first use.
    pub(crate) fn lookup_bytes(&self) -> u64 {
        self.derived.lookup.get().map_or(0, IdLookup::bytes)
    }

    /// Cell of every bin.
    #[inline]
    pub(crate) fn bin_cell(&self) -> &[u32] {
        self.derived.bin_cell.get_or_init(|| {
            let mut cells = vec![0; self.bins()];
            for cell in 0..self.cells.len() {
                // Cells that are out of order have no bins, so every bin is written at most once.
                cells[self.encoded.bins_of(cell)].fill(cell as u32);
            }
            cells.into()
        })
    }

    /// Centres of all bins, `rank` values each.
    #[inline]
    pub(crate) fn centres(&self) -> &[f32] {
        self.derived.centres.get_or_init(|| {
            let rank = self.cells.rank();
            let mut centres = Vec::new();
            for cell in 0..self.cells.len() {
                self.encoded.decode_centres(cell, rank, &mut centres);
            }
            centres.into()
        })
    }

    /// The 8-bit rotation for byte queries, or `None` if its error would be too large. `mean` is the mean of the data,
    /// `radius` the mean squared distance of points from their cell means.
    #[inline]
    pub(crate) fn int8_rotation(&self, mean: &[f32], radius: f64) -> Option<&Int8Rotation> {
        let made = || {
            if mean.is_empty() || mean.len() > garlic_simd::MAX_U8_LENGTH {
                return None;
            }
            let rotation = Int8Rotation::new(&self.rotation, mean);
            // Rounding adds an error of `step / sqrt(12)` times the length of the vector to each coordinate. The error
            // of the squared length is twice the length times that.
            let noise = 2.0 * rotation.mean_step() / 12f64.sqrt() * (self.spread() + radius);
            (noise <= MAX_INT8_ERROR * radius).then_some(rotation)
        };
        self.derived.int8_rotation.get_or_init(made).as_ref()
    }

    /// The coarse quantizer over the cells, or `None` if there are too few cells.
    #[inline]
    pub(crate) fn coarse_quantizer(&self) -> Option<&CoarseQuantizer> {
        let made = || CoarseQuantizer::new(&self.cells.means, self.cells.dim());
        self.derived.coarse_quantizer.get_or_init(made).as_ref()
    }

    /// Mean squared distance of the cell means from the mean of the data, weighted by points.
    fn spread(&self) -> f64 {
        let cells = (0..self.cells.len()).map(|cell| {
            let mean = &self.cells.means[cell * self.cells.dim()..][..self.cells.dim()];
            let count = self.cell_len(cell) as f64;
            (count, count * f64::from(garlic_simd::dot(mean, mean)))
        });
        let (count, sum) = cells.fold((0.0, 0.0), |(n, s), (count, square)| {
            (n + count, s + square)
        });
        sum / f64::max(count, 1.0)
    }

    /// Bytes of the derived arrays computed so far.
    pub(crate) fn derived_bytes(&self) -> u64 {
        let cells = self.derived.bin_cell.get().map_or(0, |v| size_of_val(&**v));
        let centres = self.derived.centres.get().map_or(0, |v| size_of_val(&**v));
        let rotation = self.derived.int8_rotation.get().and_then(Option::as_ref);
        let rotation = rotation.map_or(0, Int8Rotation::bytes);
        let quantizer = self.derived.coarse_quantizer.get().and_then(Option::as_ref);
        let tables = self.encoded.copied_bytes();
        (cells + centres + rotation) as u64 + quantizer.map_or(0, CoarseQuantizer::bytes) + tables
    }

    /// Number of bins.
    pub(crate) fn bins(&self) -> usize {
        self.encoded.bounds.len()
    }

    /// The cells as Gaussians. The mean variance of their points sets the lower limit of a variance.
    pub(crate) fn shapes(&self) -> shapes::Shapes<'_> {
        let cells = &self.cells;
        let variance: f64 = (0..cells.len())
            .map(|cell| {
                let along: f64 = cells.variances(cell).iter().map(|v| f64::from(*v)).sum();
                let others = cells.dim().saturating_sub(cells.rank()) as f64;
                along + others * f64::from(cells.residual_variance(cell))
            })
            .sum();
        let values = (cells.len() * cells.dim()).max(1) as f64;
        shapes::Shapes::new(cells, variance / values)
    }

    /// Number of points of a cell.
    pub(crate) fn cell_len(&self, cell: usize) -> usize {
        let bins = self.encoded.bins_of(cell);
        let starts = self.encoded.starts();
        let first = |bin: usize| starts.get(bin).map_or(0, |bin| bin.first);
        first(bins.end).saturating_sub(first(bins.start)) as usize
    }

    /// The cell of a position.
    pub(crate) fn cell_of(&self, position: usize) -> usize {
        let bin = self
            .encoded
            .starts()
            .partition_point(|bin| bin.first as usize <= position);
        let cell = self.bin_cell().get(bin.saturating_sub(1));
        cell.map_or(0, |cell| *cell as usize)
    }

    /// The cells of positions.
    pub(crate) fn cells_of(&self, positions: impl IndexedParallelIterator<Item = u32>) -> Vec<u32> {
        let cell = |position: u32| self.cell_of(position as usize) as u32;
        positions.map(cell).collect()
    }

    /// Bits of a coordinate in a code.
    pub(crate) fn code_bits(&self) -> usize {
        match self.encoded.bits {
            CodeBits::Eight => 8,
            CodeBits::Four => 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::rows;

    /// Pseudo-random bytes.
    fn bytes(n: usize, dim: usize) -> Vec<u8> {
        let byte = |i: usize| (i * 7919 % 251 + i / dim % 5) as u8;
        (0..n * dim).map(byte).collect()
    }

    #[test]
    fn queries_of_bytes_are_rotated_nearly_as_floats_are() {
        let (n, dim) = (600, 24);
        let bytes = bytes(n, dim);
        let values: Vec<f32> = bytes.iter().map(|b| f32::from(*b)).collect();
        let rows = rows(&values, dim);
        let index = Index::builder().build(rows).unwrap();
        let (segment, mean) = (&index.segment, &index.transform.mean);
        let rotation = segment
            .int8_rotation(mean, index.build_stats.radius)
            .unwrap();
        let wide = segment.cells.dim();
        let mut int8 = vec![0.0; n * wide];
        rotation.rotate(&bytes, dim, &mut Vec::new(), &mut int8);
        for (row, int8) in rows.iter().zip(int8.chunks_exact(wide)) {
            let centred: Vec<f32> = row.iter().zip(mean).map(|(x, m)| x - m).collect();
            let mut exact = vec![0.0; wide];
            garlic_simd::dots(&segment.rotation, &centred, &mut exact);
            let (gap, length) = (
                garlic_simd::l2_squared(int8, &exact),
                garlic_simd::dot(&exact, &exact),
            );
            assert!(gap <= 1e-4 * length, "{gap} of {length}");
        }
    }

    #[test]
    fn small_cells_do_not_use_the_8_bit_rotation() {
        let (n, dim) = (600, 24);
        let values: Vec<f32> = bytes(n, dim).iter().map(|b| f32::from(*b)).collect();
        // A calibration would search and so decide about the rotation.
        let builder = Index::builder().set("calibration_queries", "0").unwrap();
        let index = builder.build(rows(&values, dim)).unwrap();
        let segment = &index.segment;
        assert!(segment.int8_rotation(&index.transform.mean, 1.0).is_none());
    }
}
