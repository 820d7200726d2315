//! Training: place the first cells, descend the losses, refine.
//!
//! In: points in the space of the Gaussians. Out: the trained [`Gaussians`] and the [`History`].
//!
//! `init` places the cells and `trainer` runs the epochs; `adam` makes the steps at the rates of `schedule`. `select`
//! keeps the model with the cheapest retrieval where that is asked for. Splitting, cloning and pruning are in
//! `refine`.
//!
//! [`Gaussians`]: crate::gaussians::Gaussians

mod adam;
mod history;
mod init;
mod schedule;
mod select;
mod trainer;

pub use history::{Ended, Epoch, History, Refinement};
pub(crate) use trainer::train;
