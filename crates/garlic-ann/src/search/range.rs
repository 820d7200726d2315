//! All points within a radius.

use super::query::{AHEAD, QueryScratch};
use super::searcher::Scratch;
use crate::plan::Plan;
use crate::segment::{Allowed, Index, Snapshot, translate};
use garlic_core::{Answer, Metric, RangeSearch, Result, SearchStats, TopK};
use garlic_linalg::Rows;
use garlic_simd::Estimate;
use rayon::prelude::*;

/// Neighbours whose setting tells how far estimates can be trusted.
const LIKE_K: usize = 10;

/// Squared distance inside the index, identifier and position of a point.
type Found = (f32, u64, u32);

impl Index {
    /// All points within a radius of a query, by (distance, id).
    ///
    /// # Errors
    /// A query or a parameter that is not allowed.
    pub fn range(&self, query: &[f32], range: &RangeSearch) -> Result<Answer> {
        range.check()?;
        self.check_order()?;
        self.check_query(query, 0)?;
        let allowed = range.wanted_filter().map(|f| translate(f, self));
        let allowed = allowed.transpose()?;
        let mut searcher = self.searcher();
        self.run_range(query, 0, range, allowed.as_deref(), &mut searcher.scratch)
    }

    /// All points within a radius of every query, in order, on [`RangeSearch::threads`] threads.
    ///
    /// # Errors
    /// A query or a parameter that is not allowed.
    pub fn range_batch(&self, queries: Rows<'_>, range: &RangeSearch) -> Result<Vec<Answer>> {
        range.check()?;
        self.check_order()?;
        for (row, query) in queries.iter().enumerate() {
            self.check_query(query, row)?;
        }
        let allowed = range.wanted_filter().map(|f| translate(f, self));
        let allowed = allowed.transpose()?;
        let threads = range.thread_count();
        if threads == 1 {
            let mut searcher = self.searcher();
            let answers = queries.iter().enumerate().map(|(row, query)| {
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
                    let scratch = &mut searcher.scratch;
                    self.run_range(query, row, range, allowed.as_deref(), scratch)
                },
            );
            answers.collect()
        });
        // The first error by the order of queries, whatever the threads did first.
        answers.into_iter().collect()
    }

    /// One query that has been checked; `row` is what an error calls it.
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
        let view = self.snapshot().with(allowed);
        let answer = self.find_range(query, inside, row, range, &view, scratch);
        scratch.embedded = buffer;
        answer
    }

    fn find_range(
        &self,
        query: &[f32],
        inside: &[f32],
        row: usize,
        range: &RangeSearch,
        view: &Snapshot<'_>,
        scratch: &mut Scratch,
    ) -> Result<Answer> {
        let (radius, recall) = (range.radius(), range.wanted_recall());
        if recall.is_none()
            && let Some((settled, stats)) = Metric::close_range(view, query, inside, radius)
        {
            return Ok(Answer::new(settled.proved(row)?, stats, true));
        }
        // What is reported decides: within this are all that it could let in.
        let squared = self.embedding.limit(query, radius);
        let mut stats = SearchStats::default();
        // Where a target takes everything, everything is looked at with proof.
        let plan = recall.map(|recall| view.plan(LIKE_K, recall));
        let plan = plan.filter(|plan| !plan.all);
        let found = view.range(inside, squared, plan.as_ref(), scratch, &mut stats);
        stats.exact_madds = stats.candidates * self.transform.dim() as u64;
        let hits = Metric::report_range(view, query, radius, found.into_iter());
        Ok(Answer::new(hits, stats, plan.is_none()))
    }
}

impl Snapshot<'_> {
    /// Points within a squared distance: all of them, or those that a search by `plan` is likely to find.
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
                *work += self.likely_within(query, squared, plan, scratch, best);
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
        let mut found = Vec::new();
        for (i, f) in list.iter().enumerate() {
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
        work.candidates += list.len() as u64;
        found
    }

    /// Leaves points that are likely within a squared distance in `scratch`: those that their codes put there, and
    /// as many more as estimates are wrong by in a search of this recall.
    ///
    /// A search for neighbours tells how far beyond a distance the estimates of such points reach: as far as those of
    /// its candidates. A radius smaller than the distance of neighbours is searched like theirs.
    fn likely_within(
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
        // Infinite when there are fewer neighbours than were asked for, and no number when all distances are 0.
        let beyond = (farthest / best.worst()).max(1.0);
        let limit = (squared.max(best.worst()) * beyond).max(farthest).next_up();
        let outside = self.rotate_roughly(query, scratch);
        self.nearest_cells(self.cells(), scratch);
        let cells = scratch.cells.len();
        self.start(scratch);
        for number in 0..cells {
            self.score_bins(number, outside, limit * plan.bin_prune_ratio, scratch);
        }
        let mut more = SearchStats::default();
        self.scan(usize::MAX, f32::INFINITY, limit, scratch, &mut more);
        more.bins_ordered += self.bins() as u64;
        self.count(cells, self.cells(), &mut more);
        work += more;
        work
    }
}
