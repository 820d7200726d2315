//! Plain loops in double precision: slow, obvious, and what the tests hold everything else against.

use crate::{Rows, random_stream, uniform_unit};

/// Sizes around the edges of the kernels, panels and tiles.
pub(crate) const SIZES: [usize; 8] = [1, 2, 3, 17, 33, 64, 97, 129];

/// Uniform values in [-0.5, 0.5).
pub(crate) fn random(len: usize, seed: u64) -> Vec<f32> {
    let mut rng = random_stream(seed, 99);
    (0..len)
        .map(|_| uniform_unit(&mut rng) as f32 - 0.5)
        .collect()
}

/// `n` rows around `k` far-apart points.
pub(crate) fn blobs(n: usize, d: usize, k: usize, seed: u64) -> Vec<f32> {
    let centres = random(k * d, seed);
    let mut data = random(n * d, seed + 1);
    for (i, row) in data.chunks_exact_mut(d).enumerate() {
        for (x, c) in row.iter_mut().zip(&centres[(i % k) * d..]) {
            *x = 0.1 * *x + 20.0 * c;
        }
    }
    data
}

/// A lower triangular matrix with a safe diagonal and NaN above it, where nobody may look.
pub(crate) fn lower(d: usize, seed: u64) -> Vec<f32> {
    let mut l = random(d * d, seed);
    for i in 0..d {
        for j in 0..d {
            if j > i {
                l[i * d + j] = f32::NAN;
            } else if i == j {
                l[i * d + j] += 1.5;
            } else {
                l[i * d + j] /= (d as f32).sqrt();
            }
        }
    }
    l
}

/// The lower triangle as a full matrix of doubles.
pub(crate) fn lower_part(l: &[f32], d: usize) -> Vec<f64> {
    (0..d * d)
        .map(|p| if p % d <= p / d { f64::from(l[p]) } else { 0.0 })
        .collect()
}

pub(crate) fn widen(a: &[f32]) -> Vec<f64> {
    a.iter().map(|&x| f64::from(x)).collect()
}

/// `A` (`rows x cols`) transposed.
pub(crate) fn transpose<T: Copy>(a: &[T], rows: usize, cols: usize) -> Vec<T> {
    (0..rows * cols)
        .map(|p| a[(p % rows) * cols + p / rows])
        .collect()
}

/// `A B` with `A` `m x k` and `B` `k x n`.
pub(crate) fn product(a: &[f64], b: &[f64], m: usize, n: usize, k: usize) -> Vec<f64> {
    let mut c = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            c[i * n + j] = (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
        }
    }
    c
}

/// Mean and population covariance.
pub(crate) fn covariance(rows: Rows<'_>) -> (Vec<f64>, Vec<f64>) {
    let (n, d) = (rows.len(), rows.dim());
    let mut mean = vec![0.0; d];
    for row in rows.iter() {
        for j in 0..d {
            mean[j] += f64::from(row[j]) / n as f64;
        }
    }
    let mut cov = vec![0.0; d * d];
    for row in rows.iter() {
        for i in 0..d {
            for j in 0..d {
                cov[i * d + j] +=
                    (f64::from(row[i]) - mean[i]) * (f64::from(row[j]) - mean[j]) / n as f64;
            }
        }
    }
    (mean, cov)
}

/// Index of the nearest centre by plain distances, the lower one on ties.
pub(crate) fn nearest(rows: Rows<'_>, centres: Rows<'_>) -> (Vec<u32>, Vec<f32>) {
    rows.iter()
        .map(|row| {
            let mut best = (0, f32::INFINITY);
            for (j, centre) in centres.iter().enumerate() {
                let distance = garlic_simd::l2_squared(row, centre);
                if distance < best.1 {
                    best = (j as u32, distance);
                }
            }
            best
        })
        .unzip()
}

/// Sum of squared distances to the nearest centre, in double precision.
pub(crate) fn inertia(rows: Rows<'_>, centres: Rows<'_>) -> f64 {
    rows.iter()
        .map(|row| {
            centres
                .iter()
                .map(|c| {
                    row.iter()
                        .zip(c)
                        .map(|(x, y)| f64::from(x - y).powi(2))
                        .sum::<f64>()
                })
                .fold(f64::INFINITY, f64::min)
        })
        .sum()
}

/// Largest difference between two slices; NaN counts as infinite.
pub(crate) fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .map(|(x, y)| {
            if (x - y).is_nan() {
                f64::INFINITY
            } else {
                (x - y).abs()
            }
        })
        .fold(0.0, f64::max)
}

/// How far the rows are from orthonormal.
pub(crate) fn orthonormality_error(basis: &[f64], d: usize) -> f64 {
    let k = basis.len() / d;
    let gram = product(basis, &transpose(basis, k, d), k, k, d);
    let identity: Vec<f64> = (0..k * k)
        .map(|p| if p % (k + 1) == 0 { 1.0 } else { 0.0 })
        .collect();
    largest_difference(&gram, &identity)
}
