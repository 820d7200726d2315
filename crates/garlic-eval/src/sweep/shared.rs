//! Recall and work of many settings from one visit per query.

use std::ops::Range;
use std::thread;

use garlic_ann::SearchStats;
use garlic_linalg::Rows;

use crate::error::Result;
use crate::evaluate::{Row, chunks};
use crate::metrics::WorkMeans;
use crate::quality::{Quality, Sample};
use crate::target::{Params, Target};
use crate::truth::Truth;

/// Sums over queries for one setting: whole numbers, and the rest in the order of the queries, so that they do not depend
/// on how threads share the queries.
#[derive(Clone, Default)]
pub(super) struct Figures {
    /// True neighbours found among the first one, the first ten and the first `k`.
    found: [u64; 3],
    /// How many there were to find.
    sought: [u64; 3],
    samples: Vec<Sample>,
    work: SearchStats,
}

impl Figures {
    /// Replaces the figures of a row that was measured on fewer queries; what is undefined stays so.
    pub(super) fn put(&self, row: &mut Row, queries: usize, dim: usize) {
        let n = queries as f64;
        let share = |i: usize| self.found[i] as f64 / self.sought[i].max(1) as f64;
        row.recall_at_1 = share(0);
        row.recall_at_10 = row.recall_at_10.map(|_| share(1));
        row.recall_at_k = row.recall_at_k.map(|_| share(2));
        row.quality = row.quality.map(|_| Quality::of(&self.samples));
        row.candidates = self.work.candidates as f64 / n;
        row.cells_scored = self.work.cells_scored as f64 / n;
        row.distance_equivalents = self.work.distance_equivalents(dim) / n;
        row.work = WorkMeans::new(&self.work, queries, dim);
        row.queries = queries;
    }

    fn add(&mut self, other: &Self) {
        for i in 0..3 {
            self.found[i] += other.found[i];
            self.sought[i] += other.sought[i];
        }
        self.samples.extend_from_slice(&other.samples);
        self.work += other.work;
    }
}

/// The figures of every setting; `None` when the method cannot share work between settings.
///
/// `settings` are all combinations of some probes and some bins, ordered by probes, then bins.
pub(super) fn figures(
    target: &dyn Target,
    queries: Rows<'_>,
    truth: &Truth,
    settings: &[Params],
    threads: usize,
) -> Result<Option<Vec<Figures>>> {
    let mut probes: Vec<usize> = settings.iter().filter_map(|s| s.probes).collect();
    let bins: Vec<f64> = settings
        .iter()
        .take_while(|s| s.probes == settings[0].probes)
        .filter_map(|s| s.bins)
        .collect();
    probes.dedup();
    if probes.len() * bins.len() != settings.len() {
        return Ok(None);
    }
    let k = settings[0].k;
    let some = |range: Range<usize>| -> Result<Option<Vec<Figures>>> {
        let mut worker = target.worker();
        let mut sums = vec![Figures::default(); settings.len()];
        for i in range {
            let Some(answers) = worker.search_grid(queries.row(i), k, &probes, &bins) else {
                return Ok(None);
            };
            for (sum, answer) in sums.iter_mut().zip(answers?) {
                let sought = [1, 10, k].map(|k| k.min(truth.k()) as u64);
                let share = |k: u64| truth.recall(i, &answer.hits, k as usize);
                let found = sought.map(|k| (share(k) * k as f64).round() as u64);
                sum.add(&Figures {
                    found,
                    sought,
                    samples: vec![Sample::new(&answer.hits, truth.row(i))],
                    work: answer.stats,
                });
            }
        }
        Ok(Some(sums))
    };
    let parts: Vec<_> = thread::scope(|scope| {
        let ranges = chunks(queries.len(), threads);
        let some = &some;
        let handles: Vec<_> = ranges
            .into_iter()
            .map(|r| scope.spawn(move || some(r)))
            .collect();
        handles
            .into_iter()
            .map(|h| {
                h.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    let mut total = vec![Figures::default(); settings.len()];
    for part in parts {
        let Some(part) = part? else { return Ok(None) };
        for (sum, figures) in total.iter_mut().zip(&part) {
            sum.add(figures);
        }
    }
    Ok(Some(total))
}
