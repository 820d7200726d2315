//! A query's way: plan, route to cells, order their bins, scan codes, re-rank, answer.

mod filter;
mod params;
mod range;
mod searcher;
mod tempered;

pub(crate) use filter::Allowed;
pub(crate) use params::Plan;
pub use searcher::Searcher;
pub(crate) use tempered::{Reranked, TemperedScratch, reach};
