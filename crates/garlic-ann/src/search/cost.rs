//! The cost model of searches.
//!
//! Costs are nanoseconds on one core, fitted once to the times of single queries. Only their ratios matter. The model
//! prices counted work, never measured time, so a calibration is the same on every machine.

use garlic_simd::CODE_LANES;

use crate::plan::Plan;
use crate::segment::{Index, Snapshot};
use garlic_core::SearchStats;

/// Size of a typical last-level cache in bytes.
pub(crate) const CACHED: usize = 16 << 20;

/// Cost of a multiply-add of a projection, of a probed cell, and of a multiply-add that orders bins.
const PROJECTION_MADD_NS: f64 = 0.01;
const CELL_NS: f64 = 50.0;
const ORDERING_MADD_NS: f64 = 0.14;
/// Cost of a code, and of each of its bytes in cache and in memory.
const CODE_NS: f64 = 1.2;
const CODE_BYTE_CACHED_NS: f64 = 0.035;
const CODE_BYTE_NS: f64 = 0.06;
/// Cost of a random access to a vector, and of each of its bytes.
const VECTOR_NS: f64 = 70.0;
const VECTOR_BYTE_NS: f64 = 0.012;
/// Costs of a search in the neighbour graph: of a multiply-add that prepares the query, of an expanded point, and of
/// each cache line of a code.
const PREPARE_MADD_NS: f64 = 0.008;
const HOP_NS: f64 = 150.0;
const CODE_LINE_NS: f64 = 12.0;
/// Share of the codes whose rests are read.
const REST_SHARE: f64 = 0.25;
/// Cost of a vector in a sequential scan, and of each of its bytes in cache and in memory.
const SEQUENTIAL_VECTOR_NS: f64 = 3.0;
const SEQUENTIAL_BYTE_CACHED_NS: f64 = 0.02;
const SEQUENTIAL_BYTE_NS: f64 = 0.05;

/// Costs of the parts of a search in one index.
pub(crate) struct CostModel {
    /// Cost of a candidate: random access to its vector and identifier.
    pub(crate) candidate: f64,
    /// Cost of a sequential scan of all vectors.
    pub(crate) everything: f64,
    code: f64,
    cell: f64,
    bin: f64,
    /// Costs of a search, of a hop and of a code in the neighbour graph.
    graph: [f64; 3],
}

impl CostModel {
    pub(crate) fn new(index: &Index) -> Self {
        let segment = &index.segment;
        let vector = index.segment.vectors.row_bytes(index.transform.dim()) as f64;
        let code = segment.encoded.block_bytes() as f64 / CODE_LANES as f64;
        // Large code arrays are read from memory. Single vectors nearly always are.
        let code_byte = match segment.encoded.blocks.len() {
            0..CACHED => CODE_BYTE_CACHED_NS,
            _ => CODE_BYTE_NS,
        };
        let graph = segment.graph.as_ref().map_or([0.0; 3], |graph| {
            let prepare = graph.codes.rotation_madds() as f64 * PREPARE_MADD_NS;
            let [head, rest] = graph.codes.quantizer.lines().map(|lines| lines as f64);
            [prepare, HOP_NS, (head + REST_SHARE * rest) * CODE_LINE_NS]
        });
        let (rank, wide) = (segment.cells.rank() as f64, segment.cells.dim() as f64);
        Self {
            candidate: VECTOR_NS + vector * VECTOR_BYTE_NS,
            everything: sequential_cost(index.len(), vector),
            code: CODE_NS + code * code_byte,
            cell: CELL_NS + rank * wide * PROJECTION_MADD_NS,
            bin: rank * ORDERING_MADD_NS,
            graph,
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

    /// Cost of the counted work of `searches` searches.
    pub(crate) fn of(&self, work: &SearchStats, searches: usize) -> f64 {
        if work.hops > 0 {
            let [search, hop, code] = self.graph;
            return searches as f64 * search
                + work.hops as f64 * hop
                + work.codes as f64 * code
                + self.candidates(work.candidates);
        }
        self.probes(work.cells_projected)
            + self.bins(work.bins_ordered)
            + self.codes(work.codes)
            + self.candidates(work.candidates)
    }
}

/// Cost of a sequential scan of `count` vectors of `bytes` bytes.
fn sequential_cost(count: usize, bytes: f64) -> f64 {
    let byte = match (count as f64 * bytes) as usize {
        0..CACHED => SEQUENTIAL_BYTE_CACHED_NS,
        _ => SEQUENTIAL_BYTE_NS,
    };
    count as f64 * (SEQUENTIAL_VECTOR_NS + bytes * byte)
}

impl Snapshot<'_> {
    /// Cost of the distances to all admitted points.
    pub(crate) fn cost_of_all(&self) -> f64 {
        let vector = self
            .index
            .segment
            .vectors
            .row_bytes(self.index.transform.dim()) as f64;
        sequential_cost(self.counted(), vector)
    }

    /// Estimated cost of a search if a share of the points is admitted.
    ///
    /// The number of codes that a plan scans is unknown. Scanning takes about twice as long as routing and ordering.
    /// If fewer points are admitted, pruning starts later, and the time grows with about the inverse root of the
    /// share.
    pub(crate) fn cost_of_search(&self, plan: &Plan, share: f64) -> f64 {
        if plan.all {
            return self.cost_of_all() / share.max(f64::MIN_POSITIVE);
        }
        let cost_model = CostModel::new(self.index);
        let cells = self.cells().max(1);
        let probes = plan.probes.min(cells);
        let bins = self.bins() * probes / cells;
        let before = cost_model.probes(probes as u64) + cost_model.bins(bins as u64);
        (3.0 * before + cost_model.candidates(plan.rerank as u64)) / share.sqrt()
    }
}
