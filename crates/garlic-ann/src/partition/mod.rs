//! Cells: partition the points.
//!
//! In: points in the truncated space. Out: [`AnisotropicCells`], each with a mean, axes and variances, and the cell
//! of every point. `train` runs k-means and then alternates between assignment by the anisotropic score and
//! refitting. `balance` splits large cells and dissolves small ones. `coarse_quantizer` speeds up routing among very
//! many cells.

mod balance;
mod cells;
mod coarse_quantizer;
mod train;

pub(crate) use cells::AnisotropicCells;
pub use cells::CellShape;
pub(crate) use cells::{
    AxisCounts, Cells, FittedCell, NO_CELL, PRUNED_COORDINATE, anisotropic_discount, renumber,
};
pub(crate) use coarse_quantizer::CoarseQuantizer;
pub(crate) use train::{
    SCORED_CELLS, assign, code_bits, default_cells, fit, fit_options, sample_size,
};
