//! A cell: its frame, its bins and the points in them.

pub mod bins;
pub(crate) mod build;
mod frame;
pub(crate) mod learned;
pub(crate) mod part;
pub mod sphere;

pub use bins::Bins;
pub use frame::Frame;
pub use sphere::Grid;

/// What a query needs of one cell besides its Gaussian.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The cell's own low-dimensional coordinates.
    pub frame: Frame,
    /// Hyperspherical bins in those coordinates and the positions of their points.
    pub bins: Bins,
}
