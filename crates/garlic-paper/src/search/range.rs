//! All points within a radius. The paper has no such search: all vectors are read, and the answer is exact.

use garlic_core::{Answer, Metric, RangeSearch, Result, SearchStats};
use garlic_linalg::Rows;

use super::allowed::Seen;
use crate::index::GaussianIndex;

impl GaussianIndex {
    /// All points within a radius of a query, by (distance, id). A recall in `range` changes nothing: all are found.
    ///
    /// # Errors
    /// A query or a parameter that is not allowed.
    pub fn range(&self, query: &[f32], range: &RangeSearch) -> Result<Answer> {
        range.check()?;
        self.check_query(query, 0)?;
        let allowed = self.allowed(range.wanted_filter())?;
        let points = Seen {
            index: self,
            allowed: allowed.as_deref(),
        };
        self.run_range(query, 0, range, points, &mut Vec::new())
    }

    /// All points within a radius of every query, in order, on [`RangeSearch::threads`] threads.
    ///
    /// # Errors
    /// Those of [`GaussianIndex::range`]; of several queries the first by their order.
    pub fn range_batch(&self, queries: Rows<'_>, range: &RangeSearch) -> Result<Vec<Answer>> {
        range.check()?;
        let allowed = self.allowed(range.wanted_filter())?;
        let points = Seen {
            index: self,
            allowed: allowed.as_deref(),
        };
        self.batch(queries, range.thread_count(), |query, row, scratch| {
            self.run_range(query, row, range, points, &mut scratch.embedded)
        })
    }

    /// One query that has been checked; `row` is what an error calls it.
    fn run_range(
        &self,
        query: &[f32],
        row: usize,
        range: &RangeSearch,
        points: Seen<'_>,
        buffer: &mut Vec<f32>,
    ) -> Result<Answer> {
        let inside = self.embedding.query(query, buffer);
        let radius = range.radius();
        // Who asks for a share of the points does not ask for a proof.
        if range.wanted_recall().is_none()
            && let Some((settled, stats)) = Metric::close_range(&points, query, inside, radius)
        {
            return Ok(Answer::new(settled.proved(row)?, stats, true));
        }
        let (found, stats) = self.within(points, inside, self.embedding.limit(query, radius));
        let hits = Metric::report_range(&points, query, radius, found.into_iter());
        Ok(Answer::new(hits, stats, true))
    }

    /// Points within a squared distance: what is reported decides which of them are within the radius.
    fn within(
        &self,
        points: Seen<'_>,
        query: &[f32],
        limit: f32,
    ) -> (Vec<(f32, u64, u32)>, SearchStats) {
        let mut found = Vec::new();
        let stats = self.distances(points, query, |squared, id, position| {
            if squared <= limit {
                found.push((squared, id, position));
            }
        });
        (found, stats)
    }
}
