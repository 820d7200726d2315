//! The index: built once, searched by many.

mod build;
mod calibration;
mod exhaustive;
mod groups;
mod grow;
mod memory;
pub(crate) mod overlay;
mod progress;
mod published;
pub(crate) mod stored;
mod strangers;
mod tempered;
mod tune;
mod workers;

pub use build::{BuildReport, Builder, Seconds};
pub(crate) use build::{LARGEST_VALUE, thread_pool};
pub use calibration::{Calibration, Setting};
pub use exhaustive::{Cause, EXHAUSTIVE_POINTS, Exhaustive};
pub(crate) use grow::Due;
pub use memory::Memory;
pub(crate) use overlay::{BinView, Lookup, Overlay, OverlayStamp, View};
pub use overlay::{Drift, Ledger};
pub use progress::{Progress, Stage};
pub use published::{Coverage, Published};
pub(crate) use stored::Stored;
pub(crate) use strangers::Strangers;
pub use tempered::{LearnedBin, TemperedBody};
pub(crate) use tune::CACHED;
pub(crate) use workers::Workers;
#[cfg(test)]
pub(crate) use workers::tests::without_threads;

use std::sync::{Arc, OnceLock};

use crate::buffer::Buffer;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::metric::Embedding;
use crate::search::ScratchPool;
use crate::space::Space;

/// A nearest-neighbour index; it contains the vectors.
///
/// A copy is cheap and shares everything until one of the two changes: it is a snapshot.
#[derive(Clone, Debug)]
pub struct Index {
    pub(crate) config: Config,
    pub(crate) embedding: Embedding,
    pub(crate) space: Arc<Space>,
    pub(crate) body: Body,
    /// Original vectors in cell order: a row's place here is its *position*.
    pub(crate) vectors: Stored,
    /// Identifier of each position.
    pub(crate) ids: Buffer<u64>,
    /// What has changed since all this was laid out.
    pub(crate) overlay: Overlay,
    pub(crate) ledger: Ledger,
    /// Points that came from where no cell was fitted; every search reads them.
    pub(crate) strangers: Strangers,
    /// Positions of the identifiers, made when first asked for.
    pub(crate) lookup: Arc<OnceLock<Lookup>>,
    pub(crate) scratch: ScratchPool,
    pub(crate) workers: Workers,
}

/// What the cells are made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    /// Trained Gaussians with hyperspherical bins.
    Published(Arc<Published>),
    /// Tempered cells with learned bins and codes.
    Tempered(Arc<TemperedBody>),
}

/// Equal indexes have the same files.
impl PartialEq for Index {
    fn eq(&self, other: &Self) -> bool {
        if self.overlay.changes().is_some() || other.overlay.changes().is_some() {
            return self.to_bytes() == other.to_bytes();
        }
        self.config == other.config
            && self.embedding == other.embedding
            && self.space == other.space
            && self.body == other.body
            && self.vectors == other.vectors
            && self.ids == other.ids
            && self.ledger == other.ledger
    }
}

impl Index {
    /// Starts building an index.
    pub fn builder<'a>() -> Builder<'a> {
        Builder::default()
    }

    /// An index without changes.
    pub(crate) fn new(
        config: Config,
        embedding: Embedding,
        space: impl Into<Arc<Space>>,
        body: Body,
        vectors: Stored,
        ids: Buffer<u64>,
        ledger: Ledger,
    ) -> Self {
        Self {
            config,
            embedding,
            space: space.into(),
            body,
            vectors,
            ids,
            overlay: Overlay::default(),
            ledger,
            strangers: Strangers::default(),
            lookup: Arc::default(),
            scratch: ScratchPool::default(),
            workers: Workers::default(),
        }
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        let changes = self.overlay.changes();
        match changes {
            Some(changes) => changes.living(),
            None if self.spills() => self.ids.len().min(self.ledger.built as usize),
            None => self.ids.len(),
        }
    }

    /// Whether points may lie in two cells, at two positions.
    pub(crate) fn spills(&self) -> bool {
        self.config.spill > 0.0 && matches!(self.body, Body::Tempered(_))
    }

    /// Positions of the base, of each point the first.
    pub(crate) fn first_positions(&self) -> Vec<u32> {
        let positions = 0..self.ids.len() as u32;
        if !self.spills() {
            return positions.collect();
        }
        let is_first = |p: &u32| self.lookup().position(self.ids[*p as usize]) == Some(*p);
        positions.filter(is_first).collect()
    }

    /// The cells of an index that can be changed; fails for one that stays as it was built.
    pub(crate) fn changing(&self) -> Result<&Arc<TemperedBody>> {
        match &self.body {
            Body::Published(_) => Err(Error::Unchanging),
            Body::Tempered(_) if self.spills() => Err(Error::Spilled),
            Body::Tempered(body) => Ok(body),
        }
    }

    /// Whether the index holds no vector: all have been removed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Identifier of the point that was laid out at `position` when the index was built; none past the last.
    pub fn id_at(&self, position: usize) -> Option<u64> {
        self.ids.get(position).copied()
    }

    /// Dimension of the vectors.
    pub fn dim(&self) -> usize {
        self.embedding.outer_dim(self.space.dim())
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        match &self.body {
            Body::Published(body) => body.cells.len(),
            Body::Tempered(body) => View::new(self, body).cells(),
        }
    }

    /// The index as searches and changes of tempered cells see it; none for one built by the published method.
    pub(crate) fn view(&self) -> Option<View<'_>> {
        match &self.body {
            Body::Tempered(body) => Some(View::new(self, body)),
            Body::Published(_) => None,
        }
    }

    /// Fails for a mapped file that would answer with nothing, or whose bins have more or fewer points than it.
    pub(crate) fn check_order(&self) -> Result<()> {
        let Body::Tempered(body) = &self.body else {
            return Ok(());
        };
        match body.learned.starts().last() {
            Some(end) if end.first as usize == self.ids.len() => Ok(()),
            _ => Err(Error::Damaged),
        }
    }

    /// Positions of the base's identifiers.
    pub(crate) fn lookup(&self) -> &Lookup {
        self.lookup.get_or_init(|| Lookup::new(&self.ids))
    }

    /// The parameters it was built with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The change of coordinates between vectors and model.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The name of the type that coordinates are stored in: `f32`, `f16` or `u8`.
    pub fn stored_as(&self) -> &'static str {
        self.vectors.name()
    }

    /// Gaussians, cells and history, if the index was built by the published method.
    pub fn published(&self) -> Option<&Published> {
        match &self.body {
            Body::Published(body) => Some(body),
            Body::Tempered(_) => None,
        }
    }

    /// Cells, bins and calibration, if the index is made of tempered cells.
    pub fn tempered(&self) -> Option<&TemperedBody> {
        match &self.body {
            Body::Published(_) => None,
            Body::Tempered(body) => Some(body),
        }
    }
}
