//! What every setting would do, predicted from one thorough look at each of some queries.
//!
//! A query is run once over all cells, without leaving anything out. For each of its true neighbours this tells the rank of
//! its cell, the estimate of its bin and its own estimate; with the sorted estimates of all points and bins that is
//! enough to say, for any number of probes, candidates and any prune ratios, which neighbours a search would find and
//! what it would cost. The real search lowers its limit while it runs, so a prediction is close, not exact: settings
//! that are chosen by it are measured before they are used.

use super::measure::Query;
use crate::plan::Plan;
use crate::search::{Prices, QueryScratch, reach};
use crate::segment::{Index, Snapshot};
use rayon::prelude::*;

/// Bins are scanned up to this many times the estimate of the worst candidate.
pub(super) const BIN_PRUNE_RATIOS: [f32; 19] = [
    1.0, 1.04, 1.08, 1.12, 1.16, 1.2, 1.25, 1.3, 1.35, 1.42, 1.5, 1.6, 1.75, 2.0, 2.5, 3.0, 5.0,
    10.0, 1e9,
];
/// Candidates are re-ranked up to this many times the k-th distance so far; the last one leaves none out.
pub(super) const RERANK_PRUNE_RATIOS: [f32; 10] =
    [1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.7, 2.0, f32::MAX];
/// Most candidates that are considered, whatever k is: more cost as much as reading everything does.
const MOST_CANDIDATES: usize = 16_384;
/// Queries that one task looks at.
const CHUNK: usize = 16;

const BIN_STEPS: usize = BIN_PRUNE_RATIOS.len();
const RERANK_STEPS: usize = RERANK_PRUNE_RATIOS.len();

/// The settings that are considered for one k: every combination of these and of the prune ratios.
pub(super) struct Scales {
    pub(super) k: usize,
    pub(super) probes: Vec<usize>,
    pub(super) reranks: Vec<usize>,
}

impl Scales {
    /// Those for an index; `prices` tells how many candidates cost as much as reading everything.
    pub(super) fn new(index: &Index, k: usize, prices: &Prices) -> Self {
        let scale = |first: usize, last: usize, grow: fn(usize) -> usize| {
            let mut scale = vec![first.min(last)];
            while scale[scale.len() - 1] < last {
                scale.push(grow(scale[scale.len() - 1]).min(last));
            }
            scale
        };
        let affordable = (prices.everything / prices.candidate) as usize;
        let most = (64 * k).max(MOST_CANDIDATES).min(affordable.max(2 * k));
        Self {
            k,
            probes: scale(1, index.cells(), |p| (p * 5).div_ceil(4)),
            reranks: scale((k + k / 8).max(2), most.min(index.len()), |r| {
                (r * 9).div_ceil(8)
            }),
        }
    }
}

/// A setting by its place on the scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    probes: usize,
    rerank: usize,
    bin_ratio: usize,
    rerank_ratio: usize,
}

/// Predictions for all settings of one k: whole numbers summed over queries, so that the order of sums does not matter.
pub(super) struct Profile {
    scales: Scales,
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
    fn new(scales: Scales) -> Self {
        let (p, r) = (scales.probes.len(), scales.reranks.len());
        Self {
            queries: 0,
            found: vec![0; p * r * BIN_STEPS * RERANK_STEPS],
            codes: vec![0; p * r * BIN_STEPS],
            candidates: vec![0; p * r * RERANK_STEPS],
            bins: vec![0; p],
            scales,
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

    /// The plan of a setting.
    pub(super) fn plan(&self, place: Place, grouped: bool) -> Plan {
        Plan {
            probes: self.scales.probes[place.probes],
            rerank: self.scales.reranks[place.rerank],
            bin_prune_ratio: BIN_PRUNE_RATIOS[place.bin_ratio],
            rerank_prune_ratio: RERANK_PRUNE_RATIOS[place.rerank_ratio],
            grouped,
            ..Plan::everything(self.scales.k)
        }
    }

    /// The setting of the lowest predicted price whose predicted recall is at least `recall`; the one that finds most when
    /// none is.
    pub(super) fn cheapest(&self, recall: f64, prices: &Prices) -> Place {
        let slots = (self.queries * self.scales.k) as f64;
        // Rounded down, so that a recall of 1 is within reach of a setting that finds everything.
        let wanted = (recall * slots).ceil() as u32;
        let mut best: Option<(f64, Place)> = None;
        let mut most: Option<(u32, f64, Place)> = None;
        for (probes, cells) in self.scales.probes.iter().enumerate() {
            let base =
                prices.probes(*cells as u64 * self.queries as u64) + prices.bins(self.bins[probes]);
            for rerank in 0..self.scales.reranks.len() {
                let row = probes * self.scales.reranks.len() + rerank;
                for bin_ratio in 0..BIN_STEPS {
                    let codes = prices.codes(self.codes[row * BIN_STEPS + bin_ratio]);
                    let at = (row * BIN_STEPS + bin_ratio) * RERANK_STEPS;
                    // The least ratio that is enough is the cheapest.
                    let enough = self.found[at..at + RERANK_STEPS]
                        .iter()
                        .position(|found| *found >= wanted);
                    let rerank_ratio = enough.unwrap_or(RERANK_STEPS - 1);
                    let candidates = self.candidates[row * RERANK_STEPS + rerank_ratio];
                    let price = base + codes + prices.candidates(candidates);
                    let place = Place {
                        probes,
                        rerank,
                        bin_ratio,
                        rerank_ratio,
                    };
                    let found = self.found[at + rerank_ratio];
                    if enough.is_some() {
                        if best.is_none_or(|(least, _)| price < least) {
                            best = Some((price, place));
                        }
                    } else if most.is_none_or(|(f, p, _)| found > f || found == f && price < p) {
                        most = Some((found, price, place));
                    }
                }
            }
        }
        let best = best.map(|(_, place)| place);
        best.or(most.map(|(.., place)| place)).unwrap_or(Place {
            probes: 0,
            rerank: 0,
            bin_ratio: 0,
            rerank_ratio: 0,
        })
    }
}

/// Profiles for every k, each from the first of `queries`, as many as `counts` says.
pub(super) fn profile(
    index: &Index,
    queries: &[Query],
    ks: &[usize],
    counts: &[usize],
    prices: &Prices,
) -> Vec<Profile> {
    let empty = || -> Vec<Profile> {
        let scales = ks.iter().map(|k| Scales::new(index, *k, prices));
        scales.map(Profile::new).collect()
    };
    let most = counts.iter().copied().max().unwrap_or(0).min(queries.len());
    let numbered: Vec<(usize, &Query)> = queries[..most].iter().enumerate().collect();
    numbered
        .par_chunks(CHUNK)
        .fold(empty, |mut profiles, queries| {
            let mut look = Look::new(Snapshot::new(index));
            for (number, query) in queries {
                look.run(*number, query, counts, &mut profiles);
            }
            profiles
        })
        .reduce(empty, |mut all, part| {
            all.iter_mut().zip(&part).for_each(|(a, p)| a.add(p));
            all
        })
}

/// What a query sees of one of its true neighbours.
#[derive(Clone, Copy)]
struct Neighbour {
    /// How many cells come before its own.
    cell: usize,
    /// Estimate of its bin.
    bin: f32,
    /// Its own estimate.
    estimate: f32,
}

/// Buffers of one query.
struct Look<'a> {
    view: Snapshot<'a>,
    scratch: QueryScratch,
    vector: Vec<f32>,
    /// Estimates of the nearest points so far, sorted, and of those that have come since.
    points: Vec<f32>,
    new_points: Vec<f32>,
    /// Bins so far: estimate and size, sorted, and those that have come since.
    bins: Vec<(f32, u32)>,
    new_bins: Vec<(f32, u32)>,
    /// Points in as many of the first bins.
    sizes: Vec<u64>,
    neighbours: Vec<Neighbour>,
    /// Positions of the neighbours in order, each with its rank.
    positions: Vec<(u32, usize)>,
}

impl<'a> Look<'a> {
    fn new(view: Snapshot<'a>) -> Self {
        Self {
            view,
            scratch: QueryScratch::default(),
            vector: Vec::new(),
            points: Vec::new(),
            new_points: Vec::new(),
            bins: Vec::new(),
            new_bins: Vec::new(),
            sizes: Vec::new(),
            neighbours: Vec::new(),
            positions: Vec::new(),
        }
    }

    /// Looks at everything that query `number` could see, and adds what each setting would make of it.
    fn run(&mut self, number: usize, query: &Query, counts: &[usize], profiles: &mut [Profile]) {
        let view = self.view;
        query.read(&view, &mut self.vector);
        let outside = view.rotate_roughly(&self.vector, &mut self.scratch);
        view.nearest_cells(usize::MAX, &mut self.scratch);
        view.start(&mut self.scratch);
        let most = profiles.iter().filter_map(|p| p.scales.reranks.last());
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
            self.look_into(cell, outside, query, most);
            for (at, profile) in profiles.iter_mut().enumerate() {
                let is_stop = profile.scales.probes.get(stop[at]) == Some(&(cell + 1));
                if is_stop && number < counts[at] {
                    self.settle(most);
                    self.note(stop[at], query.radii[at], profile);
                }
                stop[at] += usize::from(is_stop);
            }
        }
        // Cells without points that count are not visited: more probes change nothing.
        for (at, profile) in profiles.iter_mut().enumerate() {
            if number < counts[at] {
                self.settle(most);
                for probes in stop[at]..profile.scales.probes.len() {
                    self.note(probes, query.radii[at], profile);
                }
                profile.queries += 1;
            }
        }
    }

    /// Orders the bins of a cell and scans all of its codes.
    fn look_into(&mut self, cell: usize, outside: f32, query: &Query, most: usize) {
        let view = self.view;
        let limit = match self.points.len() >= most {
            true => self.points[most - 1],
            false => f32::INFINITY,
        };
        self.scratch.bins.clear();
        view.score_bins(cell, outside, f32::INFINITY, &mut self.scratch);
        let bins = std::mem::take(&mut self.scratch.bins);
        for bin in &bins {
            let points = view.bin(bin.at);
            self.new_bins.push((bin.estimate, points.len as u32));
            let inside = points.first..points.first + points.len as u32;
            let from = (self.positions).partition_point(|(p, _)| *p < inside.start);
            let to = (self.positions).partition_point(|(p, _)| *p < inside.end);
            let limit = if from < to { f32::INFINITY } else { limit };
            self.scratch.found.clear();
            view.scan_bin(&points, limit, &mut self.scratch);
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
            let others = found.iter().filter(|f| f.at != query.position);
            self.new_points.extend(others.map(|f| f.estimate));
        }
        self.scratch.bins = bins;
    }

    /// Merges what has come into the sorted lists.
    fn settle(&mut self, most: usize) {
        // Two sorted runs, which a stable sort merges.
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

    /// Adds what a query with the squared k-th distance `radius` finds with a number of probes.
    fn note(&self, probes: usize, radius: f32, profile: &mut Profile) {
        let Profile {
            scales,
            found,
            codes,
            candidates,
            bins,
            ..
        } = profile;
        let (cells, k) = (scales.probes[probes], scales.k);
        bins[probes] += self.bins.len() as u64;
        let within: [usize; RERANK_STEPS] =
            RERANK_PRUNE_RATIOS.map(|ratio| self.points.partition_point(|e| *e <= ratio * radius));
        for (rerank, count) in scales.reranks.iter().enumerate() {
            let row = probes * scales.reranks.len() + rerank;
            let limit = match self.points.get(count - 1) {
                Some(limit) => *limit,
                None => f32::INFINITY,
            };
            let reaches = BIN_PRUNE_RATIOS.map(|ratio| reach(limit, ratio));
            let mut first = [[0u32; RERANK_STEPS]; BIN_STEPS];
            for n in self.neighbours[..k].iter() {
                if n.cell >= cells || n.estimate > limit {
                    continue;
                }
                let bin = reaches.partition_point(|reach| *reach < n.bin);
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
                let scanned = self.bins.partition_point(|(e, _)| *e <= reaches[bin]);
                let scanned = scanned.checked_sub(1).map_or(0, |last| self.sizes[last]);
                // The first bins hold about three times the candidates wanted.
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
