//! What the parts of a search cost: the one cost model of the index.
//!
//! Prices are nanoseconds on one core, fitted once to the times of single queries. Only their ratios matter. They are
//! prices of counted work, never of the clock, so that a calibration is the same on every machine.

use garlic_simd::CODE_LANES;

use crate::plan::Plan;
use crate::segment::{Index, Snapshot};
use garlic_core::SearchStats;

/// Bytes of codes that a cache of today holds.
pub(crate) const CACHED: usize = 16 << 20;

/// Nanoseconds for a multiply-add of a projection, a cell that is projected into, and a multiply-add that orders bins.
const PROJECTION_MADD: f64 = 0.01;
const CELL: f64 = 50.0;
const ORDERING_MADD: f64 = 0.14;
/// A code, and each of its bytes in a cache and in memory.
const CODE: f64 = 1.2;
const CODE_BYTE_CACHED: f64 = 0.035;
const CODE_BYTE: f64 = 0.06;
/// A vector that is read here or there, and each of its bytes.
const VECTOR: f64 = 70.0;
const VECTOR_BYTE: f64 = 0.012;
/// A vector that is read in order, and each of its bytes in a cache and in memory.
const NEXT_VECTOR: f64 = 3.0;
const NEXT_BYTE_CACHED: f64 = 0.02;
const NEXT_BYTE: f64 = 0.05;

/// Prices of the parts of a search in one index.
pub(crate) struct Prices {
    /// The vector and its identifier, wherever they lie.
    pub(crate) candidate: f64,
    /// Distances to all points, which are read in order.
    pub(crate) everything: f64,
    code: f64,
    cell: f64,
    bin: f64,
}

impl Prices {
    pub(crate) fn new(index: &Index) -> Self {
        let segment = &index.segment;
        let vector = index.segment.vectors.row_bytes(index.transform.dim()) as f64;
        let code = segment.encoded.block_bytes() as f64 / CODE_LANES as f64;
        // Codes that no cache holds come at the speed of memory; a vector nearly always does.
        let code_byte = match segment.encoded.blocks.len() {
            0..CACHED => CODE_BYTE_CACHED,
            _ => CODE_BYTE,
        };
        let (rank, wide) = (segment.cells.rank() as f64, segment.cells.dim() as f64);
        Self {
            candidate: VECTOR + vector * VECTOR_BYTE,
            everything: in_order(index.len(), vector),
            code: CODE + code * code_byte,
            cell: CELL + rank * wide * PROJECTION_MADD,
            bin: rank * ORDERING_MADD,
        }
    }

    pub(crate) fn probes(&self, cells: u64) -> f64 {
        cells as f64 * self.cell
    }

    pub(crate) fn bins(&self, bins: u64) -> f64 {
        bins as f64 * self.bin
    }

    pub(crate) fn codes(&self, codes: u64) -> f64 {
        codes as f64 * self.code
    }

    pub(crate) fn candidates(&self, candidates: u64) -> f64 {
        candidates as f64 * self.candidate
    }

    /// What some work costs.
    pub(crate) fn of(&self, work: &SearchStats) -> f64 {
        self.probes(work.cells_projected)
            + self.bins(work.bins_ordered)
            + self.codes(work.codes)
            + self.candidates(work.candidates)
    }
}

/// What it costs to read `count` vectors of `bytes` bytes in order.
fn in_order(count: usize, bytes: f64) -> f64 {
    let byte = match (count as f64 * bytes) as usize {
        0..CACHED => NEXT_BYTE_CACHED,
        _ => NEXT_BYTE,
    };
    count as f64 * (NEXT_VECTOR + bytes * byte)
}

impl Snapshot<'_> {
    /// What the distances to all points that count cost.
    pub(crate) fn price_of_all(&self) -> f64 {
        let vector = self
            .index
            .segment
            .vectors
            .row_bytes(self.index.transform.dim()) as f64;
        in_order(self.counted(), vector)
    }

    /// What a search costs when a share of the points counts.
    ///
    /// A plan does not say how many codes will be scanned; they take about twice as long as what comes before them. With
    /// fewer points that count, bins are left out later: the time grows with about the root of their share.
    pub(crate) fn price_of_search(&self, plan: &Plan, share: f64) -> f64 {
        if plan.all {
            return self.price_of_all() / share.max(f64::MIN_POSITIVE);
        }
        let prices = Prices::new(self.index);
        let cells = self.cells().max(1);
        let probes = plan.probes.min(cells);
        let bins = self.bins() * probes / cells;
        let before = prices.probes(probes as u64) + prices.bins(bins as u64);
        (3.0 * before + prices.candidates(plan.rerank as u64)) / share.sqrt()
    }
}
