//! Runs queries, one at a time with reused buffers or many in parallel.

use super::plan::{Planned, plan};
use super::query::QueryScratch;
use crate::segment::{Index, Snapshot};
use garlic_core::metric::{Embedding, Points, QueryContext};
use garlic_core::validate::check_query;
use garlic_core::vectors::StoredType;
use garlic_core::{Answer, Cancel, Metric, Result, Search, TopK};
use garlic_linalg::Rows;
use rayon::prelude::*;

/// Number of queries of a batch that share rotation and projection.
const BATCH_QUERIES: usize = 64;

/// Buffers of one query.
#[derive(Default)]
pub(crate) struct Scratch {
    /// The embedded query.
    pub(super) embedded: Vec<f32>,
    pub(super) best: TopK,
    pub(super) buffers: QueryScratch,
}

/// Searches one index with buffers of its own. This is the fastest way to run many single queries on one thread.
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
    /// Fails for an invalid query or parameter, and in a [`Cancel::scope`] when its flag is set.
    pub fn search(&mut self, query: &[f32], search: &Search) -> Result<Answer> {
        let planned = plan(search, self.index)?;
        self.index.check_query(query, 0)?;
        let (index, scratch) = (self.index, &mut self.scratch);
        index.reading(|| index.run_query(query, 0, &planned, scratch))
    }
}

impl Drop for Searcher<'_> {
    fn drop(&mut self) {
        self.index.scratch.give(std::mem::take(&mut self.scratch));
    }
}

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
    /// Creates a searcher with its own buffers.
    pub fn searcher(&self) -> Searcher<'_> {
        Searcher {
            index: self,
            scratch: self.scratch.take(),
        }
    }

    /// The nearest neighbours of one query.
    ///
    /// # Errors
    /// Fails for an invalid query or parameter, and in a [`Cancel::scope`] when its flag is set.
    pub fn search(&self, query: &[f32], search: &Search) -> Result<Answer> {
        self.searcher().search(query, search)
    }

    /// The nearest neighbours of every query, in order, on [`Search::threads`] threads.
    ///
    /// # Errors
    /// Fails for an invalid query or parameter, and in a [`Cancel::scope`] when its flag is set.
    pub fn search_batch(&self, queries: Rows<'_>, search: &Search) -> Result<Vec<Answer>> {
        self.reading(|| self.run_all(queries, search))
    }

    fn run_all(&self, queries: Rows<'_>, search: &Search) -> Result<Vec<Answer>> {
        let planned = plan(search, self)?;
        let cancel = Cancel::current();
        let threads = planned.plan.threads;
        for (row, query) in queries.iter().enumerate() {
            self.check_query(query, row)?;
        }
        let mut answers = vec![Answer::default(); queries.len()];
        let group = |start: usize, answers: &mut [Answer], searcher: &mut Searcher<'_>| {
            let queries = queries.slice(start..start + answers.len());
            let scratch = &mut searcher.scratch;
            self.run_batch(queries, start, &planned, &cancel, scratch, answers)
        };
        if threads == 1 {
            let mut searcher = self.searcher();
            for (i, answers) in answers.chunks_mut(BATCH_QUERIES).enumerate() {
                group(i * BATCH_QUERIES, answers, &mut searcher)?;
            }
            return Ok(answers);
        }
        // Groups are small enough to balance the threads and large enough to share work within a group.
        let size = queries.len().div_ceil(4 * threads).clamp(1, BATCH_QUERIES);
        let done: Vec<Result<()>> = self.workers.with(threads)?.install(|| {
            let groups = answers.par_chunks_mut(size).enumerate();
            let done = groups.map_init(
                || self.searcher(),
                |searcher, (i, answers)| group(i * size, answers, searcher),
            );
            done.collect()
        });
        // Return the first error in the order of queries, whatever order the threads worked in.
        done.into_iter().collect::<Result<()>>()?;
        Ok(answers)
    }

    /// Answers checked queries into `answers`. Errors count rows from `first`.
    fn run_batch(
        &self,
        queries: Rows<'_>,
        first: usize,
        planned: &Planned,
        cancel: &Cancel,
        scratch: &mut Scratch,
        answers: &mut [Answer],
    ) -> Result<()> {
        cancel.check()?;
        let Planned { plan, allowed } = planned;
        // With a filter, queries may visit different numbers of cells.
        let shares = !plan.exact && !plan.all && allowed.is_none();
        if let Some(search) = self.snapshot().graph_search(plan).filter(|_| shares) {
            self.search_many_in_graph(search, queries, plan, scratch, answers);
            return cancel.check();
        }
        if shares && plan.bin_prune_ratio.is_finite() && plan.graph.is_none() {
            let Scratch { buffers, best, .. } = scratch;
            self.snapshot()
                .search_many(queries, plan, buffers, best, answers);
            return cancel.check();
        }
        for (row, (query, answer)) in (first..).zip(queries.iter().zip(answers)) {
            cancel.check()?;
            *answer = cancel.scope(|| self.run_query(query, row, planned, scratch))?;
        }
        Ok(())
    }

    /// The `count` best cells of a query, best first. A search with [`Search::probes`] and [`Search::bins`] visits
    /// these.
    ///
    /// # Errors
    /// Fails for an invalid query.
    pub fn route(&self, query: &[f32], count: usize) -> Result<Vec<u32>> {
        self.check_layout()?;
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

    /// Answers one checked query. Errors name it by `row`.
    fn run_query(
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
        let snapshot = self.snapshot().with(allowed.as_deref());
        let stats = if plan.exact {
            snapshot.search_exactly(inside, plan.k, buffers, best)
        } else if plan.all {
            snapshot.brute_force(inside, plan.k, best)
        } else {
            snapshot.search(inside, plan, buffers, best)
        };
        // Reading all points ends early if the flag is set.
        Cancel::current().check()?;
        let context = QueryContext {
            query,
            embedded: inside,
            row,
            wanted: plan.wanted,
            exact: plan.exact,
            complete: plan.exact || plan.all,
        };
        let answer = Metric::answer(&snapshot, &context, best, stats);
        scratch.embedded = buffer;
        answer
    }
}
