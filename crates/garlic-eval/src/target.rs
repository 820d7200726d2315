//! What can be measured: anything that answers queries and counts its work.

use garlic_core::{Answer, Metric, NeighborIndex, NeighborSearcher, Search};
use garlic_linalg::Rows;
use serde::Serialize;

use crate::error::Result;

/// Recall targets from easy to hard: those that curves of the default preset are drawn through.
pub const TARGETS: [f64; 8] = [0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995];

/// One setting of a search; what is null is left to the method.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Params {
    /// Neighbours asked for.
    pub k: usize,
    /// Share of the true neighbours to aim at.
    pub recall: Option<f64>,
    /// Cells visited (k_G); null for a method without cells.
    pub probes: Option<usize>,
    /// Share of the visited cells' bins scanned (rho); null for a method without bins.
    pub bins: Option<f64>,
    /// Exact distances, the best by their codes; null for a method without codes.
    pub rerank: Option<usize>,
    /// All true neighbours, proved.
    pub exact: bool,
}

impl Params {
    /// `k` neighbours; everything else is left to the method.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            recall: None,
            probes: None,
            bins: None,
            rerank: None,
            exact: false,
        }
    }

    /// The same setting with a share of the true neighbours to aim at.
    pub fn recall(self, target: f64) -> Self {
        Self {
            recall: Some(target),
            ..self
        }
    }

    /// The setting as a search of the library.
    pub fn search(&self) -> Search {
        let mut search = Search::new(self.k).exact(self.exact);
        if let Some(recall) = self.recall {
            search = search.recall(recall);
        }
        if let Some(rerank) = self.rerank {
            search = search.rerank(rerank);
        }
        if let Some(probes) = self.probes {
            search = search.probes(probes);
        }
        if let Some(bins) = self.bins {
            search = search.bins(bins);
        }
        search
    }

    /// The setting in words, such as `recall 0.95` or `probes 8, bins 0.02, rerank 40`.
    pub fn label(&self) -> String {
        if self.exact {
            return "exact".to_owned();
        }
        let parts: Vec<String> = [
            self.recall.map(|r| format!("recall {r}")),
            self.probes.map(|p| format!("probes {p}")),
            self.bins.map(|b| format!("bins {b}")),
            self.rerank.map(|n| format!("rerank {n}")),
        ]
        .into_iter()
        .flatten()
        .collect();
        if parts.is_empty() {
            return "all points".to_owned();
        }
        parts.join(", ")
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
    /// What "near" means to it.
    fn metric(&self) -> Metric {
        Metric::Euclidean
    }
    /// Number of cells; 0 for a method without cells.
    fn cells(&self) -> usize;
    /// Whether a share of bins is one of its parameters.
    fn has_bins(&self) -> bool;
    /// Whether the number of exact distances is one of its parameters.
    fn has_rerank(&self) -> bool {
        false
    }
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

/// Name of the default preset in tables, plots and JSON.
pub const GARLIC_DEFAULT: &str = "garlic default";

/// Name of the published method in tables, plots and JSON.
pub const GARLIC_PAPER: &str = "garlic paper";

/// An index of any kind, to be measured.
#[derive(Clone, Copy, Debug)]
pub struct IndexTarget<'a>(pub &'a dyn NeighborIndex);

struct IndexWorker<'a>(Box<dyn NeighborSearcher + 'a>);

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
        let answers = self.0.search_grid(query, k, probes, bins);
        Some(answers.map_err(Into::into))
    }
}

impl Target for IndexTarget<'_> {
    fn method(&self) -> &'static str {
        match self.0.takes_recall() {
            true => GARLIC_DEFAULT,
            false => GARLIC_PAPER,
        }
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn metric(&self) -> Metric {
        self.0.metric()
    }

    fn cells(&self) -> usize {
        self.0.cells()
    }

    fn has_bins(&self) -> bool {
        true
    }

    fn has_rerank(&self) -> bool {
        self.0.takes_recall()
    }

    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(IndexWorker(self.0.searcher()))
    }

    fn search_batch(
        &self,
        queries: Rows<'_>,
        params: &Params,
        threads: usize,
    ) -> Option<Result<Vec<Answer>>> {
        let search = params.search().threads(threads);
        Some(self.0.search_batch(queries, &search).map_err(Into::into))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_in_words_and_as_a_search() {
        let none = Params::new(10);
        let given = Params {
            probes: Some(8),
            bins: Some(0.02),
            rerank: Some(40),
            ..none
        };
        let exact = Params {
            exact: true,
            ..none
        };
        assert_eq!(none.label(), "all points");
        assert_eq!(none.recall(0.95).label(), "recall 0.95");
        assert_eq!(given.label(), "probes 8, bins 0.02, rerank 40");
        assert_eq!(exact.label(), "exact");
        let mixed = Params {
            rerank: Some(40),
            ..none.recall(0.9)
        };
        assert_eq!(mixed.label(), "recall 0.9, rerank 40");

        assert_eq!(none.search(), Search::new(10));
        assert_eq!(none.recall(0.9).search(), Search::new(10).recall(0.9));
        let wanted = Search::new(10).probes(8).bins(0.02).rerank(40);
        assert_eq!(given.search(), wanted);
        assert_eq!(exact.search(), Search::new(10).exact(true));
    }
}
