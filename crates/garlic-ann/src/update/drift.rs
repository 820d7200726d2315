//! How far the data have moved since the index was built.

use crate::partition::default_cells;
use crate::segment::BuildStats;
use crate::segment::Index;
use serde::Serialize;

/// A rebuild pays when the mean squared distance of all points from their cells has grown by more than this share
/// because of those that came.
const GROWN: f64 = 0.05;
/// So does a number of cells that a build would not have chosen by this factor.
const MISFIT: f64 = 2.0;

/// How far the data have moved since the index was built.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Drift {
    /// Points that the index was built from.
    pub built: u64,
    /// Points added since, those of updates included.
    pub added: u64,
    /// Points removed since, those of updates included.
    pub removed: u64,
    /// Mean squared distance of the points added from the means of their cells, when they came, as a multiple of
    /// that of the points it was built from: near 1 while the data stay what they were.
    pub spread: f64,
    /// Cells that have points.
    pub cells: usize,
    /// Cells that a build from today's points would make.
    pub cells_of_a_build: usize,
    /// How often the index has trained itself anew because it had grown.
    pub trainings: u64,
    /// How many times fewer misses than it was asked for a search aims at, because targets were found to be missed as the
    /// index changed; 1 while they are met.
    pub correction: f64,
    /// Whether recall targets are met by reading everything for now, because nothing less was found to meet them since the
    /// index changed. It ends with the next training.
    pub reads_everything: bool,
    /// Whether a rebuild would pay: the data are no longer those that the rotation, the number of cells and the
    /// calibration were fitted to.
    pub rebuild: bool,
}

impl Index {
    /// How far the data have moved since the index was built, and whether a rebuild would pay.
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
        let view = self.snapshot();
        let cells = (0..view.cells()).filter(|c| view.points_in(*c) > 0).count();
        let wanted = match self.config.partition.cells {
            0 => default_cells(self.len()),
            _ => cells,
        };
        let misfit = wanted.max(cells) as f64 / wanted.min(cells).max(1) as f64;
        // A few strangers among many do not matter.
        let share = added as f64 / (built + added).max(1) as f64;
        let strange = (spread - 1.0) * share > GROWN;
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
            rebuild: strange || misfit > MISFIT || calibration.stale,
        }
    }
}
