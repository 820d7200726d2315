//! A query's way: `route` to cells, order their bins and `scan` the points, answer.

mod filter;
mod grid;
mod params;
mod range;
mod route;
mod scan;
mod searcher;
mod tempered;
mod work;

pub(crate) use filter::Allowed;
pub use filter::Filter;
pub(crate) use params::Plan;
pub use params::{Answer, Hit, Search};
pub use range::Range;
pub(crate) use route::Router;
pub(crate) use scan::Best;
pub(crate) use searcher::ScratchPool;
pub use searcher::Searcher;
pub(crate) use tempered::{Reranked, TemperedScratch, reach};
pub use work::Work;
