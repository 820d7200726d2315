//! Calibration: measures the cheapest setting for each recall target.
//!
//! In: an index and points that were held out of its training. Out: a [`Calibration`] table. `ground_truth` finds the
//! true neighbours of these points. `profile` predicts the recall and cost of every setting, `measure` runs the
//! setting that looks cheapest, and the prediction is corrected until a setting meets the target. If no setting meets
//! a target for less than the cost of reading everything, searches read everything. `exhaustive` reports such
//! targets. `graph` decides whether a neighbour graph pays and measures it.

use crate::config::Config;
use crate::plan::{Calibration, Plan, Setting};
use crate::segment::{Index, Snapshot};
use crate::streams;

mod exhaustive;
mod graph;
mod ground_truth;
mod measure;
mod profile;

pub use exhaustive::{Cause, Exhaustive};
pub(crate) use graph::{measure_graph, nodes, wants_graph};

use garlic_linalg::{Rows, permutation};

use crate::search::CostModel;
use garlic_core::{Cancel, Result};
use ground_truth::ground_truth;
use measure::{Evaluator, Measured};
use profile::{Profile, RERANK_PRUNE_RATIOS, profile};

/// Numbers of neighbours to measure, each with its share of the queries. A query for more neighbours is more
/// informative and takes longer.
const KS: [(usize, f64); 3] = [(1, 1.0), (10, 0.6), (100, 0.2)];
/// Recall targets to measure. Searches interpolate between them.
const TARGETS: [f64; 10] = [0.6, 0.8, 0.85, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999];
/// Upper limit of the codes that all profiles together scan, and limits of the number of queries for them.
const PROFILED_CODES: usize = 300_000_000;
const MIN_PROFILE_QUERIES: usize = 128;
const MAX_PROFILE_QUERIES: usize = 256;
/// Upper limit of the runs per target.
const MAX_RUNS_PER_TARGET: usize = 8;
/// Limits of the correction of a prediction.
const MIN_CORRECTION: f64 = 0.02;
const MAX_CORRECTION: f64 = 2.0;
/// The search for a setting stops if the misses exceed this share of the allowed misses.
const TIGHT_MISS_SHARE: f64 = 0.85;

/// Number of calibration queries for `points` points with `values` coordinates in total.
pub(crate) fn calibration_queries(points: usize, values: usize, config: &Config) -> usize {
    const MAX_MADDS: f64 = 1.5e11;
    let affordable = (MAX_MADDS / values.max(1) as f64) as usize;
    let asked = config.tuning.calibration_queries;
    asked.min(points / 10).min(affordable.max(100))
}

/// Chooses the rows that are held out of the training as calibration queries, in order.
///
/// They are at most a tenth of the points, and fewer if brute force over them would take long.
pub(crate) fn held_out(vectors: Rows<'_>, config: &Config) -> Vec<u32> {
    let count = calibration_queries(vectors.len(), vectors.data().len(), config);
    let mut ids = permutation(vectors.len(), config.seed, streams::CALIBRATION);
    ids.truncate(count);
    ids.sort_unstable();
    ids
}

/// The queries of a calibration, with the numbers of neighbours and of queries that are measured for each.
#[derive(Default)]
pub(crate) struct Measurements {
    queries: Vec<measure::Query>,
    ks: Vec<usize>,
    counts: Vec<usize>,
}

/// Calibrates an index. The points at the positions `held` took no part in the training.
pub(crate) fn calibrate(
    index: &Index,
    held: &[u32],
    cancel: &Cancel,
    step: &dyn Fn(usize, usize),
) -> Result<(Calibration, Measurements)> {
    let (ks, shares): (Vec<usize>, Vec<f64>) =
        KS.into_iter().filter(|(k, _)| 2 * k < index.len()).unzip();
    let mut table = Calibration {
        queries: held.len(),
        points: index.len(),
        ..Calibration::default()
    };
    if held.is_empty() {
        return Ok((table, Measurements::default()));
    }
    // Positions are ordered by cell, and larger `k` use only the first queries. Shuffle them.
    let order = permutation(held.len(), index.config.seed, streams::CALIBRATION_ORDER);
    let held: Vec<u32> = order.into_iter().map(|i| held[i as usize]).collect();
    let queries = ground_truth(&Snapshot::new(index), &held, &ks, cancel)?;
    table.coarse_routing = index.segment.coarse_quantizer().is_some();
    let cost_model = CostModel::new(index);
    let counts: Vec<usize> = shares
        .iter()
        .map(|share| (queries.len() as f64 * share).ceil() as usize)
        .collect();
    let profiled = PROFILED_CODES / index.len().max(1);
    let profiled = profiled.clamp(MIN_PROFILE_QUERIES, MAX_PROFILE_QUERIES);
    let profiled: Vec<usize> = counts.iter().map(|count| profiled.min(*count)).collect();
    let profiles = profile(index, &queries, &ks, &profiled, &cost_model);
    for (at, profile) in profiles.iter().enumerate() {
        let evaluator = Evaluator {
            index,
            queries: &queries[..counts[at]],
            at,
            k: ks[at],
            cost_model: &cost_model,
        };
        let first = table.settings.len();
        let mut tuner = Tuner::new(&evaluator, profile, table.coarse_routing);
        for (done, target) in TARGETS.iter().enumerate() {
            step(at * TARGETS.len() + done, ks.len() * TARGETS.len());
            let setting = tuner.find_setting(*target, cancel)?;
            table.settings.push(setting);
            if setting.everything {
                break;
            }
        }
        // A search interpolates between settings. If that misses a target, cap the measured recall so that the target
        // uses its own setting.
        for number in first..table.settings.len() {
            let Setting {
                recall: target,
                everything,
                ..
            } = table.settings[number];
            let plan = table.plan(ks[at], target);
            if !everything && !plan.all && evaluator.run(&plan, cancel)?.recall < target {
                table.cap_measured(first..=number);
            }
        }
    }
    let measurements = Measurements {
        queries,
        ks,
        counts,
    };
    Ok((table, measurements))
}

/// Finds the cheapest setting for one target after the other.
struct Tuner<'a> {
    evaluator: &'a Evaluator<'a>,
    profile: &'a Profile,
    coarse_routing: bool,
    /// Factor on the allowed misses that corrects too optimistic predictions.
    correction: f64,
}

impl<'a> Tuner<'a> {
    fn new(evaluator: &'a Evaluator<'a>, profile: &'a Profile, coarse_routing: bool) -> Self {
        Self {
            evaluator,
            profile,
            coarse_routing,
            correction: 1.0,
        }
    }

    /// The cheapest setting found that meets the target, or reading everything if that costs less.
    fn find_setting(&mut self, target: f64, cancel: &Cancel) -> Result<Setting> {
        let allowed = 1.0 - target;
        let mut best: Option<(Plan, Measured)> = None;
        let mut tried = Vec::new();
        while tried.len() < MAX_RUNS_PER_TARGET && self.correction > MIN_CORRECTION {
            let wanted = 1.0 - allowed * self.correction;
            let grid_point = self.profile.cheapest(wanted, self.evaluator.cost_model);
            if tried.contains(&grid_point) {
                if best.is_some() {
                    break;
                }
                self.correction *= 0.9;
                continue;
            }
            tried.push(grid_point);
            let plan = self.profile.plan(grid_point, self.coarse_routing);
            let measured = (self.evaluator).run_ratios(&plan, RERANK_PRUNE_RATIOS, cancel)?;
            let enough = measured.iter().position(|m| m.recall >= target);
            if let Some(at) = enough
                && best.is_none_or(|(_, m)| measured[at].cost < m.cost)
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
            if enough.is_some() && missed > TIGHT_MISS_SHARE * allowed {
                break;
            }
            let factor = (allowed / missed.max(1e-9)).clamp(0.25, 1.5);
            self.correction = (self.correction * factor).min(MAX_CORRECTION);
        }
        self.correction = self.correction.max(2.0 * MIN_CORRECTION);
        let affordable = best.filter(|(_, m)| m.cost < self.evaluator.cost_model.everything);
        Ok(match affordable {
            Some((plan, measured)) => setting(&plan, target, measured.recall),
            None => Setting {
                everything: true,
                ..setting(&Plan::everything(self.evaluator.k), target, 1.0)
            },
        })
    }
}

/// Number of queries of a check, and the numbers of neighbours and targets that it covers.
const CHECK_QUERIES: usize = 300;
const CHECKED_TARGETS: [(usize, f64); 5] =
    [(10, 0.9), (10, 0.95), (10, 0.99), (1, 0.95), (100, 0.95)];
/// Corrections to try, starting with the current one.
const CORRECTIONS: [f64; 7] = [1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0];

/// Checks the targets of a changed index, with some of its points as queries. Returns the calibration with the
/// smallest correction that meets them, but not less than the current one. If none does, the result is marked stale.
/// Runs in the current rayon pool.
pub(super) fn check(index: &Index, cancel: &Cancel) -> Result<Calibration> {
    let snapshot = Snapshot::new(index);
    let points: Vec<u32> = snapshot.admitted().collect();
    let seed = index.config.seed ^ points.len() as u64;
    let order = permutation(points.len(), seed, streams::CALIBRATION);
    let chosen = order.into_iter().take(CHECK_QUERIES);
    let chosen: Vec<u32> = chosen.map(|i| points[i as usize]).collect();
    let ks = KS.map(|(k, _)| k);
    let queries = ground_truth(&snapshot, &chosen, &ks, cancel)?;
    let cost_model = CostModel::new(index);
    let mut next = Calibration {
        checked: points.len(),
        ..(*index.calibration).clone()
    };
    let present = next.correction;
    for correction in CORRECTIONS.into_iter().filter(|c| *c >= present) {
        next.correction = correction;
        let mut is_met = true;
        for (k, target) in CHECKED_TARGETS {
            let at = KS.iter().position(|(other, _)| *other == k).unwrap_or(0);
            // Fewer queries suffice for many neighbours.
            let count = (queries.len() as f64 * KS[at].1).ceil() as usize;
            let evaluator = Evaluator {
                index,
                queries: &queries[..count],
                at,
                k,
                cost_model: &cost_model,
            };
            let plan = next.plan_for(k, target, points.len(), snapshot.graph().is_some());
            is_met = plan.all || {
                let measured = evaluator.run(&plan, cancel)?;
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

/// The table entry of a plan with its measured recall.
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
        expand_ratio: plan.expand_ratio.unwrap_or(0.0),
        everything: plan.all,
    }
}
