//! Range search: all points within a radius.

use super::query::{AHEAD, QueryScratch};
use super::searcher::Scratch;
use crate::plan::Plan;
use crate::segment::{Allowed, Index, Snapshot, translate};
use garlic_core::{Answer, Cancel, Metric, RangeSearch, Result, SearchStats, TopK};
use garlic_linalg::Rows;
use garlic_simd::Estimate;
use rayon::prelude::*;

/// The calibrated setting for this number of neighbours decides how far estimates are trusted.
const RANGE_PLAN_K: usize = 10;

/// Points between two looks at the cancel flag.
const POINTS_BETWEEN_LOOKS: usize = 4096;

/// Squared distance in the embedding, identifier and position of a point.
type Found = (f32, u64, u32);

impl Index {
    /// All points within a radius of a query, ordered by distance and identifier.
    ///
    /// # Errors
    /// Fails for an invalid query or parameter, and in a [`Cancel::scope`] when its flag is set.
    pub fn range(&self, query: &[f32], range: &RangeSearch) -> Result<Answer> {
        range.check()?;
        self.check_layout()?;
        self.check_query(query, 0)?;
        let allowed = range.wanted_filter().map(|f| translate(f, self));
        let allowed = allowed.transpose()?;
        let mut searcher = self.searcher();
        let scratch = &mut searcher.scratch;
        self.reading(|| self.run_range(query, 0, range, allowed.as_deref(), scratch))
    }

    /// All points within a radius of every query, in order, on [`RangeSearch::threads`] threads.
    ///
    /// # Errors
    /// Fails for an invalid query or parameter, and in a [`Cancel::scope`] when its flag is set.
    pub fn range_batch(&self, queries: Rows<'_>, range: &RangeSearch) -> Result<Vec<Answer>> {
        self.reading(|| self.run_ranges(queries, range))
    }

    fn run_ranges(&self, queries: Rows<'_>, range: &RangeSearch) -> Result<Vec<Answer>> {
        range.check()?;
        self.check_layout()?;
        for (row, query) in queries.iter().enumerate() {
            self.check_query(query, row)?;
        }
        let allowed = range.wanted_filter().map(|f| translate(f, self));
        let allowed = allowed.transpose()?;
        let threads = range.thread_count();
        let cancel = Cancel::current();
        if threads == 1 {
            let mut searcher = self.searcher();
            let answers = queries.iter().enumerate().map(|(row, query)| {
                cancel.check()?;
                let scratch = &mut searcher.scratch;
                self.run_range(query, row, range, allowed.as_deref(), scratch)
            });
            return answers.collect();
        }
        let rows: Vec<&[f32]> = queries.iter().collect();
        let answers: Vec<Result<Answer>> = self.workers.with(threads)?.install(|| {
            let answers = rows.par_iter().enumerate().map_init(
                || self.searcher(),
                |searcher, (row, query)| {
                    cancel.check()?;
                    let scratch = &mut searcher.scratch;
                    self.run_range(query, row, range, allowed.as_deref(), scratch)
                },
            );
            answers.collect()
        });
        // Return the first error in the order of queries, whatever order the threads worked in.
        answers.into_iter().collect()
    }

    /// Answers one checked query. Errors name it by `row`.
    fn run_range(
        &self,
        query: &[f32],
        row: usize,
        range: &RangeSearch,
        allowed: Option<&Allowed>,
        scratch: &mut Scratch,
    ) -> Result<Answer> {
        let mut buffer = std::mem::take(&mut scratch.embedded);
        let inside = self.embedding.query(query, &mut buffer);
        let snapshot = self.snapshot().with(allowed);
        let answer = self.find_range(query, inside, row, range, &snapshot, scratch);
        scratch.embedded = buffer;
        answer
    }

    fn find_range(
        &self,
        query: &[f32],
        inside: &[f32],
        row: usize,
        range: &RangeSearch,
        snapshot: &Snapshot<'_>,
        scratch: &mut Scratch,
    ) -> Result<Answer> {
        let (radius, recall) = (range.radius(), range.wanted_recall());
        if recall.is_none()
            && let Some((precise, stats)) = Metric::close_range(snapshot, query, inside, radius)
        {
            return Ok(Answer::new(precise.proved(row)?, stats, true));
        }
        // The reported distance decides. This limit includes every point that may be reported.
        let squared = self.embedding.limit(query, radius);
        let mut stats = SearchStats::default();
        // If a target needs everything, the search is exact.
        let plan = recall.map(|recall| snapshot.plan_with_bins(RANGE_PLAN_K, recall));
        let plan = plan.filter(|plan| !plan.all);
        let found = snapshot.range(inside, squared, plan.as_ref(), scratch, &mut stats);
        Cancel::current().check()?;
        stats.exact_madds = stats.candidates * self.transform.dim() as u64;
        let hits = Metric::report_range(snapshot, query, radius, found.into_iter());
        Ok(Answer::new(hits, stats, plan.is_none()))
    }
}

impl Snapshot<'_> {
    /// All points within a squared distance or, with a `plan`, those that an approximate search finds.
    fn range(
        &self,
        query: &[f32],
        squared: f32,
        plan: Option<&Plan>,
        scratch: &mut Scratch,
        work: &mut SearchStats,
    ) -> Vec<Found> {
        let Scratch {
            buffers: scratch,
            best,
            ..
        } = scratch;
        if squared < 0.0 {
            return Vec::new();
        }
        let listed = match plan {
            Some(plan) => {
                *work += self.range_candidates(query, squared, plan, scratch, best);
                true
            }
            None => {
                self.worth_bounding(self.counted())
                    && squared.is_finite()
                    && self.within(
                        query,
                        squared,
                        self.affordable(self.counted()),
                        scratch,
                        work,
                    )
            }
        };
        let QueryScratch {
            found: list, bytes, ..
        } = scratch;
        if !listed {
            list.clear();
            list.extend(self.admitted().map(|at| Estimate { at, estimate: 0.0 }));
        }
        let query = self.index.segment.vectors.prepare(query, bytes);
        let cancel = Cancel::current();
        let mut found = Vec::new();
        work.candidates += list.len() as u64;
        if let Some(file) = self.on_disk() {
            let (ids, positions) = (&self.index.segment.ids, list.iter().map(|f| f.at));
            self.distances_on_disk(file, positions, &query, |at, distance| {
                if distance <= squared {
                    found.push((distance, ids[at as usize], at));
                }
            });
            return found;
        }
        for (i, f) in list.iter().enumerate() {
            if i % POINTS_BETWEEN_LOOKS == 0 && cancel.is_cancelled() {
                break;
            }
            if let Some(next) = list.get(i + AHEAD) {
                self.prefetch(next.at);
            }
            let Some(point) = self.point(f.at) else {
                continue;
            };
            let distance = point.distance(&query);
            if distance <= squared {
                found.push((distance, point.id, f.at));
            }
        }
        found
    }

    /// Stores the points that are probably within a squared distance in `scratch`.
    ///
    /// A search for neighbours shows how far the estimates of its candidates exceed the distance of the k-th
    /// neighbour. The limit on estimates exceeds the radius by the same factor. A radius smaller than the distance of
    /// the neighbours is searched like that distance.
    fn range_candidates(
        &self,
        query: &[f32],
        squared: f32,
        plan: &Plan,
        scratch: &mut QueryScratch,
        best: &mut TopK,
    ) -> SearchStats {
        let mut work = self.search(query, plan, scratch, best);
        let candidates = scratch.found.iter().map(|f| f.estimate);
        let farthest = candidates.fold(best.worst(), f32::max);
        // Infinite if there are fewer neighbours than requested. NaN, which `max` ignores, if all distances are 0.
        let overestimate = (farthest / best.worst()).max(1.0);
        let limit = (squared.max(best.worst()) * overestimate)
            .max(farthest)
            .next_up();
        let residual_squared = self.rotate_for_estimates(query, scratch);
        self.nearest_cells(self.cells(), scratch);
        let cells = scratch.cells.len();
        self.reset_scan(scratch);
        for number in 0..cells {
            self.score_bins(
                number,
                residual_squared,
                limit * plan.bin_prune_ratio,
                scratch,
            );
        }
        let mut more = SearchStats::default();
        self.scan(usize::MAX, f32::INFINITY, limit, scratch, &mut more);
        more.bins_ordered += self.bins() as u64;
        self.count_madds(cells, self.cells(), &mut more);
        work += more;
        work
    }
}
