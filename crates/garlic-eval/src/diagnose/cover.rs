//! How near the nearest cell of a point is, and how many cells hold it.

use garlic_core::CellShapes;
use garlic_linalg::Rows;

use crate::error::Result;

/// Most multiply-adds, counted as if nothing were pruned; fewer points are taken when this would be passed.
const MOST_WORK: f64 = 8e11;
/// Points that are taken whatever they cost.
const LEAST_POINTS: usize = 500;

/// Cells around some points.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cover {
    /// Mahalanobis distance to the nearest cell.
    pub(super) nearest: Vec<f32>,
    /// Number of cells within the radius.
    pub(super) count: Vec<usize>,
    /// Number of cells within the tau of the configuration.
    pub(super) within_tau: Vec<usize>,
}

/// How many of `points` can be covered in a bounded time.
pub(super) fn affordable(shapes: &dyn CellShapes, points: usize) -> usize {
    let most = MOST_WORK / (shapes.distance_madds() * shapes.len().max(1) as f64);
    points.min((most as usize).max(LEAST_POINTS))
}

/// Nearest and covering cells of every point; `points` are in the space of the cells. Runs in rayon's current pool.
pub(super) fn cover(
    points: Rows<'_>,
    shapes: &dyn CellShapes,
    radius: f64,
    tau: f64,
) -> Result<Cover> {
    let found = shapes.cover(points, radius, tau)?;
    Ok(Cover {
        nearest: found.iter().map(|c| c.nearest).collect(),
        count: found.iter().map(|c| c.within).collect(),
        within_tau: found.iter().map(|c| c.within_inner).collect(),
    })
}
