//! Exact distances of vectors that stay on the disk: those of many candidates are read at once.
//!
//! Answers and statistics are those of vectors in memory. Only the order of the reads differs.

use garlic_core::vector_file::VectorFile;
use garlic_core::vectors::{Prepared, StoredVectors};
use garlic_core::{Answer, Cancel, Metric, Result, SearchStats, TopK};
use garlic_linalg::Rows;
use garlic_simd::Estimate;

use super::rerank::{Observer, Unobserved, is_pruned};
use crate::plan::Plan;
use crate::segment::{Index, Snapshot};

/// Candidates of a query that are read at a time, at most.
const MAX_WAVE: usize = 4096;

/// A query with candidates, and how far they have been reranked.
pub(super) struct Reranking<'a, O> {
    pub(super) query: Prepared<'a>,
    pub(super) plan: Plan,
    pub(super) found: &'a [Estimate],
    pub(super) best: &'a mut TopK,
    pub(super) work: &'a mut SearchStats,
    pub(super) observer: &'a mut O,
    /// The candidates that are read now.
    wave: std::ops::Range<usize>,
    /// Number of the first of their vectors among those that are read.
    first_row: usize,
}

impl<'a, O: Observer> Reranking<'a, O> {
    pub(super) fn new(
        query: Prepared<'a>,
        plan: &Plan,
        found: &'a [Estimate],
        best: &'a mut TopK,
        work: &'a mut SearchStats,
        observer: &'a mut O,
    ) -> Self {
        Self {
            query,
            plan: *plan,
            found,
            best,
            work,
            observer,
            wave: 0..0,
            first_row: 0,
        }
    }

    /// Chooses the candidates to read next, `most` at most, and appends their positions to `rows`.
    ///
    /// They are those that the distance of the k-th best so far does not prune. As long as there are fewer than k, the
    /// estimate of the k-th candidate stands for it. A distance that turns out larger makes another wave.
    fn next_wave(&mut self, most: usize, rows: &mut Vec<u32>) {
        let left = &self.found[self.wave.end..];
        let (k, worst) = (self.plan.k, self.best.worst());
        let (least, limit) = match worst < f32::INFINITY {
            true => (0, worst),
            false => (
                k,
                left.get(k.saturating_sub(1)).map_or(worst, |f| f.estimate),
            ),
        };
        let rest = left.iter().skip(least);
        let more = rest
            .take_while(|f| !is_pruned(f, &self.plan, limit))
            .count();
        let count = (least + more).min(left.len()).min(most);
        self.wave = self.wave.end..self.wave.end + count;
        self.first_row = rows.len();
        for f in &self.found[self.wave.clone()] {
            if self.observer.may_enter(f.at, worst) {
                rows.push(f.at);
            }
        }
    }
}

/// Chooses the candidates of all queries to read next, `most` at most. Queries that do not fit have an empty wave and
/// wait for the next one.
fn next_waves<O: Observer>(queries: &mut [Reranking<'_, O>], most: usize, rows: &mut Vec<u32>) {
    rows.clear();
    for asked in queries {
        asked.next_wave(MAX_WAVE.min(most - rows.len()), rows);
    }
}

/// Queries of a batch whose candidates wait for their vectors.
#[derive(Default)]
pub(super) struct WaitingQueries<'q>(Vec<WaitingQuery<'q>>);

/// A query with its candidates.
pub(super) struct WaitingQuery<'q> {
    /// Number of the query in its batch.
    pub(super) number: usize,
    /// The embedded query.
    pub(super) query: &'q [f32],
    pub(super) found: Vec<Estimate>,
    pub(super) plan: Plan,
    pub(super) work: SearchStats,
    /// Cells that were probed and means that were compared, unless the candidates come from the graph.
    pub(super) routed: Option<(usize, usize)>,
}

impl<'q> WaitingQueries<'q> {
    pub(super) fn push(&mut self, query: WaitingQuery<'q>) {
        self.0.push(query);
    }
}

impl Snapshot<'_> {
    /// The file that the vectors of the segment stay in, if they do.
    pub(super) fn on_disk(&self) -> Option<&VectorFile> {
        match &self.index.segment.vectors {
            StoredVectors::File(file) => Some(file),
            _ => None,
        }
    }

    /// Reranks the candidates of all `queries`. Each wave of reads has those of as many queries as fit.
    pub(super) fn rerank_from_disk<O: Observer>(
        &self,
        file: &VectorFile,
        queries: &mut [Reranking<'_, O>],
    ) {
        let mut fetched = file.take_rows();
        let mut rows = Vec::new();
        loop {
            next_waves(queries, file.rows_at_a_time(), &mut rows);
            if queries.iter().all(|asked| asked.wave.is_empty()) {
                break;
            }
            file.read_rows(&rows, &mut fetched);
            for asked in &mut *queries {
                let mut row = asked.first_row;
                for f in &asked.found[asked.wave.clone()] {
                    if is_pruned(f, &asked.plan, asked.best.worst()) {
                        asked.wave = asked.found.len()..asked.found.len();
                        break;
                    }
                    let number = (rows.get(row) == Some(&f.at)).then_some(row);
                    row += usize::from(number.is_some());
                    let query = &asked.query;
                    // A candidate that could not enter before cannot do so now, and its distance is not asked for.
                    let distance =
                        || number.map_or(f32::INFINITY, |number| fetched.distance(query, number));
                    self.rerank_one(f, distance, asked.best, asked.work, asked.observer);
                }
            }
        }
        file.give_rows(fetched);
    }

    /// Reranks the candidates of waiting queries, and completes their answers.
    pub(super) fn finish_waiting(
        &self,
        file: &VectorFile,
        WaitingQueries(mut waiting): WaitingQueries<'_>,
        asked: Rows<'_>,
        answers: &mut [Answer],
    ) {
        let mut best: Vec<TopK> = waiting.iter().map(|_| TopK::default()).collect();
        let mut bytes = vec![Vec::new(); waiting.len()];
        let mut observers: Vec<Unobserved> = waiting.iter().map(|_| Unobserved).collect();
        let buffers = best.iter_mut().zip(&mut bytes).zip(&mut observers);
        let queries = waiting.iter_mut().zip(buffers);
        let mut queries: Vec<_> = queries
            .map(|(waiting, ((best, bytes), observer))| {
                best.start_for(waiting.plan.k, self.index.spills());
                let query = self.segment.vectors.prepare(waiting.query, bytes);
                let (found, work) = (&waiting.found, &mut waiting.work);
                Reranking::new(query, &waiting.plan, found, best, work, observer)
            })
            .collect();
        self.rerank_from_disk(file, &mut queries);
        drop(queries);
        for (mut waiting, best) in waiting.into_iter().zip(&mut best) {
            let work = &mut waiting.work;
            self.scan_uncovered(waiting.query, best, work);
            match waiting.routed {
                Some((probed, scored)) => self.count_madds(probed, scored, work),
                None => work.exact_madds = work.candidates * self.index.transform.dim() as u64,
            }
            let query = asked.row(waiting.number);
            let hits = Metric::report(self, query, best, waiting.plan.wanted);
            answers[waiting.number] = Answer::new(hits, waiting.work, false);
        }
    }

    /// Calls `each` with position and squared distance of some points, in order. The vectors are read many at a time.
    /// It ends early if the search was cancelled, for which the caller looks.
    pub(super) fn distances_on_disk(
        &self,
        file: &VectorFile,
        positions: impl Iterator<Item = u32>,
        query: &Prepared<'_>,
        mut each: impl FnMut(u32, f32),
    ) {
        let mut fetched = file.take_rows();
        let mut positions = positions.peekable();
        let (mut rows, cancel) = (Vec::new(), Cancel::current());
        while positions.peek().is_some() && !cancel.is_cancelled() {
            rows.clear();
            rows.extend(positions.by_ref().take(MAX_WAVE.min(file.rows_at_a_time())));
            file.read_rows(&rows, &mut fetched);
            for (number, position) in rows.iter().enumerate() {
                each(*position, fetched.distance(query, number));
            }
        }
        file.give_rows(fetched);
    }
}

impl Index {
    /// Does `work`, and fails if a vector could not be read from the disk meanwhile.
    pub(in crate::search) fn reading<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let StoredVectors::File(file) = &self.segment.vectors else {
            return work();
        };
        let failures = file.failures();
        let done = work()?;
        file.check_since(failures)?;
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testdata::{gaussian, rows};

    /// Candidates with equal estimates, which are never pruned.
    fn candidates(count: u32) -> Vec<Estimate> {
        let candidate = |at| Estimate { at, estimate: 1.0 };
        (0..count).map(candidate).collect()
    }

    #[test]
    fn a_wave_of_a_batch_is_bounded_and_all_candidates_are_read() {
        let lists = [70, 0, 100, 5].map(candidates);
        let mut best = [(); 4].map(|()| TopK::default());
        best.iter_mut().for_each(|best| best.start(3));
        let mut work = [SearchStats::default(); 4];
        let mut observers = [(); 4].map(|()| Unobserved);
        let buffers = best.iter_mut().zip(&mut work).zip(&mut observers);
        let plan = Plan::everything(3);
        let mut queries: Vec<_> = (lists.iter().zip(buffers))
            .map(|(found, ((best, work), observer))| {
                Reranking::new(Prepared::Float(&[]), &plan, found, best, work, observer)
            })
            .collect();
        let mut read = Vec::new();
        let mut wave = Vec::new();
        loop {
            next_waves(&mut queries, 40, &mut wave);
            assert!(wave.len() <= 40, "{}", wave.len());
            if queries.iter().all(|asked| asked.wave.is_empty()) {
                break;
            }
            read.push(wave.len());
        }
        assert_eq!(read, [40, 40, 40, 40, 15]);
    }
    #[test]
    fn reading_all_vectors_ends_when_the_search_is_cancelled() {
        let (count, dim) = (600, 4);
        let values = gaussian(count, dim, 3);
        let built = Index::builder().build(rows(&values, dim)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        built.save(&path).unwrap();
        let index = Index::open_on_disk(&path).unwrap();
        let snapshot = index.snapshot();
        let file = snapshot.on_disk().unwrap();
        for (is_set, expected) in [(false, count), (true, 0)] {
            let mut seen = 0;
            Cancel::new(Arc::new(is_set.into())).scope(|| {
                let query = Prepared::Float(&values[..dim]);
                snapshot.distances_on_disk(file, 0..count as u32, &query, |_, _| seen += 1);
            });
            assert_eq!(seen, expected);
        }
    }
}
