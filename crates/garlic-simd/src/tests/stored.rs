//! Stored types: halves against their definition, distances against those of the widened values.

use super::*;

/// The value of a half by the definition of the format, exact in f64.
fn defined(half: u16) -> f64 {
    let sign = if half & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(half >> 10 & 0x1f), f64::from(half & 0x3ff));
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    }
}

#[test]
fn all_halves_widen_exactly_and_come_back() {
    for half in 0..=u16::MAX {
        let value = f16_to_f32(half);
        let exact = defined(half);
        if exact.is_nan() {
            assert!(value.is_nan());
            // The sign and payload stay, and the quiet bit is set.
            assert_eq!(f32_to_f16(value), half | 0x0200);
        } else {
            assert_eq!(f64::from(value), exact);
            assert_eq!(value.is_sign_negative(), half & 0x8000 != 0);
            assert_eq!(f32_to_f16(value), half);
        }
    }
}

/// Between every two neighbouring halves: the middle goes to the even one, all else to the nearer one.
#[test]
fn narrowing_rounds_to_nearest_even() {
    for half in 0..0x7c00u16 {
        let next = half + 1;
        // The step beyond the largest half counts as if the exponents went on.
        let above = if next == 0x7c00 {
            65536.0
        } else {
            defined(next)
        };
        let middle = ((defined(half) + above) / 2.0) as f32;
        assert_eq!(f64::from(middle), (defined(half) + above) / 2.0);
        let even = if half % 2 == 0 { half } else { next };
        for sign in [0u16, 0x8000] {
            let narrow = |bits: u32| f32_to_f16(f32::from_bits(bits | u32::from(sign) << 16));
            assert_eq!(narrow(middle.to_bits()), even | sign, "{half}");
            assert_eq!(narrow(middle.to_bits() - 1), half | sign, "{half}");
            assert_eq!(narrow(middle.to_bits() + 1), next | sign, "{half}");
        }
    }
    for (value, half) in [
        (1e-30f32, 0),
        (-0.0, 0x8000),
        (1e30, 0x7c00),
        (f32::MAX, 0x7c00),
        (f32::NEG_INFINITY, 0xfc00),
        (f32::MIN_POSITIVE / 4.0, 0),
    ] {
        assert_eq!(f32_to_f16(value), half, "{value}");
    }
    assert!(f16_to_f32(f32_to_f16(f32::NAN)).is_nan());
    // A NaN whose payload is all in the bits that are dropped must not become infinite.
    assert!(f16_to_f32(f32_to_f16(f32::from_bits(0x7f80_0001))).is_nan());
}

#[test]
fn every_level_widens_alike() {
    let halves: Vec<u16> = (0..=u16::MAX).collect();
    let bytes: Vec<u8> = (0..=255).collect();
    for level in levels() {
        let mut wide = vec![0.0; halves.len()];
        dispatch!(level, widen_f16(&halves, &mut wide));
        for (half, value) in halves.iter().zip(&wide) {
            assert_eq!(
                value.to_bits(),
                f16_to_f32(*half).to_bits(),
                "{level:?} {half:x}"
            );
        }
        for n in 0..70 {
            let mut wide = vec![f32::NAN; n];
            dispatch!(level, widen_u8(&bytes[186..][..n], &mut wide));
            assert!(
                wide.iter().zip(186u8..).all(|(a, b)| *a == f32::from(b)),
                "{level:?} {n}"
            );
            dispatch!(level, widen_f16(&halves[0x3c00..][..n], &mut wide));
            assert!(
                wide.iter().zip(0x3c00..).all(|(a, b)| *a == f16_to_f32(b)),
                "{level:?} {n}"
            );
        }
    }
}

#[test]
fn distances_are_those_of_the_widened_values() {
    let query: Vec<f32> = values(1000, 1).iter().map(|v| v * 200.0).collect();
    let bytes: Vec<u8> = values(1000, 2)
        .iter()
        .map(|v| (v * 128.0 + 128.0) as u8)
        .collect();
    let halves: Vec<u16> = values(1000, 3)
        .iter()
        .map(|v| f32_to_f16(v * 300.0))
        .collect();
    let from_bytes: Vec<f32> = bytes.iter().map(|v| f32::from(*v)).collect();
    let from_halves: Vec<f32> = halves.iter().map(|v| f16_to_f32(*v)).collect();
    for level in levels() {
        for n in (0..200).chain([784, 960]) {
            for shift in 0..4 {
                let (x, range) = (&query[shift..shift + n], 2 * shift..2 * shift + n);
                assert_eq!(
                    dispatch!(level, l2_squared_u8(x, &bytes[range.clone()])),
                    dispatch!(level, l2_squared(x, &from_bytes[range.clone()])),
                    "{level:?} u8 {n}"
                );
                assert_eq!(
                    dispatch!(level, l2_squared_f16(x, &halves[range.clone()])),
                    dispatch!(level, l2_squared(x, &from_halves[range])),
                    "{level:?} f16 {n}"
                );
            }
        }
    }
}

#[test]
fn distances_of_bytes_are_exact() {
    let bytes = |seed| -> Vec<u8> {
        let unit = values(1000, seed);
        unit.iter().map(|v| (v * 128.0 + 128.0) as u8).collect()
    };
    let (a, b) = (bytes(5), bytes(6));
    for level in levels() {
        for n in (0..300).chain([784, 960]) {
            let (x, y) = (&a[n % 5..][..n], &b[n % 7..][..n]);
            let exact: u32 = x
                .iter()
                .zip(y)
                .map(|(p, q)| u32::from(p.abs_diff(*q)).pow(2))
                .sum();
            assert_eq!(
                dispatch!(level, l2_squared_u8_u8(x, y)),
                exact,
                "{level:?} {n}"
            );
        }
        let (zeros, full) = (vec![0u8; MAX_U8_LENGTH], vec![255u8; MAX_U8_LENGTH]);
        let exact = 65_536 * 255u32.pow(2);
        assert_eq!(dispatch!(level, l2_squared_u8_u8(&zeros, &full)), exact);
        assert_eq!(dispatch!(level, l2_squared_u8_u8(&full, &zeros)), exact);
    }
}

#[test]
fn inner_products_of_bytes_are_exact() {
    let unit = values(70_000, 8);
    let rows: Vec<i8> = unit.iter().map(|v| (v * 127.0) as i8).collect();
    let bytes: Vec<u8> = unit
        .iter()
        .rev()
        .map(|v| (v * 128.0 + 128.0) as u8)
        .collect();
    for level in levels() {
        for n in (1..140).chain([784]) {
            for (count, vectors) in [(1, 1), (8, 3), (9, 4), (19, 7), (3, 0), (0, 2)] {
                let rows = &rows[n % 5..][..count * n];
                let xs = &bytes[n % 7..][..vectors * n];
                let mut out = vec![-1; count * vectors];
                dispatch!(level, dots_bytes(rows, xs, n, &mut out));
                let exact = xs.chunks_exact(n).flat_map(|x| {
                    rows.chunks_exact(n).map(move |row| -> i64 {
                        row.iter()
                            .zip(x)
                            .map(|(r, x)| i64::from(*r) * i64::from(*x))
                            .sum()
                    })
                });
                let exact: Vec<i64> = exact.collect();
                let out: Vec<i64> = out.into_iter().map(i64::from).collect();
                assert_eq!(out, exact, "{level:?} {n} {count} {vectors}");
            }
        }
        let (low, full) = (vec![-127i8; MAX_U8_LENGTH], vec![255u8; MAX_U8_LENGTH]);
        let mut out = [0];
        dispatch!(level, dots_bytes(&low, &full, MAX_U8_LENGTH, &mut out));
        assert_eq!(out, [-127 * 255 * 65_536]);
    }
}

#[test]
#[should_panic(expected = "too long")]
fn bytes_have_a_longest_length() {
    let long = vec![0u8; MAX_U8_LENGTH + 1];
    l2_squared_u8_u8(&long, &long);
}

/// A hint has no result; it must only accept any slice.
#[test]
fn anything_may_be_prefetched() {
    prefetch::<u8>(&[]);
    let data = vec![1u16; 1000];
    for n in 0..200 {
        prefetch(&data[n..2 * n]);
    }
}
