//! Searches with the neighbour graph: expand candidates, then rerank them.

use garlic_core::{Answer, Metric, SearchStats, TopK};
use garlic_linalg::Rows;
use rayon::prelude::*;

use super::query::QueryScratch;
use super::rerank::{Observer, Unobserved};
use super::searcher::{Scratch, Searcher};
use crate::graph::{Graph, Limits, PreparedQuery};
use crate::plan::Plan;
use crate::segment::{Index, Snapshot};

/// Queries of a batch that are ordered by their cells. A prepared query takes about a kilobyte.
pub(super) const ORDERED_QUERIES: usize = 4096;

impl Snapshot<'_> {
    /// Answers one prepared query into `best`, with candidates from the graph. `observer` sees each of them.
    #[expect(clippy::too_many_arguments, reason = "the parts of a query")]
    pub(super) fn search_prepared(
        &self,
        graph: &Graph,
        query: &[f32],
        plan: &Plan,
        ratio: f32,
        scratch: &mut QueryScratch,
        best: &mut TopK,
        observer: &mut impl Observer,
    ) -> SearchStats {
        let limits = Limits {
            k: plan.k,
            ratio,
            candidates: plan.rerank,
            unvisited: scratch.unvisited,
        };
        let encoded = &self.segment.encoded;
        let bin_starts = |cell: usize, starts: &mut Vec<u32>| {
            let first = |bin: usize| encoded.positions(bin).start as u32;
            starts.extend(encoded.bins_of(cell).map(first));
        };
        let done = graph.expand(&limits, bin_starts, &mut scratch.expansion);
        scratch.found.clear();
        scratch.expansion.copy_to(&mut scratch.found);
        let mut work = done.stats();
        let QueryScratch { bytes, found, .. } = scratch;
        let prepared = self.segment.vectors.prepare(query, bytes);
        self.rerank(&prepared, plan, found, best, &mut work, observer);
        self.scan_uncovered(query, best, &mut work);
        let dim = self.index.transform.dim() as u64;
        work.rotation_madds = graph.codes.rotation_madds();
        work.code_madds = work.codes * graph.codes.quantizer.dim() as u64;
        work.exact_madds = work.candidates * dim;
        work
    }
}

impl Index {
    /// Answers embedded queries with the graph into `answers`. `asked` are the same queries as they were given.
    ///
    /// Queries of one cell follow each other, because they read many of the same points.
    pub(super) fn search_ordered(
        &self,
        graph: &Graph,
        (asked, queries): (Rows<'_>, Rows<'_>),
        plan: &Plan,
        ratio: f32,
        answers: &mut [Answer],
    ) -> garlic_core::Result<()> {
        let prepare = |searcher: &mut Searcher<'_>, i: usize| {
            let expansion = &mut searcher.scratch.buffers.expansion;
            graph.prepare(queries.row(i), expansion);
            std::mem::take(&mut expansion.prepared)
        };
        let answer = |searcher: &mut Searcher<'_>, i: u32, prepared: &mut PreparedQuery| {
            let Scratch { buffers, best, .. } = &mut *searcher.scratch;
            std::mem::swap(&mut buffers.expansion.prepared, prepared);
            let (i, snapshot) = (i as usize, self.snapshot());
            let query = queries.row(i);
            let work =
                snapshot.search_prepared(graph, query, plan, ratio, buffers, best, &mut Unobserved);
            let hits = Metric::report(&snapshot, asked.row(i), best, plan.wanted);
            Answer::new(hits, work, false)
        };
        let all = 0..queries.len();
        let in_order = |prepared: Vec<PreparedQuery>| {
            let mut order: Vec<(u32, PreparedQuery)> = (0..).zip(prepared).collect();
            order.sort_by_key(|(_, prepared)| prepared.cell());
            order
        };
        if plan.threads == 1 {
            let mut searcher = self.searcher();
            let prepared = all.map(|i| prepare(&mut searcher, i)).collect();
            for (i, mut prepared) in in_order(prepared) {
                answers[i as usize] = answer(&mut searcher, i, &mut prepared);
            }
            return Ok(());
        }
        let size = queries.len().div_ceil(4 * plan.threads).max(1);
        let answered: Vec<(u32, Answer)> = self.workers.with(plan.threads)?.install(|| {
            let prepared = all.into_par_iter().with_min_len(size);
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
