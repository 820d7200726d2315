//! The index.

use super::{BuildStats, Delta, Segment, Snapshot, UncoveredPoints};
use crate::config::Config;
use crate::graph::{Graph, Nodes};
use crate::partition::CellShape;
use crate::plan::Calibration;
use std::sync::Arc;

use garlic_core::metric::Embedding;
use garlic_core::pool::{ObjectPool, Workers};
use garlic_core::vectors::StoredVectors;
use garlic_core::{Attachment, Error, Metric, Result, Transform};

/// A nearest-neighbour index. It contains the vectors.
///
/// Cloning is cheap. Two clones share all data until one of them changes, so a clone is a snapshot.
#[derive(Clone, Debug)]
pub struct Index {
    pub(crate) config: Config,
    pub(crate) embedding: Embedding,
    pub(crate) transform: Arc<Transform>,
    /// Cells, bins, codes and vectors as they were last encoded. Immutable.
    pub(crate) segment: Arc<Segment>,
    /// Changes since the segment was encoded.
    pub(crate) delta: Delta,
    /// Measured settings for recall targets.
    pub(crate) calibration: Arc<Calibration>,
    pub(crate) build_stats: BuildStats,
    /// Points that lie where no cell was fitted. Every search reads them.
    pub(crate) uncovered: UncoveredPoints,
    /// What the index carries for its points beside the vectors.
    pub(crate) attachment: Attachment,
    /// Scratch buffers that searches borrow.
    pub(crate) scratch: ObjectPool,
    pub(crate) workers: Workers,
}

impl Index {
    /// Creates an index without changes.
    pub(crate) fn new(
        config: Config,
        embedding: Embedding,
        transform: impl Into<Arc<Transform>>,
        segment: Segment,
        calibration: Calibration,
        build_stats: BuildStats,
    ) -> Self {
        Self {
            config,
            embedding,
            transform: transform.into(),
            segment: Arc::new(segment),
            delta: Delta::default(),
            calibration: Arc::new(calibration),
            build_stats,
            uncovered: UncoveredPoints::default(),
            attachment: Attachment::default(),
            scratch: ObjectPool::default(),
            workers: Workers::default(),
        }
    }

    /// What the index carries for its points beside the vectors, such as names and columns. Changes of the index keep
    /// it. The index does not look into it.
    pub fn attachment(&self) -> &Attachment {
        &self.attachment
    }

    /// Replaces the attachment.
    pub fn set_attachment(&mut self, attachment: Attachment) {
        self.attachment = attachment;
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        let positions = self.segment.ids.len();
        match self.delta.changes() {
            Some(changes) => changes.live(),
            None if self.spills() => positions.min(self.build_stats.built as usize),
            None => positions,
        }
    }

    /// Whether a point may be stored in two cells, at two positions.
    pub(crate) fn spills(&self) -> bool {
        self.config.partition.spill > 0.0
    }

    /// The first position of each point in the segment.
    pub(crate) fn first_positions(&self) -> Vec<u32> {
        let (ids, positions) = (&self.segment.ids, 0..self.segment.ids.len() as u32);
        if !self.spills() {
            return positions.collect();
        }
        let lookup = self.segment.lookup();
        let is_first = |p: &u32| lookup.position(ids[*p as usize]) == Some(*p);
        positions.filter(is_first).collect()
    }

    /// Fails if the index is read-only: points are stored in two cells, or vectors stay on the disk.
    pub(crate) fn check_mutable(&self) -> Result<()> {
        if matches!(self.segment.vectors, StoredVectors::File(_)) {
            return Err(Error::OnDisk);
        }
        match self.spills() {
            true => Err(Error::Spilled),
            false => Ok(()),
        }
    }

    /// Whether the index has no vectors.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Identifier of the point at `position` when the index was last encoded, or `None` past the end.
    #[doc(hidden)]
    pub fn id_at(&self, position: usize) -> Option<u64> {
        self.segment.ids.get(position).copied()
    }

    /// Dimension of the vectors.
    pub fn dim(&self) -> usize {
        self.embedding.outer_dim(self.transform.dim())
    }

    /// The metric that the index ranks by.
    pub fn metric(&self) -> Metric {
        self.embedding.metric()
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.snapshot().cells()
    }

    /// The current state of the index, for searches and updates.
    pub(crate) fn snapshot(&self) -> Snapshot<'_> {
        Snapshot::new(self)
    }

    /// Fails for a mapped file whose bins do not cover exactly the stored points.
    pub(crate) fn check_layout(&self) -> Result<()> {
        match self.segment.encoded.starts().last() {
            Some(end) if end.first as usize == self.segment.ids.len() => Ok(()),
            _ => Err(Error::Damaged),
        }
    }

    /// Number of bins.
    pub fn bins(&self) -> usize {
        self.snapshot().bins()
    }

    /// Bits of a coordinate in a point's code.
    pub fn code_bits(&self) -> usize {
        self.segment.code_bits()
    }

    /// Number of neighbours of a point in the neighbour graph, or `None` if there is no graph.
    pub fn graph_degree(&self) -> Option<usize> {
        self.segment.graph.as_ref().map(|graph| graph.degree)
    }

    /// The index with another neighbour graph.
    pub(crate) fn with_graph(&self, graph: Arc<Graph>) -> Self {
        let mut index = self.clone();
        Arc::make_mut(&mut index.segment).graph = Some(graph);
        index
    }

    /// The points of a new graph: `vectors` at some positions of the segment, and the cells of these.
    pub(crate) fn nodes<'a>(&self, vectors: &'a StoredVectors, cell_of: &'a [u32]) -> Nodes<'a> {
        Nodes {
            vectors,
            dim: self.transform.dim(),
            cell_of,
            cells: self.segment.cells.len(),
            seed: self.config.seed,
        }
    }

    /// The shape of a cell, or `None` past the last cell.
    pub fn cell_shape(&self, cell: usize) -> Option<CellShape<'_>> {
        let snapshot = self.snapshot();
        (cell < snapshot.cells()).then(|| snapshot.frame(cell).shape)
    }

    /// The parameters that the index was built with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The settings that calibration measured for recall targets.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// The transform from vectors to the space of the cells.
    pub fn transform(&self) -> &Transform {
        &self.transform
    }

    /// The element type of the stored vectors: `f32`, `f16`, `int8` or `u8`.
    pub fn stored_as(&self) -> &'static str {
        self.segment.vectors.name()
    }
}
