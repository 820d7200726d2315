//! All points within a radius.

use garlic_linalg::Rows;
use garlic_simd::Estimate;
use rayon::prelude::*;

use super::filter::{Allowed, Filter};
use super::params::{Answer, Hit, Plan};
use super::scan::Best;
use super::searcher::Scratch;
use super::tempered::{AHEAD, TemperedScratch};
use super::work::Work;
use crate::error::{Error, Result};
use crate::index::{Index, View, thread_pool};

/// Neighbours whose setting tells how far estimates can be trusted.
const LIKE_K: usize = 10;

/// Squared distance inside the index, identifier and position of a point.
type Found = (f32, u64, u32);

/// What a range search asks for: all points within a radius.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    radius: f32,
    recall: Option<f64>,
    filter: Option<Filter>,
    threads: Option<usize>,
}

impl Range {
    /// All points whose distance, as the metric of the index reports it, is at most `radius`.
    pub fn new(radius: f32) -> Self {
        Self {
            radius,
            recall: None,
            filter: None,
            threads: None,
        }
    }

    /// About this share of them, in (0, 1), found faster by trusting the codes; all of them unless this is set.
    ///
    /// An index built by the published method finds all of them in any case.
    pub fn recall(mut self, target: f64) -> Self {
        self.recall = Some(target);
        self
    }

    /// Only points that the filter lets through.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Worker threads of a batch; 1 unless set.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    fn check(&self) -> Result<()> {
        let wrong = |name, value: String, rule| Err(Error::SearchParameter { name, value, rule });
        if self.radius.is_nan() {
            return wrong("radius", "NaN".into(), "must be a number");
        }
        if let Some(recall) = self.recall
            && !(recall > 0.0 && recall < 1.0)
        {
            let rule = "must be above 0 and below 1; leave it out to find all points";
            return wrong("recall", recall.to_string(), rule);
        }
        if self.threads == Some(0) {
            return wrong("threads", "0".into(), "must be at least 1");
        }
        Ok(())
    }
}

impl Index {
    /// All points within a radius of a query, by (distance, id).
    pub fn range(&self, query: &[f32], range: &Range) -> Result<Answer> {
        range.check()?;
        self.check_order()?;
        self.check_query(query, 0)?;
        let allowed = range.filter.as_ref().map(|f| f.translate(self));
        let allowed = allowed.transpose()?;
        let mut searcher = self.searcher();
        self.run_range(query, 0, range, allowed.as_deref(), &mut searcher.scratch)
    }

    /// All points within a radius of every query, in order, on [`Range::threads`] threads.
    pub fn range_batch(&self, queries: Rows<'_>, range: &Range) -> Result<Vec<Answer>> {
        range.check()?;
        self.check_order()?;
        for (row, query) in queries.iter().enumerate() {
            self.check_query(query, row)?;
        }
        let allowed = range.filter.as_ref().map(|f| f.translate(self));
        let allowed = allowed.transpose()?;
        let threads = range.threads.unwrap_or(1);
        if threads == 1 {
            let mut searcher = self.searcher();
            let answers = queries.iter().enumerate().map(|(row, query)| {
                let scratch = &mut searcher.scratch;
                self.run_range(query, row, range, allowed.as_deref(), scratch)
            });
            return answers.collect();
        }
        let rows: Vec<&[f32]> = queries.iter().collect();
        let answers: Vec<Result<Answer>> = thread_pool(threads)?.install(|| {
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
        range: &Range,
        allowed: Option<&Allowed>,
        scratch: &mut Scratch,
    ) -> Result<Answer> {
        let mut buffer = std::mem::take(&mut scratch.embedded);
        let inside = self.embedding.query(query, &mut buffer);
        if range.recall.is_none() && range.radius >= 0.0 && self.is_close(range.radius) {
            let settled = self.range_in_double(query, inside, range.radius, allowed);
            scratch.embedded = buffer;
            let work = Work {
                candidates: self.len() as u64,
                exact_madds: (self.len() * self.dim()) as u64,
                ..Work::default()
            };
            return Ok(Answer {
                hits: settled.proved(row)?,
                work,
                exact: true,
            });
        }
        // What is reported decides: within this are all that it could let in.
        let squared = self.embedding.limit(query, range.radius);
        let mut work = Work::default();
        let view = self.view().map(|view| view.with(allowed));
        // Where a target takes everything, everything is looked at with proof.
        let plans = view.zip(range.recall);
        let plan = plans.map(|(view, recall)| view.plan(LIKE_K, recall));
        let plan = plan.filter(|plan| !plan.all);
        let exact = plan.is_none();
        let found = match view {
            Some(view) => view.range(inside, squared, plan.as_ref(), scratch, &mut work),
            None => self.read_range(inside, squared, allowed, &mut work),
        };
        scratch.embedded = buffer;
        work.exact_madds = work.candidates * self.space.dim() as u64;
        let mut stored = Vec::new();
        let mut hits: Vec<Hit> = found
            .into_iter()
            .filter_map(|(squared, id, position)| {
                if self.embedding.reads_vectors() {
                    self.read_at(position, &mut stored);
                }
                let distance = self.embedding.reported(query, squared, &stored);
                (distance <= range.radius).then_some(Hit { id, distance })
            })
            .collect();
        hits.sort_unstable_by(|a, b| a.distance.total_cmp(&b.distance).then(a.id.cmp(&b.id)));
        if self.spills() {
            // Two positions of one point are next to each other now.
            hits.dedup_by_key(|hit| hit.id);
        }
        Ok(Answer { hits, work, exact })
    }

    /// All vectors in order, for an index built by the published method.
    fn read_range(
        &self,
        query: &[f32],
        squared: f32,
        allowed: Option<&Allowed>,
        work: &mut Work,
    ) -> Vec<Found> {
        let mut bytes = Vec::new();
        let query = self.vectors.prepare(query, &mut bytes);
        let mut found = Vec::new();
        for (at, id) in self.ids.iter().enumerate() {
            if allowed.is_some_and(|allowed| !allowed.contains(at as u32)) {
                continue;
            }
            work.candidates += 1;
            let distance = self.vectors.distance(&query, at);
            if distance <= squared {
                found.push((distance, *id, at as u32));
            }
        }
        found
    }
}

impl View<'_> {
    /// Points within a squared distance: all of them, or those that a search by `plan` is likely to find.
    fn range(
        &self,
        query: &[f32],
        squared: f32,
        plan: Option<&Plan>,
        scratch: &mut Scratch,
        work: &mut Work,
    ) -> Vec<Found> {
        let Scratch {
            tempered: scratch,
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
        let TemperedScratch {
            found: list, bytes, ..
        } = scratch;
        if !listed {
            list.clear();
            list.extend(self.admitted().map(|at| Estimate { at, estimate: 0.0 }));
        }
        let query = self.index.vectors.prepare(query, bytes);
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
        scratch: &mut TemperedScratch,
        best: &mut Best,
    ) -> Work {
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
            self.score_bins(number, outside, limit * plan.slack, scratch);
        }
        let mut more = Work::default();
        self.scan(usize::MAX, f32::INFINITY, limit, scratch, &mut more);
        more.bins_ordered += self.bins() as u64;
        self.count(cells, self.cells(), &mut more);
        work += more;
        work
    }
}
