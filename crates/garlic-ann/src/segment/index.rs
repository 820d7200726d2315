//! The index: built once, searched by many.

use super::{BuildStats, Delta, Segment, Snapshot, UncoveredPoints};
use crate::config::Config;
use crate::plan::Calibration;
use std::sync::Arc;

use garlic_core::metric::Embedding;
use garlic_core::pool::{ObjectPool, Workers};
use garlic_core::{Error, Metric, Result, Transform};

/// A nearest-neighbour index; it contains the vectors.
///
/// A copy is cheap and shares everything until one of the two changes: it is a snapshot.
#[derive(Clone, Debug)]
pub struct Index {
    pub(crate) config: Config,
    pub(crate) embedding: Embedding,
    pub(crate) transform: Arc<Transform>,
    /// Cells, bins, codes and vectors as they were last encoded; never changed.
    pub(crate) segment: Arc<Segment>,
    /// What has changed since.
    pub(crate) delta: Delta,
    /// What recall targets take.
    pub(crate) calibration: Arc<Calibration>,
    pub(crate) build_stats: BuildStats,
    /// Points that came from where no cell was fitted; every search reads them.
    pub(crate) uncovered: UncoveredPoints,
    /// Buffers that searches borrow.
    pub(crate) scratch: ObjectPool,
    pub(crate) workers: Workers,
}

impl Index {
    /// An index without changes.
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
            scratch: ObjectPool::default(),
            workers: Workers::default(),
        }
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        let positions = self.segment.ids.len();
        match self.delta.changes() {
            Some(changes) => changes.living(),
            None if self.spills() => positions.min(self.build_stats.built as usize),
            None => positions,
        }
    }

    /// Whether points may lie in two cells, at two positions.
    pub(crate) fn spills(&self) -> bool {
        self.config.partition.spill > 0.0
    }

    /// Positions of the segment, of each point the first.
    pub(crate) fn first_positions(&self) -> Vec<u32> {
        let (ids, positions) = (&self.segment.ids, 0..self.segment.ids.len() as u32);
        if !self.spills() {
            return positions.collect();
        }
        let lookup = self.segment.lookup();
        let is_first = |p: &u32| lookup.position(ids[*p as usize]) == Some(*p);
        positions.filter(is_first).collect()
    }

    /// Fails for an index that stays as it was built.
    pub(crate) fn check_changes(&self) -> Result<()> {
        match self.spills() {
            true => Err(Error::Spilled),
            false => Ok(()),
        }
    }

    /// Whether the index holds no vector: all have been removed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Identifier of the point at `position` when the index was last encoded; none past the last.
    #[doc(hidden)]
    pub fn id_at(&self, position: usize) -> Option<u64> {
        self.segment.ids.get(position).copied()
    }

    /// Dimension of the vectors.
    pub fn dim(&self) -> usize {
        self.embedding.outer_dim(self.transform.dim())
    }

    /// What "near" means to this index.
    pub fn metric(&self) -> Metric {
        self.embedding.metric()
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.snapshot().cells()
    }

    /// The index as searches and changes see it.
    pub(crate) fn snapshot(&self) -> Snapshot<'_> {
        Snapshot::new(self)
    }

    /// Fails for a mapped file that would answer with nothing, or whose bins have more or fewer points than it.
    pub(crate) fn check_order(&self) -> Result<()> {
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

    /// The shape of a cell; none past the last.
    pub fn cell_shape(&self, cell: usize) -> Option<CellShape<'_>> {
        let snapshot = self.snapshot();
        (cell < snapshot.cells()).then(|| {
            let frame = snapshot.frame(cell);
            CellShape {
                mean: snapshot.mean(cell),
                axes: frame.axes,
                variances: frame.variances,
                residual_variance: frame.residual,
            }
        })
    }

    /// The parameters it was built with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What recall targets take, as far as it was measured.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// The change of coordinates between vectors and cells.
    pub fn transform(&self) -> &Transform {
        &self.transform
    }

    /// The name of the type that coordinates are stored in: `f32`, `f16` or `u8`.
    pub fn stored_as(&self) -> &'static str {
        self.segment.vectors.name()
    }
}

/// A cell in the space of the index's transform.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CellShape<'a> {
    /// Mean of its points.
    pub mean: &'a [f32],
    /// Principal axes, one behind the other; zeros where its points span fewer.
    pub axes: &'a [f32],
    /// Variance along each axis.
    pub variances: &'a [f32],
    /// Variance in every other direction.
    pub residual_variance: f32,
}
