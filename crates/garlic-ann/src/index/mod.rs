//! The index: built once, searched by many.

mod build;
mod memory;
mod progress;

pub(crate) use build::thread_pool;
pub use build::{BuildReport, Builder, Seconds};
pub use memory::Memory;
pub use progress::{Progress, Stage};

use crate::cell::Cell;
use crate::config::Config;
use crate::model::Gaussians;
use crate::search::{Router, ScratchPool};
use crate::space::Space;
use crate::train::History;

/// A nearest-neighbour index; it contains the vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    pub(crate) config: Config,
    pub(crate) space: Space,
    pub(crate) model: Gaussians,
    pub(crate) cells: Vec<Cell>,
    /// Original vectors, row-major, in cell order: a row's place here is its *position*.
    pub(crate) vectors: Vec<f32>,
    /// Identifier of each position.
    pub(crate) ids: Vec<u64>,
    pub(crate) coverage: Coverage,
    pub(crate) history: History,
    /// Derived from the model: what routing a query starts with.
    pub(crate) router: Router,
    pub(crate) scratch: ScratchPool,
}

/// How well the cells cover the points.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Coverage {
    /// Share of the points that lie within tau of some cell.
    pub share: f64,
    /// Mean number of cells that a point belongs to.
    pub mean: f64,
}

impl Index {
    /// Starts building an index.
    pub fn builder<'a>() -> Builder<'a> {
        Builder::default()
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether the index holds no vector; never true for an index that was built.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Dimension of the vectors.
    pub fn dim(&self) -> usize {
        self.space.dim()
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.cells.len()
    }

    /// The parameters it was built with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// How well the cells cover the points.
    pub fn coverage(&self) -> Coverage {
        self.coverage
    }

    /// What happened during training, epoch by epoch.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The Gaussians, in the normalised and rotated space.
    pub fn model(&self) -> &Gaussians {
        &self.model
    }

    /// The change of coordinates between vectors and model.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Frame and bins of one cell.
    pub fn cell(&self, cell: usize) -> &Cell {
        &self.cells[cell]
    }
}
