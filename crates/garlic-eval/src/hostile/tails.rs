//! Rows whose values or lengths have heavy tails.

use super::Kind;
use super::stream::{Stream, rows, values};

pub(super) const KINDS: [Kind; 6] = [
    Kind {
        name: "log-normal",
        about: "log-normal values of sigma 3",
        dim: 64,
        draw: |n, seed| values(n, 64, seed, |s| (3.0 * s.normal()).exp()),
    },
    Kind {
        name: "log-normal-lengths",
        about: "Gaussian directions with log-normal lengths of sigma 2",
        dim: 64,
        draw: |n, seed| {
            rows(n, 64, seed, |s, row| {
                let length = (2.0 * s.normal()).exp();
                row.iter_mut()
                    .for_each(|v| *v = (length * s.normal()) as f32);
            })
        },
    },
    Kind {
        name: "student-32",
        about: "Student's t with 1.5 degrees of freedom",
        dim: 32,
        draw: |n, seed| values(n, 32, seed, |s| s.student(1.5)),
    },
    Kind {
        name: "student-128",
        about: "Student's t with 1.5 degrees of freedom in more dimensions",
        dim: 128,
        draw: |n, seed| values(n, 128, seed, |s| s.student(1.5)),
    },
    Kind {
        name: "cauchy",
        about: "Cauchy values",
        dim: 32,
        draw: |n, seed| values(n, 32, seed, |s| s.student(1.0)),
    },
    Kind {
        name: "student-lengths",
        about: "Gaussian directions, one Student factor of 1 degree of freedom a row",
        dim: 48,
        draw: student_lengths,
    },
];

fn student_lengths(n: usize, seed: u64) -> (Vec<f32>, usize) {
    rows(n, 48, seed, |s: &mut Stream, row| {
        let factor = s.student(1.0);
        row.iter_mut()
            .for_each(|v| *v = (factor * s.normal()) as f32);
    })
}
