//! Splits cells that are far larger than the others and prunes those that are far smaller.
//!
//! The published rules count the points within a Mahalanobis radius of a cell. These cells have no radius. The cost
//! of a query depends on the number of points per cell, so the rules use that number. Cells are not cloned: every
//! round refits a cell to its points.

use garlic_linalg::{Matrix, Rows, kmeans_plus_plus, lloyd, nearest_centres};

use garlic_core::{Lists, by_label};

/// A cell is split if it has this many times the mean number of points.
const SPLIT_FACTOR: f64 = 4.0;
/// A cell is pruned if it has less than this share of the mean number of points.
const PRUNE_SHARE: f64 = 0.02;
/// Number of cells from which on no cell is split.
const MAX_SPLIT_CELLS: usize = 4096;
/// A split is rejected if one part keeps more than this share of the points.
const MAX_SPLIT_SHARE: f64 = 0.95;
/// Lloyd iterations of a split.
const SPLIT_ROUNDS: usize = 5;

/// Splits large cells and prunes small ones. Returns the new number of cells.
pub(super) fn balance(rows: Rows<'_>, labels: &mut [u32], cells: usize, seed: u64) -> usize {
    let members = Lists::group(cells, by_label(labels));
    let mean = rows.len() as f64 / cells.max(1) as f64;
    let size = |cell: usize| members.get(cell).len() as f64;
    let mut count = cells;
    for cell in (0..cells).filter(|c| size(*c) > SPLIT_FACTOR * mean) {
        if count >= MAX_SPLIT_CELLS {
            break;
        }
        let points = Matrix::gather(rows, members.get(cell));
        let seeds = kmeans_plus_plus(points.as_rows(), 2, seed ^ cell as u64);
        let split = lloyd(points.as_rows(), seeds, SPLIT_ROUNDS);
        let largest = split.sizes.iter().copied().max().unwrap_or(0);
        // Copies of one point cannot be separated.
        if split.sizes.len() < 2 || f64::from(largest) > MAX_SPLIT_SHARE * size(cell) {
            continue;
        }
        for (point, half) in members.get(cell).iter().zip(split.labels) {
            if half == 1 {
                labels[*point as usize] = count as u32;
            }
        }
        count += 1;
    }
    let small = |cell: &usize| size(*cell) > 0.0 && size(*cell) < PRUNE_SHARE * mean;
    let pruned: Vec<usize> = (0..cells).filter(small).collect();
    if pruned.is_empty() {
        return count;
    }
    let (mut centres, mut survivors) = (Matrix::zeros(0, rows.dim()), Vec::new());
    let members_now = Lists::group(count, by_label(labels));
    for cell in (0..count).filter(|c| !pruned.contains(c)) {
        let points = members_now.get(cell);
        if points.is_empty() {
            continue;
        }
        let mut mean = vec![0.0f64; rows.dim()];
        for point in points {
            for (m, x) in mean.iter_mut().zip(rows.row(*point as usize)) {
                *m += f64::from(*x) / points.len() as f64;
            }
        }
        let mean: Vec<f32> = mean.into_iter().map(|m| m as f32).collect();
        centres.push_row(&mean);
        survivors.push(cell as u32);
    }
    for cell in pruned {
        let points = Matrix::gather(rows, members.get(cell));
        let (nearest, _) = nearest_centres(points.as_rows(), centres.as_rows());
        for (point, nearest) in members.get(cell).iter().zip(nearest) {
            labels[*point as usize] = survivors[nearest as usize];
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_cell_is_cut_and_a_small_one_dissolved() {
        // Cell 0 holds two distant clusters with nine tenths of the points, cells 1 to 8 a few points each, cell 9
        // one.
        let mut data: Vec<f32> = (0..900)
            .map(|i| (i % 2) as f32 * 100.0 + (i % 7) as f32)
            .collect();
        data.extend((0..96).map(|i| 200.0 + (i % 8) as f32 * 10.0));
        data.push(201.0);
        let mut labels = vec![0u32; 900];
        labels.extend((0..96).map(|i| 1 + i % 8));
        labels.push(9);
        let rows = Rows::new(&data, 1).unwrap();
        let count = balance(rows, &mut labels, 10, 0);
        assert_eq!(count, 11);
        for i in 0..900 {
            assert_eq!(
                labels[i] == labels[0],
                i % 2 == 0,
                "the groups are apart: {i}"
            );
        }
        assert!(!labels.contains(&9), "one point is no cell");
        assert_eq!(labels[996], 1, "it went to the nearest cell");

        let mut same = vec![0u32; 500];
        for cell in 1..7 {
            same.extend([cell; 10]);
        }
        let data = vec![3.0; 560];
        let before = same.clone();
        assert_eq!(balance(Rows::new(&data, 1).unwrap(), &mut same, 7, 0), 7);
        assert_eq!(same, before, "copies of one point are not split");
    }
}
