//! Running queries: one at a time with buffers that are kept, or many in parallel.

use super::plan::{Planned, plan};
use super::query::QueryScratch;
use crate::segment::{Index, Snapshot};
use garlic_core::metric::{Asked, Embedding, Points};
use garlic_core::validate::check_query;
use garlic_core::vectors::StoredType;
use garlic_core::{Answer, Metric, Result, Search, TopK};
use garlic_linalg::Rows;
use rayon::prelude::*;

/// Queries of a batch that share the work of rotating and projecting.
const GROUP: usize = 64;

/// Buffers of one query at a time.
#[derive(Default)]
pub(crate) struct Scratch {
    /// The query in the metric's embedding.
    pub(super) embedded: Vec<f32>,
    pub(super) best: TopK,
    pub(super) buffers: QueryScratch,
}

/// Searches one index with buffers of its own: the fastest way to run many single queries on one thread.
pub struct Searcher<'a> {
    pub(super) index: &'a Index,
    pub(super) scratch: Box<Scratch>,
}

impl std::fmt::Debug for Searcher<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Searcher of {} points", self.index.len())
    }
}

impl Searcher<'_> {
    /// The nearest neighbours of one query.
    ///
    /// # Errors
    /// A query or a parameter that is not allowed.
    pub fn search(&mut self, query: &[f32], search: &Search) -> Result<Answer> {
        let planned = plan(search, self.index)?;
        self.index.check_query(query, 0)?;
        self.index.run(query, 0, &planned, &mut self.scratch)
    }
}

impl Drop for Searcher<'_> {
    fn drop(&mut self) {
        self.index.scratch.give(std::mem::take(&mut self.scratch));
    }
}

/// The points that a query may find.
impl Points for Snapshot<'_> {
    fn embedding(&self) -> &Embedding {
        &self.index.embedding
    }

    fn len(&self) -> usize {
        self.index.len()
    }

    fn dim(&self) -> usize {
        self.index.dim()
    }

    fn element(&self) -> StoredType {
        self.segment.vectors.element()
    }

    fn read_at(&self, position: u32, out: &mut Vec<f32>) {
        if let Some(point) = self.point(position) {
            point.read(self.index.transform.dim(), out);
        }
    }

    fn each(&self, each: &mut dyn FnMut(u32, u64)) {
        for position in self.admitted() {
            if let Some(point) = self.point(position) {
                each(position, point.id);
            }
        }
    }

    fn repeats(&self) -> bool {
        self.index.spills()
    }
}

impl Index {
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
    /// A query or a parameter that is not allowed.
    pub fn search(&self, query: &[f32], search: &Search) -> Result<Answer> {
        self.searcher().search(query, search)
    }

    /// The nearest neighbours of every query, in order, on [`Search::threads`] threads.
    ///
    /// # Errors
    /// A query or a parameter that is not allowed.
    pub fn search_batch(&self, queries: Rows<'_>, search: &Search) -> Result<Vec<Answer>> {
        let planned = plan(search, self)?;
        let threads = planned.plan.threads;
        for (row, query) in queries.iter().enumerate() {
            self.check_query(query, row)?;
        }
        let mut answers = vec![Answer::default(); queries.len()];
        let group = |start: usize, answers: &mut [Answer], searcher: &mut Searcher<'_>| {
            let queries = queries.slice(start..start + answers.len());
            self.run_many(queries, start, &planned, &mut searcher.scratch, answers)
        };
        if threads == 1 {
            let mut searcher = self.searcher();
            for (i, answers) in answers.chunks_mut(GROUP).enumerate() {
                group(i * GROUP, answers, &mut searcher)?;
            }
            return Ok(answers);
        }
        // Small enough that the threads end together, large enough to share the work within a group.
        let size = queries.len().div_ceil(4 * threads).clamp(1, GROUP);
        let done: Vec<Result<()>> = self.workers.with(threads)?.install(|| {
            let groups = answers.par_chunks_mut(size).enumerate();
            let done = groups.map_init(
                || self.searcher(),
                |searcher, (i, answers)| group(i * size, answers, searcher),
            );
            done.collect()
        });
        // The first error by the order of queries, whatever the threads did first.
        done.into_iter().collect::<Result<()>>()?;
        Ok(answers)
    }

    /// Queries that have been checked, into the places of their answers; errors call the first one `first`.
    fn run_many(
        &self,
        queries: Rows<'_>,
        first: usize,
        planned: &Planned,
        scratch: &mut Scratch,
        answers: &mut [Answer],
    ) -> Result<()> {
        let Planned { plan, allowed } = planned;
        // With a filter every query may visit another number of cells.
        if !plan.exact && !plan.all && allowed.is_none() && plan.bin_prune_ratio.is_finite() {
            let Scratch { buffers, best, .. } = scratch;
            self.snapshot()
                .search_many(queries, plan, buffers, best, answers);
            return Ok(());
        }
        for (row, (query, answer)) in (first..).zip(queries.iter().zip(answers)) {
            *answer = self.run(query, row, planned, scratch)?;
        }
        Ok(())
    }

    /// The `count` best cells of a query, best first: those that a search with [`Search::probes`] and
    /// [`Search::bins`] visits.
    ///
    /// # Errors
    /// A query that is not allowed.
    pub fn route(&self, query: &[f32], count: usize) -> Result<Vec<u32>> {
        self.check_order()?;
        self.check_query(query, 0)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut searcher = self.searcher();
        let mut buffer = Vec::new();
        let query = self.embedding.query(query, &mut buffer);
        let cells = self
            .snapshot()
            .route(query, count, &mut searcher.scratch.buffers);
        Ok(cells)
    }

    pub(super) fn check_query(&self, query: &[f32], row: usize) -> Result<()> {
        check_query(query, self.dim(), &self.embedding, row)
    }

    /// One query that has been checked; `row` is what an error calls it.
    fn run(
        &self,
        query: &[f32],
        row: usize,
        planned: &Planned,
        scratch: &mut Scratch,
    ) -> Result<Answer> {
        let Planned { plan, allowed } = planned;
        let mut buffer = std::mem::take(&mut scratch.embedded);
        let inside = self.embedding.query(query, &mut buffer);
        let Scratch { buffers, best, .. } = &mut *scratch;
        let view = self.snapshot().with(allowed.as_deref());
        let stats = if plan.exact {
            view.search_exactly(inside, plan.k, buffers, best)
        } else if plan.all {
            view.brute_force(inside, plan.k, best)
        } else {
            view.search(inside, plan, buffers, best)
        };
        let asked = Asked {
            query,
            inside,
            row,
            wanted: plan.wanted,
            exact: plan.exact,
            complete: plan.exact || plan.all,
        };
        let answer = Metric::answer(&view, &asked, best, stats);
        scratch.embedded = buffer;
        answer
    }
}
