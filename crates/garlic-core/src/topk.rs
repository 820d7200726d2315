//! The k best points of a query, and the set of visited points.

use std::collections::BinaryHeap;

#[cfg(test)]
use crate::query::Hit;

/// A heap of the `k` best points so far, worst on top.
#[derive(Debug, Default)]
pub struct TopK {
    k: usize,
    /// Whether a point may be offered twice.
    may_repeat: bool,
    heap: BinaryHeap<Scored>,
}

/// A point with its squared distance, ordered by (squared distance, id).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// Squared distance in the embedding.
    pub squared: f32,
    /// Identifier.
    pub id: u64,
    /// Position in the index.
    pub position: u32,
}

impl Eq for Scored {}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.squared
            .total_cmp(&other.squared)
            .then(self.id.cmp(&other.id))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl TopK {
    /// Clears the heap for the `k` best points. Each point is offered once.
    #[inline]
    pub fn start(&mut self, k: usize) {
        self.start_for(k, false);
    }

    /// Clears the heap for the `k` best points. A point may be offered twice if `may_repeat`.
    #[inline]
    pub fn start_for(&mut self, k: usize, may_repeat: bool) {
        (self.k, self.may_repeat) = (k, may_repeat);
        self.heap.clear();
    }

    /// The squared distance that a new point has to beat. Infinite while there are fewer than `k`.
    #[inline]
    pub fn worst(&self) -> f32 {
        match self.heap.peek() {
            Some(worst) if self.heap.len() == self.k => worst.squared,
            _ => f32::INFINITY,
        }
    }

    /// Inserts a point if it is among the best. Returns whether it was inserted.
    #[inline]
    pub fn offer(&mut self, squared: f32, id: u64, position: u32) -> bool {
        let scored = Scored {
            squared,
            id,
            position,
        };
        if self.may_repeat && self.heap.iter().any(|other| other.id == id) {
            return false;
        }
        if self.heap.len() < self.k {
            self.heap.push(scored);
            return true;
        }
        match self.heap.peek_mut() {
            Some(mut worst) if scored < *worst => {
                *worst = scored;
                true
            }
            _ => false,
        }
    }

    /// [`TopK::offer`] for a point that may be present already.
    #[inline]
    pub fn offer_distinct(&mut self, squared: f32, id: u64, position: u32) {
        if !self.heap.iter().any(|other| other.id == id) {
            self.offer(squared, id, position);
        }
    }

    /// The points so far, unordered.
    #[inline]
    pub fn found(&self) -> impl Iterator<Item = &Scored> {
        self.heap.iter()
    }

    /// The hits so far, ordered by (distance, id).
    #[cfg(test)]
    fn hits(&self) -> Vec<Hit> {
        let mut hits: Vec<Hit> = self
            .heap
            .iter()
            .map(|s| Hit {
                id: s.id,
                distance: s.squared.sqrt(),
            })
            .collect();
        hits.sort_unstable_by(|a, b| a.distance.total_cmp(&b.distance).then(a.id.cmp(&b.id)));
        hits
    }
}

/// The set of points that a query has visited. Clearing it does not touch every mark.
#[derive(Debug, Default)]
pub struct VisitedSet {
    marks: Vec<u32>,
    round: u32,
}

impl VisitedSet {
    /// Clears the set for an index of `points` points.
    #[inline]
    pub fn start(&mut self, points: usize) {
        if self.marks.len() != points || self.round == u32::MAX {
            self.marks.clear();
            self.marks.resize(points, 0);
            self.round = 0;
        }
        self.round += 1;
    }

    /// Inserts a point. Returns whether it is new.
    #[inline]
    pub fn insert(&mut self, position: u32) -> bool {
        let mark = &mut self.marks[position as usize];
        let new = *mark != self.round;
        *mark = self.round;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_smallest_by_distance_then_id() {
        let mut best = TopK::default();
        best.start(3);
        for (squared, id) in [(4.0, 9), (1.0, 5), (4.0, 2), (9.0, 1), (4.0, 7)] {
            best.offer(squared, id, 0);
        }
        let hits: Vec<(u64, f32)> = best.hits().iter().map(|h| (h.id, h.distance)).collect();
        assert_eq!(hits, [(5, 1.0), (2, 2.0), (7, 2.0)]);
        best.start(1);
        assert!(best.hits().is_empty(), "a new query starts with nothing");
    }

    #[test]
    fn a_point_is_new_once_per_query() {
        let mut seen = VisitedSet::default();
        for _ in 0..2 {
            seen.start(4);
            assert!(seen.insert(3) && !seen.insert(3) && seen.insert(0));
        }
    }
}
