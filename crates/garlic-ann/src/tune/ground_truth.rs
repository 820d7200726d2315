//! Ground truth: the true neighbours of calibration queries, by brute force.
//!
//! Products of matrices estimate all distances, with a bound of their rounding error. Only the points that may be
//! among the nearest by this bound are compared exactly, so the result is that of comparing all points.

use rayon::prelude::*;

use super::measure::{Query, RankingDistance};
use crate::segment::Snapshot;
use garlic_core::{Cancel, Result};
use garlic_linalg::{Operand, gemm};

/// Number of vectors per block. Their distances to all queries of a task are computed while they are in cache.
const BLOCK_VECTORS: usize = 512;
/// Number of queries per task.
const QUERIES_PER_TASK: usize = 128;
/// Number of neighbours that are kept beyond those that are needed.
const SPARE_NEIGHBOURS: usize = 32;
/// Number of candidates beyond those that are needed before a list is shortened.
const SPARE_CANDIDATES: usize = 64;

/// Fills in the distances and positions of the true neighbours of queries. There must be more points than the largest
/// k. Runs in the current rayon pool.
pub(super) fn ground_truth(
    snapshot: &Snapshot<'_>,
    mut queries: Vec<Query>,
    ks: &[usize],
    cancel: &Cancel,
) -> Result<Vec<Query>> {
    let points: Vec<u32> = match snapshot.index.spills() {
        true => snapshot.index.first_positions(),
        false => snapshot.admitted().collect(),
    };
    let most = ks.iter().copied().max().unwrap_or(1) + SPARE_NEIGHBOURS;
    let most = most.min(points.len().saturating_sub(1)).max(1);
    queries
        .par_chunks_mut(QUERIES_PER_TASK)
        .try_for_each(|queries| -> Result<()> {
            let candidates = compare(snapshot, &points, queries, most, cancel)?;
            for (query, list) in queries.iter_mut().zip(candidates) {
                set_neighbours(snapshot, query, &list, ks, most);
            }
            Ok(())
        })?;
    Ok(queries)
}

/// The same queries if some points, which are given in order, were not there.
pub(super) fn leave_out(
    snapshot: &Snapshot<'_>,
    queries: &[Query],
    ks: &[usize],
    missing: &[u32],
) -> Vec<Query> {
    let leave_out = |query: &Query| {
        let mut other = Query {
            position: query.position,
            ..Query::given(&query.vector)
        };
        let left = query.neighbours.iter().copied();
        let left: Vec<u32> = left
            .filter(|position| missing.binary_search(position).is_err())
            .collect();
        set_neighbours(snapshot, &mut other, &left, ks, left.len());
        other
    };
    queries.par_iter().map(leave_out).collect()
}

/// Compares some candidates exactly and keeps the nearest.
pub(super) fn set_neighbours(
    snapshot: &Snapshot<'_>,
    query: &mut Query,
    candidates: &[u32],
    ks: &[usize],
    most: usize,
) {
    let mut bytes = Vec::new();
    let prepared = (snapshot.index.segment.vectors).prepare(&query.vector, &mut bytes);
    let mut ranking = RankingDistance::new(*snapshot);
    let mut list: Vec<(f32, u32, f32)> = candidates
        .iter()
        .map(|p| {
            let squared = snapshot.distance(*p, &prepared);
            (ranking.of(&query.vector, *p, squared), *p, squared)
        })
        .collect();
    list.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    list.truncate(most);
    // If so many are left out that fewer than k are known, the last one stands for the k-th.
    let at = |k: &usize| list.get(k - 1).or(list.last()).copied();
    let radius = |k: &usize| at(k).map_or((f32::INFINITY, f32::INFINITY), |(r, _, s)| (r, s));
    (query.ranking_radii, query.radii) = ks.iter().map(radius).unzip();
    query.farthest = list.last().map_or(f32::INFINITY, |(.., squared)| *squared);
    query.neighbours = list.into_iter().map(|(_, position, _)| position).collect();
}

/// Points that may be among the nearest of a query.
struct Candidates {
    most: usize,
    /// The list is shortened when it has this length.
    full: usize,
    /// Lower and upper limits of distances, with positions.
    list: Vec<(f32, f32, u32)>,
    /// A point with a larger lower limit is not among the nearest.
    limit: f32,
}

impl Candidates {
    fn new(most: usize) -> Self {
        Self {
            most,
            full: 2 * most + SPARE_CANDIDATES,
            list: Vec::new(),
            limit: f32::INFINITY,
        }
    }

    fn positions(self) -> Vec<u32> {
        self.list.into_iter().map(|(.., p)| p).collect()
    }

    fn offer(&mut self, low: f32, high: f32, position: u32) {
        self.list.push((low, high, position));
        if self.list.len() >= self.full {
            let by_high = |a: &(f32, f32, u32), b: &(f32, f32, u32)| a.1.total_cmp(&b.1);
            let (_, last, _) = self.list.select_nth_unstable_by(self.most - 1, by_high);
            // A damaged file may hold values that are not numbers. They limit nothing and stay candidates.
            self.limit = if last.1.is_nan() {
                f32::INFINITY
            } else {
                last.1
            };
            self.list
                .retain(|(low, ..)| low.is_nan() || *low <= self.limit);
            // Many points may be equally near.
            self.full = (2 * self.list.len()).max(2 * self.most + SPARE_CANDIDATES);
        }
    }
}

/// Points that may be among the nearest of each query, by products of matrices.
fn compare(
    snapshot: &Snapshot<'_>,
    points: &[u32],
    queries: &[Query],
    most: usize,
    cancel: &Cancel,
) -> Result<Vec<Vec<u32>>> {
    let index = snapshot.index;
    let by_product = index.embedding.reads_vectors();
    let dim = match by_product {
        true => index.embedding.outer_dim(index.transform.dim()),
        false => index.transform.dim(),
    };
    // Distances from the mean lose fewer digits. Inner products do not allow a shift.
    let shift = |vector: &[f32], out: &mut Vec<f32>| match by_product {
        true => out.extend_from_slice(&vector[..dim]),
        false => out.extend(vector.iter().zip(&index.transform.mean).map(|(v, m)| v - m)),
    };
    let squares = |rows: &[f32], out: &mut Vec<f32>| {
        out.clear();
        out.extend(rows.chunks_exact(dim).map(|row| garlic_simd::dot(row, row)));
    };
    let mut asked = Vec::with_capacity(queries.len() * dim);
    for query in queries {
        shift(&query.vector, &mut asked);
    }
    let (mut asked_squares, mut stored_squares) = (Vec::new(), Vec::new());
    squares(&asked, &mut asked_squares);
    // Bounds the rounding of products, squares and exact distances, relative to the squared sum of lengths.
    let rounding = 2.0 * (dim + 16) as f32 * f32::EPSILON;
    let mut found: Vec<Candidates> = queries.iter().map(|_| Candidates::new(most)).collect();
    let (mut stored, mut vector) = (Vec::new(), Vec::new());
    let mut products = vec![0.0; queries.len() * BLOCK_VECTORS];
    for block in points.chunks(BLOCK_VECTORS) {
        cancel.check()?;
        stored.clear();
        for position in block {
            vector.clear();
            vector.resize(index.transform.dim(), 0.0);
            if let Some(point) = snapshot.point(*position) {
                point.read(index.transform.dim(), &mut vector);
            }
            shift(&vector, &mut stored);
        }
        squares(&stored, &mut stored_squares);
        gemm(
            &mut products,
            Operand::new(&asked, queries.len(), dim),
            Operand::transposed(&stored, block.len(), dim),
            1.0,
            0.0,
        );
        let rows = products.chunks_exact(block.len());
        for (number, (found, products)) in found.iter_mut().zip(rows).enumerate() {
            let a = asked_squares[number];
            for (at, product) in products.iter().enumerate() {
                let b = stored_squares[at];
                let estimate = match by_product {
                    true => -product,
                    false => a + b - 2.0 * product,
                };
                // The squared sum of two lengths is at most twice the sum of their squares.
                let low = estimate - rounding * 2.0 * (a + b);
                // A value that is not a number stays a candidate.
                let is_far = low > found.limit;
                if !is_far && Some(block[at]) != queries[number].position {
                    let high = estimate + rounding * 2.0 * (a + b);
                    found.offer(low, high, block[at]);
                }
            }
        }
    }
    Ok(found.into_iter().map(Candidates::positions).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Index;
    use crate::testdata::{gaussian, rows};
    use garlic_core::Metric;
    use garlic_core::vectors::Prepared;

    /// Products and single distances agree on the neighbours, with duplicates, a far point and a large offset.
    #[test]
    fn products_find_the_neighbours_that_single_distances_find() {
        let (dim, count) = (12, 1500);
        for metric in [Metric::Euclidean, Metric::Cosine, Metric::InnerProduct] {
            for offset in [0.0, 300.0] {
                let mut values: Vec<f32> = gaussian(count, dim, 3);
                values.iter_mut().for_each(|v| *v += offset);
                values.copy_within(0..300 * dim, 600 * dim);
                values[7 * dim] = 5000.0;
                let builder = Index::builder().metric(metric).threads(1);
                let builder = builder.set("calibration_queries", "0").unwrap();
                let index = builder.build(rows(&values, dim)).unwrap();
                let (snapshot, ks) = (index.snapshot(), [1, 10]);
                let held: Vec<u32> = (0..300).collect();
                let queries: Vec<Query> = held.iter().map(|p| Query::held(&snapshot, *p)).collect();
                let found = ground_truth(&snapshot, queries, &ks, &Cancel::default()).unwrap();
                let mut ranking = RankingDistance::new(snapshot);
                for query in found {
                    let prepared = Prepared::Float(&query.vector);
                    let mut all: Vec<(f32, u32)> = (0..count as u32)
                        .filter(|p| Some(*p) != query.position)
                        .map(|p| {
                            let squared = snapshot.distance(p, &prepared);
                            (ranking.of(&query.vector, p, squared), p)
                        })
                        .collect();
                    all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                    let nearest: Vec<u32> = all[..10 + SPARE_NEIGHBOURS]
                        .iter()
                        .map(|(_, p)| *p)
                        .collect();
                    assert_eq!(query.neighbours, nearest, "{metric} {offset}");
                    assert_eq!(query.ranking_radii, [all[0].0, all[9].0]);
                }
            }
        }
    }
}
