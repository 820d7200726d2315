//! Orders bins by their estimated distances and scans the codes of their points.

use super::query::{AHEAD, QueryScratch, bin_limit, keep_best};
use crate::plan::Plan;
use crate::quantize::probe;
use crate::quantize::{BIN_BITS, zero_code};
use crate::segment::{BinView, Snapshot};
use garlic_core::SearchStats;
use garlic_simd::{CodeQuery, Estimate};

/// Number of buckets, the multiple of the mean bucket size above which a bucket is sorted, and the number of bins at
/// the front that are sorted.
const BUCKETS: usize = 64;
const CROWDED_FACTOR: usize = 4;
const SORTED_BINS: usize = 32;

/// Orders `list` from near to far: the first `exact` entries by their estimates, the others by equal-width buckets.
///
/// Scans usually stop among the first entries, so the order of the rest matters little. If a few estimates are far
/// from all others, one bucket holds most of the list and is sorted as well.
fn bucket_sort(list: &mut [Estimate], exact: usize, spare: &mut Vec<Estimate>) {
    if list.len() <= BUCKETS / 2 {
        list.sort_unstable_by_key(Estimate::key);
        return;
    }
    let (low, high) = list.iter().fold((f32::INFINITY, 0.0f32), |(low, high), e| {
        (low.min(e.estimate), high.max(e.estimate))
    });
    let factor = (BUCKETS - 1) as f32 / (high - low).max(f32::MIN_POSITIVE);
    let bucket = |e: &Estimate| ((e.estimate - low) * factor) as usize & (BUCKETS - 1);
    let mut starts = [0u32; BUCKETS + 1];
    for e in list.iter() {
        starts[bucket(e) + 1] += 1;
    }
    for i in 0..BUCKETS {
        starts[i + 1] += starts[i];
    }
    spare.clear();
    spare.extend_from_slice(list);
    for e in spare.iter() {
        let at = &mut starts[bucket(e)];
        list[*at as usize] = *e;
        *at += 1;
    }
    // Each start has moved to the end of its bucket.
    let crowded = (CROWDED_FACTOR * list.len() / BUCKETS).max(CROWDED_FACTOR);
    let mut first = 0;
    for end in starts.iter().take(BUCKETS) {
        let end = *end as usize;
        if first < exact || end - first > crowded {
            list[first..end].sort_unstable_by_key(Estimate::key);
        }
        first = end;
    }
}

impl Snapshot<'_> {
    /// Projects the query into a probed cell and appends the bins whose estimate is below `limit`.
    pub(crate) fn score_bins(
        &self,
        number: usize,
        residual_squared: f32,
        limit: f32,
        scratch: &mut QueryScratch,
    ) {
        let encoded = &self.segment.encoded;
        let (rank, width) = (self.segment.cells.rank(), encoded.width);
        let base = self.project(number, residual_squared, scratch);
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
        match self.rewritten(at) {
            Some((rewritten, first)) => {
                let (codes, found) = (&*rewritten.bin_blocks, &mut scratch.bins);
                garlic_simd::scan_codes(BIN_BITS, codes, &query, limit, first, found);
            }
            None => encoded.scan_bins(at, &query, limit, &mut scratch.bins),
        }
    }

    /// Scans the codes of the bins in `scratch` in order until a bin exceeds the limit by `bin_prune_ratio`. Returns
    /// the new limit, the estimate of the worst of the `keep` best candidates.
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
        // Each bin is looked up once, when its codes are prefetched.
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
            if bin.estimate > bin_limit(limit, bin_prune_ratio) {
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
                limit = keep_best(found, keep);
            }
        }
        limit
    }

    /// Appends the points of a bin of a probed cell whose estimate is below `limit`.
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

    /// Resets the buffers for the cells in `scratch`.
    pub(crate) fn reset_scan(&self, scratch: &mut QueryScratch) {
        let width = self.segment.encoded.width;
        scratch.probe_of.resize(self.cells(), 0);
        scratch.probes.clear();
        scratch.weights.resize(scratch.cells.len() * width, 0);
        scratch.bin_weights.resize(width, 0);
        scratch.bins.clear();
        scratch.found.clear();
    }

    /// Finds candidates in the cells of `scratch` and stores them there, roughly nearest first.
    ///
    /// The nearest cells come first. Their best bins give a limit that prunes most bins of the other cells.
    pub(super) fn find_candidates(
        &self,
        residual_squared: f32,
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
        // A point may be stored in two cells, so this many positions contain at least `k` points.
        let least = plan.k.saturating_mul(1 + usize::from(self.index.spills()));
        let keep = plan.rerank.max(least);
        self.reset_scan(scratch);
        let first = cells.div_ceil(4);
        let mut limit = f32::INFINITY;
        if plan.bin_prune_ratio.is_finite() {
            for number in 0..first {
                self.score_bins(number, residual_squared, f32::INFINITY, scratch);
            }
            // Bins with about three times as many points as candidates are needed.
            let first_bins = (keep.saturating_mul(3) / self.mean_bin_size())
                .saturating_add(2)
                .min(budget);
            let mut deferred = std::mem::take(&mut scratch.deferred);
            deferred.clear();
            let mut last = 0;
            if scratch.bins.len() > first_bins {
                deferred.extend_from_slice(&scratch.bins);
                last = garlic_simd::keep_smallest(&mut scratch.bins, first_bins).key();
            }
            let scanned = scratch.bins.len();
            bucket_sort(&mut scratch.bins, SORTED_BINS, &mut scratch.spare);
            limit = self.scan(keep, plan.bin_prune_ratio, limit, scratch, work);
            if scratch.found.len() > keep {
                limit = keep_best(&mut scratch.found, keep);
            }
            let bin_limit = bin_limit(limit, plan.bin_prune_ratio);
            scratch.bins.clear();
            scratch.bins.extend(
                deferred
                    .iter()
                    .filter(|b| b.estimate < bin_limit && b.key() > last),
            );
            scratch.deferred = deferred;
            for number in first..cells {
                self.score_bins(number, residual_squared, bin_limit, scratch);
            }
            let left = budget.saturating_sub(scanned);
            if left == 0 {
                scratch.bins.clear();
            } else if scratch.bins.len() > left {
                keep_best(&mut scratch.bins, left);
            }
        } else {
            let mut bin_limit = f32::INFINITY;
            for number in 0..cells {
                self.score_bins(number, residual_squared, bin_limit, scratch);
                if scratch.bins.len() >= 2 * budget {
                    bin_limit = keep_best(&mut scratch.bins, budget);
                }
            }
            if scratch.bins.len() > budget {
                keep_best(&mut scratch.bins, budget);
            }
        }
        bucket_sort(&mut scratch.bins, SORTED_BINS, &mut scratch.spare);
        self.scan(keep, plan.bin_prune_ratio, limit, scratch, work);
        if scratch.found.len() > keep {
            keep_best(&mut scratch.found, keep);
        }
        bucket_sort(&mut scratch.found, 2 * plan.k, &mut scratch.spare);
        work.bins_ordered += bins as u64;
    }

    /// Mean number of points per bin.
    fn mean_bin_size(&self) -> usize {
        (self.index.len() / self.bins().max(1)).max(1)
    }

    /// Drops the points from `from` on that are not admitted.
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
        bucket_sort(&mut estimates, 100, &mut Vec::new());
        assert_eq!(misplaced(&estimates[..100]), 0);
        let mut sorted = estimates.clone();
        sorted.sort_unstable_by_key(Estimate::key);
        for (arranged, sorted) in estimates.iter().zip(&sorted) {
            assert!((arranged.estimate - sorted.estimate).abs() <= 1.01 / BUCKETS as f32);
        }
        assert!(
            misplaced(&estimates[100..]) > 100,
            "only roughly: that is cheaper"
        );
    }

    #[test]
    fn outliers_do_not_leave_the_others_unsorted_in_one_bucket() {
        let mut estimates = list(2000, |u| if u < 0.01 { 1e9 } else { u });
        bucket_sort(&mut estimates, 20, &mut Vec::new());
        assert_eq!(misplaced(&estimates), 0);
    }
}
