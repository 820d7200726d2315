//! Measuring what a recall target takes, on points that were held out of the training.
//!
//! Settings are run as a search runs them, on all held-out points. For each target, from the lowest to the
//! highest, the search for a setting climbs: whichever parameter gains most recall for its price is raised until
//! the target is met, and then whatever can be lowered again is. Prices are those of the work, never of the
//! clock, so that the table is the same on every machine.

use std::collections::HashMap;
use std::sync::Arc;

use garlic_linalg::permutation;
use garlic_simd::CODE_LANES;
use rayon::prelude::*;

use super::calibration::{Calibration, Setting};
use super::tempered::calibration_queries;
use super::{Body, Index, TemperedBody, View};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::search::{Best, Plan, TemperedScratch, Work};
use crate::train::streams;

/// Numbers of neighbours that are measured, each with its share of the queries: a query that asks for more says
/// more about the recall, and takes longer.
const KS: [(usize, f64); 3] = [(1, 1.0), (10, 0.6), (100, 0.2)];
/// Recall targets that are measured; a search interpolates between them.
const TARGETS: [f64; 9] = [0.6, 0.8, 0.85, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995];
/// Vectors whose distances to all queries are computed together: they stay in a cache.
const BLOCK: usize = 1024;
/// Queries that one task runs.
const CHUNK: usize = 32;
/// Relative tolerance when distances are compared, as in every recall of this project.
const TOLERANCE: f32 = 1e-6;
/// How far beyond the worst candidate a bin may be estimated.
const SLACKS: [f32; 8] = [1.0, 1.08, 1.16, 1.25, 1.35, 1.5, 1.75, 2.5];
/// How far beyond the k-th distance a candidate may be estimated.
const TRUSTS: [f32; 8] = [1.05, 1.1, 1.15, 1.2, 1.3, 1.5, 2.0, f32::MAX];

/// A point that was held out: its position, and the squared distance of its k-th neighbour for every k.
struct Query {
    position: usize,
    radii: Vec<f32>,
}

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
    for (at, k) in ks.iter().enumerate() {
        let count = (queries.len() as f64 * shares[at]).ceil() as usize;
        let mut ladder = Ladder::new(index, body, &queries[..count], at, *k);
        let mut place = [1.min(ladder.top(PROBES)), 0, 1, 1];
        for (done, target) in TARGETS.iter().enumerate() {
            step(at * TARGETS.len() + done, ks.len() * TARGETS.len());
            let Some(found) = ladder.reach(place, *target, cancel)? else {
                break;
            };
            let plan = ladder.plan(found);
            table.settings.push(Setting {
                k: *k,
                recall: *target,
                measured: ladder.measure(found, Share::All, cancel)?.recall,
                probes: plan.probes,
                bins: plan.bins,
                rerank: plan.rerank,
                slack: plan.slack,
                trust: plan.trust,
            });
            place = found;
        }
    }
    Ok(table)
}

/// Which parameter a place on the ladder's four scales belongs to.
const PROBES: usize = 0;
const RERANK: usize = 1;
const SLACK: usize = 2;
const TRUST: usize = 3;

/// A place on the scale of every parameter.
type Place = [usize; 4];

/// The settings of one k in steps, each parameter on a scale of its own.
struct Ladder<'a> {
    index: &'a Index,
    body: &'a TemperedBody,
    queries: &'a [Query],
    /// Place of k in the queries' radii.
    at: usize,
    k: usize,
    probes: Vec<usize>,
    reranks: Vec<usize>,
    known: HashMap<(Place, Share), Measured>,
}

/// How many of the queries a setting is tried on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Share {
    /// A quarter, to see which settings are worth more.
    Some,
    All,
}

/// What one setting did.
#[derive(Clone, Copy)]
struct Measured {
    /// Mean recall less its standard error.
    recall: f64,
    error: f64,
    price: f64,
}

impl<'a> Ladder<'a> {
    fn new(
        index: &'a Index,
        body: &'a TemperedBody,
        queries: &'a [Query],
        at: usize,
        k: usize,
    ) -> Self {
        let scale = |first: usize, last: usize, grow: fn(usize) -> usize| {
            let mut scale = vec![first.min(last)];
            while scale[scale.len() - 1] < last {
                scale.push(grow(scale[scale.len() - 1]).min(last));
            }
            scale
        };
        Self {
            index,
            body,
            queries,
            at,
            k,
            probes: scale(1, index.cells(), |p| (p * 3).div_ceil(2)),
            reranks: scale(
                (k + k / 8).max(2),
                (64 * k).max(300).min(index.len()),
                |r| (r * 5).div_ceil(4),
            ),
            known: HashMap::new(),
        }
    }

    fn top(&self, scale: usize) -> usize {
        match scale {
            PROBES => self.probes.len() - 1,
            RERANK => self.reranks.len() - 1,
            SLACK => SLACKS.len() - 1,
            _ => TRUSTS.len() - 1,
        }
    }

    fn plan(&self, place: Place) -> Plan {
        Plan {
            probes: self.probes[place[PROBES]],
            rerank: self.reranks[place[RERANK]],
            slack: SLACKS[place[SLACK]],
            trust: TRUSTS[place[TRUST]],
            ..Plan::everything(self.k)
        }
    }

    /// The cheapest setting found that meets the target, starting at `place`; none when none does.
    fn reach(&mut self, mut place: Place, target: f64, cancel: &Cancel) -> Result<Option<Place>> {
        while self.measure(place, Share::All, cancel)?.recall < target {
            let here = self.measure(place, Share::Some, cancel)?;
            let mut best: Option<(f64, Place)> = None;
            for next in self.moves(place, 1) {
                let there = self.measure(next, Share::Some, cancel)?;
                let gain = (there.recall - here.recall) / (there.price - here.price).max(1.0);
                if best.is_none_or(|(most, _)| gain > most) {
                    best = Some((gain, next));
                }
            }
            match best {
                None => return Ok(None),
                Some((gain, next)) if gain > 0.0 => place = next,
                // Raising one limit brings nothing while another one binds.
                Some(_) => {
                    for scale in [PROBES, RERANK, SLACK, TRUST] {
                        place[scale] = (place[scale] + 1).min(self.top(scale));
                    }
                }
            }
        }
        loop {
            let mut cheaper: Option<(Place, f64)> = None;
            let price = self.measure(place, Share::All, cancel)?.price;
            let down = self.moves(place, -1);
            let trades = down
                .iter()
                .flat_map(|p| self.moves(*p, 1))
                .filter(|p| *p != place);
            let tries: Vec<Place> = down.iter().copied().chain(trades).collect();
            for next in tries {
                let least = cheaper.map_or(price * 0.99, |(_, price)| price);
                let rough = self.measure(next, Share::Some, cancel)?;
                if rough.recall + 3.0 * rough.error < target || rough.price > least * 1.03 {
                    continue;
                }
                let there = self.measure(next, Share::All, cancel)?;
                if there.recall >= target && there.price < least {
                    cheaper = Some((next, there.price));
                }
            }
            match cheaper {
                None => return Ok(Some(place)),
                Some((next, _)) => place = next,
            }
        }
    }

    /// The places one step away in one direction.
    fn moves(&self, place: Place, direction: isize) -> Vec<Place> {
        [PROBES, RERANK, SLACK, TRUST]
            .into_iter()
            .filter_map(|scale| {
                let mut next = place;
                next[scale] = place[scale].checked_add_signed(direction)?;
                (next[scale] <= self.top(scale)).then_some(next)
            })
            .collect()
    }

    fn measure(&mut self, place: Place, share: Share, cancel: &Cancel) -> Result<Measured> {
        if let Some(known) = self.known.get(&(place, share)) {
            return Ok(*known);
        }
        cancel.check()?;
        let plan = self.plan(place);
        let queries = match share {
            Share::Some => &self.queries[..self.queries.len().div_ceil(4)],
            Share::All => self.queries,
        };
        let parts: Vec<Sums> = queries
            .par_chunks(CHUNK)
            .map(|queries| run(self.index, self.body, queries, self.at, &plan))
            .collect();
        let mut sums = Sums::default();
        for part in parts {
            sums.found += part.found;
            sums.squares += part.squares;
            sums.work += part.work;
        }
        let (n, k) = (queries.len() as f64, self.k as f64);
        let mean = sums.found as f64 / (n * k);
        let variance = (sums.squares as f64 / (n * k * k) - mean * mean).max(0.0);
        let error = (variance / n).sqrt();
        let measured = Measured {
            recall: mean - error,
            error,
            price: price(self.index, self.body, &sums.work) / n,
        };
        self.known.insert((place, share), measured);
        Ok(measured)
    }
}

/// Sums over queries: whole numbers, so that they do not depend on how threads share the queries.
#[derive(Default)]
struct Sums {
    found: u64,
    squares: u64,
    work: Work,
}

/// Runs one plan on some queries; `at` is the place of its k in the radii.
fn run(index: &Index, body: &TemperedBody, queries: &[Query], at: usize, plan: &Plan) -> Sums {
    let mut sums = Sums::default();
    // One more, for the query finds itself.
    let wider = Plan {
        k: plan.k + 1,
        rerank: plan.rerank + 1,
        ..*plan
    };
    let (mut scratch, mut best) = (TemperedScratch::default(), Best::default());
    let mut vector = Vec::new();
    for query in queries {
        index
            .vectors
            .read(index.space.dim(), query.position, &mut vector);
        index.embedding.as_query(&mut vector);
        sums.work += View::new(index, body).search(&vector, &wider, &mut scratch, &mut best);
        let own = index.ids[query.position];
        let radius = query.radii[at].sqrt() * (1.0 + TOLERANCE);
        let hits = best.hits();
        let others = hits.iter().filter(|h| h.id != own).take(plan.k);
        let found = others.filter(|h| h.distance <= radius).count() as u64;
        sums.found += found;
        sums.squares += found * found;
    }
    sums
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
    /// An index built by the published method is not calibrated; a damaged file; no worker threads.
    pub fn recalibrate(&mut self) -> Result<()> {
        let Body::Tempered(body) = &self.body else {
            return Err(Error::Unchanging);
        };
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
    /// A plan does not say how many codes will be scanned; they take about as long as what comes before them. With
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
        (2.0 * price(&before) + price(&after)) / share.sqrt()
    }
}

/// What some work costs, in nanoseconds: fitted once to the times of single queries on one core (60,000 and a
/// million points). Only ratios matter.
fn price(index: &Index, body: &TemperedBody, work: &Work) -> f64 {
    let vector = index.vectors.row_bytes(index.space.dim()) as f64;
    let code = body.learned.block_bytes() as f64 / CODE_LANES as f64;
    // Codes that no cache holds come at the speed of memory, here and there; a vector nearly always does.
    let code_byte = match body.learned.blocks.len() {
        0..CACHED => 0.035,
        _ => 0.07,
    };
    work.projection_madds as f64 * 0.07
        + work.cells_projected as f64 * 50.0
        + work.ordering_madds as f64 * 0.15
        + work.codes as f64 * code * code_byte
        + work.candidates as f64 * (70.0 + vector * 0.012)
}

/// Bytes of codes that a cache of today holds.
pub(crate) const CACHED: usize = 16 << 20;

/// The held-out points with the distances of their true neighbours, by brute force.
fn truth(index: &Index, held: &[u32], ks: &[usize], cancel: &Cancel) -> Result<Vec<Query>> {
    let (dim, len) = (index.space.dim(), index.len());
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
            for block in (0..len).step_by(BLOCK) {
                cancel.check()?;
                for ((own, query), list) in held.iter().zip(&prepared).zip(&mut lists) {
                    let others = (block..(block + BLOCK).min(len)).filter(|p| *p != *own as usize);
                    list.extend(others.map(|p| index.vectors.distance(query, p)));
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
