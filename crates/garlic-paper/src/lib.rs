//! GARLIC as published (arXiv 2505.24608): nearest-neighbour search over trained Gaussians with hyperspherical bins.
//!
//! This crate is the published method, complete, to be read with the paper in the other hand. For searching by recall and
//! for speed use `garlic-ann`. Vectors come in as [`Rows`]; distances of answers are exact.
//!
//! ```
//! use garlic_paper::{Filter, GaussianIndex, Rows, Search};
//!
//! # fn main() -> garlic_paper::Result<()> {
//! // 400 points in the plane.
//! let values: Vec<f32> = (0..400u16).flat_map(|i| [f32::from(i % 20), f32::from(i / 20)]).collect();
//! let builder = GaussianIndex::builder().seed(7).set("initial_cells", "8")?.set("epochs", "10")?;
//! let index = builder.build(Rows::new(&values, 2)?)?;
//!
//! let answer = index.search(&[3.2, 4.1], &Search::new(3).probes(4).bins(1.0))?;
//! assert_eq!(answer.hits[0].id, 4 * 20 + 3);
//! let even = Filter::predicate(|id| id % 2 == 0);
//! let answer = index.search(&[3.2, 4.1], &Search::new(1).exact(true).filter(even))?;
//! assert_eq!(answer.hits[0].id, 4 * 20 + 4);
//! assert!(index.coverage().share > 0.5 && index.history().epochs.len() == 10);
//! # Ok(())
//! # }
//! ```
//!
//! | topic of the paper | where | symbols |
//! |---|---|---|
//! | parameters | [`config`] | all |
//! | normalisation | `normalize` | |
//! | Gaussian cells, Mahalanobis distance, covering | [`gaussians`] | mu, L, Sigma, tau |
//! | divergence, coverage and anchor loss | [`losses`] | alpha |
//! | initialisation | `training/init` | K0 |
//! | optimiser and schedule | `training/adam`, `training/schedule` | |
//! | training loop | [`training`] | |
//! | split, clone, prune | `refine` | gamma, beta, e |
//! | frames and hyperspherical bins | [`bins`] | r, n_r, n_a |
//! | routing a query | `route` | k_G |
//! | retrieval from bins | [`search`] | rho |
//! | online updates (future work) | `update` | |
//!
//! Beside the method: `partition` builds from given cells, `build` and `index` put the parts together, `store` writes and
//! reads files. Where the text is silent, `docs/research/method.md` says what was decided.
//!
//! The rule of this crate: nothing but the published method. It may use `garlic-core`, `garlic-linalg` and `garlic-simd`.

pub mod bins;
mod build;
pub mod config;
pub mod gaussians;
mod index;
pub mod losses;
mod normalize;
mod partition;
mod refine;
mod route;
pub mod search;
mod shapes;
mod store;
mod streams;
pub mod training;
mod update;

pub use build::GaussianBuilder;
pub use config::Config;
pub use garlic_core::{
    Answer, BuildReport, Cancel, Error, Filter, FormatError, Hit, Matrix, Memory, Metric,
    NeighborIndex, Progress, RangeSearch, Result, Rows, Search, SearchStats, Seconds, Stage,
    Transform,
};
pub use index::{Coverage, GaussianIndex};
pub use search::Searcher;
