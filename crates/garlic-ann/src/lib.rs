//! Nearest-neighbour search over learned anisotropic Gaussian cells.
//!
//! The data are covered by Gaussians whose shapes follow the local geometry. A query visits the few cells it
//! is closest to, uses each cell's own low-dimensional frame to skip most of its points, and computes exact
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
//! println!("{} exact distances", answer.work.candidates);
//! # Ok(())
//! # }
//! ```
//!
//! The folders follow the two ways through the code. A vector's way is [`space`] (normalise, rotate),
//! [`train`], [`cell`], [`index`], [`store`]; a query's way is [`search`]: route, bins, scan, answer.
//!
//! The library never prints, never uses the global thread pool and never draws an unseeded random number.
//! The same data, options and seed give the same index, whatever the number of threads.

mod buffer;
mod cancel;
pub mod cell;
pub mod config;
mod error;
pub mod index;
pub mod live;
mod metric;
pub mod model;
mod robust;
pub mod search;
pub mod space;
pub mod store;
pub mod train;

pub use cancel::Cancel;
pub use config::{Config, Preset};
pub use error::{Error, Result};
pub use garlic_linalg::{Matrix, Rows};
pub use index::{BuildReport, Builder, Drift, Index, Progress, Stage};
pub use live::Live;
pub use metric::Metric;
pub use search::{Answer, Filter, Hit, Range, Search, Work};
