//! Cells in groups, so that a search among very many of them need not look at all.
//!
//! A query looks at the cells of the groups whose centres are nearest to it. What it misses the calibration sees, because
//! its queries take the same way; where it was measured otherwise, or cells are asked for by number, all are looked at.

use crate::streams;
use garlic_linalg::{Matrix, Rows, permutation};

use garlic_core::buffer::Buffer;
use garlic_core::{Lists, by_label};

/// Cells from which on they are grouped: fewer are looked at faster than groups are chosen.
const MANY: usize = 2048;
/// Share of the cells that a query looks at, at least.
const LOOKED_AT: f64 = 0.25;
/// Cells that it looks at for each that it wants, at least.
const FOR_EACH: usize = 8;
/// CoarseQuantizer, as a multiple of the root of the number of cells: small ones tell apart what is near, and choosing among them costs
/// less than looking at cells in vain.
const SMALLER: f64 = 4.0;
/// Rounds in which groups are fitted, and cells that each of them is fitted to: more change little.
const ROUNDS: usize = 4;
const FITTED_TO: usize = 32;

/// The cells of an index, grouped by where their means lie.
#[derive(Debug)]
pub(crate) struct CoarseQuantizer {
    /// Centres of the groups, one a row.
    pub(crate) centres: Vec<f32>,
    /// Cells of every group.
    cells: Lists,
    /// The means of all cells, group after group.
    means: Buffer<f32>,
    starts: Vec<usize>,
}

impl CoarseQuantizer {
    /// CoarseQuantizer of cells with these means; none when there are too few.
    ///
    /// On this thread alone: it may be one of a pool, in the middle of a search, and others may be waiting for it.
    pub(crate) fn new(means: &[f32], dim: usize) -> Option<Self> {
        let rows = Rows::new(means, dim).ok()?;
        if rows.len() < MANY {
            return None;
        }
        let count = (SMALLER * (rows.len() as f64).sqrt()) as usize;
        let chosen = permutation(rows.len(), 0, streams::GROUPS);
        let mut centres: Vec<f32> = chosen[..count]
            .iter()
            .flat_map(|cell| rows.row(*cell as usize))
            .copied()
            .collect();
        let sample = Matrix::gather(rows, &chosen[..rows.len().min(count * FITTED_TO)]);
        for _ in 0..ROUNDS {
            let labels = nearest(sample.as_rows(), &centres);
            move_to_means(sample.as_rows(), &labels, &mut centres);
        }
        let cells = Lists::group(count, by_label(&nearest(rows, &centres)));
        let mut starts = vec![0];
        let mut grouped = Vec::with_capacity(means.len());
        for group in 0..count {
            for cell in cells.get(group) {
                grouped.extend_from_slice(rows.row(*cell as usize));
            }
            starts.push(grouped.len() / dim);
        }
        Some(Self {
            centres,
            cells,
            means: grouped.into(),
            starts,
        })
    }

    /// Number of groups.
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// How many cells a query that wants `count` of them looks at, at least; none when it may as well look at all.
    pub(crate) fn enough(&self, count: usize) -> Option<usize> {
        let all = self.starts[self.len()];
        let share = (all as f64 * LOOKED_AT).ceil() as usize;
        let enough = count.saturating_mul(FOR_EACH).max(share);
        (enough < all / 2).then_some(enough)
    }

    /// The cells of a group, and their means.
    pub(crate) fn get(&self, group: usize) -> (&[u32], &[f32]) {
        let dim = self.centres.len() / self.len();
        let rows = self.starts[group] * dim..self.starts[group + 1] * dim;
        (self.cells.get(group), &self.means[rows])
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        (size_of_val(&*self.centres) + size_of_val(&*self.means) + 4 * self.starts[self.len()])
            as u64
    }
}

/// The nearest centre of every row; the lower number where two are as near.
fn nearest(rows: Rows<'_>, centres: &[f32]) -> Vec<u32> {
    let mut distances = vec![0.0; centres.len() / rows.dim()];
    rows.iter()
        .map(|row| {
            garlic_simd::l2_squared_rows(centres, row, &mut distances);
            let numbered = (0..).zip(&distances);
            numbered
                .min_by(|a, b| a.1.total_cmp(b.1))
                .map_or(0, |(group, _)| group)
        })
        .collect()
}

/// Moves every centre to the mean of its rows; one without any stays.
fn move_to_means(rows: Rows<'_>, labels: &[u32], centres: &mut [f32]) {
    let dim = rows.dim();
    let mut sums = vec![0.0f64; centres.len()];
    let mut counts = vec![0u32; centres.len() / dim];
    for (row, label) in rows.iter().zip(labels) {
        let group = *label as usize;
        counts[group] += 1;
        for (sum, x) in sums[group * dim..][..dim].iter_mut().zip(row) {
            *sum += f64::from(*x);
        }
    }
    for (group, count) in counts
        .into_iter()
        .enumerate()
        .filter(|(_, count)| *count > 0)
    {
        let at = group * dim..(group + 1) * dim;
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
    fn every_cell_is_in_one_group_with_its_mean() {
        let dim = 5;
        let means = uniform(MANY, dim, 1);
        let groups = CoarseQuantizer::new(&means, dim).unwrap();
        let mut seen = vec![false; MANY];
        for group in 0..groups.len() {
            let (cells, rows) = groups.get(group);
            for (cell, row) in cells.iter().zip(rows.chunks_exact(dim)) {
                let cell = *cell as usize;
                assert_eq!(row, &means[cell * dim..][..dim]);
                assert!(!std::mem::replace(&mut seen[cell], true), "{cell} twice");
            }
        }
        assert!(seen.into_iter().all(|seen| seen));
        assert_eq!(groups.enough(1), Some(MANY / 4));
        assert_eq!(
            groups.enough(MANY / 4),
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
        let (means, queries) = (uniform(2 * MANY, dim, 3), uniform(asked, dim, 4));
        let groups = CoarseQuantizer::new(&means, dim).unwrap();
        let enough = groups.enough(wanted).unwrap();
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
            for group in order(&groups.centres, query) {
                if seen.len() >= enough {
                    break;
                }
                seen.extend_from_slice(groups.get(group as usize).0);
            }
            let nearest = &order(&means, query)[..wanted];
            found += nearest.iter().filter(|cell| seen.contains(cell)).count();
        }
        // Of means without any order; 99 in a hundred of those of a million descriptors.
        assert!(found >= asked * wanted * 9 / 10, "{found}");
    }

    #[test]
    fn a_search_among_many_cells_looks_at_few_and_finds_what_was_asked_for() {
        let (dim, count, asked) = (8, 9000, 300);
        let (values, queries) = (uniform(count, dim, 5), uniform(asked, dim, 6));
        let queries = rows(&queries, dim);
        let config = config(&[
            ("cells", MANY + 200),
            ("bin_size", 4),
            ("calibration_queries", 200),
        ]);
        let builder = crate::Index::builder().config(config);
        let index = builder.build(rows(&values, dim)).unwrap();
        assert!(index.cells() >= MANY, "{} cells", index.cells());
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
