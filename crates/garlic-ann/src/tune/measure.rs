//! What a plan does: run on held-out points as a search runs it.

use rayon::prelude::*;

use crate::plan::Plan;
use crate::search::{Prices, QueryScratch, Reranked};
use crate::segment::{Index, Snapshot};
use garlic_core::Cancel;
use garlic_core::Result;
use garlic_core::{SearchStats, TopK};

/// Queries that one task runs.
const CHUNK: usize = 32;
/// Relative tolerance when distances are compared, as in every recall of this project.
const TOLERANCE: f32 = 1e-6;
/// A measured recall counts less this many standard errors.
const CAUTION: f64 = 1.5;

/// A point that was held out: its position, the squared distance of its k-th neighbour for every k that is measured, the same
/// as neighbours are judged by, and the positions of the neighbours for the largest.
pub(super) struct Query {
    pub(super) position: u32,
    pub(super) radii: Vec<f32>,
    pub(super) judged: Vec<f32>,
    pub(super) neighbours: Vec<u32>,
}

impl Query {
    /// The point as a query, into `vector`.
    pub(super) fn read(&self, view: &Snapshot<'_>, vector: &mut Vec<f32>) {
        if let Some(point) = view.point(self.position) {
            point.read(view.index.transform.dim(), vector);
        }
        view.index.embedding.as_query(vector);
    }

    /// Whether the query's own point is at a position; it may be at two.
    fn is_at(&self, view: &Snapshot<'_>, position: u32) -> bool {
        position == self.position
            || view.index.spills() && view.point(position).map(|p| p.id) == self.id(view)
    }

    fn id(&self, view: &Snapshot<'_>) -> Option<u64> {
        view.point(self.position).map(|p| p.id)
    }
}

/// What neighbours are judged by: distances inside, but for inner products. Beside one very long vector those are all but the
/// same distance, and a search that cannot tell them apart is not to be called a good one.
pub(super) struct Judge<'a> {
    view: Snapshot<'a>,
    stored: Vec<f32>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(view: Snapshot<'a>) -> Self {
        let stored = Vec::new();
        Self { view, stored }
    }

    /// The distance of the point at a position, at a squared distance inside, from an embedded query.
    pub(super) fn of(&mut self, query: &[f32], position: u32, squared: f32) -> f32 {
        let index = self.view.index;
        if !index.embedding.reads_vectors() {
            return squared.sqrt();
        }
        if let Some(point) = self.view.point(position) {
            point.read(index.transform.dim(), &mut self.stored);
        }
        let plain = |vector| index.embedding.plain(vector);
        -garlic_simd::dot(plain(query), plain(&self.stored))
    }
}

/// The queries of one k.
pub(super) struct Trial<'a> {
    pub(super) index: &'a Index,
    pub(super) queries: &'a [Query],
    /// Place of k in the queries' radii.
    pub(super) at: usize,
    pub(super) k: usize,
    pub(super) prices: &'a Prices,
}

/// What one plan did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    /// Mean recall, less [`CAUTION`] standard errors.
    pub(super) recall: f64,
    /// Mean recall, and its standard error.
    pub(super) mean: f64,
    pub(super) error: f64,
    /// Mean price of a query.
    pub(super) price: f64,
}

impl Trial<'_> {
    /// Runs a plan on all queries.
    pub(super) fn run(&self, plan: &Plan, cancel: &Cancel) -> Result<Measured> {
        let [measured] = self.run_ratios(plan, [plan.rerank_prune_ratio], cancel)?;
        Ok(measured)
    }

    /// Runs a plan on all queries with each of some rerank prune ratios, which ascend. One run that prunes no candidate
    /// tells for every ratio where it would have stopped.
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
            .par_chunks(CHUNK)
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
                recall: mean - CAUTION * error,
                mean,
                error,
                price: self.prices.of(&work) / n,
            }
        }))
    }
}

/// Sums over queries: whole numbers, so that they do not depend on how threads share the queries.
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

/// What comes out with one rerank prune ratio.
#[derive(Clone, Copy, Default)]
struct Pruned {
    found: u64,
    squares: u64,
    candidates: u64,
}

/// Runs one plan, which prunes no candidate, on some queries; `at` is the place of its k in the radii. Ratios ascend.
fn run<const N: usize>(
    index: &Index,
    queries: &[Query],
    at: usize,
    plan: &Plan,
    ratios: [f32; N],
) -> Sums<N> {
    let mut sums = Sums::new();
    let view = Snapshot::new(index);
    // One more, for the query finds itself.
    let wider = Plan {
        k: plan.k + 1,
        rerank: plan.rerank + 1,
        ..*plan
    };
    let (mut scratch, mut best) = (QueryScratch::default(), TopK::default());
    let mut vector = Vec::new();
    let mut judge = Judge::new(view);
    for query in queries {
        query.read(&view, &mut vector);
        let radius = query.judged[at] + query.judged[at].abs() * TOLERANCE;
        // Candidates come in the same order whatever the ratio: the smaller, the sooner it stops.
        let (mut found, mut candidates, mut stopped) = (0, 0, 0);
        let mut ends = [None; N];
        let watch = |c: Reranked| {
            while stopped < N && c.estimate > ratios[stopped] * c.worst {
                ends[stopped] = Some((found, candidates));
                stopped += 1;
            }
            candidates += 1;
            let counts =
                c.new && judge.of(&vector, c.at, c.squared) <= radius && !query.is_at(&view, c.at);
            found += u64::from(counts);
        };
        sums.work += view.search_watched(&vector, &wider, &mut scratch, &mut best, watch);
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
    use crate::tune::profile::RERANK_PRUNE_RATIOS;
    use crate::tune::truth::truth;

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
        let queries = truth(&index.snapshot(), &held, &[k], &Cancel::default()).unwrap();
        let plan = Plan {
            probes: 3,
            rerank: 60,
            bin_prune_ratio: 1.1,
            rerank_prune_ratio: f32::MAX,
            ..Plan::everything(k)
        };
        let told = run(&index, &queries, 0, &plan, RERANK_PRUNE_RATIOS);
        for (ratio, told) in RERANK_PRUNE_RATIOS.into_iter().zip(told.pruned) {
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
                let view = index.snapshot();
                query.read(&view, &mut vector);
                candidates += view
                    .search(&vector, &plan, &mut scratch, &mut best)
                    .candidates;
                let radius = query.judged[0] * (1.0 + TOLERANCE);
                let near = best.found().filter(|f| f.squared.sqrt() <= radius);
                let others = near.filter(|f| f.position != query.position);
                found += others.count().min(k) as u64;
            }
            assert_eq!(
                (told.found, told.candidates),
                (found, candidates),
                "{ratio}"
            );
        }
        let last = told.pruned[RERANK_PRUNE_RATIOS.len() - 1];
        assert!(told.pruned[0].candidates < last.candidates && told.pruned[0].found <= last.found);
    }
}
