//! How many bytes the parts of an index take.

use garlic_core::Memory;
use garlic_core::buffer::Buffer;

use super::Index;

impl Index {
    /// Bytes that the index takes, by part.
    pub fn memory(&self) -> Memory {
        fn bytes<T>(values: &[T]) -> u64 {
            size_of_val(values) as u64
        }
        let (model, learned) = (&self.segment.model, &self.segment.learned);
        let mut memory = Memory::default();
        memory.vectors = self.segment.vectors.bytes();
        memory.ids = bytes(&self.segment.ids);
        memory.rotation = self.transform.bytes();
        memory.changes =
            self.overlay.bytes() + self.strangers.bytes() + self.segment.lookup_bytes();
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
            + self.segment.derived_bytes();
        memory.codes = bytes(&learned.blocks);
        memory.summed()
    }

    /// Bytes of [`Index::memory`] that lie in a mapped file: in memory only as far as they have been read, and given
    /// back when memory is short.
    pub fn mapped_bytes(&self) -> u64 {
        let segment = &self.segment;
        let (model, learned) = (&segment.model, &segment.learned);
        let floats = [&model.means, &model.axes, &model.variances, &model.residual]
            .into_iter()
            .chain([&learned.origins, &learned.bin_steps, &learned.steps])
            .map(Buffer::mapped_bytes);
        floats.sum::<u64>()
            + segment.vectors.mapped_bytes()
            + segment.ids.mapped_bytes()
            + learned.cell_bins.mapped_bytes()
            + learned.bin_block_of.mapped_bytes()
            + learned.bins.mapped_bytes()
            + learned.bounds.mapped_bytes()
            + learned.bin_blocks.mapped_bytes()
            + learned.blocks.mapped_bytes()
    }
}
