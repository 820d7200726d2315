//! The nearest centre of every row.

use garlic_simd::l2_squared;
use rayon::prelude::*;

use crate::gemm::{Operand, gemm};
use crate::{Matrix, Rows};

/// Rows in one task.
const ROWS: usize = 256;

/// Centres in one product: with `ROWS` this keeps the block of scores in a second-level cache.
const CENTRES: usize = 512;

/// Below this many centres plain distances cost less than setting up a product.
const FEW: usize = 8;

/// Index of the nearest centre of every row, and the squared distance to it; ties go to the lower index.
///
/// The centres are ranked by `|c|^2 - 2 x.c` in matrix products; those within rounding of the best are compared
/// again by [`garlic_simd::l2_squared`], so the answer is the one plain distances would give. With no centre at
/// all every label is 0 and every distance infinite. Panics when the dimensions differ.
pub fn nearest_centres(rows: Rows<'_>, centres: Rows<'_>) -> (Vec<u32>, Vec<f32>) {
    assert_eq!(
        rows.dim(),
        centres.dim(),
        "rows of dimension {} against centres of dimension {}",
        rows.dim(),
        centres.dim()
    );
    let mut labels = vec![0u32; rows.len()];
    let mut distances = vec![f32::INFINITY; rows.len()];
    let shifted = (centres.len() >= FEW).then(|| Shifted::new(centres));
    labels
        .par_chunks_mut(ROWS)
        .zip(distances.par_chunks_mut(ROWS))
        .enumerate()
        .for_each(|(chunk, (labels, distances))| {
            let start = chunk * ROWS;
            let rows = rows.slice(start..start + labels.len());
            match &shifted {
                Some(shifted) => shifted.assign(rows, centres, labels, distances),
                None => assign_directly(rows, centres, labels, distances),
            }
        });
    (labels, distances)
}

fn assign_directly(rows: Rows<'_>, centres: Rows<'_>, labels: &mut [u32], distances: &mut [f32]) {
    for ((row, label), distance) in rows.iter().zip(labels).zip(distances) {
        for (j, centre) in centres.iter().enumerate() {
            let candidate = l2_squared(row, centre);
            if candidate < *distance {
                (*label, *distance) = (j as u32, candidate);
            }
        }
    }
}

/// Centres moved so that their mean is the origin: with the common offset gone, `|c|^2 - 2 x.c` loses far fewer
/// digits.
struct Shifted {
    origin: Vec<f32>,
    centres: Matrix,
    norms: Vec<f32>,
    largest_norm: f32,
}

impl Shifted {
    fn new(centres: Rows<'_>) -> Self {
        let origin: Vec<f32> = crate::pca::mean(centres)
            .iter()
            .map(|&m| m as f32)
            .collect();
        let mut moved = Matrix::zeros(centres.len(), centres.dim());
        for (i, centre) in centres.iter().enumerate() {
            subtract(moved.row_mut(i), centre, &origin);
        }
        let norms: Vec<f32> = moved.as_rows().iter().map(squared_norm).collect();
        let largest_norm = norms.iter().copied().fold(0.0, f32::max);
        Self {
            origin,
            centres: moved,
            norms,
            largest_norm,
        }
    }

    fn assign(&self, rows: Rows<'_>, centres: Rows<'_>, labels: &mut [u32], distances: &mut [f32]) {
        let d = rows.dim();
        let mut moved = Matrix::zeros(rows.len(), d);
        for (i, row) in rows.iter().enumerate() {
            subtract(moved.row_mut(i), row, &self.origin);
        }
        let slack: Vec<f32> = moved
            .as_rows()
            .iter()
            .map(|row| 8.0 * f32::EPSILON * (squared_norm(row) + self.largest_norm))
            .collect();
        let mut best = vec![f32::INFINITY; rows.len()];
        let mut scores = vec![0.0; rows.len() * CENTRES.min(self.norms.len())];
        for first in (0..self.norms.len()).step_by(CENTRES) {
            let norms = &self.norms[first..self.norms.len().min(first + CENTRES)];
            let width = norms.len();
            let block = self.centres.as_rows().slice(first..first + width);
            gemm(
                &mut scores,
                Operand::new(moved.as_slice(), rows.len(), d),
                Operand::transposed(block.data(), width, d),
                -2.0,
                0.0,
            );
            for (i, scores) in scores.chunks_exact_mut(width).take(rows.len()).enumerate() {
                best[i] = add_and_lowest(scores, norms, best[i]);
                each_upto(scores, best[i] + slack[i], |j| {
                    let exact = l2_squared(rows.row(i), centres.row(first + j));
                    // Blocks and columns come in ascending order: a strict comparison keeps the lower index.
                    if exact < distances[i] {
                        (labels[i], distances[i]) = ((first + j) as u32, exact);
                    }
                });
            }
        }
    }
}

/// Numbers side by side: loops over as many become vector instructions.
const LANES: usize = 16;

/// Adds `norms` to `scores`; returns the lowest sum, or `lowest` where that is lower.
fn add_and_lowest(scores: &mut [f32], norms: &[f32], lowest: f32) -> f32 {
    let lower = |a: f32, b: f32| if b < a { b } else { a };
    let mut lanes = [lowest; LANES];
    let (chunks, rest) = scores.as_chunks_mut::<LANES>();
    let (norm_chunks, norm_rest) = norms.as_chunks::<LANES>();
    for (scores, norms) in chunks.iter_mut().zip(norm_chunks) {
        for lane in 0..LANES {
            scores[lane] += norms[lane];
            lanes[lane] = lower(lanes[lane], scores[lane]);
        }
    }
    for ((score, norm), lane) in rest.iter_mut().zip(norm_rest).zip(&mut lanes) {
        *score += norm;
        *lane = lower(*lane, *score);
    }
    lanes.into_iter().fold(lowest, lower)
}

/// Calls `found` with the places of all scores up to `limit`, in order.
fn each_upto(scores: &[f32], limit: f32, mut found: impl FnMut(usize)) {
    for (chunk, scores) in scores.chunks(LANES).enumerate() {
        // Few chunks have any.
        let any = scores
            .iter()
            .fold(false, |any, score| any | (*score <= limit));
        if any {
            for (lane, _) in (0..).zip(scores).filter(|(_, score)| **score <= limit) {
                found(chunk * LANES + lane);
            }
        }
    }
}

fn subtract(out: &mut [f32], a: &[f32], b: &[f32]) {
    for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
        *o = x - y;
    }
}

fn squared_norm(row: &[f32]) -> f32 {
    garlic_simd::dot(row, row)
}
