//! Shared parts of the GARLIC indexes. Use `garlic-ann` (the index) or `garlic-paper` (the published method) instead.
//! Both re-export what their users need.
//!
//! [`metric`] embeds vectors so that every metric becomes Euclidean, and [`vectors`] stores them. A query is a
//! [`Search`] or a [`RangeSearch`], possibly with a [`Filter`]. It collects neighbours in a [`TopK`] and returns an
//! [`Answer`] with [`SearchStats`]. [`mod@file`] is the container of saved indexes, and [`config`] builds typed
//! parameters from one table.
//!
//! This crate contains no index. It may use `garlic-simd` and `garlic-linalg`.

mod attachment;
pub mod buffer;
mod cancel;
pub mod config;
mod error;
pub mod file;
mod filter;
mod index;
mod lists;
mod lookup;
mod memory;
pub mod metric;
pub mod pool;
mod progress;
mod query;
pub mod shapes;
mod stats;
mod topk;
mod transform;
pub mod validate;
pub mod vector_file;
pub mod vectors;

pub use attachment::{Attached, Attachment};
pub use bytes::Bytes;
pub use cancel::Cancel;
pub use error::{Error, Result};
pub use file::FormatError;
pub use filter::{Filter, IdSet, Stamp};
pub use garlic_linalg::{Matrix, Rows, ShapeError};
pub use index::{NeighborIndex, NeighborSearcher};
pub use lists::{Lists, by_label};
pub use lookup::IdLookup;
pub use memory::Memory;
pub use metric::Metric;
pub use progress::{BuildReport, Progress, Seconds, Stage};
pub use query::{Answer, Hit, RangeSearch, Search};
pub use roaring::RoaringTreemap;
pub use shapes::CellShapes;
pub use stats::SearchStats;
pub use topk::{Scored, TopK, VisitedSet};
pub use transform::Transform;
