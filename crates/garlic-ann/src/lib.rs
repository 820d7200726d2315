//! Nearest-neighbour search over encoded anisotropic cells.
//!
//! An index partitions the data into cells whose shapes follow the local geometry. A query visits the nearest cells,
//! skips most of their points by quantized coordinates in the low-dimensional frame of each cell, and computes exact
//! distances for the rest.
//!
//! ```
//! use garlic_ann::{Index, Rows, Search};
//!
//! # fn main() -> Result<(), garlic_ann::Error> {
//! let data: Vec<f32> = (0..2000).map(|i| ((i * 37) % 101) as f32).collect();
//! let vectors = Rows::new(&data, 4)?;
//!
//! let index = Index::builder().seed(1).build(vectors)?;
//!
//! let answer = index.search(vectors.row(7), &Search::new(3).recall(0.95))?;
//! assert_eq!(answer.hits[0].id, 7);
//! assert_eq!(answer.hits[0].distance, 0.0);
//! println!("{} exact distances", answer.stats.candidates);
//! # Ok(())
//! # }
//! ```
//!
//! Features, both on by default: `live` adds `Live` and index directories, `toml` reads and writes configurations as
//! TOML text.
//!
//! The library never prints, never uses the global thread pool and never draws an unseeded random number.
//! The same data, options and seed give the same index for any number of threads.

// Each folder uses only those above it. `tests/suite/layers.rs` checks this.
mod config;
mod streams;

mod transform;

mod partition;

mod quantize;

mod bins;

mod graph;

mod plan;

mod segment;

mod search;

mod tune;

mod build;

mod update;

pub mod store;

#[cfg(feature = "live")]
pub mod live;

#[cfg(test)]
mod testdata;

/// Runs the examples of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

pub use build::{Builder, StreamedBuild, StreamedIndex};
pub use config::{
    BinOptions, Config, GraphOptions, PartitionOptions, StorageOptions, Store, TransformOptions,
    TuningOptions, UseGraph,
};
pub use garlic_core::config::Configuration;
pub use garlic_core::{
    Answer, Attached, Attachment, BuildReport, Bytes, Cancel, Error, Filter, FormatError, Hit,
    Matrix, Memory, Metric, Progress, RangeSearch, Result, RoaringTreemap, Rows, Search,
    SearchStats, Seconds, ShapeError, Stage, Transform,
};
// For the crates that measure and describe all kinds of index. Not for others.
#[doc(hidden)]
pub use garlic_core::{NeighborIndex, NeighborSearcher};
#[cfg(feature = "live")]
pub use live::Live;
pub use partition::CellShape;
pub use plan::{Calibration, EXHAUSTIVE_POINTS, GraphDecision, Setting};
pub use search::{BinShape, Searcher, Trace, TracedCandidate, TracedCell};
pub use segment::Index;
pub use tune::{Cause, Exhaustive};
pub use update::Drift;
