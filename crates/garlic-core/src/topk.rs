//! The best points of a query, and which points it has seen.

use std::collections::BinaryHeap;

#[cfg(test)]
use crate::query::Hit;

/// The best `k` points so far, worst on top.
#[derive(Debug, Default)]
pub struct TopK {
    k: usize,
    /// Whether a point may be offered twice.
    twice: bool,
    heap: BinaryHeap<Scored>,
}

/// Ordered by (squared distance, id).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// Squared distance inside the index.
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
    /// Forgets all; `k` are wanted of points each of which is offered once.
    #[inline]
    pub fn start(&mut self, k: usize) {
        self.start_for(k, false);
    }

    /// Forgets all; `k` are wanted of points some of which may be offered `twice`.
    #[inline]
    pub fn start_for(&mut self, k: usize, twice: bool) {
        (self.k, self.twice) = (k, twice);
        self.heap.clear();
    }

    /// The squared distance that a newcomer has to beat; infinite while there are fewer than `k`.
    #[inline]
    pub fn worst(&self) -> f32 {
        match self.heap.peek() {
            Some(worst) if self.heap.len() == self.k => worst.squared,
            _ => f32::INFINITY,
        }
    }

    /// Takes a point in if it is among the best, and says whether it has.
    #[inline]
    pub fn offer(&mut self, squared: f32, id: u64, position: u32) -> bool {
        let scored = Scored {
            squared,
            id,
            position,
        };
        if self.twice && self.heap.iter().any(|other| other.id == id) {
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

    /// The same for a point that may have been offered before.
    #[inline]
    pub fn offer_again(&mut self, squared: f32, id: u64, position: u32) {
        if !self.heap.iter().any(|other| other.id == id) {
            self.offer(squared, id, position);
        }
    }

    /// What is there so far, in no order.
    #[inline]
    pub fn found(&self) -> impl Iterator<Item = &Scored> {
        self.heap.iter()
    }

    /// The hits so far by (distance, id), Euclidean as everything inside.
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

/// Remembers which points a query has seen, without clearing a mark per point between queries.
#[derive(Debug, Default)]
pub struct VisitedSet {
    marks: Vec<u32>,
    round: u32,
}

impl VisitedSet {
    /// Forgets all, for a query of an index of `points` points.
    #[inline]
    pub fn start(&mut self, points: usize) {
        if self.marks.len() != points || self.round == u32::MAX {
            self.marks.clear();
            self.marks.resize(points, 0);
            self.round = 0;
        }
        self.round += 1;
    }

    /// Whether this is the first time in this query.
    #[inline]
    pub fn first(&mut self, position: u32) -> bool {
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
            assert!(seen.first(3) && !seen.first(3) && seen.first(0));
        }
    }
}
