//! Search.
//!
//! In: a query and a [`Search`](crate::Search). Out: an [`Answer`](crate::Answer). `plan` fills in all defaults,
//! `route` rotates the query and chooses cells, `scan` orders their bins and scans codes, and `rerank` computes exact
//! distances. `query` runs these steps for one query, `batch` for many. `exact` returns proven neighbours, `range`
//! all points within a radius. `expand` takes candidates from the neighbour graph. `cost` is the cost model that all of them share.
//! `disk` reads the vectors of candidates that stay in a file.
//! `trace` tells what a search looked at.

mod batch;
mod cost;
mod disk;
mod exact;
mod expand;
mod plan;
mod query;
mod range;
mod rerank;
mod route;
mod scan;
mod searcher;
mod trace;

pub(crate) use cost::CostModel;
pub(crate) use query::{QueryScratch, bin_limit};
pub(crate) use rerank::{Observer, Reranked};
pub use searcher::Searcher;
pub use trace::{BinShape, Trace, TracedCandidate, TracedCell};
