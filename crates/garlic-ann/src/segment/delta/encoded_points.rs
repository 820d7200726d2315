//! Encoded points of one cell outside the base, in the order of its bins. Rewritten cells and append buffers use it.

use std::ops::Range;

use crate::bins::{Bin, Bounds, Projected};
use garlic_core::buffer::Buffer;
use garlic_core::vectors::StoredVectors;

/// Points to be encoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PointsToEncode<'a> {
    /// The points in their cell's frame.
    pub(crate) projected: &'a Projected,
    /// Their vectors of dimension `dim`, in the same order.
    pub(crate) vectors: &'a StoredVectors,
    pub(crate) dim: usize,
    pub(crate) ids: &'a [u64],
    pub(crate) nodes: &'a [u32],
}

/// Codes and vectors in the order of a cell's bins. Immutable.
#[derive(Debug)]
pub(crate) struct EncodedPoints {
    /// First point and block of each bin, with one entry more than there are bins.
    pub(crate) bins: Vec<Bin>,
    pub(crate) blocks: Buffer<u8>,
    pub(crate) block_bytes: usize,
    /// Bounds of each bin. Meaningless for a bin without points.
    pub(crate) bounds: Vec<Bounds>,
    pub(crate) vectors: StoredVectors,
    pub(crate) ids: Vec<u64>,
    /// Nodes of the points in the neighbour graph. Meaningless if there is none.
    pub(crate) nodes: Vec<u32>,
}

impl EncodedPoints {
    /// Number of points, including removed ones.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Numbers of the points in a bin.
    #[inline]
    pub(crate) fn points(&self, bin: usize) -> Range<usize> {
        self.bins[bin].first as usize..self.bins[bin + 1].first as usize
    }

    /// Codes of the points in a bin.
    #[inline]
    pub(crate) fn codes(&self, bin: usize) -> &[u8] {
        let block = |bin: usize| self.bins[bin].block as usize * self.block_bytes;
        &self.blocks[block(bin)..block(bin + 1)]
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.vectors.bytes()
            + (self.blocks.len()
                + size_of_val(&*self.bins)
                + size_of_val(&*self.bounds)
                + size_of_val(&*self.ids)
                + size_of_val(&*self.nodes)) as u64
    }
}
