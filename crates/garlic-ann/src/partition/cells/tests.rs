//! Scores, assignment and fit of cells.

use super::*;
use crate::testdata::{rows, uniform};

/// Cells of random points, stretched by different amounts along every coordinate.
fn random_cells(dim: usize, rank: usize, anisotropy: f32) -> (Vec<f32>, AnisotropicCells) {
    let mut data = uniform(400, dim, 1);
    for row in data.chunks_exact_mut(dim) {
        for (i, x) in row.iter_mut().enumerate() {
            *x *= 12.0 / (1 + i) as f32;
        }
    }
    let mut labels: Vec<u32> = (0..400).map(|i| i / 80).collect();
    let ids: Vec<u32> = (0..400).collect();
    let rows = rows(&data, dim);
    let cancel = Cancel::default();
    let axis_counts = AxisCounts {
        rank,
        scored_axes: rank,
    };
    let fitted = AnisotropicCells::fit(
        rows,
        &ids,
        &mut labels,
        5,
        FitOptions {
            axes: axis_counts,
            anisotropy,
            seed: 3,
        },
        &cancel,
    )
    .unwrap();
    (data, fitted)
}

/// The score by its definition.
fn score(cells: &AnisotropicCells, cell: usize, x: &[f32]) -> f64 {
    let centred: Vec<f64> = x
        .iter()
        .zip(cells.mean(cell))
        .map(|(x, m)| f64::from(*x) - f64::from(*m))
        .collect();
    let mut score: f64 = centred.iter().map(|c| c * c).sum();
    let residual_variance = f64::from(cells.residual_variance(cell));
    let axes = cells.axes(cell).chunks_exact(cells.dim());
    for (axis, variance) in axes.zip(cells.variances(cell)) {
        let y: f64 = axis
            .iter()
            .zip(&centred)
            .map(|(a, c)| f64::from(*a) * c)
            .sum();
        let weight = (1.0 - residual_variance / f64::from(*variance)).max(0.0);
        score -= f64::from(cells.anisotropy) * weight * y * y;
    }
    score
}

#[test]
fn points_go_to_the_cell_with_the_smallest_score() {
    for (rank, anisotropy) in [(2, 0.0), (2, 0.5), (5, 1.0)] {
        let (data, cells) = random_cells(7, rank, anisotropy);
        let rows = rows(&data, 7);
        let labels = cells.assign(rows, 5, &Cancel::default()).unwrap();
        let mut other = 0;
        for (row, label) in rows.iter().zip(&labels) {
            let scores: Vec<f64> = (0..5).map(|cell| score(&cells, cell, row)).collect();
            let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
            assert!(scores[*label as usize] <= least + 1e-4, "{scores:?}");
            let plain = |c: usize| garlic_simd::l2_squared(row, cells.mean(c));
            let nearest = (0..5).min_by(|a, b| plain(*a).total_cmp(&plain(*b)));
            other += usize::from(nearest != Some(*label as usize));
        }
        assert_eq!(other > 0, anisotropy > 0.0, "shapes matter: {other}");
    }
}

#[test]
fn a_cell_far_away_takes_no_point() {
    let (data, cells) = random_cells(7, 2, 1.0);
    let mut means = cells.means.to_vec();
    means[7..14].fill(PRUNED_COORDINATE);
    let cells = Cells {
        anisotropy: 1.0,
        rank: 2,
        means: &means,
        shape: |cell: usize| {
            (
                cells.axes(cell),
                cells.variances(cell),
                cells.residual_variances[cell],
            )
        },
    };
    let rows = rows(&data, 7);
    let labels = cells.assign(rows, 5, &Cancel::default()).unwrap();
    assert!(labels.iter().all(|label| *label != 1 && *label < 5));
}

#[test]
fn a_fit_finds_mean_axes_and_what_is_left_over() {
    // Variance 12, 3 and 1/12 along three directions of five, none along the others.
    let dim = 5;
    let mut data = uniform(3000, dim, 2);
    for row in data.chunks_exact_mut(dim) {
        let [a, b, c] = [row[0] * 12.0, row[1] * 6.0, row[2]];
        row.copy_from_slice(&[4.0 + a, b - 1.0, c, 2.0, -3.0]);
    }
    let fitted = FittedCell::fit(
        rows(&data, dim),
        AxisCounts {
            rank: 2,
            scored_axes: 2,
        },
        1,
    );
    for (found, expected) in fitted.mean.iter().zip([4.0, -1.0, 0.0, 2.0, -3.0]) {
        assert!((found - expected).abs() < 0.2, "{:?}", fitted.mean);
    }
    assert!((fitted.variances[0] - 12.0).abs() < 0.6 && (fitted.variances[1] - 3.0).abs() < 0.2);
    assert!(fitted.axes[0].abs() > 0.99 && fitted.axes[dim + 1].abs() > 0.99);
    let third: f32 = 1.0 / 12.0;
    assert!(
        (fitted.residual_variance - third / 3.0).abs() < 0.01,
        "{}",
        fitted.residual_variance
    );
}

#[test]
fn cells_without_points_are_dropped() {
    let mut labels = [4, 1, 1, 4, 0];
    assert_eq!(renumber(&mut labels, 6), 3);
    assert_eq!(labels, [2, 1, 1, 2, 0]);
}

#[test]
fn axes_that_few_points_cannot_tell_look_like_any_direction() {
    let (dim, rank) = (7, 5);
    let axis_counts = AxisCounts::new(rank, 10 * 2 * POINTS_PER_AXIS, 10);
    assert_eq!((axis_counts.rank, axis_counts.scored_axes), (rank, 2));
    assert_eq!(AxisCounts::new(rank, 1_000_000, 10).scored_axes, rank);
    let data = uniform(2 * POINTS_PER_AXIS, dim, 5);
    let rows = rows(&data, dim);
    let all = FittedCell::fit(
        rows,
        AxisCounts {
            rank,
            scored_axes: rank,
        },
        1,
    );
    let some = FittedCell::fit(rows, axis_counts, 1);
    assert_eq!(some.axes, all.axes, "codes have them all");
    assert_eq!(some.variances[..2], all.variances[..2]);
    assert!(
        all.variances[2..]
            .iter()
            .all(|v| *v > all.residual_variance)
    );
    assert_eq!(some.variances[2..], [some.residual_variance; 3]);
    // The total variance does not change.
    let whole = |f: &FittedCell| {
        f.variances.iter().sum::<f32>() + f.residual_variance * (dim - rank) as f32
    };
    assert!((whole(&some) / whole(&all) - 1.0).abs() < 1e-5);
    // Such an axis does not contribute to the score and is not counted.
    let y = [0.0, 0.0, 1.0, 1.0, 1.0];
    assert_eq!(
        anisotropic_discount(0.5, &some.variances, some.residual_variance, &y),
        0.0
    );
    let ids: Vec<u32> = (0..rows.len() as u32).collect();
    let mut labels = vec![0; rows.len()];
    let cancel = Cancel::default();
    let cells = AnisotropicCells::fit(
        rows,
        &ids,
        &mut labels,
        1,
        FitOptions {
            axes: axis_counts,
            anisotropy: 0.5,
            seed: 1,
        },
        &cancel,
    )
    .unwrap();
    assert_eq!(cells.axis_counts().scored_axes, 2);
}
