//! Counters of an index since it was built.

use serde::{Deserialize, Serialize};

/// Counters of an index since it was built. They are stored in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BuildStats {
    /// Number of points that the index was built from.
    pub(crate) built: u64,
    /// Mean squared distance of these points from the means of their cells.
    pub(crate) radius: f64,
    /// Number of points added since the build.
    pub(crate) added: u64,
    /// Sum of the squared distances of the added points from the means of their cells at the time of insertion.
    pub(crate) added_radius: f64,
    /// Number of points removed since the build.
    pub(crate) removed: u64,
    /// Number of points added since recall targets were last measured or checked.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) unchecked: u64,
    /// Sum of the squared distances of the unchecked points from the means of their cells.
    #[serde(default, skip_serializing_if = "is_zero_f64")]
    pub(crate) unchecked_radius: f64,
    /// Number of points added since the last check that lie where no cell was fitted.
    #[serde(default, rename = "strangers", skip_serializing_if = "is_zero")]
    pub(crate) uncovered: u64,
    /// Length of the longest vector when targets were last measured or checked. Set for inner products, otherwise 0.
    #[serde(default, skip_serializing_if = "is_zero_f32")]
    pub(crate) longest: f32,
    /// How often the index was retrained because it had grown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) trainings: u64,
    /// Smallest identifier that was never assigned. 0 if only the identifiers of present points are known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) next_id: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero_f32(value: &f32) -> bool {
    *value == 0.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero_f64(value: &f64) -> bool {
    *value == 0.0
}

impl BuildStats {
    /// Records added points, given their squared distances from the means of their cells.
    pub(crate) fn note_added(&mut self, radii: &[f32]) {
        let sum: f64 = radii.iter().map(|radius| f64::from(*radius)).sum();
        self.added += radii.len() as u64;
        self.added_radius += sum;
        self.unchecked += radii.len() as u64;
        self.unchecked_radius += sum;
    }

    /// Whether the data drift: the points added since the last check lie farther from their cells than the points that
    /// the cells were fitted to.
    pub(crate) fn is_drifting(&self) -> bool {
        let limit = DRIFT_FACTOR * self.radius * self.unchecked as f64;
        self.built > 0 && self.unchecked >= MIN_ADDED_FOR_DRIFT && self.unchecked_radius > limit
    }
}

/// The data drift if the mean squared distance of the added points exceeds that of the fitted points by this factor.
const DRIFT_FACTOR: f64 = 1.3;
/// Number of added points below which drift is not judged.
const MIN_ADDED_FOR_DRIFT: u64 = 64;
