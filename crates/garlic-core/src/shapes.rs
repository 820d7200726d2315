//! The cells of an index as Gaussians, for diagnostics and plots.

use garlic_linalg::Rows;

use crate::error::Result;

/// Means and covariances of all cells, in the transformed space.
pub trait CellShapes: Sync {
    /// Number of cells.
    fn len(&self) -> usize;
    /// Whether there are no cells.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Dimension of the space.
    fn dim(&self) -> usize;
    /// Number of axes of a cell that a search uses.
    fn rank(&self) -> usize;
    /// Mean of a cell.
    fn mean(&self, cell: usize) -> &[f32];
    /// Whitens a vector with the inverse covariance of the cell. The squared length of the result is the squared
    /// Mahalanobis length of `v`.
    fn whiten(&self, cell: usize, v: &[f64]) -> Vec<f64>;
    /// Lower triangle of the covariance of a cell, row-major. The values above the diagonal are zero.
    fn covariance(&self, cell: usize) -> Vec<f64>;
    /// Eigenvalues of the covariance of a cell, descending and not negative.
    fn eigenvalues(&self, cell: usize) -> Vec<f64>;
    /// Multiply-adds of one Mahalanobis distance.
    fn distance_madds(&self) -> f64;
    /// Multiply-adds of the covariance of a cell and its eigenvalues.
    fn spectrum_madds(&self) -> f64;
    /// The radius within which a cell covers a point, if the method defines one.
    fn tau(&self) -> Option<f64>;
    /// For every point, the distance of the nearest cell and the number of cells within `radius` and within `inner`.
    /// Runs in the current rayon pool.
    ///
    /// # Errors
    /// Fails if cancelled.
    fn cover(&self, points: Rows<'_>, radius: f64, inner: f64) -> Result<Vec<Covered>>;
}

/// The cells around a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Covered {
    /// Mahalanobis distance to the nearest cell.
    pub nearest: f32,
    /// Number of cells within the radius.
    pub within: usize,
    /// Number of cells within the inner radius.
    pub within_inner: usize,
}

/// Sorts eigenvalues in descending order and clamps tiny negative ones, which result from rounding.
pub fn descending(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(|a, b| b.total_cmp(a));
    let floor = values.first().copied().unwrap_or(0.0) * f64::EPSILON;
    values.iter_mut().for_each(|v| *v = v.max(floor));
    values
}
