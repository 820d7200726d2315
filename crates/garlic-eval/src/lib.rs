//! Measuring indexes: metrics, sweeps, baselines, synthetic data and the diagnosis of an index. Numbers only: `garlic-report`
//! makes pages of them.
//!
//! The rule of this crate: **like is compared with like.** Every method, ours or a baseline, goes through the
//! same measuring code behind [`Target`], is asked the same queries, and counts every multiply-add. The crate
//! never prints; recall and work do not depend on the number of threads, only times do.
//!
//! ```
//! use garlic_eval::baseline::{KmeansIndex, KmeansOptions};
//! use garlic_eval::{Grid, Options, Truth, sweep};
//! use garlic_linalg::Rows;
//!
//! # fn main() -> Result<(), garlic_eval::Error> {
//! let data: Vec<f32> = (0..4000).map(|i| ((i * 37) % 1009) as f32).collect();
//! let base = Rows::new(&data, 8)?;
//! let queries = base.slice(0..20);
//!
//! let truth = Truth::compute(base, queries, 10)?;
//! let index = KmeansIndex::build(base, &KmeansOptions::new(8, 1))?;
//! let rows = sweep(&index, queries, &truth, 10, &Grid::default(), &Options::default(), &mut |_, _| {})?;
//! assert_eq!(rows.last().unwrap().recall_at_10, Some(1.0));
//! # Ok(())
//! # }
//! ```

pub mod baseline;
pub mod demo;
pub mod diagnose;
mod error;
mod evaluate;
pub mod hostile;
pub mod metrics;
pub mod promise;
mod quality;
pub mod resample;
mod sweep;
pub mod synthetic;
mod target;
mod truth;

pub use error::{Error, Result};
pub use evaluate::{Options, Row, evaluate};
pub use quality::Quality;
pub use sweep::{Grid, mark_fronts, pareto, recall_at_budget, sweep};
pub use target::{GARLIC_DEFAULT, GARLIC_PAPER, IndexTarget, Params, TARGETS, Target, Worker};
pub use truth::Truth;
