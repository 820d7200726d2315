//! Resolves the parameters of a search.

use crate::plan::{GRAPH_COST_K, GraphPlan, Plan};
use std::sync::Arc;

use crate::segment::{Allowed, Index, Snapshot, translate};
use garlic_core::{Result, Search};

/// Checks the parameters of a search and fills in all defaults.
pub(crate) fn plan(search: &Search, index: &Index) -> Result<Planned> {
    search.check()?;
    index.check_layout()?;
    let allowed = search.wanted_filter().map(|f| translate(f, index));
    let allowed = allowed.transpose()?;
    let recall = search.wanted_recall().unwrap_or(index.config.tuning.recall);
    let snapshot = index.snapshot().with(allowed.as_deref());
    // Parameters that are set explicitly are those of cells and bins.
    let is_explicit = [
        search.wanted_probes().is_some(),
        search.wanted_bins().is_some(),
        search.wanted_rerank().is_some(),
    ]
    .contains(&true);
    let mut plan = match is_explicit {
        true => snapshot.plan_with_bins(search.k(), recall),
        false => snapshot.plan(search.k(), recall),
    };
    if allowed.is_some() {
        plan = plan_filtered(&snapshot, plan, recall);
    }
    if let Some(probes) = search.wanted_probes() {
        (plan.probes, plan.widens) = (probes, false);
    }
    // They turn pruning off.
    if let Some(bins) = search.wanted_bins() {
        (plan.bins, plan.bin_prune_ratio) = (bins, f32::INFINITY);
    }
    if let Some(rerank) = search.wanted_rerank() {
        (plan.rerank, plan.rerank_prune_ratio) = (rerank, f32::INFINITY);
    }
    // They also turn off reading everything.
    plan.all &= !is_explicit;
    plan.all_if_sparse &= !is_explicit;
    plan.k = index.embedding.widened_k(search.k());
    plan.exact = search.is_exact();
    plan.threads = search.thread_count();
    Ok(Planned { plan, allowed })
}

/// Checked parameters, and the points that the filter allows.
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    pub(crate) allowed: Option<Arc<Allowed>>,
}

/// Cost of visiting all cells, as a multiple of the cost of visiting the nearest.
const ALL_CELLS_COST_FACTOR: f64 = 3.0;

/// The cost of a search in the neighbour graph grows with this power of the inverse share of allowed points, because
/// others have to be passed on the way, and with this power of the number of neighbours.
const GRAPH_SHARE_EXPONENT: f64 = 0.8;
const GRAPH_K_EXPONENT: f64 = 0.7;

/// The plan of a filtered search.
///
/// If one in ten points is allowed, the ten nearest of these are among the hundred nearest of all. The search
/// therefore visits as many cells as a search for a hundred neighbours, and all cells if the nearest cells have few
/// allowed points. The limits for bins and candidates stay, because pruning compares with allowed points only. If
/// computing the distances of all allowed points costs less, the search does that. The neighbour graph is used if it
/// costs less than both.
fn plan_filtered(snapshot: &Snapshot<'_>, plan: Plan, recall: f64) -> Plan {
    let share = snapshot.counted().max(1) as f64 / snapshot.index.len().max(1) as f64;
    let all_otherwise = plan.graph.is_some_and(|graph| graph.all_otherwise);
    let plan = Plan {
        all: plan.all || all_otherwise,
        ..plan
    };
    let (all, search) = (
        snapshot.cost_of_all(),
        snapshot.cost_of_search(&plan, share),
    );
    let among = (plan.k as f64 / share).ceil() as usize;
    let wider = snapshot.plan_with_bins(among, recall);
    let bins = Plan {
        probes: wider.probes.max(plan.probes),
        widens: true,
        all: plan.all || wider.all || all <= search,
        all_if_sparse: all <= ALL_CELLS_COST_FACTOR * search,
        graph: None,
        ..plan
    };
    let decision = snapshot.index.calibration.graph_decision;
    let cost = decision.and_then(|decision| decision.graph_cost);
    let (Some(graph), Some(cost)) = (plan.graph, cost) else {
        return bins;
    };
    let more = (plan.k as f64 / GRAPH_COST_K)
        .powf(GRAPH_K_EXPONENT)
        .max(1.0);
    if cost * more / share.powf(GRAPH_SHARE_EXPONENT) >= all.min(search) {
        return bins;
    }
    Plan {
        graph: Some(GraphPlan {
            all_otherwise: bins.all,
            ..graph
        }),
        all: false,
        ..bins
    }
}
