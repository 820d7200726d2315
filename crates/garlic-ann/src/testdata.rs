//! Data and configurations for unit tests. Integration tests use `tests/testdata`.

use std::ops::Range;

use garlic_linalg::{Rows, random_stream, uniform_unit};

use crate::{Config, Configuration as _};

/// Random stream of this module.
const STREAM: u64 = 41;

/// Values from -0.5 to 0.5, evenly distributed.
pub(crate) fn uniform(rows: usize, dim: usize, seed: u64) -> Vec<f32> {
    let mut random = random_stream(seed, STREAM);
    let values = (0..rows * dim).map(|_| uniform_unit(&mut random) as f32 - 0.5);
    values.collect()
}

/// Normally distributed values of variance 1, each the sum of twelve uniform ones.
pub(crate) fn gaussian(rows: usize, dim: usize, seed: u64) -> Vec<f32> {
    let mut random = random_stream(seed, STREAM);
    let mut value = || (0..12).map(|_| uniform_unit(&mut random)).sum::<f64>() - 6.0;
    (0..rows * dim).map(|_| value() as f32).collect()
}

/// Boxes of half width `spread` around twelve centres that are at most `reach` away along every axis.
pub(crate) fn clustered(rows: usize, dim: usize, reach: f32, spread: f32, seed: u64) -> Vec<f32> {
    let centres = uniform(12, dim, seed);
    let mut values = uniform(rows, dim, seed + 1000);
    for (i, value) in values.iter_mut().enumerate() {
        *value = 2.0 * (reach * centres[i / dim % 12 * dim + i % dim] + spread * *value);
    }
    values
}

/// Vectors of dimension `dim`.
pub(crate) fn rows(values: &[f32], dim: usize) -> Rows<'_> {
    Rows::new(values, dim).unwrap()
}

/// Consecutive identifiers.
pub(crate) fn ids(range: Range<u64>) -> Vec<u64> {
    range.collect()
}

/// The default parameters with these changes.
pub(crate) fn config(settings: &[(&str, usize)]) -> Config {
    let mut config = Config::default();
    for (key, value) in settings {
        config.set(key, &value.to_string()).unwrap();
    }
    config
}

/// Fails unless the mean recall of the queries reaches the target within 2.5 standard errors.
#[track_caller]
pub(crate) fn assert_meets(shares: &[f64], target: f64, what: &str) {
    let count = shares.len() as f64;
    let mean = shares.iter().sum::<f64>() / count;
    let squares: f64 = shares.iter().map(|share| (share - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    assert!(
        mean + 2.5 * error >= target,
        "{what}: asked for {target}, got {mean:.4} with a standard error of {error:.4}"
    );
}
