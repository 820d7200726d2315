//! Bins: small clusters of points within a cell.
//!
//! In: the points of every cell, projected into its frame. Out: [`EncodedBins`], arrays of bins with bounds and
//! codes, in the order in which points are stored. `encode` handles one cell, `arrays` concatenates all cells, and
//! `access` reads the arrays safely whatever a mapped file contains.

mod access;
mod arrays;
mod encode;

pub(crate) use access::LayoutCheck;
pub(crate) use arrays::{
    Bin, BinShapes, Bounds, EncodedBins, EncodedBinsBuilder, Encoding, append_bins, encode_cell,
};
pub(crate) use encode::{EncodedCell, Projected, Scales};
