//! Cholesky, eigenvectors, covariance and principal components.

use crate::reference::{
    self, SIZES, largest_difference, orthonormality_error, product, random, transpose, widen,
};
use crate::{Matrix, Pca, Rows, cholesky, covariance, pca, symmetric_eigen, top_components};

fn positive_definite(d: usize, seed: u64) -> Vec<f64> {
    let a = widen(&random(d * d, seed));
    let mut p = product(&a, &transpose(&a, d, d), d, d, d);
    p.iter_mut().step_by(d + 1).for_each(|v| *v += 0.1);
    p
}

#[test]
fn cholesky_multiplies_back() {
    for d in SIZES {
        let a = positive_definite(d, 1);
        let l = cholesky(&a, d).unwrap();
        for i in 0..d {
            assert!(l[i * d + i] > 0.0);
            assert!(l[i * d + i + 1..(i + 1) * d].iter().all(|&v| v == 0.0));
        }
        let back = product(&l, &transpose(&l, d, d), d, d, d);
        assert!(largest_difference(&back, &a) < 1e-12 * d as f64);
    }
    assert_eq!(cholesky(&[], 0), Ok(Vec::new()));
}

#[test]
fn cholesky_refuses_what_has_no_factor() {
    for d in SIZES {
        for bad in [-1.0, 0.0, f64::NAN] {
            let mut a = vec![0.0; d * d];
            a.iter_mut().step_by(d + 1).for_each(|v| *v = 1.0);
            a[d * d - 1] = bad;
            let error = cholesky(&a, d).unwrap_err();
            assert_eq!(error.pivot, d - 1, "{d} {bad}");
            assert!(error.to_string().contains("positive definite"));
        }
    }
}

#[test]
fn eigenvectors_rebuild_the_matrix() {
    for d in SIZES {
        let a = positive_definite(d, 2);
        let eigen = symmetric_eigen(&a, d);
        assert!(eigen.values.is_sorted_by(|x, y| x >= y));
        assert!(orthonormality_error(&eigen.vectors, d) < 1e-12);
        let mut scaled = eigen.vectors.clone();
        for (row, value) in scaled.chunks_exact_mut(d).zip(&eigen.values) {
            row.iter_mut().for_each(|v| *v *= value);
        }
        let back = product(&transpose(&eigen.vectors, d, d), &scaled, d, d, d);
        assert!(largest_difference(&back, &a) < 1e-11 * d as f64, "{d}");
        for vector in eigen.vectors.chunks_exact(d) {
            let largest = vector.iter().map(|v| v.abs()).fold(0.0, f64::max);
            assert_eq!(vector.iter().find(|v| v.abs() == largest), Some(&largest));
        }
    }
}

#[test]
fn eigenvalues_of_known_matrices() {
    // Above the diagonal stands a value that must not count.
    let eigen = symmetric_eigen(&[2.0, -7.0, 1.0, 2.0], 2);
    assert!(largest_difference(&eigen.values, &[3.0, 1.0]) < 1e-14);
    let zero = symmetric_eigen(&[0.0; 9], 3);
    assert_eq!(zero.values, [0.0; 3]);
    let broken = symmetric_eigen(&[f64::NAN; 4], 2);
    assert!(broken.values.iter().all(|v| v.is_nan()));
    assert_eq!(broken.vectors, [1.0, 0.0, 0.0, 1.0]);
    assert!(symmetric_eigen(&[], 0).values.is_empty());
}

#[test]
fn covariance_matches_the_loops() {
    for (n, d) in [
        (1, 1),
        (1, 5),
        (2, 3),
        (17, 3),
        (129, 17),
        (1500, 33),
        (40, 64),
    ] {
        let mut data = random(n * d, 3);
        // A far offset, which centring has to take out, and a constant column.
        data.iter_mut().for_each(|x| *x += 100.0);
        data.iter_mut().step_by(d).for_each(|x| *x = 4.0);
        let rows = Rows::new(&data, d).unwrap();
        let (mean, cov) = covariance(rows);
        let (expected_mean, expected) = reference::covariance(rows);
        assert!(largest_difference(&mean, &expected_mean) < 1e-10);
        assert!(largest_difference(&cov, &expected) < 1e-6, "{n} {d}");
        assert_eq!(transpose(&cov, d, d), cov);
        assert_eq!(cov[0], 0.0);
    }
    let (mean, cov) = covariance(Rows::new(&[], 2).unwrap());
    assert_eq!((mean, cov), (vec![0.0; 2], vec![0.0; 4]));
}

/// Rows with standard deviations 1, decay, decay^2, ... along random orthogonal directions.
fn decaying(n: usize, d: usize, rank: usize, decay: f32, seed: u64) -> Vec<f32> {
    let frame = pca(Rows::new(&random(4 * d * d, seed), d).unwrap()).basis;
    let mut coordinates = Matrix::zeros(n, rank);
    let values = random(n * rank, seed + 1);
    for (i, (c, v)) in coordinates
        .as_mut_slice()
        .iter_mut()
        .zip(values)
        .enumerate()
    {
        *c = v * decay.powi((i % rank) as i32);
    }
    let expanded = product(
        &widen(coordinates.as_slice()),
        &widen(&frame.as_slice()[..rank * d]),
        n,
        d,
        rank,
    );
    expanded.iter().map(|&v| v as f32 + 3.0).collect()
}

#[test]
fn pca_diagonalises_the_covariance() {
    for (n, d) in [(1, 1), (1, 4), (3, 17), (200, 17), (300, 64)] {
        let data = random(n * d, 4);
        let rows = Rows::new(&data, d).unwrap();
        let found = pca(rows);
        assert_eq!((found.basis.rows(), found.values.len()), (d, d));
        let basis = widen(found.basis.as_slice());
        assert!(orthonormality_error(&basis, d) < 3e-7);
        let (mean, cov) = reference::covariance(rows);
        assert!(largest_difference(&widen(&found.mean), &mean) < 1e-6);
        let turned = product(
            &product(&basis, &cov, d, d, d),
            &transpose(&basis, d, d),
            d,
            d,
            d,
        );
        let mut expected = vec![0.0; d * d];
        for (j, &value) in found.values.iter().enumerate() {
            expected[j * d + j] = f64::from(value);
        }
        assert!(largest_difference(&turned, &expected) < 1e-6, "{n} {d}");
        assert!(found.values.is_sorted_by(|x, y| x >= y));
    }
}

/// Eigenvalues agree, and every component is an eigenvector of the covariance up to `tolerance`.
fn assert_leading(found: &Pca, rows: Rows<'_>, r: usize, tolerance: f64) {
    let d = rows.dim();
    let (_, cov) = reference::covariance(rows);
    let exact = symmetric_eigen(&cov, d);
    let basis = widen(found.basis.as_slice());
    assert_eq!((found.basis.rows(), found.basis.cols()), (r, d));
    assert_eq!(found.values.len(), r);
    assert!(orthonormality_error(&basis, d) < 3e-7);
    let values = widen(&found.values);
    let scale = exact.values[0];
    assert!(largest_difference(&values, &exact.values[..r]) < tolerance * scale);
    let image = product(&basis, &cov, r, d, d);
    for j in 0..r {
        let expected: Vec<f64> = basis[j * d..][..d].iter().map(|v| v * values[j]).collect();
        assert!(
            largest_difference(&image[j * d..][..d], &expected) < tolerance * scale,
            "{j}"
        );
    }
}

#[test]
fn leading_components_on_either_side() {
    for (n, d, r) in [
        (2, 1, 1),
        (17, 3, 2),
        (129, 64, 10),
        (20, 129, 5),
        (300, 17, 17),
    ] {
        let data = random(n * d, 5);
        let rows = Rows::new(&data, d).unwrap();
        assert_leading(&top_components(rows, r, 1), rows, r, 1e-6);
    }
}

#[test]
fn leading_components_by_iteration() {
    // Both sides above the exact solver's limit: a decaying spectrum converges, a flat one falls back.
    let (n, d) = (700, 300);
    let data = decaying(n, d, 100, 0.93, 6);
    let rows = Rows::new(&data, d).unwrap();
    for r in [1, 3, 24] {
        assert_leading(&top_components(rows, r, 1), rows, r, 1e-6);
    }
    let other_seed = top_components(rows, 3, 2);
    let values = widen(&top_components(rows, 3, 1).values);
    assert!(largest_difference(&widen(&other_seed.values), &values) < 1e-6);
    let flat = random(n * d, 7);
    let rows = Rows::new(&flat, d).unwrap();
    assert_leading(&top_components(rows, 4, 1), rows, 4, 1e-6);
}

#[test]
fn components_stop_at_the_rank_of_the_data() {
    for (n, d, rank) in [(40, 20, 2), (10, 60, 3), (700, 300, 5), (300, 700, 5)] {
        let data = decaying(n, d, rank, 0.6, 8);
        let found = top_components(Rows::new(&data, d).unwrap(), 12, 1);
        assert_eq!(found.basis.rows(), rank, "{n} {d}");
        assert!(orthonormality_error(&widen(found.basis.as_slice()), d) < 3e-7);
    }
}

#[test]
fn identical_rows_have_no_component() {
    for (n, d) in [(1, 1), (1, 7), (3, 2), (50, 20), (1100, 300), (300, 1100)] {
        let row = random(d, 9);
        let data = row.repeat(n);
        let found = top_components(Rows::new(&data, d).unwrap(), 4, 1);
        assert_eq!((found.basis.rows(), found.values.len()), (0, 0), "{n} {d}");
        assert!(largest_difference(&widen(&found.mean), &widen(&row)) < 1e-7);
    }
    let none = top_components(Rows::new(&[], 3).unwrap(), 2, 1);
    assert_eq!((none.mean, none.basis.rows()), (vec![0.0; 3], 0));
    let nothing_asked = top_components(Rows::new(&[1.0, 2.0], 1).unwrap(), 0, 1);
    assert_eq!(
        (nothing_asked.mean, nothing_asked.basis.rows()),
        (vec![1.5], 0)
    );
}
