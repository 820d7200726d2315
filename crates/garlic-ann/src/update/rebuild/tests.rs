//! When a cell is refitted, and to what.

use super::*;
use crate::Index;
use crate::testdata::{config, ids, rows, uniform};

const DIM: usize = 4;
const N: usize = 400;

/// Points around `centre`, wide along the first coordinate and flat along the last.
fn cloud(centre: f32, width: f32, seed: u64) -> Vec<f32> {
    let mut values = uniform(N, DIM, seed);
    for (i, value) in values.iter_mut().enumerate() {
        *value = centre + width * [8.0, 4.0, 2.0, 1.0][i % DIM] * *value;
    }
    values
}

/// An index of one cell. A configured number of cells prevents splits.
fn one_cell(values: &[f32]) -> Index {
    let config = config(&[
        ("cells", 1),
        ("axes", 2),
        ("bin_size", 8),
        ("calibration_queries", 0),
    ]);
    let builder = Index::builder().config(config).threads(1);
    builder.build(rows(values, DIM)).unwrap()
}

/// The index with twice the points, which exceeds the limit of the append buffer.
fn grown(index: &Index, values: &[f32]) -> Index {
    let mut index = index.clone();
    let new = ids(N as u64..2 * N as u64);
    index.add(rows(values, DIM), &new).unwrap();
    let snapshot = index.snapshot();
    assert_eq!((snapshot.cells(), snapshot.points_in(0)), (1, 2 * N));
    assert!(
        snapshot.cell_state(0).rewritten.is_some() && snapshot.cell_state(0).appended.is_none()
    );
    index
}

/// Mean, axes and variances of the only cell.
fn fitted(index: &Index) -> (&[f32], &[f32], &[f32]) {
    let snapshot = index.snapshot();
    let frame = snapshot.frame(0);
    (snapshot.mean(0), frame.shape.axes, frame.shape.variances)
}

/// The mean of the points of the only cell, and their mean squared distance from it.
fn truth(index: &Index) -> (Vec<f32>, f64) {
    let snapshot = index.snapshot();
    let members = gather(&snapshot, 0, None).unwrap();
    let rows = members.points.as_rows();
    let mean: Vec<f32> = (0..rows.dim())
        .map(|i| rows.iter().map(|row| row[i]).sum::<f32>() / rows.len() as f32)
        .collect();
    let squares = rows.iter().map(|row| garlic_simd::l2_squared(row, &mean));
    let radius = squares.map(f64::from).sum::<f64>() / rows.len() as f64;
    (mean, radius)
}

fn assert_fits(index: &Index) {
    let (mean, radius) = truth(index);
    let (at, _, variances) = fitted(index);
    let off = f64::from(garlic_simd::l2_squared(at, &mean));
    assert!(off < 1e-6 * radius, "{at:?}, not {mean:?}");
    let snapshot = index.snapshot();
    let along: f64 = variances.iter().map(|v| f64::from(*v)).sum();
    let others = (snapshot.segment.cells.dim() - snapshot.segment.cells.rank()) as f64;
    let fitted = along + f64::from(snapshot.frame(0).shape.residual_variance) * others;
    assert!(
        (fitted / radius - 1.0).abs() < 0.01,
        "{fitted}, not {radius}"
    );
}

#[test]
fn a_cell_whose_points_stay_where_they_were_keeps_its_frame() {
    let first = cloud(0.0, 1.0, 1);
    let index = one_cell(&first);
    let more = grown(&index, &first);
    assert_eq!(fitted(&more), fitted(&index));
}

#[test]
fn a_cell_whose_points_have_moved_is_refitted() {
    let index = one_cell(&cloud(0.0, 1.0, 1));
    let moved = grown(&index, &cloud(5.0, 1.0, 2));
    assert_ne!(fitted(&moved).0, fitted(&index).0);
    assert_fits(&moved);
    // The line between the two clouds is the longest axis now.
    let (mean, axes, _) = fitted(&moved);
    let mut centre = vec![0.0; mean.len()];
    let space = &moved.transform;
    space.apply(&[5.0; DIM], &mut centre);
    let way: Vec<f32> = centre.iter().zip(mean).map(|(c, m)| c - m).collect();
    let along = garlic_simd::dot(&axes[..mean.len()], &way).abs();
    let length = garlic_simd::dot(&way, &way).sqrt();
    assert!(along > 0.9 * length, "{along} of {length}");
}

#[test]
fn a_cell_whose_points_have_spread_is_refitted() {
    let first = cloud(0.0, 1.0, 1);
    let index = one_cell(&first);
    let (mean, _) = truth(&index);
    // The same cloud with the same mean but wider: only the spread differs.
    let mut centre = [0.0; DIM];
    for row in first.chunks_exact(DIM) {
        (centre.iter_mut().zip(row)).for_each(|(c, v)| *c += v / N as f32);
    }
    let wider = |factor: f32| -> Vec<f32> {
        let widen = |(i, v): (usize, &f32)| centre[i % DIM] + factor * (v - centre[i % DIM]);
        first.iter().enumerate().map(widen).collect()
    };
    let spread = grown(&index, &wider(2.0));
    let moved = garlic_simd::l2_squared(&truth(&spread).0, &mean);
    assert!(
        f64::from(moved) < REFIT_SHIFT * truth(&index).1 / 10.0,
        "{moved}"
    );
    assert!(fitted(&spread).2[0] > 2.0 * fitted(&index).2[0]);
    assert_fits(&spread);

    // Squared radii grow by (1 + 1.1^2) / 2, which is below the limit.
    let hardly = grown(&index, &wider(1.1));
    assert_eq!(fitted(&hardly), fitted(&index));
}

#[test]
fn a_cell_whose_points_have_drawn_together_is_refitted() {
    let index = one_cell(&cloud(0.0, 1.0, 1));
    let mut rest = grown(&index, &cloud(0.0, 0.2, 3));
    // Removes the points that the cell was fitted to.
    rest.remove(&ids(0..N as u64)).unwrap();
    assert!(fitted(&rest).2[0] < 0.2 * fitted(&index).2[0]);
    assert_fits(&rest);
}

#[test]
fn a_refitted_cell_scores_as_many_axes_as_the_others() {
    // Enough points for only one of two axes.
    let mut index = one_cell(&cloud(0.0, 1.0, 1)[..40 * DIM]);
    assert_eq!(index.segment.cells.axis_counts().scored_axes, 1);
    let before = fitted(&index).0.to_vec();
    let more = cloud(5.0, 1.0, 2);
    let new = ids(40..40 + N as u64);
    index.add(rows(&more, DIM), &new).unwrap();
    let (mean, _, variances) = fitted(&index);
    assert_ne!(mean, before);
    let residual = index.snapshot().frame(0).shape.residual_variance;
    assert!(variances[0] > residual && variances[1] == residual);
}
