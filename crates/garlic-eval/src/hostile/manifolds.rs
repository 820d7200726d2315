//! Rows of low dimension, as they are or inside many dimensions.

use super::Kind;
use super::stream::{SHAPE, Stream, rows, values};

/// Dimension of the rows on flat and curved manifolds.
const AROUND: usize = 128;

pub(super) const KINDS: [Kind; 9] = [
    Kind {
        name: "line",
        about: "one coordinate, uniform in [0, 1)",
        dim: 1,
        draw: |n, seed| values(n, 1, seed, Stream::unit),
    },
    Kind {
        name: "plane",
        about: "two coordinates, uniform in [0, 1)",
        dim: 2,
        draw: |n, seed| values(n, 2, seed, Stream::unit),
    },
    Kind {
        name: "space",
        about: "three coordinates, standard normal",
        dim: 3,
        draw: |n, seed| values(n, 3, seed, Stream::normal),
    },
    Kind {
        name: "curved",
        about: "a smooth nonlinear map of 3 latent coordinates into 64 dimensions",
        dim: 64,
        draw: curved,
    },
    Kind {
        name: "intrinsic-5",
        about: "a Gaussian of 5 dimensions in 128, with slight noise",
        dim: AROUND,
        draw: |n, seed| intrinsic(n, seed, 5),
    },
    Kind {
        name: "intrinsic-10",
        about: "a Gaussian of 10 dimensions in 128, with slight noise",
        dim: AROUND,
        draw: |n, seed| intrinsic(n, seed, 10),
    },
    Kind {
        name: "intrinsic-20",
        about: "a Gaussian of 20 dimensions in 128, with slight noise",
        dim: AROUND,
        draw: |n, seed| intrinsic(n, seed, 20),
    },
    Kind {
        name: "intrinsic-40",
        about: "a Gaussian of 40 dimensions in 128, with slight noise",
        dim: AROUND,
        draw: |n, seed| intrinsic(n, seed, 40),
    },
    Kind {
        name: "random-walks",
        about: "time series: sums of 128 normal steps",
        dim: AROUND,
        draw: |n, seed| {
            rows(n, AROUND, seed, |s, row| {
                let mut level = 0.0;
                for v in row {
                    level += s.normal();
                    *v = level as f32;
                }
            })
        },
    },
];

/// Sines of random linear maps, a roll in every coordinate.
fn curved(n: usize, seed: u64) -> (Vec<f32>, usize) {
    let mut shape = Stream::new(seed, SHAPE);
    let maps: Vec<(Vec<f64>, f64)> = (0..64)
        .map(|_| (shape.normals(3), shape.uniform(0.0, std::f64::consts::TAU)))
        .collect();
    rows(n, 64, seed, |s, row| {
        let latent: Vec<f64> = (0..3).map(|_| s.uniform(-2.0, 2.0)).collect();
        for (v, (map, phase)) in row.iter_mut().zip(&maps) {
            let along: f64 = map.iter().zip(&latent).map(|(m, t)| m * t).sum();
            *v = (along + phase).sin() as f32;
        }
    })
}

fn intrinsic(n: usize, seed: u64, dimensions: usize) -> (Vec<f32>, usize) {
    let mut shape = Stream::new(seed, SHAPE);
    let axes: Vec<Vec<f64>> = (0..dimensions).map(|_| shape.normals(AROUND)).collect();
    rows(n, AROUND, seed, |s, row| {
        let mut point: Vec<f64> = (0..AROUND).map(|_| 1e-3 * s.normal()).collect();
        for axis in &axes {
            let t = s.normal();
            point.iter_mut().zip(axis).for_each(|(p, a)| *p += t * a);
        }
        row.iter_mut().zip(point).for_each(|(v, p)| *v = p as f32);
    })
}
