//! Queries and answers.

use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::stats::SearchStats;

/// Parameters of a search for nearest neighbours.
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
    /// A search for the `k` nearest neighbours.
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

    /// The share of the true neighbours to find, in (0, 1). The index has measured the settings for it.
    ///
    /// [`Search::probes`], [`Search::bins`] and [`Search::rerank`] override these settings.
    #[must_use]
    pub fn recall(mut self, target: f64) -> Self {
        self.recall = Some(target);
        self
    }

    /// Finds all true neighbours: points that are skipped are proved to be farther away.
    ///
    /// Distances are compared in 32-bit precision. With the cosine metric, vectors are stored with unit length. If
    /// vectors at the k-th distance are so close together that rounding decides (cosine distances below about 1e-6),
    /// the search fails with [`Error::TooClose`]. Vectors of the same direction are ties.
    #[must_use]
    pub fn exact(mut self, exact: bool) -> Self {
        self.exact = exact;
        self
    }

    /// Restricts the search to the points that the filter allows.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Number of candidates with exact distances, the best by their codes. At least `k`.
    #[must_use]
    pub fn rerank(mut self, points: usize) -> Self {
        self.rerank = Some(points);
        self
    }

    /// Number of cells to visit. All cells if there are fewer.
    #[must_use]
    pub fn probes(mut self, cells: usize) -> Self {
        self.probes = Some(cells);
        self
    }

    /// Share of the bins of the visited cells to scan, in (0, 1]. At least one bin is scanned.
    #[must_use]
    pub fn bins(mut self, share: f64) -> Self {
        self.bins = Some(share);
        self
    }

    /// Number of threads of a batch search. The default is 1.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Checks all parameters.
    ///
    /// # Errors
    /// [`Error::SearchParameter`] names a parameter that is out of range.
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

    /// The value set by [`Search::probes`].
    pub fn wanted_probes(&self) -> Option<usize> {
        self.probes
    }

    /// The value set by [`Search::bins`].
    pub fn wanted_bins(&self) -> Option<f64> {
        self.bins
    }

    /// The value set by [`Search::rerank`].
    pub fn wanted_rerank(&self) -> Option<usize> {
        self.rerank
    }

    /// The value set by [`Search::recall`].
    pub fn wanted_recall(&self) -> Option<f64> {
        self.recall
    }

    /// The value set by [`Search::filter`].
    pub fn wanted_filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    /// Whether the search is exact.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Number of threads of a batch.
    pub fn thread_count(&self) -> usize {
        self.threads.unwrap_or(1)
    }
}

/// Parameters of a range search: all points within a radius.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeSearch {
    radius: f32,
    recall: Option<f64>,
    filter: Option<Filter>,
    threads: Option<usize>,
}

impl RangeSearch {
    /// A search for all points whose reported distance is at most `radius`.
    pub fn new(radius: f32) -> Self {
        Self {
            radius,
            recall: None,
            filter: None,
            threads: None,
        }
    }

    /// The share of these points to find, in (0, 1). A search with a target is faster because it relies on codes. By
    /// default all points are found.
    #[must_use]
    pub fn recall(mut self, target: f64) -> Self {
        self.recall = Some(target);
        self
    }

    /// Restricts the search to the points that the filter allows.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Number of threads of a batch. The default is 1.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Checks all parameters.
    ///
    /// # Errors
    /// [`Error::SearchParameter`] names a parameter that is out of range.
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

    /// The value set by [`RangeSearch::recall`].
    pub fn wanted_recall(&self) -> Option<f64> {
        self.recall
    }

    /// The value set by [`RangeSearch::filter`].
    pub fn wanted_filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    /// Number of threads of a batch.
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
    /// Identifier of the vector. By default it is the row number at the time of the build.
    pub id: u64,
    /// Exact distance in the original space: Euclidean, cosine (1 minus the cosine) or the negative inner product,
    /// depending on the [`Metric`](crate::Metric) of the index.
    pub distance: f32,
}

impl Hit {
    /// Orders hits by distance, then by identifier.
    pub fn by_distance(a: &Self, b: &Self) -> std::cmp::Ordering {
        a.distance.total_cmp(&b.distance).then(a.id.cmp(&b.id))
    }
}

/// The result of a query and its cost.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// Neighbours ordered by (distance, id). Among equal distances at the end, the squared distances before rounding
    /// decide. There are fewer than `k` if fewer points were scanned.
    pub hits: Vec<Hit>,
    /// The work of the search.
    pub stats: SearchStats,
    /// Whether the hits are proved to be the true nearest neighbours.
    pub exact: bool,
}

impl Answer {
    /// Creates an answer. `exact` says that the hits are proved to be the true neighbours.
    pub fn new(hits: Vec<Hit>, stats: SearchStats, exact: bool) -> Self {
        Self { hits, stats, exact }
    }
}
