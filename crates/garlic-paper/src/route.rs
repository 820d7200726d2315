//! Routing: the k_G cells nearest to a query in Mahalanobis distance, exactly, without evaluating most of them.
//!
//! In: a query in the space of the Gaussians. Out: cells, nearest first.
//!
//! A short prefix bounds the distance to every cell, [`GROUP`] cells at a time: the first coordinates, or where there are
//! many, those along the principal axes of the means, which tell cells apart best. The cell with the smallest bound is then
//! extended by some coordinates, again and again. One that is complete and still smallest is the next nearest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use garlic_core::SearchStats;
use garlic_simd::GROUP;

use crate::gaussians::{Axes, Buffers, Factors, Gaussians, packed_len};

/// Coordinates of the first bound.
const PREFIX: usize = 32;
/// Coordinates added each time a cell is looked at again.
const STEP: usize = 64;
/// The prefix is computed by another formula than the distance itself; its rounding must not matter.
const PREFIX_MARGIN: f32 = 1.0 - 1e-3;

/// Dimensions from which on the prefix is taken along axes of its own.
const MANY_COORDINATES: usize = 3 * PREFIX;

/// Leading blocks of all inverse factors, [`GROUP`] cells side by side. Empty for factors that are not full:
/// those are cheap to evaluate.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Router {
    prefix: usize,
    /// Axes of the prefix, and for each cell what rounding may have added to its bound for each unit of a query's length.
    axes: Option<(Axes, Vec<f32>)>,
    /// Packed inverse blocks, interleaved, one group of cells after the other.
    inverses: Vec<f32>,
    /// Leading coordinates of the means, likewise.
    means: Vec<f32>,
}

/// Buffers of one query.
#[derive(Debug, Default)]
pub(crate) struct RouteScratch {
    /// The cells that were found, nearest first.
    pub(crate) cells: Vec<u32>,
    heap: BinaryHeap<Reverse<Candidate>>,
    /// Multiply-adds spent by the time each of the cells was found.
    pub(crate) trail: Vec<u64>,
    /// Solutions so far of the cells that were looked at.
    solutions: Vec<Vec<f32>>,
    used: usize,
}

/// A cell with a lower bound of its squared distance.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Candidate {
    bound: f32,
    /// Squares of the coordinates behind the bound; it is the first bound that counts as long as that is larger.
    sum: f32,
    cell: u32,
    /// Coordinates behind the bound; all of them means it is the distance.
    done: u32,
    /// Where the solution so far is kept, once it is.
    slot: u32,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.bound
            .total_cmp(&other.bound)
            .then(self.cell.cmp(&other.cell))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Router {
    pub(crate) fn new(model: &Gaussians) -> Self {
        let Factors::Full(_) = model.factors else {
            return Self::default();
        };
        let axes = match model.dim() >= MANY_COORDINATES {
            true => Axes::of(model.means.as_rows(), PREFIX, 0),
            false => None,
        };
        let prefix = axes.as_ref().map_or(PREFIX.min(model.dim()), Axes::len);
        let entries = packed_len(prefix);
        let groups = model.len().div_ceil(GROUP);
        let mut router = Self {
            prefix,
            axes: None,
            inverses: vec![0.0; groups * entries * GROUP],
            means: vec![0.0; groups * prefix * GROUP],
        };
        let mut buffers = Buffers::default();
        let mut margins = Vec::with_capacity(model.len());
        let (mut factor, mut mean) = (vec![0.0; entries], vec![0.0; prefix]);
        for cell in 0..model.len() {
            match &axes {
                Some(axes) => {
                    axes.project(model.mean(cell), &mut mean);
                    let scales = axes.marginal(model, cell, &mut buffers, &mut factor);
                    margins.push(scales.margin(1.0));
                }
                None => {
                    factor.copy_from_slice(&model.factor(cell)[..entries]);
                    mean.copy_from_slice(&model.mean(cell)[..prefix]);
                }
            }
            let (group, lane) = (cell / GROUP, cell % GROUP);
            for (e, value) in inverse_block(&factor, prefix).into_iter().enumerate() {
                router.inverses[(group * entries + e) * GROUP + lane] = value;
            }
            for (i, value) in mean.iter().enumerate() {
                router.means[(group * prefix + i) * GROUP + lane] = *value;
            }
        }
        router.axes = axes.map(|axes| (axes, margins));
        router
    }

    pub(crate) fn bytes(&self) -> u64 {
        let axes = self.axes.as_ref().map_or(0, |(axes, margins)| {
            axes.bytes() + size_of_val(&margins[..])
        });
        (axes + size_of_val(&self.inverses[..]) + size_of_val(&self.means[..])) as u64
    }

    /// [`Router::route`] with buffers of its own.
    pub(crate) fn order(&self, model: &Gaussians, query: &[f32], count: usize) -> Vec<u32> {
        let (mut scratch, mut stats) = (RouteScratch::default(), SearchStats::default());
        self.route(model, query, count, &mut scratch, &mut stats);
        scratch.cells
    }

    /// Leaves the `count` nearest cells in `scratch`; ties go to the lower cell.
    pub(crate) fn route(
        &self,
        model: &Gaussians,
        query: &[f32],
        count: usize,
        scratch: &mut RouteScratch,
        stats: &mut SearchStats,
    ) {
        scratch.cells.clear();
        scratch.trail.clear();
        stats.cells_scored += model.len() as u64;
        scratch.used = 0;
        let mut start = std::mem::take(&mut scratch.heap).into_vec();
        start.clear();
        self.bounds(model, query, stats, &mut start);
        scratch.heap = BinaryHeap::from(start);

        while scratch.cells.len() < count {
            let Some(Reverse(mut best)) = scratch.heap.pop() else {
                break;
            };
            if best.done as usize == model.dim() {
                scratch.cells.push(best.cell);
                scratch.trail.push(stats.routing_madds);
                continue;
            }
            extend(model, query, &mut best, scratch, stats);
            scratch.heap.push(Reverse(best));
        }
    }

    /// A first bound for every cell.
    fn bounds(
        &self,
        model: &Gaussians,
        query: &[f32],
        stats: &mut SearchStats,
        out: &mut Vec<Reverse<Candidate>>,
    ) {
        let mut push = |cell: usize, bound: f32, done: usize| {
            let (cell, done, slot) = (cell as u32, done as u32, u32::MAX);
            out.push(Reverse(Candidate {
                bound,
                sum: 0.0,
                cell,
                done,
                slot,
            }));
        };
        if self.prefix == 0 {
            for cell in 0..model.len() {
                push(cell, simple_distance(model, query, cell), model.dim());
            }
            stats.routing_madds += (model.len() * 2 * model.dim()) as u64;
            return;
        }
        let entries = self.prefix * (self.prefix + 1) / 2 * GROUP;
        let mut along = [0.0; PREFIX];
        let prefix = &mut along[..self.prefix];
        match &self.axes {
            Some((axes, _)) => {
                axes.project(query, prefix);
                stats.routing_madds += (self.prefix * model.dim()) as u64;
            }
            None => prefix.copy_from_slice(&query[..self.prefix]),
        }
        let length = garlic_simd::dot(prefix, prefix).sqrt().max(1.0);
        let groups = self
            .inverses
            .chunks_exact(entries)
            .zip(self.means.chunks_exact(self.prefix * GROUP));
        for (group, (inverses, means)) in groups.enumerate() {
            let norms = garlic_simd::prefix_norms(inverses, means, prefix);
            for (lane, norm) in norms.into_iter().enumerate() {
                let cell = group * GROUP + lane;
                if cell < model.len() {
                    let margin = match &self.axes {
                        Some((_, margins)) => margins[cell] * length,
                        None => 0.0,
                    };
                    let bound = (norm.sqrt() - margin).max(0.0).powi(2);
                    push(cell, bound * PREFIX_MARGIN, 0);
                }
            }
        }
        stats.routing_madds += (model.len() * (entries / GROUP + self.prefix)) as u64;
    }
}

/// Squared distance for a diagonal or isotropic factor.
fn simple_distance(model: &Gaussians, query: &[f32], cell: usize) -> f32 {
    let factor = model.factor(cell);
    match model.factors {
        Factors::Isotropic(_) => {
            garlic_simd::l2_squared(query, model.mean(cell)) / (factor[0] * factor[0])
        }
        _ => query
            .iter()
            .zip(model.mean(cell))
            .zip(factor)
            .map(|((x, m), l)| ((x - m) / l) * ((x - m) / l))
            .sum(),
    }
}

/// Adds coordinates to a candidate's bound by forward substitution.
fn extend(
    model: &Gaussians,
    query: &[f32],
    candidate: &mut Candidate,
    scratch: &mut RouteScratch,
    stats: &mut SearchStats,
) {
    if candidate.slot == u32::MAX {
        candidate.slot = scratch.used as u32;
        scratch.used += 1;
        if scratch.solutions.len() < scratch.used {
            scratch.solutions.push(Vec::with_capacity(model.dim()));
        }
        scratch.solutions[candidate.slot as usize].clear();
    }
    let solution = &mut scratch.solutions[candidate.slot as usize];
    let cell = candidate.cell as usize;
    let (mean, factor) = (model.mean(cell), model.factor(cell));
    let from = candidate.done as usize;
    let to = (from + STEP).min(model.dim());
    let mut sum = candidate.sum;
    for i in from..to {
        let row = &factor[i * (i + 1) / 2..][..=i];
        let y = (query[i] - mean[i] - garlic_simd::dot(&row[..i], solution)) / row[i];
        solution.push(y);
        sum += y * y;
    }
    stats.routing_madds += (from..to).map(|i| i as u64 + 2).sum::<u64>();
    candidate.sum = sum;
    candidate.done = to as u32;
    // The distance itself once it is complete: the first bound was lowered by more than its rounding.
    candidate.bound = match to == model.dim() {
        true => sum,
        false => sum.max(candidate.bound),
    };
}

/// Inverse of the leading `m` x `m` block of a packed factor, packed.
fn inverse_block(factor: &[f32], m: usize) -> Vec<f32> {
    let at = |i: usize, j: usize| i * (i + 1) / 2 + j;
    let mut inverse = vec![0.0f64; at(m, 0)];
    for j in 0..m {
        for i in j..m {
            let sum: f64 = (j..i)
                .map(|k| f64::from(factor[at(i, k)]) * inverse[at(k, j)])
                .sum();
            let unit = if i == j { 1.0 } else { 0.0 };
            inverse[at(i, j)] = (unit - sum) / f64::from(factor[at(i, i)]);
        }
    }
    inverse.into_iter().map(|v| v as f32).collect()
}
