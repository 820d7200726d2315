//! EncodedBins bins and local codes: what the default preset keeps of every cell.
//!
//! A cell's points are projected on its axes and cut into small bins by k-means. Bin centres and points are
//! kept as codes: their coordinates in whole steps of the cell's own scale, eight to a block, each with the
//! norm term that turns an inner product of codes into an estimate of a squared distance.
//!
//! Bins, codes, vectors and identifiers of a cell lie in one order: cell, bin, row.

use super::access::LayoutCheck;
use crate::quantize::{BIN_BITS, norms};
use garlic_linalg::{Matrix, Rows};
use garlic_simd::{CODE_LANES, CodeBits, code_block_bytes};
use rayon::prelude::*;

use super::encode::{EncodedCell, Projected, Scales};
use crate::partition::{AnisotropicCells, NONE};
use crate::quantize::{Steps, code_width};
use garlic_core::Cancel;
use garlic_core::Result;
use garlic_core::buffer::Buffer;
use garlic_core::{Lists, by_label};

/// Where a bin's points lie; as a file keeps it.
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
    /// Coordinates of a code: the rank of the model, filled up to whole groups.
    pub(crate) width: usize,
    /// Of every cell, the inner products of its axes with its mean; `rank` values.
    pub(crate) origins: Buffer<f32>,
    /// Of every cell, the steps of bin codes and of point codes; `width` values each.
    pub(crate) bin_steps: Buffer<f32>,
    pub(crate) steps: Buffer<f32>,
    /// First bin of each cell, and the number of bins.
    pub(crate) cell_bins: Buffer<u32>,
    /// Codes of the bin centres; every cell begins with a new block.
    pub(crate) bin_blocks: Buffer<u8>,
    /// First block of bin codes of each cell, and the number of blocks.
    pub(crate) bin_block_of: Buffer<u32>,
    /// Where the bins' points lie; one more than there are bins.
    pub(crate) bins: Buffer<Bin>,
    /// Codes of the points; every bin begins with a new block.
    pub(crate) blocks: Buffer<u8>,
    /// What bins can be skipped by.
    pub(crate) bounds: Buffer<Bounds>,
    /// Whether cells and bins are in order, once that is known.
    pub(crate) order: LayoutCheck,
}

/// What a bin and its points can be skipped by without losing a neighbour; rounding is allowed for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub(crate) struct Bounds {
    /// Largest distance of a point from the bin's coded centre, within the frame.
    pub(crate) radius: f32,
    /// Least and largest distance of a point from the frame.
    pub(crate) low: f32,
    pub(crate) high: f32,
    /// Largest distance between a point and its code, within the frame.
    pub(crate) error: f32,
    /// Largest sum over a point's codes of their distances from the code of zero.
    pub(crate) mass: f32,
}

impl Bounds {
    /// Bounds of the points of both.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self {
            radius: self.radius.max(other.radius),
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            error: self.error.max(other.error),
            mass: self.mass.max(other.mass),
        }
    }
}

/// What bins and codes are made of.
pub(crate) struct Encoding<'a> {
    /// The points in the space that cells live in.
    pub(crate) points: Rows<'a>,
    /// Squared distance of each point from that space.
    pub(crate) residual: &'a [f32],
    pub(crate) model: &'a AnisotropicCells,
    /// The cell of each point.
    pub(crate) labels: &'a [u32],
    /// A second cell of each point, or [`NONE`]; empty where points lie in one cell.
    pub(crate) seconds: &'a [u32],
    /// Points that bins are not fitted to, in order.
    pub(crate) held: &'a [u32],
    pub(crate) bin_size: usize,
    pub(crate) bits: CodeBits,
    pub(crate) seed: u64,
}

impl EncodedBins {
    /// Cuts every cell into bins and encodes their points; also returns the stored order of the rows.
    pub(crate) fn build(
        encoding: &Encoding<'_>,
        cancel: &Cancel,
        done: &(dyn Fn(usize) + Sync),
    ) -> Result<(Self, Vec<u32>)> {
        let Encoding {
            points,
            residual,
            model,
            labels,
            seconds,
            held,
            bin_size,
            bits,
            seed,
        } = *encoding;
        let spilled = by_label(seconds).filter(|(cell, _)| *cell != NONE);
        let members = Lists::group(model.len(), by_label(labels).chain(spilled));
        let width = code_width(model.rank());
        let finished = std::sync::atomic::AtomicUsize::new(0);
        let parts: Vec<(Scales, EncodedCell, Vec<u32>)> = (0..model.len())
            .into_par_iter()
            .map(|cell| {
                cancel.check()?;
                let members = members.get(cell);
                let inside = Matrix::gather(points, members);
                let outside = members.iter().map(|p| residual[*p as usize]).collect();
                let projected = Projected::new(inside, outside, model.mean(cell), model.axes(cell));
                let is_held = |i: u32| held.binary_search(&members[i as usize]).is_ok();
                let cut = projected.cut(bin_size, seed ^ cell as u64, is_held);
                let scales = projected.scales(model.mean(cell), model.axes(cell), width, bits);
                let part = projected.encode(&cut, scales.steps(), width, bits);
                let order = part.order.iter().map(|i| members[*i as usize]).collect();
                done(finished.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1);
                Ok((scales, part, order))
            })
            .collect::<Result<_>>()?;
        let mut all = Assembly::new(bits, width);
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

/// Cells that are being put together, one after the other.
pub(crate) struct Assembly {
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

impl Assembly {
    /// No cell yet.
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

    /// All of them.
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

/// Appends the ends of bins of these sizes to `bins`, whose last is where they begin.
pub(crate) fn append_bins(sizes: &[u32], bins: &mut Vec<Bin>) {
    let mut last = bins.last().copied().unwrap_or_default();
    for size in sizes {
        last.first += size;
        last.block += size.div_ceil(CODE_LANES as u32);
        bins.push(last);
    }
}
