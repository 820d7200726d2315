//! What a recall target takes: measured once, when the index is built.

use serde::{Deserialize, Serialize};

use crate::search::Plan;

/// Settings measured on points held out of the training, cheapest first for every `k`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Number of points that were held out and used as queries.
    pub queries: usize,
    /// The settings, ordered by k, then by recall.
    pub settings: Vec<Setting>,
}

/// One setting of a search and what it measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Neighbours that the queries asked for.
    pub k: usize,
    /// The target: k-recall@k that the setting is good for.
    pub recall: f64,
    /// k-recall@k over the held-out points, less its standard error.
    pub measured: f64,
    /// Cells visited.
    pub probes: usize,
    /// Most bins scanned, as a share of all bins of the visited cells.
    pub bins: f64,
    /// Most exact distances.
    pub rerank: usize,
    /// A bin is left out when its estimate is more than this many times the worst candidate's.
    pub slack: f32,
    /// A candidate is left out when its estimate is more than this many times the k-th distance so far.
    pub trust: f32,
}

impl Calibration {
    /// The cheapest way to search `k` neighbours with this recall; `cells` is the number of cells there are.
    pub(crate) fn plan(&self, k: usize, recall: f64, cells: usize) -> Plan {
        // The smallest k that was measured and covers this one, else the largest.
        let measured = self.settings.iter().map(|s| s.k);
        let Some(near) = measured
            .clone()
            .filter(|m| *m >= k)
            .min()
            .or(measured.max())
        else {
            return Plan {
                probes: cells.div_ceil(4).max(2),
                bins: 0.2,
                rerank: k.saturating_mul(10),
                ..Plan::everything(k)
            };
        };
        let settings = || self.settings.iter().filter(|s| s.k == near);
        let enough = settings().find(|s| s.recall >= recall);
        // More than any setting reached: well beyond the best of them.
        let beyond = || {
            settings().next_back().map(|s| Setting {
                probes: s.probes.saturating_mul(2),
                rerank: s.rerank.saturating_mul(4),
                slack: s.slack * 1.25,
                trust: f32::MAX,
                ..*s
            })
        };
        let Some(found) = enough.copied().or_else(beyond) else {
            return Plan::everything(k);
        };
        // More neighbours than were measured lie farther out: everything grows with them.
        let more = (k as f64 / near as f64).max(1.0);
        Plan {
            k,
            probes: (found.probes as f64 * more).ceil() as usize,
            bins: (found.bins * more).min(1.0),
            rerank: ((found.rerank as f64 * more).ceil() as usize).max(k),
            slack: found.slack,
            trust: found.trust,
            ..Plan::everything(k)
        }
    }
}
