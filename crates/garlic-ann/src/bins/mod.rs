//! Bins of the cells: small groups of points in a cell's frame.
//!
//! In: the points of every cell, projected into its frame. Out: [`EncodedBins`], arrays of bins with bounds and codes, in the
//! order in which points are stored. `encode` cuts one cell, `arrays` puts all cells side by side, `access` reads the
//! arrays so that no content of a mapped file can do harm.

mod access;
mod arrays;
mod encode;

pub(crate) use access::LayoutCheck;
pub(crate) use arrays::{Assembly, Bin, Bounds, EncodedBins, Encoding, append_bins};
pub(crate) use encode::{EncodedCell, Projected, Scales};
