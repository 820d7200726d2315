//! The cells of an index as Gaussians, for diagnosis and pictures.

use garlic_linalg::Rows;

use crate::error::Result;

/// Means and covariances of all cells, in the space of the index's transform.
pub trait CellShapes: Sync {
    /// Number of cells.
    fn len(&self) -> usize;
    /// Whether there are no cells.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Dimension of the space.
    fn dim(&self) -> usize;
    /// Axes that a search uses of a cell.
    fn rank(&self) -> usize;
    /// Mean of a cell.
    fn mean(&self, cell: usize) -> &[f32];
    /// A vector whose dot products are those of `v` under the inverse covariance of the cell: its square is the squared
    /// Mahalanobis length.
    fn whiten(&self, cell: usize, v: &[f64]) -> Vec<f64>;
    /// Lower triangle of the covariance of a cell, row-major; what is above the diagonal is zero.
    fn covariance(&self, cell: usize) -> Vec<f64>;
    /// Eigenvalues of the covariance of a cell, descending, and none below zero.
    fn eigenvalues(&self, cell: usize) -> Vec<f64>;
    /// Multiply-adds of one Mahalanobis distance.
    fn distance_madds(&self) -> f64;
    /// Multiply-adds of the covariance of a cell and its eigenvalues.
    fn spectrum_madds(&self) -> f64;
    /// The radius within which the method says that a cell covers a point, if it says so.
    fn tau(&self) -> Option<f64>;
    /// How near the nearest cell of every point is and how many cells have it within `radius` and within `inner`. Runs in
    /// rayon's current pool.
    ///
    /// # Errors
    /// When cancelled.
    fn cover(&self, points: Rows<'_>, radius: f64, inner: f64) -> Result<Vec<Covered>>;
}

/// The cells around one point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Covered {
    /// Mahalanobis distance to the nearest cell.
    pub nearest: f32,
    /// Number of cells within the radius.
    pub within: usize,
    /// Number of cells within the inner radius.
    pub within_inner: usize,
}

/// Eigenvalues in descending order; rounding can push a tiny variance below zero, and a ratio with it.
pub fn descending(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(|a, b| b.total_cmp(a));
    let floor = values.first().copied().unwrap_or(0.0) * f64::EPSILON;
    values.iter_mut().for_each(|v| *v = v.max(floor));
    values
}
