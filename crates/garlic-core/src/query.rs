//! What a query asks for and what it gets.

use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::stats::SearchStats;

/// What a query asks for: its nearest neighbours.
///
/// Parameters that are not set take the defaults of the index.
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
    #[must_use]
    pub fn recall(mut self, target: f64) -> Self {
        self.recall = Some(target);
        self
    }

    /// All true neighbours, certainly: whatever is not looked at is proved to lie farther away.
    ///
    /// Distances of nearly equal neighbours are told apart as far as 32-bit numbers do. With the metric cosine, vectors
    /// are stored with unit length. Where vectors at the k-th distance are so close together that their rounding
    /// decides (cosine distances below 1e-6 or so), the search ends with [`Error::TooClose`]. Vectors of the same
    /// direction are ties.
    #[must_use]
    pub fn exact(mut self, exact: bool) -> Self {
        self.exact = exact;
        self
    }

    /// Only points that the filter lets through.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Points whose exact distance is computed, the best by their codes; at least `k`.
    #[must_use]
    pub fn rerank(mut self, points: usize) -> Self {
        self.rerank = Some(points);
        self
    }

    /// Number of cells to visit; more than there are means all.
    #[must_use]
    pub fn probes(mut self, cells: usize) -> Self {
        self.probes = Some(cells);
        self
    }

    /// Share of the occupied bins of the visited cells to scan, in (0, 1]; at least one bin is scanned.
    #[must_use]
    pub fn bins(mut self, share: f64) -> Self {
        self.bins = Some(share);
        self
    }

    /// Worker threads of a batch search; 1 unless set.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Fails for a parameter out of range.
    ///
    /// # Errors
    /// [`Error::SearchParameter`] names it.
    pub fn check(&self) -> Result<()> {
        if self.k == 0 {
            return wrong("k", "0", "must be at least 1");
        }
        if self.probes == Some(0) {
            return wrong("probes", "0", "must be at least 1");
        }
        if let Some(bins) = self.bins
            && !(bins > 0.0 && bins <= 1.0)
        {
            return wrong("bins", bins, "must be in (0, 1]");
        }
        if self.rerank == Some(0) {
            return wrong("rerank", "0", "must be at least 1");
        }
        check_recall(
            self.recall,
            "must be above 0 and below 1; search exactly to find all neighbours",
        )?;
        check_threads(self.threads)
    }

    /// The number of neighbours.
    pub fn k(&self) -> usize {
        self.k
    }

    /// What [`Search::probes`] has set.
    pub fn wanted_probes(&self) -> Option<usize> {
        self.probes
    }

    /// What [`Search::bins`] has set.
    pub fn wanted_bins(&self) -> Option<f64> {
        self.bins
    }

    /// What [`Search::rerank`] has set.
    pub fn wanted_rerank(&self) -> Option<usize> {
        self.rerank
    }

    /// What [`Search::recall`] has set.
    pub fn wanted_recall(&self) -> Option<f64> {
        self.recall
    }

    /// What [`Search::filter`] has set.
    pub fn wanted_filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    /// Whether the search is exact.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Worker threads of a batch.
    pub fn thread_count(&self) -> usize {
        self.threads.unwrap_or(1)
    }
}

/// What a range search asks for: all points within a radius.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeSearch {
    radius: f32,
    recall: Option<f64>,
    filter: Option<Filter>,
    threads: Option<usize>,
}

impl RangeSearch {
    /// All points whose distance, as the metric of the index reports it, is at most `radius`.
    pub fn new(radius: f32) -> Self {
        Self {
            radius,
            recall: None,
            filter: None,
            threads: None,
        }
    }

    /// About this share of them, in (0, 1), found faster by trusting the codes; all of them unless this is set.
    #[must_use]
    pub fn recall(mut self, target: f64) -> Self {
        self.recall = Some(target);
        self
    }

    /// Only points that the filter lets through.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Worker threads of a batch; 1 unless set.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Fails for a parameter out of range.
    ///
    /// # Errors
    /// [`Error::SearchParameter`] names it.
    pub fn check(&self) -> Result<()> {
        if self.radius.is_nan() {
            return wrong("radius", "NaN", "must be a number");
        }
        check_recall(
            self.recall,
            "must be above 0 and below 1; leave it out to find all points",
        )?;
        check_threads(self.threads)
    }

    /// The radius.
    pub fn radius(&self) -> f32 {
        self.radius
    }

    /// What [`RangeSearch::recall`] has set.
    pub fn wanted_recall(&self) -> Option<f64> {
        self.recall
    }

    /// What [`RangeSearch::filter`] has set.
    pub fn wanted_filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    /// Worker threads of a batch.
    pub fn thread_count(&self) -> usize {
        self.threads.unwrap_or(1)
    }
}

fn wrong(name: &'static str, value: impl ToString, rule: &'static str) -> Result<()> {
    let value = value.to_string();
    Err(Error::SearchParameter { name, value, rule })
}

fn check_recall(recall: Option<f64>, rule: &'static str) -> Result<()> {
    match recall {
        Some(recall) if !(recall > 0.0 && recall < 1.0) => wrong("recall", recall, rule),
        _ => Ok(()),
    }
}

fn check_threads(threads: Option<usize>) -> Result<()> {
    match threads {
        Some(0) => wrong("threads", "0", "must be at least 1"),
        _ => Ok(()),
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

impl Hit {
    /// The order of answers: by distance, then by identifier.
    pub fn by_distance(a: &Self, b: &Self) -> std::cmp::Ordering {
        a.distance.total_cmp(&b.distance).then(a.id.cmp(&b.id))
    }
}

/// What a query found and what it cost.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// Neighbours ordered by (distance, id). Of two equal ones at the end, the squared distance before its root is rounded
    /// decides. Fewer than `k` when fewer points were scanned.
    pub hits: Vec<Hit>,
    /// What the search looked at.
    pub stats: SearchStats,
    /// Whether the hits are proved to be the true nearest neighbours.
    pub exact: bool,
}

impl Answer {
    /// Neighbours that were found, what that cost, and whether they are proved to be the true ones.
    pub fn new(hits: Vec<Hit>, stats: SearchStats, exact: bool) -> Self {
        Self { hits, stats, exact }
    }
}
