//! Measuring what a recall target takes, on points that were held out of the training.
//!
//! For each target, from the lowest to the highest, [`Ladder`] searches for a setting. Prices are those of the work,
//! never of the clock, so that the table is the same on every machine.

use std::sync::Arc;

use garlic_linalg::permutation;
use garlic_simd::CODE_LANES;
use rayon::prelude::*;

use super::calibration::{Calibration, Setting};
use super::ladder::{Ladder, Query};
use super::tempered::calibration_queries;
use super::{Body, Index, TemperedBody, View};
use crate::cancel::Cancel;
use crate::error::Result;
use crate::search::{Plan, Work};
use crate::train::streams;

/// Numbers of neighbours that are measured, each with its share of the queries: a query that asks for more says
/// more about the recall, and takes longer.
const KS: [(usize, f64); 3] = [(1, 1.0), (10, 0.6), (100, 0.2)];
/// Recall targets that are measured; a search interpolates between them.
const TARGETS: [f64; 9] = [0.6, 0.8, 0.85, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995];
/// Vectors whose distances to all queries are computed together: they stay in a cache.
const BLOCK: usize = 1024;

/// The table for an index of tempered cells whose points at `held` (positions) took no part in the training;
/// empty for any other.
pub(crate) fn calibrate(
    index: &Index,
    held: &[u32],
    cancel: &Cancel,
    step: &dyn Fn(usize, usize),
) -> Result<Calibration> {
    let (ks, shares): (Vec<usize>, Vec<f64>) =
        KS.into_iter().filter(|(k, _)| 2 * k < index.len()).unzip();
    let mut table = Calibration {
        queries: held.len(),
        points: index.len(),
        grouped: false,
        settings: Vec::new(),
    };
    let Body::Tempered(body) = &index.body else {
        return Ok(table);
    };
    if held.is_empty() {
        return Ok(table);
    }
    // Positions go cell by cell, and fewer queries are asked for more neighbours: the first of them must come from
    // everywhere.
    let order = permutation(held.len(), index.config.seed, streams::CALIBRATION_ORDER);
    let held: Vec<u32> = order.into_iter().map(|i| held[i as usize]).collect();
    let queries = truth(index, &held, &ks, cancel)?;
    table.grouped = body.groups().is_some();
    for (at, k) in ks.iter().enumerate() {
        let count = (queries.len() as f64 * shares[at]).ceil() as usize;
        let mut ladder = Ladder::new(index, body, &queries[..count], at, *k);
        let first = table.settings.len();
        let mut place = ladder.bottom();
        for (done, target) in TARGETS.iter().enumerate() {
            step(at * TARGETS.len() + done, ks.len() * TARGETS.len());
            let Some(reached) = ladder.reach(place, *target, cancel)? else {
                break;
            };
            let plan = reached.plan;
            table.settings.push(Setting {
                k: *k,
                recall: *target,
                measured: reached.recall,
                probes: plan.probes,
                bins: plan.bins,
                rerank: plan.rerank,
                slack: plan.slack,
                trust: plan.trust,
            });
            place = reached.place;
        }
        // A search interpolates between settings. Where that does not do for a target, its own setting is to be taken whole.
        for number in first..table.settings.len() {
            let target = table.settings[number].recall;
            let plan = table.plan(*k, target, index.cells());
            if ladder.recall_of(&plan, cancel)? < target {
                table.settings[number].measured = target;
            }
        }
    }
    Ok(table)
}

impl Index {
    /// Lays the index out anew and measures again what recall targets take.
    ///
    /// A build measures this on points that it held out. As points are added, neighbours come closer while codes
    /// stay as coarse as they are; until this is called, a search makes up for it by aiming higher. The queries are
    /// points that have been added and to which no cell has been fitted, if there are enough of them, else any. An
    /// index of fewer than ten points is left as it is.
    ///
    /// # Errors
    /// An index built by the published method is not calibrated, one whose points lie in two cells not again; a damaged
    /// file; no worker threads.
    pub fn recalibrate(&mut self) -> Result<()> {
        let body = self.changing()?;
        self.check_order()?;
        let view = View::new(self, body);
        let values = self.len() * self.space.dim();
        let count = calibration_queries(self.len(), values, &self.config);
        if count == 0 {
            return Ok(());
        }
        let mut queries: Vec<u64> = (0..view.cells())
            .filter_map(|cell| view.tail(cell))
            .flat_map(|(tail, first)| (first..).zip(&tail.ids))
            .filter(|(position, _)| view.is_alive(*position))
            .map(|(_, id)| *id)
            // Points of the base that have come from other cells since took part in its training.
            .filter(|id| self.lookup().position(*id).is_none())
            .collect();
        if queries.len() < count {
            queries = self.ids();
        }
        queries.sort_unstable();
        let chosen = permutation(queries.len(), self.config.seed, streams::CALIBRATION);
        let chosen = chosen.into_iter().take(count);
        let chosen: Vec<u64> = chosen.map(|i| queries[i as usize]).collect();
        let mut next = self.clone();
        next.compact()?;
        let positions = chosen.iter().filter_map(|id| next.lookup().position(*id));
        let mut held: Vec<u32> = positions.collect();
        held.sort_unstable();
        let workers = next.workers.clone();
        let calibration = workers
            .get()?
            .install(|| calibrate(&next, &held, &Cancel::default(), &|_, _| {}))?;
        if let Body::Tempered(body) = &mut next.body {
            Arc::make_mut(body).calibration = calibration;
        }
        *self = next;
        Ok(())
    }
}

impl View<'_> {
    /// What the distances to all points that count cost, on the scale of [`price`]: their vectors are read in order.
    pub(crate) fn price_of_all(&self) -> f64 {
        let vector = self.index.vectors.row_bytes(self.index.space.dim()) as f64;
        let count = self.counted() as f64;
        let byte = match (count * vector) as usize {
            0..CACHED => 0.02,
            _ => 0.05,
        };
        count * (3.0 + vector * byte)
    }

    /// What a search costs when a share of the points counts, on the scale of [`price`].
    ///
    /// A plan does not say how many codes will be scanned; they take about twice as long as what comes before them. With
    /// fewer points that count, bins are left out later: the time grows with about the root of their share.
    pub(crate) fn price_of_search(&self, plan: &Plan, share: f64) -> f64 {
        let (rank, wide) = (self.body.model.rank(), self.body.model.dim());
        let cells = self.cells().max(1);
        let probes = plan.probes.min(cells);
        let bins = self.bins() * probes / cells;
        let before = Work {
            cells_projected: probes as u64,
            projection_madds: (probes * rank * wide) as u64,
            ordering_madds: (bins * rank) as u64,
            ..Work::default()
        };
        let after = Work {
            candidates: plan.rerank as u64,
            ..Work::default()
        };
        let price = |work: &Work| price(self.index, self.body, work);
        (3.0 * price(&before) + price(&after)) / share.sqrt()
    }
}

/// What some work costs, in nanoseconds: fitted once to the times of single queries on one core (60,000 and a million
/// points, eight and four bits, 333 settings; it tells times to 5 to 8 % of them). Only ratios matter.
pub(super) fn price(index: &Index, body: &TemperedBody, work: &Work) -> f64 {
    let vector = index.vectors.row_bytes(index.space.dim()) as f64;
    let code = body.learned.block_bytes() as f64 / CODE_LANES as f64;
    // Codes that no cache holds come at the speed of memory, here and there; a vector nearly always does.
    let code_byte = match body.learned.blocks.len() {
        0..CACHED => 0.035,
        _ => 0.06,
    };
    work.projection_madds as f64 * 0.01
        + work.cells_projected as f64 * 50.0
        + work.ordering_madds as f64 * 0.14
        + work.codes as f64 * (1.2 + code * code_byte)
        + work.candidates as f64 * (70.0 + vector * 0.012)
}

/// Bytes of codes that a cache of today holds.
pub(crate) const CACHED: usize = 16 << 20;

/// The held-out points with the distances of their true neighbours, by brute force.
fn truth(index: &Index, held: &[u32], ks: &[usize], cancel: &Cancel) -> Result<Vec<Query>> {
    let (dim, points) = (index.space.dim(), index.first_positions());
    let most = ks.iter().copied().max().unwrap_or(1);
    held.par_chunks(held.len().div_ceil(2 * rayon::current_num_threads().max(1)))
        .map(|held| {
            let mut lists: Vec<Vec<f32>> = vec![Vec::new(); held.len()];
            let vectors: Vec<Vec<f32>> = held
                .iter()
                .map(|p| {
                    let mut vector = Vec::new();
                    index.vectors.read(dim, *p as usize, &mut vector);
                    index.embedding.as_query(&mut vector);
                    vector
                })
                .collect();
            let mut bytes = vec![Vec::new(); held.len()];
            let prepared: Vec<_> = vectors
                .iter()
                .zip(&mut bytes)
                .map(|(v, b)| index.vectors.prepare(v, b))
                .collect();
            for block in points.chunks(BLOCK) {
                cancel.check()?;
                for ((own, query), list) in held.iter().zip(&prepared).zip(&mut lists) {
                    let others = block.iter().filter(|p| *p != own);
                    list.extend(others.map(|p| index.vectors.distance(query, *p as usize)));
                    if list.len() > most {
                        list.select_nth_unstable_by(most - 1, f32::total_cmp);
                        list.truncate(most);
                    }
                }
            }
            Ok(held
                .iter()
                .zip(lists)
                .map(|(p, mut list)| {
                    list.sort_unstable_by(f32::total_cmp);
                    Query {
                        position: *p as usize,
                        radii: ks.iter().map(|k| list[k - 1]).collect(),
                    }
                })
                .collect())
        })
        .collect::<Result<Vec<Vec<Query>>>>()
        .map(|parts| parts.into_iter().flatten().collect())
}
