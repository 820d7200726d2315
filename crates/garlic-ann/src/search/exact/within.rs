//! All points that may lie within a radius, and few others: bins are skipped by their bounds, points by their codes.

use super::Most;
use super::bounds::{QueryInCell, Rounding, Sizes};
use crate::bins::Bounds;
use crate::quantize::{probe, zero_code};
use crate::search::query::QueryScratch;
use crate::segment::{BinView, Snapshot};
use garlic_core::{Cancel, SearchStats};
use garlic_simd::CodeQuery;

/// One search for the points within a radius.
pub(super) struct Within<'a> {
    pub(super) view: &'a Snapshot<'a>,
    /// Squared.
    pub(super) radius: f32,
    pub(super) most: Most,
    pub(super) rounding: Rounding,
    pub(super) cancel: Cancel,
}

/// A bin that could not be skipped.
#[derive(Clone, Copy)]
struct KeptBin {
    /// The number of its cell, the nearest first.
    cell: u32,
    bin: u32,
    /// Whether it stands for the points that have joined it.
    joined: bool,
}

/// What bounds have left, and what the query is in every cell.
#[derive(Default)]
struct Kept {
    bins: Vec<KeptBin>,
    points: usize,
    queries: Vec<QueryInCell>,
    /// Coordinates in the frames.
    coordinates: Vec<f32>,
}

impl Snapshot<'_> {
    /// Leaves every point that may lie within a squared distance of `radius` in `scratch`, and few others; false
    /// when they, or those in bins that may have them, are more than `most`. In a cancelled [`Cancel::scope`] it ends
    /// early, and the caller checks that.
    pub(in crate::search) fn within(
        &self,
        query: &[f32],
        radius: f32,
        most: Most,
        scratch: &mut QueryScratch,
        work: &mut SearchStats,
    ) -> bool {
        let rounding = Rounding::new(self.sizes());
        let search = Within {
            view: self,
            radius,
            most,
            rounding,
            cancel: Cancel::current(),
        };
        search.run(query, scratch, work)
    }

    pub(super) fn sizes(&self) -> Sizes {
        Sizes {
            dim: self.index.transform.dim(),
            wide: self.segment.cells.dim(),
            rank: self.segment.cells.rank(),
        }
    }
}

impl Within<'_> {
    /// Leaves the points in `scratch`; false when there are too many.
    pub(super) fn run(
        &self,
        query: &[f32],
        scratch: &mut QueryScratch,
        work: &mut SearchStats,
    ) -> bool {
        let kept = self.bound_bins(query, scratch, work);
        if kept.points > self.most.points || !self.scan_codes(&kept, scratch, work) {
            return false;
        }
        if !self.view.admits_all() {
            self.view.keep_admitted(0, &mut scratch.found);
        }
        true
    }

    /// Bounds every bin from below; ends early when more points are left than may be.
    fn bound_bins(
        &self,
        query: &[f32],
        scratch: &mut QueryScratch,
        work: &mut SearchStats,
    ) -> Kept {
        let view = self.view;
        let Sizes { dim, wide, rank } = view.sizes();
        let outside = view.rotate(query, scratch);
        view.nearest_cells(view.cells(), scratch);
        let slack = self.rounding.slack(scratch.whole, self.radius);
        let mut kept = Kept::default();
        let mut distances = Vec::new();
        let mut bins = 0;
        for number in 0..scratch.cells.len() {
            let base = view.project(number, outside, scratch);
            let cell = scratch.cells[number];
            let seen = slack.query_in_cell(cell.estimate, base, &scratch.y);
            let (centres, first) = view.centres(cell.at as usize);
            distances.resize(centres.len() / rank, 0.0);
            garlic_simd::l2_squared_rows(centres, &scratch.y, &mut distances);
            for (bin, distance) in (first..).zip(&distances) {
                let mut keep = |joined: bool, len: usize| {
                    let cell = number as u32;
                    kept.bins.push(KeptBin { cell, bin, joined });
                    kept.points += len;
                };
                if seen.may_hold(*distance, &view.bounds(bin)) {
                    keep(false, view.bin(bin).len);
                }
                if let Some((joined, bounds)) = view.joined(cell.at, bin)
                    && seen.may_hold(*distance, bounds)
                {
                    keep(true, joined.len);
                }
            }
            bins += distances.len();
            kept.queries.push(seen);
            kept.coordinates.extend_from_slice(&scratch.y);
            // The nearest cells come first, so that this shows early.
            if kept.points > self.most.points || self.cancel.is_cancelled() {
                break;
            }
        }
        let projected = kept.queries.len();
        work.cells_scored += view.cells() as u64;
        work.routing_madds += (view.cells() * wide) as u64;
        work.cells_projected += projected as u64;
        work.projection_madds += (projected * rank * wide) as u64;
        work.bins_ordered += bins as u64;
        work.ordering_madds += (bins * rank) as u64;
        work.rotation_madds += (dim * (wide + 1)) as u64;
        kept
    }

    /// Scans the codes of the bins that are left; false when more points are found than may be.
    fn scan_codes(&self, kept: &Kept, scratch: &mut QueryScratch, work: &mut SearchStats) -> bool {
        let view = self.view;
        let encoded = &view.segment.encoded;
        let rank = view.segment.cells.rank();
        scratch.found.clear();
        let mut last = None;
        let mut weights = vec![0i8; encoded.width];
        let mut scales = Default::default();
        for bin in &kept.bins {
            let number = bin.cell as usize;
            let seen = &kept.queries[number];
            let cell = scratch.cells[number].at;
            if last != Some(number) {
                let y = &kept.coordinates[number * rank..][..rank];
                let steps = &view.steps(cell as usize)[..rank];
                let zero = zero_code(encoded.bits);
                scales = probe(y, steps, zero, seen.base, &mut weights);
                last = Some(number);
            }
            let code_query = CodeQuery {
                weights: &weights,
                scale: scales.scale,
                offset: scales.offset,
            };
            let (points, bounds) = self.points(cell, *bin);
            let limit = seen.limit(&bounds, &code_query, encoded.bits);
            points.scan(encoded.bits, &code_query, limit, &mut scratch.found);
            work.codes += points.len as u64;
            if scratch.found.len() > self.most.found || self.cancel.is_cancelled() {
                break;
            }
        }
        work.code_madds = work.codes * rank as u64;
        scratch.found.len() <= self.most.found
    }

    /// The points of a bin of a cell, or those that have joined it, and their bounds.
    fn points(&self, cell: u32, kept: KeptBin) -> (BinView<'_>, Bounds) {
        let KeptBin { bin, joined, .. } = kept;
        match self.view.joined(cell, bin).filter(|_| joined) {
            Some((joined, bounds)) => (joined, *bounds),
            None => (self.view.bin(bin), self.view.bounds(bin)),
        }
    }
}
