//! What every kind of index can do.

use std::fmt;
use std::path::Path;

use garlic_linalg::Rows;
use serde_json::Value;

use crate::error::Result;
use crate::memory::Memory;
use crate::metric::{Embedding, Metric};
use crate::query::{Answer, RangeSearch, Search};
use crate::shapes::CellShapes;
use crate::transform::Transform;

/// A nearest-neighbour index of any kind: what a program needs that does not care which.
pub trait NeighborIndex: fmt::Debug + Send + Sync {
    /// Dimension of the vectors.
    fn dim(&self) -> usize;
    /// Number of vectors.
    fn len(&self) -> usize;
    /// Whether the index holds no vector.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// What "near" means.
    fn metric(&self) -> Metric;
    /// Number of cells.
    fn cells(&self) -> usize;
    /// Number of points of every cell; a point that belongs to several cells counts in each.
    fn cell_sizes(&self) -> Vec<usize>;
    /// The name of the type that coordinates are stored in: `f32`, `f16` or `u8`.
    fn stored_as(&self) -> &'static str;
    /// Bytes by part.
    fn memory(&self) -> Memory;
    /// Bytes of these that lie in a mapped file.
    fn mapped_bytes(&self) -> u64;
    /// The preset that it was built with: `default` or `paper`.
    fn preset(&self) -> &'static str;
    /// The parameters that it was built with, in the order of their table.
    fn parameters(&self) -> Vec<(&'static str, Value)>;
    /// What else there is to say about this kind of index, by name.
    fn details(&self) -> Vec<(&'static str, Value)>;

    /// Identifiers of all points, in no particular order.
    fn ids(&self) -> Vec<u64>;
    /// The vector of an identifier, as it is stored: rounded in half precision, of unit length with cosine distances.
    fn get(&self, id: u64) -> Option<Vec<f32>>;
    /// Whether there is a point of this identifier.
    fn contains(&self, id: u64) -> bool {
        self.get(id).is_some()
    }
    /// An identifier that no point has, nor any above it.
    fn next_id(&self) -> u64;
    /// The change of coordinates between the stored vectors and the space that cells live in.
    fn transform(&self) -> &Transform;
    /// The way from the user's vectors to the stored ones.
    fn embedding(&self) -> &Embedding;
    /// The cells as Gaussians.
    fn shapes(&self) -> Box<dyn CellShapes + '_>;

    /// The nearest neighbours of one query.
    ///
    /// # Errors
    /// A query or a parameter that is not allowed.
    fn search(&self, query: &[f32], search: &Search) -> Result<Answer>;
    /// The nearest neighbours of every query, in order, on [`Search::threads`] threads.
    ///
    /// # Errors
    /// A query or a parameter that is not allowed.
    fn search_batch(&self, queries: Rows<'_>, search: &Search) -> Result<Vec<Answer>>;
    /// All points within a radius of every query, in order, on [`RangeSearch::threads`] threads.
    ///
    /// # Errors
    /// A query or a parameter that is not allowed.
    fn range_batch(&self, queries: Rows<'_>, range: &RangeSearch) -> Result<Vec<Answer>>;
    /// A searcher with buffers of its own: the fastest way to run many single queries on one thread.
    fn searcher(&self) -> Box<dyn NeighborSearcher + '_>;
    /// Whether a search can aim at a recall.
    fn takes_recall(&self) -> bool;
    /// The `count` best cells of a query, best first.
    ///
    /// # Errors
    /// A query that is not allowed.
    fn route(&self, query: &[f32], count: usize) -> Result<Vec<u32>>;

    /// Writes the index to a file, replacing what is there all at once.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) with the path.
    fn save(&self, path: &Path) -> Result<()>;
    /// The bytes that [`NeighborIndex::save`] writes.
    ///
    /// # Errors
    /// When threads or memory are missing.
    fn to_bytes(&self) -> Result<Vec<u8>>;
}

/// Searches one index, query after query.
pub trait NeighborSearcher {
    /// The nearest neighbours of one query.
    ///
    /// # Errors
    /// A query or a parameter that is not allowed.
    fn search(&mut self, query: &[f32], search: &Search) -> Result<Answer>;

    /// The answers of every combination of `probes` and `bins`, ordered by probes, then bins.
    ///
    /// # Errors
    /// A query or a parameter that is not allowed.
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
