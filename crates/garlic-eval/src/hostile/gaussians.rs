//! Rows of normal and uniform values, with outliers, offsets and scales.

use super::Kind;
use super::stream::{SHAPE, Stream, normalise, rows, values};

const DIM: usize = 64;

pub(super) const KINDS: [Kind; 16] = [
    Kind {
        name: "gaussian-64",
        about: "standard normal values",
        dim: DIM,
        draw: |n, seed| values(n, DIM, seed, Stream::normal),
    },
    Kind {
        name: "gaussian-8",
        about: "standard normal values in few dimensions",
        dim: 8,
        draw: |n, seed| values(n, 8, seed, Stream::normal),
    },
    Kind {
        name: "uniform",
        about: "values uniform in [0, 1)",
        dim: 32,
        draw: |n, seed| values(n, 32, seed, Stream::unit),
    },
    Kind {
        name: "two-gaussians",
        about: "two Gaussians whose means are 10,000 apart",
        dim: DIM,
        draw: two_gaussians,
    },
    Kind {
        name: "outliers-10",
        about: "Gaussian; the first 20 rows are multiplied by 10",
        dim: DIM,
        draw: |n, seed| outliers(n, seed, 20, 10.0),
    },
    Kind {
        name: "outliers-100",
        about: "Gaussian; the first 20 rows are multiplied by 100",
        dim: DIM,
        draw: |n, seed| outliers(n, seed, 20, 100.0),
    },
    Kind {
        name: "outliers-1e4",
        about: "Gaussian; the first 20 rows are multiplied by 10,000",
        dim: DIM,
        draw: |n, seed| outliers(n, seed, 20, 1e4),
    },
    Kind {
        name: "outlier-1e9",
        about: "Gaussian; the first row is multiplied by a thousand million",
        dim: DIM,
        draw: |n, seed| outliers(n, seed, 1, 1e9),
    },
    Kind {
        name: "offset",
        about: "standard normal values plus 1,000,000",
        dim: DIM,
        draw: |n, seed| values(n, DIM, seed, |s| 1e6 + s.normal()),
    },
    Kind {
        name: "offset-scaled",
        about: "each coordinate with an offset up to 10,000 and a scale from 0.01 to 100",
        dim: DIM,
        draw: offset_scaled,
    },
    Kind {
        name: "anisotropic",
        about: "standard deviations from 0.001 to 1,000 over the coordinates",
        dim: DIM,
        draw: anisotropic,
    },
    Kind {
        name: "tiny",
        about: "normal values times 1e-10",
        dim: DIM,
        draw: |n, seed| values(n, DIM, seed, |s| 1e-10 * s.normal()),
    },
    Kind {
        name: "constant-coordinates",
        about: "half of the coordinates are the same in every row",
        dim: DIM,
        draw: constant_coordinates,
    },
    Kind {
        name: "sphere",
        about: "uniform on the surface of the unit sphere",
        dim: 32,
        draw: |n, seed| {
            rows(n, 32, seed, |s, row| {
                row.iter_mut().for_each(|v| *v = s.normal() as f32);
                normalise(row);
            })
        },
    },
    Kind {
        name: "bulk-and-noise",
        about: "a Gaussian of standard deviation 0.1; every tenth row is uniform in a cube of side 10",
        dim: 32,
        draw: bulk_and_noise,
    },
    Kind {
        name: "far-group",
        about: "Gaussian; one row in a hundred lies 1,000 away along the first axis",
        dim: DIM,
        draw: far_group,
    },
];

fn two_gaussians(n: usize, seed: u64) -> (Vec<f32>, usize) {
    rows(n, DIM, seed, |s, row| {
        let side = if s.unit() < 0.5 { 0.0 } else { 1e4 };
        row.iter_mut().for_each(|v| *v = s.normal() as f32);
        row[0] += side;
    })
}

fn outliers(n: usize, seed: u64, count: usize, factor: f32) -> (Vec<f32>, usize) {
    let (mut data, dim) = values(n, DIM, seed, Stream::normal);
    let first = count.min(n) * dim;
    data[..first].iter_mut().for_each(|v| *v *= factor);
    (data, dim)
}

fn offset_scaled(n: usize, seed: u64) -> (Vec<f32>, usize) {
    let mut shape = Stream::new(seed, SHAPE);
    let offsets: Vec<f64> = (0..DIM).map(|_| shape.uniform(-1e4, 1e4)).collect();
    let scales: Vec<f64> = (0..DIM).map(|_| shape.log_uniform(1e-2, 1e2)).collect();
    rows(n, DIM, seed, |s, row| {
        for ((v, offset), scale) in row.iter_mut().zip(&offsets).zip(&scales) {
            *v = (offset + scale * s.normal()) as f32;
        }
    })
}

fn anisotropic(n: usize, seed: u64) -> (Vec<f32>, usize) {
    rows(n, DIM, seed, |s, row| {
        for (i, v) in row.iter_mut().enumerate() {
            let scale = 10f64.powf(-3.0 + 6.0 * i as f64 / (DIM - 1) as f64);
            *v = (scale * s.normal()) as f32;
        }
    })
}

fn constant_coordinates(n: usize, seed: u64) -> (Vec<f32>, usize) {
    let constants = Stream::new(seed, SHAPE).normals(DIM);
    rows(n, DIM, seed, |s, row| {
        for (i, (v, constant)) in row.iter_mut().zip(&constants).enumerate() {
            let value = if i % 2 == 0 { *constant } else { s.normal() };
            *v = value as f32;
        }
    })
}

fn bulk_and_noise(n: usize, seed: u64) -> (Vec<f32>, usize) {
    rows(n, 32, seed, |s, row| {
        let is_noise = s.unit() < 0.1;
        for v in row {
            let value = if is_noise {
                s.uniform(-5.0, 5.0)
            } else {
                0.1 * s.normal()
            };
            *v = value as f32;
        }
    })
}

fn far_group(n: usize, seed: u64) -> (Vec<f32>, usize) {
    rows(n, DIM, seed, |s, row| {
        let shift = if s.unit() < 0.01 { 1e3 } else { 0.0 };
        row.iter_mut().for_each(|v| *v = s.normal() as f32);
        row[0] += shift;
    })
}
