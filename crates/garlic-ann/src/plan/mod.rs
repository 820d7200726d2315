//! Plans: the parameters of a search, and the calibration table that recall targets choose them from.
//!
//! In: a number of neighbours, a recall target and the number of points. Out: a [`Plan`]. `tune` fills the table,
//! `search` executes the plan.

mod calibration;

pub use calibration::{Calibration, GraphDecision, Setting};

/// Up to this many points, a search with a recall target reads all of them. So few points do not suffice to measure a
/// target, and reading them is fast.
pub const EXHAUSTIVE_POINTS: usize = 4096;

/// Number of neighbours of the search whose costs are in a [`GraphDecision`].
pub(crate) const GRAPH_COST_K: f64 = 10.0;

/// All parameters of a search except the query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plan {
    /// Number of neighbours to search for.
    pub(crate) k: usize,
    /// Number of neighbours to report. Some metrics need to search for more.
    pub(crate) wanted: usize,
    pub(crate) probes: usize,
    /// Share of the bins of the visited cells that may be scanned.
    pub(crate) bins: f64,
    /// Upper limit of the number of exact distances.
    pub(crate) rerank: usize,
    /// Bins are pruned if their estimate exceeds that of the worst candidate by this factor.
    pub(crate) bin_prune_ratio: f32,
    /// Candidates are pruned if their estimate exceeds the k-th distance by this factor.
    pub(crate) rerank_prune_ratio: f32,
    /// If present, candidates come from the neighbour graph. Points outside the segment, and what the graph does not
    /// answer, take cells and bins.
    pub(crate) graph: Option<GraphPlan>,
    /// Whether cells are found with the coarse quantizer, as they were during calibration.
    pub(crate) coarse_routing: bool,
    pub(crate) exact: bool,
    /// Whether to visit all cells if few points of the nearest cells are allowed.
    pub(crate) widens: bool,
    /// Whether to compute the distances to all admitted points, because that is cheaper than a search or because
    /// nothing less meets the target.
    pub(crate) all: bool,
    /// Whether reading all admitted points is cheaper than visiting all cells.
    pub(crate) all_if_sparse: bool,
    pub(crate) threads: usize,
}

/// The parameters of a search with the neighbour graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GraphPlan {
    /// Candidates are dropped if their estimate exceeds that of the k-th by this factor.
    pub(crate) expand_ratio: f32,
    /// Upper limit of the number of candidates.
    pub(crate) candidates: usize,
    /// Candidates are pruned if their estimate exceeds the k-th distance by this factor.
    pub(crate) rerank_prune_ratio: f32,
    /// Whether the target takes everything without the graph.
    pub(crate) all_otherwise: bool,
}

impl Plan {
    /// Computes the distances to all points.
    pub(crate) fn reading_everything(k: usize) -> Self {
        Self {
            all: true,
            ..Self::everything(k)
        }
    }

    /// Visits every cell, bin and point.
    pub(crate) fn everything(k: usize) -> Self {
        Self {
            k,
            wanted: k,
            probes: usize::MAX,
            bins: 1.0,
            rerank: usize::MAX,
            bin_prune_ratio: f32::INFINITY,
            rerank_prune_ratio: f32::INFINITY,
            graph: None,
            coarse_routing: false,
            exact: false,
            widens: false,
            all: false,
            all_if_sparse: false,
            threads: 1,
        }
    }
}
