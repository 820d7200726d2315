//! Data, configurations, brute force and small indexes that the integration tests share. Everything follows from seeds.
#![allow(dead_code, reason = "each test program uses its own part")]

pub(crate) mod small;
pub(crate) mod truth;

use std::ops::Range;

use garlic_ann::{Config, Configuration as _, Rows};
use garlic_linalg::{random_stream, uniform_unit};

/// Stream of the random numbers here.
const STREAM: u64 = 3;

/// The default parameters, except for these.
pub(crate) fn config(settings: &[(&str, &str)]) -> Config {
    let mut config = Config::default();
    for (key, value) in settings {
        config.set(key, value).unwrap();
    }
    config
}

/// Identifiers that follow each other.
pub(crate) fn ids(range: Range<u64>) -> Vec<u64> {
    range.collect()
}

/// Values from 0 to 1, evenly distributed.
pub(crate) fn uniform(n: usize, dim: usize, seed: u64) -> Vec<f32> {
    let mut random = random_stream(seed, STREAM);
    (0..n * dim)
        .map(|_| uniform_unit(&mut random) as f32)
        .collect()
}

/// Values of a normal distribution with mean 0 and variance 1, by the sum of twelve uniform ones.
pub(crate) fn normal(n: usize, dim: usize, seed: u64) -> Vec<f64> {
    let mut random = random_stream(seed, STREAM);
    let mut sum = || (0..12).map(|_| uniform_unit(&mut random)).sum::<f64>() - 6.0;
    (0..n * dim).map(|_| sum()).collect()
}

/// Points near a curved sheet of four dimensions in `dim`, with noise: clustered and anisotropic, as data are.
pub(crate) fn sheet(n: usize, dim: usize, seed: u64) -> Vec<f32> {
    let mut random = random_stream(seed, STREAM);
    let mut mix = random_stream(11, STREAM);
    let waves: Vec<[f32; 4]> = (0..dim)
        .map(|_| std::array::from_fn(|_| 2.0 * uniform_unit(&mut mix) as f32 - 1.0))
        .collect();
    let mut values = Vec::with_capacity(n * dim);
    for _ in 0..n {
        let t: [f32; 4] = std::array::from_fn(|_| uniform_unit(&mut random) as f32 * 3.0);
        for wave in &waves {
            let phase: f32 = wave.iter().zip(&t).map(|(a, b)| a * b).sum();
            values.push(20.0 * phase.sin() + uniform_unit(&mut random) as f32);
        }
    }
    values
}

/// Points in boxes of half width `spread` about so many centres, which lie between -1 and 1 and are the same for any seed.
pub(crate) fn clumps(n: usize, dim: usize, centres: usize, spread: f32, seed: u64) -> Vec<f32> {
    let places = uniform(centres, dim, 17);
    let mut random = random_stream(seed, STREAM);
    let mut values = Vec::with_capacity(n * dim);
    for _ in 0..n {
        let place = (uniform_unit(&mut random) * centres as f64) as usize * dim;
        for centre in &places[place..place + dim] {
            let noise = uniform_unit(&mut random) as f32 - 0.5;
            values.push(2.0 * (centre - 0.5 + spread * noise));
        }
    }
    values
}

/// Vectors whose coordinates depend on eight hidden ones, plus noise.
pub(crate) fn hidden(n: usize, dim: usize, seed: u64) -> Vec<f32> {
    const HIDDEN: usize = 8;
    let mut random = random_stream(seed, STREAM);
    let mut value = || uniform_unit(&mut random) as f32 - 0.5;
    let ways: Vec<f32> = (0..HIDDEN * dim).map(|_| value()).collect();
    let mut values = Vec::with_capacity(n * dim);
    for _ in 0..n {
        let hidden: [f32; HIDDEN] = std::array::from_fn(|_| value());
        for column in 0..dim {
            let way = (0..HIDDEN).map(|h| hidden[h] * ways[h * dim + column]);
            values.push(way.sum::<f32>() + 0.1 * value());
        }
    }
    values
}

/// Whole numbers from 0 to 100.
pub(crate) fn lattice(n: usize, dim: usize) -> Vec<f32> {
    (0..n * dim)
        .map(|i| ((i * 37 + i / 7) % 101) as f32)
        .collect()
}

/// The values as whole numbers from 0 to 255, the least as 0 and the largest as 255.
pub(crate) fn to_bytes(mut values: Vec<f32>) -> Vec<f32> {
    let low = values.iter().copied().fold(f32::INFINITY, f32::min);
    let high = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for v in &mut values {
        *v = ((*v - low) / (high - low) * 255.0).round();
    }
    values
}

/// Vectors of dimension `dim`.
pub(crate) fn rows(values: &[f32], dim: usize) -> Rows<'_> {
    Rows::new(values, dim).unwrap()
}
