//! Searches with the neighbour graph: expand candidates, then rerank them.

use garlic_core::{Answer, Metric, SearchStats, TopK};
use garlic_linalg::Rows;

use super::disk::{WaitingQueries, WaitingQuery};
use super::query::QueryScratch;
use super::rerank::{Observer, Unobserved};
use super::searcher::Scratch;
use crate::graph::{Admission, AllAdmitted, Expanded, Expansion, Graph, Limits};
use crate::plan::{GraphPlan, Plan};
use crate::segment::{Index, Snapshot};

/// Queries that are rotated together.
const ROTATED_QUERIES: usize = 8;

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

impl GraphSearch<'_> {
    /// The plan for the candidates of the graph.
    fn pruned(&self, plan: &Plan) -> Plan {
        Plan {
            rerank_prune_ratio: self.plan.rerank_prune_ratio,
            ..*plan
        }
    }
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
        let pruned = search.pruned(plan);
        self.rerank(&prepared, &pruned, found, best, &mut work, observer);
        self.scan_uncovered(query, best, &mut work);
        work.exact_madds = work.candidates * self.index.transform.dim() as u64;
        work
    }

    /// Stores the candidates of a prepared query in `scratch`, nearest first. Returns false if the graph does not lead
    /// to enough admitted points.
    fn find_in_graph(
        &self,
        search: GraphSearch<'_>,
        plan: &Plan,
        scratch: &mut QueryScratch,
        work: &mut SearchStats,
    ) -> bool {
        if self.admits_all_nodes() {
            self.find_in_whole_graph(search, plan, scratch, work);
            return true;
        }
        let GraphSearch { graph, plan: rule } = search;
        let limits = Limits {
            candidates: rule.candidates.max(MAX_MIXED_CANDIDATES),
            ..self.limits(rule, plan, scratch)
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

    /// [`Snapshot::find_in_graph`] if all points of the graph are admitted.
    fn find_in_whole_graph(
        &self,
        GraphSearch { graph, plan: rule }: GraphSearch<'_>,
        plan: &Plan,
        scratch: &mut QueryScratch,
        work: &mut SearchStats,
    ) {
        let limits = self.limits(rule, plan, scratch);
        let done = self.expand(graph, &limits, &AllAdmitted, &mut scratch.expansion);
        count(graph, done, work);
        self.copy_found(&AllAdmitted, scratch);
    }

    fn limits(&self, rule: GraphPlan, plan: &Plan, scratch: &QueryScratch) -> Limits {
        Limits {
            k: plan.k,
            ratio: rule.expand_ratio,
            candidates: rule.candidates,
            unvisited: scratch.unvisited.and_then(|p| self.node_at(p)),
        }
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

    /// Finds the candidates of queries. An index on the disk has no changes, and this search no filter, so that the graph
    /// has an answer for every query.
    fn wait_for_vectors<'q>(
        &self,
        search: GraphSearch<'_>,
        queries: Rows<'q>,
        plan: &Plan,
        scratch: &mut QueryScratch,
    ) -> WaitingQueries<'q> {
        let mut waiting = WaitingQueries::default();
        for first in (0..queries.len()).step_by(ROTATED_QUERIES) {
            let end = queries.len().min(first + ROTATED_QUERIES);
            let rotated = queries.slice(first..end);
            search.graph.rotate(rotated, &mut scratch.expansion);
            for at in 0..rotated.len() {
                search.graph.prepare_rotated(at, &mut scratch.expansion);
                let mut work = SearchStats::default();
                self.find_in_whole_graph(search, plan, scratch, &mut work);
                waiting.push(WaitingQuery {
                    number: first + at,
                    query: queries.row(first + at),
                    found: scratch.found.clone(),
                    plan: search.pruned(plan),
                    work,
                    routed: None,
                });
            }
        }
        waiting
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
    /// Answers queries with the graph into `answers`. Some queries at a time share the reading of the rotation.
    pub(super) fn search_many_in_graph(
        &self,
        search: GraphSearch<'_>,
        asked: Rows<'_>,
        plan: &Plan,
        scratch: &mut Scratch,
        answers: &mut [Answer],
    ) {
        let embedded = self.embedding.queries(asked);
        let (queries, snapshot) = (embedded.rows(), self.snapshot());
        if let Some(file) = snapshot.on_disk() {
            let waiting = snapshot.wait_for_vectors(search, queries, plan, &mut scratch.buffers);
            return snapshot.finish_waiting(file, waiting, asked, answers);
        }
        let Scratch { buffers, best, .. } = scratch;
        for (group, answers) in answers.chunks_mut(ROTATED_QUERIES).enumerate() {
            let first = group * ROTATED_QUERIES;
            let rotated = queries.slice(first..first + answers.len());
            search.graph.rotate(rotated, &mut buffers.expansion);
            for (number, answer) in answers.iter_mut().enumerate() {
                search.graph.prepare_rotated(number, &mut buffers.expansion);
                let (query, observer) = (rotated.row(number), &mut Unobserved);
                let work = snapshot.search_prepared(search, query, plan, buffers, best, observer);
                let hits = Metric::report(&snapshot, asked.row(first + number), best, plan.wanted);
                *answer = Answer::new(hits, work, false);
            }
        }
    }
}
