//! DeltaSegment of an index.
//!
//! In: vectors and identifiers that come or go. Out: an index with a new delta segment over the same base, or a new base.
//! `edit` adds, removes and replaces points, `join` puts them into cells, `reshape` splits and refits cells that have
//! grown, `reassign` lets points go to nearer cells, `compact` writes everything as a new base, `grow` trains anew and
//! checks recall targets as the index grows, `drift` says how far the data have moved.

mod compact;
mod drift;
mod edit;
mod grow;
mod join;
mod reassign;
mod recalibrate;
mod reshape;

pub use drift::Drift;
#[cfg(feature = "live")]
pub(crate) use grow::Due;
