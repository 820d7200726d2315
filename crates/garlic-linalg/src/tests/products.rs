//! Products and triangular solves.

use proptest::prelude::*;

use crate::reference::{
    SIZES, largest_difference, lower, lower_part, product, random, transpose, widen,
};
use crate::{
    Operand, gemm, lower_accumulate_outer, lower_gram, lower_of_symmetric_times_lower,
    mirror_lower, solve_lower, solve_lower_transpose, times_lower,
};

/// Whether an operand is stored transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trans {
    No,
    Yes,
}

fn operand(data: &[f32], trans: Trans, rows: usize, cols: usize) -> Operand<'_> {
    match trans {
        Trans::No => Operand::new(data, rows, cols),
        Trans::Yes => Operand::transposed(data, cols, rows),
    }
}

/// Rounding of a product of `k` terms below one in magnitude.
fn tolerance(k: usize) -> f64 {
    4e-7 * (k as f64).sqrt().max(1.0)
}

fn check_gemm(m: usize, n: usize, k: usize, ta: Trans, tb: Trans, alpha: f32, beta: f32) {
    let a = random(m * k, 1);
    let b = random(k * n, 2);
    let before = random(m * n, 3);
    let stored_a = if ta == Trans::Yes {
        transpose(&a, m, k)
    } else {
        a.clone()
    };
    let stored_b = if tb == Trans::Yes {
        transpose(&b, k, n)
    } else {
        b.clone()
    };
    let mut c = before.clone();
    if beta == 0.0 {
        c.fill(f32::NAN);
    }
    // One value past the shape, which must survive.
    c.push(77.0);
    gemm(
        &mut c,
        operand(&stored_a, ta, m, k),
        operand(&stored_b, tb, k, n),
        alpha,
        beta,
    );
    assert_eq!(c.pop(), Some(77.0));
    let mut expected = product(&widen(&a), &widen(&b), m, n, k);
    for (e, &old) in expected.iter_mut().zip(&before) {
        *e = f64::from(alpha) * *e + f64::from(beta) * f64::from(old);
    }
    let error = largest_difference(&widen(&c), &expected);
    assert!(error < tolerance(k), "{m}x{n}x{k} {ta:?} {tb:?}: {error}");
}

#[test]
fn gemm_matches_the_loops() {
    for m in SIZES {
        for n in SIZES {
            for k in SIZES {
                let ta = if (m + k) % 2 == 0 {
                    Trans::Yes
                } else {
                    Trans::No
                };
                let tb = if n % 2 == 0 { Trans::Yes } else { Trans::No };
                check_gemm(m, n, k, ta, tb, 1.0, 0.0);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn gemm_matches_the_loops_for_any_shape(
        m in 0usize..40, n in 0usize..40, k in 0usize..40,
        ta in any::<bool>(), tb in any::<bool>(),
        alpha in -2.0f32..2.0, beta in prop_oneof![Just(0.0f32), Just(1.0), -2.0f32..2.0],
    ) {
        let trans = |t| if t { Trans::Yes } else { Trans::No };
        check_gemm(m, n, k, trans(ta), trans(tb), alpha, beta);
    }
}

/// Where the allocator put a slice must not show in the result.
#[test]
fn gemm_does_not_depend_on_alignment() {
    for (m, n, k) in [
        (1, 33, 65),
        (33, 1, 65),
        (1, 1, 129),
        (9, 17, 33),
        (65, 70, 129),
    ] {
        let (a, b) = (random(m * k, 1), random(k * n, 2));
        let mut first: Option<Vec<u32>> = None;
        for offset in 0..17 {
            let mut padded = vec![0.0; offset];
            padded.extend_from_slice(&a);
            let mut padded_b = vec![0.0; 2 * offset];
            padded_b.extend_from_slice(&b);
            let mut c = vec![0.0; m * n + offset];
            gemm(
                &mut c[offset..],
                Operand::new(&padded[offset..], m, k),
                Operand::transposed(&padded_b[2 * offset..], n, k),
                1.0,
                0.0,
            );
            let bits: Vec<u32> = c[offset..].iter().map(|v| v.to_bits()).collect();
            assert_eq!(
                first.get_or_insert_with(|| bits.clone()),
                &bits,
                "{m}x{n}x{k}"
            );
        }
    }
}

#[test]
fn lower_gram_ignores_the_upper_part_and_is_mirrored() {
    for d in SIZES {
        let l = lower(d, 4);
        let mut out = vec![f32::NAN; d * d];
        lower_gram(&mut out, &l, d);
        mirror_lower(&mut out, d);
        let full = lower_part(&l, d);
        let expected = product(&full, &transpose(&full, d, d), d, d, d);
        assert!(
            largest_difference(&widen(&out), &expected) < 4.0 * tolerance(d),
            "{d}"
        );
        assert_eq!(transpose(&out, d, d), out, "not symmetric at {d}");
    }
}

#[test]
fn times_lower_ignores_the_upper_part() {
    for (d, rows) in SIZES.into_iter().flat_map(|d| [(d, 1), (d, 5), (d, 40)]) {
        let (a, l) = (random(rows * d, 9), lower(d, 4));
        let mut out = vec![f32::NAN; rows * d];
        times_lower(&mut out, &a, rows, &l, d);
        let expected = product(&widen(&a), &lower_part(&l, d), rows, d, d);
        let difference = largest_difference(&widen(&out), &expected);
        assert!(
            difference < 4.0 * tolerance(d),
            "{rows} x {d}: {difference}"
        );
    }
}

#[test]
fn symmetric_times_lower_matches_on_the_lower_triangle() {
    for d in SIZES {
        let mut s = random(d * d, 5);
        for i in 0..d {
            for j in 0..i {
                s[j * d + i] = s[i * d + j];
            }
        }
        let l = lower(d, 6);
        let full = product(&widen(&s), &lower_part(&l, d), d, d, d);
        for (alpha, beta) in [(1.0f32, 0.0f32), (-0.5, 1.0), (2.0, 0.25)] {
            let before = if beta == 0.0 {
                vec![f32::NAN; d * d]
            } else {
                random(d * d, 7)
            };
            let mut out = before.clone();
            lower_of_symmetric_times_lower(&mut out, &s, &l, d, alpha, beta);
            assert_lower(&out, &before, &full, d, alpha, beta, 4.0 * tolerance(d));
        }
    }
}

#[test]
fn outer_products_match_on_the_lower_triangle() {
    for d in SIZES {
        for p in [0, 1, 5, 40] {
            let (t, y) = (random(p * d, 8), random(p * d, 9));
            let full = product(&transpose(&widen(&t), p, d), &widen(&y), d, d, p);
            for (alpha, beta) in [(1.0f32, 0.0f32), (-0.5, 1.0), (2.0, 0.25)] {
                let before = if beta == 0.0 {
                    vec![f32::NAN; d * d]
                } else {
                    random(d * d, 7)
                };
                let mut out = before.clone();
                lower_accumulate_outer(&mut out, &t, &y, p, d, alpha, beta);
                assert_lower(&out, &before, &full, d, alpha, beta, 2.0 * tolerance(p));
            }
        }
    }
}

fn assert_lower(
    out: &[f32],
    before: &[f32],
    full: &[f64],
    d: usize,
    alpha: f32,
    beta: f32,
    tolerance: f64,
) {
    for i in 0..d {
        for j in 0..=i {
            let p = i * d + j;
            let kept = if beta == 0.0 {
                0.0
            } else {
                f64::from(beta) * f64::from(before[p])
            };
            let error = (f64::from(out[p]) - kept - f64::from(alpha) * full[p]).abs();
            assert!(error < tolerance, "d {d}, entry {i} {j}: {error}");
        }
    }
}

#[test]
fn solves_undo_the_products() {
    for d in SIZES {
        let l = lower(d, 10);
        let full = lower_part(&l, d);
        for nrhs in [0, 1, 2, 31, 70] {
            let b = random(nrhs * d, 11);
            let mut y = b.clone();
            solve_lower(&l, d, &mut y, nrhs);
            // Rows of y times L^T are the rows of b.
            let back = product(&widen(&y), &transpose(&full, d, d), nrhs, d, d);
            assert!(
                largest_difference(&back, &widen(&b)) < 4.0 * tolerance(d),
                "{d} {nrhs}"
            );
            let mut t = b.clone();
            solve_lower_transpose(&l, d, &mut t, nrhs);
            let back = product(&widen(&t), &full, nrhs, d, d);
            assert!(
                largest_difference(&back, &widen(&b)) < 4.0 * tolerance(d),
                "{d} {nrhs}"
            );
        }
    }
}
