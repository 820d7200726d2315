//! First centres for k-means: k-means++, farthest points, uniform rows.

use garlic_simd::l2_squared;
use rayon::prelude::*;

use crate::random::{partial_permutation, random_stream, uniform_below, uniform_unit};
use crate::{Matrix, Rows};

/// Rows in one task; also the granularity of the sums that k-means++ samples from.
const CHUNK: usize = 512;

/// At most `k` centres by k-means++: each next one is drawn with probability proportional to its squared
/// distance from those already chosen.
///
/// Stops early when every row coincides with a centre, so fewer come back when fewer rows are distinct; at
/// least one comes back when there is a row and `k` is positive.
pub fn kmeans_plus_plus(rows: Rows<'_>, k: usize, seed: u64) -> Matrix {
    let mut rng = random_stream(seed, 0);
    let first = uniform_below(&mut rng, rows.len());
    grow(rows, k, first, |distances, sums| {
        let total: f64 = sums.iter().map(|s| s.sum).sum();
        if !(total > 0.0 && total.is_finite()) {
            return None;
        }
        let mut target = uniform_unit(&mut rng) * total;
        // Rounding can leave the target at the very end: then the last row with any weight is the draw.
        let mut chosen = None;
        for (chunk, sums) in sums.iter().enumerate() {
            if sums.sum == 0.0 {
                continue;
            }
            let start = chunk * CHUNK;
            if target >= sums.sum {
                target -= sums.sum;
                chosen = Some(start + sums.farthest);
                continue;
            }
            let end = (start + CHUNK).min(distances.len());
            for (i, &distance) in distances[start..end].iter().enumerate() {
                if distance > 0.0 {
                    chosen = Some(start + i);
                    target -= f64::from(distance);
                    if target < 0.0 {
                        break;
                    }
                }
            }
            break;
        }
        chosen
    })
}

/// At most `k` centres by farthest-point sampling: a random row, then always the row farthest from those chosen
/// (the lower index on ties). Stops early as [`kmeans_plus_plus`] does.
pub fn farthest_points(rows: Rows<'_>, k: usize, seed: u64) -> Matrix {
    let mut rng = random_stream(seed, 0);
    let first = uniform_below(&mut rng, rows.len());
    grow(rows, k, first, |distances, sums| {
        let mut chosen = None;
        let mut largest = 0.0;
        for (chunk, sums) in sums.iter().enumerate() {
            let candidate = chunk * CHUNK + sums.farthest;
            if distances[candidate] > largest {
                largest = distances[candidate];
                chosen = Some(candidate);
            }
        }
        chosen
    })
}

/// `k` rows drawn uniformly without replacement, or all of them in random order when there are fewer.
///
/// Rows with equal values are different rows here: the centres may coincide.
pub fn random_rows(rows: Rows<'_>, k: usize, seed: u64) -> Matrix {
    Matrix::gather(rows, &partial_permutation(rows.len(), k, seed, 0))
}

/// What one chunk of rows reports after each new centre.
#[derive(Clone, Copy, Default)]
struct ChunkSums {
    /// Sum of the squared distances to the nearest centre.
    sum: f64,
    /// Position in the chunk of the largest of them, the first such on ties.
    farthest: usize,
}

/// Adds centres one by one; `next` sees every row's squared distance to the nearest centre so far.
fn grow(
    rows: Rows<'_>,
    k: usize,
    first: usize,
    mut next: impl FnMut(&[f32], &[ChunkSums]) -> Option<usize>,
) -> Matrix {
    let mut centres = Matrix::zeros(0, rows.dim());
    if rows.is_empty() || k == 0 {
        return centres;
    }
    let mut distances = vec![f32::INFINITY; rows.len()];
    let mut sums = vec![ChunkSums::default(); rows.len().div_ceil(CHUNK)];
    let mut chosen = first;
    loop {
        let centre = rows.row(chosen);
        centres.push_row(centre);
        if centres.rows() == k.min(rows.len()) {
            return centres;
        }
        distances
            .par_chunks_mut(CHUNK)
            .zip(sums.par_iter_mut())
            .enumerate()
            .for_each(|(chunk, (distances, sums))| {
                *sums = ChunkSums::default();
                for (i, distance) in distances.iter_mut().enumerate() {
                    *distance = distance.min(l2_squared(rows.row(chunk * CHUNK + i), centre));
                    sums.sum += f64::from(*distance);
                }
                for (i, &distance) in distances.iter().enumerate() {
                    if distance > distances[sums.farthest] {
                        sums.farthest = i;
                    }
                }
            });
        match next(&distances, &sums) {
            Some(row) => chosen = row,
            None => return centres,
        }
    }
}
