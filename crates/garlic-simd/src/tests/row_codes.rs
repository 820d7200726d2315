//! Row codes: a straightforward reading of the layout first, then every level bit for bit against it.

use super::*;
use crate::row_codes::check_rows;

struct Noise(u64);

impl Noise {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % below
    }

    fn value(&mut self) -> f32 {
        (self.next(20_001) as f32 - 10_000.0) / 700.0
    }
}

/// Points as crumbs, one for each element of each lane, with their terms.
struct Points {
    lines: usize,
    crumbs: Vec<Vec<u8>>,
    terms: Vec<f32>,
}

impl Points {
    fn new(lines: usize, count: usize, noise: &mut Noise) -> Self {
        // Some points have the largest code everywhere: sums that overflow show.
        let point = |noise: &mut Noise| -> Vec<u8> {
            let full = noise.next(3) == 0;
            let crumb = |_| if full { 3 } else { noise.next(4) as u8 };
            (0..lines * 256).map(crumb).collect()
        };
        Self {
            lines,
            crumbs: (0..count).map(|_| point(noise)).collect(),
            terms: (0..count).map(|_| noise.value().abs() * 1e3).collect(),
        }
    }

    fn codes(&self) -> Vec<u8> {
        let bytes = self.lines * ROW_CODE_LINE;
        let mut out = vec![0u8; self.crumbs.len() * bytes];
        let points = self.crumbs.iter().zip(&self.terms);
        for (code, (crumbs, term)) in out.chunks_exact_mut(bytes).zip(points) {
            for (i, crumb) in crumbs.iter().enumerate() {
                let (lane, e) = (i / 16, i % 16);
                code[4 * lane + e % 4] |= crumb << (2 * (e / 4));
            }
            code[bytes - 4..].copy_from_slice(&term.to_le_bytes());
        }
        out
    }

    /// The estimate of a point from weights in the order of its crumbs.
    fn estimate(&self, point: usize, weights: &[i8], scales: &[f32], offset: f32) -> f32 {
        let mut t = [0.0f32; 16];
        for lane in 0..self.lines * 16 - 1 {
            let elements = lane * 16..lane * 16 + 16;
            let products =
                elements.map(|i| i32::from(self.crumbs[point][i]) * i32::from(weights[i]));
            t[lane % 16] += products.sum::<i32>() as f32 * scales[lane];
        }
        let eight: [f32; 8] = std::array::from_fn(|i| t[i] + t[i + 8]);
        let four: [f32; 4] = std::array::from_fn(|i| eight[i] + eight[i + 4]);
        let two = [four[0] + four[2], four[1] + four[3]];
        (two[0] + two[1]) + (offset + self.terms[point])
    }
}

/// Weights in the order of the crumbs, none for the term.
fn weights(lines: usize, noise: &mut Noise) -> Vec<i8> {
    let extreme = noise.next(4);
    let weight = |noise: &mut Noise| match extreme {
        0 => 127,
        1 => -127,
        _ => (noise.next(255) as i32 - 127) as i8,
    };
    let mut weights: Vec<i8> = (0..lines * 256).map(|_| weight(noise)).collect();
    weights[lines * 256 - 16..].fill(0);
    weights
}

/// Weights in the order of the planes.
fn planes(weights: &[i8]) -> Vec<i8> {
    let mut out = vec![0; weights.len()];
    for (i, weight) in weights.iter().enumerate() {
        let (line, lane, c, b) = (i / 256, i / 16 % 16, i / 4 % 4, i % 4);
        out[line * 256 + c * 64 + 4 * lane + b] = *weight;
    }
    out
}

fn estimates(level: Level, codes: &[u8], query: &RowCodeQuery<'_>, rows: &[u32]) -> Vec<u32> {
    let mut out = vec![-1.0; rows.len()];
    let codes = RowCodes::new(codes, query.scales.len() / 16);
    check_rows(codes, query, rows, &out);
    dispatch!(level, estimate_rows(codes, query, rows, &mut out));
    out.iter().map(|estimate| estimate.to_bits()).collect()
}

#[test]
fn estimates_are_those_of_the_definition_bit_for_bit() {
    let noise = &mut Noise(11);
    for lines in 1..=5 {
        for count in [1usize, 2, 3, 9, 40] {
            let points = Points::new(lines, count, noise);
            // At any alignment.
            let shift = noise.next(5) as usize;
            let mut codes = vec![0xff; shift];
            codes.extend(points.codes());
            let weights = weights(lines, noise);
            let planes = planes(&weights);
            for chosen in (0..=9).chain([16, 33]) {
                // The scale of the term may be anything finite.
                let scales: Vec<f32> = (0..lines * 16).map(|_| noise.value()).collect();
                let offset = noise.value() * 1e3;
                let query = RowCodeQuery {
                    weights: &planes,
                    scales: &scales,
                    offset,
                };
                let row = |_| noise.next(count as u64) as u32;
                let rows: Vec<u32> = (0..chosen).map(row).collect();
                let expected: Vec<u32> = rows
                    .iter()
                    .map(|row| points.estimate(*row as usize, &weights, &scales, offset))
                    .map(f32::to_bits)
                    .collect();
                for level in levels() {
                    assert_eq!(
                        estimates(level, &codes[shift..], &query, &rows),
                        expected,
                        "{level:?} {lines} lines, {chosen} of {count}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_widest_sums_do_not_overflow() {
    for weight in [127i8, -127, -128] {
        let mut weights = vec![weight; 512];
        weights[512 - 16..].fill(0);
        let weights = planes(&weights);
        let query = RowCodeQuery {
            weights: &weights,
            scales: &[f32::from(weight.signum()); 32],
            offset: 0.0,
        };
        let mut codes = vec![0xff; 5 * 128];
        for row in codes.chunks_exact_mut(128) {
            row[124..].copy_from_slice(&0.5f32.to_le_bytes());
        }
        let exact = 31.0 * 48.0 * f32::from(weight).abs() + 0.5;
        for level in levels() {
            let found = estimates(level, &codes, &query, &[0, 4, 2, 3, 1]);
            assert_eq!(found, [exact.to_bits(); 5], "{level:?}");
        }
    }
}

#[test]
fn odd_terms_are_added_as_they_are() {
    let noise = &mut Noise(4);
    let mut points = Points::new(1, 7, noise);
    let odd = [0.0, -0.0, f32::INFINITY, -5.0, f32::NAN];
    points.terms[..5].copy_from_slice(&odd);
    let (codes, weights) = (points.codes(), vec![0i8; 256]);
    for level in levels() {
        for offset in [-1.0, 0.0, f32::NEG_INFINITY, f32::NAN] {
            let query = RowCodeQuery {
                weights: &weights,
                scales: &[-1.0; 16],
                offset,
            };
            let found = estimates(level, &codes, &query, &[0, 1, 2, 3, 4]);
            for (found, term) in found.into_iter().map(f32::from_bits).zip(odd) {
                let expected = offset + term;
                let same = found == expected || (found.is_nan() && expected.is_nan());
                assert!(same, "{level:?} {term} {offset}: {found}");
            }
        }
    }
}

/// What a query needs for codes of `lines` lines: axes and steps, none for the term.
fn elements(lines: usize, coordinates: usize, noise: &mut Noise) -> (Vec<u32>, Vec<f32>) {
    let n = lines * 256;
    let axes = (0..n).map(|_| noise.next(coordinates as u64) as u32);
    let axes = axes.collect();
    let mut steps: Vec<f32> = (0..n).map(|_| noise.value() * 1e-2).collect();
    steps[n - 16..].fill(0.0);
    (axes, steps)
}

/// Weights, and the bits of the scales and of their sum.
fn made(level: Level, y: &[f32], axes: &[u32], steps: &[f32]) -> (Vec<i8>, Vec<u32>, u32) {
    let (mut weights, mut scales) = (vec![1i8; axes.len()], vec![1.0f32; axes.len() / 16]);
    let sum = dispatch!(
        level,
        row_code_weights(y, axes, steps, &mut weights, &mut scales)
    );
    let scales = scales.iter().map(|scale| scale.to_bits()).collect();
    (weights, scales, sum.to_bits())
}

/// The definition, lane by lane.
fn defined(y: &[f32], axes: &[u32], steps: &[f32]) -> (Vec<i8>, Vec<u32>, u32) {
    let (mut weights, mut scales, mut total) = (Vec::new(), Vec::new(), 0.0f32);
    for (axes, steps) in axes.chunks(16).zip(steps.chunks(16)) {
        let pairs = axes.iter().zip(steps);
        let values: Vec<f32> = pairs.map(|(axis, step)| y[*axis as usize] * step).collect();
        let numbers = values.iter().filter(|v| !v.is_nan());
        let largest = numbers.map(|v| v.abs()).fold(0.0, f32::max);
        let inverse = 127.0 / largest;
        let told = largest.is_finite() && inverse.is_finite();
        let weight = |v: &f32| match told {
            true => (v * inverse).round_ties_even() as i8,
            false => 0,
        };
        let lane: Vec<i8> = values.iter().map(weight).collect();
        let scale = if told { -2.0 * (largest / 127.0) } else { 0.0 };
        let sum: i32 = lane.iter().map(|w| i32::from(*w)).sum();
        total += scale * sum as f32;
        scales.push(scale.to_bits());
        weights.extend(lane);
    }
    (planes(&weights), scales, total.to_bits())
}

#[test]
fn weights_are_those_of_the_definition_at_every_level() {
    let noise = &mut Noise(21);
    for lines in 0..=4 {
        for coordinates in [1usize, 2, 17, 128, 300] {
            let (axes, steps) = elements(lines.max(1), coordinates, noise);
            let (axes, steps) = (&axes[..lines * 256], &steps[..lines * 256]);
            let y: Vec<f32> = (0..coordinates).map(|_| noise.value()).collect();
            let expected = defined(&y, axes, steps);
            for level in levels() {
                assert_eq!(made(level, &y, axes, steps), expected, "{level:?} {lines}");
            }
        }
    }
}

#[test]
fn odd_values_give_the_same_weights_at_every_level() {
    let noise = &mut Noise(22);
    let odd = [
        f32::NAN,
        -f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        1e-37,
        1e-45,
        -0.0,
    ];
    for round in 0..200 {
        let (mut axes, mut steps) = elements(2, 40, noise);
        let mut y: Vec<f32> = (0..40).map(|_| noise.value()).collect();
        for value in odd {
            y[noise.next(40) as usize] = value;
            steps[noise.next(512) as usize] = value;
        }
        // Lanes of one odd value only, and of nothing but zero.
        let lonely = noise.next(32) as usize * 16;
        axes[lonely..lonely + 16].fill(3);
        y[3] = odd[round % odd.len()];
        let expected = defined(&y, &axes, &steps);
        for level in levels() {
            assert_eq!(
                made(level, &y, &axes, &steps),
                expected,
                "{level:?} {round}"
            );
        }
    }
}

#[test]
fn the_public_functions_agree_with_the_levels() {
    let noise = &mut Noise(23);
    let (axes, steps) = elements(2, 60, noise);
    let y: Vec<f32> = (0..60).map(|_| noise.value()).collect();
    let (mut weights, mut scales) = (vec![1i8; 512], vec![1.0f32; 32]);
    let sum = row_code_weights(&y, &axes, &steps, &mut weights, &mut scales);
    let (expected, _, bits) = defined(&y, &axes, &steps);
    assert_eq!((&weights, sum.to_bits()), (&expected, bits));
    assert_eq!(scales[31], 0.0);
    let codes = Points::new(2, 9, noise).codes();
    let query = RowCodeQuery {
        weights: &weights,
        scales: &scales,
        offset: sum,
    };
    let (rows, mut out) = ([8, 1, 0, 5, 5], [0.0; 5]);
    estimate_rows(RowCodes::new(&codes, 2), &query, &rows, &mut out);
    let expected = estimates(Level::Scalar, &codes, &query, &rows);
    assert_eq!(out.map(f32::to_bits).to_vec(), expected);
}

#[test]
fn prefetches_take_any_row() {
    let codes = vec![0u8; 3 * 128];
    for row in [0, 2, 3, u32::MAX] {
        RowCodes::new(&codes, 2).prefetch(row);
    }
    RowCodes::new(&[], 1).prefetch(0);
}

/// Estimates of `rows` from codes of one line, with weights and scales of these lengths.
fn estimate_lengths(codes: usize, weights: usize, scales: usize, rows: &[u32], out: usize) {
    let query = RowCodeQuery {
        weights: &vec![0; weights],
        scales: &vec![0.0; scales],
        offset: 0.0,
    };
    let codes = vec![0; codes];
    let codes = RowCodes::new(&codes, 1);
    estimate_rows(codes, &query, rows, &mut vec![0.0; out]);
}

#[test]
#[should_panic(expected = "without a line")]
fn rows_must_have_lines() {
    RowCodes::new(&[], 0);
}

#[test]
#[should_panic(expected = "row code is cut off")]
fn codes_must_be_whole() {
    RowCodes::new(&[0; 192], 2);
}

#[test]
#[should_panic(expected = "a scale for each lane")]
fn lanes_must_have_scales() {
    estimate_lengths(64, 256, 17, &[0], 1);
}

#[test]
#[should_panic(expected = "a weight for each element")]
fn weights_must_fill_lines() {
    estimate_lengths(64, 255, 16, &[0], 1);
}

#[test]
#[should_panic(expected = "an estimate for each row")]
fn estimates_must_have_room() {
    estimate_lengths(128, 256, 16, &[0, 1], 1);
}

#[test]
#[should_panic(expected = "row is out of range")]
fn rows_must_exist() {
    estimate_lengths(128, 256, 16, &[0, 1, 2, 1], 4);
}

#[test]
#[should_panic(expected = "row is out of range")]
fn no_row_is_in_empty_codes() {
    estimate_lengths(0, 256, 16, &[0], 1);
}

/// Weights from 8 coordinates, all axes `axis`, with slices of these lengths.
fn make_lengths(axis: u32, axes: usize, steps: usize, weights: usize, scales: usize) {
    row_code_weights(
        &[1.0; 8],
        &vec![axis; axes],
        &vec![1.0; steps],
        &mut vec![0; weights],
        &mut vec![0.0; scales],
    );
}

#[test]
#[should_panic(expected = "axes is cut off")]
fn axes_must_fill_lines() {
    make_lengths(0, 240, 240, 240, 15);
}

#[test]
#[should_panic(expected = "a step for each axis")]
fn steps_must_fill_lines() {
    make_lengths(0, 256, 255, 256, 16);
}

#[test]
#[should_panic(expected = "a weight for each axis")]
fn weights_must_have_room() {
    make_lengths(0, 256, 256, 255, 16);
}

#[test]
#[should_panic(expected = "a scale for each lane")]
fn scales_must_have_room() {
    make_lengths(0, 256, 256, 256, 15);
}

#[test]
#[should_panic(expected = "axis is out of range")]
fn axes_must_exist() {
    make_lengths(8, 256, 256, 256, 16);
}
