//! Recall while an index grows, from its first point on, with and without removals.

use std::time::{Duration, Instant};

use garlic_ann::{Index, Metric, Search};
use garlic_linalg::{Rows, permutation, random_stream, uniform_below};

use super::matrix::mean_work;
use super::reference::{Estimate, Reference};
use super::{all_threads, misses};
use crate::error::Result;
use crate::hostile::Kind;

/// Queries of a measurement; fewer while there are fewer points.
const QUERIES: usize = 300;
/// Neighbours asked for.
const K: usize = 10;
/// With removals, every so many chunks some points are removed.
const REMOVAL_INTERVAL: usize = 4;
/// Share of the points that a removal takes, but never more than a chunk.
const REMOVED_SHARE: f64 = 0.05;
// Random streams.
const SHUFFLE: u64 = 11;
const HELD_OUT: u64 = 12;
const REMOVALS: u64 = 13;

/// The order in which points arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// At random.
    Shuffled,
    /// By the first coordinate.
    Sorted,
    /// At random, while the mean of all coordinates moves by ten standard deviations of the data.
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
#[derive(Clone, Copy, Debug)]
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
    /// Whether points are removed in between.
    pub removes: bool,
    /// Seed of the data and of the index.
    pub seed: u64,
}

/// What was measured with one target at one moment.
#[derive(Clone, Copy, Debug)]
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

/// Points in the order in which they arrive; queries come from the same places of the sequence.
struct Sequence {
    dim: usize,
    points: Vec<f32>,
    /// The i-th was drawn beside the i-th point and is never added.
    held_out: Vec<f32>,
}

impl Sequence {
    fn new(life: &Life) -> Self {
        let rows = 2 * life.points;
        let (values, dim) = (life.kind.draw)(rows, life.seed);
        let mut order = permutation(rows, life.seed, SHUFFLE);
        if life.order == Order::Sorted {
            let first = |row: &u32| values[*row as usize * dim];
            order.sort_by(|a, b| first(a).total_cmp(&first(b)));
        }
        let drift = match life.order {
            Order::Drifting => 10.0 * deviation(&values),
            Order::Shuffled | Order::Sorted => 0.0,
        };
        let mut halves = [Vec::new(), Vec::new()];
        for (place, row) in order.into_iter().enumerate() {
            let moved = (drift * place as f64 / rows as f64) as f32;
            let vector = &values[row as usize * dim..][..dim];
            halves[place % 2].extend(vector.iter().map(|v| v + moved));
        }
        let [points, held_out] = halves;
        Self {
            dim,
            points,
            held_out,
        }
    }

    fn rows(&self, range: std::ops::Range<usize>) -> Result<Rows<'_>> {
        let values = &self.points[range.start * self.dim..range.end * self.dim];
        Ok(Rows::new(values, self.dim)?)
    }

    /// Queries from the places of the first `added` points.
    fn queries(&self, added: usize, seed: u64) -> Vec<f32> {
        let mut places = permutation(added, seed, HELD_OUT + ((added as u64) << 8));
        places.truncate(QUERIES);
        let row = |place: u32| &self.held_out[place as usize * self.dim..][..self.dim];
        places.into_iter().flat_map(row).copied().collect()
    }
}

/// Standard deviation of all values around the mean of their coordinate's first half; a scale, not a statistic.
fn deviation(values: &[f32]) -> f64 {
    let n = values.len().max(1) as f64;
    let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / n;
    let squares = values.iter().map(|v| (f64::from(*v) - mean).powi(2));
    (squares.sum::<f64>() / n).sqrt()
}

/// Lets an index live: adds the points of a sequence in chunks and measures all `targets` whenever the number of
/// points has doubled, and at the end; `tell` hears of each row when it is measured.
pub fn measure(life: &Life, targets: &[f64], tell: &mut dyn FnMut(&Row)) -> Result<Vec<Row>> {
    let sequence = Sequence::new(life);
    let mut removals = random_stream(life.seed, REMOVALS);
    let mut living: Vec<u64> = Vec::new();
    let mut index: Option<Index> = None;
    let mut busy = Duration::ZERO;
    let mut rows = Vec::new();
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
        let index = match &mut index {
            None => index.insert(start(life, vectors)?),
            Some(index) => {
                index.add(vectors, &ids)?;
                index
            }
        };
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
            rows.extend(moment.measure(index, targets, tell)?);
            next = 2 * living.len();
        }
    }
    Ok(rows)
}

/// The index with its first chunk.
///
/// Built from that chunk; to be replaced by an empty index that the chunk is added to as soon as the library has
/// one.
fn start(life: &Life, first: Rows<'_>) -> Result<Index> {
    let builder = Index::builder().metric(life.metric).seed(life.seed);
    Ok(builder.build(first)?)
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
    fn measure(
        &self,
        index: &Index,
        targets: &[f64],
        tell: &mut dyn FnMut(&Row),
    ) -> Result<Vec<Row>> {
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
        let mut rows = Vec::new();
        for &target in targets {
            let search = Search::new(K).recall(target).threads(all_threads());
            let answers = index.search_batch(queries, &search)?;
            let row = Row {
                life: *self.life,
                points: self.living.len(),
                target,
                realised: Estimate::of(&reference.recalls(&answers, K)),
                work: mean_work(&answers, self.sequence.dim),
                added_per_second: self.added_per_second,
            };
            tell(&row);
            rows.push(row);
        }
        Ok(rows)
    }
}
