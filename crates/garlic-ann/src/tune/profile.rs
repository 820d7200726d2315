//! Predicts recall and cost of every setting from one full scan per query.
//!
//! Each query scans all cells once without pruning. This gives, for each true neighbour, the rank of its cell, the
//! estimate of its bin and its own estimate. Together with the sorted estimates of all points and bins, it predicts
//! for any number of probes and candidates and any prune ratios which neighbours a search finds and what it costs. A
//! real search lowers its limit while it runs, so predictions are approximate. Settings chosen by them are measured
//! before they are used.

use super::measure::Query;
use crate::plan::Plan;
use crate::search::{CostModel, QueryScratch, bin_limit};
use crate::segment::{Index, Snapshot};
use rayon::prelude::*;

/// Candidate values of the bin prune ratio.
pub(super) const BIN_PRUNE_RATIOS: [f32; 19] = [
    1.0, 1.04, 1.08, 1.12, 1.16, 1.2, 1.25, 1.3, 1.35, 1.42, 1.5, 1.6, 1.75, 2.0, 2.5, 3.0, 5.0,
    10.0, 1e9,
];
/// Candidate values of the rerank prune ratio, in ascending order. The last one prunes nothing.
pub(super) const RERANK_PRUNE_RATIOS: [f32; 10] =
    [1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.7, 2.0, f32::MAX];
/// Upper limit of the candidates that are considered. More cost as much as reading everything.
const MAX_CANDIDATES: usize = 16_384;
/// Least number of missed neighbours that tells settings apart.
const MIN_MISSES: f64 = 4.0;
/// Number of queries per task.
const QUERIES_PER_TASK: usize = 16;

const BIN_STEPS: usize = BIN_PRUNE_RATIOS.len();
const RERANK_STEPS: usize = RERANK_PRUNE_RATIOS.len();

/// The settings that are considered for one k: every combination of these values and the prune ratios.
pub(super) struct SettingGrid {
    pub(super) k: usize,
    pub(super) probes: Vec<usize>,
    pub(super) reranks: Vec<usize>,
}

impl SettingGrid {
    /// The grid for an index. It ends where candidates cost as much as reading everything.
    pub(super) fn new(index: &Index, k: usize, cost_model: &CostModel) -> Self {
        let scale = |first: usize, last: usize, grow: fn(usize) -> usize| {
            let mut scale = vec![first.min(last)];
            while scale[scale.len() - 1] < last {
                scale.push(grow(scale[scale.len() - 1]).min(last));
            }
            scale
        };
        let affordable = (cost_model.everything / cost_model.candidate) as usize;
        let most = (64 * k).max(MAX_CANDIDATES).min(affordable.max(2 * k));
        Self {
            k,
            probes: scale(1, index.cells(), |p| (p * 5).div_ceil(4)),
            reranks: scale((k + k / 8).max(2), most.min(index.len()), |r| {
                (r * 9).div_ceil(8)
            }),
        }
    }
}

/// A setting as indices into the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GridPoint {
    probes: usize,
    rerank: usize,
    bin_ratio: usize,
    rerank_ratio: usize,
}

/// Predictions for all settings of one k. They are integer sums over queries, so the order of summation does not
/// matter.
pub(super) struct Profile {
    grid: SettingGrid,
    queries: usize,
    /// Neighbours found, by probes, rerank, bin ratio and rerank ratio.
    found: Vec<u32>,
    /// Codes scanned, by probes, rerank and bin ratio.
    codes: Vec<u64>,
    /// Exact distances, by probes, rerank and rerank ratio.
    candidates: Vec<u64>,
    /// Bins ordered, by probes.
    bins: Vec<u64>,
}

impl Profile {
    fn new(grid: SettingGrid) -> Self {
        let (p, r) = (grid.probes.len(), grid.reranks.len());
        Self {
            queries: 0,
            found: vec![0; p * r * BIN_STEPS * RERANK_STEPS],
            codes: vec![0; p * r * BIN_STEPS],
            candidates: vec![0; p * r * RERANK_STEPS],
            bins: vec![0; p],
            grid,
        }
    }

    fn add(&mut self, other: &Self) {
        let sum = |all: &mut [u64], part: &[u64]| {
            all.iter_mut().zip(part).for_each(|(a, p)| *a += p);
        };
        self.queries += other.queries;
        let found = self.found.iter_mut().zip(&other.found);
        found.for_each(|(all, part)| *all += part);
        sum(&mut self.codes, &other.codes);
        sum(&mut self.candidates, &other.candidates);
        sum(&mut self.bins, &other.bins);
    }

    /// The plan of a setting, for `k` neighbours.
    pub(super) fn plan(&self, grid_point: GridPoint, k: usize, coarse_routing: bool) -> Plan {
        Plan {
            probes: self.grid.probes[grid_point.probes],
            rerank: self.grid.reranks[grid_point.rerank],
            bin_prune_ratio: BIN_PRUNE_RATIOS[grid_point.bin_ratio],
            rerank_prune_ratio: RERANK_PRUNE_RATIOS[grid_point.rerank_ratio],
            coarse_routing,
            ..Plan::everything(k)
        }
    }

    /// Whether so few of the profiled neighbours may be missed for a recall that chance decides which.
    pub(super) fn is_unresolved(&self, recall: f64) -> bool {
        (1.0 - recall) * ((self.queries * self.grid.k) as f64) < MIN_MISSES
    }

    /// The setting with the lowest predicted cost of a query among those with a predicted recall of at least `recall`, with
    /// that cost.
    pub(super) fn cheapest(&self, recall: f64, cost_model: &CostModel) -> Option<(f64, GridPoint)> {
        let slots = (self.queries * self.grid.k) as f64;
        // An integer, so that a setting that finds everything reaches a recall of 1.
        let wanted = (recall * slots).ceil() as u32;
        let mut best: Option<(f64, GridPoint)> = None;
        for (probes, cells) in self.grid.probes.iter().enumerate() {
            let base = cost_model.probes(*cells as u64 * self.queries as u64)
                + cost_model.bins(self.bins[probes]);
            for rerank in 0..self.grid.reranks.len() {
                let row = probes * self.grid.reranks.len() + rerank;
                for bin_ratio in 0..BIN_STEPS {
                    let codes = cost_model.codes(self.codes[row * BIN_STEPS + bin_ratio]);
                    let at = (row * BIN_STEPS + bin_ratio) * RERANK_STEPS;
                    // The smallest sufficient ratio is the cheapest.
                    let enough = self.found[at..at + RERANK_STEPS]
                        .iter()
                        .position(|found| *found >= wanted);
                    let Some(rerank_ratio) = enough else {
                        continue;
                    };
                    let candidates = self.candidates[row * RERANK_STEPS + rerank_ratio];
                    let cost = base + codes + cost_model.candidates(candidates);
                    if best.is_none_or(|(least, _)| cost < least) {
                        let grid_point = GridPoint {
                            probes,
                            rerank,
                            bin_ratio,
                            rerank_ratio,
                        };
                        best = Some((cost, grid_point));
                    }
                }
            }
        }
        best.map(|(cost, grid_point)| (cost / self.queries as f64, grid_point))
    }
}

/// Profiles for every k, each from as many of the first `queries` as `counts` says.
pub(super) fn profile(
    index: &Index,
    queries: &[Query],
    ks: &[usize],
    counts: &[usize],
    cost_model: &CostModel,
) -> Vec<Profile> {
    let empty = || -> Vec<Profile> {
        let grid = ks.iter().map(|k| SettingGrid::new(index, *k, cost_model));
        grid.map(Profile::new).collect()
    };
    let most = counts.iter().copied().max().unwrap_or(0).min(queries.len());
    let numbered: Vec<(usize, &Query)> = queries[..most].iter().enumerate().collect();
    numbered
        .par_chunks(QUERIES_PER_TASK)
        .fold(empty, |mut profiles, queries| {
            let mut profiler = QueryProfiler::new(Snapshot::new(index));
            for (number, query) in queries {
                profiler.run(*number, query, counts, &mut profiles);
            }
            profiles
        })
        .reduce(empty, |mut all, part| {
            all.iter_mut().zip(&part).for_each(|(a, p)| a.add(p));
            all
        })
}

/// A true neighbour of a query.
#[derive(Clone, Copy)]
struct Neighbour {
    /// Number of cells that are nearer than its own.
    cell: usize,
    /// Estimate of its bin.
    bin: f32,
    /// Its own estimate.
    estimate: f32,
}

/// Profiles one query at a time.
struct QueryProfiler<'a> {
    snapshot: Snapshot<'a>,
    scratch: QueryScratch,
    /// Sorted estimates of the nearest points so far, and unsorted new ones.
    points: Vec<f32>,
    new_points: Vec<f32>,
    /// Estimate and size of the bins so far, sorted, and unsorted new ones.
    bins: Vec<(f32, u32)>,
    new_bins: Vec<(f32, u32)>,
    /// Cumulative number of points in the sorted bins.
    sizes: Vec<u64>,
    neighbours: Vec<Neighbour>,
    /// Positions of the neighbours in ascending order, each with its rank.
    positions: Vec<(u32, usize)>,
}

impl<'a> QueryProfiler<'a> {
    fn new(snapshot: Snapshot<'a>) -> Self {
        Self {
            snapshot,
            scratch: QueryScratch::default(),
            points: Vec::new(),
            new_points: Vec::new(),
            bins: Vec::new(),
            new_bins: Vec::new(),
            sizes: Vec::new(),
            neighbours: Vec::new(),
            positions: Vec::new(),
        }
    }

    /// Scans everything for query `number` and adds the result of each setting to the profiles.
    fn run(&mut self, number: usize, query: &Query, counts: &[usize], profiles: &mut [Profile]) {
        let snapshot = self.snapshot;
        let residual_squared = snapshot.rotate_for_estimates(&query.vector, &mut self.scratch);
        snapshot.nearest_cells(usize::MAX, &mut self.scratch);
        snapshot.reset_scan(&mut self.scratch);
        let most = profiles.iter().filter_map(|p| p.grid.reranks.last());
        let most = most.copied().max().unwrap_or(1);
        self.points.clear();
        self.new_points.clear();
        self.bins.clear();
        self.new_bins.clear();
        self.neighbours.clear();
        self.neighbours.resize(
            query.neighbours.len(),
            Neighbour {
                cell: usize::MAX,
                bin: f32::INFINITY,
                estimate: f32::INFINITY,
            },
        );
        self.positions.clear();
        self.positions
            .extend(query.neighbours.iter().copied().zip(0..));
        self.positions.sort_unstable();
        let mut stop = vec![0; profiles.len()];
        for cell in 0..self.scratch.cells.len() {
            self.scan_cell(cell, residual_squared, query, most);
            for (at, profile) in profiles.iter_mut().enumerate() {
                let is_stop = profile.grid.probes.get(stop[at]) == Some(&(cell + 1));
                if is_stop && number < counts[at] {
                    self.merge_new(most);
                    self.record(stop[at], query.radii[at], profile);
                }
                stop[at] += usize::from(is_stop);
            }
        }
        // Cells without admitted points are not visited, so more probes change nothing.
        for (at, profile) in profiles.iter_mut().enumerate() {
            if number < counts[at] {
                self.merge_new(most);
                for probes in stop[at]..profile.grid.probes.len() {
                    self.record(probes, query.radii[at], profile);
                }
                profile.queries += 1;
            }
        }
    }

    /// Orders the bins of a cell and scans all of its codes.
    fn scan_cell(&mut self, cell: usize, residual_squared: f32, query: &Query, most: usize) {
        let snapshot = self.snapshot;
        let limit = match self.points.len() >= most {
            true => self.points[most - 1],
            false => f32::INFINITY,
        };
        self.scratch.bins.clear();
        snapshot.score_bins(cell, residual_squared, f32::INFINITY, &mut self.scratch);
        let bins = std::mem::take(&mut self.scratch.bins);
        for bin in &bins {
            let points = snapshot.bin(bin.at);
            self.new_bins.push((bin.estimate, points.len as u32));
            let inside = points.first..points.first + points.len as u32;
            let from = (self.positions).partition_point(|(p, _)| *p < inside.start);
            let to = (self.positions).partition_point(|(p, _)| *p < inside.end);
            let limit = if from < to { f32::INFINITY } else { limit };
            self.scratch.found.clear();
            snapshot.scan_bin(&points, limit, &mut self.scratch);
            let found = &self.scratch.found;
            for (position, number) in &self.positions[from..to] {
                if let Some(f) = found.iter().find(|f| f.at == *position) {
                    self.neighbours[*number] = Neighbour {
                        cell,
                        bin: bin.estimate,
                        estimate: f.estimate,
                    };
                }
            }
            let others = found.iter().filter(|f| Some(f.at) != query.position);
            self.new_points.extend(others.map(|f| f.estimate));
        }
        self.scratch.bins = bins;
    }

    /// Merges new entries into the sorted lists.
    fn merge_new(&mut self, most: usize) {
        // A stable sort merges two sorted runs.
        if !self.new_points.is_empty() {
            self.new_points.sort_unstable_by(f32::total_cmp);
            self.points.append(&mut self.new_points);
            self.points.sort_by(f32::total_cmp);
            self.points.truncate(most);
        }
        if !self.new_bins.is_empty() {
            let nearer = |a: &(f32, u32), b: &(f32, u32)| a.0.total_cmp(&b.0);
            self.new_bins.sort_unstable_by(nearer);
            self.bins.append(&mut self.new_bins);
            self.bins.sort_by(nearer);
            self.sizes.clear();
            let mut sum = 0;
            self.sizes.extend(self.bins.iter().map(|(_, size)| {
                sum += u64::from(*size);
                sum
            }));
        }
    }

    /// Adds the result of a query whose k-th neighbour has the squared distance `radius`, for a number of probes.
    fn record(&self, probes: usize, radius: f32, profile: &mut Profile) {
        let Profile {
            grid,
            found,
            codes,
            candidates,
            bins,
            ..
        } = profile;
        let (cells, k) = (grid.probes[probes], grid.k);
        bins[probes] += self.bins.len() as u64;
        let within: [usize; RERANK_STEPS] =
            RERANK_PRUNE_RATIOS.map(|ratio| self.points.partition_point(|e| *e <= ratio * radius));
        for (rerank, count) in grid.reranks.iter().enumerate() {
            let row = probes * grid.reranks.len() + rerank;
            let limit = match self.points.get(count - 1) {
                Some(limit) => *limit,
                None => f32::INFINITY,
            };
            let bin_limits = BIN_PRUNE_RATIOS.map(|ratio| bin_limit(limit, ratio));
            let mut first = [[0u32; RERANK_STEPS]; BIN_STEPS];
            for n in self.neighbours[..k].iter() {
                if n.cell >= cells || n.estimate > limit {
                    continue;
                }
                let bin = bin_limits.partition_point(|bin_limit| *bin_limit < n.bin);
                let ratio = RERANK_PRUNE_RATIOS
                    .iter()
                    .position(|ratio| n.estimate <= ratio * radius);
                if let (true, Some(ratio)) = (bin < BIN_STEPS, ratio) {
                    first[bin][ratio] += 1;
                }
            }
            let mut so_far = [0u32; RERANK_STEPS];
            for (bin, first) in first.iter().enumerate() {
                let mut sum = 0;
                for (ratio, count) in first.iter().enumerate() {
                    sum += count;
                    so_far[ratio] += sum;
                    found[(row * BIN_STEPS + bin) * RERANK_STEPS + ratio] += so_far[ratio];
                }
                let scanned = self.bins.partition_point(|(e, _)| *e <= bin_limits[bin]);
                let scanned = scanned.checked_sub(1).map_or(0, |last| self.sizes[last]);
                // A search first scans bins with about three times as many points as candidates.
                let least = self
                    .sizes
                    .last()
                    .copied()
                    .unwrap_or(0)
                    .min(3 * *count as u64);
                codes[row * BIN_STEPS + bin] += scanned.max(least);
            }
            for (ratio, within) in within.iter().enumerate() {
                candidates[row * RERANK_STEPS + ratio] += (*within).min(*count) as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests;
