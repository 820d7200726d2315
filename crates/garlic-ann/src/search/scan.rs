//! Bins in the order of their estimated distances, and the codes of their points.

use super::query::{AHEAD, QueryScratch, reach, shrink};
use crate::plan::Plan;
use crate::quantize::probe;
use crate::quantize::{BIN_BITS, zero_code};
use crate::segment::{BinView, Snapshot};
use garlic_core::SearchStats;
use garlic_simd::{CodeQuery, Estimate};

/// Steps of the rough order of bins and candidates, the multiple of their mean size that is much, and how many of the first
/// bins are in exact order.
const STEPS: usize = 64;
const CROWDED: usize = 4;
const EXACT_BINS: usize = 32;

/// Orders `list` from near to far: the first `exact` of them exactly, and all others by the step of the range that an
/// estimate falls into.
///
/// What follows stops at the first estimate that is too far, most often among the first. Where few estimates are far from all
/// others, one step holds most of the list and is put in order as well.
fn arrange(list: &mut [Estimate], exact: usize, spare: &mut Vec<Estimate>) {
    if list.len() <= STEPS / 2 {
        list.sort_unstable_by_key(Estimate::key);
        return;
    }
    let (low, high) = list.iter().fold((f32::INFINITY, 0.0f32), |(low, high), e| {
        (low.min(e.estimate), high.max(e.estimate))
    });
    let factor = (STEPS - 1) as f32 / (high - low).max(f32::MIN_POSITIVE);
    let step = |e: &Estimate| ((e.estimate - low) * factor) as usize & (STEPS - 1);
    let mut starts = [0u32; STEPS + 1];
    for e in list.iter() {
        starts[step(e) + 1] += 1;
    }
    for i in 0..STEPS {
        starts[i + 1] += starts[i];
    }
    spare.clear();
    spare.extend_from_slice(list);
    for e in spare.iter() {
        let at = &mut starts[step(e)];
        list[*at as usize] = *e;
        *at += 1;
    }
    // Each start has moved to the end of its step.
    let crowded = (CROWDED * list.len() / STEPS).max(CROWDED);
    let mut first = 0;
    for end in starts.iter().take(STEPS) {
        let end = *end as usize;
        if first < exact || end - first > crowded {
            list[first..end].sort_unstable_by_key(Estimate::key);
        }
        first = end;
    }
}

impl Snapshot<'_> {
    /// Projects the query into a probed cell and appends the bins that are estimated nearer than `limit`.
    pub(crate) fn score_bins(
        &self,
        number: usize,
        outside: f32,
        limit: f32,
        scratch: &mut QueryScratch,
    ) {
        let encoded = &self.segment.encoded;
        let (rank, width) = (self.segment.cells.rank(), encoded.width);
        let base = self.project(number, outside, scratch);
        let at = scratch.cells[number].at as usize;
        scratch.probe_of[at] = number as u32;
        let weights = &mut scratch.weights[number * width..][..width];
        let steps = &self.steps(at)[..rank];
        let points = probe(&scratch.y, steps, zero_code(encoded.bits), base, weights);
        scratch.probes.push(points);
        let (bins, weights) = if encoded.bits == BIN_BITS {
            (points, &*weights)
        } else {
            let steps = &self.bin_steps(at)[..rank];
            let weights = &mut scratch.bin_weights;
            let bins = probe(&scratch.y, steps, zero_code(BIN_BITS), base, weights);
            (bins, &weights[..])
        };
        let query = CodeQuery {
            weights,
            scale: bins.scale,
            offset: bins.offset,
        };
        match self.run(at) {
            Some((run, first)) => {
                let (codes, found) = (&*run.bin_blocks, &mut scratch.bins);
                garlic_simd::scan_codes(BIN_BITS, codes, &query, limit, first, found);
            }
            None => encoded.scan_bins(at, &query, limit, &mut scratch.bins),
        }
    }

    /// Scans the codes of `bins` in their order, as long as they are within `bin_prune_ratio` of the limit; returns the
    /// new limit, the worst of the `keep` best candidates so far.
    pub(in crate::search) fn scan(
        &self,
        keep: usize,
        bin_prune_ratio: f32,
        mut limit: f32,
        scratch: &mut QueryScratch,
        work: &mut SearchStats,
    ) -> f32 {
        let encoded = &self.segment.encoded;
        let (width, all) = (encoded.width, self.admits_all());
        let QueryScratch {
            bins,
            found,
            probes,
            probe_of,
            weights,
            ..
        } = scratch;
        // Bins are looked up once, when their codes are asked from memory.
        let look_up = |number: usize| match bins.get(number) {
            None => Default::default(),
            Some(bin) => {
                let found = self.bin(bin.at);
                garlic_simd::prefetch(found.codes);
                let joined = match all {
                    true => None,
                    false => self.joined(found.cell, bin.at).map(|(joined, _)| joined),
                };
                if let Some(joined) = &joined {
                    garlic_simd::prefetch(joined.codes);
                }
                (found, joined)
            }
        };
        let mut ahead: [(BinView<'_>, Option<BinView<'_>>); AHEAD] = std::array::from_fn(look_up);
        for (i, bin) in bins.iter().enumerate() {
            if bin.estimate > reach(limit, bin_prune_ratio) {
                break;
            }
            let (bin, joined) = std::mem::replace(&mut ahead[i % AHEAD], look_up(i + AHEAD));
            let number = probe_of[bin.cell as usize] as usize;
            let query = CodeQuery {
                weights: &weights[number * width..][..width],
                scale: probes[number].scale,
                offset: probes[number].offset,
            };
            let before = found.len();
            bin.scan(encoded.bits, &query, limit, found);
            work.codes += bin.len as u64;
            if !all {
                if let Some(joined) = joined {
                    joined.scan(encoded.bits, &query, limit, found);
                    work.codes += joined.len as u64;
                }
                if !self.admits_all_of(bin.cell) {
                    self.keep_admitted(before, found);
                }
            }
            if found.len() >= keep.saturating_mul(2) {
                limit = shrink(found, keep);
            }
        }
        limit
    }

    /// Appends the points of a bin of a probed cell that are estimated below `limit`.
    pub(crate) fn scan_bin(&self, bin: &BinView<'_>, limit: f32, scratch: &mut QueryScratch) {
        let encoded = &self.segment.encoded;
        let number = scratch.probe_of[bin.cell as usize] as usize;
        let query = CodeQuery {
            weights: &scratch.weights[number * encoded.width..][..encoded.width],
            scale: scratch.probes[number].scale,
            offset: scratch.probes[number].offset,
        };
        bin.scan(encoded.bits, &query, limit, &mut scratch.found);
    }

    /// Makes room for the cells in `scratch`.
    pub(crate) fn start(&self, scratch: &mut QueryScratch) {
        let width = self.segment.encoded.width;
        scratch.probe_of.resize(self.cells(), 0);
        scratch.probes.clear();
        scratch.weights.resize(scratch.cells.len() * width, 0);
        scratch.bin_weights.resize(width, 0);
        scratch.bins.clear();
        scratch.found.clear();
    }

    /// Leaves the candidates in `scratch`, roughly nearest first; the cells are there already.
    ///
    /// The nearest cells are looked at first: their best bins give a limit, which lets only few bins of all
    /// other cells through.
    pub(super) fn candidates(
        &self,
        outside: f32,
        plan: &Plan,
        scratch: &mut QueryScratch,
        work: &mut SearchStats,
    ) {
        let cells = scratch.cells.len();
        let bins: usize = scratch
            .cells
            .iter()
            .map(|c| self.bins_in(c.at as usize))
            .sum();
        let budget = ((bins as f64 * plan.bins).ceil() as usize).clamp(1, bins.max(1));
        // A point may lie in two cells: so many positions hold `k` points at least.
        let least = plan.k.saturating_mul(1 + usize::from(self.index.spills()));
        let keep = plan.rerank.max(least);
        self.start(scratch);
        let first = cells.div_ceil(4);
        let mut limit = f32::INFINITY;
        if plan.bin_prune_ratio.is_finite() {
            for number in 0..first {
                self.score_bins(number, outside, f32::INFINITY, scratch);
            }
            // Bins that hold about three times the candidates wanted.
            let some = (keep.saturating_mul(3) / self.mean_bin())
                .saturating_add(2)
                .min(budget);
            let mut later = std::mem::take(&mut scratch.later);
            later.clear();
            let mut last = 0;
            if scratch.bins.len() > some {
                later.extend_from_slice(&scratch.bins);
                last = garlic_simd::keep_smallest(&mut scratch.bins, some).key();
            }
            let scanned = scratch.bins.len();
            arrange(&mut scratch.bins, EXACT_BINS, &mut scratch.spare);
            limit = self.scan(keep, plan.bin_prune_ratio, limit, scratch, work);
            if scratch.found.len() > keep {
                limit = shrink(&mut scratch.found, keep);
            }
            let reach = reach(limit, plan.bin_prune_ratio);
            scratch.bins.clear();
            scratch.bins.extend(
                later
                    .iter()
                    .filter(|b| b.estimate < reach && b.key() > last),
            );
            scratch.later = later;
            for number in first..cells {
                self.score_bins(number, outside, reach, scratch);
            }
            let left = budget.saturating_sub(scanned);
            if left == 0 {
                scratch.bins.clear();
            } else if scratch.bins.len() > left {
                shrink(&mut scratch.bins, left);
            }
        } else {
            let mut reach = f32::INFINITY;
            for number in 0..cells {
                self.score_bins(number, outside, reach, scratch);
                if scratch.bins.len() >= 2 * budget {
                    reach = shrink(&mut scratch.bins, budget);
                }
            }
            if scratch.bins.len() > budget {
                shrink(&mut scratch.bins, budget);
            }
        }
        arrange(&mut scratch.bins, EXACT_BINS, &mut scratch.spare);
        self.scan(keep, plan.bin_prune_ratio, limit, scratch, work);
        if scratch.found.len() > keep {
            shrink(&mut scratch.found, keep);
        }
        arrange(&mut scratch.found, 2 * plan.k, &mut scratch.spare);
        work.bins_ordered += bins as u64;
    }

    /// Points of a bin, on average.
    fn mean_bin(&self) -> usize {
        (self.index.len() / self.bins().max(1)).max(1)
    }

    /// Drops points that do not count from the end of `found`.
    pub(super) fn keep_admitted(&self, from: usize, found: &mut Vec<Estimate>) {
        let mut kept = from;
        for i in from..found.len() {
            if self.admits(found[i].at) {
                found[kept] = found[i];
                kept += 1;
            }
        }
        found.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::uniform;

    fn list(count: usize, of: impl Fn(f32) -> f32) -> Vec<Estimate> {
        let estimates = uniform(count, 1, 9).into_iter().map(|u| of(u + 0.5));
        (0..)
            .zip(estimates)
            .map(|(at, estimate)| Estimate { at, estimate })
            .collect()
    }

    fn misplaced(list: &[Estimate]) -> usize {
        let pairs = list.windows(2);
        pairs.filter(|pair| pair[0].key() > pair[1].key()).count()
    }

    #[test]
    fn the_first_are_in_order_and_the_others_nearly() {
        let mut estimates = list(2000, |u| 5.0 + u);
        arrange(&mut estimates, 100, &mut Vec::new());
        assert_eq!(misplaced(&estimates[..100]), 0);
        let mut sorted = estimates.clone();
        sorted.sort_unstable_by_key(Estimate::key);
        for (arranged, sorted) in estimates.iter().zip(&sorted) {
            assert!((arranged.estimate - sorted.estimate).abs() <= 1.01 / STEPS as f32);
        }
        assert!(
            misplaced(&estimates[100..]) > 100,
            "only roughly: that is cheaper"
        );
    }

    #[test]
    fn a_few_far_away_do_not_put_all_others_into_one_step_in_no_order() {
        let mut estimates = list(2000, |u| if u < 0.01 { 1e9 } else { u });
        arrange(&mut estimates, 20, &mut Vec::new());
        assert_eq!(misplaced(&estimates), 0);
    }
}
