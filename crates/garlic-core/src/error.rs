//! The error type of the library.

use std::io;
use std::path::PathBuf;

/// Errors of building, searching, saving and opening an index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The data set has no rows.
    #[error("there are no vectors to index: the data set is empty")]
    NoVectors,
    /// More rows than 32-bit positions can address.
    #[error("{rows} vectors are more than one index holds ({limit}); split the data into shards")]
    TooManyVectors {
        /// Number of rows.
        rows: usize,
        /// Upper limit.
        limit: usize,
    },
    /// The number of values is not a multiple of the dimension, or the dimension is zero.
    #[error(transparent)]
    Shape(#[from] garlic_linalg::ShapeError),
    /// A vector of the data set contains NaN or infinity.
    #[error(
        "vector {row} has the value {value} at coordinate {column}; only finite numbers can be indexed"
    )]
    NotFinite {
        /// Row of the value.
        row: usize,
        /// Coordinate of the value.
        column: usize,
        /// The value.
        value: f32,
    },
    /// A query contains NaN or infinity.
    #[error(
        "query {row} has the value {value} at coordinate {column}; only finite numbers can be searched for"
    )]
    QueryNotFinite {
        /// Number of the query in its batch, starting at 0.
        row: usize,
        /// Coordinate of the value.
        column: usize,
        /// The value.
        value: f32,
    },
    /// A value so large that squared distances overflow.
    #[error(
        "vector {row} has the value {value:e} at coordinate {column}: squared distances would overflow; \
         scale the data so that values stay below {limit:e}"
    )]
    TooLarge {
        /// Row of the value.
        row: usize,
        /// Coordinate of the value.
        column: usize,
        /// The value.
        value: f32,
        /// The largest magnitude that is accepted.
        limit: f32,
    },
    /// A query with a value so large that squared distances overflow.
    #[error(
        "query {row} has the value {value:e} at coordinate {column}: squared distances would overflow; values must \
         stay below {limit:e}"
    )]
    QueryTooLarge {
        /// Number of the query in its batch, starting at 0.
        row: usize,
        /// Coordinate of the value.
        column: usize,
        /// The value.
        value: f32,
        /// The largest magnitude that is accepted.
        limit: f32,
    },
    /// Values so small that squared distances vanish.
    #[error(
        "the largest value of all vectors is {largest:e}: squared distances would vanish in 32 bits; scale the data so \
         that the largest value is {limit:e} or more"
    )]
    TooSmall {
        /// The largest magnitude of a value.
        largest: f32,
        /// Lower limit of the largest magnitude.
        limit: f32,
    },
    /// An exact search with the cosine metric whose neighbours cannot be distinguished from others, because the
    /// stored unit vectors are rounded.
    #[error(
        "query {row}: near the cosine distance {distance:e} vectors are closer together than unit vectors of 32 bits can \
         tell, so that an exact answer cannot be proved; subtract the mean from data and queries, use the metric \
         euclidean, or search without exact"
    )]
    TooClose {
        /// Number of the query in its batch, starting at 0.
        row: usize,
        /// The distance of the last neighbour.
        distance: f32,
    },
    /// A zero vector in a data set for the cosine metric.
    #[error(
        "vector {row} is zero and has no direction: the metric cosine cannot take it; remove it"
    )]
    ZeroVector {
        /// Row of the vector.
        row: usize,
    },
    /// A zero query with the cosine metric.
    #[error("query {row} is zero and has no direction: with the metric cosine nothing is near it")]
    ZeroQuery {
        /// Number of the query in its batch, starting at 0.
        row: usize,
    },
    /// A vector longer than the limit of an index for inner products.
    #[error(
        "vector {row} has the length {length}, the index for inner products was built for lengths up to {longest}; \
         build it anew with this vector"
    )]
    TooLong {
        /// Row of the vector.
        row: usize,
        /// Its length.
        length: f64,
        /// The limit.
        longest: f32,
    },
    /// A query whose dimension differs from that of the index.
    #[error("the index was built for dimension {expected}, the query has {found}")]
    Dimension {
        /// Dimension of the index.
        expected: usize,
        /// Dimension of the query.
        found: usize,
    },
    /// Vectors whose dimension differs from that of the index.
    #[error("the index was built for dimension {expected}, the vectors have {found}")]
    VectorDimension {
        /// Dimension of the index.
        expected: usize,
        /// Dimension of the vectors.
        found: usize,
    },
    /// The numbers of identifiers and vectors differ.
    #[error(
        "there are {vectors} vectors but {ids} identifiers; give one identifier for each vector"
    )]
    IdCount {
        /// Number of vectors.
        vectors: usize,
        /// Number of identifiers.
        ids: usize,
    },
    /// An identifier that exists already.
    #[error("the identifier {id} is there already; update it, or remove it first")]
    IdExists {
        /// The identifier.
        id: u64,
    },
    /// An identifier that occurs twice in one batch.
    #[error("the identifier {id} comes twice; name each point once")]
    IdTwice {
        /// The identifier.
        id: u64,
    },
    /// An identifier above the limit.
    #[error("the identifier {id} is too large; identifiers must be below 2^63")]
    IdTooLarge {
        /// The identifier.
        id: u64,
    },
    /// An unknown identifier.
    #[error("there is no point with the identifier {id}; add it first")]
    UnknownId {
        /// The identifier.
        id: u64,
    },
    /// A name that exists already.
    #[error("the identifier `{name}` is there already; use upsert, or remove it first")]
    NameExists {
        /// The name.
        name: String,
    },
    /// A name that occurs twice in one batch.
    #[error("the identifier `{name}` comes twice; name each point once")]
    NameTwice {
        /// The name.
        name: String,
    },
    /// An unknown name.
    #[error("there is no point with the identifier `{name}`; add it first")]
    UnknownName {
        /// The name.
        name: String,
    },
    /// Identifiers of the wrong kind: names where the points have numbers, or the other way round.
    #[error("{message}")]
    IdKind {
        /// What was given, and what the index takes.
        message: String,
    },
    /// Columns that do not fit the index.
    #[error("{message}")]
    Columns {
        /// The fault, and the columns that there are.
        message: String,
    },
    /// A filter expression that cannot be evaluated.
    #[error("filter expression `{expression}`: {message}")]
    Expression {
        /// The expression.
        expression: String,
        /// The fault, and the columns that there are.
        message: String,
    },
    /// A mask with an entry for neither more nor fewer rows than there are.
    #[error(
        "the mask has {entries} entries, but {rows} rows were given to the index; give an entry for each, or a list of \
         identifiers"
    )]
    MaskLength {
        /// Entries of the mask.
        entries: usize,
        /// Rows that were given.
        rows: u64,
    },
    /// Something that only an index of the default preset can do.
    #[error(
        "an index built by the published method takes changes in memory and in a file, but is not kept in a directory, does \
         not begin empty and is neither tuned nor trained again; build with the default preset for this"
    )]
    Unchanging,
    /// A removal of all points of an index that cannot be empty.
    #[error(
        "these are all points of the index, and an index built by the published method cannot be empty; keep one, or add \
         others first"
    )]
    LastPoints,
    /// A change of an index with points in two cells, which is read-only.
    #[error(
        "an index whose points lie in second cells as well cannot be changed; build it without `spill` for updates"
    )]
    Spilled,
    /// A change of an index whose vectors stay in its file, which is read-only.
    #[error(
        "an index whose vectors are read from the disk cannot be changed; open it in memory or mapped for changes"
    )]
    OnDisk,
    /// A search from the disk in an index of the published method.
    #[error(
        "an index built by the published method computes the exact distances of all points that it visits, and is not \
         searched from the disk; open it mapped"
    )]
    NotOnDisk,
    /// A vector that the stored type cannot represent.
    #[error(
        "vector {row} has the value {value} at coordinate {column}, which the index cannot store as {stored}; build \
         it with store = \"f32\" to add such vectors"
    )]
    NotStorable {
        /// Row of the value.
        row: usize,
        /// Coordinate of the value.
        column: usize,
        /// The value.
        value: f32,
        /// The type of the stored vectors.
        stored: &'static str,
    },
    /// A search parameter out of range.
    #[error("search parameter `{name}` is {value}: {rule}")]
    SearchParameter {
        /// Name of the parameter.
        name: &'static str,
        /// The value.
        value: String,
        /// The allowed values.
        rule: &'static str,
    },
    /// The predicate of a filter searches with its own filter.
    #[error(
        "the filter's function searches with the same filter, which would never end; search with another filter in it, \
         or with none"
    )]
    FilterInItself,
    /// An unknown configuration key.
    #[error("unknown configuration key `{key}`{}", suggestion.as_ref().map(|s| format!(": did you mean `{s}`?")).unwrap_or_default())]
    UnknownKey {
        /// The key.
        key: String,
        /// The nearest existing key, if there is one.
        suggestion: Option<String>,
    },
    /// A configuration value of the wrong type or out of range.
    #[error("configuration key `{key}`: {message}")]
    Config {
        /// The key.
        key: String,
        /// The fault and the allowed values.
        message: String,
    },
    /// A configuration text that is not valid TOML.
    #[error("the configuration is not valid TOML: {0}")]
    ConfigSyntax(String),
    /// The work was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The worker threads could not be started.
    #[error("could not start {threads} worker threads: {message}")]
    Threads {
        /// Number of threads requested.
        threads: usize,
        /// The reason given by the system.
        message: String,
    },
    /// A mapped file whose cells and bins are out of order.
    #[error(
        "the index file is damaged: its cells and bins are out of order; verify it, and restore it from a copy"
    )]
    Damaged,
    /// Reading or writing a file failed.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason given by the system.
        source: io::Error,
    },
    /// A file that is not an index, is damaged, or is of another format version.
    #[error("{path}: {source}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The fault.
        source: crate::file::FormatError,
    },
    /// Another process or handle has the index directory open for writing.
    #[error(
        "{path}: another writer has this index directory open; close it first, or open the directory read-only",
        path = path.display()
    )]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// The path of an index directory no longer leads to the opened directory.
    #[error(
        "{path}: this index directory was moved, replaced or removed while it was open (or its file LOCK was); nothing \
         was written, open the directory again where it is now",
        path = path.display()
    )]
    Moved {
        /// The path at which the directory was opened.
        path: PathBuf,
    },
    /// The index directory was opened by the parent process, before a fork.
    #[error(
        "{path}: this process was forked from the one that opened the index directory, which alone can write to it; close \
         it there and open it here",
        path = path.display()
    )]
    Forked {
        /// The directory.
        path: PathBuf,
    },
    /// A directory that is not what it was named for: an index directory, or a folder for the parts of a build.
    #[error("{path}: {message}", path = path.display())]
    Directory {
        /// The directory, or the wrong file in it.
        path: PathBuf,
        /// The fault.
        message: String,
    },
    /// An acknowledged record of the log is damaged.
    #[error("{path}: the log is damaged at byte {offset}: {message}", path = path.display())]
    Log {
        /// The log.
        path: PathBuf,
        /// Start of the record.
        offset: u64,
        /// The fault.
        message: String,
    },
    /// The handle was opened read-only.
    #[error("{path}: opened read-only; open the directory for writing to change it", path = path.display())]
    ReadOnly {
        /// The directory.
        path: PathBuf,
    },
    /// An earlier write failed, so the content of the device is unknown.
    #[error(
        "{path}: an earlier write failed ({message}); searches go on, open the directory again to write",
        path = path.display()
    )]
    Broken {
        /// The directory.
        path: PathBuf,
        /// The failure.
        message: String,
    },
}

/// `Result` with the library's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
