//! Rows of whole numbers and sparse rows.

use super::Kind;
use super::stream::{Stream, rows, values};

/// Side of an image patch.
const SIDE: usize = 12;
/// Words of the vocabulary.
const WORDS: usize = 256;

pub(super) const KINDS: [Kind; 7] = [
    Kind {
        name: "zipf-counts",
        about: "whole numbers whose frequency falls as the square of the number",
        dim: 32,
        draw: |n, seed| values(n, 32, seed, |s| (1.0 / (1.0 - s.unit())).floor()),
    },
    Kind {
        name: "sparse-floats",
        about: "normal values, 2 % of the coordinates, the others 0",
        dim: 512,
        draw: |n, seed| {
            values(n, 512, seed, |s| match s.unit() < 0.02 {
                true => s.normal(),
                false => 0.0,
            })
        },
    },
    Kind {
        name: "bag-of-words",
        about: "word counts of short texts: Zipf words, half of them shifted by the topic",
        dim: WORDS,
        draw: bag_of_words,
    },
    Kind {
        name: "binary-64",
        about: "bits, each 1 with probability a half",
        dim: 64,
        draw: |n, seed| values(n, 64, seed, bit),
    },
    Kind {
        name: "binary-256",
        about: "bits, each 1 with probability a half, in more dimensions",
        dim: 256,
        draw: |n, seed| values(n, 256, seed, bit),
    },
    Kind {
        name: "one-hot",
        about: "one coordinate is 1, three more are small",
        dim: 128,
        draw: one_hot,
    },
    Kind {
        name: "bytes",
        about: "whole numbers from 0 to 255: smooth image patches of 12 by 12",
        dim: SIDE * SIDE,
        draw: bytes,
    },
];

fn bit(stream: &mut Stream) -> f64 {
    f64::from(u8::from(stream.unit() < 0.5))
}

fn bag_of_words(n: usize, seed: u64) -> (Vec<f32>, usize) {
    rows(n, WORDS, seed, |s, row| {
        let (length, topic) = (10 + s.below(60), s.below(12));
        for _ in 0..length {
            // A rank uniform in the logarithm follows Zipf's law.
            let rank = s.log_uniform(1.0, WORDS as f64 + 1.0) as usize - 1;
            let shift = if s.unit() < 0.5 { topic * 21 } else { 0 };
            row[(rank + shift) % WORDS] += 1.0;
        }
    })
}

fn one_hot(n: usize, seed: u64) -> (Vec<f32>, usize) {
    rows(n, 128, seed, |s, row| {
        for _ in 0..3 {
            row[s.below(128)] = s.uniform(0.0, 0.1) as f32;
        }
        row[s.below(128)] = 1.0;
    })
}

/// Four waves of random direction and phase around a random brightness.
fn bytes(n: usize, seed: u64) -> (Vec<f32>, usize) {
    rows(n, SIDE * SIDE, seed, |s, row| {
        let mut patch = vec![s.uniform(64.0, 192.0); SIDE * SIDE];
        for _ in 0..4 {
            let (fx, fy) = (0.3 * s.normal(), 0.3 * s.normal());
            let (phase, height) = (s.uniform(0.0, std::f64::consts::TAU), 30.0 * s.normal());
            for (i, p) in patch.iter_mut().enumerate() {
                let (x, y) = ((i % SIDE) as f64, (i / SIDE) as f64);
                *p += height * (fx * x + fy * y + phase).cos();
            }
        }
        for (v, p) in row.iter_mut().zip(patch) {
            *v = p.round().clamp(0.0, 255.0) as f32;
        }
    })
}
