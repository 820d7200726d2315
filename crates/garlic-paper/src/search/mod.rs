//! Retrieval: from a query to its neighbours.
//!
//! In: a query and a [`Search`] or [`RangeSearch`](garlic_core::RangeSearch). Out: an [`Answer`].
//!
//! A query is mapped into the space of the Gaussians and routed to the k_G nearest cells. In each of them it is projected
//! into the frame, the share rho of the occupied bins that are nearest is scanned, and exact distances decide. `allowed`
//! translates filters, `exact` reads all vectors instead, `range` finds all points within a radius, and `sweep` answers
//! many settings of one query at once.

mod allowed;
mod exact;
mod range;
mod sweep;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use garlic_core::metric::QueryContext;
use garlic_core::validate::check_query;
use garlic_core::{Answer, Cancel, Error, Metric, Result, Search, SearchStats, TopK, VisitedSet};
use garlic_linalg::Rows;
use rayon::prelude::*;

use crate::bins::{BinScratch, Cell};
use crate::index::GaussianIndex;
use crate::route::RouteScratch;
use allowed::{Allowed, Seen};

/// Buffers of one query at a time.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// The query in the metric's embedding.
    embedded: Vec<f32>,
    /// The query in the space of the Gaussians.
    query: Vec<f32>,
    route: RouteScratch,
    centred: Vec<f32>,
    coordinates: Vec<f32>,
    bins: BinScratch,
    seen: VisitedSet,
    best: TopK,
}

/// Buffers that [`GaussianIndex::search`] borrows, so that single queries do not allocate them anew.
///
/// Copies of an index share them.
#[derive(Clone, Default)]
#[expect(
    clippy::vec_box,
    reason = "moving a pointer in and out is cheaper than moving the buffers' handles"
)]
pub(crate) struct ScratchPool(Arc<Mutex<Vec<Box<Scratch>>>>);

impl ScratchPool {
    fn take(&self) -> Box<Scratch> {
        // Buffers hold no invariant that a panic elsewhere could break.
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pool.pop().unwrap_or_default()
    }

    fn give(&self, scratch: Box<Scratch>) {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pool.push(scratch);
    }
}

impl fmt::Debug for ScratchPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScratchPool")
    }
}

/// Searches one index with buffers of its own: the fastest way to run many single queries on one thread.
#[derive(Debug)]
pub struct Searcher<'a> {
    index: &'a GaussianIndex,
    scratch: Box<Scratch>,
}

impl Searcher<'_> {
    /// The nearest neighbours of one query.
    ///
    /// # Errors
    /// A query or a parameter that is not allowed.
    pub fn search(&mut self, query: &[f32], search: &Search) -> Result<Answer> {
        let plan = self.index.plan(search)?;
        self.index.check_query(query, 0)?;
        self.index.run(query, 0, &plan, &mut self.scratch)
    }
}

impl Drop for Searcher<'_> {
    fn drop(&mut self) {
        self.index.scratch.give(std::mem::take(&mut self.scratch));
    }
}

/// Checked parameters with all defaults filled in.
#[derive(Debug)]
struct Plan {
    /// Neighbours to look for.
    k: usize,
    /// Neighbours to report; more are looked for where the metric asks for it.
    wanted: usize,
    /// Cells to visit (k_G).
    probes: usize,
    /// Share of each visited cell's bins (rho).
    bins: f64,
    exact: bool,
    /// The points that the filter allows; all without one.
    allowed: Option<Arc<Allowed>>,
}

/// Why a search cannot aim at a recall or ask for candidates.
const NO_CALIBRATION: &str =
    "an index built by the published method has no calibration and no codes; use probes and bins";

impl GaussianIndex {
    /// A searcher with its own buffers.
    pub fn searcher(&self) -> Searcher<'_> {
        Searcher {
            index: self,
            scratch: self.scratch.take(),
        }
    }

    /// The nearest neighbours of one query.
    ///
    /// # Errors
    /// A query or a parameter that is not allowed; a recall or a number of candidates, which this method does not know.
    pub fn search(&self, query: &[f32], search: &Search) -> Result<Answer> {
        self.searcher().search(query, search)
    }

    /// The nearest neighbours of every query, in order, on [`Search::threads`] threads.
    ///
    /// # Errors
    /// Those of [`GaussianIndex::search`]; of several queries the first by their order.
    pub fn search_batch(&self, queries: Rows<'_>, search: &Search) -> Result<Vec<Answer>> {
        let plan = self.plan(search)?;
        self.batch(queries, search.thread_count(), |query, row, scratch| {
            self.run(query, row, &plan, scratch)
        })
    }

    /// The `count` nearest cells of a query, nearest first: those that a search with [`Search::probes`] visits.
    ///
    /// # Errors
    /// A query that is not allowed.
    pub fn route(&self, query: &[f32], count: usize) -> Result<Vec<u32>> {
        self.check_query(query, 0)?;
        let mut searcher = self.searcher();
        let mut buffer = Vec::new();
        let query = self.embedding.query(query, &mut buffer);
        let scratch = &mut *searcher.scratch;
        self.route_embedded(query, count, scratch, &mut SearchStats::default());
        Ok(scratch.route.cells.clone())
    }

    fn check_query(&self, query: &[f32], row: usize) -> Result<()> {
        check_query(query, self.dim(), &self.embedding, row)
    }

    fn plan(&self, search: &Search) -> Result<Plan> {
        search.check()?;
        let allowed = self.allowed(search.wanted_filter())?;
        let refuse = |name, value: String| {
            let rule = NO_CALIBRATION;
            Err(Error::SearchParameter { name, value, rule })
        };
        if let Some(recall) = search.wanted_recall() {
            return refuse("recall", recall.to_string());
        }
        if let Some(rerank) = search.wanted_rerank() {
            return refuse("rerank", rerank.to_string());
        }
        let defaults = &self.config.search;
        Ok(Plan {
            k: self.embedding.widened_k(search.k()),
            wanted: search.k(),
            probes: search.wanted_probes().unwrap_or(defaults.probes),
            bins: search.wanted_bins().unwrap_or(defaults.bins),
            exact: search.is_exact(),
            allowed,
        })
    }

    /// Answers every query, each checked first, in order.
    fn batch(
        &self,
        queries: Rows<'_>,
        threads: usize,
        answer: impl Fn(&[f32], usize, &mut Scratch) -> Result<Answer> + Sync,
    ) -> Result<Vec<Answer>> {
        for (row, query) in queries.iter().enumerate() {
            self.check_query(query, row)?;
        }
        let cancel = Cancel::current();
        let answer = |query: &[f32], row, scratch: &mut Scratch| {
            cancel.check()?;
            answer(query, row, scratch)
        };
        if threads == 1 {
            let mut searcher = self.searcher();
            let rows = queries.iter().enumerate();
            let answers = rows.map(|(row, query)| answer(query, row, &mut searcher.scratch));
            return answers.collect();
        }
        let answers: Vec<Result<Answer>> = self.workers.with(threads)?.install(|| {
            let rows = (0..queries.len()).into_par_iter();
            let answers = rows.map_init(
                || self.searcher(),
                |searcher, row| answer(queries.row(row), row, &mut searcher.scratch),
            );
            answers.collect()
        });
        // The first error by the order of queries, whatever the threads did first.
        answers.into_iter().collect()
    }

    /// One query that has been checked; `row` is what an error calls it.
    fn run(&self, query: &[f32], row: usize, plan: &Plan, scratch: &mut Scratch) -> Result<Answer> {
        let mut buffer = std::mem::take(&mut scratch.embedded);
        let inside = self.embedding.query(query, &mut buffer);
        let stats = match plan.exact {
            true => self.read_all(inside, plan, &mut scratch.best),
            false => self.scan(inside, plan, scratch),
        };
        let asked = QueryContext {
            query,
            embedded: inside,
            row,
            wanted: plan.wanted,
            exact: plan.exact,
            complete: plan.exact,
        };
        let answer = Metric::answer(&self.seen(plan), &asked, &scratch.best, stats);
        scratch.embedded = buffer;
        answer
    }

    /// The points that a query may find.
    fn seen<'a>(&'a self, plan: &'a Plan) -> Seen<'a> {
        Seen {
            index: self,
            allowed: plan.allowed.as_deref(),
        }
    }

    /// Leaves the best points of the nearest bins of the nearest cells in `scratch`.
    fn scan(&self, query: &[f32], plan: &Plan, scratch: &mut Scratch) -> SearchStats {
        let points = self.seen(plan);
        let mut stats = SearchStats::default();
        self.route_embedded(query, plan.probes, scratch, &mut stats);
        scratch.seen.start(self.len());
        scratch.best.start(plan.k);
        let mut bytes = Vec::new();
        let prepared = self.vectors.prepare(query, &mut bytes);
        for cell in &scratch.route.cells {
            let cell = &self.trained.cells[*cell as usize];
            if cell.bins.occupied().is_empty() {
                continue;
            }
            scratch.coordinates.clear();
            cell.frame.project(
                &scratch.query,
                &mut scratch.centred,
                &mut scratch.coordinates,
            );
            count_cell(cell, &mut stats);
            let count = self.bins_within(cell, plan.bins);
            let nearest = cell
                .bins
                .nearest(&scratch.coordinates, count, &mut scratch.bins);
            for bin in nearest {
                for position in cell.bins.members_of(*bin as usize) {
                    if scratch.seen.insert(*position) && points.admits(*position) {
                        let at = *position as usize;
                        let squared = self.vectors.distance(&prepared, at);
                        scratch.best.offer(squared, self.ids[at], *position);
                        stats.candidates += 1;
                    }
                }
            }
        }
        stats.exact_madds = stats.candidates * self.transform.dim() as u64;
        stats
    }

    /// Bins of a cell that a query scans for the share `rho` of them.
    fn bins_within(&self, cell: &Cell, rho: f64) -> usize {
        cell.bins.budget(rho as f32, self.config.search.bin_budget)
    }

    /// Maps an embedded query into the space of the Gaussians and finds its cells; both are left in `scratch`.
    fn route_embedded(
        &self,
        query: &[f32],
        count: usize,
        scratch: &mut Scratch,
        stats: &mut SearchStats,
    ) {
        let Scratch {
            query: mapped,
            route,
            ..
        } = scratch;
        mapped.resize(self.transform.dim(), 0.0);
        self.transform.apply(query, mapped);
        stats.rotation_madds += self.transform.apply_madds();
        let trained = &*self.trained;
        trained
            .router
            .route(&trained.model, mapped, count, route, stats);
    }
}

/// Counts projecting a query into a cell's frame and ordering its bins.
fn count_cell(cell: &Cell, stats: &mut SearchStats) {
    stats.cells_projected += 1;
    stats.projection_madds += cell.frame.project_madds();
    stats.bins_ordered += cell.bins.occupied().len() as u64;
    stats.ordering_madds += cell.bins.ordering_work();
}
