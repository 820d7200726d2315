//! Every level against the scalar oracle, and the oracle against f64.

use super::*;
use proptest::prelude::*;

mod codes;
mod int8;
mod marks;
mod row_codes;
mod rows;
mod select;
mod stored;

fn values(n: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    (0..n)
        .map(|_| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            ((state >> 40) as f32 / (1u64 << 23) as f32) - 1.0
        })
        .collect()
}

/// A packed factor whose diagonal is well away from zero.
fn factor(d: usize, seed: u64) -> Vec<f32> {
    let mut l = values(d * (d + 1) / 2, seed);
    for v in &mut l {
        *v *= 0.2;
    }
    for i in 0..d {
        l[i * (i + 1) / 2 + i] = 1.0 + 0.5 * l[i * (i + 1) / 2 + i].abs();
    }
    l
}

fn close(a: f32, b: f64, scale: f64) -> bool {
    (f64::from(a) - b).abs() <= 1e-5 * scale.max(1.0)
}

#[test]
fn reductions_for_every_length_and_alignment() {
    let (a, b) = (values(300, 1), values(300, 2));
    for level in levels() {
        for n in 0..=200 {
            for shift in 0..4 {
                let (x, y) = (&a[shift..shift + n], &b[2 * shift..2 * shift + n]);
                let exact: f64 = x.iter().zip(y).map(|(p, q)| f64::from(p - q).powi(2)).sum();
                let inner: f64 = x
                    .iter()
                    .zip(y)
                    .map(|(p, q)| f64::from(*p) * f64::from(*q))
                    .sum();
                assert!(
                    close(dispatch!(level, l2_squared(x, y)), exact, exact),
                    "{level:?} l2 {n}"
                );
                assert!(
                    close(dispatch!(level, dot(x, y)), inner, n as f64 / 10.0),
                    "{level:?} dot {n}"
                );
            }
        }
    }
}

#[test]
fn solving_in_steps_equals_f64_and_does_not_depend_on_the_steps() {
    for level in levels() {
        for d in [1usize, 2, 3, 7, 8, 9, 17, 33, 64, 130] {
            let l = factor(d, d as u64);
            let r = values(d * LANES, 7);
            let mut whole = vec![f32::NAN; d * LANES];
            let mut sums = [0.0f32; LANES];
            dispatch!(level, solve_rows(&l, 0, d, &r, &mut whole, &mut sums));
            let mut exact = vec![0.0f64; d * LANES];
            for t in 0..LANES {
                let mut norm = 0.0;
                for i in 0..d {
                    let mut v = f64::from(r[i * LANES + t]);
                    for j in 0..i {
                        v -= f64::from(l[i * (i + 1) / 2 + j]) * exact[j * LANES + t];
                    }
                    v /= f64::from(l[i * (i + 1) / 2 + i]);
                    exact[i * LANES + t] = v;
                    norm += v * v;
                    assert!(
                        close(whole[i * LANES + t], v, 20.0 * v.abs()),
                        "{level:?} d {d} row {i}"
                    );
                }
                assert!(close(sums[t], norm, 20.0 * norm), "{level:?} d {d}");
            }
            // Steps that are multiples of eight rows are how callers extend a prefix: bit for bit the same.
            let mut stepped = vec![f32::NAN; d * LANES];
            let mut stepped_sums = [0.0f32; LANES];
            let mut from = 0;
            while from < d {
                let to = (from + 16).min(d);
                let part = &r[from * LANES..to * LANES];
                dispatch!(
                    level,
                    solve_rows(&l, from, to, part, &mut stepped, &mut stepped_sums)
                );
                from = to;
            }
            assert_eq!(whole, stepped, "{level:?} d {d}");
            assert_eq!(sums, stepped_sums, "{level:?} d {d}");
        }
    }
}

#[test]
fn prefix_norms_equal_f64() {
    for level in levels() {
        for m in [0usize, 1, 2, 5, 16, 31, 64] {
            let entries = m * (m + 1) / 2;
            let (w, means, x) = (
                values(entries * GROUP, 3),
                values(m * GROUP, 4),
                values(m, 5),
            );
            let got = dispatch!(level, prefix_norms(&w, &means, &x));
            for (t, value) in got.iter().enumerate() {
                let mut exact = 0.0;
                for i in 0..m {
                    let y: f64 = (0..=i)
                        .map(|j| {
                            let entry = f64::from(w[(i * (i + 1) / 2 + j) * GROUP + t]);
                            entry * (f64::from(x[j]) - f64::from(means[j * GROUP + t]))
                        })
                        .sum();
                    exact += y * y;
                }
                assert!(close(*value, exact, exact), "{level:?} m {m}");
            }
        }
    }
}

proptest! {
    #[test]
    fn distances_of_ordinary_values_agree_between_levels(
        a in prop::collection::vec(-1e3f32..1e3, 0..130), seed in any::<u64>()
    ) {
        let b: Vec<f32> = values(a.len(), seed).iter().map(|v| v * 1e3).collect();
        let oracle = f64::from(scalar::l2_squared(&a, &b));
        for level in levels() {
            prop_assert!(close(dispatch!(level, l2_squared(&a, &b)), oracle, oracle));
        }
    }
}

#[test]
#[should_panic(expected = "different length")]
fn lengths_must_agree() {
    l2_squared(&[1.0], &[1.0, 2.0]);
}
