//! The interface that all kinds of index share.

use std::fmt;
use std::path::Path;

use garlic_linalg::Rows;
use serde_json::Value;

use crate::attachment::Attachment;
use crate::error::Result;
use crate::memory::Memory;
use crate::metric::{Embedding, Metric};
use crate::query::{Answer, RangeSearch, Search};
use crate::shapes::CellShapes;
use crate::transform::Transform;

/// A nearest-neighbour index of any kind.
pub trait NeighborIndex: fmt::Debug + Send + Sync {
    /// Dimension of the vectors.
    fn dim(&self) -> usize;
    /// Number of vectors.
    fn len(&self) -> usize;
    /// Whether the index holds no vector.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The metric.
    fn metric(&self) -> Metric;
    /// Number of cells.
    fn cells(&self) -> usize;
    /// Number of points of every cell. A point in several cells counts in each.
    fn cell_sizes(&self) -> Vec<usize>;
    /// The element type of the stored vectors: `f32`, `f16`, `int8` or `u8`.
    fn stored_as(&self) -> &'static str;
    /// Memory use in bytes, by part.
    fn memory(&self) -> Memory;
    /// Bytes of these that lie in a mapped file.
    fn mapped_bytes(&self) -> u64;
    /// The preset of the build: `default` or `paper`.
    fn preset(&self) -> &'static str;
    /// The parameters of the build, in the order of their table.
    fn parameters(&self) -> Vec<(&'static str, Value)>;
    /// Further facts about this kind of index, by name.
    fn details(&self) -> Vec<(&'static str, Value)>;

    /// Identifiers of all points, in no particular order.
    fn ids(&self) -> Vec<u64>;
    /// The stored vector of an identifier. It is rounded with half precision and normalized with the cosine metric.
    fn get(&self, id: u64) -> Option<Vec<f32>>;
    /// Whether a point has this identifier.
    fn contains(&self, id: u64) -> bool {
        self.get(id).is_some()
    }
    /// An unused identifier. All larger ones are unused, too.
    fn next_id(&self) -> u64;
    /// What the index carries for its points beside the vectors.
    fn attachment(&self) -> &Attachment;
    /// The transform from stored vectors to the space of the cells.
    fn transform(&self) -> &Transform;
    /// The embedding of the user's vectors into the stored ones.
    fn embedding(&self) -> &Embedding;
    /// The cells as Gaussians.
    fn shapes(&self) -> Box<dyn CellShapes + '_>;

    /// The nearest neighbours of one query.
    ///
    /// # Errors
    /// Fails for an invalid query or parameter.
    fn search(&self, query: &[f32], search: &Search) -> Result<Answer>;
    /// The nearest neighbours of every query, in order, on [`Search::threads`] threads.
    ///
    /// # Errors
    /// Fails for an invalid query or parameter.
    fn search_batch(&self, queries: Rows<'_>, search: &Search) -> Result<Vec<Answer>>;
    /// All points within a radius of every query, in order, on [`RangeSearch::threads`] threads.
    ///
    /// # Errors
    /// Fails for an invalid query or parameter.
    fn range_batch(&self, queries: Rows<'_>, range: &RangeSearch) -> Result<Vec<Answer>>;
    /// A searcher with its own buffers. This is the fastest way to run many single queries on one thread.
    fn searcher(&self) -> Box<dyn NeighborSearcher + '_>;
    /// Whether searches accept a recall target.
    fn takes_recall(&self) -> bool;
    /// The `count` best cells of a query, best first.
    ///
    /// # Errors
    /// Fails for an invalid query.
    fn route(&self, query: &[f32], count: usize) -> Result<Vec<u32>>;

    /// Writes the index to a file and replaces an existing one atomically.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) with the path.
    fn save(&self, path: &Path) -> Result<()>;
    /// The bytes that [`NeighborIndex::save`] writes.
    ///
    /// # Errors
    /// Fails if threads or memory are not available.
    fn to_bytes(&self) -> Result<Vec<u8>>;
}

/// Searches one index, one query at a time.
pub trait NeighborSearcher {
    /// The nearest neighbours of one query.
    ///
    /// # Errors
    /// Fails for an invalid query or parameter.
    fn search(&mut self, query: &[f32], search: &Search) -> Result<Answer>;

    /// The answers for every combination of `probes` and `bins`, ordered by probes, then bins.
    ///
    /// # Errors
    /// Fails for an invalid query or parameter.
    fn search_grid(
        &mut self,
        query: &[f32],
        k: usize,
        probes: &[usize],
        bins: &[f64],
    ) -> Result<Vec<Answer>> {
        let settings = probes
            .iter()
            .flat_map(|p| bins.iter().map(move |b| (*p, *b)));
        settings
            .map(|(probes, bins)| self.search(query, &Search::new(k).probes(probes).bins(bins)))
            .collect()
    }
}
