//! The index: built once, searched by many.

mod build;
mod calibrate;
mod calibration;
mod memory;
mod progress;
mod published;
mod standin;
pub(crate) mod stored;
mod tempered;

pub use build::{BuildReport, Builder, Seconds};
pub(crate) use build::{LARGEST_VALUE, thread_pool};
pub use calibration::{Calibration, Setting};
pub use memory::Memory;
pub use progress::{Progress, Stage};
pub use published::{Coverage, Published};
pub(crate) use stored::Stored;
pub use tempered::Fast;

use crate::config::Config;
use crate::search::ScratchPool;
use crate::space::Space;

/// A nearest-neighbour index; it contains the vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    pub(crate) config: Config,
    pub(crate) space: Space,
    pub(crate) body: Body,
    /// Original vectors in cell order: a row's place here is its *position*.
    pub(crate) vectors: Stored,
    /// Identifier of each position.
    pub(crate) ids: Vec<u64>,
    pub(crate) scratch: ScratchPool,
}

/// What the cells are made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    /// Trained Gaussians with hyperspherical bins.
    Published(Box<Published>),
    /// Tempered cells with learned bins and codes.
    Tempered(Box<Fast>),
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
        match &self.body {
            Body::Published(body) => body.cells.len(),
            Body::Tempered(body) => body.model.len(),
        }
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
    pub fn tempered(&self) -> Option<&Fast> {
        match &self.body {
            Body::Published(_) => None,
            Body::Tempered(body) => Some(body),
        }
    }
}
