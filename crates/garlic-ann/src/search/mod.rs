//! A query's way.
//!
//! In: a query and a [`Search`](crate::Search). Out: an [`Answer`](crate::Answer). `plan` fills in all defaults, `route`
//! rotates the query and finds its cells, `scan` orders their bins and scans codes, `rerank` computes exact distances;
//! `query` is the way itself, `batch` the same for many queries at once, `exact` the same with proof, `range` finds all
//! points within a radius. `cost` is the one cost model.

mod batch;
mod cost;
mod exact;
mod plan;
mod query;
mod range;
mod rerank;
mod route;
mod scan;
mod searcher;

pub(crate) use cost::Prices;
pub(crate) use query::{QueryScratch, reach};
pub(crate) use rerank::Reranked;
pub use searcher::Searcher;
