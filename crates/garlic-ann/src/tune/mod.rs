//! Measuring what a recall target takes, on points that were held out of the training.
//!
//! `profile` predicts what every setting would do, `measure` runs the one that looks cheapest as a search would, and the
//! prediction is corrected until a setting meets its target (`price` says what "cheap" means). Where no setting meets a
//! target for less than it costs to read everything, everything is read: a target is a promise.

use crate::config::Config;
use crate::plan::{Calibration, Plan, Setting};
use crate::segment::{Index, Snapshot};
use crate::streams;

mod exhaustive;
mod measure;
mod profile;
mod truth;

pub use exhaustive::{Cause, Exhaustive};

use garlic_linalg::{Rows, permutation};

use crate::search::Prices;
use garlic_core::{Cancel, Result};
use measure::{Measured, Trial};
use profile::{Profile, RERANK_PRUNE_RATIOS, profile};
use truth::truth;

/// Numbers of neighbours that are measured, each with its share of the queries: a query that asks for more says
/// more about the recall, and takes longer.
const KS: [(usize, f64); 3] = [(1, 1.0), (10, 0.6), (100, 0.2)];
/// Recall targets that are measured; a search interpolates between them.
const TARGETS: [f64; 10] = [0.6, 0.8, 0.85, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999];
/// Codes that all profiles together look at, which bounds the time they take, and the numbers of queries for them.
const PROFILED_CODES: usize = 300_000_000;
const LEAST_PROFILED: usize = 128;
const MOST_PROFILED: usize = 256;
/// Runs that a target may take.
const TRIES: usize = 8;
/// Bounds of the correction of a prediction.
const LEAST_CORRECTION: f64 = 0.02;
const MOST_CORRECTION: f64 = 2.0;
/// A setting that misses more than this share of what its target allows is good enough.
const TIGHT: f64 = 0.85;

/// Queries that a calibration asks of `points` points with `values` coordinates in all.
pub(crate) fn calibration_queries(points: usize, values: usize, config: &Config) -> usize {
    const MOST_WORK: f64 = 1.5e11;
    let affordable = (MOST_WORK / values.max(1) as f64) as usize;
    let asked = config.tuning.calibration_queries;
    asked.min(points / 10).min(affordable.max(100))
}

/// Rows that the training must not see: the queries of the calibration, in order.
///
/// At most a tenth of the points, and fewer when brute force over them would take long.
pub(crate) fn held_out(vectors: Rows<'_>, config: &Config) -> Vec<u32> {
    let count = calibration_queries(vectors.len(), vectors.data().len(), config);
    let mut ids = permutation(vectors.len(), config.seed, streams::CALIBRATION);
    ids.truncate(count);
    ids.sort_unstable();
    ids
}

/// The table for an index whose points at `held` (positions) took no part in the training.
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
        ..Calibration::default()
    };
    if held.is_empty() {
        return Ok(table);
    }
    // Positions go cell by cell, and fewer queries are asked for more neighbours: the first of them must come from
    // everywhere.
    let order = permutation(held.len(), index.config.seed, streams::CALIBRATION_ORDER);
    let held: Vec<u32> = order.into_iter().map(|i| held[i as usize]).collect();
    let queries = truth(&Snapshot::new(index), &held, &ks, cancel)?;
    table.grouped = index.segment.groups().is_some();
    let prices = Prices::new(index);
    let counts: Vec<usize> = shares
        .iter()
        .map(|share| (queries.len() as f64 * share).ceil() as usize)
        .collect();
    let profiled = PROFILED_CODES / index.len().max(1);
    let profiled = profiled.clamp(LEAST_PROFILED, MOST_PROFILED);
    let profiled: Vec<usize> = counts.iter().map(|count| profiled.min(*count)).collect();
    let profiles = profile(index, &queries, &ks, &profiled, &prices);
    for (at, profile) in profiles.iter().enumerate() {
        let trial = Trial {
            index,
            queries: &queries[..counts[at]],
            at,
            k: ks[at],
            prices: &prices,
        };
        let first = table.settings.len();
        let mut tuner = Tuner::new(&trial, profile, table.grouped);
        for (done, target) in TARGETS.iter().enumerate() {
            step(at * TARGETS.len() + done, ks.len() * TARGETS.len());
            let setting = tuner.meet(*target, cancel)?;
            table.settings.push(setting);
            if setting.everything {
                break;
            }
        }
        // A search interpolates between settings. Where that does not do for a target, its own setting is to be taken whole.
        for number in first..table.settings.len() {
            let Setting {
                recall: target,
                everything,
                ..
            } = table.settings[number];
            let plan = table.plan(ks[at], target);
            if !everything && !plan.all && trial.run(&plan, cancel)?.recall < target {
                table.take_whole(first..=number);
            }
        }
    }
    Ok(table)
}

/// Looks for the cheapest setting that meets a target, one target after the other.
struct Tuner<'a> {
    trial: &'a Trial<'a>,
    profile: &'a Profile,
    grouped: bool,
    /// By how much predictions have been too optimistic so far: a target that allows m misses asks the profile for m times
    /// this.
    correction: f64,
}

impl<'a> Tuner<'a> {
    fn new(trial: &'a Trial<'a>, profile: &'a Profile, grouped: bool) -> Self {
        Self {
            trial,
            profile,
            grouped,
            correction: 1.0,
        }
    }

    /// The cheapest setting found that meets the target: everything where no other does for less.
    fn meet(&mut self, target: f64, cancel: &Cancel) -> Result<Setting> {
        let allowed = 1.0 - target;
        let mut best: Option<(Plan, Measured)> = None;
        let mut tried = Vec::new();
        while tried.len() < TRIES && self.correction > LEAST_CORRECTION {
            let wanted = 1.0 - allowed * self.correction;
            let place = self.profile.cheapest(wanted, self.trial.prices);
            if tried.contains(&place) {
                if best.is_some() {
                    break;
                }
                self.correction *= 0.9;
                continue;
            }
            tried.push(place);
            let plan = self.profile.plan(place, self.grouped);
            let measured = (self.trial).run_ratios(&plan, RERANK_PRUNE_RATIOS, cancel)?;
            let enough = measured.iter().position(|m| m.recall >= target);
            if let Some(at) = enough
                && best.is_none_or(|(_, m)| measured[at].price < m.price)
            {
                let rerank_prune_ratio = RERANK_PRUNE_RATIOS[at];
                best = Some((
                    Plan {
                        rerank_prune_ratio,
                        ..plan
                    },
                    measured[at],
                ));
            }
            let missed = 1.0 - measured[enough.unwrap_or(RERANK_PRUNE_RATIOS.len() - 1)].recall;
            if enough.is_some() && missed > TIGHT * allowed {
                break;
            }
            let factor = (allowed / missed.max(1e-9)).clamp(0.25, 1.5);
            self.correction = (self.correction * factor).min(MOST_CORRECTION);
        }
        self.correction = self.correction.max(2.0 * LEAST_CORRECTION);
        let affordable = best.filter(|(_, m)| m.price < self.trial.prices.everything);
        Ok(match affordable {
            Some((plan, measured)) => setting(&plan, target, measured.recall),
            None => Setting {
                everything: true,
                ..setting(&Plan::everything(self.trial.k), target, 1.0)
            },
        })
    }
}

/// Queries of a check, and what it looks at: numbers of neighbours and targets.
const CHECK_QUERIES: usize = 300;
const CHECKED: [(usize, f64); 5] = [(10, 0.9), (10, 0.95), (10, 0.99), (1, 0.95), (100, 0.95)];
/// Corrections that are tried, from the present one on.
const CORRECTIONS: [f64; 7] = [1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0];

/// The calibration of an index that has changed: the least correction, not less than the present one, with which targets are
/// met by queries like its points; marked as stale where none does. Runs in rayon's current pool.
pub(super) fn check(index: &Index, cancel: &Cancel) -> Result<Calibration> {
    let view = Snapshot::new(index);
    let points: Vec<u32> = view.admitted().collect();
    let seed = index.config.seed ^ points.len() as u64;
    let order = permutation(points.len(), seed, streams::CALIBRATION);
    let chosen = order.into_iter().take(CHECK_QUERIES);
    let chosen: Vec<u32> = chosen.map(|i| points[i as usize]).collect();
    let ks = KS.map(|(k, _)| k);
    let queries = truth(&view, &chosen, &ks, cancel)?;
    let prices = Prices::new(index);
    let mut next = Calibration {
        checked: points.len(),
        ..(*index.calibration).clone()
    };
    let present = next.correction;
    for correction in CORRECTIONS.into_iter().filter(|c| *c >= present) {
        next.correction = correction;
        let mut is_met = true;
        for (k, target) in CHECKED {
            let at = KS.iter().position(|(other, _)| *other == k).unwrap_or(0);
            // Fewer queries say enough about many neighbours.
            let count = (queries.len() as f64 * KS[at].1).ceil() as usize;
            let trial = Trial {
                index,
                queries: &queries[..count],
                at,
                k,
                prices: &prices,
            };
            let plan = next.plan_for(k, target, points.len());
            is_met = plan.all || {
                let measured = trial.run(&plan, cancel)?;
                measured.mean + measured.error >= target
            };
            if !is_met {
                break;
            }
        }
        if is_met {
            return Ok(next);
        }
    }
    next.stale = true;
    Ok(next)
}

/// A plan that measured `measured`, as the table keeps it.
fn setting(plan: &Plan, target: f64, measured: f64) -> Setting {
    Setting {
        k: plan.k,
        recall: target,
        measured,
        probes: plan.probes.min(u32::MAX as usize),
        bins: plan.bins,
        rerank: plan.rerank.min(u32::MAX as usize),
        bin_prune_ratio: plan.bin_prune_ratio.min(f32::MAX),
        rerank_prune_ratio: plan.rerank_prune_ratio.min(f32::MAX),
        everything: plan.all,
    }
}
