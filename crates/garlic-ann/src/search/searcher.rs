//! Running queries: one at a time with buffers that are kept, or many in parallel.

use std::sync::{Mutex, PoisonError};

use garlic_linalg::Rows;
use rayon::prelude::*;

use super::params::{Answer, Plan, Search};
use super::route::RouteScratch;
use super::scan::{Best, Seen};
use super::work::Work;
use crate::cell::bins::BinScratch;
use crate::error::{Error, Result};
use crate::index::{Index, thread_pool};

/// Buffers of one query at a time.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(super) query: Vec<f32>,
    pub(super) route: RouteScratch,
    pub(super) cells: Vec<u32>,
    pub(super) centred: Vec<f32>,
    pub(super) coordinates: Vec<f32>,
    pub(super) bins: BinScratch,
    pub(super) seen: Seen,
    pub(super) best: Best,
}

/// Buffers that [`Index::search`] borrows, so that single queries do not allocate them anew.
#[derive(Default)]
#[expect(
    clippy::vec_box,
    reason = "moving a pointer in and out is cheaper than moving the buffers' handles"
)]
pub(crate) struct ScratchPool(Mutex<Vec<Box<Scratch>>>);

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

impl Clone for ScratchPool {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl std::fmt::Debug for ScratchPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ScratchPool")
    }
}

impl PartialEq for ScratchPool {
    fn eq(&self, _: &Self) -> bool {
        true
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
        let plan = search.plan(&self.index.config)?;
        self.index.check_query(query, 0)?;
        Ok(self.index.run(query, &plan, &mut self.scratch))
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
        let plan = search.plan(&self.config)?;
        for (row, query) in queries.iter().enumerate() {
            self.check_query(query, row)?;
        }
        if plan.threads == 1 {
            let mut searcher = self.searcher();
            return Ok(queries
                .iter()
                .map(|q| self.run(q, &plan, &mut searcher.scratch))
                .collect());
        }
        let pool = thread_pool(plan.threads)?;
        Ok(pool.install(|| {
            (0..queries.len())
                .into_par_iter()
                .map_init(
                    || self.searcher(),
                    |s, i| self.run(queries.row(i), &plan, &mut s.scratch),
                )
                .collect()
        }))
    }

    /// The `count` cells nearest to a query in Mahalanobis distance, nearest first: those a search visits.
    pub fn route(&self, query: &[f32], count: usize) -> Result<Vec<u32>> {
        self.check_query(query, 0)?;
        let mut searcher = self.searcher();
        self.route_query(query, count, &mut searcher.scratch, &mut Work::default());
        Ok(searcher.scratch.cells.clone())
    }

    /// Maps a query into the model's space and finds its cells; both are left in `scratch`.
    pub(super) fn route_query(
        &self,
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
        mapped.resize(self.dim(), 0.0);
        self.space.apply(query, mapped);
        work.rotation_madds += self.space.apply_madds();
        self.router
            .route(&self.model, mapped, count, route, work, cells);
    }

    pub(super) fn check_query(&self, query: &[f32], row: usize) -> Result<()> {
        if query.len() != self.dim() {
            return Err(Error::Dimension {
                expected: self.dim(),
                found: query.len(),
            });
        }
        match query.iter().position(|v| !v.is_finite()) {
            Some(column) => Err(Error::QueryNotFinite {
                row,
                column,
                value: query[column],
            }),
            None => Ok(()),
        }
    }

    /// One query that has been checked.
    fn run(&self, query: &[f32], plan: &Plan, scratch: &mut Scratch) -> Answer {
        let dim = self.dim();
        let mut work = Work::default();
        self.route_query(query, plan.probes, scratch, &mut work);
        scratch.seen.start(self.len());
        scratch.best.start(plan.k);
        for cell in &scratch.cells {
            let cell = &self.cells[*cell as usize];
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
                    if scratch.seen.first(*position) {
                        let at = *position as usize;
                        let squared =
                            garlic_simd::l2_squared(query, &self.vectors[at * dim..(at + 1) * dim]);
                        scratch.best.offer(squared, self.ids[at]);
                        work.candidates += 1;
                    }
                }
            }
        }
        work.exact_madds = work.candidates * dim as u64;
        Answer {
            hits: scratch.best.hits(),
            work,
        }
    }
}
