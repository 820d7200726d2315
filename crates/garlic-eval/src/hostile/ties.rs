//! Rows with equal distances: duplicates, lattices and coarse values.

use super::Kind;
use super::stream::{SHAPE, Stream, rows, values};

const DIM: usize = 32;

pub(super) const KINDS: [Kind; 5] = [
    Kind {
        name: "duplicates",
        about: "100 distinct rows, each many times",
        dim: DIM,
        draw: |n, seed| duplicates(n, seed, 100, 1.0),
    },
    Kind {
        name: "half-duplicates",
        about: "half of the rows are copies of 100 rows, the others distinct",
        dim: DIM,
        draw: |n, seed| duplicates(n, seed, 100, 0.5),
    },
    Kind {
        name: "repeated-point",
        about: "half of the rows are one point, the others Gaussian",
        dim: DIM,
        draw: |n, seed| duplicates(n, seed, 1, 0.5),
    },
    Kind {
        name: "lattice",
        about: "a lattice of whole numbers from 0 to 7 in six dimensions",
        dim: 6,
        draw: |n, seed| values(n, 6, seed, |s| s.below(8) as f64),
    },
    Kind {
        name: "quantised",
        about: "normal values rounded to multiples of a half",
        dim: DIM,
        draw: |n, seed| values(n, DIM, seed, |s| (2.0 * s.normal()).round() / 2.0),
    },
];

/// Copies of `distinct` rows with the probability `share`, else Gaussian rows.
fn duplicates(n: usize, seed: u64, distinct: usize, share: f64) -> (Vec<f32>, usize) {
    let mut shape = Stream::new(seed, SHAPE);
    let originals: Vec<Vec<f64>> = (0..distinct).map(|_| shape.normals(DIM)).collect();
    rows(n, DIM, seed, |s, row| {
        let point = match s.unit() < share {
            true => originals[s.below(distinct)].clone(),
            false => s.normals(DIM),
        };
        row.iter_mut().zip(point).for_each(|(v, p)| *v = p as f32);
    })
}
