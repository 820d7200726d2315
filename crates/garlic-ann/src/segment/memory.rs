//! How many bytes the parts of an index take.

use super::index::Index;
use garlic_core::Memory;
use garlic_core::buffer::Buffer;

impl Index {
    /// Bytes that the index takes, by part.
    pub fn memory(&self) -> Memory {
        fn bytes<T>(values: &[T]) -> u64 {
            size_of_val(values) as u64
        }
        let (model, encoded) = (&self.segment.cells, &self.segment.encoded);
        let mut memory = Memory::default();
        memory.vectors = self.segment.vectors.bytes();
        memory.ids = bytes(&self.segment.ids);
        memory.rotation = self.transform.bytes();
        memory.changes = self.delta.bytes() + self.uncovered.bytes() + self.segment.lookup_bytes();
        memory.means = bytes(&model.means);
        memory.factors = bytes(&model.variances) + bytes(&model.residual);
        memory.frames = bytes(&model.axes)
            + bytes(&encoded.origins)
            + bytes(&encoded.steps)
            + bytes(&encoded.bin_steps);
        memory.bins = bytes(&encoded.bin_blocks)
            + bytes(&encoded.bins)
            + bytes(&encoded.bounds)
            + bytes(&encoded.cell_bins)
            + bytes(&encoded.bin_block_of)
            + self.segment.derived_bytes();
        memory.codes = bytes(&encoded.blocks);
        memory.summed()
    }

    /// Bytes of [`Index::memory`] that lie in a mapped file: in memory only as far as they have been read, and given
    /// back when memory is short.
    pub fn mapped_bytes(&self) -> u64 {
        let segment = &self.segment;
        let (model, encoded) = (&segment.cells, &segment.encoded);
        let floats = [&model.means, &model.axes, &model.variances, &model.residual]
            .into_iter()
            .chain([&encoded.origins, &encoded.bin_steps, &encoded.steps])
            .map(Buffer::mapped_bytes);
        floats.sum::<u64>()
            + segment.vectors.mapped_bytes()
            + segment.ids.mapped_bytes()
            + encoded.cell_bins.mapped_bytes()
            + encoded.bin_block_of.mapped_bytes()
            + encoded.bins.mapped_bytes()
            + encoded.bounds.mapped_bytes()
            + encoded.bin_blocks.mapped_bytes()
            + encoded.blocks.mapped_bytes()
    }
}
