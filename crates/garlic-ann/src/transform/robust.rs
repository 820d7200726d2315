//! Keeps outliers from deciding what everything else is fitted to.
//!
//! A few rows far away, or lengths over many orders of magnitude, would otherwise own the principal axes and most of the
//! cells. Rows are compared with the median: those farther from it than [`FAR`] times the median distance are outliers. Data
//! without any are left exactly as they are.

use garlic_linalg::{Matrix, Rows};

/// Rows farther from the middle than this many times the median distance are outliers.
const FAR: f32 = 4.0;
/// Rows that the middle is taken from.
const SAMPLE: usize = 1_001;
/// Rows whose nearest neighbours are looked for, the multiply-adds that this may take, and the share of the squared distances
/// between neighbours that axes have to hold.
const LOCAL_QUERIES: usize = 256;
const LOCAL_WORK: usize = 1 << 30;
const LOCAL_SHARE: f64 = 0.5;
/// Most groups of rows by their distance from the middle; the last one takes all that is left.
const MAX_SHELLS: usize = 16;

/// The coordinate-wise median of some rows.
fn middle(rows: Rows<'_>) -> Vec<f32> {
    let step = rows.len().div_ceil(SAMPLE).max(1);
    let mut column = Vec::with_capacity(SAMPLE);
    (0..rows.dim())
        .map(|j| {
            column.clear();
            column.extend((0..rows.len()).step_by(step).map(|i| rows.row(i)[j]));
            let half = column.len() / 2;
            *column.select_nth_unstable_by(half, f32::total_cmp).1
        })
        .collect()
}

/// The distance that outliers begin at among rows at these distances from their middle; infinite where nothing tells. Rows at
/// the middle itself say nothing about the scale of the others.
fn cutoff(distances: impl Iterator<Item = f32>) -> f32 {
    let mut distances: Vec<f32> = distances.filter(|d| *d > 0.0).collect();
    if distances.is_empty() {
        return f32::INFINITY;
    }
    let half = distances.len() / 2;
    FAR * *distances.select_nth_unstable_by(half, f32::total_cmp).1
}

fn distances(rows: Rows<'_>, middle: &[f32]) -> Vec<f32> {
    let squared = rows.iter().map(|row| garlic_simd::l2_squared(row, middle));
    squared.map(f32::sqrt).collect()
}

/// The rows with outliers pulled towards the middle, as far out as the farthest of the others may be; none when there are
/// no outliers.
pub(crate) fn winsorised(rows: Rows<'_>) -> Option<Matrix> {
    if rows.is_empty() {
        return None;
    }
    let middle = middle(rows);
    let distances = distances(rows, &middle);
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
        for ((out, x), m) in buffer.iter_mut().zip(row).zip(&middle) {
            *out = m + (x - m) * share;
        }
        pulled.push_row(&buffer);
    }
    Some(pulled)
}

/// How many of the first axes, one a row, hold half of what tells neighbours among `rows` apart; as many as there are
/// coordinates when all of them hold less.
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
        // Copies say nothing.
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

/// CoarseQuantizer of rows by their distance from the middle, each within a few times its own median distance: the first is the
/// bulk of the data, the others are ever farther out. Rows are numbers in `points`.
pub(crate) fn shells(points: Rows<'_>, rows: &[u32]) -> Vec<Vec<u32>> {
    if rows.is_empty() {
        return Vec::new();
    }
    let step = rows.len().div_ceil(SAMPLE).max(1);
    let some: Vec<u32> = rows.iter().copied().step_by(step).collect();
    let middle = middle(Matrix::gather(points, &some).as_rows());
    let distance = |row: &u32| garlic_simd::l2_squared(points.row(*row as usize), &middle).sqrt();
    let mut left: Vec<(u32, f32)> = rows.iter().map(|row| (*row, distance(row))).collect();
    let mut shells = Vec::new();
    while !left.is_empty() {
        let limit = match shells.len() + 1 < MAX_SHELLS {
            true => cutoff(left.iter().map(|(_, d)| *d)),
            false => f32::INFINITY,
        };
        let (near, far): (Vec<_>, Vec<_>) = left.into_iter().partition(|(_, d)| *d <= limit);
        shells.push(near.into_iter().map(|(row, _)| row).collect());
        left = far;
    }
    shells
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
        assert_eq!(shells(rows, &all), std::slice::from_ref(&all));
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
        let shells = shells(rows, &all);
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
        assert_eq!(shells(rows, &[0, 3, 7]), [[0, 3, 7]]);
    }
}
