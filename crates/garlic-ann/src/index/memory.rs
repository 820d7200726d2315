//! How many bytes the parts of an index take.

use serde::Serialize;

use super::{Body, Index};
use crate::buffer::Buffer;

/// Bytes by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// The vectors.
    pub vectors: u64,
    /// Their identifiers.
    pub ids: u64,
    /// Means of the cells.
    pub means: u64,
    /// Cholesky factors, with what routing derives from them.
    pub factors: u64,
    /// Frames of the cells.
    pub frames: u64,
    /// Bins and the points in them.
    pub bins: u64,
    /// Codes of the points.
    pub codes: u64,
    /// Normalisation and rotation.
    pub rotation: u64,
    /// Points, bins and marks that are not laid out with the rest yet, and what finds points by their identifiers.
    pub changes: u64,
    /// Everything.
    pub total: u64,
}

impl Index {
    /// Bytes that the index takes, by part.
    pub fn memory(&self) -> Memory {
        fn bytes<T>(values: &[T]) -> u64 {
            size_of_val(values) as u64
        }
        let space = &self.space;
        let rotation = space.rotation.as_ref().map_or(0, |r| bytes(r.as_slice()));
        let mut memory = Memory {
            vectors: self.vectors.bytes(),
            ids: bytes(&self.ids),
            rotation: rotation + bytes(&space.mean) + bytes(&space.scale),
            changes: self.overlay.bytes()
                + self.strangers.bytes()
                + self.lookup.get().map_or(0, |lookup| lookup.bytes()),
            ..Memory::default()
        };
        match &self.body {
            Body::Published(body) => {
                memory.means = bytes(body.model.means.as_slice());
                memory.factors = bytes(body.model.factors.values()) + body.router.bytes();
                for cell in &body.cells {
                    let parts = cell.bins.parts();
                    memory.frames += bytes(&cell.frame.centre) + bytes(cell.frame.basis.as_slice());
                    memory.bins +=
                        bytes(parts.occupied) + bytes(parts.offsets) + bytes(parts.members);
                }
            }
            Body::Tempered(body) => {
                let (model, learned) = (&body.model, &body.learned);
                memory.means = bytes(&model.means);
                memory.factors = bytes(&model.variances) + bytes(&model.residual);
                memory.frames = bytes(&model.axes)
                    + bytes(&learned.origins)
                    + bytes(&learned.steps)
                    + bytes(&learned.bin_steps);
                memory.bins = bytes(&learned.bin_blocks)
                    + bytes(&learned.bins)
                    + bytes(&learned.bounds)
                    + bytes(&learned.cell_bins)
                    + bytes(&learned.bin_block_of)
                    + body.derived_bytes();
                memory.codes = bytes(&learned.blocks);
            }
        }
        memory.total = memory.vectors
            + memory.ids
            + memory.means
            + memory.factors
            + memory.frames
            + memory.bins
            + memory.codes
            + memory.rotation
            + memory.changes;
        memory
    }

    /// Bytes of [`Index::memory`] that lie in a mapped file: in memory only as far as they have been read, and given
    /// back when memory is short.
    pub fn mapped_bytes(&self) -> u64 {
        let mut sum = self.vectors.mapped_bytes() + self.ids.mapped_bytes();
        if let Body::Tempered(body) = &self.body {
            let (model, learned) = (&body.model, &body.learned);
            sum += [&model.means, &model.axes, &model.variances, &model.residual]
                .into_iter()
                .chain([&learned.origins, &learned.bin_steps, &learned.steps])
                .map(Buffer::mapped_bytes)
                .sum::<u64>();
            sum += learned.cell_bins.mapped_bytes() + learned.bin_block_of.mapped_bytes();
            sum += learned.bins.mapped_bytes() + learned.bounds.mapped_bytes();
            sum += learned.bin_blocks.mapped_bytes() + learned.blocks.mapped_bytes();
        }
        sum
    }
}
