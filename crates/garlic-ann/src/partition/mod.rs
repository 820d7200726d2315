//! Cells: how points are divided, and how a query finds the nearest.
//!
//! In: points in the truncated space. Out: [`AnisotropicCells`] cells with mean, axes and variances each, and the cell of every
//! point. `train` finds them (k-means, then rounds of assigning by the anisotropic score and refitting), `balance` splits
//! large cells and dissolves small ones, `groups` is the coarse quantizer over very many cells.

mod balance;
mod cells;
mod groups;
mod train;

pub(crate) use cells::AnisotropicCells;
pub(crate) use cells::{Cells, FAR, NONE, fit_cell, relief};
pub(crate) use groups::CoarseQuantizer;
pub(crate) use train::{SHORTLIST, code_bits, default_cells, fit};
