//! Counts the work of a query, including every multiply-add.

use std::ops::AddAssign;

/// Work of one query, or the sum over several.
///
/// `*_madds` are multiply-adds. [`SearchStats::distance_equivalents`] divides their sum by the dimension, so that one
/// unit is one exact Euclidean distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct SearchStats {
    /// Multiply-adds to normalise and rotate the query.
    pub rotation_madds: u64,
    /// Cells and cell clusters whose distance to the query was computed or bounded.
    pub cells_scored: u64,
    /// Multiply-adds to choose the cells.
    pub routing_madds: u64,
    /// Cells whose frame the query was projected into.
    pub cells_projected: u64,
    /// Multiply-adds of those projections.
    pub projection_madds: u64,
    /// Bins whose distance to the query was computed.
    pub bins_ordered: u64,
    /// Multiply-adds to order the bins.
    pub ordering_madds: u64,
    /// Points whose distance was estimated from their code.
    pub codes: u64,
    /// Multiply-adds of those estimates.
    pub code_madds: u64,
    /// Points of the neighbour graph that were expanded.
    pub hops: u64,
    /// Edges of the neighbour graph that were read.
    pub edges: u64,
    /// Distinct points whose exact distance was computed.
    pub candidates: u64,
    /// Multiply-adds of those distances.
    pub exact_madds: u64,
}

impl SearchStats {
    /// All multiply-adds.
    pub fn total_madds(&self) -> u64 {
        self.rotation_madds
            + self.routing_madds
            + self.projection_madds
            + self.ordering_madds
            + self.code_madds
            + self.exact_madds
    }

    /// All multiply-adds in units of one Euclidean distance of dimension `dim`.
    pub fn distance_equivalents(&self, dim: usize) -> f64 {
        self.total_madds() as f64 / dim.max(1) as f64
    }
}

impl AddAssign for SearchStats {
    fn add_assign(&mut self, other: Self) {
        self.rotation_madds += other.rotation_madds;
        self.cells_scored += other.cells_scored;
        self.routing_madds += other.routing_madds;
        self.cells_projected += other.cells_projected;
        self.projection_madds += other.projection_madds;
        self.bins_ordered += other.bins_ordered;
        self.ordering_madds += other.ordering_madds;
        self.codes += other.codes;
        self.code_madds += other.code_madds;
        self.hops += other.hops;
        self.edges += other.edges;
        self.candidates += other.candidates;
        self.exact_madds += other.exact_madds;
    }
}
