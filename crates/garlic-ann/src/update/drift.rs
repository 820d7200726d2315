//! Reports how far the data have moved since the index was built.

use crate::partition::default_cells;
use crate::segment::BuildStats;
use crate::segment::Index;
use serde::Serialize;

/// A rebuild pays off if the added points increased the mean squared distance of all points from their cells by more
/// than this share.
const MAX_SPREAD_GROWTH: f64 = 0.05;
/// A rebuild pays off if the number of cells differs from that of a new build by more than this factor.
const MAX_CELL_COUNT_RATIO: f64 = 2.0;

/// How far the data have moved since the index was built.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Drift {
    /// Number of points that the index was built from.
    pub built: u64,
    /// Number of points added since, including those of updates.
    pub added: u64,
    /// Number of points removed since, including those of updates.
    pub removed: u64,
    /// Mean squared distance of the added points from the means of their cells at the time of insertion, divided by
    /// that of the points the index was built from. It is near 1 while the data do not change.
    pub spread: f64,
    /// Number of cells that have points.
    pub cells: usize,
    /// Number of cells that a build from the current points would make.
    pub cells_of_a_build: usize,
    /// How often the index was retrained because it had grown.
    pub trainings: u64,
    /// Factor by which searches reduce the allowed misses because a check found targets missed. 1 while targets are
    /// met.
    pub correction: f64,
    /// Whether searches read everything because no cheaper setting was found to meet the targets. The next training
    /// ends this state.
    pub reads_everything: bool,
    /// Whether a rebuild would pay off: the data no longer match the rotation, the number of cells and the calibration.
    pub rebuild: bool,
}

impl Index {
    /// Reports how far the data have moved since the index was built, and whether a rebuild would pay off.
    pub fn drift(&self) -> Drift {
        let BuildStats {
            built,
            radius,
            added,
            added_radius,
            removed,
            trainings,
            ..
        } = self.build_stats;
        let calibration = self.calibration();
        let spread = match added > 0 && radius > 0.0 {
            true => added_radius / added as f64 / radius,
            false => 1.0,
        };
        let snapshot = self.snapshot();
        let cells = (0..snapshot.cells())
            .filter(|c| snapshot.points_in(*c) > 0)
            .count();
        let wanted = match self.config.partition.cells {
            0 => default_cells(self.len()),
            _ => cells,
        };
        let misfit = wanted.max(cells) as f64 / wanted.min(cells).max(1) as f64;
        // A few uncovered points among many do not matter.
        let share = added as f64 / (built + added).max(1) as f64;
        let strange = (spread - 1.0) * share > MAX_SPREAD_GROWTH;
        Drift {
            built,
            added,
            removed,
            spread,
            cells,
            cells_of_a_build: wanted,
            trainings,
            correction: calibration.correction,
            reads_everything: calibration.stale,
            rebuild: strange || misfit > MAX_CELL_COUNT_RATIO || calibration.stale,
        }
    }
}
