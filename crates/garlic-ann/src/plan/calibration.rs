//! What a recall target takes: measured once, when the index is built.

use std::ops::RangeInclusive;

use super::Plan;
use serde::{Deserialize, Serialize};

/// Settings measured on points held out of the training, cheapest first for every `k`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Calibration {
    /// Number of points that were held out and used as queries.
    pub queries: usize,
    /// Number of points that the index had then; 0 in files of before this was written down.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub points: usize,
    /// Whether the cells were found by way of groups, of which there are only where there are very many cells.
    #[serde(default, skip_serializing_if = "is_not")]
    pub grouped: bool,
    /// How many times fewer misses a search aims at than it was asked for: targets were found to be missed as the index
    /// changed.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub correction: f64,
    /// Number of points when targets were last checked; 0 when they have not been since they were measured.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub checked: usize,
    /// Nothing less than everything was found to meet the targets since the index changed.
    #[serde(default, skip_serializing_if = "is_not")]
    pub stale: bool,
    /// The settings, ordered by k, then by recall.
    pub settings: Vec<Setting>,
}

impl Default for Calibration {
    fn default() -> Self {
        Self {
            queries: 0,
            points: 0,
            grouped: false,
            correction: 1.0,
            checked: 0,
            stale: false,
            settings: Vec::new(),
        }
    }
}

/// One setting of a search and what it measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Setting {
    /// Neighbours that the queries asked for.
    pub k: usize,
    /// The target: k-recall@k that the setting is good for.
    pub recall: f64,
    /// k-recall@k over the held-out points, less its standard error; no more than the target where interpolating from this
    /// was found not to do for it.
    pub measured: f64,
    /// Cells visited.
    pub probes: usize,
    /// Most bins scanned, as a share of all bins of the visited cells.
    pub bins: f64,
    /// Most exact distances.
    pub rerank: usize,
    /// A bin is left out when its estimate is more than this many times the worst candidate's.
    #[serde(rename = "slack")]
    pub bin_prune_ratio: f32,
    /// A candidate is left out when its estimate is more than this many times the k-th distance so far.
    #[serde(rename = "trust")]
    pub rerank_prune_ratio: f32,
    /// No setting met the target for less than it costs to read everything: that is what a search does.
    #[serde(default, skip_serializing_if = "is_not")]
    pub everything: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(value: &usize) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_not(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_one(value: &f64) -> bool {
    *value == 1.0
}

fn one() -> f64 {
    1.0
}

/// Where the points have become g times as many, 1 / g^`THICKER` of the misses are aimed at: neighbours lie closer
/// together, while codes stay as coarse as they are. See docs/internals/updates.md for what that brings.
const THICKER: f64 = 0.6;

/// By which factor there are more points now than there were when the table was measured; 1 if nobody knows.
fn growth(now: usize, then: usize) -> f64 {
    match then {
        0 => 1.0,
        then => (now as f64 / then as f64).max(1.0),
    }
}

impl Calibration {
    /// What was measured of the smallest number of neighbours that covers `k`, else of the largest.
    pub(crate) fn measured_for(&self, k: usize) -> impl DoubleEndedIterator<Item = &Setting> {
        let measured = self.settings.iter().map(|s| s.k);
        let covering = measured.clone().filter(|m| *m >= k).min();
        let near = covering.or(measured.max());
        self.settings.iter().filter(move |s| Some(s.k) == near)
    }

    /// The plan for a recall when there are `now` points: it aims at fewer misses where there are more points than were
    /// measured, or where targets were found to be missed.
    pub(crate) fn plan_for(&self, k: usize, recall: f64, now: usize) -> Plan {
        if self.stale {
            return Plan::reading_everything(k);
        }
        let growth = growth(now, self.points);
        let correction = self.correction.max(1.0) * growth.powf(THICKER);
        let plan = self.plan(k, 1.0 - (1.0 - recall) / correction);
        // As many times as many points may be as near as codes can tell.
        let rerank = (plan.rerank as f64 * growth).ceil() as usize;
        Plan { rerank, ..plan }
    }

    /// Lets each of some settings, which follow each other, be taken for its own target and no higher one. A lower target that
    /// measured more by chance would otherwise be interpolated from in place of the setting that was found for a target.
    pub(crate) fn take_whole(&mut self, numbers: RangeInclusive<usize>) {
        for setting in &mut self.settings[numbers] {
            setting.measured = setting.measured.min(setting.recall);
        }
    }

    /// The cheapest way to search `k` neighbours with this recall. What was not measured is not guessed: without a table,
    /// and far beyond it, everything is read.
    pub(crate) fn plan(&self, k: usize, recall: f64) -> Plan {
        let everything = Plan::reading_everything(k);
        let settings = || self.measured_for(k);
        let Some(near) = settings().next().map(|s| s.k) else {
            return everything;
        };
        // A little more than any setting reached: this should do for a quarter of the misses of the best of them.
        let beyond = settings().next_back().map(|s| Setting {
            measured: 1.0 - (1.0 - s.measured) / 4.0,
            probes: s.probes.saturating_mul(2),
            rerank: s.rerank.saturating_mul(4),
            bin_prune_ratio: s.bin_prune_ratio * 1.25,
            rerank_prune_ratio: f32::MAX,
            ..*s
        });
        // What was measured counts: a setting that does for more than its target is more than the target takes.
        let reached = settings().position(|s| s.measured >= recall);
        let above = reached
            .and_then(|at| settings().nth(at))
            .or(beyond.as_ref().filter(|s| s.measured >= recall));
        let before = reached.unwrap_or(settings().count());
        let below = before.checked_sub(1).and_then(|at| settings().nth(at));
        let found = match (below, above) {
            (_, None) => return everything,
            (_, Some(above)) if above.everything => return everything,
            // Nothing was missed: how much less would do nobody knows.
            (_, Some(above)) if above.measured >= 1.0 => *above,
            (Some(below), Some(above)) => between(below, above, recall),
            (None, Some(above)) => *above,
        };
        // More neighbours than were measured lie farther out: everything grows with them.
        let more = (k as f64 / near as f64).max(1.0);
        Plan {
            k,
            probes: ((found.probes as f64 * more).ceil() as usize).max(1),
            bins: (found.bins * more).min(1.0),
            rerank: ((found.rerank as f64 * more).ceil() as usize).max(k),
            bin_prune_ratio: found.bin_prune_ratio,
            rerank_prune_ratio: found.rerank_prune_ratio,
            grouped: self.grouped,
            ..Plan::everything(k)
        }
    }
}

/// The setting for a recall between those of two others: each parameter in proportion, on a scale where every
/// halving of what is missed takes the same step.
fn between(below: &Setting, above: &Setting, recall: f64) -> Setting {
    let scale = |recall: f64| -(1.0 - recall).ln();
    let (low, high) = (scale(below.measured), scale(above.measured));
    let share = (scale(recall) - low) / (high - low);
    let number = |low: f64, high: f64| low * (high / low).powf(share);
    let count = |low: usize, high: usize| number(low as f64, high as f64).ceil() as usize;
    // "Trust nothing" is written as a huge number, which is to be reached, but only at the end.
    let rerank_prune_ratio = match above.rerank_prune_ratio >= NO_TRUST {
        true => (f64::from(below.rerank_prune_ratio) / (1.0 - share).max(1e-9)) as f32,
        false => number(
            f64::from(below.rerank_prune_ratio),
            f64::from(above.rerank_prune_ratio),
        ) as f32,
    };
    Setting {
        recall,
        measured: recall,
        probes: count(below.probes, above.probes),
        bins: number(below.bins, above.bins).min(1.0),
        rerank: count(below.rerank, above.rerank),
        bin_prune_ratio: number(
            f64::from(below.bin_prune_ratio),
            f64::from(above.bin_prune_ratio),
        ) as f32,
        rerank_prune_ratio,
        ..*above
    }
}

/// Trust from which on nothing is left out.
const NO_TRUST: f32 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(k: usize, recall: f64, probes: usize, rerank: usize) -> Setting {
        Setting {
            k,
            recall,
            measured: recall,
            probes,
            bins: 1.0,
            rerank,
            bin_prune_ratio: 1.0 + recall as f32,
            rerank_prune_ratio: if recall > 0.9 { f32::MAX } else { 1.5 },
            everything: false,
        }
    }

    fn table() -> Calibration {
        Calibration {
            queries: 100,
            points: 5000,
            settings: vec![
                setting(10, 0.8, 2, 20),
                setting(10, 0.9, 4, 40),
                setting(10, 0.99, 16, 320),
                setting(100, 0.9, 8, 300),
            ],
            ..Calibration::default()
        }
    }

    #[test]
    fn a_target_that_was_measured_is_taken_as_it_is() {
        let plan = table().plan(10, 0.9);
        assert_eq!(
            (plan.probes, plan.rerank, plan.bin_prune_ratio),
            (4, 40, 1.9)
        );
        assert!(
            table().plan(10, 0.99).rerank_prune_ratio > NO_TRUST,
            "and not with less"
        );
        assert_eq!(table().plan(3, 0.5).probes, 2, "less than all: the least");
    }

    #[test]
    fn a_setting_that_does_for_more_than_its_target_is_not_taken_whole() {
        let mut table = table();
        table.settings[1].measured = 0.95;
        let plan = table.plan(10, 0.9);
        assert!(
            (2..4).contains(&plan.probes) || plan.rerank < 40,
            "{plan:?}"
        );
        assert_eq!(table.plan(10, 0.95).rerank, 40);
        // Steps of a table that need no more than what comes before them.
        table.settings[0].measured = 0.97;
        assert_eq!(table.plan(10, 0.96).rerank, 20);
        assert!((21..=320).contains(&table.plan(10, 0.98).rerank));
    }

    #[test]
    fn a_setting_that_missed_nothing_is_taken_whole() {
        let mut table = table();
        table.settings[2].measured = 1.0;
        let plan = table.plan(10, 0.95);
        assert_eq!((plan.probes, plan.rerank), (16, 320));
        assert!(plan.rerank_prune_ratio > NO_TRUST);
        table.settings[0].measured = 1.0;
        assert_eq!(table.plan(10, 0.3).rerank, 20);
    }

    #[test]
    fn a_lower_target_that_measured_more_gives_way_where_it_was_found_wanting() {
        let mut table = table();
        table.settings[0].measured = 0.95;
        assert_eq!(
            table.plan(10, 0.9).rerank,
            20,
            "interpolated from the first"
        );
        table.take_whole(0..=1);
        assert_eq!(table.plan(10, 0.9).rerank, 40, "its own");
        assert_eq!(table.plan(10, 0.8).rerank, 20);
    }

    #[test]
    fn targets_between_grow_steadily() {
        let mut last = table().plan(10, 0.8);
        for recall in [0.81, 0.85, 0.89, 0.9, 0.93, 0.95, 0.98, 0.99] {
            let plan = table().plan(10, recall);
            assert!(
                plan.probes >= last.probes && plan.rerank >= last.rerank,
                "{recall}"
            );
            assert!(plan.bin_prune_ratio >= last.bin_prune_ratio, "{recall}");
            last = plan;
        }
        let middle = table().plan(10, 0.95);
        assert!((5..16).contains(&middle.probes), "{middle:?}");
        assert!(middle.rerank_prune_ratio.is_finite());
    }

    #[test]
    fn more_points_take_more_work() {
        let then = table().plan_for(10, 0.85, 5000);
        assert_eq!(then, table().plan(10, 0.85));
        let fewer = table().plan_for(10, 0.85, 2000);
        assert_eq!(fewer, then, "fewer points are no harder");
        let twice = table().plan_for(10, 0.85, 10_000);
        assert!(
            twice.probes >= then.probes && twice.rerank >= 2 * then.rerank,
            "{twice:?}"
        );
        assert!(table().plan_for(10, 0.99, usize::MAX).all);
        let unknown = Calibration {
            points: 0,
            ..table()
        };
        assert_eq!(unknown.plan_for(10, 0.85, 10_000), then);
    }

    #[test]
    fn missed_targets_are_aimed_at_higher_and_stale_tables_read_everything() {
        let corrected = Calibration {
            correction: 2.0,
            ..table()
        };
        assert_eq!(corrected.plan_for(10, 0.8, 5000), table().plan(10, 0.9));
        let stale = Calibration {
            stale: true,
            ..table()
        };
        assert!(stale.plan_for(10, 0.1, 5000).all);
    }

    #[test]
    fn a_little_beyond_the_table_all_grows_and_farther_everything_is_read() {
        let best = table().plan(10, 0.99);
        let beyond = table().plan(10, 0.9975);
        assert_eq!(
            (beyond.probes, beyond.rerank, beyond.all),
            (2 * best.probes, 4 * best.rerank, false)
        );
        assert!(table().plan(10, 0.998).all, "nobody knows what that takes");
        let little = table().plan_for(10, 0.99, 5001);
        assert!(
            little.probes <= best.probes + 1 && little.rerank <= best.rerank + 2,
            "{little:?}"
        );
        let more = table().plan(1000, 0.9);
        assert!(
            more.probes >= 80 && more.rerank >= 3000,
            "ten times as many neighbours"
        );
        assert!(Calibration::default().plan(7, 0.9).all, "no table");
    }

    #[test]
    fn a_target_that_takes_everything_is_not_interpolated() {
        let mut table = table();
        table.settings[2].everything = true;
        table.settings[2].measured = 1.0;
        assert!(!table.plan(10, 0.9).all);
        for recall in [0.901, 0.95, 0.99, 0.999] {
            assert!(table.plan(10, recall).all, "{recall}");
        }
        assert!(!table.plan(100, 0.9).all, "another k");
    }
}
