//! Hyperspherical bins: how the points of a cell are ordered for retrieval.
//!
//! In: the points of every cell. Out: a [`Cell`] for each, with a [`Frame`] of low dimension, a [`Grid`] in the spherical
//! coordinates of that frame, and the occupied [`Bins`] with their points.
//!
//! `frame` projects, [`sphere`] has the coordinates and the exact distance to a bin, `grid` cuts them into bins, `occupied`
//! lists the points of the bins and orders the bins for a query, `build` puts it all together.

pub(crate) mod build;
mod frame;
mod grid;
mod occupied;
pub mod sphere;

pub use frame::Frame;
pub use grid::{Grid, MAX_BINS, Steps};
pub use occupied::{BinScratch, Bins, BinsError, BinsParts};
pub use sphere::SphereError;

/// What a query needs of one cell besides its Gaussian.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The cell's own low-dimensional coordinates.
    pub frame: Frame,
    /// Hyperspherical bins in those coordinates and the positions of their points.
    pub bins: Bins,
}
