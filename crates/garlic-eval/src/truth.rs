//! What a search should have found: the true distances of every query.

use garlic_linalg::Rows;
use garlic_simd::l2_squared;

use crate::error::{Error, Result};

/// True distances of the nearest neighbours of each query, ascending.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    k: usize,
    distances: Vec<f32>,
}

impl Truth {
    /// Takes true Euclidean distances (not squared), `k` a query, ascending in every row.
    pub fn new(distances: Vec<f32>, k: usize) -> Result<Self> {
        if k == 0 || !distances.len().is_multiple_of(k) {
            return Err(Error::TruthShape {
                values: distances.len(),
                k,
            });
        }
        Ok(Self { k, distances })
    }

    /// Computes the distances of known true neighbours, `k` identifiers a query.
    ///
    /// Files store distances of their own precision (and some store squared ones); recomputing them with the
    /// kernel that searches use keeps rounding out of the recall.
    pub fn from_neighbors(
        base: Rows<'_>,
        queries: Rows<'_>,
        neighbors: &[u64],
        k: usize,
    ) -> Result<Self> {
        if k == 0 || !neighbors.len().is_multiple_of(k) {
            return Err(Error::TruthShape {
                values: neighbors.len(),
                k,
            });
        }
        if neighbors.len() / k != queries.len() {
            return Err(Error::TruthRows {
                expected: queries.len(),
                found: neighbors.len() / k,
            });
        }
        if base.dim() != queries.dim() {
            return Err(Error::Dimension {
                what: "the queries",
                expected: base.dim(),
                found: queries.dim(),
            });
        }
        let mut distances = Vec::with_capacity(neighbors.len());
        for (i, ids) in neighbors.chunks_exact(k).enumerate() {
            for &id in ids {
                let row =
                    usize::try_from(id)
                        .ok()
                        .filter(|&r| r < base.len())
                        .ok_or(Error::TruthId {
                            id,
                            points: base.len(),
                        })?;
                distances.push(l2_squared(base.row(row), queries.row(i)).sqrt());
            }
        }
        for row in distances.chunks_exact_mut(k) {
            row.sort_by(f32::total_cmp);
        }
        Ok(Self { k, distances })
    }

    /// Number of queries.
    pub fn len(&self) -> usize {
        self.distances.len() / self.k
    }

    /// Whether there is no query.
    pub fn is_empty(&self) -> bool {
        self.distances.is_empty()
    }

    /// Neighbours known of each query.
    pub fn k(&self) -> usize {
        self.k
    }

    /// True distances of one query, ascending.
    ///
    /// # Panics
    /// When `query` is not below [`Truth::len`].
    pub fn row(&self, query: usize) -> &[f32] {
        &self.distances[query * self.k..(query + 1) * self.k]
    }

    /// The truth of some of the queries.
    ///
    /// # Panics
    /// When one of `queries` is not below [`Truth::len`].
    pub fn select(&self, queries: &[u32]) -> Self {
        let distances = queries
            .iter()
            .flat_map(|&q| self.row(q as usize))
            .copied()
            .collect();
        Self {
            k: self.k,
            distances,
        }
    }

    /// Whether Recall@`k` is defined over `points` points: `k` neighbours are known, or all there are.
    pub fn covers(&self, k: usize, points: usize) -> bool {
        self.k >= k.min(points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_of_neighbours_are_recomputed_and_sorted() {
        let base = [0.0, 0.0, 3.0, 4.0, 6.0, 8.0];
        let base = Rows::new(&base, 2).unwrap();
        let query = [0.0, 0.0];
        let query = Rows::new(&query, 2).unwrap();
        let t = Truth::from_neighbors(base, query, &[2, 1], 2).unwrap();
        assert_eq!(t.row(0), [5.0, 10.0]);
        assert!(t.covers(1, 3) && t.covers(2, 3) && !t.covers(3, 3) && t.covers(10, 2));
        assert!(matches!(
            Truth::from_neighbors(base, query, &[3], 1),
            Err(Error::TruthId { id: 3, points: 3 })
        ));
        assert!(matches!(
            Truth::from_neighbors(base, query, &[1, 2], 1),
            Err(Error::TruthRows { .. })
        ));
    }

    #[test]
    fn ragged_truth_is_an_error() {
        assert!(matches!(
            Truth::new(vec![1.0; 5], 2),
            Err(Error::TruthShape { values: 5, k: 2 })
        ));
        assert!(matches!(
            Truth::new(vec![], 0),
            Err(Error::TruthShape { .. })
        ));
    }
}
