//! What can be measured: anything that answers queries and counts its work.

use garlic_ann::{Answer, Index, Search};
use garlic_linalg::Rows;
use serde::Serialize;

use crate::error::Result;

/// One setting of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Params {
    /// Neighbours asked for.
    pub k: usize,
    /// Cells visited (k_G); null for a method without cells.
    pub probes: Option<usize>,
    /// Share of each cell's occupied bins scanned (rho); null for a method without bins.
    pub bins: Option<f64>,
}

impl Params {
    /// The setting as a search of the library.
    pub fn search(&self) -> Search {
        let mut search = Search::new(self.k);
        if let Some(probes) = self.probes {
            search = search.probes(probes);
        }
        if let Some(bins) = self.bins {
            search = search.bins(bins);
        }
        search
    }

    /// The setting in words, such as `probes 5, bins 0.30`.
    pub fn label(&self) -> String {
        match (self.probes, self.bins) {
            (Some(probes), Some(bins)) => format!("probes {probes}, bins {bins:.2}"),
            (Some(probes), None) => format!("probes {probes}"),
            (None, Some(bins)) => format!("bins {bins:.2}"),
            (None, None) => "all points".to_owned(),
        }
    }
}

/// A searcher with scratch memory of its own, for one thread.
pub trait Worker {
    /// Answers one query.
    fn search(&mut self, query: &[f32], params: &Params) -> Result<Answer>;

    /// Answers one query with every combination of `probes` and `bins`, ordered by probes, then bins, for less
    /// than it costs to run them one by one; `None` when the method has no way to.
    fn search_grid(
        &mut self,
        _query: &[f32],
        _k: usize,
        _probes: &[usize],
        _bins: &[f64],
    ) -> Option<Result<Vec<Answer>>> {
        None
    }
}

/// An index that can be measured.
pub trait Target: Sync {
    /// Name of the method, the same in tables, plots and JSON.
    fn method(&self) -> &'static str;
    /// Number of vectors.
    fn len(&self) -> usize;
    /// Whether there is no vector.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Dimension of the vectors.
    fn dim(&self) -> usize;
    /// Number of cells; 0 for a method without cells.
    fn cells(&self) -> usize;
    /// Whether a share of bins is one of its parameters.
    fn has_bins(&self) -> bool;
    /// A searcher for one thread.
    fn worker(&self) -> Box<dyn Worker + '_>;
    /// Answers all queries together on `threads` threads; `None` when the method has no batch search.
    fn search_batch(
        &self,
        queries: Rows<'_>,
        params: &Params,
        threads: usize,
    ) -> Option<Result<Vec<Answer>>>;
}

/// Name of this project's method in tables, plots and JSON.
pub const GARLIC: &str = "garlic";

struct IndexWorker<'a>(garlic_ann::search::Searcher<'a>);

impl Worker for IndexWorker<'_> {
    fn search(&mut self, query: &[f32], params: &Params) -> Result<Answer> {
        Ok(self.0.search(query, &params.search())?)
    }

    fn search_grid(
        &mut self,
        query: &[f32],
        k: usize,
        probes: &[usize],
        bins: &[f64],
    ) -> Option<Result<Vec<Answer>>> {
        Some(
            self.0
                .search_grid(query, k, probes, bins)
                .map_err(Into::into),
        )
    }
}

impl Target for Index {
    fn method(&self) -> &'static str {
        GARLIC
    }

    fn len(&self) -> usize {
        Index::len(self)
    }

    fn dim(&self) -> usize {
        Index::dim(self)
    }

    fn cells(&self) -> usize {
        Index::cells(self)
    }

    fn has_bins(&self) -> bool {
        true
    }

    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(IndexWorker(self.searcher()))
    }

    fn search_batch(
        &self,
        queries: Rows<'_>,
        params: &Params,
        threads: usize,
    ) -> Option<Result<Vec<Answer>>> {
        let search = params.search().threads(threads);
        Some(Index::search_batch(self, queries, &search).map_err(Into::into))
    }
}
