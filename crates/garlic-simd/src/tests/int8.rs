//! Rows of 8-bit values: against their definition, and distances against those of the decoded values.

use super::*;

/// Values whose blocks have different magnitudes, with a zero block if there are several.
fn mixed(n: usize, seed: u64) -> Vec<f32> {
    let scale = |block: usize| match block % 4 {
        0 => 1.0,
        1 => 1e-6,
        2 => 0.0,
        _ => 3e9,
    };
    let unit = values(n, seed).into_iter().enumerate();
    unit.map(|(i, v)| v * scale(i / INT8_BLOCK)).collect()
}

fn encoded(values: &[f32]) -> Vec<u8> {
    let mut row = vec![7; int8_row_bytes(values.len())];
    encode_int8(values, &mut row);
    row
}

fn decoded(row: &[u8], dim: usize) -> Vec<f32> {
    let mut out = vec![f32::NAN; dim];
    scalar::widen_int8(row, &mut out);
    out
}

/// The rounding of the definition, in f64: the step of a block is its largest magnitude over 127 with 8 significant bits.
#[test]
fn rows_follow_their_definition() {
    for n in (0..100).chain([384, 784]) {
        let values = mixed(n, n as u64 + 1);
        let row = encoded(&values);
        assert_eq!(row.len(), n + 2 * n.div_ceil(32));
        let out = decoded(&row, n);
        let blocks = values.chunks(32).zip(out.chunks(32)).enumerate();
        for (block, (values, out)) in blocks {
            let largest = values.iter().fold(0.0f64, |m, v| m.max(f64::from(v.abs())));
            let step = match largest / 127.0 {
                0.0 => 2f64.powi(-100),
                ideal => {
                    let unit = 2f64.powi(ideal.log2().floor() as i32 - 7);
                    (ideal / unit).round_ties_even() * unit
                }
            };
            assert_eq!(f64::from(int8_steps(&row, n).nth(block).unwrap()), step);
            for (v, out) in values.iter().zip(out) {
                let code = (f64::from(*v) / step).round_ties_even();
                assert!(code.abs() <= 127.0);
                assert_eq!(f64::from(*out), code * step, "{n} {v}");
            }
        }
    }
}

#[test]
fn every_level_decodes_and_measures_alike() {
    let query = mixed(1000, 1);
    for level in levels() {
        for n in (0..200).chain([384, 784, 960]) {
            let x = &query[n % 5..][..n];
            let row = encoded(&mixed(n, 2 + n as u64));
            let exact = decoded(&row, n);
            let mut out = vec![f32::NAN; n];
            dispatch!(level, widen_int8(&row, &mut out));
            assert_eq!(out, exact, "{level:?} {n}");
            assert_eq!(
                dispatch!(level, l2_squared_int8(x, &row)),
                dispatch!(level, l2_squared(x, &exact)),
                "{level:?} {n}"
            );
        }
    }
}

/// A damaged file may hold any bytes. What comes out is a number or NaN, at every level.
#[test]
fn any_bytes_are_a_row() {
    for level in levels() {
        for n in 1..80 {
            let row = vec![0xff; int8_row_bytes(n)];
            let query = vec![1.0; n];
            assert!(dispatch!(level, l2_squared_int8(&query, &row)).is_nan());
            let mut out = vec![0.0; n];
            dispatch!(level, widen_int8(&row, &mut out));
            assert!(out.iter().all(|v| v.is_nan()));
        }
    }
}

proptest! {
    /// Encoding is the nearest value of the row, and encoding a decoded row changes nothing.
    #[test]
    fn encoding_is_near_and_idempotent(
        dim in 1usize..100,
        exponent in -120i32..50,
        spread in 0i32..20,
        seed in 0u64..1_000_000,
    ) {
        let unit = values(dim, seed);
        let shift = values(dim, seed + 1);
        let values: Vec<f32> = unit
            .iter()
            .zip(&shift)
            .map(|(v, s)| v * 2f32.powi(exponent + (s * spread as f32) as i32))
            .collect();
        let row = encoded(&values);
        let out = decoded(&row, dim);
        prop_assert_eq!(&encoded(&out), &row);
        for ((v, out), step) in values.iter().zip(&out).zip(
            int8_steps(&row, dim).flat_map(|step| [step; INT8_BLOCK]),
        ) {
            let gap = (f64::from(*v) - f64::from(*out)).abs();
            prop_assert!(gap <= 0.5000001 * f64::from(step), "{} {} {}", v, out, step);
        }
    }
}

#[test]
#[should_panic(expected = "another length")]
fn a_row_has_one_length() {
    l2_squared_int8(&[1.0; 33], &[0; 35]);
}
