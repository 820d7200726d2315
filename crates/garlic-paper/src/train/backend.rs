//! The three bulk operations of training, behind one small interface.
//!
//! Everything that touches all points of a batch goes through here; whoever implements it (the CPU now, an
//! accelerator later) decides how the work is laid out, and must give the same result for any number of
//! workers.

use garlic_linalg::Rows;

use crate::error::Result;
use crate::model::{Assignment, Gaussians};

/// Weights and radii of the losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// Mahalanobis radius of a cell.
    pub tau: f32,
    /// Weight of the divergence loss.
    pub divergence: f64,
    /// Weight of the coverage loss.
    pub coverage: f64,
    /// Weight of the anchor loss.
    pub anchor: f64,
    /// Weight of the shape term inside the anchor loss.
    pub shape: f64,
}

/// Values of the three losses, unweighted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// Mean distance of the points outside every cell to the nearest cell's border.
    pub divergence: f64,
    /// One minus the mean confidence of the points in their best covering cell.
    pub coverage: f64,
    /// Mean squared distance of the cells' means and shapes from those of their points.
    pub anchor: f64,
}

/// Derivatives of the weighted loss, laid out like the parameters of [`Gaussians`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gradient {
    /// One row a cell.
    pub means: Vec<f32>,
    /// One factor a cell.
    pub factors: Vec<f32>,
}

/// Counts and means of the points whose nearest cell is each cell, summed in f64.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// Points nearest to each cell, ascending.
    pub(crate) nearest: crate::model::Lists,
    /// Mean of those points, one row a cell; zero where there is none.
    pub means: Vec<f64>,
}

impl Statistics {
    /// Points nearest to a cell.
    pub fn count(&self, cell: usize) -> usize {
        self.nearest.get(cell).len()
    }
}

/// The bulk operations.
pub trait Backend: Sync {
    /// Nearest and covering cells of every point.
    fn assign(&self, points: Rows<'_>, model: &Gaussians, tau: f32) -> Result<Assignment>;

    /// Which points each cell is nearest to, and their mean.
    fn statistics(
        &self,
        points: Rows<'_>,
        cells: usize,
        assignment: &Assignment,
    ) -> Result<Statistics>;

    /// Losses of a batch; their derivatives replace what is in `gradient`.
    ///
    /// The buffer is the caller's because it is as large as the model: a new one for every step would cost
    /// more than the arithmetic of many cells.
    fn gradient(
        &self,
        points: Rows<'_>,
        model: &Gaussians,
        assignment: &Assignment,
        statistics: &Statistics,
        weights: &Weights,
        gradient: &mut Gradient,
    ) -> Result<Losses>;
}
