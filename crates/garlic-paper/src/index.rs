//! The index: built once, searched by many.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use garlic_core::buffer::Buffer;
use garlic_core::config::Parameters;
use garlic_core::metric::Embedding;
use garlic_core::pool::Workers;
use garlic_core::vectors::StoredVectors;
use garlic_core::{
    Answer, Attachment, CellShapes, IdLookup, Memory, Metric, NeighborIndex, NeighborSearcher,
    RangeSearch, Result, Rows, Search, Transform,
};
use serde_json::{Value, json};

use crate::bins::Cell;
use crate::build::GaussianBuilder;
use crate::config::Config;
use crate::gaussians::{Assignment, Gaussians};
use crate::route::Router;
use crate::search::{ScratchPool, Searcher};
use crate::shapes::Shapes;
use crate::training::History;

/// A nearest-neighbour index of the published method; it contains the vectors.
///
/// Points are added and removed without a new training ([`GaussianIndex::add`]). A copy is cheap, shares everything and does
/// not change with the original.
#[derive(Clone, Debug)]
pub struct GaussianIndex {
    pub(crate) config: Config,
    pub(crate) embedding: Embedding,
    pub(crate) transform: Arc<Transform>,
    pub(crate) trained: Arc<Trained>,
    /// Original vectors in cell order: a row's place here is its *position*.
    pub(crate) vectors: StoredVectors,
    /// Identifier of each position.
    pub(crate) ids: Buffer<u64>,
    /// What the index carries for its points beside the vectors.
    pub(crate) attachment: Attachment,
    /// Positions of the identifiers, made when first asked for.
    pub(crate) lookup: Arc<OnceLock<IdLookup>>,
    pub(crate) scratch: ScratchPool,
    pub(crate) workers: Workers,
}

/// What training and binning have made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trained {
    pub(crate) model: Gaussians,
    pub(crate) cells: Vec<Cell>,
    pub(crate) coverage: Coverage,
    pub(crate) history: History,
    /// Derived from the model: what routing a query starts with.
    pub(crate) router: Router,
}

/// How well the cells cover the points.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Coverage {
    /// Share of the points that lie within tau of some cell.
    pub share: f64,
    /// Mean number of cells that a point belongs to.
    pub mean: f64,
}

impl Coverage {
    pub(crate) fn of(assignment: &Assignment) -> Self {
        let points = assignment.nearest.len().max(1) as f64;
        let covered = (0..assignment.nearest.len())
            .filter(|p| !assignment.covering(*p).is_empty())
            .count();
        Self {
            share: covered as f64 / points,
            mean: assignment.memberships().count() as f64 / points,
        }
    }
}

/// Equal indexes have the same files.
impl PartialEq for GaussianIndex {
    fn eq(&self, other: &Self) -> bool {
        self.config == other.config
            && self.embedding == other.embedding
            && self.transform == other.transform
            && self.trained == other.trained
            && self.vectors == other.vectors
            && self.ids == other.ids
            && self.attachment == other.attachment
    }
}

/// The parts that an index is made of.
pub(crate) struct Parts {
    pub(crate) config: Config,
    pub(crate) embedding: Embedding,
    pub(crate) transform: Transform,
    pub(crate) trained: Trained,
    pub(crate) vectors: StoredVectors,
    pub(crate) ids: Buffer<u64>,
}

impl From<Parts> for GaussianIndex {
    fn from(parts: Parts) -> Self {
        Self {
            config: parts.config,
            embedding: parts.embedding,
            transform: Arc::new(parts.transform),
            trained: Arc::new(parts.trained),
            vectors: parts.vectors,
            ids: parts.ids,
            attachment: Attachment::default(),
            scratch: ScratchPool::default(),
            lookup: Arc::default(),
            workers: Workers::default(),
        }
    }
}

impl GaussianIndex {
    pub(crate) fn lookup(&self) -> &IdLookup {
        self.lookup.get_or_init(|| IdLookup::new(&self.ids))
    }

    /// Starts building an index.
    pub fn builder<'a>() -> GaussianBuilder<'a> {
        GaussianBuilder::default()
    }

    /// Dimension of the vectors.
    pub fn dim(&self) -> usize {
        self.embedding.outer_dim(self.transform.dim())
    }

    /// What the index carries for its points beside the vectors, such as names and columns.
    pub fn attachment(&self) -> &Attachment {
        &self.attachment
    }

    /// Replaces the attachment.
    pub fn set_attachment(&mut self, attachment: Attachment) {
        self.attachment = attachment;
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether the index holds no vector, which never happens: an index is built from some, and the last ones cannot be
    /// removed.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// What "near" means.
    pub fn metric(&self) -> Metric {
        self.embedding.metric()
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.trained.cells.len()
    }

    /// The parameters it was built with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The change of coordinates between vectors and Gaussians.
    pub fn transform(&self) -> &Transform {
        &self.transform
    }

    /// The Gaussians, in the normalised and rotated space.
    pub fn model(&self) -> &Gaussians {
        &self.trained.model
    }

    /// Frame and bins of one cell. Panics when there is none of this number.
    pub fn cell(&self, cell: usize) -> &Cell {
        &self.trained.cells[cell]
    }

    /// How well the cells cover the points.
    pub fn coverage(&self) -> Coverage {
        self.trained.coverage
    }

    /// What happened during training, epoch by epoch; empty for given cells.
    pub fn history(&self) -> &History {
        &self.trained.history
    }

    /// Identifier of the point at `position`; none past the last.
    pub fn id_at(&self, position: usize) -> Option<u64> {
        self.ids.get(position).copied()
    }

    /// Bytes that the index takes, by part.
    pub fn memory(&self) -> Memory {
        fn bytes<T>(values: &[T]) -> u64 {
            size_of_val(values) as u64
        }
        let trained = &*self.trained;
        let mut memory = Memory::default();
        memory.vectors = self.vectors.bytes();
        memory.ids = bytes(&self.ids);
        memory.rotation = self.transform.bytes();
        memory.means = bytes(trained.model.means.as_slice());
        memory.factors = bytes(trained.model.factors.values()) + trained.router.bytes();
        for cell in &trained.cells {
            let parts = cell.bins.parts();
            memory.frames += bytes(&cell.frame.centre) + bytes(cell.frame.basis.as_slice());
            memory.bins += bytes(parts.occupied) + bytes(parts.offsets) + bytes(parts.members);
        }
        memory.summed()
    }

    /// Bytes of [`GaussianIndex::memory`] that lie in a mapped file: in memory only as far as they have been read, and given
    /// back when memory is short.
    pub fn mapped_bytes(&self) -> u64 {
        self.vectors.mapped_bytes() + self.ids.mapped_bytes()
    }
}

impl NeighborIndex for GaussianIndex {
    fn dim(&self) -> usize {
        self.dim()
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn metric(&self) -> Metric {
        self.metric()
    }

    fn cells(&self) -> usize {
        self.cells()
    }

    fn cell_sizes(&self) -> Vec<usize> {
        let cells = self.trained.cells.iter();
        cells.map(|cell| cell.bins.members().len()).collect()
    }

    fn stored_as(&self) -> &'static str {
        self.vectors.name()
    }

    fn memory(&self) -> Memory {
        self.memory()
    }

    fn mapped_bytes(&self) -> u64 {
        self.mapped_bytes()
    }

    fn preset(&self) -> &'static str {
        "paper"
    }

    fn parameters(&self) -> Vec<(&'static str, Value)> {
        self.config.values()
    }

    fn details(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("coverage", json!(self.coverage())),
            ("epochs", json!(self.history().epochs.len())),
        ]
    }

    fn ids(&self) -> Vec<u64> {
        self.ids.to_vec()
    }

    fn get(&self, id: u64) -> Option<Vec<f32>> {
        let position = self.lookup().position(id)? as usize;
        let mut vector = Vec::new();
        self.vectors
            .read(self.transform.dim(), position, &mut vector);
        vector.truncate(self.dim());
        Some(vector)
    }

    fn contains(&self, id: u64) -> bool {
        self.lookup().position(id).is_some()
    }

    fn next_id(&self) -> u64 {
        let largest = self.lookup().largest();
        largest.map_or(0, |largest| largest.saturating_add(1))
    }

    fn attachment(&self) -> &Attachment {
        self.attachment()
    }

    fn transform(&self) -> &Transform {
        &self.transform
    }

    fn embedding(&self) -> &Embedding {
        &self.embedding
    }

    fn shapes(&self) -> Box<dyn CellShapes + '_> {
        Box::new(Shapes {
            model: self.model(),
            tau: self.config.loss.tau,
            rank: self.config.bins.rank,
        })
    }

    fn search(&self, query: &[f32], search: &Search) -> Result<Answer> {
        self.search(query, search)
    }

    fn search_batch(&self, queries: Rows<'_>, search: &Search) -> Result<Vec<Answer>> {
        self.search_batch(queries, search)
    }

    fn range_batch(&self, queries: Rows<'_>, range: &RangeSearch) -> Result<Vec<Answer>> {
        self.range_batch(queries, range)
    }

    fn searcher(&self) -> Box<dyn NeighborSearcher + '_> {
        Box::new(self.searcher())
    }

    fn takes_recall(&self) -> bool {
        false
    }

    fn route(&self, query: &[f32], count: usize) -> Result<Vec<u32>> {
        self.route(query, count)
    }

    fn save(&self, path: &Path) -> Result<()> {
        self.save(path)
    }

    fn to_bytes(&self) -> Result<Vec<u8>> {
        self.to_bytes()
    }
}

impl NeighborSearcher for Searcher<'_> {
    fn search(&mut self, query: &[f32], search: &Search) -> Result<Answer> {
        self.search(query, search)
    }

    fn search_grid(
        &mut self,
        query: &[f32],
        k: usize,
        probes: &[usize],
        bins: &[f64],
    ) -> Result<Vec<Answer>> {
        self.search_grid(query, k, probes, bins)
    }
}
