//! How much memory the parts of a streamed build need: all formulas, in bytes.
//!
//! They are upper limits of what is resident at the same time. Files that a build reads and writes do not count: they
//! are not mapped, and what the system keeps of them in memory it gives up when others need the space.

use garlic_core::vectors::StoredType;
use garlic_core::{Error, Result};
use garlic_simd::{CODE_LANES, CodeBits, code_block_bytes};

use super::points::BLOCK_BYTES;
use crate::bins::{Bin, Bounds};
use crate::config::Config;
use crate::partition::{code_bits, default_cells, sample_size};
use crate::quantize::{BIN_BITS, code_width};
use crate::transform::SAMPLE_ROWS;

/// The program itself, its tables and what an allocator cannot give back.
const BASE: u64 = 24 << 20;
/// Buffers of a worker thread: products of matrices, searches.
const PER_THREAD: u64 = 6 << 20;
/// Copies of a block of rows that exist at the same time: as read, embedded, rounded, transformed, encoded.
const BLOCK_COPIES: u64 = 5;
/// The largest cell, as a multiple of the mean, before sizes are known. Training splits larger ones.
const LARGEST_CELL: u64 = 5;
/// Bytes of a point in the lists and codes of a neighbour graph, their copies and the edges of a round while it is
/// built, and the largest row in the table of its distances.
const GRAPH_BYTES: u64 = 1100;
const GRAPH_ROW: usize = 768;
/// Largest number of axes of a cell that is chosen by default.
const MOST_AXES: usize = 80;

/// Sizes of a build that its memory depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) points: usize,
    /// Coordinates of an embedded vector, and of a transformed one.
    pub(super) dim: usize,
    pub(super) out_dim: usize,
    pub(super) cells: usize,
    pub(super) rank: usize,
    pub(super) bin_size: usize,
    pub(super) bits: CodeBits,
    pub(super) element: StoredType,
    pub(super) threads: usize,
}

impl Sizes {
    /// Upper limits before the training.
    pub(super) fn expected(points: usize, dim: usize, config: &Config, threads: usize) -> Self {
        let out_dim = config.transform.max_dim.next_multiple_of(16).min(dim);
        let cells = match config.partition.cells {
            0 => default_cells(points),
            given => given,
        };
        let rank = match config.partition.axes {
            0 => MOST_AXES,
            given => given,
        };
        Self {
            points,
            dim,
            out_dim,
            cells: cells.clamp(1, points.max(1)),
            rank: rank.min(out_dim),
            bin_size: config.bins.bin_size,
            bits: code_bits(config, points),
            element: StoredType::F32,
            threads,
        }
    }

    /// What is there all the time.
    pub(super) fn base(&self) -> u64 {
        let (dim, out_dim) = (self.dim as u64, self.out_dim as u64);
        let transform = 4 * dim * (out_dim + 2);
        BASE + self.threads as u64 * PER_THREAD + BLOCK_COPIES * BLOCK_BYTES as u64 + 2 * transform
    }

    /// Fitting the transform to a sample: the order of the rows, the sample with its copies, and matrices.
    fn transform(&self) -> u64 {
        let (points, dim) = (self.points as u64, self.dim as u64);
        let sample = points.min(SAMPLE_ROWS as u64);
        let side = dim.min(sample).min(1024);
        4 * points + 3 * 4 * sample * dim + 4 * 8 * side * dim
    }

    /// Means, axes and variances of all cells.
    fn model(&self) -> u64 {
        let values = (self.rank as u64 + 1) * (self.out_dim as u64 + 1);
        4 * self.cells as u64 * values
    }

    /// Training cells on a sample, and assigning all points.
    fn train(&self) -> u64 {
        let points = self.points as u64;
        let sample = points.min(sample_size(self.cells) as u64);
        let cell = points.min(LARGEST_CELL * sample.div_ceil(self.cells as u64));
        let out_dim = self.out_dim as u64;
        // A round fits a cell in every thread, in double precision.
        let fitted = self.threads as u64 * cell * out_dim * 12;
        16 * points + sample * (4 * out_dim + 48) + fitted + 2 * self.model()
    }

    /// Bytes of a point of a group while the group is encoded, of which `threads` cells at a time.
    pub(super) fn group(&self, group: usize, largest: usize) -> u64 {
        let stored = self.element.row_bytes(self.dim) as u64;
        let (out_dim, rank) = (self.out_dim as u64, self.rank as u64);
        let record = 12 + 4 * out_dim + stored;
        let encoded = 16 + self.code_bytes(group as u64) / (group as u64).max(1);
        let working = 12 * out_dim + 16 * rank + 64;
        let busy = (self.threads as u64 * largest as u64).min(group as u64);
        group as u64 * (record + encoded) + busy * working + self.model() * 2
    }

    /// Codes and bins of some points.
    fn code_bytes(&self, points: u64) -> u64 {
        let width = code_width(self.rank);
        let bins = points.div_ceil(self.bin_size as u64) + self.cells as u64;
        // Every bin begins with a new block, and every cell with a new block of bins.
        let blocks = points.div_ceil(CODE_LANES as u64) + bins;
        let bin_blocks = bins.div_ceil(CODE_LANES as u64) + self.cells as u64;
        let derived = 8 + 4 + 4 * self.rank;
        blocks * code_block_bytes(self.bits, width) as u64
            + bin_blocks * code_block_bytes(BIN_BITS, width) as u64
            + bins * (size_of::<Bin>() * 2 + size_of::<Bounds>() + derived) as u64
    }

    /// The finished index without its vectors, while it is measured: codes, bins and identifiers.
    pub(super) fn finished(&self) -> u64 {
        12 * self.points as u64 + self.code_bytes(self.points as u64) + 2 * self.model()
    }

    /// What a neighbour graph adds to it. It is built with the vectors in memory.
    pub(super) fn graph(&self) -> u64 {
        let vector = self.element.row_bytes(self.dim) as u64;
        let row = self.dim.min(GRAPH_ROW).next_multiple_of(64) as u64;
        self.points as u64 * (GRAPH_BYTES + row + vector)
    }

    /// The memory that the whole build needs, if no cell is larger than expected.
    pub(super) fn needed(&self) -> u64 {
        let cell = LARGEST_CELL as usize * self.points.div_ceil(self.cells);
        let cell = cell.min(self.points);
        let parts = [
            self.transform(),
            self.train(),
            self.group(cell, cell),
            self.finished(),
        ];
        self.base() + parts.into_iter().max().unwrap_or(0)
    }

    /// Fails if `memory` is too small.
    pub(super) fn check(&self, memory: u64, given: u64) -> Result<()> {
        let needed = self.needed() + given;
        match needed <= memory {
            true => Ok(()),
            false => Err(self.too_little(memory, needed)),
        }
    }

    /// The error of a limit below `needed`.
    pub(super) fn too_little(&self, memory: u64, needed: u64) -> Error {
        Error::Config {
            key: "memory".into(),
            message: format!(
                "{} are too little for {} vectors of dimension {}; give at least {}",
                mebibytes(memory),
                self.points,
                self.dim,
                mebibytes(needed)
            ),
        }
    }

    /// The number of points of a group that fits into `memory`, if its largest cell has `largest`.
    pub(super) fn group_size(&self, memory: u64, largest: usize) -> Result<usize> {
        let free = memory.saturating_sub(self.base());
        let least = self.group(largest, largest);
        if least > free {
            return Err(self.too_little(memory, self.base() + least));
        }
        // The need grows with the size, so that halving an interval finds the largest that fits.
        let (mut low, mut high) = (largest, self.points.max(largest));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            match self.group(middle, largest) <= free {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        Ok(low.max(1))
    }
}

/// A number of bytes in words, rounded up.
pub(super) fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(points: usize, dim: usize) -> Sizes {
        Sizes::expected(points, dim, &Config::default(), 2)
    }

    #[test]
    fn ten_million_vectors_of_bytes_fit_into_two_gibibytes() {
        let sizes = sizes(10_000_000, 128);
        let needed = sizes.needed();
        assert!((400 << 20..2 << 30).contains(&needed), "{needed}");
        assert!(sizes.check(needed, 0).is_ok());
        let error = sizes.check(needed - 1, 0).unwrap_err().to_string();
        assert!(error.contains(&mebibytes(needed)), "{error}");
        assert!(sizes.check(needed, 1).is_err(), "what is given counts too");
    }

    #[test]
    fn memory_grows_with_points_and_dimension_but_less_than_the_vectors() {
        let small = sizes(1_000_000, 96).needed();
        let large = sizes(10_000_000, 96).needed();
        assert!(large > small && large - small < 9_000_000 * 4 * 96 / 3);
        assert!(sizes(1_000_000, 768).needed() > small);
        assert!(sizes(10, 4).needed() >= BASE);
    }

    #[test]
    fn groups_are_as_large_as_fits_and_hold_the_largest_cell() {
        let sizes = sizes(1_000_000, 128);
        let size = sizes.group_size(1 << 30, 20_000).unwrap();
        assert!((20_000..1_000_000).contains(&size));
        let free = (1 << 30) - sizes.base();
        assert!(sizes.group(size, 20_000) <= free && sizes.group(size + 1, 20_000) > free);
        assert!(sizes.group_size(sizes.base(), 20_000).is_err());
        assert_eq!(sizes.group_size(1 << 40, 20_000).unwrap(), 1_000_000);
    }
}
