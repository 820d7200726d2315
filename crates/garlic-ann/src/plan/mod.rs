//! What a search does, and the table that recall targets choose it from.
//!
//! In: a number of neighbours, a recall target and the number of points. Out: a [`Plan`]. `tune` fills the table, `search`
//! follows the plan.

mod calibration;

pub use calibration::{Calibration, Setting};

/// Up to this many points a recall target is met by reading all of them: there are too few to measure a target on, and
/// it takes a fraction of a millisecond.
pub const EXHAUSTIVE_POINTS: usize = 4096;

/// Everything a search needs to know beside its query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plan {
    /// Neighbours to look for.
    pub(crate) k: usize,
    /// Neighbours to report; more are looked for where the metric asks for it.
    pub(crate) wanted: usize,
    pub(crate) probes: usize,
    /// Share of the visited cells' bins.
    pub(crate) bins: f64,
    /// Most exact distances.
    pub(crate) rerank: usize,
    /// Bins estimated farther than this many times the worst candidate so far are left out.
    pub(crate) bin_prune_ratio: f32,
    /// Candidates estimated farther than this many times the k-th distance so far are left out.
    pub(crate) rerank_prune_ratio: f32,
    /// Cells may be found by way of groups: that is what the rest was measured with.
    pub(crate) grouped: bool,
    pub(crate) exact: bool,
    /// All cells are visited where few points of the nearest are allowed.
    pub(crate) widens: bool,
    /// Distances to all points that count are computed: that is cheaper than a search, or nothing less meets the target.
    pub(crate) all: bool,
    /// They are cheaper than visiting all cells.
    pub(crate) all_if_sparse: bool,
    pub(crate) threads: usize,
}

impl Plan {
    /// Distances to all points.
    pub(crate) fn reading_everything(k: usize) -> Self {
        Self {
            all: true,
            ..Self::everything(k)
        }
    }

    /// Every cell, every bin, every point.
    pub(crate) fn everything(k: usize) -> Self {
        Self {
            k,
            wanted: k,
            probes: usize::MAX,
            bins: 1.0,
            rerank: usize::MAX,
            bin_prune_ratio: f32::INFINITY,
            rerank_prune_ratio: f32::INFINITY,
            grouped: false,
            exact: false,
            widens: false,
            all: false,
            all_if_sparse: false,
            threads: 1,
        }
    }
}
