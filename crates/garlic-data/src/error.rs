//! One error for the crate: what was wrong, where, and what to do about it.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The result of this crate's functions.
pub type Result<T, E = DataError> = std::result::Result<T, E>;

/// Where data came from: a file, a set inside a file, or memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    path: Option<PathBuf>,
    set: Option<Cow<'static, str>>,
}

impl Origin {
    /// Data that a caller passed in.
    pub fn memory() -> Self {
        Self::default()
    }

    /// Data of a whole file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self {
            path: Some(path.into()),
            set: None,
        }
    }

    /// The same file, one of its sets or arrays.
    pub fn set(&self, set: impl Into<Cow<'static, str>>) -> Self {
        Self {
            path: self.path.clone(),
            set: Some(set.into()),
        }
    }

    /// The file, unless the data came from memory.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}", path.display())?,
            None => f.write_str("data in memory")?,
        }
        match &self.set {
            Some(set) => write!(f, ", set '{set}'"),
            None => Ok(()),
        }
    }
}

/// Everything that can be wrong with vector data or its files.
///
/// The message of every variant is complete: an underlying cause is part of it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DataError {
    /// The operating system refused.
    #[error("cannot {action} {}: {cause}", path.display())]
    Io {
        /// What was attempted, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system answered.
        cause: io::Error,
    },

    /// The extension names no format of this crate.
    #[error(
        "{origin}: unknown extension '{extension}': use .npy, .npz, .csv, .tsv, .parquet, .arrow, .feather, .fbin, \
         .u8bin, .ibin, .fvecs, .bvecs, .ivecs, .hdf5 or .h5, or name the format"
    )]
    UnknownFormat {
        /// The file.
        origin: Origin,
        /// Its extension, without the dot.
        extension: String,
    },

    /// The format holds something else than what was asked for, or cannot be written.
    #[error("{origin}: a .{format} file cannot serve as {wanted}: use {instead}")]
    WrongKind {
        /// The file.
        origin: Origin,
        /// The format its extension names.
        format: &'static str,
        /// What was asked for.
        wanted: &'static str,
        /// Formats that would do.
        instead: &'static str,
    },

    /// The content is of another format than the extension says.
    #[error("{origin}: labelled {expected}, but it seems to be {seems}: rename or convert it")]
    Mislabelled {
        /// The file.
        origin: Origin,
        /// The format its extension names.
        expected: &'static str,
        /// The format its bytes look like.
        seems: &'static str,
    },

    /// The file ends too early.
    #[error(
        "{origin}: truncated: {what} needs {needed} bytes, the file ends after {len}: \
         copy or download it again"
    )]
    Truncated {
        /// The file.
        origin: Origin,
        /// The part that is cut off.
        what: &'static str,
        /// The byte at which that part would end.
        needed: u64,
        /// The file's length.
        len: u64,
    },

    /// The file goes on after its data.
    #[error(
        "{origin}: {} bytes too many: the data end at byte {expected}, the file at {len}: \
         write the file again with one array only", len - expected
    )]
    TrailingBytes {
        /// The file.
        origin: Origin,
        /// The byte at which the data end.
        expected: u64,
        /// The file's length.
        len: u64,
    },

    /// A header does not parse.
    #[error("{origin}: bad header at byte {offset}: {reason}: write the file again")]
    BadHeader {
        /// The file.
        origin: Origin,
        /// Where the header goes wrong.
        offset: u64,
        /// How.
        reason: String,
    },

    /// A row has another dimension than the first one.
    #[error(
        "{origin}: row {row} at byte {offset} has dimension {found}, the rows before it have \
         {expected}: all rows must have one dimension"
    )]
    Ragged {
        /// The file.
        origin: Origin,
        /// The row that differs.
        row: u64,
        /// Where that row begins.
        offset: u64,
        /// The dimension of the first row.
        expected: i64,
        /// The dimension of this row.
        found: i64,
    },

    /// An array with the wrong number of axes.
    #[error("{origin}: {found} axes, need {expected}: reshape it to {fix}")]
    BadRank {
        /// The file.
        origin: Origin,
        /// How many axes it has.
        found: usize,
        /// How many it should have.
        expected: usize,
        /// The shape that would do.
        fix: &'static str,
    },

    /// Vectors of no coordinates, or neighbour lists of no entries.
    #[error("{origin}: the dimension is zero: rows need at least one column")]
    ZeroDimension {
        /// Where the data came from.
        origin: Origin,
    },

    /// No rows at all.
    #[error("{origin}: no rows: at least one is needed")]
    ZeroRows {
        /// Where the data came from.
        origin: Origin,
    },

    /// A NaN or an infinity.
    #[error(
        "{origin}: row {row}, column {column} is {value}: remove or replace rows that are not finite"
    )]
    NotFinite {
        /// Where the data came from.
        origin: Origin,
        /// The row, from zero.
        row: usize,
        /// The column, from zero.
        column: usize,
        /// The value.
        value: f32,
    },

    /// An array whose numbers are big-endian.
    #[error(
        "{origin}: big-endian numbers ({dtype}): save array.astype(array.dtype.newbyteorder('<')) \
         instead"
    )]
    BigEndian {
        /// The file.
        origin: Origin,
        /// The element type as the file names it.
        dtype: String,
    },

    /// An element type that is not read.
    #[error("{origin}: elements of type {found} are not supported: convert them to {supported}")]
    UnsupportedType {
        /// The file.
        origin: Origin,
        /// The type the file names.
        found: String,
        /// The types that are read.
        supported: &'static str,
    },

    /// A storage feature of HDF5 that is not read.
    #[error("{origin}: {reason}: write the set again as a plain contiguous or chunked one")]
    UnsupportedStorage {
        /// The file and set.
        origin: Origin,
        /// The feature.
        reason: &'static str,
    },

    /// Data in memory whose length is no multiple of the dimension.
    #[error("{origin}: {len} values are no whole number of rows of dimension {dim}")]
    BadLength {
        /// Where the data came from.
        origin: Origin,
        /// The number of values.
        len: usize,
        /// The dimension.
        dim: usize,
    },

    /// More rows, columns or ids than a format can express, or than memory can hold.
    #[error("{origin}: {what} is {value}, the limit is {limit}: {fix}")]
    TooLarge {
        /// The file.
        origin: Origin,
        /// Which number.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The largest possible one.
        limit: u64,
        /// What to do.
        fix: &'static str,
    },

    /// Two sets that belong together have different dimensions.
    #[error(
        "{origin}: dimension {found}, but the vectors searched have {expected}: \
         both must come from one space"
    )]
    DimensionMismatch {
        /// The set that does not fit.
        origin: Origin,
        /// The dimension of the vectors searched.
        expected: usize,
        /// The dimension of the other set.
        found: usize,
    },

    /// Two sets that belong together have different numbers of rows (or entries a row).
    #[error("{origin}: {found} {what}, expected {expected}: {fix}")]
    CountMismatch {
        /// The set that does not fit.
        origin: Origin,
        /// What was counted.
        what: &'static str,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        found: usize,
        /// What to do.
        fix: &'static str,
    },

    /// A neighbour that is no row of the vectors searched.
    #[error(
        "{origin}: row {row}, column {column} names neighbour {id}, but only ids 0 to {} exist: \
         recompute the ground truth for these vectors", rows.saturating_sub(1)
    )]
    IdOutOfRange {
        /// The file or set.
        origin: Origin,
        /// The row, from zero.
        row: usize,
        /// The column, from zero.
        column: usize,
        /// The id.
        id: i128,
        /// How many rows exist.
        rows: u64,
    },

    /// A data set made for another distance.
    #[error(
        "{origin}: made for the distance '{metric}': only 'euclidean', 'angular' (cosine) and 'ip' (inner product) are \
         supported; use another data set"
    )]
    UnsupportedMetric {
        /// The file.
        origin: Origin,
        /// The distance it names.
        metric: String,
    },

    /// A vector without direction, where a cosine is asked for.
    #[error(
        "{origin}: row {row} is zero and has no direction: leave it out, or use another distance"
    )]
    ZeroVector {
        /// The file or set.
        origin: Origin,
        /// The row, from zero.
        row: usize,
    },

    /// A row of a table or a line of text that holds no vector, or no identifier.
    #[error("{origin}: {place}: {problem}")]
    BadRow {
        /// The file.
        origin: Origin,
        /// Which row or line.
        place: String,
        /// What is wrong with it, and what to do.
        problem: String,
    },

    /// A column, array or format that was asked for is not there, or it is not clear which one is meant.
    #[error("{origin}: {problem}")]
    Selection {
        /// The file or folder.
        origin: Origin,
        /// What is wrong, and what to do.
        problem: String,
    },

    /// The reader of an archive or table refused.
    #[error("{origin}: not readable as {format}: {cause}: copy or download the file again")]
    Unreadable {
        /// The file.
        origin: Origin,
        /// What it was read as.
        format: &'static str,
        /// What the reader answered.
        cause: String,
    },

    /// A set that the file should have.
    #[error("{origin}: the set is missing: the file has {present}")]
    MissingSet {
        /// The file and set.
        origin: Origin,
        /// The names of the sets it has.
        present: String,
    },

    /// The HDF5 reader refused.
    #[error("{origin}: not readable as HDF5: {cause}: copy or download the file again")]
    Hdf5 {
        /// The file or set.
        origin: Origin,
        /// What the reader answered.
        cause: Box<hdf5_pure::Error>,
    },

    /// Ground truth of no neighbours.
    #[error("{origin}: asked for 0 neighbours: k must be at least 1")]
    ZeroNeighbors {
        /// Where the data came from.
        origin: Origin,
    },
}

impl DataError {
    pub(crate) fn io(action: &'static str, path: &Path, cause: io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            cause,
        }
    }

    pub(crate) fn selection(origin: Origin, problem: impl Into<String>) -> Self {
        let problem = problem.into();
        Self::Selection { origin, problem }
    }

    /// Whether the error is of the kind that reading a file as the wrong format gives.
    pub(crate) fn hints_at_mislabelling(&self) -> bool {
        matches!(
            self,
            Self::Truncated { .. }
                | Self::TrailingBytes { .. }
                | Self::BadHeader { .. }
                | Self::Ragged { .. }
                | Self::ZeroDimension { .. }
                | Self::Unreadable { .. }
        )
    }
}
