//! What a query asks for and what it gets.

use super::work::Work;
use crate::config::Config;
use crate::error::{Error, Result};

/// What a query asks for.
///
/// Parameters that are not set take the defaults the index was built with.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    k: usize,
    probes: Option<usize>,
    bins: Option<f64>,
    threads: Option<usize>,
}

impl Search {
    /// The `k` nearest neighbours.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            probes: None,
            bins: None,
            threads: None,
        }
    }

    /// Number of cells to visit (k_G); more than there are means all.
    pub fn probes(mut self, cells: usize) -> Self {
        self.probes = Some(cells);
        self
    }

    /// Share of each cell's occupied bins to scan (rho), in (0, 1]; at least one bin is scanned.
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
    pub(crate) fn plan(&self, config: &Config) -> Result<Plan> {
        let plan = Plan {
            k: self.k,
            probes: self.probes.unwrap_or(config.probes),
            bins: self.bins.unwrap_or(config.bins),
            threads: self.threads.unwrap_or(1),
        };
        let wrong = |name, value: String, rule| Err(Error::SearchParameter { name, value, rule });
        if plan.k == 0 {
            return wrong("k", "0".into(), "must be at least 1");
        }
        if plan.probes == 0 {
            return wrong("probes", "0".into(), "must be at least 1");
        }
        if !(plan.bins > 0.0 && plan.bins <= 1.0) {
            return wrong("bins", plan.bins.to_string(), "must be in (0, 1]");
        }
        if plan.threads == 0 {
            return wrong("threads", "0".into(), "must be at least 1");
        }
        Ok(plan)
    }
}

/// Checked parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) k: usize,
    pub(crate) probes: usize,
    pub(crate) bins: f64,
    pub(crate) threads: usize,
}

/// One neighbour.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Hit {
    /// Identifier of the vector: its row number when the index was built.
    pub id: u64,
    /// True Euclidean distance, in the original space.
    pub distance: f32,
}

/// What a query found and what it cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Neighbours ordered by (distance, id); fewer than `k` when fewer points were scanned.
    pub hits: Vec<Hit>,
    /// Work that was done.
    pub work: Work,
}
