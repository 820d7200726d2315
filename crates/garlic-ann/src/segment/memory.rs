//! Memory use of an index, by part.

use super::index::Index;
use garlic_core::Memory;
use garlic_core::buffer::Buffer;
use garlic_core::vectors::StoredVectors;

impl Index {
    /// Memory use of the index in bytes, by part.
    pub fn memory(&self) -> Memory {
        fn bytes<T>(values: &[T]) -> u64 {
            size_of_val(values) as u64
        }
        let (cells, encoded) = (&self.segment.cells, &self.segment.encoded);
        let mut memory = Memory::default();
        memory.vectors = match self.segment.vectors {
            StoredVectors::File(_) => 0,
            _ => self.segment.vectors.bytes(),
        };
        memory.ids = bytes(&self.segment.ids);
        memory.rotation = self.transform.bytes();
        memory.changes = self.delta.bytes() + self.uncovered.bytes() + self.segment.lookup_bytes();
        memory.means = bytes(&cells.means);
        memory.factors = bytes(&cells.variances) + bytes(&cells.residual_variances);
        memory.frames = bytes(&cells.axes)
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
        memory.graph = self.segment.graph.as_ref().map_or(0, |g| g.bytes());
        memory.summed()
    }

    /// How vectors are read from the disk, `io_uring` or `threads`; `None` if they are in memory or mapped.
    pub fn disk_reads(&self) -> Option<&'static str> {
        match &self.segment.vectors {
            StoredVectors::File(file) => Some(file.backend().name()),
            _ => None,
        }
    }

    /// Bytes of [`Index::memory`] that lie in a mapped file. The operating system loads these pages on first use and
    /// may evict them.
    pub fn mapped_bytes(&self) -> u64 {
        let segment = &self.segment;
        let (cells, encoded) = (&segment.cells, &segment.encoded);
        let floats = [
            &cells.means,
            &cells.axes,
            &cells.variances,
            &cells.residual_variances,
        ]
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
            + segment.graph.as_ref().map_or(0, |g| g.mapped_bytes())
    }
}
