//! Plain methods to compare with, measured by the same code.

mod brute;
mod kmeans;

pub use brute::{BRUTE_FORCE, BruteForce, brute_force, brute_force_by};
pub use kmeans::{KMEANS, KMEANS_FINE, KmeansIndex, KmeansOptions};

use std::collections::BinaryHeap;

use garlic_ann::{Hit, Metric};
use garlic_linalg::{Matrix, Rows};
use garlic_simd::l2_squared;

use crate::error::Result;

/// The rows as distances of `metric` are taken from; a copy.
fn scaled(metric: Metric, rows: Rows<'_>) -> Result<Matrix> {
    let mut values = Vec::with_capacity(rows.data().len());
    for row in rows.iter() {
        metric.scale(row, &mut values);
    }
    Ok(Matrix::from_vec(values, rows.dim())?)
}

/// What orders vectors as their distances do, and costs no more than it must.
fn measure(metric: Metric, vector: &[f32], query: &[f32]) -> f32 {
    match metric {
        Metric::InnerProduct => metric.distance_scaled(vector, query),
        Metric::Euclidean | Metric::Cosine => l2_squared(vector, query),
    }
}

/// The `k` best of the hits pushed, ordered by (distance, id).
struct Best {
    metric: Metric,
    k: usize,
    heap: BinaryHeap<Entry>,
}

/// What was measured, as bits that order as it does, and identifier.
type Entry = (u32, u64);

impl Best {
    fn new(metric: Metric, k: usize) -> Self {
        Self {
            metric,
            k,
            heap: BinaryHeap::with_capacity(k.min(1 << 16) + 1),
        }
    }

    fn push(&mut self, measured: f32, id: u64) {
        let entry = (to_ordered(measured), id);
        if self.heap.len() < self.k {
            self.heap.push(entry);
        } else if self.heap.peek().is_some_and(|worst| entry < *worst) {
            self.heap.pop();
            self.heap.push(entry);
        }
    }

    fn take(&mut self) -> Vec<Hit> {
        let mut entries = std::mem::take(&mut self.heap).into_vec();
        entries.sort_unstable();
        let mut hits: Vec<Hit> = entries
            .into_iter()
            .map(|(bits, id)| Hit {
                id,
                distance: match self.metric {
                    Metric::Euclidean => from_ordered(bits).sqrt(),
                    Metric::Cosine => 0.5 * from_ordered(bits),
                    Metric::InnerProduct => from_ordered(bits),
                },
            })
            .collect();
        // Different squares can share a root after rounding: the order is that of the distances.
        hits.sort_by(|a, b| a.distance.total_cmp(&b.distance).then(a.id.cmp(&b.id)));
        hits
    }
}

/// Bits that order as the numbers do, negative ones too.
fn to_ordered(value: f32) -> u32 {
    let bits = value.to_bits();
    if value.is_sign_negative() {
        !bits
    } else {
        bits | SIGN
    }
}

fn from_ordered(bits: u32) -> f32 {
    f32::from_bits(if bits & SIGN == 0 { !bits } else { bits ^ SIGN })
}

const SIGN: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_order_as_numbers_do() {
        let values = [
            -1e30,
            -2.0,
            -1.0,
            -1e-40,
            0.0,
            1e-40,
            0.5,
            3.0,
            f32::INFINITY,
        ];
        let bits = values.map(to_ordered);
        assert!(bits.is_sorted());
        assert_eq!(bits.map(from_ordered), values);
    }
}
