//! Searches with the neighbour graph: expand candidates, then rerank them.

use garlic_core::{SearchStats, TopK};

use super::query::QueryScratch;
use super::rerank::Reranked;
use crate::graph::{Graph, Limits};
use crate::plan::Plan;
use crate::segment::Snapshot;

impl Snapshot<'_> {
    /// Answers one query into `best`, with candidates from the graph. `observe` is called for each of them.
    #[expect(clippy::too_many_arguments, reason = "the parts of a query")]
    pub(super) fn search_graph(
        &self,
        graph: &Graph,
        query: &[f32],
        plan: &Plan,
        ratio: f32,
        scratch: &mut QueryScratch,
        best: &mut TopK,
        observe: impl FnMut(Reranked),
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
        let done = graph.expand(query, &limits, bin_starts, &mut scratch.expansion);
        scratch.found.clear();
        scratch.expansion.copy_to(&mut scratch.found);
        let mut work = done.stats();
        let QueryScratch { bytes, found, .. } = scratch;
        let prepared = self.segment.vectors.prepare(query, bytes);
        self.rerank(&prepared, plan, found, best, &mut work, observe);
        self.scan_uncovered(query, best, &mut work);
        let dim = self.index.transform.dim() as u64;
        work.rotation_madds = graph.codes.rotation_madds();
        work.code_madds = work.codes * graph.codes.quantizer.dim() as u64;
        work.exact_madds = work.candidates * dim;
        work
    }
}
