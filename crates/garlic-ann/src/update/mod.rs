//! Changes of an index.
//!
//! In: vectors and identifiers to add, remove or replace. Out: an index with a new delta segment over the same base, or
//! with a new base. `edit` implements the changes, `assign` finds the cells of vectors, `join` adds points to cells, `nodes` to the neighbour graph, `rebuild` splits and refits cells,
//! `reassign` moves points to nearer cells, `compact` encodes everything as a new base, `grow` retrains and checks
//! recall targets, `recalibrate` measures them again, `drift` reports how far the data have moved.

mod assign;
mod compact;
mod drift;
mod edit;
mod grow;
mod join;
mod nodes;
mod reassign;
mod rebuild;
mod recalibrate;

pub use drift::Drift;
#[cfg(feature = "live")]
pub(crate) use grow::Due;
