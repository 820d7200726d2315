//! What has happened to an index since it was built.

use serde::{Deserialize, Serialize};

/// What has happened to an index since it was built; kept in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BuildStats {
    /// Points that it was built from.
    pub(crate) built: u64,
    /// Their mean squared distance from the means of their cells.
    pub(crate) radius: f64,
    /// Points that have been added since.
    pub(crate) added: u64,
    /// Sum of the squared distances of those from the means of their cells, when they came.
    pub(crate) added_radius: f64,
    /// Points that have been removed since.
    pub(crate) removed: u64,
    /// Points that have been added since targets were last measured or checked, and the sum of their squared distances from
    /// the means of their cells.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) unchecked: u64,
    /// See [`BuildStats::unchecked`].
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub(crate) unchecked_radius: f64,
    /// Points that have come since targets were last checked from places that no cell was fitted to.
    #[serde(default, rename = "strangers", skip_serializing_if = "is_zero")]
    pub(crate) uncovered: u64,
    /// Inner products: the length of the longest vector when targets were measured or checked; else 0.
    #[serde(default, skip_serializing_if = "is_none")]
    pub(crate) longest: f32,
    /// How often the index has been trained anew because it had grown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) trainings: u64,
    /// Identifiers below this have been given to points, some of which may be gone; 0 when only those that are there count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) next_id: u64,
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

impl BuildStats {
    /// Notes points that have been added, by their squared distances from the means of their cells.
    pub(crate) fn note_added(&mut self, radii: &[f32]) {
        let sum: f64 = radii.iter().map(|radius| f64::from(*radius)).sum();
        self.added += radii.len() as u64;
        self.added_radius += sum;
        self.unchecked += radii.len() as u64;
        self.unchecked_radius += sum;
    }

    /// Whether the points that came since targets were last checked lie farther from their cells than those that the cells
    /// were fitted to: the data move.
    pub(crate) fn is_drifting(&self) -> bool {
        let limit = DRIFTING * self.radius * self.unchecked as f64;
        self.built > 0 && self.unchecked >= LEAST_ADDED && self.unchecked_radius > limit
    }
}

/// Data are moving when the mean squared distance of points that came is this many times that of the points that cells were
/// fitted to,
const DRIFTING: f64 = 1.3;
/// of so many points at least.
const LEAST_ADDED: u64 = 64;
