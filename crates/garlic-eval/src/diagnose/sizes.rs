//! Points in the cells.

use garlic_core::NeighborIndex;
use serde::Serialize;

use super::stats::{Histogram, Summary};

/// How many points the cells hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CellSizes {
    /// In a few numbers.
    pub summary: Summary,
    /// Share of all points that the largest cell holds.
    pub largest_share: f64,
    /// Cells by size.
    pub histogram: Histogram,
    /// Points of every cell; a point that several cells cover counts in each.
    pub sizes: Vec<usize>,
}

impl CellSizes {
    /// Sizes of the cells of an index, as it was laid out.
    pub(crate) fn of(index: &dyn NeighborIndex) -> Self {
        let sizes = index.cell_sizes();
        let summary = Summary::of(sizes.iter().map(|s| *s as f64));
        Self {
            largest_share: summary.max / index.len().max(1) as f64,
            histogram: Histogram::of_counts(&sizes, (2 * sizes.len().isqrt()).clamp(8, 40)),
            summary,
            sizes,
        }
    }
}
