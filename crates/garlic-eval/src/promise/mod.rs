//! Whether a recall target is met: on every kind of data ([`matrix`]) and at every moment of an index's life
//! ([`growth`]).
//!
//! The truth is computed by brute force in double precision on the vectors as they were given, not as an index
//! stores them.

pub mod growth;
pub mod matrix;
mod reference;
pub mod table;

pub use reference::{Estimate, Reference};

/// Kinds for a short look at the matrix: one or two for each way in which data can be hostile, and one that is not.
pub const SHORT_KINDS: [&str; 12] = [
    "clustered-power-law",
    "outliers-1e4",
    "outlier-1e9",
    "far-group",
    "log-normal-lengths",
    "student-32",
    "zipf-counts",
    "one-hot",
    "offset",
    "cluster-scales",
    "half-duplicates",
    "lattice",
];

/// Kinds of indexes that grow.
pub const GROWTH_KINDS: [&str; 8] = [
    "clustered-power-law",
    "student-32",
    "bytes",
    "gaussian-64",
    "curved",
    "half-duplicates",
    "cluster-scales",
    "embeddings",
];

/// Kinds of indexes that grow, for a short look.
pub const SHORT_GROWTH_KINDS: [&str; 4] = [
    "clustered-power-law",
    "student-32",
    "gaussian-8",
    "half-duplicates",
];

/// How far below its target a measured recall may lie beside the error of the measurement.
pub const ALLOWANCE: f64 = 0.01;

/// Whether a measured recall breaks the promise: it lies below the target by more than [`ALLOWANCE`] and two
/// standard errors.
pub fn misses(realised: &Estimate, target: f64) -> bool {
    realised.mean < target - ALLOWANCE - 2.0 * realised.standard_error
}

/// Threads of a machine, for measurements that do not depend on them.
pub fn all_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
