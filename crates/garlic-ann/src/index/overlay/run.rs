//! A cell that has left the base: its points with bins and codes of their own.

use std::sync::Arc;

use garlic_simd::{CODE_LANES, CodeBits, code_block_bytes};

use super::bits::Bits;
use crate::buffer::Buffer;
use crate::cell::learned::{Bin, Bounds};
use crate::cell::part::{Part, Projected, Steps, decode_centres};
use crate::index::stored::Stored;

/// The points of a cell when it was last laid out; a copy shares them.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) data: Arc<RunData>,
    /// Points that have been removed.
    pub(crate) dead: Bits,
}

/// Bins, codes and vectors of a run: nothing here ever changes.
#[derive(Debug)]
pub(crate) struct RunData {
    /// Where the bins' points lie, counted from the run's first; one more than there are bins.
    pub(crate) bins: Vec<Bin>,
    pub(crate) bin_blocks: Buffer<u8>,
    pub(crate) blocks: Buffer<u8>,
    pub(crate) bounds: Vec<Bounds>,
    /// Coded centres of the bins, `rank` values each.
    pub(crate) centres: Vec<f32>,
    pub(crate) vectors: Stored,
    pub(crate) ids: Vec<u64>,
    block_bytes: usize,
}

/// What the codes of a run look like.
#[derive(Clone, Copy)]
pub(crate) struct CodeShape {
    pub(crate) rank: usize,
    pub(crate) width: usize,
    pub(crate) bits: CodeBits,
}

impl Run {
    /// Lays out `projected`, whose vectors and identifiers are given in the same order.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call, all of them different things"
    )]
    pub(crate) fn new(
        projected: &Projected,
        steps: Steps<'_>,
        shape: CodeShape,
        bin_size: usize,
        seed: u64,
        vectors: &Stored,
        dim: usize,
        ids: &[u64],
    ) -> Self {
        let cut = projected.cut(bin_size, seed, |_| false);
        let part = projected.encode(&cut, steps, shape.width, shape.bits);
        let Part {
            order,
            sizes,
            bin_blocks,
            blocks,
            bounds,
        } = part;
        let mut bins = Vec::with_capacity(sizes.len() + 1);
        let (mut first, mut block) = (0, 0);
        for size in &sizes {
            bins.push(Bin { first, block });
            first += size;
            block += size.div_ceil(CODE_LANES as u32);
        }
        bins.push(Bin { first, block });
        let mut centres = Vec::new();
        let bin_steps = &steps.bins[..shape.rank];
        decode_centres(
            &bin_blocks,
            bin_steps,
            shape.width,
            sizes.len(),
            &mut centres,
        );
        let data = RunData {
            bins,
            bin_blocks: bin_blocks.into(),
            blocks: blocks.into(),
            bounds,
            centres,
            vectors: vectors.pick(dim, &order),
            ids: order.iter().map(|i| ids[*i as usize]).collect(),
            block_bytes: code_block_bytes(shape.bits, shape.width),
        };
        Self {
            dead: Bits::new(data.ids.len()),
            data: Arc::new(data),
        }
    }

    /// Points, removed ones included.
    pub(crate) fn len(&self) -> usize {
        self.data.ids.len()
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        let data = &*self.data;
        data.vectors.bytes()
            + (data.bin_blocks.len()
                + data.blocks.len()
                + size_of_val(&*data.bins)
                + size_of_val(&*data.bounds)
                + size_of_val(&*data.centres)
                + size_of_val(&*data.ids)) as u64
    }
}

impl RunData {
    /// Number of bins.
    pub(crate) fn bin_count(&self) -> usize {
        self.bounds.len()
    }

    /// Numbers of a bin's points.
    pub(crate) fn points(&self, bin: usize) -> std::ops::Range<usize> {
        self.bins[bin].first as usize..self.bins[bin + 1].first as usize
    }

    /// Codes of a bin's points.
    pub(crate) fn codes(&self, bin: usize) -> &[u8] {
        let bytes = self.block_bytes;
        &self.blocks
            [self.bins[bin].block as usize * bytes..self.bins[bin + 1].block as usize * bytes]
    }
}
