//! The rows beside the vectors: names and columns of the points of an index.
//!
//! An index of `garlic-ann` knows its points by numbers. This crate gives them names and typed columns, kept as Arrow
//! arrays, and turns filter expressions over these into the sets of numbers that a search takes. The index carries the
//! table as its attachment: a file stores both, and a directory logs both in the same record.
//!
//! [`FirstRows`] is for builds, [`Snapshot`] for searches, [`Collection`] for changes, [`Expression`] for filters over
//! other rows.
//!
//! The rule of this crate: no search logic. It may use `garlic-any`, `garlic-ann` and `garlic-core`.

mod chunk;
mod collection;
mod columns;
mod encode;
mod expr;
mod id;
mod snapshot;
mod table;

pub use arrow_array::RecordBatch;
pub use collection::{Change, Collection, FirstRows, check_table, existing, verify};
pub use expr::Expression;
pub use id::{Id, Ids};
pub use snapshot::Snapshot;
pub use table::Table;

#[cfg(test)]
mod tests;
