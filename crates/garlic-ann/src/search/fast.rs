//! A query's way through the default preset: rotate, route, project, order bins, scan codes, re-rank.

use garlic_linalg::Rows;
use garlic_simd::{CodeQuery, Estimate};

use super::params::{Answer, Plan};
use super::scan::Best;
use super::work::Work;
use crate::cell::learned::{BIN_BITS, zero_code};
use crate::index::{BinView, View};
use crate::model::Lists;

/// Bins and vectors that are asked from memory ahead of their use.
pub(super) const AHEAD: usize = 8;
/// Steps of the rough order of bins and candidates.
const STEPS: usize = 64;
/// Cells whose share of allowed points is below this multiple of the whole index's are sparse.
const SPARSE: f64 = 0.9;
/// Neighbours whose setting tells a range search how far estimates can be trusted.
const LIKE_K: usize = 10;

/// Buffers of one query at a time.
#[derive(Default)]
pub(crate) struct FastScratch {
    centred: Vec<f32>,
    query: Vec<f32>,
    /// Squared distance of the query from the mean of the space.
    pub(super) whole: f32,
    distances: Vec<f32>,
    pub(super) cells: Vec<Estimate>,
    pub(super) y: Vec<f32>,
    /// Coordinates in the frames of all probed cells, where they are known already.
    projected: Vec<f32>,
    bin_weights: Vec<i8>,
    /// Weights of all probed cells, `width` each.
    weights: Vec<i8>,
    probes: Vec<Probe>,
    /// Number of the probe of a cell; only those of this query are looked at.
    probe_of: Vec<u32>,
    bins: Vec<Estimate>,
    /// Bins of the first cells that were not among the first to be scanned.
    later: Vec<Estimate>,
    pub(super) found: Vec<Estimate>,
    spare: Vec<Estimate>,
    pub(super) bytes: Vec<u8>,
}

/// What turns a sum of products of codes into an estimate.
#[derive(Clone, Copy, Default)]
pub(super) struct Probe {
    pub(super) scale: f32,
    pub(super) offset: f32,
}

/// Keeps the `keep` best of `list` and returns the limit below which a newcomer counts.
fn shrink(list: &mut Vec<Estimate>, keep: usize) -> f32 {
    list.select_nth_unstable_by_key(keep - 1, Estimate::key);
    list.truncate(keep);
    list[keep - 1].estimate
}

/// Orders `list` from near to far, roughly: by the step of the range that an estimate falls into.
///
/// What follows wants the near ones first and has no use for more than that.
fn arrange(list: &mut [Estimate], spare: &mut Vec<Estimate>) {
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
}

/// The weights of a query at `y` in a frame, and what they are worth. `base` is its squared distance from the
/// frame's origin.
pub(super) fn probe(y: &[f32], steps: &[f32], zero: i32, base: f32, weights: &mut [i8]) -> Probe {
    let (unit, sum) = garlic_simd::code_weights(y, steps, &mut weights[..y.len()]);
    weights[y.len()..].fill(0);
    let scale = -2.0 * unit;
    Probe {
        scale,
        offset: base - scale * (zero * sum) as f32,
    }
}

impl View<'_> {
    /// The `count` cells nearest to a query, nearest first.
    pub(crate) fn route(&self, query: &[f32], count: usize, scratch: &mut FastScratch) -> Vec<u32> {
        self.rotate(query, scratch);
        self.best_cells(count, scratch);
        scratch.cells.iter().map(|c| c.at).collect()
    }

    /// Leaves the rotated query in `scratch` and returns its squared distance from the truncated space.
    pub(super) fn rotate(&self, query: &[f32], scratch: &mut FastScratch) -> f32 {
        let mean = &self.index.space.mean;
        scratch.projected.clear();
        scratch.centred.clear();
        scratch
            .centred
            .extend(query.iter().zip(mean).map(|(x, m)| x - m));
        scratch.query.resize(self.body.model.dim(), 0.0);
        garlic_simd::dots(&self.body.rotation, &scratch.centred, &mut scratch.query);
        let whole = garlic_simd::dot(&scratch.centred, &scratch.centred);
        scratch.whole = whole;
        (whole - garlic_simd::dot(&scratch.query, &scratch.query)).max(0.0)
    }

    /// Leaves the `count` cells nearest to the rotated query in `scratch`, nearest first; fewer when fewer have
    /// points that count.
    pub(super) fn nearest_cells(&self, count: usize, scratch: &mut FastScratch) {
        let cells = self.cells();
        scratch.distances.resize(cells, 0.0);
        garlic_simd::l2_squared_rows(self.means(), &scratch.query, &mut scratch.distances);
        let numbered = scratch.distances.iter().zip(0..);
        let numbered = numbered.map(|(d, at)| Estimate { estimate: *d, at });
        scratch.cells.clear();
        if self.admits_all() {
            scratch.cells.extend(numbered);
        } else {
            scratch
                .cells
                .extend(numbered.filter(|e| self.counted_in(e.at as usize) > 0));
        }
        if count < scratch.cells.len() {
            shrink(&mut scratch.cells, count);
        }
        scratch.cells.sort_unstable_by_key(Estimate::key);
    }

    /// Leaves the `count` cells with the smallest tempered score in `scratch`, best first, with the coordinates
    /// in their frames; returns how many cells were projected into for that.
    ///
    /// The score decides among about twice as many cells as are wanted, the nearest by plain distance.
    pub(super) fn best_cells(&self, count: usize, scratch: &mut FastScratch) -> usize {
        let shortlist = 2 * count.min(self.cells()) + 8;
        self.nearest_cells(shortlist, scratch);
        let shortlist = scratch.cells.len();
        if count >= shortlist || self.body.model.anisotropy == 0.0 {
            scratch.cells.truncate(count);
            return scratch.cells.len();
        }
        let rank = self.body.model.rank();
        let mut scored = Vec::with_capacity(shortlist);
        let mut coordinates = Vec::with_capacity(shortlist * rank);
        for number in 0..shortlist {
            let cell = scratch.cells[number];
            self.project(number, 0.0, scratch);
            let score = (cell.estimate - self.relief(cell.at as usize, &scratch.y)).max(0.0);
            scored.push(Estimate {
                at: number as u32,
                estimate: score,
            });
            coordinates.extend_from_slice(&scratch.y);
        }
        shrink(&mut scored, count);
        scored.sort_unstable_by_key(Estimate::key);
        let all = std::mem::take(&mut scratch.cells);
        for chosen in &scored {
            let number = chosen.at as usize;
            scratch.cells.push(all[number]);
            scratch
                .projected
                .extend_from_slice(&coordinates[number * rank..][..rank]);
        }
        shortlist
    }

    /// Leaves the coordinates of the query in the frame of a probed cell in `scratch`; returns its squared
    /// distance from the cell's mean.
    pub(super) fn project(&self, number: usize, outside: f32, scratch: &mut FastScratch) -> f32 {
        let rank = self.body.model.rank();
        let cell = scratch.cells[number];
        let at = cell.at as usize;
        scratch.y.resize(rank, 0.0);
        match scratch.projected.get(number * rank..(number + 1) * rank) {
            Some(y) => scratch.y.copy_from_slice(y),
            None => {
                garlic_simd::dots(self.axes(at), &scratch.query, &mut scratch.y);
                self.centre(at, &mut scratch.y);
            }
        }
        cell.estimate + outside
    }

    /// Turns inner products with a cell's axes into coordinates in its frame.
    fn centre(&self, cell: usize, products: &mut [f32]) {
        for (y, o) in products.iter_mut().zip(self.origin(cell)) {
            *y -= o;
        }
    }

    /// Projects the query into a probed cell and appends the bins that are estimated nearer than `limit`.
    fn view(&self, number: usize, outside: f32, limit: f32, scratch: &mut FastScratch) {
        let learned = &self.body.learned;
        let (rank, width) = (self.body.model.rank(), learned.width);
        let base = self.project(number, outside, scratch);
        let at = scratch.cells[number].at as usize;
        scratch.probe_of[at] = number as u32;
        let weights = &mut scratch.weights[number * width..][..width];
        let steps = &self.steps(at)[..rank];
        let points = probe(&scratch.y, steps, zero_code(learned.bits), base, weights);
        scratch.probes.push(points);
        let (bins, weights) = if learned.bits == BIN_BITS {
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
            None => learned.scan_bins(at, &query, limit, &mut scratch.bins),
        }
    }

    /// Scans the codes of `bins` in their order, as long as they are within `slack` of the limit; returns the
    /// new limit, the worst of the `keep` best candidates so far.
    fn scan(
        &self,
        keep: usize,
        slack: f32,
        mut limit: f32,
        scratch: &mut FastScratch,
        work: &mut Work,
    ) -> f32 {
        let learned = &self.body.learned;
        let (width, all) = (learned.width, self.admits_all());
        let FastScratch {
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
            if bin.estimate > limit * slack {
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
            bin.scan(learned.bits, &query, limit, found);
            work.codes += bin.len as u64;
            if !all {
                if let Some(joined) = joined {
                    joined.scan(learned.bits, &query, limit, found);
                    work.codes += joined.len as u64;
                }
                self.keep_admitted(before, found);
            }
            if found.len() >= keep.saturating_mul(2) {
                limit = shrink(found, keep);
            }
        }
        limit
    }

    /// Makes room for the cells in `scratch`.
    fn start(&self, scratch: &mut FastScratch) {
        let width = self.body.learned.width;
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
    fn candidates(&self, outside: f32, plan: &Plan, scratch: &mut FastScratch, work: &mut Work) {
        let cells = scratch.cells.len();
        let bins: usize = scratch
            .cells
            .iter()
            .map(|c| self.bins_in(c.at as usize))
            .sum();
        let budget = ((bins as f64 * plan.bins).ceil() as usize).clamp(1, bins.max(1));
        let keep = plan.rerank.max(plan.k);
        self.start(scratch);
        let first = cells.div_ceil(4);
        let mut limit = f32::INFINITY;
        if plan.slack.is_finite() {
            for number in 0..first {
                self.view(number, outside, f32::INFINITY, scratch);
            }
            // Bins that hold about three times the candidates wanted.
            let some = (keep.saturating_mul(3) / self.mean_bin())
                .saturating_add(2)
                .min(budget);
            let mut later = std::mem::take(&mut scratch.later);
            later.clear();
            if scratch.bins.len() > some {
                scratch
                    .bins
                    .select_nth_unstable_by_key(some - 1, Estimate::key);
                later.extend_from_slice(&scratch.bins[some..]);
                scratch.bins.truncate(some);
            }
            let scanned = scratch.bins.len();
            arrange(&mut scratch.bins, &mut scratch.spare);
            limit = self.scan(keep, plan.slack, limit, scratch, work);
            if scratch.found.len() > keep {
                limit = shrink(&mut scratch.found, keep);
            }
            let reach = limit * plan.slack;
            scratch.bins.clear();
            scratch
                .bins
                .extend(later.iter().filter(|b| b.estimate < reach));
            scratch.later = later;
            for number in first..cells {
                self.view(number, outside, reach, scratch);
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
                self.view(number, outside, reach, scratch);
                if scratch.bins.len() >= 2 * budget {
                    reach = shrink(&mut scratch.bins, budget);
                }
            }
            if scratch.bins.len() > budget {
                shrink(&mut scratch.bins, budget);
            }
        }
        arrange(&mut scratch.bins, &mut scratch.spare);
        self.scan(keep, plan.slack, limit, scratch, work);
        if scratch.found.len() > keep {
            shrink(&mut scratch.found, keep);
        }
        arrange(&mut scratch.found, &mut scratch.spare);
        work.bins_ordered += bins as u64;
    }

    /// Leaves points that are likely within a squared distance in `scratch`: those that their codes put there, and
    /// as many more as estimates are wrong by in a search of this recall.
    ///
    /// A search for neighbours tells how far beyond a distance the estimates of such points reach: as far as those of
    /// its candidates. A radius smaller than the distance of neighbours is searched like theirs.
    pub(super) fn likely_within(
        &self,
        query: &[f32],
        squared: f32,
        recall: f64,
        scratch: &mut FastScratch,
        best: &mut Best,
    ) -> Work {
        let plan = self.body.calibration.plan(LIKE_K, recall, self.cells());
        let mut work = self.search(query, &plan, scratch, best);
        let candidates = scratch.found.iter().map(|f| f.estimate);
        let farthest = candidates.fold(best.worst(), f32::max);
        // Infinite when there are fewer neighbours than were asked for, and no number when all distances are 0.
        let beyond = (farthest / best.worst()).max(1.0);
        let limit = (squared.max(best.worst()) * beyond).max(farthest).next_up();
        let outside = self.rotate(query, scratch);
        self.nearest_cells(self.cells(), scratch);
        let cells = scratch.cells.len();
        self.start(scratch);
        for number in 0..cells {
            self.view(number, outside, limit * plan.slack, scratch);
        }
        let mut more = Work::default();
        self.scan(usize::MAX, f32::INFINITY, limit, scratch, &mut more);
        more.bins_ordered += self.bins() as u64;
        self.count(cells, &mut more);
        work += more;
        work
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

    /// Answers one query into `best`.
    pub(crate) fn search(
        &self,
        query: &[f32],
        plan: &Plan,
        scratch: &mut FastScratch,
        best: &mut Best,
    ) -> Work {
        let mut work = Work::default();
        let outside = self.rotate(query, scratch);
        // With bins that are left out by their estimates the choice of cells matters little, and the plain
        // distance is cheaper; a fixed number of cells should be the best ones.
        let projected = if plan.slack.is_finite() {
            self.nearest_cells(plan.probes, scratch);
            if plan.widens && self.is_sparse(scratch) {
                if plan.all_if_sparse {
                    return self.brute_force(query, plan.k, best);
                }
                self.nearest_cells(usize::MAX, scratch);
            }
            scratch.cells.len()
        } else {
            self.best_cells(plan.probes, scratch)
        };
        self.candidates(outside, plan, scratch, &mut work);
        self.rerank(query, plan, scratch, best, &mut work);
        self.count(projected, &mut work);
        work
    }

    /// Whether fewer points are allowed around the query, as far as the cells in `scratch` reach, than elsewhere: the
    /// neighbours of a query outside of what is allowed lie in any of the cells beyond.
    fn is_sparse(&self, scratch: &FastScratch) -> bool {
        let reach = scratch.cells.last().map_or(0.0, |cell| cell.estimate);
        let near = scratch
            .distances
            .iter()
            .enumerate()
            .filter(|(_, d)| **d <= reach);
        let (allowed, points) = near.fold((0, 0), |(allowed, points), (cell, _)| {
            let more = self.counted_in(cell);
            (allowed + more, points + self.points_in(cell))
        });
        let share = self.counted() as f64 / self.index.len().max(1) as f64;
        (allowed as f64) < SPARSE * share * points as f64
    }

    /// Answers a batch of queries into the places of their answers: rotation and projections are made for all of
    /// them together, cell by cell. The answers are those of [`View::search`].
    pub(crate) fn search_many(
        &self,
        asked: Rows<'_>,
        plan: &Plan,
        scratch: &mut FastScratch,
        best: &mut Best,
        answers: &mut [Answer],
    ) {
        let embedded = self.index.embedding.queries(asked);
        let queries = embedded.rows();
        let (count, dim, wide) = (queries.len(), queries.dim(), self.body.model.dim());
        let rank = self.body.model.rank();
        let mut centred = Vec::with_capacity(count * dim);
        for query in queries.iter() {
            centred.extend(query.iter().zip(&self.index.space.mean).map(|(x, m)| x - m));
        }
        let mut rotated = vec![0.0; count * wide];
        garlic_simd::dots_many(&self.body.rotation, &centred, dim, &mut rotated);
        let outside: Vec<f32> = centred
            .chunks_exact(dim)
            .zip(rotated.chunks_exact(wide))
            .map(|(c, q)| (garlic_simd::dot(c, c) - garlic_simd::dot(q, q)).max(0.0))
            .collect();
        drop(centred);

        // Every query visits as many cells: all, or as many as have points that count.
        let mut probes = plan.probes.min(self.cells());
        let mut cells = Vec::with_capacity(count * probes);
        for query in rotated.chunks_exact(wide) {
            scratch.query.clear();
            scratch.query.extend_from_slice(query);
            self.nearest_cells(probes, scratch);
            cells.extend_from_slice(&scratch.cells);
            probes = scratch.cells.len();
        }
        let visits = Lists::group(self.cells(), cells.iter().zip(0..).map(|(c, v)| (c.at, v)));
        let mut projected = vec![0.0; cells.len() * rank];
        let (mut inputs, mut products) = (Vec::new(), Vec::new());
        for cell in 0..self.cells() {
            let visits = visits.get(cell);
            if visits.is_empty() {
                continue;
            }
            inputs.clear();
            for visit in visits {
                let query = *visit as usize / probes;
                inputs.extend_from_slice(&rotated[query * wide..][..wide]);
            }
            products.resize(visits.len() * rank, 0.0);
            garlic_simd::dots_many(self.axes(cell), &inputs, wide, &mut products);
            for (visit, products) in visits.iter().zip(products.chunks_exact_mut(rank)) {
                self.centre(cell, products);
                projected[*visit as usize * rank..][..rank].copy_from_slice(products);
            }
        }
        for (i, (query, answer)) in queries.iter().zip(answers).enumerate() {
            let mut work = Work::default();
            scratch.cells.clear();
            scratch
                .cells
                .extend_from_slice(&cells[i * probes..][..probes]);
            scratch.projected.clear();
            scratch
                .projected
                .extend_from_slice(&projected[i * probes * rank..][..probes * rank]);
            self.candidates(outside[i], plan, scratch, &mut work);
            self.rerank(query, plan, scratch, best, &mut work);
            self.count(probes, &mut work);
            *answer = Answer {
                hits: self.index.report(asked.row(i), best, plan.wanted),
                work,
                exact: false,
            };
        }
    }

    /// Exact distances of the candidates in `scratch`.
    fn rerank(
        &self,
        query: &[f32],
        plan: &Plan,
        scratch: &mut FastScratch,
        best: &mut Best,
        work: &mut Work,
    ) {
        let FastScratch { found, bytes, .. } = scratch;
        let query = self.index.vectors.prepare(query, bytes);
        best.start(plan.k);
        for f in found.iter().take(AHEAD) {
            self.prefetch(f.at);
        }
        for (i, f) in found.iter().enumerate() {
            if f.estimate > plan.trust * best.worst() {
                break;
            }
            if let Some(next) = found.get(i + AHEAD) {
                self.prefetch(next.at);
            }
            let squared = self.distance(f.at, &query);
            work.candidates += 1;
            // Equal distances are told apart by their identifiers.
            if squared <= best.worst()
                && let Some(point) = self.point(f.at)
            {
                best.offer(squared, point.id, f.at);
            }
        }
    }

    /// Counts the multiply-adds of a query that probed `probed` cells.
    fn count(&self, probed: usize, work: &mut Work) {
        let (rank, wide) = (self.body.model.rank(), self.body.model.dim());
        let dim = self.index.space.dim();
        let cells = self.cells();
        work.rotation_madds = (dim * (wide + 1) + wide) as u64;
        work.routing_madds = (cells * wide) as u64;
        work.cells_scored = cells as u64;
        work.cells_projected = probed as u64;
        work.projection_madds = (probed * rank * wide) as u64;
        work.ordering_madds = work.bins_ordered * rank as u64;
        work.code_madds = work.codes * rank as u64;
        work.exact_madds = work.candidates * dim as u64;
    }
}
