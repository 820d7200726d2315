//! The true nearest neighbours, with proof: what is skipped cannot be one of them.
//!
//! A good guess comes first: the k-th distance of an approximate search is an upper bound. Then every bin is
//! bounded from below. Within the frame a point is no nearer than the bin's centre less its radius; outside of
//! it no nearer than the gap between the query's distance from the frame and that of the bin's points. Where a
//! bin cannot be skipped its codes are scanned: an estimate differs from the squared distance by no more than
//! twice the product of the two distances from the frame, and by what coding and rounding add, which the bin
//! knows. Where little can be skipped, all vectors are read in order instead.
//!
//! `within` finds the points that cannot be skipped, `bounds` has the bounds and what rounding adds to them.

mod bounds;
#[cfg(test)]
mod edge;
mod within;

use super::cost::CACHED;
use super::query::{AHEAD, QueryScratch};
use crate::plan::Plan;
use crate::segment::{Gathered, Snapshot};
use garlic_core::{Cancel, SearchStats, TopK};
use garlic_simd::CODE_LANES;

/// Points in bins that cannot be skipped, as a share of all, above which everything is read in order. Where no cache holds
/// the vectors: more the longer they are beside codes, within these limits.
const LEAST: f64 = 0.25;
const MOST: f64 = 0.6;
const MOST_CODES: f64 = 0.05;
/// Brute force must cost this many times the bounds themselves, else they are not worth computing.
const WORTH: usize = 16;
/// Recall of the search that gives the first upper bound.
const FIRST_RECALL: f64 = 0.9;
/// What that search does where nothing less than everything is known to have this recall: cells, candidates for each
/// neighbour, and how far bins may be beyond the worst candidate.
const FIRST_PROBES: usize = 8;
const FIRST_CANDIDATES: usize = 4;
const FIRST_BIN_PRUNE_RATIO: f32 = 1.2;

/// What bounds may leave before everything is read in order instead.
#[derive(Clone, Copy)]
pub(in crate::search) struct Most {
    /// Points in bins that cannot be skipped.
    points: usize,
    /// Points whose codes do not tell them from neighbours.
    found: usize,
}

/// Whether a point at this squared distance may be among the best so far: equal ones are told apart by their
/// identifiers, and one that is no number, of a damaged file, counts as infinitely far.
#[inline]
fn may_count(squared: f32, worst: f32) -> bool {
    squared.partial_cmp(&worst) != Some(std::cmp::Ordering::Greater)
}

impl Snapshot<'_> {
    /// All vectors that count, in order. The caller checks whether the search was cancelled meanwhile.
    pub(in crate::search) fn brute_force(
        &self,
        query: &[f32],
        k: usize,
        best: &mut TopK,
    ) -> SearchStats {
        let mut bytes = Vec::new();
        let query = self.index.segment.vectors.prepare(query, &mut bytes);
        best.start_for(k, self.index.spills());
        let mut work = SearchStats::default();
        if self.admits_all() {
            let ids = &self.index.segment.ids;
            let mut worst = best.worst();
            let cancel = Cancel::current();
            let goes_on = || !cancel.is_cancelled();
            let vectors = &self.index.segment.vectors;
            vectors.distances_while(&query, goes_on, |at, squared| {
                if may_count(squared, worst) {
                    best.offer(squared.min(f32::INFINITY), ids[at], at as u32);
                    worst = best.worst();
                }
            });
            work.candidates = ids.len() as u64;
            work.exact_madds = work.candidates * self.index.transform.dim() as u64;
            return work;
        }
        if let Some(file) = self.on_disk() {
            let ids = &self.index.segment.ids;
            self.distances_on_disk(file, self.admitted(), &query, |at, squared| {
                best.offer(squared, ids[at as usize], at);
                work.candidates += 1;
            });
            work.exact_madds = work.candidates * self.index.transform.dim() as u64;
            return work;
        }
        let mut offer = |position: u32| {
            if let Some(point) = self.point(position) {
                best.offer(point.distance(&query), point.id, position);
                work.candidates += 1;
            }
        };
        if let Some(allowed) = self.allowed() {
            match allowed.gathered(self) {
                Some(Gathered { vectors, points }) => {
                    let mut worst = best.worst();
                    vectors.distances(&query, |at, squared| {
                        if may_count(squared, worst) {
                            let (id, position) = points[at];
                            best.offer(squared.min(f32::INFINITY), id, position);
                            worst = best.worst();
                        }
                    });
                    work.candidates += points.len() as u64;
                }
                None => allowed.positions().for_each(&mut offer),
            }
        } else {
            self.admitted().for_each(&mut offer);
        }
        work.exact_madds = work.candidates * self.index.transform.dim() as u64;
        work
    }

    /// The true `k` nearest neighbours of a query, into `best`.
    pub(in crate::search) fn search_exactly(
        &self,
        query: &[f32],
        k: usize,
        scratch: &mut QueryScratch,
        best: &mut TopK,
    ) -> SearchStats {
        let points = self.counted();
        if k >= points || !self.worth_bounding(points) {
            return self.brute_force(query, k, best);
        }
        let mut work = SearchStats::default();
        let most = self.affordable(points);
        if !self.prove(query, k, most, scratch, best, &mut work) {
            work += self.brute_force(query, k, best);
        }
        work
    }

    /// What may be left of this many points so that reading all of them in order would cost more.
    pub(in crate::search) fn affordable(&self, points: usize) -> Most {
        let vector = self
            .index
            .segment
            .vectors
            .row_bytes(self.index.transform.dim()) as f64;
        let code = self.segment.encoded.block_bytes() as f64 / CODE_LANES as f64;
        let of = |share: f64| (points as f64 * share) as usize;
        if points as f64 * vector < CACHED as f64 {
            return Most {
                points: of(MOST),
                found: of(MOST),
            };
        }
        // One vector here and there takes as long as these many in order.
        let jump = (70.0 + 0.012 * vector) / (3.0 + 0.05 * vector);
        Most {
            points: of((MOST_CODES * vector / code).clamp(LEAST, MOST)),
            found: of(MOST.min(1.0 / jump)),
        }
    }

    /// Whether distances of this many points cost far more than bounding all bins does.
    pub(in crate::search) fn worth_bounding(&self, points: usize) -> bool {
        let (rank, wide) = (self.segment.cells.rank(), self.segment.cells.dim());
        let dim = self.index.transform.dim();
        let bounding = dim * wide + (self.cells() * wide + self.bins()) * rank;
        points * dim >= WORTH * bounding
    }

    /// The true neighbours by bounds; false when they leave more than `most`.
    fn prove(
        &self,
        query: &[f32],
        k: usize,
        most: Most,
        scratch: &mut QueryScratch,
        best: &mut TopK,
        work: &mut SearchStats,
    ) -> bool {
        let plan = match self.table_plan(k, FIRST_RECALL) {
            // No promise is made here: any k points give an upper bound, near ones a good one.
            plan if plan.all => Plan {
                probes: FIRST_PROBES,
                rerank: k.saturating_mul(FIRST_CANDIDATES),
                bin_prune_ratio: FIRST_BIN_PRUNE_RATIO,
                ..Plan::everything(k)
            },
            plan => plan,
        };
        *work += self.search(query, &plan, scratch, best);
        let radius = best.worst();
        if !radius.is_finite() || !self.within(query, radius, most, scratch, work) {
            return false;
        }
        let QueryScratch { found, bytes, .. } = scratch;
        let prepared = self.index.segment.vectors.prepare(query, bytes);
        best.start_for(k, self.index.spills());
        work.candidates += found.len() as u64;
        work.exact_madds += (found.len() * self.index.transform.dim()) as u64;
        if let Some(file) = self.on_disk() {
            let (ids, positions) = (&self.index.segment.ids, found.iter().map(|f| f.at));
            self.distances_on_disk(file, positions, &prepared, |at, squared| {
                best.offer(squared, ids[at as usize], at);
            });
            return best.worst() <= radius;
        }
        for (i, f) in found.iter().enumerate() {
            if let Some(next) = found.get(i + AHEAD) {
                self.prefetch(next.at);
            }
            if let Some(point) = self.point(f.at) {
                best.offer(point.distance(&prepared), point.id, f.at);
            }
        }
        // There are k points within the radius; where they were not found again, the bounds were wrong.
        best.worst() <= radius
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Index;
    use crate::testdata::{clustered, config, ids, rows, uniform};

    /// Bounds are gone through with, whatever they leave.
    const ALL: Most = Most {
        points: usize::MAX,
        found: usize::MAX,
    };

    /// The hits by (distance, id).
    fn hits(best: &TopK) -> Vec<(f32, u64)> {
        let mut hits: Vec<(f32, u64)> = best.found().map(|s| (s.squared.sqrt(), s.id)).collect();
        hits.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        hits
    }

    /// Every bin and code that is skipped is skipped by a bound: brute force never takes over here.
    #[test]
    fn what_is_skipped_is_no_neighbour() {
        let (n, dim) = (1500, 12);
        for seed in 0..6u64 {
            let mut data = uniform(n, dim, seed);
            for (i, value) in data.iter_mut().enumerate() {
                let cluster = (i / dim % 7 * 4) as f32;
                *value = cluster + 10.0 * *value / (1 + i % dim) as f32;
            }
            let rows = rows(&data, dim);
            let config = config(&[
                ("seed", seed as usize),
                ("cells", 8),
                ("bin_size", 6),
                ("axes", [4, 8, 12][seed as usize % 3]),
                ("code_bits", [8, 4][seed as usize % 2]),
                ("calibration_queries", 50),
            ]);
            let index = Index::builder().config(config).build(rows).unwrap();
            let view = index.snapshot();
            let (mut scratch, mut best) = (QueryScratch::default(), TopK::default());
            let (mut codes, mut candidates) = (0, 0);
            for case in 0..60 {
                let mut query = rows.row(case * 23).to_vec();
                query[case % dim] += (case % 5) as f32 * 0.7;
                for k in [1, 9] {
                    view.brute_force(&query, k, &mut best);
                    let expected = hits(&best);
                    let mut work = SearchStats::default();
                    let proved = view.prove(&query, k, ALL, &mut scratch, &mut best, &mut work);
                    assert!(proved);
                    assert_eq!(hits(&best), expected, "seed {seed} case {case} k {k}");
                    codes += work.codes;
                    candidates += work.candidates;
                }
            }
            let all = (n * 120) as u64;
            assert!(codes < all * 3 / 4, "bins are skipped: {codes} of {all}");
            assert!(
                candidates < all / 2,
                "points are skipped: {candidates} of {all}"
            );
        }
    }

    /// Brute force and bounds give the same hits; returns the share of the points whose codes were scanned.
    fn agree(index: &Index, queries: &[Vec<f32>], what: &str) -> f64 {
        let view = index.snapshot();
        let (mut scratch, mut best) = (QueryScratch::default(), TopK::default());
        let mut codes = 0;
        for (case, query) in queries.iter().enumerate() {
            for k in [1, 7] {
                view.brute_force(query, k, &mut best);
                let expected = hits(&best);
                let mut work = SearchStats::default();
                let proved = view.prove(query, k, ALL, &mut scratch, &mut best, &mut work);
                assert!(proved, "{what}: bounds lose a neighbour of query {case}");
                assert_eq!(hits(&best), expected, "{what}: query {case}, k {k}");
                codes += work.codes;
            }
        }
        codes as f64 / (index.len() * queries.len() * 2) as f64
    }

    /// Far from the mean of the space coordinates are rounded more than distances between neighbours are long. Whether a
    /// length comes out too long or too short is up to the rotation, so that several are tried.
    #[test]
    fn bounds_hold_far_from_the_mean_and_at_any_scale() {
        let dim = 20;
        for (reach, spread) in [
            (1e4, 0.5),
            (1e6, 1.0),
            (1.0, 1.0),
            (1e-18, 1e-18),
            (1e12, 1e9),
        ] {
            for seed in 0..6 {
                let data = clustered(1200, dim, reach, spread, seed);
                let rows = rows(&data, dim);
                let config = config(&[
                    ("seed", seed as usize),
                    ("cells", 12),
                    ("axes", 3),
                    ("calibration_queries", 50),
                ]);
                let index = Index::builder().config(config).build(rows).unwrap();
                let query = |i: usize| {
                    let mut query = rows.row(i * 57).to_vec();
                    query[i % dim] += spread * (i % 3) as f32 * 0.3;
                    query
                };
                let queries: Vec<Vec<f32>> = (0..20).map(query).collect();
                agree(
                    &index,
                    &queries,
                    &format!("reach {reach:e}, spread {spread:e}"),
                );
            }
        }
    }

    /// Points that join, cells that leave the base, and points that go: bounds hold for all of them.
    #[test]
    fn bounds_hold_for_points_that_join() {
        let dim = 10;
        let data = clustered(3000, dim, 20.0, 6.0, 9);
        let rows = rows(&data, dim);
        let config = config(&[
            ("axes", 4),
            ("code_bits", 4),
            ("bin_size", 8),
            ("calibration_queries", 50),
        ]);
        let builder = Index::builder().config(config);
        let mut index = builder.build(rows.slice(0..1000)).unwrap();
        let queries: Vec<Vec<f32>> = (0..30).map(|i| rows.row(i * 97).to_vec()).collect();
        for (step, from) in (1000..3000).step_by(200).enumerate() {
            let batch = rows.slice(from..from + 200);
            let new = ids(from as u64..from as u64 + 200);
            index.add(batch, &new).unwrap();
            let gone: Vec<u64> = (0..60)
                .map(|i| (i * 13 + step as u64 * 31) % 1000)
                .collect();
            index.remove(&gone).unwrap();
            if step == 6 {
                index.compact().unwrap();
            }
            let share = agree(&index, &queries, &format!("step {step}"));
            assert!(share < 0.9, "step {step}: bins are skipped, {share}");
        }
    }
}
