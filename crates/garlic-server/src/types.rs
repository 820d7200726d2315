//! Requests and answers as JSON. `/openapi.json` is made from these types.

mod ids;
mod matrix;

pub(crate) use ids::{IdList, point_id};
pub(crate) use matrix::Matrix;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Columns of several points: for each name a list with a value for each point.
pub(crate) type ColumnLists = BTreeMap<String, Vec<Value>>;

/// Create an index: from vectors, or an empty one for vectors of a dimension.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CreateRequest {
    /// Dimension of the vectors. Needed without vectors.
    pub(crate) dim: Option<usize>,
    /// `euclidean` (the default), `cosine` or `inner_product`.
    pub(crate) metric: Option<String>,
    /// Parameters of the build by name, such as `recall` and `seed`.
    pub(crate) parameters: Map<String, Value>,
    /// The first points. Without them the index begins empty and trains itself as it grows.
    pub(crate) vectors: Option<Matrix>,
    /// Their identifiers; otherwise the numbers of their rows.
    pub(crate) ids: Option<IdList>,
    /// Their columns.
    pub(crate) columns: Option<ColumnLists>,
}

/// Search for the nearest neighbours of vectors, or for all points within a radius.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SearchRequest {
    /// One vector, or a list of them. In a binary body they follow this object.
    pub(crate) vectors: Matrix,
    /// Search for the neighbours of these points instead of vectors.
    pub(crate) ids: Option<IdList>,
    /// Number of neighbours: 10 unless given. With a radius, the most that are told of each query.
    pub(crate) k: Option<usize>,
    /// The share of the true neighbours to find, in (0, 1); otherwise that of the index.
    pub(crate) recall: Option<f64>,
    /// Find all true neighbours, proved.
    pub(crate) exact: bool,
    /// All points up to this distance.
    pub(crate) radius: Option<f32>,
    /// Cells to visit, instead of a recall target.
    pub(crate) probes: Option<usize>,
    /// Share of their bins to scan, in (0, 1], instead of a recall target.
    pub(crate) bins: Option<f64>,
    /// Candidates to compute exact distances of, instead of a recall target.
    pub(crate) rerank: Option<usize>,
    /// An expression over `id` and the columns, such as `lang = 'en' AND year > 2015`.
    pub(crate) filter: Option<String>,
    /// Columns that come with each neighbour.
    pub(crate) columns: Option<Vec<String>>,
    /// Whether the vectors of the neighbours come with them.
    pub(crate) with_vectors: bool,
    /// Whether the work of the search is told.
    pub(crate) with_stats: bool,
}

/// The neighbours of every query, in order.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SearchAnswer {
    pub(crate) results: Vec<QueryResult>,
    /// Work of all queries, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stats: Option<Value>,
}

/// The neighbours of a query, nearest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct QueryResult {
    pub(crate) hits: Vec<HitAnswer>,
    /// Whether these are proved to be the true neighbours.
    pub(crate) exact: bool,
}

/// A neighbour.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HitAnswer {
    /// A whole number, or text.
    pub(crate) id: Value,
    /// Euclidean distance, one minus the cosine, or minus the inner product.
    pub(crate) distance: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) columns: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vector: Option<Vec<f32>>,
}

/// How points are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// Add new points and replace those that exist.
    #[default]
    Upsert,
    /// Add new points; an identifier that exists is an error.
    Add,
    /// Replace the vectors of points that exist. Their columns stay.
    Update,
}

/// Add or replace points, all or none.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WriteRequest {
    /// A vector for each point. In a binary body they follow this object.
    pub(crate) vectors: Matrix,
    /// An identifier for each point. Without them the points are added with numbers after the largest.
    pub(crate) ids: Option<IdList>,
    /// Columns of the points.
    pub(crate) columns: Option<ColumnLists>,
    pub(crate) mode: Mode,
}

/// Measure what recall targets take for queries like these.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TuneRequest {
    /// At least 100 queries, one behind the other. In a binary body they follow this object.
    pub(crate) vectors: Matrix,
}

/// The identifiers of the points that were written.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WriteAnswer {
    pub(crate) ids: Vec<Value>,
}

/// Read some points.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GetRequest {
    pub(crate) ids: IdList,
    /// Columns to read; all of them unless given.
    pub(crate) columns: Option<Vec<String>>,
    pub(crate) with_vectors: bool,
}

/// Points in the order in which they were asked for.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PointsAnswer {
    pub(crate) points: Vec<PointAnswer>,
    /// Where the next page begins; null after the last one.
    pub(crate) next: Option<u64>,
}

/// A point.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PointAnswer {
    /// A whole number, or text.
    pub(crate) id: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) columns: Option<Value>,
    /// As it is stored: rounded in some indexes, and of unit length with cosine distances.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vector: Option<Vec<f32>>,
}

/// Remove points: those with some identifiers, or those that a filter allows.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DeleteRequest {
    pub(crate) ids: Option<IdList>,
    pub(crate) filter: Option<String>,
}

/// How many points there were.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeleteAnswer {
    pub(crate) removed: usize,
}

/// Count points.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CountRequest {
    pub(crate) filter: Option<String>,
}

/// The number of points.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CountAnswer {
    pub(crate) count: u64,
}

/// Read all points, page by page.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ScrollRequest {
    /// Points of a page: 100 unless given.
    pub(crate) limit: Option<usize>,
    /// `next` of the page before.
    pub(crate) from: u64,
    pub(crate) filter: Option<String>,
    /// Columns to read; all of them unless given.
    pub(crate) columns: Option<Vec<String>>,
    pub(crate) with_vectors: bool,
}

/// An index in the list of indexes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct IndexAnswer {
    pub(crate) name: String,
    pub(crate) points: usize,
    pub(crate) dim: usize,
    pub(crate) metric: String,
    /// Whether points have text as identifiers.
    pub(crate) named: bool,
    /// Names and types of the columns.
    pub(crate) columns: Vec<ColumnAnswer>,
    /// Whether it can be changed.
    pub(crate) writable: bool,
}

/// A column.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ColumnAnswer {
    pub(crate) name: String,
    /// Its type, as Arrow calls it.
    #[serde(rename = "type")]
    pub(crate) kind: String,
}

/// All indexes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct IndexesAnswer {
    pub(crate) indexes: Vec<IndexAnswer>,
    /// Whether indexes can be created.
    pub(crate) creatable: bool,
}

/// A change that gives nothing back.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DoneAnswer {
    pub(crate) done: bool,
}

/// An error.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ErrorAnswer {
    pub(crate) error: ErrorBody,
}

/// What went wrong.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ErrorBody {
    /// A word for programs.
    pub(crate) code: String,
    /// A sentence for people: what was wrong and what to do.
    pub(crate) message: String,
}

/// Statistics: sizes, memory, changes, drift, training and storage.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StatsAnswer {
    #[serde(flatten)]
    pub(crate) about: Map<String, Value>,
}
