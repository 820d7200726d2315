//! Bins and codes of all cells.
//!
//! The points of a cell are projected onto its axes and clustered into small bins by k-means. Bin centres and points
//! are stored as codes: their coordinates quantized with the steps of the cell, eight points per block. Each code has
//! a norm term that turns an inner product of codes into an estimate of a squared distance.
//!
//! Bins, codes, vectors and identifiers have the same order: by cell, then by bin, then by row.

use super::access::LayoutCheck;
use crate::quantize::{BIN_BITS, norms};
use garlic_linalg::{Matrix, Rows};
use garlic_simd::{CODE_LANES, CodeBits, code_block_bytes};
use rayon::prelude::*;

use super::encode::{EncodedCell, Projected, Scales};
use crate::partition::{AnisotropicCells, NO_CELL};
use crate::quantize::{Steps, code_width};
use garlic_core::Cancel;
use garlic_core::Result;
use garlic_core::buffer::Buffer;
use garlic_core::{Lists, by_label};

/// Start of a bin, as stored in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Bin {
    /// Position of the first point.
    pub(crate) first: u32,
    /// First block of codes.
    pub(crate) block: u32,
}

/// Frames, bins and codes of all cells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EncodedBins {
    pub(crate) bits: CodeBits,
    /// Number of coordinates per code: the rank of the cells, padded to whole groups.
    pub(crate) width: usize,
    /// Inner products of the axes with the mean, `rank` values per cell.
    pub(crate) origins: Buffer<f32>,
    /// Steps of bin codes and of point codes, `width` values per cell each.
    pub(crate) bin_steps: Buffer<f32>,
    pub(crate) steps: Buffer<f32>,
    /// First bin of each cell, followed by the number of bins.
    pub(crate) cell_bins: Buffer<u32>,
    /// Codes of the bin centres. Every cell begins with a new block.
    pub(crate) bin_blocks: Buffer<u8>,
    /// First block of bin codes of each cell, followed by the number of blocks.
    pub(crate) bin_block_of: Buffer<u32>,
    /// Start of every bin, followed by the end of the last.
    pub(crate) bins: Buffer<Bin>,
    /// Codes of the points. Every bin begins with a new block.
    pub(crate) blocks: Buffer<u8>,
    /// Bounds of every bin.
    pub(crate) bounds: Buffer<Bounds>,
    /// The result of checking the layout, computed on first use.
    pub(crate) order: LayoutCheck,
}

/// Bounds that allow a search to skip a bin or its points without losing a neighbour. They include rounding errors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub(crate) struct Bounds {
    /// Largest distance of a point from the quantized centre of the bin, within the frame.
    pub(crate) radius: f32,
    /// Smallest and largest distance of a point from the frame.
    pub(crate) low: f32,
    pub(crate) high: f32,
    /// Largest quantization error of a point, within the frame.
    pub(crate) error: f32,
    /// Largest sum of the magnitudes of a point's codes, counted from the code of zero.
    pub(crate) code_sum: f32,
}

impl Bounds {
    /// Bounds that hold for the points of both.
    pub(crate) fn union(&self, other: &Self) -> Self {
        Self {
            radius: self.radius.max(other.radius),
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            error: self.error.max(other.error),
            code_sum: self.code_sum.max(other.code_sum),
        }
    }
}

/// Input of the encoding.
pub(crate) struct Encoding<'a> {
    /// The transformed points.
    pub(crate) points: Rows<'a>,
    /// Squared distance of each point from the truncated space.
    pub(crate) residual_squared: &'a [f32],
    pub(crate) cells: &'a AnisotropicCells,
    /// The cell of each point.
    pub(crate) labels: &'a [u32],
    /// A second cell of each point or [`NO_CELL`]. Empty if every point is stored in one cell.
    pub(crate) second_cells: &'a [u32],
    /// Held-out points, in order. Bins are not fitted to them.
    pub(crate) held: &'a [u32],
    pub(crate) bin_size: usize,
    pub(crate) bits: CodeBits,
    pub(crate) seed: u64,
}

/// What bins and codes are like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BinShapes {
    pub(crate) bin_size: usize,
    pub(crate) bits: CodeBits,
    pub(crate) seed: u64,
}

/// Clusters the transformed points of one cell into bins and encodes them.
pub(crate) fn encode_cell(
    cells: &AnisotropicCells,
    cell: usize,
    points: Matrix,
    residual_squared: Vec<f32>,
    shape: &BinShapes,
    is_held: impl Fn(u32) -> bool,
) -> (Scales, EncodedCell) {
    let BinShapes {
        bin_size,
        bits,
        seed,
    } = *shape;
    let (mean, axes) = (cells.mean(cell), cells.axes(cell));
    let width = code_width(cells.rank());
    let projected = Projected::new(points, residual_squared, mean, axes);
    let assignment = projected.assign_bins(bin_size, seed ^ cell as u64, is_held);
    let scales = projected.scales(mean, axes, width, bits);
    let part = projected.encode(&assignment, scales.steps(), width, bits);
    (scales, part)
}

impl EncodedBins {
    /// Clusters every cell into bins and encodes the points. Also returns the stored order of the rows.
    pub(crate) fn build(
        encoding: &Encoding<'_>,
        cancel: &Cancel,
        done: &(dyn Fn(usize) + Sync),
    ) -> Result<(Self, Vec<u32>)> {
        let Encoding {
            points,
            residual_squared,
            cells,
            labels,
            second_cells,
            held,
            bin_size,
            bits,
            seed,
        } = *encoding;
        let spilled = by_label(second_cells).filter(|(cell, _)| *cell != NO_CELL);
        let members = Lists::group(cells.len(), by_label(labels).chain(spilled));
        let width = code_width(cells.rank());
        let finished = std::sync::atomic::AtomicUsize::new(0);
        let parts: Vec<(Scales, EncodedCell, Vec<u32>)> = (0..cells.len())
            .into_par_iter()
            .map(|cell| {
                cancel.check()?;
                let members = members.get(cell);
                let inside = Matrix::gather(points, members);
                let residual_squared = members
                    .iter()
                    .map(|p| residual_squared[*p as usize])
                    .collect();
                let is_held = |i: u32| held.binary_search(&members[i as usize]).is_ok();
                let shape = BinShapes {
                    bin_size,
                    bits,
                    seed,
                };
                let (scales, part) =
                    encode_cell(cells, cell, inside, residual_squared, &shape, is_held);
                let order = part.order.iter().map(|i| members[*i as usize]).collect();
                done(finished.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1);
                Ok((scales, part, order))
            })
            .collect::<Result<_>>()?;
        let mut all = EncodedBinsBuilder::new(bits, width);
        let mut order = Vec::with_capacity(points.len());
        for (scales, part, rows) in parts {
            order.extend(rows);
            all.push(&scales.origin, scales.steps(), part);
        }
        let encoded = all.finish();
        Ok((encoded, order))
    }

    /// Mean squared distance of all points from the means of their cells.
    pub(crate) fn mean_norm(&self) -> f64 {
        let norms = norms(&self.blocks, self.block_bytes()).map(f64::from);
        let (count, sum) = norms
            .filter(|norm| norm.is_finite())
            .fold((0u64, 0.0), |(count, sum), norm| (count + 1, sum + norm));
        sum / count.max(1) as f64
    }
}

/// Builds [`EncodedBins`] cell by cell.
pub(crate) struct EncodedBinsBuilder {
    bits: CodeBits,
    width: usize,
    origins: Vec<f32>,
    bin_steps: Vec<f32>,
    steps: Vec<f32>,
    cell_bins: Vec<u32>,
    bin_blocks: Vec<u8>,
    bin_block_of: Vec<u32>,
    bins: Vec<Bin>,
    blocks: Vec<u8>,
    bounds: Vec<Bounds>,
}

impl EncodedBinsBuilder {
    /// Creates a builder without cells.
    pub(crate) fn new(bits: CodeBits, width: usize) -> Self {
        Self {
            bits,
            width,
            origins: Vec::new(),
            bin_steps: Vec::new(),
            steps: Vec::new(),
            cell_bins: vec![0],
            bin_blocks: Vec::new(),
            bin_block_of: vec![0],
            bins: vec![Bin { first: 0, block: 0 }],
            blocks: Vec::new(),
            bounds: Vec::new(),
        }
    }

    /// Appends a cell.
    pub(crate) fn push(&mut self, origin: &[f32], steps: Steps<'_>, part: EncodedCell) {
        append_bins(&part.sizes, &mut self.bins);
        self.origins.extend_from_slice(origin);
        self.bin_steps.extend_from_slice(steps.bins);
        self.steps.extend_from_slice(steps.points);
        self.bin_blocks.extend(part.bin_blocks);
        self.blocks.extend(part.blocks);
        self.bounds.extend(part.bounds);
        self.cell_bins.push(self.bounds.len() as u32);
        let blocks = self.bin_blocks.len() / code_block_bytes(BIN_BITS, self.width);
        self.bin_block_of.push(blocks as u32);
    }

    /// Returns the finished arrays.
    pub(crate) fn finish(self) -> EncodedBins {
        EncodedBins {
            bits: self.bits,
            width: self.width,
            origins: self.origins.into(),
            bin_steps: self.bin_steps.into(),
            steps: self.steps.into(),
            cell_bins: self.cell_bins.into(),
            bin_blocks: self.bin_blocks.into(),
            bin_block_of: self.bin_block_of.into(),
            bins: self.bins.into(),
            blocks: self.blocks.into(),
            bounds: self.bounds.into(),
            order: LayoutCheck::default(),
        }
    }
}

/// Appends the ends of bins of these sizes to `bins`. Its last entry is where they begin.
pub(crate) fn append_bins(sizes: &[u32], bins: &mut Vec<Bin>) {
    let mut last = bins.last().copied().unwrap_or_default();
    for size in sizes {
        last.first += size;
        last.block += size.div_ceil(CODE_LANES as u32);
        bins.push(last);
    }
}
