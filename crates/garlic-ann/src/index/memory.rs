//! How many bytes the parts of an index take.

use serde::Serialize;

use super::Index;

/// Bytes by part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
    /// Normalisation and rotation.
    pub rotation: u64,
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
            vectors: bytes(&self.vectors),
            ids: bytes(&self.ids),
            means: bytes(self.model.means.as_slice()),
            factors: bytes(self.model.factors.values()) + self.router.bytes(),
            frames: self
                .cells
                .iter()
                .map(|c| bytes(&c.frame.centre) + bytes(c.frame.basis.as_slice()))
                .sum(),
            bins: self
                .cells
                .iter()
                .map(|c| {
                    let parts = c.bins.parts();
                    bytes(parts.occupied) + bytes(parts.offsets) + bytes(parts.members)
                })
                .sum(),
            rotation: rotation + bytes(&space.mean) + bytes(&space.scale),
            total: 0,
        };
        memory.total = memory.vectors
            + memory.ids
            + memory.means
            + memory.factors
            + memory.frames
            + memory.bins
            + memory.rotation;
        memory
    }
}
