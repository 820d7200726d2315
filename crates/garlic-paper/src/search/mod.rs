//! Running queries: one at a time with buffers that are kept, or many in parallel.

use std::sync::{Arc, Mutex, PoisonError};

use garlic_linalg::Rows;
use rayon::prelude::*;

use super::filter::Allowed;
use super::params::{Answer, Plan, Planned, Search};
use super::route::RouteScratch;
use super::scan::{Best, Seen};
use super::tempered::{TemperedScratch, read_all};
use super::work::Work;
use crate::cell::bins::BinScratch;
use crate::error::{Error, Result};
use crate::index::{Body, Index, LARGEST_VALUE, Published, View, thread_pool};

/// Queries of a batch that share the work of rotating and projecting.
const GROUP: usize = 64;

/// Buffers of one query at a time.
#[derive(Default)]
pub(crate) struct Scratch {
    /// The query in the metric's embedding.
    pub(super) embedded: Vec<f32>,
    pub(super) query: Vec<f32>,
    pub(super) route: RouteScratch,
    pub(super) cells: Vec<u32>,
    pub(super) centred: Vec<f32>,
    pub(super) coordinates: Vec<f32>,
    pub(super) bins: BinScratch,
    pub(super) seen: Seen,
    pub(super) best: Best,
    pub(super) tempered: TemperedScratch,
}

/// Buffers that [`Index::search`] borrows, so that single queries do not allocate them anew.
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
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
            .unwrap_or_default()
    }

    fn give(&self, scratch: Box<Scratch>) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(scratch);
    }
}

impl std::fmt::Debug for ScratchPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ScratchPool")
    }
}

/// Searches one index with buffers of its own: the fastest way to run many single queries on one thread.
pub struct Searcher<'a> {
    pub(super) index: &'a Index,
    pub(super) scratch: Box<Scratch>,
}

impl Searcher<'_> {
    /// The nearest neighbours of one query.
    pub fn search(&mut self, query: &[f32], search: &Search) -> Result<Answer> {
        let planned = search.plan(self.index)?;
        self.index.check_query(query, 0)?;
        self.index.run(query, 0, &planned, &mut self.scratch)
    }
}

impl Drop for Searcher<'_> {
    fn drop(&mut self) {
        self.index.scratch.give(std::mem::take(&mut self.scratch));
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
    pub fn search(&self, query: &[f32], search: &Search) -> Result<Answer> {
        self.searcher().search(query, search)
    }

    /// The nearest neighbours of every query, in order, on [`Search::threads`] threads.
    pub fn search_batch(&self, queries: Rows<'_>, search: &Search) -> Result<Vec<Answer>> {
        let planned = search.plan(self)?;
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
        let pool = thread_pool(threads)?;
        let done: Vec<Result<()>> = pool.install(|| {
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
        match self.view() {
            // With a filter every query may visit another number of cells.
            Some(view)
                if !plan.exact && !plan.all && allowed.is_none() && plan.slack.is_finite() =>
            {
                let Scratch { tempered, best, .. } = scratch;
                view.search_many(queries, plan, tempered, best, answers);
            }
            _ => {
                for (row, (query, answer)) in (first..).zip(queries.iter().zip(answers)) {
                    *answer = self.run(query, row, planned, scratch)?;
                }
            }
        }
        Ok(())
    }

    /// The `count` best cells of a query, best first: those that a search with [`Search::probes`] and
    /// [`Search::bins`] visits.
    pub fn route(&self, query: &[f32], count: usize) -> Result<Vec<u32>> {
        self.check_order()?;
        self.check_query(query, 0)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut searcher = self.searcher();
        let scratch = &mut *searcher.scratch;
        let mut buffer = Vec::new();
        let query = self.embedding.query(query, &mut buffer);
        match &self.body {
            Body::Published(body) => {
                self.route_query(body, query, count, scratch, &mut Work::default());
                Ok(scratch.cells.clone())
            }
            Body::Tempered(body) => {
                Ok(View::new(self, body).route(query, count, &mut scratch.tempered))
            }
        }
    }

    /// Maps a query into the model's space and finds its cells; both are left in `scratch`.
    pub(super) fn route_query(
        &self,
        body: &Published,
        query: &[f32],
        count: usize,
        scratch: &mut Scratch,
        work: &mut Work,
    ) {
        let Scratch {
            query: mapped,
            route,
            cells,
            ..
        } = scratch;
        mapped.resize(self.space.dim(), 0.0);
        self.space.apply(query, mapped);
        work.rotation_madds += self.space.apply_madds();
        body.router
            .route(&body.model, mapped, count, route, work, cells);
    }

    pub(super) fn check_query(&self, query: &[f32], row: usize) -> Result<()> {
        if query.len() != self.dim() {
            return Err(Error::Dimension {
                expected: self.dim(),
                found: query.len(),
            });
        }
        let right = |v: &f32| v.abs() <= LARGEST_VALUE;
        // Without a way out at every value, many are looked at at once.
        if query.iter().fold(true, |all, v| all & right(v)) {
            return self.embedding.check_query(query, row);
        }
        let wrong = query.iter().position(|v| !right(v));
        let column = wrong.unwrap_or_default();
        let value = query[column];
        Err(match value.is_finite() {
            true => Error::QueryTooLarge {
                row,
                column,
                value,
                limit: LARGEST_VALUE,
            },
            false => Error::QueryNotFinite { row, column, value },
        })
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
        let allowed = allowed.as_deref();
        let mut buffer = std::mem::take(&mut scratch.embedded);
        let inside = self.embedding.query(query, &mut buffer);
        let Scratch { tempered, best, .. } = &mut *scratch;
        let mut exact = plan.exact || plan.all;
        let mut work = match &self.body {
            Body::Published(_) if plan.exact => read_all(self, inside, plan.k, allowed, best),
            Body::Published(body) => self.run_published(body, inside, plan, allowed, scratch),
            Body::Tempered(body) => {
                let view = View::new(self, body).with(allowed);
                if plan.exact {
                    view.search_exactly(inside, plan.k, tempered, best)
                } else if plan.all {
                    view.brute_force(inside, plan.k, best)
                } else {
                    view.search(inside, plan, tempered, best)
                }
            }
        };
        let places = self.report_places(query, &scratch.best, plan.wanted);
        let in_double = exact && self.takes_double(inside, &places);
        let unsettled = exact && !self.settles(query, &places, scratch.best.worst());
        if in_double || unsettled {
            work.candidates += self.len() as u64;
            work.exact_madds += (self.len() * self.dim()) as u64;
        }
        let hits = if in_double {
            let settled = self.nearest_in_double(query, inside, plan.wanted, allowed);
            // Who has not asked for a proof gets the answer without.
            exact = plan.exact || settled.unproved.is_none();
            match plan.exact {
                true => settled.proved(row),
                false => Ok(settled.hits),
            }
        } else if unsettled {
            Ok(self.report_all(query, plan.wanted, allowed))
        } else {
            Ok(places.into_iter().map(|(hit, _)| hit).collect())
        };
        scratch.embedded = buffer;
        Ok(Answer {
            hits: hits?,
            work,
            exact,
        })
    }

    fn run_published(
        &self,
        body: &Published,
        query: &[f32],
        plan: &Plan,
        allowed: Option<&Allowed>,
        scratch: &mut Scratch,
    ) -> Work {
        let dim = self.space.dim();
        let admits = |position: u32| allowed.is_none_or(|allowed| allowed.contains(position));
        let mut work = Work::default();
        self.route_query(body, query, plan.probes, scratch, &mut work);
        scratch.seen.start(self.len());
        scratch.best.start(plan.k);
        let mut bytes = Vec::new();
        let prepared = self.vectors.prepare(query, &mut bytes);
        for cell in &scratch.cells {
            let cell = &body.cells[*cell as usize];
            if cell.bins.occupied().is_empty() {
                continue;
            }
            scratch.coordinates.clear();
            cell.frame.project(
                &scratch.query,
                &mut scratch.centred,
                &mut scratch.coordinates,
            );
            work.count_cell(cell);
            let nearest =
                cell.bins
                    .nearest(&scratch.coordinates, plan.bins as f32, &mut scratch.bins);
            for bin in nearest {
                for position in cell.bins.members_of(*bin as usize) {
                    if scratch.seen.first(*position) && admits(*position) {
                        let at = *position as usize;
                        let squared = self.vectors.distance(&prepared, at);
                        scratch.best.offer(squared, self.ids[at], *position);
                        work.candidates += 1;
                    }
                }
            }
        }
        work.exact_madds = work.candidates * dim as u64;
        work
    }
}
