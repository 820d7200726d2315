//! The calibration table: settings measured for recall targets when the index is built.

use super::{GraphPlan, Plan};
use serde::{Deserialize, Serialize};

/// Settings measured on points that were held out of the training. For every `k`, the cheapest comes first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Calibration {
    /// Number of held-out points, or queries of a sample, that served as queries.
    pub queries: usize,
    /// Number of points of the index at that time. 0 in old files.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub points: usize,
    /// Whether cells were found with the coarse quantizer, which only indexes with very many cells have.
    #[serde(default, rename = "grouped", skip_serializing_if = "is_false")]
    pub coarse_routing: bool,
    /// Factor by which searches reduce the allowed misses because a check found targets missed. 1 if none were.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub correction: f64,
    /// How many times fewer misses a calibration by stored points has to allow for queries like those of a sample. 1 if
    /// the index was not tuned for a sample. A training, which has no sample, starts with it as its correction.
    #[serde(default = "one", rename = "sample", skip_serializing_if = "is_one")]
    pub sample_correction: f64,
    /// Number of points at the last check of the targets. 0 if there was none since calibration.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub checked: usize,
    /// Whether a check found that only reading everything meets the targets.
    #[serde(default, skip_serializing_if = "is_false")]
    pub stale: bool,
    /// The settings, ordered by k, then by recall.
    pub settings: Vec<Setting>,
    /// The settings of searches with the neighbour graph, for every k that costs less with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graph_settings: Vec<Setting>,
    /// Number of points when a check measured the settings with the graph anew. 0 if they are those of the calibration.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub graph_points: usize,
    /// Why the index has a neighbour graph, or why not. `None` if there was nothing to decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph_decision: Option<GraphDecision>,
}

/// What the choice for or against a neighbour graph was based on. Costs are those of a search for 10 neighbours with
/// recall 0.95, in nanoseconds of the cost model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GraphDecision {
    /// Local dimension of the data around the calibration queries: the exponent with which the number of points grows
    /// with the distance.
    pub local_dimension: f64,
    /// Cost with cells and bins.
    pub bins_cost: f64,
    /// Cost with the graph: measured if there is one, otherwise predicted from the graph of a sample. `None` if cells
    /// and bins cost so little that no graph was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph_cost: Option<f64>,
}

impl Default for Calibration {
    fn default() -> Self {
        Self {
            queries: 0,
            points: 0,
            coarse_routing: false,
            correction: 1.0,
            sample_correction: 1.0,
            checked: 0,
            stale: false,
            settings: Vec::new(),
            graph_settings: Vec::new(),
            graph_points: 0,
            graph_decision: None,
        }
    }
}

/// One setting of a search, with its measured recall.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Setting {
    /// Number of neighbours per query.
    pub k: usize,
    /// The recall target (k-recall@k) that this setting was found for. It may measure a little more or less.
    pub recall: f64,
    /// Recall (k-recall@k) over the calibration queries, minus a multiple of its standard error. Searches interpolate
    /// by it.
    pub measured: f64,
    /// Number of cells visited.
    pub probes: usize,
    /// Upper limit of the scanned bins, as a share of all bins of the visited cells.
    pub bins: f64,
    /// Upper limit of the number of exact distances.
    pub rerank: usize,
    /// A bin is pruned if its estimate exceeds that of the worst candidate by this factor.
    #[serde(rename = "slack")]
    pub bin_prune_ratio: f32,
    /// A candidate is pruned if its estimate exceeds the k-th distance by this factor.
    #[serde(rename = "trust")]
    pub rerank_prune_ratio: f32,
    /// With the neighbour graph: candidates are dropped if their estimate exceeds that of the k-th by this factor. 0
    /// for settings without the graph.
    #[serde(default, skip_serializing_if = "is_zero_ratio")]
    pub expand_ratio: f32,
    /// Whether searches read everything for this target because no setting met it at a lower cost.
    #[serde(default, skip_serializing_if = "is_false")]
    pub everything: bool,
}

impl Setting {
    /// An extrapolated setting with more work than this one. It is assumed to miss a quarter of what this one misses.
    fn extrapolated(&self) -> Self {
        Self {
            measured: 1.0 - (1.0 - self.measured) / 4.0,
            probes: self.probes.saturating_mul(2),
            rerank: self.rerank.saturating_mul(4),
            bin_prune_ratio: self.bin_prune_ratio * 1.25,
            rerank_prune_ratio: f32::MAX,
            ..*self
        }
    }

    /// The same with the neighbour graph.
    fn extrapolated_in_graph(&self) -> Self {
        Self {
            measured: 1.0 - (1.0 - self.measured) / 4.0,
            rerank: self.rerank.saturating_mul(2),
            rerank_prune_ratio: f32::MAX,
            expand_ratio: 1.0 + 2.0 * (self.expand_ratio - 1.0),
            ..*self
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(value: &usize) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero_ratio(value: &f32) -> bool {
    *value == 0.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_one(value: &f64) -> bool {
    *value == 1.0
}

fn one() -> f64 {
    1.0
}

/// If the number of points has grown by the factor g, the allowed misses shrink by g to this power. Neighbours come
/// closer together, but codes keep their resolution. See docs/internals/updates.md.
const GROWTH_EXPONENT: f64 = 0.6;
/// The same with the neighbour graph. Its searches stop at a ratio of distances, which does not depend on the number of
/// points.
const GRAPH_GROWTH_EXPONENT: f64 = 0.2;

/// Growth of the number of points since calibration. 1 if unknown.
fn growth(now: usize, then: usize) -> f64 {
    match then {
        0 => 1.0,
        then => (now as f64 / then as f64).max(1.0),
    }
}

impl Calibration {
    /// The settings for the smallest measured number of neighbours that is at least `k`, or else for the largest.
    pub(crate) fn measured_for(&self, k: usize) -> impl DoubleEndedIterator<Item = &Setting> {
        let near = self.measured_k(k);
        self.settings.iter().filter(move |s| Some(s.k) == near)
    }

    fn measured_k(&self, k: usize) -> Option<usize> {
        let measured = self.settings.iter().map(|s| s.k);
        let covering = measured.clone().filter(|m| *m >= k).min();
        covering.or(measured.max())
    }

    /// This table, calibrated by stored points, for an index that had been tuned as `before` says.
    pub(crate) fn after(self, before: &Self) -> Self {
        Self {
            correction: self.correction.max(before.sample_correction),
            sample_correction: before.sample_correction,
            ..self
        }
    }

    /// The plan for a recall target in an index of `now` points. It allows fewer misses if points were added since
    /// calibration, or if a check found targets missed.
    pub(crate) fn plan_for(&self, k: usize, recall: f64, now: usize, graph: bool) -> Plan {
        if self.stale {
            return Plan::reading_everything(k);
        }
        let growth = growth(now, self.points);
        let correction = self.correction.max(1.0);
        let missing = |correction: f64| 1.0 - (1.0 - recall) / correction;
        let plan = self.plan(k, missing(correction * growth.powf(GROWTH_EXPONENT)));
        // The number of points within the resolution of the codes grows with the index.
        let plan = Plan {
            rerank: (plan.rerank as f64 * growth).ceil() as usize,
            ..plan
        };
        let (correction, growth) = self.graph_correction(now);
        let with_growth = correction * growth.powf(GRAPH_GROWTH_EXPONENT);
        // Growth alone does not take a target from the graph, because it rarely costs so much recall.
        let plans = [with_growth, correction].map(|c| self.graph_plan(k, recall, missing(c)));
        let graph = plans.into_iter().flatten().next().filter(|_| graph);
        match graph {
            None => plan,
            Some(graph) => Plan {
                graph: Some(GraphPlan {
                    all_otherwise: plan.all,
                    ..graph
                }),
                all: false,
                ..plan
            },
        }
    }

    /// The correction of the settings with the graph, and the growth since they were measured in an index of `now` points.
    /// Corrections are from before the last measurement. What remains is that for a sample of queries, because checks
    /// measure with stored points.
    fn graph_correction(&self, now: usize) -> (f64, f64) {
        match self.graph_points {
            0 => (self.correction.max(1.0), growth(now, self.points)),
            then => (self.sample_correction.max(1.0), growth(now, then)),
        }
    }

    /// The parameters with the neighbour graph, or `None` if cells and bins cost less or if the graph does not reach this
    /// recall. `asked` is the target before corrections.
    fn graph_plan(&self, k: usize, asked: f64, recall: f64) -> Option<GraphPlan> {
        let near = self.measured_k(k)?;
        let measured = || self.graph_settings.iter().filter(|s| s.k == near);
        // A target that was reached may need more in a changed index.
        let last = measured().next_back().filter(|s| s.measured >= asked);
        let beyond = last.map(Setting::extrapolated_in_graph);
        let settings = || measured().chain(&beyond);
        let at = settings().position(|s| s.measured >= recall)?;
        let above = settings().nth(at)?;
        let below = at.checked_sub(1).and_then(|at| settings().nth(at));
        let found = match below {
            Some(below) if above.measured < 1.0 => interpolate(below, above, recall),
            _ => *above,
        };
        let more = (k as f64 / near as f64).max(1.0);
        Some(GraphPlan {
            expand_ratio: found.expand_ratio,
            candidates: ((found.rerank as f64 * more).ceil() as usize).max(k),
            rerank_prune_ratio: found.rerank_prune_ratio,
            all_otherwise: false,
        })
    }

    /// The cheapest plan for `k` neighbours with this recall. Without measurements, and far above them, everything is
    /// read.
    pub(crate) fn plan(&self, k: usize, recall: f64) -> Plan {
        let everything = Plan::reading_everything(k);
        let settings = || self.measured_for(k);
        let Some(near) = settings().next().map(|s| s.k) else {
            return everything;
        };
        let extrapolated = settings().next_back().map(Setting::extrapolated);
        // The measured recall decides. A setting that exceeds its target serves higher targets, too.
        let reached = settings().position(|s| s.measured >= recall);
        let above = reached
            .and_then(|at| settings().nth(at))
            .or(extrapolated.as_ref().filter(|s| s.measured >= recall));
        let before = reached.unwrap_or(settings().count());
        let below = before.checked_sub(1).and_then(|at| settings().nth(at));
        // The last setting may measure a little less than its target. That does not take everything.
        let closer = match (below, above) {
            (Some(below), Some(above)) if above.everything && below.recall >= recall => {
                Some(below.extrapolated()).filter(|s| s.measured >= recall)
            }
            _ => None,
        };
        let found = match (below, closer.as_ref().or(above)) {
            (_, None) => return everything,
            (_, Some(above)) if above.everything => return everything,
            // Nothing was missed, so interpolation has no upper end.
            (_, Some(above)) if above.measured >= 1.0 => *above,
            (Some(below), Some(above)) => interpolate(below, above, recall),
            (None, Some(above)) => *above,
        };
        // Larger numbers of neighbours than measured need proportionally more work.
        let more = (k as f64 / near as f64).max(1.0);
        Plan {
            k,
            probes: ((found.probes as f64 * more).ceil() as usize).max(1),
            bins: (found.bins * more).min(1.0),
            rerank: ((found.rerank as f64 * more).ceil() as usize).max(k),
            bin_prune_ratio: found.bin_prune_ratio,
            rerank_prune_ratio: found.rerank_prune_ratio,
            coarse_routing: self.coarse_routing,
            ..Plan::everything(k)
        }
    }
}

/// Interpolates between two settings. Each parameter is interpolated geometrically over the logarithm of the misses.
fn interpolate(below: &Setting, above: &Setting, recall: f64) -> Setting {
    let scale = |recall: f64| -(1.0 - recall).ln();
    let (low, high) = (scale(below.measured), scale(above.measured));
    let share = (scale(recall) - low) / (high - low);
    let number = |low: f64, high: f64| low * (high / low).powf(share);
    let count = |low: usize, high: usize| number(low as f64, high as f64).ceil() as usize;
    // A huge ratio means that nothing is pruned. Approach it only at the end of the interval.
    let rerank_prune_ratio = match above.rerank_prune_ratio >= NO_PRUNE_RATIO {
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
        expand_ratio: match above.expand_ratio > 0.0 {
            true => number(f64::from(below.expand_ratio), f64::from(above.expand_ratio)) as f32,
            false => 0.0,
        },
        ..*above
    }
}

/// From this ratio on, nothing is pruned.
const NO_PRUNE_RATIO: f32 = 1e6;

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
            expand_ratio: 0.0,
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
            table().plan(10, 0.99).rerank_prune_ratio > NO_PRUNE_RATIO,
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
        // Entries that need no more work than those before them.
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
        assert!(plan.rerank_prune_ratio > NO_PRUNE_RATIO);
        table.settings[0].measured = 1.0;
        assert_eq!(table.plan(10, 0.3).rerank, 20);
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
        let then = table().plan_for(10, 0.85, 5000, false);
        assert_eq!(then, table().plan(10, 0.85));
        let fewer = table().plan_for(10, 0.85, 2000, false);
        assert_eq!(fewer, then, "fewer points are no harder");
        let twice = table().plan_for(10, 0.85, 10_000, false);
        assert!(
            twice.probes >= then.probes && twice.rerank >= 2 * then.rerank,
            "{twice:?}"
        );
        assert!(table().plan_for(10, 0.99, usize::MAX, false).all);
        let unknown = Calibration {
            points: 0,
            ..table()
        };
        assert_eq!(unknown.plan_for(10, 0.85, 10_000, false), then);
    }

    #[test]
    fn missed_targets_are_aimed_at_higher_and_stale_tables_read_everything() {
        let corrected = Calibration {
            correction: 2.0,
            ..table()
        };
        assert_eq!(
            corrected.plan_for(10, 0.8, 5000, false),
            table().plan(10, 0.9)
        );
        let stale = Calibration {
            stale: true,
            ..table()
        };
        assert!(stale.plan_for(10, 0.1, 5000, false).all);
    }

    #[test]
    fn a_little_beyond_the_table_all_grows_and_farther_everything_is_read() {
        let best = table().plan(10, 0.99);
        let extrapolated = table().plan(10, 0.9975);
        assert_eq!(
            (extrapolated.probes, extrapolated.rerank, extrapolated.all),
            (2 * best.probes, 4 * best.rerank, false)
        );
        assert!(table().plan(10, 0.998).all, "nobody knows what that takes");
        let little = table().plan_for(10, 0.99, 5001, false);
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
        table.settings[1].measured = 0.895;
        let close = table.plan(10, 0.9);
        assert!(!close.all && (4..8).contains(&close.probes), "{close:?}");
        assert!(table.plan(10, 0.901).all);
    }
}
