//! How far the data have moved since the index was built.

use serde::{Deserialize, Serialize};

use crate::index::Index;
use crate::train::fit::default_cells;

/// A rebuild pays when the mean squared distance of all points from their cells has grown by more than this share
/// because of those that came.
const GROWN: f64 = 0.05;
/// So does a number of cells that a build would not have chosen by this factor.
const MISFIT: f64 = 2.0;

/// What has happened to an index since it was built; kept in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// Points that it was built from.
    pub built: u64,
    /// Their mean squared distance from the means of their cells.
    pub radius: f64,
    /// Points that have been added since.
    pub added: u64,
    /// Sum of the squared distances of those from the means of their cells, when they came.
    pub added_radius: f64,
    /// Points that have been removed since.
    pub removed: u64,
    /// Points that have been added since targets were last measured or checked, and the sum of their squared distances from
    /// the means of their cells.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unchecked: u64,
    #[serde(default, skip_serializing_if = "is_nothing")]
    /// See [`Ledger::unchecked`].
    pub unchecked_radius: f64,
    /// Points that have come since targets were last checked from places that no cell was fitted to.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub strangers: u64,
    /// Inner products: the length of the longest vector when targets were measured or checked; else 0.
    #[serde(default, skip_serializing_if = "is_none")]
    pub longest: f32,
    /// How often the index has been trained anew because it had grown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trainings: u64,
    /// Identifiers below this have been given to points, some of which may be gone; 0 when only those that are there count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub next_id: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_none(value: &f32) -> bool {
    *value == 0.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_nothing(value: &f64) -> bool {
    *value == 0.0
}

impl Ledger {
    /// Notes points that have been added, by their squared distances from the means of their cells.
    pub(super) fn note_added(&mut self, radii: &[f32]) {
        let sum: f64 = radii.iter().map(|radius| f64::from(*radius)).sum();
        self.added += radii.len() as u64;
        self.added_radius += sum;
        self.unchecked += radii.len() as u64;
        self.unchecked_radius += sum;
    }

    /// Whether the points that came since targets were last checked lie farther from their cells than those that the cells
    /// were fitted to: the data move.
    pub(super) fn is_drifting(&self) -> bool {
        let limit = DRIFTING * self.radius * self.unchecked as f64;
        self.built > 0 && self.unchecked >= LEAST_ADDED && self.unchecked_radius > limit
    }
}

/// Data are moving when the mean squared distance of points that came is this many times that of the points that cells were
/// fitted to,
const DRIFTING: f64 = 1.3;
/// of so many points at least.
const LEAST_ADDED: u64 = 64;

/// How far the data have moved since the index was built.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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
        let Ledger {
            built,
            radius,
            added,
            added_radius,
            removed,
            trainings,
            ..
        } = self.ledger;
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
