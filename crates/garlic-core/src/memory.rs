//! Memory use of the parts of an index.

use serde::Serialize;

/// Bytes by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Memory {
    /// The vectors.
    pub vectors: u64,
    /// Their identifiers.
    pub ids: u64,
    /// Means of the cells.
    pub means: u64,
    /// Cholesky factors or variances, with derived data for routing.
    pub factors: u64,
    /// Frames of the cells.
    pub frames: u64,
    /// Bins and the points in them.
    pub bins: u64,
    /// Codes of the points.
    pub codes: u64,
    /// The neighbour graph with its codes.
    pub graph: u64,
    /// The transform: mean, scale and rotation.
    pub rotation: u64,
    /// Changes that are not compacted yet, and the map from identifiers to positions.
    pub changes: u64,
    /// The sum of all parts.
    pub total: u64,
}

impl Memory {
    /// Fills in the sum of all parts.
    #[must_use]
    pub fn summed(mut self) -> Self {
        self.total = self.vectors
            + self.ids
            + self.means
            + self.factors
            + self.frames
            + self.bins
            + self.codes
            + self.graph
            + self.rotation
            + self.changes;
        self
    }
}
