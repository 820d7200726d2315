//! A query's way: `route` to cells, order their bins and `scan` the points, answer.

mod grid;
mod params;
mod route;
mod scan;
mod searcher;
mod work;

pub use params::{Answer, Hit, Search};
pub(crate) use route::Router;
pub(crate) use searcher::ScratchPool;
pub use searcher::Searcher;
pub use work::Work;
