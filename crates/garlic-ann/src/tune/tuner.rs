//! Finds the settings of the calibration table for one number of neighbours.
//!
//! The profile names the cheapest setting for each target. One or two runs with all queries measure what it really
//! finds, and correct the next prediction. A setting need not meet its target exactly, because a search interpolates
//! between settings by their *measured* recall. Above the resolution of the profile, settings are extrapolated.

use super::measure::{Evaluator, Measured};
use super::profile::{Profile, RERANK_PRUNE_RATIOS};
use crate::plan::{Calibration, Plan, Setting};
use garlic_core::{Cancel, Result};

/// Recall targets that settings are looked for. Searches interpolate between them.
pub(super) const TARGETS: [f64; 8] = [0.6, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999];
/// Upper limit of the runs for a target.
const MAX_RUNS: usize = 3;
/// A setting is of use if it costs less than this share of reading everything, which finds all neighbours.
const MAX_COST_SHARE: f64 = 0.5;
/// Limits of the correction of a prediction.
const MIN_CORRECTION: f64 = 0.02;
const MAX_CORRECTION: f64 = 8.0;
/// A setting is close enough to a target if it misses this share of the allowed misses at least and at most.
const MIN_MISS_SHARE: f64 = 0.4;
const MAX_MISS_SHARE: f64 = 1.7;
/// The last setting may miss this many times as much as the last target allows. Extrapolation makes up for it.
const MAX_EXTRAPOLATED_SHARE: f64 = 2.5;
/// About how many times as much an extrapolated setting costs.
const MORE_WORK_COST: f64 = 2.0;
/// A rerank prune ratio may lose this share of the allowed misses if no ratio meets the target.
const PRUNED_MISS_SHARE: f64 = 0.05;

/// A setting that has been measured.
struct Tried {
    target: f64,
    plan: Plan,
    measured: Measured,
}

/// Finds settings for one target after the other.
pub(super) struct Tuner<'a> {
    evaluator: &'a Evaluator<'a>,
    profile: &'a Profile,
    coarse_routing: bool,
    /// Factor on the allowed misses that corrects predictions.
    correction: f64,
    /// The last plan that was run without pruning of candidates, to extrapolate from.
    last: Option<(Plan, Measured)>,
    settings: Vec<Tried>,
}

impl<'a> Tuner<'a> {
    pub(super) fn new(
        evaluator: &'a Evaluator<'a>,
        profile: &'a Profile,
        coarse_routing: bool,
    ) -> Self {
        Self {
            evaluator,
            profile,
            coarse_routing,
            correction: 1.0,
            last: None,
            settings: Vec::new(),
        }
    }

    /// The settings for all targets. The last one reads everything if that costs less than the next target.
    pub(super) fn find_settings(
        mut self,
        step: &dyn Fn(usize),
        cancel: &Cancel,
    ) -> Result<Vec<Setting>> {
        let mut everything_from = None;
        for (number, target) in TARGETS.into_iter().enumerate() {
            step(number);
            if self
                .settings
                .last()
                .is_some_and(|s| s.measured.recall >= target)
            {
                continue;
            }
            if !self.find_setting(target, cancel)? {
                everything_from = Some(target);
                break;
            }
        }
        let mut settings: Vec<Setting> = Vec::new();
        for tried in &self.settings {
            // A dearer setting that measured no more is of no use.
            if settings
                .last()
                .is_none_or(|s| s.measured < tried.measured.recall)
            {
                settings.push(setting(&tried.plan, tried.target, tried.measured.recall));
            }
        }
        if let Some(target) = everything_from {
            settings.push(Setting {
                everything: true,
                ..setting(&Plan::everything(self.evaluator.k), target, 1.0)
            });
        }
        Ok(settings)
    }

    /// Looks for a setting close to a target and keeps the closest. Returns false if reading everything costs less.
    fn find_setting(&mut self, target: f64, cancel: &Cancel) -> Result<bool> {
        let most_cost = self.most_cost();
        let allowed = 1.0 - target;
        let is_last = target == TARGETS[TARGETS.len() - 1];
        if is_last && !self.is_measurable(target) && self.is_extrapolated(target, cancel)? {
            return Ok(true);
        }
        let mut kept: Option<(f64, Tried)> = None;
        for _ in 0..MAX_RUNS {
            let Some(plan) = self.next_plan(target, 1.0 - allowed * self.correction) else {
                break;
            };
            let run = (self.evaluator).run_unless_hopeless(
                &plan,
                RERANK_PRUNE_RATIOS,
                (target, most_cost),
                cancel,
            )?;
            let measured = match run {
                Ok(measured) => measured,
                Err(early) => {
                    if early.cost >= most_cost {
                        break;
                    }
                    self.last = Some((plan, early));
                    let factor = allowed / (1.0 - early.mean).max(1e-9);
                    self.correct(factor.clamp(0.2, 0.8));
                    continue;
                }
            };
            let most = measured[measured.len() - 1];
            self.last = Some((plan, most));
            let goal = target.min(most.recall - PRUNED_MISS_SHARE * allowed);
            let at = measured.iter().position(|m| m.recall >= goal);
            let at = at.unwrap_or(measured.len() - 1);
            let (plan, measured) = (
                Plan {
                    rerank_prune_ratio: RERANK_PRUNE_RATIOS[at],
                    ..plan
                },
                measured[at],
            );
            let share = (1.0 - measured.recall).max(1e-9) / allowed;
            self.correct((1.0 / share).clamp(0.25, 1.5));
            let is_affordable = measured.cost < most_cost;
            let off = share.ln().abs();
            let is_close = (MIN_MISS_SHARE..=MAX_MISS_SHARE).contains(&share);
            if is_affordable && kept.as_ref().is_none_or(|(other, _)| off < *other) {
                let tried = Tried {
                    target,
                    plan,
                    measured,
                };
                kept = Some((off, tried));
            }
            // Interpolation ends at the last target. A little beyond the table, searches extrapolate.
            let is_enough = match is_last {
                true => share <= MAX_EXTRAPOLATED_SHARE,
                false => is_close,
            };
            if !is_affordable || is_enough {
                break;
            }
        }
        self.correction = self.correction.max(2.0 * MIN_CORRECTION);
        let Some((_, tried)) = kept else {
            return Ok(false);
        };
        let measured = tried.measured.recall;
        self.settings.push(tried);
        if !is_last || measured >= target {
            return Ok(true);
        }
        self.is_extrapolated(target, cancel)
    }

    /// Whether the setting that a search extrapolates from the last one is expected to meet the target for less than
    /// the cost of reading everything.
    fn is_extrapolated(&self, target: f64, cancel: &Cancel) -> Result<bool> {
        let Some(last) = self.settings.last() else {
            return Ok(false);
        };
        let table = Calibration {
            coarse_routing: self.coarse_routing,
            settings: vec![setting(&last.plan, last.target, last.measured.recall)],
            ..Calibration::default()
        };
        let plan = table.plan(self.evaluator.k, target);
        if plan.all {
            return Ok(false);
        }
        let measured = self.evaluator.run_first(&plan, cancel)?;
        Ok(measured.cost < self.most_cost())
    }

    /// Whether the queries are enough to see that a target is met.
    fn is_measurable(&self, target: f64) -> bool {
        self.evaluator.highest_recall() >= target
    }

    /// Upper limit of the cost of a setting.
    fn most_cost(&self) -> f64 {
        MAX_COST_SHARE * self.evaluator.cost_model.everything
    }

    fn correct(&mut self, factor: f64) {
        self.correction = (self.correction * factor).clamp(MIN_CORRECTION, MAX_CORRECTION);
    }

    /// The plan to run next: the cheapest with this predicted recall, or more work than the last one if the profile
    /// knows none. `None` if that would cost more than reading everything.
    fn next_plan(&self, target: f64, wanted: f64) -> Option<Plan> {
        let predicted = self.profile.cheapest(wanted, self.evaluator.cost_model);
        let plan = predicted
            .map(|(_, point)| (self.profile).plan(point, self.evaluator.k, self.coarse_routing));
        let Some((last, measured)) = self.last else {
            return plan;
        };
        // Below the resolution of the profile, more work than before is the better guess unless it costs more.
        let plan = plan.filter(|_| {
            let cost = predicted.map_or(0.0, |(cost, _)| cost);
            !self.profile.is_unresolved(wanted) || cost < MORE_WORK_COST * measured.cost
        });
        let is_less = |plan: &Plan| {
            plan.probes <= last.probes
                && plan.rerank <= last.rerank
                && plan.bin_prune_ratio <= last.bin_prune_ratio
        };
        let is_same = |plan: &Plan| {
            is_less(plan)
                && plan.probes == last.probes
                && plan.rerank == last.rerank
                && plan.bin_prune_ratio == last.bin_prune_ratio
        };
        if let Some(plan) = plan {
            match measured.recall >= target {
                true if is_same(&plan) => return None,
                true => return Some(plan),
                false if !is_less(&plan) => return Some(plan),
                false => {}
            }
        }
        (MORE_WORK_COST * measured.cost < self.most_cost()).then(|| Plan {
            probes: (last.probes + last.probes.div_ceil(2)).min(self.evaluator.index.cells()),
            rerank: last.rerank.saturating_mul(2),
            bin_prune_ratio: (last.bin_prune_ratio * 1.05).min(f32::MAX),
            ..last
        })
    }
}

/// The table entry of a plan with its measured recall.
pub(super) fn setting(plan: &Plan, target: f64, measured: f64) -> Setting {
    Setting {
        k: plan.k,
        recall: target,
        measured,
        probes: plan.probes.min(u32::MAX as usize),
        bins: plan.bins,
        rerank: plan.rerank.min(u32::MAX as usize),
        bin_prune_ratio: plan.bin_prune_ratio.min(f32::MAX),
        rerank_prune_ratio: plan.rerank_prune_ratio.min(f32::MAX),
        expand_ratio: 0.0,
        everything: plan.all,
    }
}
