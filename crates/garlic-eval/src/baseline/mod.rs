//! Plain methods to compare with, measured by the same code.

mod brute;
mod kmeans;

pub use brute::{BRUTE_FORCE, BruteForce, brute_force};
pub use kmeans::{KMEANS, KMEANS_FINE, KmeansIndex, KmeansOptions};

use std::collections::BinaryHeap;

use garlic_ann::Hit;

/// The `k` best of the hits pushed, ordered by (distance, id).
struct Best {
    k: usize,
    heap: BinaryHeap<Entry>,
}

/// Squared distance and identifier. Squared distances are not negative, so their bits order as they do.
type Entry = (u32, u64);

impl Best {
    fn new(k: usize) -> Self {
        Self {
            k,
            heap: BinaryHeap::with_capacity(k.min(1 << 16) + 1),
        }
    }

    fn push(&mut self, squared: f32, id: u64) {
        let entry = (squared.to_bits(), id);
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
                distance: f32::from_bits(bits).sqrt(),
            })
            .collect();
        // Different squares can share a root after rounding: the order is that of the distances.
        hits.sort_by(|a, b| a.distance.total_cmp(&b.distance).then(a.id.cmp(&b.id)));
        hits
    }
}
