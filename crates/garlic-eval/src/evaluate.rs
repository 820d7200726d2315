//! Measuring one setting: recall, work and time.

use std::ops::Range;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use garlic_ann::{Answer, SearchStats};
use garlic_linalg::Rows;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::metrics::{WorkMeans, mean, quantile};
use crate::quality::{Quality, Sample};
use crate::target::{Params, Target};
use crate::truth::Truth;

/// How to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Threads that answer queries, each one query at a time.
    pub threads: usize,
    /// Also measure all queries handed over together.
    pub batch: bool,
    /// Queries that a sweep times; of a method with codes, those that it measures off the front at all.
    pub timed: usize,
    /// Runs of which the fastest counts, for single queries and for batches.
    pub repeat: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: 1,
            batch: false,
            timed: 1000,
            repeat: 1,
        }
    }
}

/// What one setting measured. SearchStats figures are means over the queries.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Name of the method.
    pub method: String,
    /// Number of cells; 0 for a method without cells.
    pub cells: usize,
    /// The setting.
    pub params: Params,
    /// 1-recall@1.
    pub recall_at_1: f64,
    /// 10-recall@10; null when fewer neighbours were asked for or are known.
    pub recall_at_10: Option<f64>,
    /// k-recall@k for the `k` of the search; null when fewer true neighbours are known.
    pub recall_at_k: Option<f64>,
    /// What recall does not say, of the first ten returned points; absent where recall@10 is.
    #[serde(flatten)]
    pub quality: Option<Quality>,
    /// The recall that was aimed at; null when none was.
    pub target: Option<f64>,
    /// How far k-recall@k is above the target, negative below it.
    pub gap: Option<f64>,
    /// Distinct points whose exact distance was computed.
    pub candidates: f64,
    /// Cells whose distance to the query was computed or bounded.
    pub cells_scored: f64,
    /// All multiply-adds in units of one exact distance.
    pub distance_equivalents: f64,
    /// Queries a second, single queries on `threads` threads, wall time.
    pub qps: f64,
    /// Median time of a query in microseconds.
    pub p50_us: f64,
    /// 99th percentile of the time of a query in microseconds.
    pub p99_us: f64,
    /// Queries a second of a batch search; null when it was not measured.
    pub qps_batch: Option<f64>,
    /// Threads used.
    pub threads: usize,
    /// Number of queries behind recall and work: all of them, or the first ones off the front of a sweep over a
    /// method with codes.
    pub queries: usize,
    /// Number of queries behind the times: all of them, or the first ones in a sweep.
    pub timed_queries: usize,
    /// Where the work went.
    pub work: WorkMeans,
    /// No other setting of the sweep has at least this recall for fewer candidates; recall@1, or k-recall@k of a
    /// method with codes.
    pub front: bool,
    /// The same for distance equivalents instead of candidates.
    pub front_work: bool,
}

/// Measures one setting of `target`.
///
/// Recall and work do not depend on the number of threads; times do.
pub fn evaluate(
    target: &dyn Target,
    queries: Rows<'_>,
    truth: &Truth,
    params: &Params,
    options: &Options,
) -> Result<Row> {
    check(target, queries, truth, params, options)?;
    let (answers, mut nanos, mut seconds) = answer_all(target, queries, params, options.threads)?;
    for _ in 1..options.repeat {
        let (_, again, faster) = answer_all(target, queries, params, options.threads)?;
        if faster < seconds {
            (nanos, seconds) = (again, faster);
        }
    }
    let mut sum = SearchStats::default();
    for answer in &answers {
        sum += answer.stats;
    }
    let n = queries.len();
    let recall_at = |k: usize| {
        (params.k >= k.min(target.len()) && truth.covers(k, target.len())).then(|| {
            mean(
                answers
                    .iter()
                    .enumerate()
                    .map(|(i, a)| truth.recall(i, &a.hits, k)),
            )
        })
    };
    let mut micros: Vec<f64> = nanos.into_iter().map(|t| t as f64 / 1e3).collect();
    micros.sort_by(f64::total_cmp);
    let recall_at_k = recall_at(params.k);
    let recall_at_10 = recall_at(10);
    let quality = recall_at_10.map(|_| {
        let sample = |(i, a): (usize, &Answer)| Sample::new(&a.hits, truth.row(i));
        let samples: Vec<Sample> = answers.iter().enumerate().map(sample).collect();
        Quality::of(&samples)
    });
    Ok(Row {
        method: target.method().to_owned(),
        cells: target.cells(),
        params: *params,
        recall_at_1: recall_at(1).unwrap_or(0.0),
        recall_at_10,
        recall_at_k,
        quality,
        target: params.recall,
        gap: recall_at_k.zip(params.recall).map(|(r, t)| r - t),
        candidates: sum.candidates as f64 / n as f64,
        cells_scored: sum.cells_scored as f64 / n as f64,
        distance_equivalents: sum.distance_equivalents(target.dim()) / n as f64,
        qps: n as f64 / seconds.max(1e-9),
        p50_us: quantile(&micros, 0.5),
        p99_us: quantile(&micros, 0.99),
        qps_batch: if options.batch {
            batch_qps(target, queries, params, options)?
        } else {
            None
        },
        threads: options.threads,
        queries: n,
        timed_queries: n,
        work: WorkMeans::new(&sum, n, target.dim()),
        front: false,
        front_work: false,
    })
}

pub(crate) fn check(
    target: &dyn Target,
    queries: Rows<'_>,
    truth: &Truth,
    params: &Params,
    options: &Options,
) -> Result<()> {
    if queries.is_empty() {
        return Err(Error::NoQueries);
    }
    if queries.dim() != target.dim() {
        return Err(Error::Dimension {
            what: "the queries",
            expected: target.dim(),
            found: queries.dim(),
        });
    }
    if truth.len() != queries.len() {
        return Err(Error::TruthRows {
            expected: queries.len(),
            found: truth.len(),
        });
    }
    if truth.metric() != target.metric() {
        return Err(Error::TruthMetric {
            expected: target.metric(),
            found: truth.metric(),
        });
    }
    let parameter = |name, value: usize, rule| Error::Parameter {
        name,
        value: value.to_string(),
        rule,
    };
    if params.k == 0 {
        return Err(parameter("k", params.k, "ask for at least one neighbour"));
    }
    if options.threads == 0 {
        return Err(parameter(
            "threads",
            options.threads,
            "at least one thread is needed",
        ));
    }
    if options.repeat == 0 {
        return Err(parameter("repeat", 0, "at least one run is needed"));
    }
    Ok(())
}

/// Contiguous ranges of nearly equal length, the longer ones first.
pub(crate) fn chunks(n: usize, parts: usize) -> Vec<Range<usize>> {
    let parts = parts.clamp(1, n.max(1));
    let mut start = 0;
    (0..parts)
        .map(|i| {
            let len = n / parts + usize::from(i < n % parts);
            start += len;
            start - len..start
        })
        .collect()
}

/// What one thread did: answers, nanoseconds of each, and when it began and ended.
type Timed = (Vec<Answer>, Vec<u64>, Instant, Instant);

/// All answers in the order of the queries, the nanoseconds of each, and the wall time in seconds.
fn answer_all(
    target: &dyn Target,
    queries: Rows<'_>,
    params: &Params,
    threads: usize,
) -> Result<(Vec<Answer>, Vec<u64>, f64)> {
    let ranges = chunks(queries.len(), threads);
    // Scratch memory is made and touched before the clock starts: it belongs to the thread, not to a query.
    let ready = Barrier::new(ranges.len());
    let work = |range: Range<usize>| -> Result<Timed> {
        let mut worker = target.worker();
        let warm = worker.search(queries.row(range.start), params);
        ready.wait();
        warm?;
        let mut answers = Vec::with_capacity(range.len());
        let mut nanos = Vec::with_capacity(range.len());
        let begin = Instant::now();
        let mut last = begin;
        for i in range {
            answers.push(worker.search(queries.row(i), params)?);
            let now = Instant::now();
            nanos.push((now - last).as_nanos() as u64);
            last = now;
        }
        Ok((answers, nanos, begin, last))
    };
    thread::scope(|scope| {
        let handles: Vec<_> = ranges
            .iter()
            .map(|r| scope.spawn(|| work(r.clone())))
            .collect();
        let parts: Vec<_> = handles
            .into_iter()
            .map(|h| {
                h.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect();
        let mut answers = Vec::with_capacity(queries.len());
        let mut nanos = Vec::with_capacity(queries.len());
        // The threads' own clocks: this thread may be asleep when they begin.
        let mut wall: Option<(Instant, Instant)> = None;
        for part in parts {
            let (a, t, begin, end) = part?;
            answers.extend(a);
            nanos.extend(t);
            wall = Some(wall.map_or((begin, end), |(b, e)| (b.min(begin), e.max(end))));
        }
        let seconds = wall.map_or(0.0, |(begin, end)| (end - begin).as_secs_f64());
        Ok((answers, nanos, seconds))
    })
}

fn batch_qps(
    target: &dyn Target,
    queries: Rows<'_>,
    params: &Params,
    options: &Options,
) -> Result<Option<f64>> {
    let mut fastest = f64::INFINITY;
    for _ in 0..options.repeat {
        let start = Instant::now();
        match target.search_batch(queries, params, options.threads) {
            None => return Ok(None),
            Some(answers) => drop(answers?),
        }
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    Ok(Some(queries.len() as f64 / fastest.max(1e-9)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_contiguous_and_complete() {
        for n in [1, 2, 7, 100] {
            for parts in [1, 2, 3, 8, 200] {
                let c = chunks(n, parts);
                assert!(c.iter().all(|r| !r.is_empty()));
                assert_eq!(c[0].start, 0);
                assert!(
                    c.windows(2)
                        .all(|w| w[0].end == w[1].start && w[0].len() >= w[1].len())
                );
                assert_eq!(c[c.len() - 1].end, n);
            }
        }
    }
}
