//! A cell that was rewritten: its points with bins and codes of their own.

use std::sync::Arc;

use garlic_simd::{CodeBits, code_block_bytes};

use super::encoded_points::{EncodedPoints, PointsToEncode};
use super::tombstones::Bits;
use crate::bins::{Bin, EncodedCell, append_bins};
use crate::quantize::{Steps, decode_centres};
use garlic_core::buffer::Buffer;

/// The points of a cell when it was last encoded. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct RewrittenCell {
    pub(crate) data: Arc<RewrittenData>,
    /// Removed points.
    pub(crate) tombstones: Bits,
}

/// Points of a rewritten cell, with its bins.
#[derive(Debug)]
pub(crate) struct RewrittenData {
    pub(crate) points: EncodedPoints,
    pub(crate) bin_blocks: Buffer<u8>,
    /// Quantized centres of the bins, `rank` values each.
    pub(crate) centres: Vec<f32>,
}

/// Layout of the codes of a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodeShape {
    pub(crate) rank: usize,
    pub(crate) width: usize,
    pub(crate) bits: CodeBits,
}

impl RewrittenCell {
    /// Splits points into bins and encodes them.
    pub(crate) fn new(
        points: PointsToEncode<'_>,
        steps: Steps<'_>,
        shape: CodeShape,
        bin_size: usize,
        seed: u64,
    ) -> Self {
        let projected = points.projected;
        let assignment = projected.assign_bins(bin_size, seed, |_| false);
        let part = projected.encode(&assignment, steps, shape.width, shape.bits);
        let EncodedCell {
            order,
            sizes,
            bin_blocks,
            blocks,
            bounds,
        } = part;
        let mut bins = vec![Bin::default()];
        append_bins(&sizes, &mut bins);
        let mut centres = Vec::new();
        let bin_steps = &steps.bins[..shape.rank];
        decode_centres(
            &bin_blocks,
            bin_steps,
            shape.width,
            sizes.len(),
            &mut centres,
        );
        let encoded = EncodedPoints {
            bins,
            blocks: blocks.into(),
            block_bytes: code_block_bytes(shape.bits, shape.width),
            bounds,
            vectors: points.vectors.pick(points.dim, &order),
            ids: order.iter().map(|i| points.ids[*i as usize]).collect(),
            nodes: order.iter().map(|i| points.nodes[*i as usize]).collect(),
        };
        Self {
            tombstones: Bits::new(encoded.len()),
            data: Arc::new(RewrittenData {
                points: encoded,
                bin_blocks: bin_blocks.into(),
                centres,
            }),
        }
    }

    /// Number of points, including removed ones.
    pub(crate) fn len(&self) -> usize {
        self.data.points.len()
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        let bins = self.data.bin_blocks.len() + size_of_val(&*self.data.centres);
        self.data.points.bytes() + bins as u64
    }
}

impl RewrittenData {
    /// Number of bins.
    pub(crate) fn bin_count(&self) -> usize {
        self.points.bounds.len()
    }
}
