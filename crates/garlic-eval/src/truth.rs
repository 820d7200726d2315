//! What a search should have found: the true distances of every query.

use garlic_ann::{Hit, Metric};
use garlic_linalg::Rows;

use crate::error::{Error, Result};
use crate::metrics::recall;

/// True distances of the nearest neighbours of each query, ascending.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    metric: Metric,
    k: usize,
    distances: Vec<f32>,
    /// Identifiers of the neighbours, nearest first. Empty if distances tell what was found.
    neighbors: Vec<u64>,
}

impl Truth {
    /// Takes true distances as `metric` reports them (Euclidean ones are not squared), `k` a query, ascending in
    /// every row.
    pub fn new(metric: Metric, distances: Vec<f32>, k: usize) -> Result<Self> {
        if k == 0 || !distances.len().is_multiple_of(k) {
            return Err(Error::TruthShape {
                values: distances.len(),
                k,
            });
        }
        Ok(Self {
            metric,
            k,
            distances,
            neighbors: Vec::new(),
        })
    }

    /// Computes the distances of known true neighbours, `k` identifiers a query.
    ///
    /// Files store distances of their own precision (and some store squared ones); recomputing them as searches
    /// do keeps rounding out of the recall.
    pub fn from_neighbors(
        metric: Metric,
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
                distances.push(metric.distance(base.row(row), queries.row(i)));
            }
        }
        for row in distances.chunks_exact_mut(k) {
            row.sort_by(f32::total_cmp);
        }
        Ok(Self {
            metric,
            k,
            distances,
            neighbors: Vec::new(),
        })
    }

    /// The metric of the distances.
    pub fn metric(&self) -> Metric {
        self.metric
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
            metric: self.metric,
            k: self.k,
            distances,
            neighbors: match self.neighbors.is_empty() {
                true => Vec::new(),
                false => {
                    let rows = queries.iter().map(|&q| self.neighbors_of(q as usize));
                    rows.flatten().copied().collect()
                }
            },
        }
    }

    /// Counts what was found by identifiers, `k` a query, nearest first, and no longer by distances. That is for an
    /// index that rounds its vectors, because it reports the distances of the rounded ones. Another point at the same
    /// distance as the true k-th does not count then.
    pub fn by_identifier(mut self, neighbors: Vec<u64>) -> Result<Self> {
        if neighbors.len() != self.distances.len() {
            return Err(Error::TruthShape {
                values: neighbors.len(),
                k: self.k,
            });
        }
        self.neighbors = neighbors;
        Ok(self)
    }

    fn neighbors_of(&self, query: usize) -> &[u64] {
        &self.neighbors[query * self.k..(query + 1) * self.k]
    }

    /// Recall@k of the answer to a query.
    ///
    /// # Panics
    /// When `query` is not below [`Truth::len`].
    pub fn recall(&self, query: usize, hits: &[Hit], k: usize) -> f64 {
        let k = k.min(self.k);
        if self.neighbors.is_empty() || k == 0 {
            return recall(hits, self.row(query), k);
        }
        let sought = &self.neighbors_of(query)[..k];
        let found = hits.iter().take(k).filter(|hit| sought.contains(&hit.id));
        found.count() as f64 / k as f64
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
    fn identifiers_tell_what_was_found_where_distances_are_rounded() {
        let truth = Truth::new(Metric::Euclidean, vec![1.0, 2.0, 1.0, 2.0], 2).unwrap();
        let hit = |id, distance| Hit { id, distance };
        let hits = [hit(7, 1.001), hit(3, 2.001)];
        assert_eq!(truth.recall(0, &hits, 2), 0.5, "by distance");
        let truth = truth.by_identifier(vec![7, 3, 3, 9]).unwrap();
        assert_eq!(truth.recall(0, &hits, 2), 1.0);
        assert_eq!(truth.recall(0, &hits, 1), 1.0);
        assert_eq!(truth.recall(1, &hits, 1), 0.0);
        assert_eq!(truth.recall(1, &hits, 9), 0.5);
        assert_eq!(truth.select(&[1]).recall(0, &hits, 2), 0.5);
        assert!(truth.by_identifier(vec![1]).is_err());
    }

    #[test]
    fn distances_of_neighbours_are_recomputed_and_sorted() {
        let base = [0.0, 0.0, 3.0, 4.0, 6.0, 8.0];
        let base = Rows::new(&base, 2).unwrap();
        let query = [0.0, 0.0];
        let query = Rows::new(&query, 2).unwrap();
        let t = Truth::from_neighbors(Metric::Euclidean, base, query, &[2, 1], 2).unwrap();
        assert_eq!(t.row(0), [5.0, 10.0]);
        let ahead = [1.0, 0.0];
        let ahead = Rows::new(&ahead, 2).unwrap();
        let of = |metric| Truth::from_neighbors(metric, base, ahead, &[1, 2], 2).unwrap();
        assert_eq!(of(Metric::InnerProduct).row(0), [-6.0, -3.0]);
        let cosine = of(Metric::Cosine);
        assert!(cosine.row(0).iter().all(|d| (d - 0.4).abs() < 1e-6));
        assert_eq!(cosine.metric(), Metric::Cosine);
        assert!(t.covers(1, 3) && t.covers(2, 3) && !t.covers(3, 3) && t.covers(10, 2));
        assert!(matches!(
            Truth::from_neighbors(Metric::Euclidean, base, query, &[3], 1),
            Err(Error::TruthId { id: 3, points: 3 })
        ));
        assert!(matches!(
            Truth::from_neighbors(Metric::Euclidean, base, query, &[1, 2], 1),
            Err(Error::TruthRows { .. })
        ));
    }

    #[test]
    fn ragged_truth_is_an_error() {
        assert!(matches!(
            Truth::new(Metric::Euclidean, vec![1.0; 5], 2),
            Err(Error::TruthShape { values: 5, k: 2 })
        ));
        assert!(matches!(
            Truth::new(Metric::Euclidean, vec![], 0),
            Err(Error::TruthShape { .. })
        ));
    }
}
