//! Limits the influence of outliers on axes and cells.
//!
//! A few rows far away, or lengths over many orders of magnitude, would otherwise dominate the principal axes and
//! most cells. Rows farther from the median than [`OUTLIER_FACTOR`] times the median distance are outliers. Data
//! without outliers are not changed.

use super::Points;
use garlic_core::Result;
use garlic_linalg::{Matrix, Rows};

/// A row is an outlier if its distance from the median exceeds the median distance by this factor.
const OUTLIER_FACTOR: f32 = 4.0;
/// Number of rows that the median is computed from.
const MEDIAN_ROWS: usize = 1_001;
/// Number of queries for nearest neighbours, their budget in multiply-adds, and the share of the squared distances
/// between neighbours that the axes have to keep.
const LOCAL_QUERIES: usize = 256;
const LOCAL_WORK: usize = 1 << 30;
const LOCAL_SHARE: f64 = 0.5;
/// Upper limit of the number of shells. The last one takes all remaining rows.
const MAX_SHELLS: usize = 16;

/// The coordinate-wise median of some rows.
fn median(rows: Rows<'_>) -> Vec<f32> {
    let step = rows.len().div_ceil(MEDIAN_ROWS).max(1);
    let mut column = Vec::with_capacity(MEDIAN_ROWS);
    (0..rows.dim())
        .map(|j| {
            column.clear();
            column.extend((0..rows.len()).step_by(step).map(|i| rows.row(i)[j]));
            let half = column.len() / 2;
            *column.select_nth_unstable_by(half, f32::total_cmp).1
        })
        .collect()
}

/// The distance at which outliers begin, given the distances of rows from their median, or infinity if all are zero.
/// Rows at the median itself are ignored because they have no scale.
fn cutoff(distances: impl Iterator<Item = f32>) -> f32 {
    let mut distances: Vec<f32> = distances.filter(|d| *d > 0.0).collect();
    if distances.is_empty() {
        return f32::INFINITY;
    }
    let half = distances.len() / 2;
    OUTLIER_FACTOR * *distances.select_nth_unstable_by(half, f32::total_cmp).1
}

fn distances(rows: Rows<'_>, median: &[f32]) -> Vec<f32> {
    let squared = rows.iter().map(|row| garlic_simd::l2_squared(row, median));
    squared.map(f32::sqrt).collect()
}

/// The rows with outliers moved towards the median, or `None` if there are no outliers.
pub(crate) fn winsorised(rows: Rows<'_>) -> Option<Matrix> {
    if rows.is_empty() {
        return None;
    }
    let median = median(rows);
    let distances = distances(rows, &median);
    let cutoff = cutoff(distances.iter().copied());
    if distances.iter().all(|d| *d <= cutoff) {
        return None;
    }
    let mut pulled = Matrix::zeros(0, rows.dim());
    let mut buffer = vec![0.0; rows.dim()];
    for (row, distance) in rows.iter().zip(distances) {
        if distance <= cutoff {
            pulled.push_row(row);
            continue;
        }
        let share = cutoff / distance;
        for ((out, x), m) in buffer.iter_mut().zip(row).zip(&median) {
            *out = m + (x - m) * share;
        }
        pulled.push_row(&buffer);
    }
    Some(pulled)
}

/// How many of the leading axes, one per row, keep half of the squared distances between neighbours among `rows`.
/// Returns the dimension if all axes keep less.
pub(crate) fn axes_between_neighbours(rows: Rows<'_>, axes: Rows<'_>) -> usize {
    let dim = rows.dim();
    let count = (LOCAL_WORK / (LOCAL_QUERIES * dim)).clamp(64, 4096);
    let spread = |count: usize| (0..rows.len()).step_by(rows.len().div_ceil(count).max(1));
    let mut along = vec![0.0f64; axes.len()];
    let mut whole = 0.0f64;
    let mut difference = vec![0.0; dim];
    for query in spread(LOCAL_QUERIES) {
        let query = rows.row(query);
        let distance = |row: usize| garlic_simd::l2_squared(query, rows.row(row));
        // Copies have no direction.
        let others = spread(count).map(|row| (distance(row), row));
        let others = others.filter(|(squared, _)| *squared > 0.0);
        let Some((squared, nearest)) = others.min_by(|a, b| a.0.total_cmp(&b.0)) else {
            continue;
        };
        for ((out, x), y) in difference.iter_mut().zip(query).zip(rows.row(nearest)) {
            *out = (x - y) / squared.sqrt();
        }
        whole += 1.0;
        for (along, axis) in along.iter_mut().zip(axes.iter()) {
            *along += f64::from(garlic_simd::dot(axis, &difference)).powi(2);
        }
    }
    let mut kept = 0.0;
    let enough = along.iter().position(|share| {
        kept += share;
        kept >= LOCAL_SHARE * whole
    });
    enough.map_or(dim, |last| last + 1)
}

/// Splits rows into shells by their distance from the median, each within a few times its own median distance. The
/// first shell is the bulk of the data. Rows are row numbers of `points`.
pub(crate) fn shells(points: &impl Points, rows: Vec<u32>) -> Result<Vec<Vec<u32>>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let step = rows.len().div_ceil(MEDIAN_ROWS).max(1);
    let some: Vec<u32> = rows.iter().copied().step_by(step).collect();
    let median = median(points.gather(&some)?.as_rows());
    let mut all = Vec::with_capacity(points.len());
    points.for_each_block(&mut |_, block| {
        all.extend(distances(block, &median));
        Ok(())
    })?;
    let distance = |row: &u32| all[*row as usize];
    let mut left = rows;
    let mut shells = Vec::new();
    while !left.is_empty() {
        let limit = match shells.len() + 1 < MAX_SHELLS {
            true => cutoff(left.iter().map(distance)),
            false => f32::INFINITY,
        };
        // Most data have no outliers, and there may be little memory.
        if left.iter().all(|row| distance(row) <= limit) {
            shells.push(left);
            break;
        }
        let (near, far) = left.into_iter().partition(|row| distance(row) <= limit);
        shells.push(near);
        left = far;
    }
    Ok(shells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::uniform;

    fn cloud(rows: usize, dim: usize) -> Vec<f32> {
        uniform(rows, dim, 3)
    }

    #[test]
    fn rows_without_outliers_are_left_alone() {
        let values = cloud(500, 8);
        let rows = Rows::new(&values, 8).unwrap();
        assert!(winsorised(rows).is_none());
        let all: Vec<u32> = (0..500).collect();
        assert_eq!(shells(&rows, all.clone()).unwrap(), [all]);
    }

    #[test]
    fn outliers_are_pulled_in_and_keep_their_direction() {
        let mut values = cloud(500, 8);
        values[..8].iter_mut().for_each(|v| *v *= 1e9);
        let rows = Rows::new(&values, 8).unwrap();
        let pulled = winsorised(rows).unwrap();
        let length = |row: &[f32]| garlic_simd::dot(row, row).sqrt();
        assert_eq!(&pulled.as_slice()[8..], &values[8..], "the others stay");
        let (was, is) = (rows.row(0), pulled.row(0));
        assert!(length(is) < 5.0 && length(is) > 2.0, "{}", length(is));
        let cosine = garlic_simd::dot(was, is) / length(was) / length(is);
        assert!(cosine > 0.999, "{cosine}");
    }

    #[test]
    fn shells_are_groups_of_comparable_lengths() {
        let mut values = cloud(600, 8);
        values[..80].iter_mut().for_each(|v| *v *= 1e3);
        values[80..88].iter_mut().for_each(|v| *v *= 1e9);
        let rows = Rows::new(&values, 8).unwrap();
        let all: Vec<u32> = (0..600).collect();
        let shells = shells(&rows, all).unwrap();
        assert_eq!(shells.len(), 3);
        assert_eq!(shells[0], (11..600).collect::<Vec<u32>>());
        assert_eq!(shells[1], (0..10).collect::<Vec<u32>>());
        assert_eq!(shells[2], [10]);
    }

    #[test]
    fn axes_that_tell_groups_apart_do_not_tell_neighbours_apart() {
        let dim = 8;
        let mut values = cloud(600, dim);
        for row in values.chunks_exact_mut(dim).step_by(2) {
            row[0] += 1e4;
        }
        let rows = Rows::new(&values, dim).unwrap();
        let axes: Vec<f32> = (0..dim * dim)
            .map(|i| f32::from(u8::from(i % (dim + 1) == 0)))
            .collect();
        let axes = Rows::new(&axes, dim).unwrap();
        let needed = axes_between_neighbours(rows, axes);
        assert!((4..=6).contains(&needed), "{needed}");
        assert_eq!(axes_between_neighbours(rows, axes.slice(0..2)), dim);
    }

    #[test]
    fn copies_of_one_point_have_no_scale() {
        let values = vec![2.5; 40];
        let rows = Rows::new(&values, 4).unwrap();
        assert!(winsorised(rows).is_none());
        assert_eq!(shells(&rows, vec![0, 3, 7]).unwrap(), [[0, 3, 7]]);
    }
}
