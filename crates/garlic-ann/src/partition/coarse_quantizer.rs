//! The coarse quantizer: clusters of cells, so that routing among very many cells need not compare all of them.
//!
//! A query compares only the cells of the nearest clusters. Calibration runs with the same routing, so it accounts
//! for cells that routing misses. An index that was calibrated without it, a filtered search and a search with a
//! given share of bins compare all cells.

use crate::streams;
use garlic_linalg::{Matrix, Rows, permutation};

use garlic_core::buffer::Buffer;
use garlic_core::{Lists, by_label};

/// Number of cells below which comparing all is faster.
const MIN_CELLS: usize = 2048;
/// Share of the cells that a query compares at least.
const MIN_COMPARED_SHARE: f64 = 0.25;
/// Number of cells that a query compares at least for each probe.
const COMPARED_PER_PROBE: usize = 8;
/// Number of clusters per square root of the number of cells. Small clusters are more selective, and comparing their
/// centres costs less than comparing cells in vain.
const CLUSTERS_PER_ROOT: f64 = 4.0;
/// Lloyd iterations, and the number of cells per cluster that they use.
const LLOYD_ROUNDS: usize = 4;
const SAMPLED_CELLS_PER_CLUSTER: usize = 32;

/// The cells of an index, clustered by their means.
#[derive(Debug)]
pub(crate) struct CoarseQuantizer {
    /// Centres of the clusters, one per row.
    pub(crate) centres: Vec<f32>,
    /// Cells of every cluster.
    cells: Lists,
    /// The means of all cells, ordered by cluster.
    means: Buffer<f32>,
    starts: Vec<usize>,
}

impl CoarseQuantizer {
    /// Clusters cells with these means, or returns `None` if there are too few.
    ///
    /// It runs on the calling thread only. That may be a pool thread within a search while others wait for it.
    pub(crate) fn new(means: &[f32], dim: usize) -> Option<Self> {
        let rows = Rows::new(means, dim).ok()?;
        if rows.len() < MIN_CELLS {
            return None;
        }
        let count = (CLUSTERS_PER_ROOT * (rows.len() as f64).sqrt()) as usize;
        let chosen = permutation(rows.len(), 0, streams::COARSE_QUANTIZER);
        let mut centres: Vec<f32> = chosen[..count]
            .iter()
            .flat_map(|cell| rows.row(*cell as usize))
            .copied()
            .collect();
        let sample = Matrix::gather(
            rows,
            &chosen[..rows.len().min(count * SAMPLED_CELLS_PER_CLUSTER)],
        );
        for _ in 0..LLOYD_ROUNDS {
            let labels = nearest(sample.as_rows(), &centres);
            move_to_means(sample.as_rows(), &labels, &mut centres);
        }
        let cells = Lists::group(count, by_label(&nearest(rows, &centres)));
        let mut starts = vec![0];
        let mut ordered = Vec::with_capacity(means.len());
        for cluster in 0..count {
            for cell in cells.get(cluster) {
                ordered.extend_from_slice(rows.row(*cell as usize));
            }
            starts.push(ordered.len() / dim);
        }
        Some(Self {
            centres,
            cells,
            means: ordered.into(),
            starts,
        })
    }

    /// Number of clusters.
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Number of cells that a query with `count` probes compares at least, or `None` if it should compare all.
    pub(crate) fn min_compared(&self, count: usize) -> Option<usize> {
        let all = self.starts[self.len()];
        let share = (all as f64 * MIN_COMPARED_SHARE).ceil() as usize;
        let enough = count.saturating_mul(COMPARED_PER_PROBE).max(share);
        (enough < all / 2).then_some(enough)
    }

    /// The cells of a cluster, and their means.
    pub(crate) fn get(&self, cluster: usize) -> (&[u32], &[f32]) {
        let dim = self.centres.len() / self.len();
        let rows = self.starts[cluster] * dim..self.starts[cluster + 1] * dim;
        (self.cells.get(cluster), &self.means[rows])
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        (size_of_val(&*self.centres) + size_of_val(&*self.means) + 4 * self.starts[self.len()])
            as u64
    }
}

/// The nearest centre of every row. Ties go to the lower number.
fn nearest(rows: Rows<'_>, centres: &[f32]) -> Vec<u32> {
    let mut distances = vec![0.0; centres.len() / rows.dim()];
    rows.iter()
        .map(|row| {
            garlic_simd::l2_squared_rows(centres, row, &mut distances);
            let numbered = (0..).zip(&distances);
            numbered
                .min_by(|a, b| a.1.total_cmp(b.1))
                .map_or(0, |(cluster, _)| cluster)
        })
        .collect()
}

/// Moves every centre to the mean of its rows. A centre without rows stays.
fn move_to_means(rows: Rows<'_>, labels: &[u32], centres: &mut [f32]) {
    let dim = rows.dim();
    let mut sums = vec![0.0f64; centres.len()];
    let mut counts = vec![0u32; centres.len() / dim];
    for (row, label) in rows.iter().zip(labels) {
        let cluster = *label as usize;
        counts[cluster] += 1;
        for (sum, x) in sums[cluster * dim..][..dim].iter_mut().zip(row) {
            *sum += f64::from(*x);
        }
    }
    for (cluster, count) in counts
        .into_iter()
        .enumerate()
        .filter(|(_, count)| *count > 0)
    {
        let at = cluster * dim..(cluster + 1) * dim;
        for (centre, sum) in centres[at.clone()].iter_mut().zip(&sums[at]) {
            *centre = (sum / f64::from(count)) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::{assert_meets, config, rows, uniform};

    #[test]
    fn every_cell_is_in_one_cluster_with_its_mean() {
        let dim = 5;
        let means = uniform(MIN_CELLS, dim, 1);
        let quantizer = CoarseQuantizer::new(&means, dim).unwrap();
        let mut seen = vec![false; MIN_CELLS];
        for cluster in 0..quantizer.len() {
            let (cells, rows) = quantizer.get(cluster);
            for (cell, row) in cells.iter().zip(rows.chunks_exact(dim)) {
                let cell = *cell as usize;
                assert_eq!(row, &means[cell * dim..][..dim]);
                assert!(!std::mem::replace(&mut seen[cell], true), "{cell} twice");
            }
        }
        assert!(seen.into_iter().all(|seen| seen));
        assert_eq!(quantizer.min_compared(1), Some(MIN_CELLS / 4));
        assert_eq!(
            quantizer.min_compared(MIN_CELLS / 4),
            None,
            "half of them are as good as all"
        );
        assert!(
            CoarseQuantizer::new(&means[dim..], dim).is_none(),
            "too few"
        );
    }

    #[test]
    fn the_nearest_cells_are_among_those_looked_at() {
        let (dim, wanted, asked) = (12, 48, 100);
        let (means, queries) = (uniform(2 * MIN_CELLS, dim, 3), uniform(asked, dim, 4));
        let quantizer = CoarseQuantizer::new(&means, dim).unwrap();
        let enough = quantizer.min_compared(wanted).unwrap();
        let order = |rows: &[f32], query: &[f32]| -> Vec<u32> {
            let mut distances = vec![0.0; rows.len() / dim];
            garlic_simd::l2_squared_rows(rows, query, &mut distances);
            let mut order: Vec<u32> = (0..distances.len() as u32).collect();
            order.sort_by(|a, b| distances[*a as usize].total_cmp(&distances[*b as usize]));
            order
        };
        let mut found = 0;
        for query in queries.chunks_exact(dim) {
            let mut seen = Vec::new();
            for cluster in order(&quantizer.centres, query) {
                if seen.len() >= enough {
                    break;
                }
                seen.extend_from_slice(quantizer.get(cluster as usize).0);
            }
            let nearest = &order(&means, query)[..wanted];
            found += nearest.iter().filter(|cell| seen.contains(cell)).count();
        }
        // The means are random, which is the hardest case.
        assert!(found >= asked * wanted * 9 / 10, "{found}");
    }

    #[test]
    fn a_search_among_many_cells_looks_at_few_and_finds_what_was_asked_for() {
        let (dim, count, asked) = (8, 9000, 300);
        let (values, queries) = (uniform(count, dim, 5), uniform(asked, dim, 6));
        let queries = rows(&queries, dim);
        let config = config(&[
            ("cells", MIN_CELLS + 200),
            ("bin_size", 4),
            ("calibration_queries", 200),
        ]);
        let builder = crate::Index::builder().config(config);
        let index = builder.build(rows(&values, dim)).unwrap();
        assert!(index.cells() >= MIN_CELLS, "{} cells", index.cells());
        let search = crate::Search::new(10).recall(0.9);
        let exact = crate::Search::new(10).exact(true);
        let together = index.search_batch(queries, &search).unwrap();
        let mut shares = Vec::new();
        for (query, answer) in queries.iter().zip(&together) {
            let alone = index.search(query, &search).unwrap();
            assert_eq!(alone.hits, answer.hits);
            assert_eq!(alone.stats, answer.stats);
            assert!(
                alone.stats.cells_scored < index.cells() as u64 / 2,
                "{:?}",
                alone.stats
            );
            let farthest = index.search(query, &exact).unwrap().hits[9].distance;
            let near = answer.hits.iter().filter(|h| h.distance <= farthest);
            shares.push(near.count() as f64 / 10.0);
        }
        assert_meets(&shares, 0.9, "many cells");
    }
}
