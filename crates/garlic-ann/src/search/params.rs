//! What a query asks for and what it gets.

use std::sync::Arc;

use super::filter::{Allowed, Filter};
use super::work::Work;
use crate::error::{Error, Result};
use crate::index::{Body, Index, View};

/// What a query asks for.
///
/// Parameters that are not set take the defaults the index was built with.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    k: usize,
    probes: Option<usize>,
    bins: Option<f64>,
    rerank: Option<usize>,
    recall: Option<f64>,
    exact: bool,
    filter: Option<Filter>,
    threads: Option<usize>,
}

impl Search {
    /// The `k` nearest neighbours.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            probes: None,
            bins: None,
            rerank: None,
            recall: None,
            exact: false,
            filter: None,
            threads: None,
        }
    }

    /// Share of the true neighbours to find, in (0, 1); the index has measured what that takes.
    ///
    /// [`Search::probes`], [`Search::bins`] and [`Search::rerank`] override what it chooses.
    pub fn recall(mut self, target: f64) -> Self {
        self.recall = Some(target);
        self
    }

    /// All true neighbours, certainly: whatever is not looked at is proved to lie farther away.
    ///
    /// Distances of nearly equal neighbours are told apart as far as 32-bit numbers do. With the metric cosine, vectors
    /// are stored with unit length, and where those at the k-th distance are so close together that their rounding
    /// decides (cosine distances below 1e-6 or so) the search ends with [`Error::TooClose`]. Vectors of the same
    /// direction are ties.
    pub fn exact(mut self, exact: bool) -> Self {
        self.exact = exact;
        self
    }

    /// Only points that the filter lets through.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Points whose exact distance is computed, the best by their codes; at least `k`.
    pub fn rerank(mut self, points: usize) -> Self {
        self.rerank = Some(points);
        self
    }

    /// Number of cells to visit (k_G); more than there are means all.
    pub fn probes(mut self, cells: usize) -> Self {
        self.probes = Some(cells);
        self
    }

    /// Share of the occupied bins of the visited cells to scan (rho), in (0, 1]; at least one bin is scanned.
    pub fn bins(mut self, share: f64) -> Self {
        self.bins = Some(share);
        self
    }

    /// Worker threads of a batch search; 1 unless set.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// The parameters with all defaults filled in, checked.
    pub(crate) fn plan(&self, index: &Index) -> Result<Planned> {
        let wrong = |name, value: String, rule| Err(Error::SearchParameter { name, value, rule });
        if self.k == 0 {
            return wrong("k", "0".into(), "must be at least 1");
        }
        if self.probes == Some(0) {
            return wrong("probes", "0".into(), "must be at least 1");
        }
        if let Some(bins) = self.bins
            && !(bins > 0.0 && bins <= 1.0)
        {
            return wrong("bins", bins.to_string(), "must be in (0, 1]");
        }
        if self.rerank == Some(0) {
            return wrong("rerank", "0".into(), "must be at least 1");
        }
        if let Some(recall) = self.recall
            && !(recall > 0.0 && recall < 1.0)
        {
            let rule = "must be above 0 and below 1; search exactly to find all neighbours";
            return wrong("recall", recall.to_string(), rule);
        }
        if self.threads == Some(0) {
            return wrong("threads", "0".into(), "must be at least 1");
        }
        index.check_order()?;
        let allowed = self.filter.as_ref().map(|f| f.translate(index));
        let allowed = allowed.transpose()?;
        let mut plan = match &index.body {
            Body::Published(_) => {
                let rule = "an index built by the published method has no calibration and no codes; use probes and bins";
                if let Some(recall) = self.recall {
                    return wrong("recall", recall.to_string(), rule);
                }
                if let Some(rerank) = self.rerank {
                    return wrong("rerank", rerank.to_string(), rule);
                }
                Plan {
                    probes: index.config.probes,
                    bins: index.config.bins,
                    ..Plan::everything(self.k)
                }
            }
            Body::Tempered(body) => {
                let recall = self.recall.unwrap_or(index.config.recall);
                let view = View::new(index, body).with(allowed.as_deref());
                let plan = view.plan(self.k, recall);
                match allowed {
                    None => plan,
                    Some(_) => plan_filtered(&view, plan, recall),
                }
            }
        };
        if let Some(probes) = self.probes {
            (plan.probes, plan.widens) = (probes, false);
        }
        // What is asked for by name is done in full, without stopping early.
        if let Some(bins) = self.bins {
            (plan.bins, plan.slack) = (bins, f32::INFINITY);
        }
        if let Some(rerank) = self.rerank {
            (plan.rerank, plan.trust) = (rerank, f32::INFINITY);
        }
        // What was asked for by name is what is done.
        let by_name = self.probes.is_some() || self.bins.is_some() || self.rerank.is_some();
        plan.all &= !by_name;
        plan.all_if_sparse &= !by_name;
        plan.k = index.embedding.wider(self.k);
        plan.exact = self.exact;
        plan.threads = self.threads.unwrap_or(1);
        Ok(Planned { plan, allowed })
    }
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
fn plan_filtered(view: &View<'_>, plan: Plan, recall: f64) -> Plan {
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

/// Checked parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plan {
    /// Neighbours to look for.
    pub(crate) k: usize,
    /// Neighbours to report; more are looked for where the metric asks for it.
    pub(crate) wanted: usize,
    pub(crate) probes: usize,
    /// Share of the visited cells' bins.
    pub(crate) bins: f64,
    /// Most exact distances.
    pub(crate) rerank: usize,
    /// Bins estimated farther than this many times the worst candidate so far are left out.
    pub(crate) slack: f32,
    /// Candidates estimated farther than this many times the k-th distance so far are left out.
    pub(crate) trust: f32,
    /// Cells may be found by way of groups: that is what the rest was measured with.
    pub(crate) grouped: bool,
    pub(crate) exact: bool,
    /// All cells are visited where few points of the nearest are allowed.
    pub(crate) widens: bool,
    /// Distances to all points that count are computed: that is cheaper than a search, or nothing less meets the target.
    pub(crate) all: bool,
    /// They are cheaper than visiting all cells.
    pub(crate) all_if_sparse: bool,
    pub(crate) threads: usize,
}

impl Plan {
    /// Distances to all points.
    pub(crate) fn reading_everything(k: usize) -> Self {
        Self {
            all: true,
            ..Self::everything(k)
        }
    }

    /// Every cell, every bin, every point.
    pub(crate) fn everything(k: usize) -> Self {
        Self {
            k,
            wanted: k,
            probes: usize::MAX,
            bins: 1.0,
            rerank: usize::MAX,
            slack: f32::INFINITY,
            trust: f32::INFINITY,
            grouped: false,
            exact: false,
            widens: false,
            all: false,
            all_if_sparse: false,
            threads: 1,
        }
    }
}

/// One neighbour.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Hit {
    /// Identifier of the vector: its row number when the index was built, unless another was given.
    pub id: u64,
    /// True distance in the original space: Euclidean, cosine (one less the cosine) or minus the inner product, as
    /// the [`Metric`](crate::Metric) of the index says.
    pub distance: f32,
}

/// What a query found and what it cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Neighbours ordered by (distance, id); which of two equal ones is among the k is decided by the squared distance
    /// before its root is rounded; fewer than `k` when fewer points were scanned.
    pub hits: Vec<Hit>,
    /// Work that was done.
    pub work: Work,
    /// Whether the hits are proved to be the true nearest neighbours.
    pub exact: bool,
}
