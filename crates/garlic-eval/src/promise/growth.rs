//! Recall while an index grows, from its first point on, with and without removals.

mod sequence;

use std::time::{Duration, Instant};

use garlic_ann::{Config, Index, Metric, Search};
use garlic_linalg::{Rows, random_stream, uniform_below};

use super::matrix::mean_work;
use super::reference::{Estimate, Reference};
use super::{all_threads, misses};
use crate::error::Result;
use crate::hostile::{self, Kind};
use sequence::Sequence;

/// Neighbours asked for.
const K: usize = 10;
/// With removals, every so many chunks some points are removed.
const REMOVAL_INTERVAL: usize = 4;
/// Share of the points that a removal takes, but never more than a chunk.
const REMOVED_SHARE: f64 = 0.05;
/// Random stream of the removals.
const REMOVALS: u64 = 13;

/// The order in which points arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// At random.
    Shuffled,
    /// By the first coordinate.
    Sorted,
    /// At random, while the mean of all coordinates moves steadily, by ten median deviations of the values in all.
    Drifting,
}

impl Order {
    /// Every order.
    pub const ALL: [Self; 3] = [Self::Shuffled, Self::Sorted, Self::Drifting];

    /// Its name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shuffled => "shuffled",
            Self::Sorted => "sorted",
            Self::Drifting => "drifting",
        }
    }
}

/// The life of one index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Life {
    /// Kind of data.
    pub kind: &'static Kind,
    /// Metric of the index.
    pub metric: Metric,
    /// Order of the points.
    pub order: Order,
    /// Points added by one call.
    pub chunk: usize,
    /// Points added in all.
    pub points: usize,
    /// Whether every fourth chunk comes with the removal of 5 % of the points, at most as many as a chunk.
    pub removes: bool,
    /// Seed of the data and of the index.
    pub seed: u64,
}

/// What was measured with one target at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Whose life.
    pub life: Life,
    /// Points of the index at that moment.
    pub points: usize,
    /// Recall asked for.
    pub target: f64,
    /// Recall measured.
    pub realised: Estimate,
    /// Mean work of a query in distances to one point.
    pub work: f64,
    /// Points added a second since the index was empty, removals included in the time.
    pub added_per_second: f64,
}

impl Row {
    /// Whether the row breaks the promise.
    pub fn fails(&self) -> bool {
        misses(&self.realised, self.target)
    }
}

/// Sizes of the chunks that points are added in.
pub const CHUNKS: [usize; 5] = [1, 10, 100, 1000, 10_000];

/// Targets measured while an index grows.
pub const TARGETS: [f64; 3] = [0.9, 0.95, 0.99];

/// A life for every combination, of at most `points` points; in half of them points are removed.
///
/// Small chunks end earlier, for they take longest.
pub fn lives(
    kinds: &[&'static Kind],
    metrics: &[Metric],
    orders: &[Order],
    chunks: &[usize],
    points: usize,
    seed: u64,
) -> Vec<Life> {
    let mut lives = Vec::new();
    for &kind in kinds {
        for &metric in metrics {
            for &order in orders {
                for &chunk in chunks {
                    lives.push(Life {
                        kind,
                        metric,
                        order,
                        chunk,
                        points: points.min(most_points(chunk)),
                        removes: removes(kind, metric, order, chunk),
                        seed,
                    });
                }
            }
        }
    }
    lives
}

/// A choice that depends on the life alone, not on which others are measured.
fn removes(kind: &Kind, metric: Metric, order: Order, chunk: usize) -> bool {
    let named = hostile::kinds().iter().position(|other| other == kind);
    let digits = chunk.checked_ilog10().unwrap_or(0);
    let sum = named.unwrap_or(0) + metric as usize + order as usize + digits as usize;
    sum % 2 == 1
}

/// Points of the longest life with chunks of this size.
fn most_points(chunk: usize) -> usize {
    match chunk {
        0..10 => 10_000,
        10..100 => 30_000,
        _ => usize::MAX,
    }
}

/// Lets an index live: adds the points of a sequence in chunks and measures all `targets` whenever the number of
/// points has doubled, and at the end. `tell` takes each row when it is measured, those before an error as well.
///
/// There are no rows where the cosine metric refuses a vector of zeros.
pub fn measure(life: &Life, targets: &[f64], tell: &mut dyn FnMut(Row)) -> Result<()> {
    let sequence = Sequence::new(life);
    if !sequence.is_defined(life.metric) {
        return Ok(());
    }
    let mut removals = random_stream(life.seed, REMOVALS);
    let mut living: Vec<u64> = Vec::new();
    let mut index = start(life, sequence.dim)?;
    let mut busy = Duration::ZERO;
    let (mut added, mut chunks, mut next) = (0, 0, 1);
    while added < life.points {
        let range = added..life.points.min(added + life.chunk);
        let ids: Vec<u64> = range.clone().map(|row| row as u64).collect();
        let vectors = sequence.rows(range)?;
        (added, chunks) = (added + vectors.len(), chunks + 1);
        let removed = match life.removes && chunks % REMOVAL_INTERVAL == 0 {
            true => (REMOVED_SHARE * living.len() as f64).ceil() as usize,
            false => 0,
        };
        let mut gone = Vec::new();
        for _ in 0..removed.min(life.chunk).min(living.len()) {
            gone.push(living.swap_remove(uniform_below(&mut removals, living.len())));
        }
        living.extend(&ids);
        let begin = Instant::now();
        index.add(vectors, &ids)?;
        if !gone.is_empty() {
            index.remove(&gone)?;
        }
        busy += begin.elapsed();
        if living.len() >= next || added == life.points {
            let moment = Moment {
                life,
                sequence: &sequence,
                living: &living,
                added,
                added_per_second: added as f64 / busy.as_secs_f64().max(1e-9),
            };
            moment.measure(&index, targets, tell)?;
            next = 2 * living.len();
        }
    }
    Ok(())
}

/// The index before anything is added.
fn start(life: &Life, dim: usize) -> Result<Index> {
    let config = Config {
        metric: life.metric,
        seed: life.seed,
        ..Config::default()
    };
    Ok(Index::empty(dim, config)?)
}

/// The state of a life that is measured.
struct Moment<'a> {
    life: &'a Life,
    sequence: &'a Sequence,
    living: &'a [u64],
    added: usize,
    added_per_second: f64,
}

impl Moment<'_> {
    fn measure(&self, index: &Index, targets: &[f64], tell: &mut dyn FnMut(Row)) -> Result<()> {
        let mut is_living = vec![false; self.added];
        self.living
            .iter()
            .for_each(|id| is_living[*id as usize] = true);
        let values = self.sequence.queries(self.added, self.life.seed);
        let queries = Rows::new(&values, self.sequence.dim)?;
        let points = self.sequence.rows(0..self.added)?;
        let metric = self.life.metric;
        let living = |row: usize| is_living[row];
        let reference = Reference::new(metric, points, living, queries, K, all_threads());
        for &target in targets {
            let search = Search::new(K).recall(target).threads(all_threads());
            let answers = index.search_batch(queries, &search)?;
            tell(Row {
                life: *self.life,
                points: self.living.len(),
                target,
                realised: Estimate::of(&reference.recalls(&answers, K)),
                work: mean_work(&answers, self.sequence.dim),
                added_per_second: self.added_per_second,
            });
        }
        Ok(())
    }
}
