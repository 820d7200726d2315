//! What the published method keeps of its cells.

use crate::cell::Cell;
use crate::model::Gaussians;
use crate::search::Router;
use crate::train::History;

/// Trained Gaussians with hyperspherical bins.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
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

impl Published {
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

    /// Frame and bins of one cell.
    pub fn cell(&self, cell: usize) -> &Cell {
        &self.cells[cell]
    }
}
