//! One vector against many rows.

use super::*;

#[test]
fn rows_equal_f64_for_every_shape() {
    for level in levels() {
        for d in (0..=70).chain([100, 128, 129, 784]) {
            for count in [0usize, 1, 2, 7, 8, 9, 16, 19] {
                let (rows, x) = (values(count * d + 3, 1), values(d, 2));
                let rows = &rows[count % 4..][..count * d];
                let (mut inner, mut squared) = (vec![f32::NAN; count], vec![f32::NAN; count]);
                dispatch!(level, dots(rows, &x, &mut inner));
                dispatch!(level, l2_squared_rows(rows, &x, &mut squared));
                for i in 0..count {
                    let pairs = || rows[i * d..][..d].iter().zip(&x);
                    let dot: f64 = pairs().map(|(p, q)| f64::from(*p) * f64::from(*q)).sum();
                    let l2: f64 = pairs().map(|(p, q)| f64::from(p - q).powi(2)).sum();
                    assert!(
                        close(inner[i], dot, d as f64 / 10.0),
                        "{level:?} {count} x {d}"
                    );
                    assert!(close(squared[i], l2, l2), "{level:?} {count} x {d}");
                }
            }
        }
    }
}

/// Alone, in a full block or in one that is not full: a row has one result.
#[test]
fn a_row_does_not_depend_on_its_neighbours() {
    for level in levels() {
        for d in [1usize, 5, 16, 31, 32, 100, 129] {
            let (rows, x) = (values(21 * d, 3), values(d, 4));
            let all = |from: usize, to: usize| {
                let (mut inner, mut squared) = (vec![0.0; to - from], vec![0.0; to - from]);
                let rows = &rows[from * d..to * d];
                dispatch!(level, dots(rows, &x, &mut inner));
                dispatch!(level, l2_squared_rows(rows, &x, &mut squared));
                (inner, squared)
            };
            let whole = all(0, 21);
            for from in 0..21 {
                for to in from..=21 {
                    let part = all(from, to);
                    assert_eq!(part.0, whole.0[from..to], "{level:?} d {d} {from}..{to}");
                    assert_eq!(part.1, whole.1[from..to], "{level:?} d {d} {from}..{to}");
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "different length")]
fn rows_must_fill_the_matrix() {
    dots(&[1.0; 5], &[1.0; 2], &mut [0.0; 2]);
}

#[test]
fn many_vectors_give_what_each_gives_alone() {
    for level in levels() {
        for d in [1usize, 5, 16, 31, 32, 100, 129] {
            for (count, vectors) in [(0, 3), (1, 1), (8, 3), (9, 7), (32, 4), (5, 0)] {
                let (rows, xs) = (values(count * d, 5), values(vectors * d, 6));
                let mut together = vec![f32::NAN; count * vectors];
                dispatch!(level, dots_many(&rows, &xs, d, &mut together));
                for (j, x) in xs.chunks_exact(d).enumerate() {
                    let mut alone = vec![f32::NAN; count];
                    dispatch!(level, dots(&rows, x, &mut alone));
                    assert_eq!(
                        together[j * count..][..count],
                        alone,
                        "{level:?} {d} {count} {j}"
                    );
                }
            }
        }
    }
}
