//! Searches with the neighbour graph: expand candidates, then rerank them.

use garlic_core::{Answer, Metric, SearchStats, TopK};
use garlic_linalg::Rows;
use garlic_simd::Estimate;
use rayon::prelude::*;

use super::query::{QueryScratch, keep_best};
use super::rerank::{Observer, Unobserved};
use super::searcher::{Scratch, Searcher};
use crate::graph::{Admission, AllAdmitted, Expanded, Graph, Limits, PreparedQuery};
use crate::plan::{GraphPlan, Plan};
use crate::segment::{Index, Snapshot};

/// Queries of a batch that are ordered by their cells. A prepared query takes about a kilobyte.
pub(super) const ORDERED_QUERIES: usize = 4096;

/// Queries that are prepared together.
const PREPARED_QUERIES: usize = 8;

/// Upper limit of the candidates of an expansion if not all points are admitted. Candidates that are not admitted count
/// as well.
const MAX_MIXED_CANDIDATES: usize = 4096;

/// The points that a snapshot admits, at positions of the base.
struct Admitted<'a>(Snapshot<'a>);

impl Admission for Admitted<'_> {
    const ALL: bool = false;

    #[inline]
    fn admits(&self, at: u32) -> bool {
        self.0.admits(at)
    }
}

/// A graph and the parameters of a search in it.
#[derive(Clone, Copy)]
pub(super) struct GraphSearch<'a> {
    pub(super) graph: &'a Graph,
    pub(super) plan: GraphPlan,
}

impl<'a> Snapshot<'a> {
    /// The graph and its parameters, if the plan uses it.
    pub(super) fn graph_search(&self, plan: &Plan) -> Option<GraphSearch<'a>> {
        let (graph, plan) = (self.graph()?, plan.graph?);
        Some(GraphSearch { graph, plan })
    }

    /// Answers one prepared query into `best`, with candidates from the graph. `observer` sees each of them.
    ///
    /// Points outside the base come from cells and bins. If the graph does not find enough admitted points, all
    /// candidates do.
    pub(super) fn search_prepared(
        &self,
        search: GraphSearch<'_>,
        query: &[f32],
        plan: &Plan,
        scratch: &mut QueryScratch,
        best: &mut TopK,
        observer: &mut impl Observer,
    ) -> SearchStats {
        let mut work = SearchStats::default();
        if !self.find_in_graph(search, query, plan, scratch, &mut work) {
            work += match search.plan.all_otherwise {
                true => self.brute_force(query, plan.k, best),
                false => self.search_bins(query, plan, scratch, best, observer),
            };
            return work;
        }
        let QueryScratch { bytes, found, .. } = scratch;
        let prepared = self.segment.vectors.prepare(query, bytes);
        // Candidates outside the base have the estimates of bins.
        let ratio = match self.has_changes() {
            true => (plan.rerank_prune_ratio).max(search.plan.rerank_prune_ratio),
            false => search.plan.rerank_prune_ratio,
        };
        let pruned = Plan {
            rerank_prune_ratio: ratio,
            ..*plan
        };
        self.rerank(&prepared, &pruned, found, best, &mut work, observer);
        self.scan_uncovered(query, best, &mut work);
        work.exact_madds = work.candidates * self.index.transform.dim() as u64;
        work
    }

    /// Stores the candidates of a prepared query in `scratch`, nearest first. Returns false if the graph does not lead
    /// to enough admitted points.
    fn find_in_graph(
        &self,
        GraphSearch { graph, plan: rule }: GraphSearch<'_>,
        query: &[f32],
        plan: &Plan,
        scratch: &mut QueryScratch,
        work: &mut SearchStats,
    ) -> bool {
        let limits = Limits {
            k: plan.k,
            ratio: rule.expand_ratio,
            candidates: rule.candidates,
            unvisited: scratch.unvisited,
        };
        let count = |done: Expanded, work: &mut SearchStats| {
            *work = done.stats();
            work.rotation_madds = graph.codes.rotation_madds();
            let [head, rest] = graph.codes.quantizer.part_crumbs();
            work.code_madds = done.codes * head as u64 + done.rests * rest as u64;
        };
        if self.admits_all() {
            let expansion = &mut scratch.expansion;
            count(graph.expand(&limits, &AllAdmitted, expansion), work);
            scratch.found.clear();
            expansion.copy_to(&AllAdmitted, &mut scratch.found);
            return true;
        }
        let limits = Limits {
            candidates: rule.candidates.max(MAX_MIXED_CANDIDATES),
            ..limits
        };
        let admitted = Admitted(*self);
        let done = graph.expand(&limits, &admitted, &mut scratch.expansion);
        count(done, work);
        if done.overflowed || scratch.expansion.kth(plan.k) == f32::INFINITY {
            return false;
        }
        scratch.found.clear();
        if self.has_changes() {
            self.find_outside(query, plan, rule.all_otherwise, scratch, work);
        }
        scratch.expansion.copy_to(&admitted, &mut scratch.found);
        scratch.found.sort_unstable_by_key(Estimate::key);
        true
    }

    /// Stores the best candidates outside the base in `scratch`: from all bins of the nearest cells, or of all cells if
    /// `everywhere`.
    ///
    /// Bins are not pruned. The limit of their estimates refers to the best candidates of base and changes together,
    /// and those of the base are not known here.
    fn find_outside(
        &self,
        query: &[f32],
        plan: &Plan,
        everywhere: bool,
        scratch: &mut QueryScratch,
        work: &mut SearchStats,
    ) {
        let residual_squared = self.rotate_for_estimates(query, scratch);
        let probes = if everywhere { usize::MAX } else { plan.probes };
        self.nearest_cells(probes, scratch);
        let is_changed = |cell: usize| {
            let [rewritten, appended] = self.delta_positions(cell);
            !rewritten.is_empty() || !appended.is_empty()
        };
        scratch.cells.retain(|cell| is_changed(cell.at as usize));
        self.reset_scan(scratch);
        for number in 0..scratch.cells.len() {
            self.score_bins(number, residual_squared, f32::INFINITY, scratch);
        }
        let mut outside = SearchStats::default();
        let keep = plan.rerank.max(plan.k);
        self.scan_outside(keep, scratch, &mut outside);
        if scratch.found.len() > keep {
            keep_best(&mut scratch.found, keep);
        }
        outside.bins_ordered = scratch.bins.len() as u64;
        self.count_madds(scratch.cells.len(), scratch.scored, &mut outside);
        *work += outside;
    }
}

impl Index {
    /// Answers embedded queries with the graph into `answers`. `asked` are the same queries as they were given.
    ///
    /// Queries of one cell follow each other, because they read many of the same points.
    pub(super) fn search_ordered(
        &self,
        search: GraphSearch<'_>,
        (asked, queries): (Rows<'_>, Rows<'_>),
        plan: &Plan,
        answers: &mut [Answer],
    ) -> garlic_core::Result<()> {
        let prepare = |searcher: &mut Searcher<'_>, group: usize| {
            let expansion = &mut searcher.scratch.buffers.expansion;
            let first = group * PREPARED_QUERIES;
            let last = (first + PREPARED_QUERIES).min(queries.len());
            search
                .graph
                .prepare_all(queries.slice(first..last), expansion)
        };
        let answer = |searcher: &mut Searcher<'_>, i: u32, prepared: &mut PreparedQuery| {
            let Scratch { buffers, best, .. } = &mut *searcher.scratch;
            std::mem::swap(&mut buffers.expansion.prepared, prepared);
            let (i, snapshot) = (i as usize, self.snapshot());
            let query = queries.row(i);
            let observer = &mut Unobserved;
            let work = snapshot.search_prepared(search, query, plan, buffers, best, observer);
            let hits = Metric::report(&snapshot, asked.row(i), best, plan.wanted);
            Answer::new(hits, work, false)
        };
        let groups = 0..queries.len().div_ceil(PREPARED_QUERIES);
        let in_order = |prepared: Vec<Vec<PreparedQuery>>| {
            let prepared = prepared.into_iter().flatten();
            let mut order: Vec<(u32, PreparedQuery)> = (0..).zip(prepared).collect();
            order.sort_by_key(|(_, prepared)| prepared.cell());
            order
        };
        if plan.threads == 1 {
            let mut searcher = self.searcher();
            let prepared = groups.map(|i| prepare(&mut searcher, i)).collect();
            for (i, mut prepared) in in_order(prepared) {
                answers[i as usize] = answer(&mut searcher, i, &mut prepared);
            }
            return Ok(());
        }
        let size = queries.len().div_ceil(4 * plan.threads).max(1);
        let answered: Vec<(u32, Answer)> = self.workers.with(plan.threads)?.install(|| {
            let prepared = groups.into_par_iter();
            let prepared = prepared.map_init(|| self.searcher(), |s, i| prepare(s, i));
            let ordered = in_order(prepared.collect())
                .into_par_iter()
                .with_min_len(size);
            let answered = ordered.map_init(
                || self.searcher(),
                |searcher, (i, mut prepared)| (i, answer(searcher, i, &mut prepared)),
            );
            answered.collect()
        });
        for (i, answer) in answered {
            answers[i as usize] = answer;
        }
        Ok(())
    }
}
