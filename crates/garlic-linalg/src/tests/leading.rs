//! Leading axes beside those of the whole decomposition.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::reference::random;
use crate::{Leading, Rows, Wanted, leading_components, pca};

fn never() -> bool {
    false
}

fn just(count: usize) -> Wanted {
    Wanted {
        least: count,
        most: count,
        share: 1.0,
    }
}

/// Rows with variances that fall from coordinate to coordinate, around a mean that is not zero.
fn decaying(n: usize, d: usize, decay: f64, seed: u64) -> Vec<f32> {
    let mut values = random(n * d, seed);
    for row in values.chunks_exact_mut(d) {
        for (j, x) in row.iter_mut().enumerate() {
            *x = 3.0 + *x * decay.powi(j as i32) as f32;
        }
    }
    values
}

#[track_caller]
fn check(found: &Leading, rows: Rows<'_>, r: usize, slack: f64) {
    let whole = pca(rows);
    let total: f64 = whole.values.iter().map(|v| f64::from(*v)).sum();
    assert!(
        (found.total / total - 1.0).abs() < 1e-4,
        "{} {total}",
        found.total
    );
    let rank = r.min(rows.len() - 1).min(rows.dim());
    assert!(found.pca.values.len() >= rank.min(found.pca.basis.rows()));
    let kept = |values: &[f32]| values.iter().take(r).map(|v| f64::from(*v)).sum::<f64>();
    let (kept, best) = (kept(&found.pca.values), kept(&whole.values));
    assert!(
        kept <= best * 1.0001 && kept >= best * (1.0 - slack),
        "{kept} of {best}"
    );
    assert!(found.pca.values.is_sorted_by(|a, b| a >= b));
    let basis = &found.pca.basis;
    for i in 0..basis.rows() {
        for j in 0..=i {
            let product = garlic_simd::dot(basis.row(i), basis.row(j));
            let wanted = if i == j { 1.0 } else { 0.0 };
            assert!((product - wanted).abs() < 1e-5, "{i}, {j}: {product}");
        }
    }
    // The variances are those along the axes.
    for (axis, value) in basis.as_rows().iter().zip(&found.pca.values) {
        let along = rows.iter().map(|row| {
            let pairs = row.iter().zip(&found.pca.mean).zip(axis);
            pairs.map(|((x, m), a)| f64::from((x - m) * a)).sum::<f64>()
        });
        let variance = along.map(|v| v * v).sum::<f64>() / rows.len() as f64;
        assert!(
            (variance - f64::from(*value)).abs() <= 1e-4 * best,
            "{variance} {value}"
        );
    }
}

#[test]
fn leading_axes_keep_what_the_best_do() {
    // Few rows, as many rows as columns, many rows; steep and flat spectra.
    for (n, d, r) in [
        (2, 90, 16),
        (30, 200, 16),
        (170, 160, 32),
        (900, 120, 8),
        (1500, 150, 100),
    ] {
        for (decay, slack) in [(0.9, 1e-4), (0.99, 2e-3), (1.0, 2e-2)] {
            let values = decaying(n, d, decay, 4);
            let rows = Rows::new(&values, d).unwrap();
            let found = leading_components(rows, just(r), 1, &never).unwrap();
            check(&found, rows, r, slack);
        }
    }
}

#[test]
fn more_axes_are_found_where_few_keep_too_little() {
    let (n, d) = (1200, 150);
    for (decay, share, count) in [(0.5, 0.9, 10), (0.99, 0.9, 60), (1.0, 0.05, 10)] {
        let values = decaying(n, d, decay, 8);
        let rows = Rows::new(&values, d).unwrap();
        let wanted = Wanted {
            least: 10,
            most: 60,
            share,
        };
        let found = leading_components(rows, wanted, 1, &never).unwrap();
        assert_eq!(found.pca.basis.rows(), count, "decay {decay}");
        check(&found, rows, count, 2e-2);
    }
}

#[test]
fn scales_do_not_matter_and_equal_rows_have_no_axes() {
    let (n, d) = (120, 90);
    for scale in [1e-15f32, 1e14] {
        let mut values = decaying(n, d, 0.9, 5);
        values.iter_mut().for_each(|v| *v *= scale);
        let rows = Rows::new(&values, d).unwrap();
        let found = leading_components(rows, just(10), 1, &never).unwrap();
        assert_eq!(found.pca.basis.rows(), 10);
        let kept: f32 = found.pca.values.iter().sum();
        assert!(f64::from(kept) > 0.8 * found.total && f64::from(kept) < 1.001 * found.total);
    }
    for n in [0, 1, 7] {
        let values = vec![2.5; n * d];
        let found = leading_components(Rows::new(&values, d).unwrap(), just(5), 1, &never).unwrap();
        assert_eq!((found.pca.basis.rows(), found.total), (0, 0.0));
    }
}

#[test]
fn missing_axes_are_made_up_for() {
    let d = 40;
    for n in [1, 3, 12] {
        let values = decaying(n, d, 0.9, 6);
        let rows = Rows::new(&values, d).unwrap();
        for count in [16, d, d + 7] {
            let mut found = leading_components(rows, just(16), 1, &never).unwrap();
            found.pca.complete(count);
            assert_eq!(found.pca.basis.rows(), count.min(d));
            assert_eq!(found.pca.values.len(), count.min(d));
            if n > 1 {
                check(&found, rows, 16, 1e-4);
            }
        }
    }
}

#[test]
fn it_stops_when_it_is_told() {
    let d = 300;
    let values = decaying(2000, d, 0.99, 7);
    let rows = Rows::new(&values, d).unwrap();
    let asked = AtomicUsize::new(0);
    let count = || asked.fetch_add(1, Ordering::Relaxed) + 1;
    assert!(leading_components(rows, just(32), 1, &|| count() > usize::MAX / 2).is_some());
    let all = asked.swap(0, Ordering::Relaxed);
    assert!(all > 20);
    for after in [0, 1, 5, all / 2] {
        asked.store(0, Ordering::Relaxed);
        assert!(leading_components(rows, just(32), 1, &|| count() > after).is_none());
    }
}
