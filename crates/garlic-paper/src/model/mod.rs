//! The Gaussians: means and Cholesky factors, and the distances they define.
//!
//! `tile` computes Mahalanobis distances of many points at once, step by step; `assign` uses it to find the
//! nearest and the covering cells of every point with most of the work pruned, exactly.

mod assign;
mod gaussians;
mod tempered;
mod tile;

pub(crate) use assign::Lists;
pub use assign::{AssignWork, Assignment, assign};
pub use gaussians::{Factors, Gaussians, packed_len};
pub use tempered::Tempered;
pub(crate) use tempered::{Axes, Cells, FAR, NONE, by_label, fit_cell, relief};
