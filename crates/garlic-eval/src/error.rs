//! The one error type of the crate.

use garlic_ann::Metric;

/// What can go wrong while measuring.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Building or searching an index failed.
    #[error(transparent)]
    Index(#[from] garlic_ann::Error),
    /// Rows that do not fit their dimension.
    #[error(transparent)]
    Shape(#[from] garlic_linalg::ShapeError),
    /// A data set or options that no vectors can be drawn with.
    #[error("{message}")]
    Resample {
        /// What is wrong, and what to do.
        message: String,
    },
    /// There is nothing to measure with.
    #[error("there are no queries: recall and time cannot be measured without any")]
    NoQueries,
    /// Queries or base rows of another dimension than the index.
    #[error(
        "{what} have dimension {found}, the index has {expected}; measure with vectors of the same data set"
    )]
    Dimension {
        /// Which rows.
        what: &'static str,
        /// Dimension of the index.
        expected: usize,
        /// Dimension that was given.
        found: usize,
    },
    /// True neighbours that do not belong to these queries.
    #[error(
        "the ground truth has {found} rows, there are {expected} queries; take both from the same data set"
    )]
    TruthRows {
        /// Number of queries.
        expected: usize,
        /// Rows of the ground truth.
        found: usize,
    },
    /// A ground truth by another metric than the index's.
    #[error(
        "the ground truth is one of the metric {found}, the index is for {expected}; compute it anew"
    )]
    TruthMetric {
        /// Metric of the index.
        expected: Metric,
        /// Metric of the ground truth.
        found: Metric,
    },
    /// A ground truth whose rows are empty or ragged.
    #[error("the ground truth holds {values} values, which are not rows of {k}")]
    TruthShape {
        /// Number of values.
        values: usize,
        /// Neighbours a query.
        k: usize,
    },
    /// A neighbour that does not exist.
    #[error(
        "the ground truth names neighbour {id}, the data set has {points} points; take both from the same data set"
    )]
    TruthId {
        /// The identifier.
        id: u64,
        /// Number of points.
        points: usize,
    },
    /// A parameter out of range.
    #[error("`{name}` is {value}: {rule}")]
    Parameter {
        /// Name of the parameter.
        name: &'static str,
        /// Value that was given.
        value: String,
        /// What is allowed.
        rule: &'static str,
    },
}

/// `Result` with the crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
