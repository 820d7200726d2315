//! Points from places that no cell was fitted to.
//!
//! Neither cells nor codes nor the calibration know anything of them, so every search that has a recall to keep reads all
//! of them, until targets have been checked with them. There are few: a check is due before they are many.

use std::collections::HashSet;
use std::sync::Arc;

/// Identifiers and vectors of such points; copies of an index share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct UncoveredPoints(Arc<List>);

#[derive(Clone, Debug, Default)]
struct List {
    ids: Vec<u64>,
    /// The vectors as they are stored, embedded, one after the other.
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

    /// Takes a point in.
    pub(crate) fn push(&mut self, id: u64, vector: &[f32]) {
        let list = Arc::make_mut(&mut self.0);
        list.ids.push(id);
        list.vectors.extend_from_slice(vector);
    }

    /// Lets points go, of vectors of dimension `dim`.
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

    /// Those that are not among `others`.
    pub(crate) fn but(&self, others: &Self, dim: usize) -> Self {
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
        assert_eq!(ids(&all.but(&before, 2)), [9]);
        assert_eq!((all.len(), before.but(&before, 2).len()), (4, 0));
    }
}
