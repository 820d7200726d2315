//! What a search does: its parameters with all defaults filled in.

use crate::plan::Plan;
use std::sync::Arc;

use crate::segment::{Allowed, Index, Snapshot, translate};
use garlic_core::{Result, Search};

/// The parameters of a search with all defaults filled in, checked.
pub(crate) fn plan(search: &Search, index: &Index) -> Result<Planned> {
    search.check()?;
    index.check_order()?;
    let allowed = search.wanted_filter().map(|f| translate(f, index));
    let allowed = allowed.transpose()?;
    let recall = search.wanted_recall().unwrap_or(index.config.tuning.recall);
    let view = index.snapshot().with(allowed.as_deref());
    let mut plan = view.plan(search.k(), recall);
    if allowed.is_some() {
        plan = plan_filtered(&view, plan, recall);
    }
    if let Some(probes) = search.wanted_probes() {
        (plan.probes, plan.widens) = (probes, false);
    }
    // What is asked for by name is done in full, without stopping early.
    if let Some(bins) = search.wanted_bins() {
        (plan.bins, plan.bin_prune_ratio) = (bins, f32::INFINITY);
    }
    if let Some(rerank) = search.wanted_rerank() {
        (plan.rerank, plan.rerank_prune_ratio) = (rerank, f32::INFINITY);
    }
    // What was asked for by name is what is done.
    let by_name = [
        search.wanted_probes().is_some(),
        search.wanted_bins().is_some(),
        search.wanted_rerank().is_some(),
    ]
    .contains(&true);
    plan.all &= !by_name;
    plan.all_if_sparse &= !by_name;
    plan.k = index.embedding.wider(search.k());
    plan.exact = search.is_exact();
    plan.threads = search.thread_count();
    Ok(Planned { plan, allowed })
}

/// Checked parameters, and the points that the filter allows.
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    pub(crate) allowed: Option<Arc<Allowed>>,
}

/// What visiting all cells costs, as a multiple of a search that visits the nearest.
const WIDENED: f64 = 3.0;

/// The plan for a search among some points only.
///
/// Where one in ten points is allowed, the ten nearest of those lie among the hundred nearest of all: as many
/// cells are visited as a search for a hundred visits, and all of them where few of those cells' points are
/// allowed. Bins and candidates need no change, for a search leaves them out by comparing with what it has found,
/// and it finds allowed points only. When distances to all allowed points cost less, those are computed.
fn plan_filtered(view: &Snapshot<'_>, plan: Plan, recall: f64) -> Plan {
    let share = view.counted().max(1) as f64 / view.index.len().max(1) as f64;
    let (all, search) = (view.price_of_all(), view.price_of_search(&plan, share));
    let among = (plan.k as f64 / share).ceil() as usize;
    let wider = view.plan(among, recall);
    Plan {
        probes: wider.probes.max(plan.probes),
        widens: true,
        all: plan.all || wider.all || all <= search,
        all_if_sparse: all <= WIDENED * search,
        ..plan
    }
}
