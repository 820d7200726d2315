//! Searches with the neighbour graph: expand candidates, then rerank them.

use garlic_core::{Answer, Metric, SearchStats, TopK};
use garlic_linalg::Rows;
use rayon::prelude::*;

use super::query::QueryScratch;
use super::rerank::{Observer, Unobserved};
use super::searcher::{Scratch, Searcher};
use crate::graph::{Admission, AllAdmitted, Expanded, Expansion, Graph, Limits, PreparedQuery};
use crate::plan::{GraphPlan, Plan};
use crate::segment::{Index, Snapshot};

/// Queries of a batch that are ordered by their cells. A prepared query takes about a kilobyte.
pub(super) const ORDERED_QUERIES: usize = 4096;

/// Queries that are prepared together.
const PREPARED_QUERIES: usize = 8;

/// Upper limit of the candidates of an expansion if not all points are admitted. Candidates that are not admitted count
/// as well.
const MAX_MIXED_CANDIDATES: usize = 4096;

/// The nodes of the points that a snapshot admits.
struct Admitted<'a>(Snapshot<'a>);

impl Admission for Admitted<'_> {
    const ALL: bool = false;

    #[inline]
    fn admits(&self, at: u32) -> bool {
        let position = self.0.position_of_node(at);
        position.is_some_and(|position| self.0.admits(position))
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
    /// If the graph does not find enough admitted points, candidates come from cells and bins.
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
        if !self.find_in_graph(search, plan, scratch, &mut work) {
            work += match search.plan.all_otherwise {
                true => self.brute_force(query, plan.k, best),
                false => self.search_bins(query, plan, scratch, best, observer),
            };
            return work;
        }
        let QueryScratch { bytes, found, .. } = scratch;
        let prepared = self.segment.vectors.prepare(query, bytes);
        let pruned = Plan {
            rerank_prune_ratio: search.plan.rerank_prune_ratio,
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
        plan: &Plan,
        scratch: &mut QueryScratch,
        work: &mut SearchStats,
    ) -> bool {
        let limits = Limits {
            k: plan.k,
            ratio: rule.expand_ratio,
            candidates: rule.candidates,
            unvisited: scratch.unvisited.and_then(|p| self.node_at(p)),
        };
        if self.admits_all_nodes() {
            let done = self.expand(graph, &limits, &AllAdmitted, &mut scratch.expansion);
            count(graph, done, work);
            self.copy_found(&AllAdmitted, scratch);
            return true;
        }
        let limits = Limits {
            candidates: rule.candidates.max(MAX_MIXED_CANDIDATES),
            ..limits
        };
        let admitted = Admitted(*self);
        let done = self.expand(graph, &limits, &admitted, &mut scratch.expansion);
        count(graph, done, work);
        if done.overflowed || scratch.expansion.kth(plan.k) == f32::INFINITY {
            return false;
        }
        self.copy_found(&admitted, scratch);
        true
    }

    /// Expands the prepared query in the graph of all points.
    fn expand(
        &self,
        graph: &Graph,
        limits: &Limits,
        admission: &impl Admission,
        expansion: &mut Expansion,
    ) -> Expanded {
        match self.grown() {
            None => graph.expand(limits, admission, expansion),
            Some(grown) => grown.expand(limits, admission, expansion),
        }
    }

    /// Stores the admitted candidates of an expansion at their positions, nearest first.
    fn copy_found(&self, admission: &impl Admission, scratch: &mut QueryScratch) {
        let QueryScratch {
            expansion, found, ..
        } = scratch;
        found.clear();
        expansion.copy_to(admission, found);
        if self.grown().is_some() {
            found.retain_mut(|candidate| {
                let position = self.position_of_node(candidate.at);
                candidate.at = position.unwrap_or(candidate.at);
                position.is_some()
            });
        }
    }
}

/// Counts the work of an expansion.
fn count(graph: &Graph, done: Expanded, work: &mut SearchStats) {
    *work = done.stats();
    work.rotation_madds = graph.codes.rotation_madds();
    let [head, rest] = graph.codes.quantizer.part_crumbs();
    work.code_madds = done.codes * head as u64 + done.rests * rest as u64;
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
