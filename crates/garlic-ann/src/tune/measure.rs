//! Measures a plan: runs it on held-out points as a search does.

use rayon::prelude::*;

use crate::plan::Plan;
use crate::search::{CostModel, QueryScratch, Reranked};
use crate::segment::{Index, Snapshot};
use garlic_core::Cancel;
use garlic_core::Result;
use garlic_core::{SearchStats, TopK};

/// Number of queries per task.
const QUERIES_PER_TASK: usize = 32;
/// Relative tolerance when distances are compared. All recalls of this project use it.
const TOLERANCE: f32 = 1e-6;
/// Number of standard errors that are subtracted from a measured recall.
const STANDARD_ERRORS: f64 = 1.5;

/// A held-out point: its position, the squared distance of its k-th neighbour for every k, the same as a ranking
/// distance, and the positions of the neighbours for the largest k.
pub(super) struct Query {
    pub(super) position: u32,
    pub(super) radii: Vec<f32>,
    pub(super) ranking_radii: Vec<f32>,
    pub(super) neighbours: Vec<u32>,
}

impl Query {
    /// Reads the point into `vector` as a query.
    pub(super) fn read(&self, snapshot: &Snapshot<'_>, vector: &mut Vec<f32>) {
        if let Some(point) = snapshot.point(self.position) {
            point.read(snapshot.index.transform.dim(), vector);
        }
        snapshot.index.embedding.as_query(vector);
    }

    /// Whether the point of this query is at a position. A point may have two positions.
    fn is_at(&self, snapshot: &Snapshot<'_>, position: u32) -> bool {
        position == self.position
            || snapshot.index.spills()
                && snapshot.point(position).map(|p| p.id) == self.id(snapshot)
    }

    fn id(&self, snapshot: &Snapshot<'_>) -> Option<u64> {
        snapshot.point(self.position).map(|p| p.id)
    }
}

/// The distance that decides whether a result is a true neighbour: the embedded distance or, for inner products, the
/// negative product. One very long vector makes all embedded distances nearly equal, so they cannot rank inner
/// products.
pub(super) struct RankingDistance<'a> {
    snapshot: Snapshot<'a>,
    stored: Vec<f32>,
}

impl<'a> RankingDistance<'a> {
    pub(super) fn new(snapshot: Snapshot<'a>) -> Self {
        let stored = Vec::new();
        Self { snapshot, stored }
    }

    /// The ranking distance of the point at a position from an embedded query, given the squared embedded distance.
    pub(super) fn of(&mut self, query: &[f32], position: u32, squared: f32) -> f32 {
        let index = self.snapshot.index;
        if !index.embedding.reads_vectors() {
            return squared.sqrt();
        }
        if let Some(point) = self.snapshot.point(position) {
            point.read(index.transform.dim(), &mut self.stored);
        }
        let plain = |vector| index.embedding.plain(vector);
        -garlic_simd::dot(plain(query), plain(&self.stored))
    }
}

/// Runs plans on the queries for one k.
pub(super) struct Evaluator<'a> {
    pub(super) index: &'a Index,
    pub(super) queries: &'a [Query],
    /// Index of k in the radii of the queries.
    pub(super) at: usize,
    pub(super) k: usize,
    pub(super) cost_model: &'a CostModel,
}

/// Measured recall and cost of a plan.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    /// Mean recall minus [`STANDARD_ERRORS`] standard errors.
    pub(super) recall: f64,
    /// Mean recall, and its standard error.
    pub(super) mean: f64,
    pub(super) error: f64,
    /// Mean cost of a query.
    pub(super) cost: f64,
}

impl Evaluator<'_> {
    /// Runs a plan on all queries.
    pub(super) fn run(&self, plan: &Plan, cancel: &Cancel) -> Result<Measured> {
        let [measured] = self.run_ratios(plan, [plan.rerank_prune_ratio], cancel)?;
        Ok(measured)
    }

    /// Runs a plan on all queries with each of the ascending rerank prune ratios. One run without pruning shows where
    /// each ratio would have stopped.
    pub(super) fn run_ratios<const N: usize>(
        &self,
        plan: &Plan,
        ratios: [f32; N],
        cancel: &Cancel,
    ) -> Result<[Measured; N]> {
        cancel.check()?;
        let plan = &Plan {
            rerank_prune_ratio: f32::MAX,
            ..*plan
        };
        let parts: Vec<Sums<N>> = self
            .queries
            .par_chunks(QUERIES_PER_TASK)
            .map(|queries| run(self.index, queries, self.at, plan, ratios))
            .collect();
        let mut sums = Sums::new();
        for part in parts {
            sums.work += part.work;
            for (all, one) in sums.pruned.iter_mut().zip(part.pruned) {
                all.found += one.found;
                all.squares += one.squares;
                all.candidates += one.candidates;
            }
        }
        let (n, k) = (self.queries.len() as f64, self.k as f64);
        Ok(sums.pruned.map(|s| {
            let mean = s.found as f64 / (n * k);
            let variance = (s.squares as f64 / (n * k * k) - mean * mean).max(0.0);
            let mut work = sums.work;
            work.candidates = s.candidates;
            let error = (variance / n).sqrt();
            Measured {
                recall: mean - STANDARD_ERRORS * error,
                mean,
                error,
                cost: self.cost_model.of(&work, self.queries.len()) / n,
            }
        }))
    }
}

/// Sums over queries. They are integers, so they do not depend on the distribution of queries to threads.
struct Sums<const N: usize> {
    work: SearchStats,
    pruned: [Pruned; N],
}

impl<const N: usize> Sums<N> {
    fn new() -> Self {
        Self {
            work: SearchStats::default(),
            pruned: [Pruned::default(); N],
        }
    }
}

/// Sums for one rerank prune ratio.
#[derive(Clone, Copy, Default)]
struct Pruned {
    found: u64,
    squares: u64,
    candidates: u64,
}

/// Runs a plan without pruning of candidates on some queries. `at` is the index of its k in the radii. Ratios ascend.
fn run<const N: usize>(
    index: &Index,
    queries: &[Query],
    at: usize,
    plan: &Plan,
    ratios: [f32; N],
) -> Sums<N> {
    let mut sums = Sums::new();
    let snapshot = Snapshot::new(index);
    // One more, because the query finds itself. In the graph it would lead to all of its neighbours, so there it is not
    // visited.
    let more = usize::from(plan.expand_ratio.is_none());
    let wider = Plan {
        k: plan.k + more,
        rerank: plan.rerank + more,
        ..*plan
    };
    let (mut scratch, mut best) = (QueryScratch::default(), TopK::default());
    let mut vector = Vec::new();
    let mut ranking = RankingDistance::new(snapshot);
    for query in queries {
        query.read(&snapshot, &mut vector);
        scratch.unvisited = Some(query.position);
        let radius = query.ranking_radii[at] + query.ranking_radii[at].abs() * TOLERANCE;
        // The order of candidates does not depend on the ratio. Smaller ratios stop earlier.
        let (mut found, mut candidates, mut stopped) = (0, 0, 0);
        let mut ends = [None; N];
        let observe = |c: Reranked| {
            while stopped < N && c.estimate > ratios[stopped] * c.worst {
                ends[stopped] = Some((found, candidates));
                stopped += 1;
            }
            candidates += 1;
            let counts = c.new
                && ranking.of(&vector, c.at, c.squared) <= radius
                && !query.is_at(&snapshot, c.at);
            found += u64::from(counts);
        };
        sums.work += snapshot.search_observed(&vector, &wider, &mut scratch, &mut best, observe);
        for (sums, end) in sums.pruned.iter_mut().zip(ends) {
            let (found, candidates) = end.unwrap_or((found, candidates));
            let found = found.min(plan.k as u64);
            sums.found += found;
            sums.squares += found * found;
            sums.candidates += candidates;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::{rows, uniform};
    use crate::tune::ground_truth::ground_truth;
    use crate::tune::profile::RERANK_PRUNE_RATIOS;

    #[test]
    fn one_run_tells_what_every_ratio_would_have_found() {
        let (dim, count) = (24, 3000);
        let mut values = uniform(count, dim, 5);
        for (i, value) in values.iter_mut().enumerate() {
            *value /= (1 + i % dim) as f32;
        }
        let builder = Index::builder().set("calibration_queries", "0").unwrap();
        let index = builder.build(rows(&values, dim)).unwrap();
        let k = 10;
        let held: Vec<u32> = (0..200).collect();
        let queries = ground_truth(&index.snapshot(), &held, &[k], &Cancel::default()).unwrap();
        let plan = Plan {
            probes: 3,
            rerank: 60,
            bin_prune_ratio: 1.1,
            rerank_prune_ratio: f32::MAX,
            ..Plan::everything(k)
        };
        let sums = run(&index, &queries, 0, &plan, RERANK_PRUNE_RATIOS);
        for (ratio, sums) in RERANK_PRUNE_RATIOS.into_iter().zip(sums.pruned) {
            let plan = Plan {
                k: k + 1,
                rerank: plan.rerank + 1,
                rerank_prune_ratio: ratio,
                ..plan
            };
            let (mut found, mut candidates) = (0, 0);
            let (mut scratch, mut best) = (QueryScratch::default(), TopK::default());
            for query in &queries {
                let mut vector = Vec::new();
                let snapshot = index.snapshot();
                query.read(&snapshot, &mut vector);
                candidates += snapshot
                    .search(&vector, &plan, &mut scratch, &mut best)
                    .candidates;
                let radius = query.ranking_radii[0] * (1.0 + TOLERANCE);
                let near = best.found().filter(|f| f.squared.sqrt() <= radius);
                let others = near.filter(|f| f.position != query.position);
                found += others.count().min(k) as u64;
            }
            assert_eq!(
                (sums.found, sums.candidates),
                (found, candidates),
                "{ratio}"
            );
        }
        let last = sums.pruned[RERANK_PRUNE_RATIOS.len() - 1];
        assert!(sums.pruned[0].candidates < last.candidates && sums.pruned[0].found <= last.found);
    }
}
