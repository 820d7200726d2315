//! Training: place the first cells, descend the three losses, refine.
//!
//! `init` places the cells; `trainer` runs the epochs; `backend` is the small interface to the three bulk
//! operations (assign, statistics, gradient) that `cpu` implements; `adam` and `schedule` make the steps;
//! `refine` splits, clones and prunes. `tempered` finds the cells of the default preset; `descend` refines those by
//! the published objective where that is asked for, `fitted` makes Gaussians of them.

mod adam;
mod backend;
mod balance;
mod cpu;
mod dbscan;
mod descend;
mod fitted;
mod history;
mod init;
mod refine;
mod schedule;
mod select;
pub(crate) mod streams;
pub(crate) mod tempered;
mod trainer;

#[cfg(test)]
mod reference;

pub use backend::{Backend, Gradient, Losses, Statistics, Weights};
pub use cpu::Cpu;
pub(crate) use fitted::{given, given_assignment};
pub use history::{Ended, Epoch, History, Refinement};
pub(crate) use trainer::train;
