//! More vectors like those of a data set, as many as one likes.
//!
//! A new vector is a vector of the set that is moved by a random combination of the differences to its nearest
//! neighbours. These differences span the local frame of the set, and the combination has their covariance, so that the
//! local dimension of the new vectors is that of the set. Noise in all directions would have that of the space.
//!
//! Every vector has a random stream of its own. The vectors depend on the set, the seed and their numbers alone.

use garlic_ann::{Cancel, Index, Rows, Search, UseGraph};
use garlic_linalg::{random_stream, uniform_below, uniform_unit};
use rand::Rng;
use rayon::prelude::*;

use crate::error::{Error, Result};

/// From which numbers on the random streams of vectors and of queries begin.
const VECTOR_STREAM: u64 = 2 << 48;
const QUERY_STREAM: u64 = 3 << 48;
/// Recall of the search for neighbours. A missed one is replaced by the next.
const RECALL: f64 = 0.9;
/// Vectors whose neighbours are searched for at a time.
const BATCH: usize = 1 << 16;
/// Fewest vectors of a set.
const MIN_VECTORS: usize = 100;

/// How vectors are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResampleOptions {
    /// Number of neighbours that span the local frame.
    pub neighbours: usize,
    /// Standard deviation of a move, as a multiple of the distances to the neighbours.
    pub spread: f64,
    /// Whether to round to whole numbers from 0 to 255.
    pub bytes: bool,
    /// Seed of all random choices.
    pub seed: u64,
}

impl Default for ResampleOptions {
    fn default() -> Self {
        Self {
            neighbours: 16,
            spread: 0.5,
            bytes: false,
            seed: 0,
        }
    }
}

/// Whether all values are whole numbers from 0 to 255, which [`ResampleOptions::bytes`] is made for.
pub fn are_bytes(values: &[f32]) -> bool {
    values.iter().all(|v| garlic_core::vectors::is_byte(*v))
}

/// Draws vectors like those of a set.
#[derive(Debug)]
pub struct Resampler<'a> {
    vectors: Rows<'a>,
    /// The nearest neighbours of every vector.
    neighbours: Vec<u32>,
    options: ResampleOptions,
    pool: rayon::ThreadPool,
}

impl<'a> Resampler<'a> {
    /// Finds the local frames of `vectors`.
    ///
    /// # Errors
    /// Fails for fewer than a hundred vectors, and for options out of range.
    pub fn new(
        vectors: Rows<'a>,
        options: ResampleOptions,
        threads: usize,
        cancel: &Cancel,
    ) -> Result<Self> {
        let wrong = |message: String| Err(Error::Resample { message });
        if vectors.len() < MIN_VECTORS {
            return wrong(format!(
                "{} vectors are too few to resample; give at least {MIN_VECTORS}",
                vectors.len()
            ));
        }
        if options.neighbours == 0
            || options.neighbours > 256
            || options.neighbours >= vectors.len()
        {
            return wrong(
                "the number of neighbours must be from 1 to 256, and below that of the vectors"
                    .into(),
            );
        }
        if !(options.spread > 0.0 && options.spread.is_finite()) {
            return wrong("the spread must be above 0".into());
        }
        Ok(Self {
            vectors,
            neighbours: neighbours(vectors, &options, threads, cancel)?,
            options,
            pool: garlic_core::pool::thread_pool(threads)?,
        })
    }

    /// Dimension of the vectors.
    pub fn dim(&self) -> usize {
        self.vectors.dim()
    }

    /// Vectors `first` and following, as many as `out` has room for.
    pub fn vectors(&self, first: usize, out: &mut [f32]) {
        self.draw(VECTOR_STREAM, first, out);
    }

    /// Queries `first` and following: more vectors of the same distribution. If they had parents of their own, and each
    /// parent many vectors, no vector would be as near to a query as vectors are to each other.
    pub fn queries(&self, first: usize, out: &mut [f32]) {
        self.draw(QUERY_STREAM, first, out);
    }

    fn draw(&self, stream: u64, first: usize, out: &mut [f32]) {
        self.pool.install(|| {
            let rows = out.par_chunks_exact_mut(self.dim()).enumerate();
            rows.for_each(|(i, row)| {
                let mut random = random_stream(self.options.seed, stream + (first + i) as u64);
                self.move_one(&mut random, row);
            });
        });
    }

    fn move_one(&self, random: &mut impl Rng, row: &mut [f32]) {
        let parent = uniform_below(random, self.vectors.len());
        let k = self.options.neighbours;
        let origin = self.vectors.row(parent);
        row.copy_from_slice(origin);
        let scale = self.options.spread / (k as f64).sqrt();
        for neighbour in &self.neighbours[parent * k..][..k] {
            let weight = (scale * normal(random)) as f32;
            let neighbour = self.vectors.row(*neighbour as usize);
            for ((out, x), y) in row.iter_mut().zip(origin).zip(neighbour) {
                *out += weight * (y - x);
            }
        }
        if self.options.bytes {
            for value in row {
                *value = value.round().clamp(0.0, 255.0);
            }
        }
    }
}

/// A normally distributed number, by the method of Box and Muller.
fn normal(random: &mut impl Rng) -> f64 {
    let radius = (-2.0 * (1.0 - uniform_unit(random)).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform_unit(random)).cos()
}

/// The nearest neighbours of every vector, without itself.
fn neighbours(
    vectors: Rows<'_>,
    options: &ResampleOptions,
    threads: usize,
    cancel: &Cancel,
) -> Result<Vec<u32>> {
    let mut config = garlic_ann::Config::default();
    config.graph.graph = UseGraph::Off;
    let builder = Index::builder().config(config).seed(options.seed);
    let builder = builder.threads(threads).cancel(cancel.clone());
    let index = builder.build(vectors)?;
    let k = options.neighbours;
    let search = Search::new(k + 1).recall(RECALL).threads(threads);
    let mut found = Vec::with_capacity(vectors.len() * k);
    for first in (0..vectors.len()).step_by(BATCH) {
        let batch = vectors.slice(first..vectors.len().min(first + BATCH));
        let answers = cancel.scope(|| index.search_batch(batch, &search))?;
        for (row, answer) in (first as u64..).zip(answers) {
            let others = answer.hits.iter().map(|hit| hit.id).filter(|id| *id != row);
            let start = found.len();
            found.extend(others.take(k).map(|id| id as u32));
            // A search that found fewer repeats the nearest, or stays where it is.
            let nearest = found.get(start).copied().unwrap_or(row as u32);
            found.resize(start + k, nearest);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use garlic_linalg::{Matrix, permutation};

    /// A curved sheet of dimension 4 in a space of dimension 20, with a little noise.
    fn sheet(count: usize) -> Vec<f32> {
        let mut random = random_stream(5, 7);
        let mut values = Vec::with_capacity(count * 20);
        for _ in 0..count {
            let at: Vec<f64> = (0..4).map(|_| 4.0 * uniform_unit(&mut random)).collect();
            values.extend((0..20).map(|j| {
                let angle = at[j % 4] * (1.0 + j as f64 / 20.0) + at[(j + 1) % 4] * 0.3;
                (40.0 * (angle + j as f64).sin() + 100.0) as f32 + 0.05 * normal(&mut random) as f32
            }));
        }
        values
    }

    fn resampler(vectors: Rows<'_>, bytes: bool) -> Resampler<'_> {
        let options = ResampleOptions {
            bytes,
            seed: 3,
            ..ResampleOptions::default()
        };
        Resampler::new(vectors, options, 1, &Cancel::default()).unwrap()
    }

    /// Local intrinsic dimension of vectors: the mean of the maximum-likelihood estimates of Levina and Bickel over `sample`
    /// of them, from the distances to their `k` nearest neighbours among all, which are found by brute force.
    fn local_dimension(vectors: Rows<'_>, sample: usize, k: usize, seed: u64) -> f64 {
        let chosen = permutation(vectors.len(), seed, 1);
        let chosen: Vec<u32> = chosen.into_iter().take(sample).collect();
        let queries = Matrix::gather(vectors, &chosen);
        let estimates: Vec<f64> = (0..queries.rows())
            .filter_map(|i| {
                let query = queries.row(i);
                let squared = vectors
                    .iter()
                    .map(|row| garlic_simd::l2_squared(query, row));
                // Copies have no direction.
                let mut squared: Vec<f32> = squared.filter(|d| *d > 0.0).collect();
                if squared.len() <= k {
                    return None;
                }
                squared.select_nth_unstable_by(k - 1, f32::total_cmp);
                let near = &mut squared[..k];
                near.sort_unstable_by(f32::total_cmp);
                let last = f64::from(near[k - 1]);
                let logs = near[..k - 1]
                    .iter()
                    .map(|d| 0.5 * (last / f64::from(*d)).ln());
                Some(logs.sum::<f64>() / (k - 2) as f64)
            })
            .collect();
        // The inverse of the mean of inverses is less biased than the mean.
        estimates.len() as f64 / estimates.iter().sum::<f64>()
    }

    #[test]
    fn the_local_dimension_is_that_of_the_set() {
        let (values, count) = (sheet(4000), 8000);
        let vectors = Rows::new(&values, 20).unwrap();
        let source = local_dimension(vectors, 200, 20, 1);
        assert!((2.5..6.0).contains(&source), "{source}");
        let mut drawn = vec![0.0; count * 20];
        resampler(vectors, false).vectors(0, &mut drawn);
        let found = local_dimension(Rows::new(&drawn, 20).unwrap(), 200, 20, 1);
        assert!(
            (found / source - 1.0).abs() < 0.3,
            "{found} instead of {source}"
        );
        // The estimate tells noise in all directions apart.
        let mut random = random_stream(8, 8);
        let noisy: Vec<f32> = values
            .iter()
            .map(|v| v + 15.0 * normal(&mut random) as f32)
            .collect();
        let noise = local_dimension(Rows::new(&noisy, 20).unwrap(), 200, 20, 1);
        assert!(noise > 1.5 * source, "{noise}");
    }

    #[test]
    fn vectors_depend_on_their_numbers_and_the_seed_alone() {
        let values = sheet(600);
        let vectors = Rows::new(&values, 20).unwrap();
        let drawer = resampler(vectors, true);
        let (mut all, mut some) = (vec![0.0; 50 * 20], vec![0.0; 20 * 20]);
        drawer.vectors(0, &mut all);
        resampler(vectors, true).vectors(30, &mut some);
        assert_eq!(all[30 * 20..], some);
        assert!(
            all.iter()
                .all(|v| v.fract() == 0.0 && (0.0..=255.0).contains(v))
        );
        let other = ResampleOptions {
            seed: 4,
            ..drawer.options
        };
        let other = Resampler::new(vectors, other, 2, &Cancel::default()).unwrap();
        other.vectors(30, &mut some);
        assert_ne!(all[30 * 20..], some);
    }

    #[test]
    fn queries_are_as_near_to_vectors_as_these_to_each_other() {
        // Thirty vectors for every one of the set, which are far from each other.
        let mut random = random_stream(6, 6);
        let values: Vec<f32> = (0..200 * 20).map(|_| normal(&mut random) as f32).collect();
        let count = 6000;
        let drawer = resampler(Rows::new(&values, 20).unwrap(), false);
        let (mut asked, mut drawn) = (vec![0.0; 300 * 20], vec![0.0; count * 20]);
        drawer.queries(0, &mut asked);
        drawer.vectors(0, &mut drawn);
        let drawn = Rows::new(&drawn, 20).unwrap();
        // The mean distance to the tenth neighbour.
        let reach = |rows: &[f32], itself: usize| -> f64 {
            let each = rows.chunks_exact(20).map(|row| {
                let mut near: Vec<f32> = drawn
                    .iter()
                    .map(|v| garlic_simd::l2_squared(row, v))
                    .collect();
                let (_, tenth, _) = near.select_nth_unstable_by(9 + itself, f32::total_cmp);
                f64::from(tenth.sqrt())
            });
            each.sum::<f64>() / (rows.len() / 20) as f64
        };
        let (queries, vectors) = (reach(&asked, 0), reach(&drawn.data()[..300 * 20], 1));
        assert!(
            (queries / vectors - 1.0).abs() < 0.05,
            "{queries} {vectors}"
        );
        assert!(
            asked
                .chunks_exact(20)
                .all(|query| drawn.iter().all(|v| v != query))
        );
    }

    #[test]
    fn wrong_options_are_refused() {
        let values = sheet(120);
        let vectors = Rows::new(&values, 20).unwrap();
        let with = |neighbours, spread, vectors| {
            let options = ResampleOptions {
                neighbours,
                spread,
                ..ResampleOptions::default()
            };
            Resampler::new(vectors, options, 1, &Cancel::default()).err()
        };
        for (neighbours, spread) in [(0, 0.5), (300, 0.5), (16, 0.0), (16, f64::NAN)] {
            assert!(with(neighbours, spread, vectors).is_some());
        }
        let error = with(16, 0.5, vectors.slice(0..99)).unwrap().to_string();
        assert!(error.contains("99 vectors are too few"), "{error}");
    }
}
