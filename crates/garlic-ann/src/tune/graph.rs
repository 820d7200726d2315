//! Decides whether a neighbour graph pays, and measures searches with it.
//!
//! The cost of a search with cells and bins is known when this runs. A graph of a small sample shows what a search
//! with a graph costs there, and that cost grows slowly with the number of points. If it promises to be lower, the
//! graph of all points is built and measured like any other setting.

use super::graph_queries::GraphQueries;
use super::measure::Evaluator;
use super::tuner::{TARGETS, setting};
use super::{COMPARED_TARGETS, Measurements};
use crate::graph::{AllAdmitted, Expansion, Graph, Limits};
use crate::plan::{Calibration, GraphDecision, GraphPlan, Plan, Setting};
use crate::search::CostModel;
use crate::segment::Index;
use garlic_core::vectors::StoredVectors;
use garlic_core::{Cancel, Result, SearchStats};
use rayon::prelude::*;
use std::sync::Arc;

/// Candidate values of the expansion ratio, in ascending order.
const EXPAND_RATIOS: [f32; 18] = [
    1.0, 1.01, 1.02, 1.03, 1.045, 1.06, 1.08, 1.1, 1.125, 1.15, 1.18, 1.22, 1.27, 1.33, 1.42, 1.55,
    1.75, 2.0,
];
/// Candidate values of the rerank prune ratio, in ascending order.
const RERANK_RATIOS: [f32; 9] = [1.02, 1.05, 1.08, 1.12, 1.17, 1.25, 1.35, 1.5, f32::MAX];
/// Upper limit of the candidates of an expansion: at least so many, and so many per neighbour.
const MIN_POOL: usize = 512;
const POOL_PER_NEIGHBOUR: usize = 16;

/// The search that decides: its number of neighbours and its target.
const DECISIVE: (usize, f64) = (10, 0.95);
/// Below this cost, in nanoseconds, a search with cells and bins is as fast as a search with a graph can be.
const MIN_COST: f64 = 15_000.0;
/// An index with fewer points than this has no graph. Reading all of them is fast.
const MIN_POINTS: usize = 8192;
/// Points and queries of the trial. It is skipped if there are less than twice as many points.
const TRIAL_POINTS: usize = 16_384;
const TRIAL_QUERIES: usize = 200;
/// The cost of a search with a graph grows with this power of the number of points.
const GROWTH_EXPONENT: f64 = 0.25;
/// The graph is built if the trial predicts at most this share of the cost with cells and bins. It takes several times
/// as long to build and hundreds of bytes a point, so a small gain does not pay.
const PROMISING: f64 = 0.5;

/// Number of standard errors that are subtracted from a measured recall. More than without a graph, because more queries
/// make them smaller.
const STANDARD_ERRORS: f64 = 2.0;
/// A setting is measured with so many queries that they cost about this much in total, but with at least so many.
const RUN_COST: f64 = 1.5e8;
const MIN_RUN: usize = 500;

/// The candidates that an expansion may have.
fn pool_size(k: usize) -> usize {
    MIN_POOL.max(k * POOL_PER_NEIGHBOUR)
}

/// Whether a neighbour graph promises cheaper searches than cells and bins. The reason goes into the table.
pub(crate) fn wants_graph(
    index: &Index,
    table: &mut Calibration,
    measurements: &Measurements,
    cancel: &Cancel,
) -> Result<bool> {
    let (k, target) = DECISIVE;
    let Some(at) = measurements.ks.iter().position(|other| *other == k) else {
        return Ok(false);
    };
    if index.len() < MIN_POINTS || index.spills() {
        return Ok(false);
    }
    let cost_model = CostModel::new(index);
    let bins_cost = bins_cost(
        &measurements.evaluator(index, at, &cost_model),
        table,
        target,
        cancel,
    )?;
    let mut decision = GraphDecision {
        local_dimension: local_dimension(measurements),
        bins_cost,
        graph_cost: None,
    };
    let wanted = if bins_cost < MIN_COST {
        false
    } else if index.len() < 2 * TRIAL_POINTS {
        true
    } else {
        let growth = (index.len() as f64 / TRIAL_POINTS as f64).powf(GROWTH_EXPONENT);
        let trial = trial_cost(index, measurements, cancel)?;
        decision.graph_cost = trial.map(|trial| trial * growth);
        let promising = |cost: f64| cost < PROMISING * bins_cost;
        decision.graph_cost.is_some_and(promising)
    };
    table.graph_decision = Some(decision);
    Ok(wanted)
}

/// Cost of a search with cells and bins.
fn bins_cost(
    evaluator: &Evaluator<'_>,
    table: &Calibration,
    target: f64,
    cancel: &Cancel,
) -> Result<f64> {
    let plan = table.plan(evaluator.k, target);
    Ok(match plan.all {
        true => evaluator.cost_model.everything,
        false => evaluator.run(&plan, cancel)?.cost,
    })
}

/// The exponent with which the number of points within a distance of a query grows with that distance: the mean over
/// the queries, between the two largest numbers of neighbours.
fn local_dimension(measurements: &Measurements) -> f64 {
    let Some([.., few, many]) = measurements.ks.get(..) else {
        return 0.0;
    };
    let growth = (*many as f64 / *few as f64).ln();
    let last = measurements.ks.len() - 1;
    let ratios = measurements.queries.iter().filter_map(|query| {
        // Radii are squared.
        let ratio = f64::from(query.radii[last]) / f64::from(query.radii[last - 1]);
        (ratio > 1.0 && ratio.is_finite()).then(|| 0.5 * ratio.ln())
    });
    let (count, sum) = ratios.fold((0u32, 0.0), |(count, sum), ratio| (count + 1, sum + ratio));
    match sum > 0.0 {
        true => growth * f64::from(count) / sum,
        false => 0.0,
    }
}

/// Cost of the decisive search in the graph of a sample, or `None` if it does not meet the target.
fn trial_cost(index: &Index, measurements: &Measurements, cancel: &Cancel) -> Result<Option<f64>> {
    let held = measurements.held();
    let queries = &measurements.queries;
    let points = index.segment.ids.len();
    let sample = (0..TRIAL_POINTS).map(|i| (i * points / TRIAL_POINTS) as u32);
    let sample: Vec<u32> = sample
        .filter(|position| held.binary_search(position).is_err())
        .collect();
    let dim = index.transform.dim();
    let vectors = index.segment.vectors.pick(dim, &sample);
    let cell_of = index.segment.cells_of(sample.par_iter().copied());
    let graph = Graph::build(&index.nodes(&vectors, &cell_of), cancel, &|_, _| ())?;
    let with_graph = index.with_graph(Arc::new(graph));
    let cost_model = CostModel::new(&with_graph);
    let Some(graph) = with_graph.segment.graph.as_deref() else {
        return Ok(None);
    };
    let queries = &queries[..TRIAL_QUERIES.min(queries.len())];
    let (k, target) = DECISIVE;
    // For every ratio: neighbours found, and the work.
    let sums = queries
        .par_iter()
        .map(|query| trial_query(graph, &vectors, &query.vector, k))
        .reduce(Vec::new, |mut all, part| {
            if all.is_empty() {
                return part;
            }
            for (all, (found, work)) in all.iter_mut().zip(part) {
                all.0 += found;
                all.1 += work;
            }
            all
        });
    let enough = (target * (queries.len() * k) as f64).ceil() as usize;
    let met = sums.into_iter().find(|(found, _)| *found >= enough);
    Ok(met.map(|(_, work)| cost_model.of(&work, queries.len()) / queries.len() as f64))
}

/// True neighbours among the candidates of a query, and the work, for every ratio.
fn trial_query(
    graph: &Graph,
    vectors: &StoredVectors,
    query: &[f32],
    k: usize,
) -> Vec<(usize, SearchStats)> {
    let mut bytes = Vec::new();
    let prepared = vectors.prepare(query, &mut bytes);
    let mut distances = Vec::with_capacity(graph.points());
    vectors.distances(&prepared, |_, distance| distances.push(distance));
    let mut sorted = distances.clone();
    let (_, radius, _) = sorted.select_nth_unstable_by(k - 1, f32::total_cmp);
    let mut scratch = Expansion::default();
    graph.prepare(query, &mut scratch);
    let run = |ratio: &f32| {
        let limits = Limits {
            k,
            ratio: *ratio,
            candidates: pool_size(k),
            unvisited: None,
        };
        let done = graph.expand(&limits, &AllAdmitted, &mut scratch);
        let mut found = Vec::new();
        scratch.copy_to(&AllAdmitted, &mut found);
        let near = found.iter().filter(|f| distances[f.at as usize] <= *radius);
        let mut work = done.stats();
        work.candidates = 2 * k as u64;
        (near.count().min(k), work)
    };
    EXPAND_RATIOS.iter().map(run).collect()
}

/// A search in the graph whose candidates are not pruned.
pub(super) fn unpruned(k: usize, expand_ratio: f32) -> Plan {
    let graph = GraphPlan {
        expand_ratio,
        candidates: pool_size(k),
        rerank_prune_ratio: f32::MAX,
        all_otherwise: false,
    };
    Plan {
        graph: Some(graph),
        ..Plan::everything(k)
    }
}

/// A graph to measure.
pub(crate) struct GraphToMeasure<'a> {
    pub(crate) graph: Arc<Graph>,
    /// Points that are not in the graph yet, in order. A search cannot find them, so they do not count as neighbours.
    pub(crate) missing: &'a [u32],
}

/// Measures a graph. Puts its settings into the table for every k that costs less with it, and returns whether there is
/// such a k. With `always`, all settings are kept.
pub(crate) fn measure_graph(
    index: &Index,
    table: &mut Calibration,
    GraphToMeasure { graph, missing }: GraphToMeasure<'_>,
    measurements: &Measurements,
    always: bool,
    cancel: &Cancel,
) -> Result<bool> {
    let index = index.with_graph(graph);
    let cost_model = CostModel::new(&index);
    let known = measurements.without(&index, missing);
    let queries = match missing {
        [] => GraphQueries::known(known),
        missing => GraphQueries::wide(&index, table, missing, &known, cancel)?,
    };
    let mut settings = Vec::new();
    for (at, k) in measurements.ks.iter().enumerate() {
        let in_graph = queries.measurements.evaluator(&index, at, &cost_model);
        let found = find_settings(&in_graph, queries.unknown[at], cancel)?;
        let evaluator = measurements.evaluator(&index, at, &cost_model);
        let mut saved = 0.0;
        for target in COMPARED_TARGETS {
            let bins = bins_cost(&evaluator, table, target, cancel)?;
            let met = found.iter().find(|(s, _)| s.recall >= target);
            if (*k, target) == DECISIVE {
                table.graph_decision = Some(GraphDecision {
                    local_dimension: local_dimension(measurements),
                    bins_cost: bins,
                    graph_cost: met.map(|(_, cost)| *cost),
                });
            }
            saved += met.map_or(0.0, |(_, cost)| 1.0 - cost / bins);
        }
        if always || saved > 0.0 {
            settings.extend(found.into_iter().map(|(setting, _)| setting));
        }
    }
    table.graph_settings = settings;
    Ok(!table.graph_settings.is_empty())
}

/// Measures the settings of the graph of a changed index anew, for every k that has some.
pub(super) fn measure_again(
    index: &Index,
    table: &mut Calibration,
    measurements: &Measurements,
    cancel: &Cancel,
) -> Result<()> {
    let cost_model = CostModel::new(index);
    let mut settings = Vec::new();
    for (at, k) in measurements.ks.iter().enumerate() {
        if table.graph_settings.iter().any(|s| s.k == *k) {
            let evaluator = measurements.evaluator(index, at, &cost_model);
            let found = find_settings(&evaluator, 0.0, cancel)?;
            settings.extend(found.into_iter().map(|(setting, _)| setting));
        }
    }
    table.graph_settings = settings;
    table.graph_points = index.len();
    Ok(())
}

/// The cheapest setting for every target that the graph reaches, with its cost. `unknown` is the share of the true
/// neighbours that the queries do not know. It counts as missed.
pub(super) fn find_settings(
    evaluator: &Evaluator<'_>,
    unknown: f64,
    cancel: &Cancel,
) -> Result<Vec<(Setting, f64)>> {
    let k = evaluator.k;
    // For every rerank prune ratio, the runs in ascending order of the expansion ratio.
    let mut runs: [Vec<Run>; RERANK_RATIOS.len()] = Default::default();
    let mut affordable = usize::MAX;
    for ratio in EXPAND_RATIOS {
        let evaluator = evaluator.first(affordable);
        let measured = evaluator.run_ratios(&unpruned(k, ratio), RERANK_RATIOS, cancel)?;
        let measured = measured.map(|run| Run {
            ratio,
            recall: run.mean - STANDARD_ERRORS * run.error - unknown,
            cost: run.cost,
        });
        for (runs, run) in runs.iter_mut().zip(measured) {
            runs.push(run);
        }
        let all = measured[RERANK_RATIOS.len() - 1];
        let is_last = all.recall >= TARGETS[TARGETS.len() - 1];
        if is_last || all.cost > evaluator.cost_model.everything {
            break;
        }
        affordable = ((RUN_COST / all.cost.max(1.0)) as usize).max(MIN_RUN);
    }
    let cheapest = |target: &f64| {
        let met = RERANK_RATIOS.into_iter().zip(&runs);
        let met =
            met.filter_map(|(prune_ratio, runs)| Some((prune_ratio, Run::meeting(*target, runs)?)));
        let (prune_ratio, run) = met.min_by(|a, b| a.1.cost.total_cmp(&b.1.cost))?;
        let setting = Setting {
            rerank: pool_size(k),
            rerank_prune_ratio: prune_ratio,
            expand_ratio: run.ratio,
            ..setting(&Plan::everything(k), *target, run.recall)
        };
        Some((setting, run.cost))
    };
    Ok(TARGETS.iter().map_while(cheapest).collect())
}

/// What searches with an expansion ratio find and cost.
#[derive(Clone, Copy)]
struct Run {
    ratio: f32,
    recall: f64,
    cost: f64,
}

impl Run {
    /// The cheapest run that meets a target. It lies between two measured ones, given in ascending order. Recall grows
    /// slower and slower with the ratio, so it is not overestimated.
    fn meeting(target: f64, measured: &[Self]) -> Option<Self> {
        let at = measured.iter().position(|run| run.recall >= target)?;
        let above = measured[at];
        let Some(below) = at.checked_sub(1).map(|before| measured[before]) else {
            return Some(above);
        };
        let share = (target - below.recall) / (above.recall - below.recall);
        let between = |a: f64, b: f64| a + share * (b - a);
        Some(Self {
            ratio: between(f64::from(below.ratio), f64::from(above.ratio)) as f32,
            recall: target,
            cost: between(below.cost, above.cost),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_between_two_runs_takes_a_ratio_between_theirs() {
        let run = |ratio, recall, cost| Run {
            ratio,
            recall,
            cost,
        };
        let runs = [
            run(1.0, 0.8, 10.0),
            run(1.5, 0.9, 20.0),
            run(2.0, 0.98, 50.0),
        ];
        let meeting = |target| Run::meeting(target, &runs).map(|run| (run.ratio, run.cost));
        assert_eq!(meeting(0.7), Some((1.0, 10.0)));
        assert_eq!(meeting(0.9), Some((1.5, 20.0)));
        let (ratio, cost) = meeting(0.94).unwrap();
        assert!((ratio - 1.75).abs() < 1e-6 && (cost - 35.0).abs() < 1e-9);
        assert_eq!(meeting(0.99), None);
    }
}
