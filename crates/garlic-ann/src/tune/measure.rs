//! Measures a plan: runs it on held-out points as a search does.

use rayon::prelude::*;

use crate::plan::{GraphPlan, Plan};
use crate::search::{CostModel, Observer, QueryScratch, Reranked};
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
/// A plan for more than one neighbour is run on so many queries that they cost about this much in total.
const RUN_COST: f64 = 3e8;
/// Upper limit of the memory for coordinates of queries.
const PROJECTED_BYTES: usize = 64 << 20;
/// One in this many queries is run first. A plan that misses this many times as much as a target allows on them is not
/// run on the others.
const FIRST_SHARE: usize = 4;
const HOPELESS_MISSES: f64 = 2.0;

/// A calibration query: an embedded vector and its true neighbours.
#[derive(Default)]
pub(super) struct Query {
    pub(super) vector: Vec<f32>,
    /// Position of the held-out point that the query is, if it is one. It does not count as its own neighbour.
    pub(super) position: Option<u32>,
    /// The squared distance of the k-th neighbour for every k, and the same as a ranking distance.
    pub(super) radii: Vec<f32>,
    pub(super) ranking_radii: Vec<f32>,
    /// Positions of the known neighbours, at least as many as the largest k, and the squared distance of the farthest.
    pub(super) neighbours: Vec<u32>,
    pub(super) farthest: f32,
    /// Coordinates in the frames of the nearest cells, which all runs share. Empty if they are not known.
    pub(super) projected: Vec<f32>,
}

impl Query {
    /// The query at a stored point. Its neighbours are not known yet.
    pub(super) fn held(snapshot: &Snapshot<'_>, position: u32) -> Self {
        let mut vector = Vec::new();
        if let Some(point) = snapshot.point(position) {
            point.read(snapshot.index.transform.dim(), &mut vector);
        }
        snapshot.index.embedding.as_query(&mut vector);
        Self {
            position: Some(position),
            ..Self::given(&vector)
        }
    }

    /// An embedded query that is not a stored point. Its neighbours are not known yet.
    pub(super) fn given(vector: &[f32]) -> Self {
        Self {
            vector: vector.to_vec(),
            ..Self::default()
        }
    }

    /// How many of the first `k` neighbours of a query are missing here. `at` is the index of `k` in the radii. Neighbours
    /// at the same distance stand for each other.
    pub(super) fn missed(&self, known: &Self, at: usize, k: usize) -> usize {
        let (found, radius) = (self.ranking_radii[at], known.ranking_radii[at]);
        if self.neighbours.len() >= k && found <= radius + radius.abs() * TOLERANCE {
            return 0;
        }
        let known = known.neighbours.iter().take(k);
        known.filter(|p| !self.neighbours.contains(p)).count()
    }

    /// Whether the point of this query is at a position. A point may have two positions.
    fn is_at(&self, snapshot: &Snapshot<'_>, position: u32) -> bool {
        self.position.is_some_and(|own| {
            let id = |position| snapshot.point(position).map(|p| p.id);
            position == own || snapshot.index.spills() && id(position) == id(own)
        })
    }
}

/// Computes the coordinates of queries in the frames of their nearest cells, within a limit of memory. Runs in the
/// current rayon pool.
pub(super) fn project(index: &Index, queries: &mut [Query]) {
    // The coarse quantizer may choose other cells.
    if index.segment.coarse_quantizer().is_some() {
        return;
    }
    let bytes = queries.len() * index.segment.cells.rank() * size_of::<f32>();
    let cells = PROJECTED_BYTES / bytes.max(1);
    queries
        .par_chunks_mut(QUERIES_PER_TASK)
        .for_each(|queries| {
            let mut scratch = QueryScratch::default();
            for query in queries {
                let snapshot = Snapshot::new(index);
                query.projected = snapshot.projections(&query.vector, cells, &mut scratch);
            }
        });
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
    /// Mean recall, and its standard error, as if one more query had missed as many neighbours as those that missed
    /// some. Otherwise a run without misses would have no error, however few the queries are.
    pub(super) mean: f64,
    pub(super) error: f64,
    /// Mean cost of a query.
    pub(super) cost: f64,
}

impl Evaluator<'_> {
    /// Runs a plan on all queries.
    pub(super) fn run(&self, plan: &Plan, cancel: &Cancel) -> Result<Measured> {
        let [measured] = self.run_ratios(plan, [prune_ratio(plan)], cancel)?;
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
        let sums = self.sums(self.queries, plan, ratios, cancel)?;
        Ok(self.measured(&sums, self.queries.len()))
    }

    /// The same with no more than this number of queries.
    pub(super) fn first(&self, count: usize) -> Self {
        Self {
            queries: &self.queries[..count.min(self.queries.len())],
            ..*self
        }
    }

    /// The recall that a run without any miss measures.
    pub(super) fn highest_recall(&self) -> f64 {
        let [measured] = self.measured(&Sums::<1>::new(), self.queries.len());
        measured.recall
    }

    /// Runs a plan on the first queries.
    pub(super) fn run_first(&self, plan: &Plan, cancel: &Cancel) -> Result<Measured> {
        let (first, _) = self.split();
        let sums = self.sums(first, plan, [prune_ratio(plan)], cancel)?;
        let [measured] = self.measured(&sums, first.len());
        Ok(measured)
    }

    fn split(&self) -> (&[Query], &[Query]) {
        let first = self.queries.len().div_ceil(FIRST_SHARE);
        self.queries.split_at(first)
    }

    /// [`Evaluator::run_ratios`], unless the first queries show that the plan is far from a target or costs too
    /// much. Returns what they measured without pruning as an error then.
    pub(super) fn run_unless_hopeless<const N: usize>(
        &self,
        plan: &Plan,
        ratios: [f32; N],
        (target, most_cost): (f64, f64),
        cancel: &Cancel,
    ) -> Result<std::result::Result<[Measured; N], Measured>> {
        let (first, rest) = self.split();
        let mut sums = self.sums(first, plan, ratios, cancel)?;
        let early: [Measured; N] = self.measured(&sums, first.len());
        if let [cheapest, .., best] = &early[..] {
            let is_far = 1.0 - best.mean > HOPELESS_MISSES * (1.0 - target) + 2.0 * best.error;
            if is_far || cheapest.cost >= most_cost {
                return Ok(Err(*best));
            }
        }
        // Fewer queries for more neighbours tell as much.
        let affordable = match (self.k, early.last()) {
            (2.., Some(best)) => (RUN_COST / best.cost.max(1.0)) as usize,
            _ => usize::MAX,
        };
        let rest = &rest[..affordable.saturating_sub(first.len()).min(rest.len())];
        sums.add(&self.sums(rest, plan, ratios, cancel)?);
        Ok(Ok(self.measured(&sums, first.len() + rest.len())))
    }

    fn sums<const N: usize>(
        &self,
        queries: &[Query],
        plan: &Plan,
        ratios: [f32; N],
        cancel: &Cancel,
    ) -> Result<Sums<N>> {
        cancel.check()?;
        let unpruned = |graph: GraphPlan| GraphPlan {
            rerank_prune_ratio: f32::MAX,
            ..graph
        };
        let plan = &Plan {
            rerank_prune_ratio: f32::MAX,
            graph: plan.graph.map(unpruned),
            ..*plan
        };
        let parts: Vec<Sums<N>> = queries
            .par_chunks(QUERIES_PER_TASK)
            .map(|queries| run(self.index, queries, self.at, plan, ratios))
            .collect();
        let mut sums = Sums::new();
        parts.iter().for_each(|part| sums.add(part));
        Ok(sums)
    }

    fn measured<const N: usize>(&self, sums: &Sums<N>, queries: usize) -> [Measured; N] {
        let (n, k) = (queries.max(1) as f64, self.k as f64);
        sums.pruned.map(|s| {
            let mut work = sums.work;
            work.candidates = s.candidates;
            let mean = 1.0 - s.missed as f64 / (n * k);
            let per_query = match s.missed {
                0 => 1.0,
                missed => s.squares as f64 / missed as f64,
            };
            let squares = (s.squares as f64 + per_query * per_query) / (n * k * k);
            let error = ((squares - (1.0 - mean).powi(2)).max(0.0) / n).sqrt();
            Measured {
                recall: (mean - STANDARD_ERRORS * error).max(0.0),
                mean,
                error,
                cost: self.cost_model.of(&work, queries) / n,
            }
        })
    }
}

/// The ratio that prunes the candidates of a plan.
fn prune_ratio(plan: &Plan) -> f32 {
    (plan.graph).map_or(plan.rerank_prune_ratio, |graph| graph.rerank_prune_ratio)
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

    fn add(&mut self, other: &Self) {
        self.work += other.work;
        for (all, one) in self.pruned.iter_mut().zip(&other.pruned) {
            all.missed += one.missed;
            all.squares += one.squares;
            all.candidates += one.candidates;
        }
    }
}

/// Sums for one rerank prune ratio: missed neighbours, their squares, and exact distances.
#[derive(Clone, Copy, Default)]
struct Pruned {
    missed: u64,
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
    let (mut scratch, mut best) = (QueryScratch::default(), TopK::default());
    let mut watch = Watch::new(snapshot, ratios);
    for query in queries {
        // One more if the query finds itself. In the graph it would lead to all of its neighbours, so there it is not
        // visited.
        let finds_itself = plan.graph.is_none();
        let own = usize::from(query.position.is_some() && finds_itself);
        scratch.unvisited = query.position;
        let wider = Plan {
            k: plan.k + own,
            rerank: plan.rerank + own,
            ..*plan
        };
        let mut one = watch.start(query, at);
        sums.work +=
            snapshot.search_observed(&query.vector, &wider, &mut scratch, &mut best, &mut one);
        let (found, candidates, ends) = (one.found, one.candidates, one.ends);
        watch.end(query);
        for (sums, end) in sums.pruned.iter_mut().zip(ends) {
            let (found, candidates) = end.unwrap_or((found, candidates));
            let missed = (plan.k as u64).saturating_sub(found);
            sums.missed += missed;
            sums.squares += missed * missed;
            sums.candidates += candidates;
        }
    }
    sums
}

/// Watches searches for the neighbours that are known.
struct Watch<'a, const N: usize> {
    ranking: RankingDistance<'a>,
    ratios: [f32; N],
    /// One bit per position that is a known neighbour of the present query, or the query itself. Empty if candidates
    /// cannot be told by their positions.
    known: Vec<u64>,
}

impl<'a, const N: usize> Watch<'a, N> {
    fn new(snapshot: Snapshot<'a>, ratios: [f32; N]) -> Self {
        let index = snapshot.index;
        // A point may have two positions, and inner products are not ordered by the distances of a search.
        let words = match index.spills() || index.embedding.reads_vectors() {
            true => 0,
            false => snapshot.positions().div_ceil(64),
        };
        Self {
            ranking: RankingDistance::new(snapshot),
            ratios,
            known: vec![0; words],
        }
    }

    fn start<'b>(&'b mut self, query: &'b Query, at: usize) -> WatchedQuery<'a, 'b, N> {
        if !self.known.is_empty() {
            for position in query.neighbours.iter().copied().chain(query.position) {
                self.known[position as usize / 64] |= 1 << (position % 64);
            }
        }
        let radius = query.ranking_radii[at];
        WatchedQuery {
            radius: radius + radius.abs() * TOLERANCE,
            watch: self,
            query,
            found: 0,
            candidates: 0,
            stopped: 0,
            ends: [None; N],
        }
    }

    fn end(&mut self, query: &Query) {
        if !self.known.is_empty() {
            for position in query.neighbours.iter().copied().chain(query.position) {
                self.known[position as usize / 64] = 0;
            }
        }
    }
}

/// Counts what one query finds, up to where each ratio would have stopped.
struct WatchedQuery<'a, 'b, const N: usize> {
    watch: &'b mut Watch<'a, N>,
    query: &'b Query,
    radius: f32,
    found: u64,
    candidates: u64,
    stopped: usize,
    ends: [Option<(u64, u64)>; N],
}

impl<const N: usize> Observer for WatchedQuery<'_, '_, N> {
    fn projected(&self) -> &[f32] {
        &self.query.projected
    }

    /// A point that is not a known neighbour is at least as far away as the last of them. Once the k-th best is
    /// nearer, its distance does not matter.
    fn may_enter(&self, at: u32, worst: f32) -> bool {
        let known = self.watch.known.get(at as usize / 64);
        known.is_none_or(|bits| bits >> (at % 64) & 1 == 1) || worst >= self.query.farthest
    }

    fn observe(&mut self, c: Reranked) {
        // The order of candidates does not depend on the ratio. Smaller ratios stop earlier.
        while self.stopped < N && c.estimate > self.watch.ratios[self.stopped] * c.worst {
            self.ends[self.stopped] = Some((self.found, self.candidates));
            self.stopped += 1;
        }
        self.candidates += 1;
        let ranking = &mut self.watch.ranking;
        let counts = c.new
            && ranking.of(&self.query.vector, c.at, c.squared) <= self.radius
            && !self.query.is_at(&ranking.snapshot, c.at);
        self.found += u64::from(counts);
    }
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
        let held = (0..200).map(|position| Query::held(&index.snapshot(), position));
        let queries =
            ground_truth(&index.snapshot(), held.collect(), &[k], &Cancel::default()).unwrap();
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
                let snapshot = index.snapshot();
                candidates += snapshot
                    .search(&query.vector, &plan, &mut scratch, &mut best)
                    .candidates;
                let radius = query.ranking_radii[0] * (1.0 + TOLERANCE);
                let near = best.found().filter(|f| f.squared.sqrt() <= radius);
                let others = near.filter(|f| Some(f.position) != query.position);
                found += others.count().min(k) as u64;
            }
            let missed = (queries.len() * k) as u64 - found;
            assert_eq!(
                (sums.missed, sums.candidates),
                (missed, candidates),
                "{ratio}"
            );
        }
        let last = sums.pruned[RERANK_PRUNE_RATIOS.len() - 1];
        assert!(
            sums.pruned[0].candidates < last.candidates && sums.pruned[0].missed >= last.missed
        );
    }
}
