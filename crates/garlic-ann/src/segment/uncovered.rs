//! Points that lie where no cell was fitted.
//!
//! Cells, codes and calibration say nothing about such points. Every search with a recall target therefore reads all of
//! them until the targets were checked again. A check is due before there are many.

use std::collections::HashSet;
use std::sync::Arc;

/// Identifiers and vectors of uncovered points. Clones of an index share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct UncoveredPoints(Arc<List>);

#[derive(Clone, Debug, Default)]
struct List {
    ids: Vec<u64>,
    /// The embedded vectors, one after the other.
    vectors: Vec<f32>,
}

impl UncoveredPoints {
    pub(crate) fn len(&self) -> usize {
        self.0.ids.len()
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        (size_of_val(self.0.ids.as_slice()) + size_of_val(self.0.vectors.as_slice())) as u64
    }

    /// Identifiers and vectors of dimension `dim`.
    pub(crate) fn iter(&self, dim: usize) -> impl Iterator<Item = (u64, &[f32])> {
        let vectors = self.0.vectors.chunks_exact(dim.max(1));
        self.0.ids.iter().copied().zip(vectors)
    }

    /// Adds a point.
    pub(crate) fn push(&mut self, id: u64, vector: &[f32]) {
        let list = Arc::make_mut(&mut self.0);
        list.ids.push(id);
        list.vectors.extend_from_slice(vector);
    }

    /// Removes points, given the dimension of the vectors.
    pub(crate) fn remove(&mut self, gone: &HashSet<u64>, dim: usize) {
        if !self.0.ids.iter().any(|id| gone.contains(id)) {
            return;
        }
        let mut left = Self::default();
        for (id, vector) in self.iter(dim).filter(|(id, _)| !gone.contains(id)) {
            left.push(id, vector);
        }
        *self = left;
    }

    /// The points that are not in `others`.
    pub(crate) fn without(&self, others: &Self, dim: usize) -> Self {
        let mut left = self.clone();
        left.remove(&others.0.ids.iter().copied().collect(), dim);
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(uncovered: &UncoveredPoints) -> Vec<u64> {
        uncovered.iter(2).map(|(id, _)| id).collect()
    }

    #[test]
    fn points_come_and_go_and_copies_stay() {
        let mut all = UncoveredPoints::default();
        for id in 0..4 {
            all.push(id, &[id as f32, 1.0]);
        }
        let before = all.clone();
        all.remove(&HashSet::from([1, 7]), 2);
        assert_eq!(ids(&all), [0, 2, 3]);
        assert_eq!(all.iter(2).nth(1), Some((2, &[2.0, 1.0][..])));
        assert_eq!(ids(&before), [0, 1, 2, 3]);
        all.push(9, &[9.0, 9.0]);
        assert_eq!(ids(&all.without(&before, 2)), [9]);
        assert_eq!((all.len(), before.without(&before, 2).len()), (4, 0));
    }
}
