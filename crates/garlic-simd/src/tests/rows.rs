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

/// Bytes and small whole numbers, the extreme ones as often as all others.
fn bytes(n: usize, seed: u64) -> Vec<u8> {
    let byte = |v: f32| match v {
        v if v < -0.5 => 255,
        v if v < 0.0 => 128,
        v => (v * 256.0) as u8,
    };
    values(n, seed).into_iter().map(byte).collect()
}

#[test]
fn inner_products_of_chosen_rows_are_exact() {
    let (all, rows) = (bytes(41 * 784 + 5, 7), values(33, 9));
    for n in (1..=140).chain([255, 256, 784]) {
        let x: Vec<i8> = bytes(n, n as u64).iter().map(|b| *b as i8).collect();
        for count in [1usize, 3, 41] {
            let table = &all[n % 5..][..count * n];
            let row = |v: &f32| ((v + 1.0) / 2.0 * count as f32) as u32 % count as u32;
            let rows: Vec<u32> = rows.iter().map(row).collect();
            for chosen in (0..=9).chain([33]) {
                let rows = &rows[..chosen];
                let exact = rows.iter().map(|row| -> i64 {
                    let pairs = table[*row as usize * n..][..n].iter().zip(&x);
                    pairs.map(|(r, x)| i64::from(*r) * i64::from(*x)).sum()
                });
                let exact: Vec<i64> = exact.collect();
                for level in levels() {
                    let mut out = vec![-1; chosen];
                    dispatch!(level, dots_bytes_at(table, n, &x, rows, &mut out));
                    let out: Vec<i64> = out.into_iter().map(i64::from).collect();
                    assert_eq!(out, exact, "{level:?} {n} {chosen} of {count}");
                }
            }
        }
    }
    let (n, table) = (MAX_U8_LENGTH, vec![255u8; 2 * MAX_U8_LENGTH]);
    for extreme in [127i8, -128] {
        for level in levels() {
            let (x, mut out) = (vec![extreme; n], [0; 5]);
            dispatch!(
                level,
                dots_bytes_at(&table, n, &x, &[0, 1, 1, 0, 1], &mut out)
            );
            assert_eq!(out, [i32::from(extreme) * 255 * 65_536; 5], "{level:?}");
        }
    }
}

#[test]
fn the_public_inner_products_agree_with_the_levels() {
    let (table, x) = (bytes(6 * 100, 1), vec![-3i8; 100]);
    let (rows, mut out, mut expected) = ([5, 0, 3, 3, 1], [0; 5], [1; 5]);
    dots_bytes_at(&table, 100, &x, &rows, &mut out);
    scalar::dots_bytes_at(&table, 100, &x, &rows, &mut expected);
    assert_eq!(out, expected);
}

/// Inner products of rows of `n` bytes with slices of these lengths.
fn dot_lengths(table: usize, n: usize, x: usize, rows: &[u32], out: usize) {
    let (table, x) = (vec![0; table], vec![0; x]);
    dots_bytes_at(&table, n, &x, rows, &mut vec![0; out]);
}

#[test]
#[should_panic(expected = "without values")]
fn chosen_rows_must_have_values() {
    dot_lengths(0, 0, 0, &[], 0);
}

#[test]
#[should_panic(expected = "too long")]
fn chosen_rows_have_a_longest_length() {
    dot_lengths(0, MAX_U8_LENGTH + 1, MAX_U8_LENGTH + 1, &[], 0);
}

#[test]
#[should_panic(expected = "vectors of different length")]
fn the_vector_must_be_as_long_as_a_row() {
    dot_lengths(20, 10, 9, &[0], 1);
}

#[test]
#[should_panic(expected = "rows of different length")]
fn the_table_must_be_whole() {
    dot_lengths(21, 10, 10, &[0], 1);
}

#[test]
#[should_panic(expected = "a result for each row")]
fn chosen_rows_must_have_results() {
    dot_lengths(20, 10, 10, &[0, 1], 1);
}

#[test]
#[should_panic(expected = "row is out of range")]
fn chosen_rows_must_exist() {
    dot_lengths(20, 10, 10, &[0, 1, 2], 3);
}
