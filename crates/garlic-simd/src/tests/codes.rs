//! The scan: a straightforward reading of the layout first, then every level bit for bit against scalar.

use super::*;
use crate::codes::blocks_in;

struct Noise(u64);

impl Noise {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % below
    }
}

/// Points as codes, one row each, with their norms.
struct Points {
    bits: CodeBits,
    rank: usize,
    codes: Vec<Vec<u8>>,
    norms: Vec<f32>,
}

impl Points {
    fn new(bits: CodeBits, rank: usize, count: usize, noise: &mut Noise) -> Self {
        let largest = u64::from(bits.largest());
        // Extreme codes are as likely as all others together: sums that overflow show.
        let mut code = || match noise.next(4) {
            0 => 0,
            1 => largest as u8,
            _ => noise.next(largest + 1) as u8,
        };
        let codes = (0..count).map(|_| (0..rank).map(|_| code()).collect());
        let codes = codes.collect();
        let norms = (0..count).map(|_| noise.next(1000) as f32 / 7.0).collect();
        Self {
            bits,
            rank,
            codes,
            norms,
        }
    }

    fn blocks(&self) -> Vec<u8> {
        let bytes = code_block_bytes(self.bits, self.rank);
        let mut out = vec![0u8; self.codes.len().div_ceil(CODE_LANES) * bytes];
        for (b, block) in out.chunks_exact_mut(bytes).enumerate() {
            for lane in 0..CODE_LANES {
                let point = b * CODE_LANES + lane;
                let norm = self.norms.get(point).copied().unwrap_or(f32::INFINITY);
                let from = bytes - 4 * CODE_LANES + 4 * lane;
                block[from..from + 4].copy_from_slice(&norm.to_le_bytes());
                let Some(codes) = self.codes.get(point) else {
                    continue;
                };
                for (i, code) in codes.iter().enumerate() {
                    match self.bits {
                        CodeBits::Eight => block[i / 4 * 32 + lane * 4 + i % 4] = *code,
                        CodeBits::Four => {
                            block[i / 8 * 32 + lane * 4 + i % 4] |= code << (i % 8 / 4 * 4);
                        }
                    }
                }
            }
        }
        out
    }

    /// All estimates, padding left out.
    fn estimates(&self, query: &CodeQuery<'_>, first: u32) -> Vec<Estimate> {
        let points = self.codes.iter().zip(&self.norms).enumerate();
        points
            .map(|(i, (codes, norm))| {
                let products = codes.iter().zip(query.weights);
                let sum: i32 = products.map(|(c, w)| i32::from(*c) * i32::from(*w)).sum();
                let estimate = (norm + (query.offset + query.scale * sum as f32)).max(0.0);
                Estimate {
                    estimate,
                    at: first + i as u32,
                }
            })
            .collect()
    }
}

fn weights(rank: usize, noise: &mut Noise) -> Vec<i8> {
    let extreme = noise.next(3);
    let weight = |noise: &mut Noise| match extreme {
        0 => 127,
        1 => -127,
        _ => (noise.next(255) as i32 - 127) as i8,
    };
    (0..rank).map(|_| weight(noise)).collect()
}

fn scan(
    level: Level,
    bits: CodeBits,
    blocks: &[u8],
    query: &CodeQuery<'_>,
    limit: f32,
    first: u32,
    out: &mut Vec<Estimate>,
) {
    let count = blocks_in(bits, blocks, query, first);
    dispatch!(
        level,
        scan_codes(bits, blocks, count, query, limit, first, out)
    );
}

#[test]
fn estimates_are_those_of_the_definition_bit_for_bit() {
    let noise = &mut Noise(9);
    for bits in [CodeBits::Four, CodeBits::Eight] {
        let step = bits.rank_step();
        for rank in (0..=136).step_by(step).chain([256, 784]) {
            for count in [0usize, 1, 8, 9, 16, 23, 27, 32, 40, 61] {
                let points = Points::new(bits, rank, count, noise);
                let blocks = points.blocks();
                let weights = weights(rank, noise);
                let query = CodeQuery {
                    weights: &weights,
                    scale: 0.01 + noise.next(100) as f32 / 3e3,
                    offset: noise.next(100) as f32 / 3.0,
                };
                let first = noise.next(1 << 20) as u32;
                let all = points.estimates(&query, first);
                let mut sorted: Vec<f32> = all.iter().map(|e| e.estimate).collect();
                sorted.sort_by(f32::total_cmp);
                let some = [0, 1, 2].map(|k| sorted.get(k * count / 3).copied().unwrap_or(1.0));
                for limit in [f32::NEG_INFINITY, some[0], some[1], some[2], f32::INFINITY] {
                    let kept = all.iter().filter(|e| e.estimate < limit);
                    let before = Estimate {
                        estimate: -1.0,
                        at: 7,
                    };
                    let expected: Vec<Estimate> =
                        std::iter::once(&before).chain(kept).copied().collect();
                    for level in levels() {
                        let mut out = vec![before];
                        scan(level, bits, &blocks, &query, limit, first, &mut out);
                        assert_eq!(out, expected, "{level:?} {bits:?} rank {rank} of {count}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_widest_sums_do_not_overflow() {
    for bits in [CodeBits::Four, CodeBits::Eight] {
        for weight in [127i8, -127] {
            let weights = vec![weight; MAX_CODE_RANK];
            let query = CodeQuery {
                weights: &weights,
                scale: f32::from(weight.signum()),
                offset: 0.0,
            };
            let byte = if bits == CodeBits::Four { 0xff } else { 0x7f };
            let bytes = code_block_bytes(bits, MAX_CODE_RANK);
            let mut block = vec![byte; bytes];
            block[bytes - 32..].fill(0);
            let exact = MAX_CODE_RANK as i32 * 127 * i32::from(bits.largest());
            for level in levels() {
                let mut out = Vec::new();
                scan(level, bits, &block, &query, f32::INFINITY, 0, &mut out);
                assert_eq!(out.len(), CODE_LANES);
                assert!(
                    out.iter().all(|e| e.estimate == exact as f32),
                    "{level:?} {bits:?}"
                );
            }
        }
    }
}

#[test]
fn the_public_scan_agrees_with_the_levels() {
    let noise = &mut Noise(3);
    let points = Points::new(CodeBits::Eight, 32, 24, noise);
    let weights = weights(32, noise);
    let query = CodeQuery {
        weights: &weights,
        scale: 0.5,
        offset: -3.0,
    };
    let mut out = Vec::new();
    scan_codes(
        CodeBits::Eight,
        &points.blocks(),
        &query,
        f32::INFINITY,
        100,
        &mut out,
    );
    assert_eq!(out, points.estimates(&query, 100));
}

#[test]
fn sizes_of_blocks() {
    assert_eq!(code_block_bytes(CodeBits::Eight, 32), 32 * 8 + 32);
    assert_eq!(code_block_bytes(CodeBits::Four, 32), 16 * 8 + 32);
    assert_eq!(code_block_bytes(CodeBits::Eight, 4), 64);
}

#[test]
#[should_panic(expected = "cut off")]
fn blocks_must_be_whole() {
    let query = CodeQuery {
        weights: &[1; 4],
        scale: 1.0,
        offset: 0.0,
    };
    scan_codes(CodeBits::Eight, &[0; 65], &query, 1.0, 0, &mut Vec::new());
}

#[test]
#[should_panic(expected = "multiple of a row")]
fn ranks_must_fill_rows() {
    let query = CodeQuery {
        weights: &[1; 4],
        scale: 1.0,
        offset: 0.0,
    };
    scan_codes(CodeBits::Four, &[0; 64], &query, 1.0, 0, &mut Vec::new());
}

#[test]
#[should_panic(expected = "too many lanes")]
fn lanes_must_have_numbers() {
    let query = CodeQuery {
        weights: &[1; 4],
        scale: 1.0,
        offset: 0.0,
    };
    scan_codes(
        CodeBits::Eight,
        &[0; 64],
        &query,
        1.0,
        u32::MAX - 3,
        &mut Vec::new(),
    );
}

#[test]
fn weights_are_the_same_at_every_level_and_near_what_they_stand_for() {
    let mut noise = Noise(77);
    for n in (0..70).chain([127, 128, 256]) {
        let mut values = |scale: f32| -> Vec<f32> {
            (0..n)
                .map(|_| (noise.next(2001) as f32 - 1000.0) * scale)
                .collect()
        };
        let (y, steps) = (values(0.37), values(1e-3));
        let mut expected = vec![1i8; n];
        let (unit, sum) = scalar::code_weights(&y, &steps, &mut expected);
        let largest = y
            .iter()
            .zip(&steps)
            .map(|(y, s)| (y * s).abs())
            .fold(0.0, f32::max);
        assert!((unit * 127.0 - largest).abs() <= 1e-6 * largest);
        assert_eq!(sum, expected.iter().map(|w| i32::from(*w)).sum::<i32>());
        for ((w, y), s) in expected.iter().zip(&y).zip(&steps) {
            assert!((f32::from(*w) * unit - y * s).abs() <= 0.5001 * unit);
        }
        for level in levels() {
            let mut found = vec![1i8; n];
            let returned = dispatch!(level, code_weights(&y, &steps, &mut found));
            assert_eq!(
                (found, returned),
                (expected.clone(), (unit, sum)),
                "{n} {level:?}"
            );
        }
    }
    for level in levels() {
        let mut weights = [5i8; 3];
        let returned = dispatch!(level, code_weights(&[0.0; 3], &[1.0; 3], &mut weights));
        assert_eq!((weights, returned), ([0; 3], (0.0, 0)));
    }
}

#[test]
fn keys_order_estimates() {
    let make = |estimate, at| Estimate { at, estimate }.key();
    assert!(make(0.0, 9) < make(1e-30, 0));
    assert!(make(1.5, 9) < make(1.5000001, 0));
    assert!(make(2.0, 1) < make(2.0, 2));
    assert!(make(3.0, 1) < make(f32::INFINITY, 0));
}

#[test]
fn what_is_no_number_is_no_estimate() {
    let noise = &mut Noise(5);
    let points = Points::new(CodeBits::Eight, 8, 11, noise);
    let (blocks, weights) = (points.blocks(), weights(8, noise));
    for level in levels() {
        for offset in [f32::NAN, f32::NEG_INFINITY] {
            let query = CodeQuery {
                weights: &weights,
                scale: 1.0,
                offset,
            };
            let mut out = Vec::new();
            scan(
                level,
                CodeBits::Eight,
                &blocks,
                &query,
                f32::INFINITY,
                0,
                &mut out,
            );
            // Lanes without a point have an infinite norm: with minus infinity they are no number.
            assert!(out.iter().all(|e| e.at < 11), "{level:?} {offset}");
            assert_eq!(out.is_empty(), offset.is_nan(), "{level:?} {offset}");
        }
        let mut weights = [5i8; 3];
        let huge = [f32::MAX, -3.0, 1.0];
        let returned = dispatch!(level, code_weights(&huge, &[4.0; 3], &mut weights));
        assert_eq!((weights, returned), ([0; 3], (0.0, 0)), "{level:?}");
    }
}

/// A damaged file may hold anything: what is no number weighs nothing, at every place and level.
#[test]
fn what_is_no_number_weighs_nothing() {
    for at in 0..19 {
        for wrong in [f32::NAN, -f32::NAN] {
            let mut y: Vec<f32> = (0..19).map(|i| i as f32 - 7.0).collect();
            let steps = [0.5; 19];
            y[at] = wrong;
            let mut expected = [1i8; 19];
            let returned = scalar::code_weights(&y, &steps, &mut expected);
            assert_eq!(expected[at], 0);
            for level in levels() {
                let mut found = [1i8; 19];
                assert_eq!(
                    dispatch!(level, code_weights(&y, &steps, &mut found)),
                    returned,
                    "{level:?} at {at}"
                );
                assert_eq!(found, expected, "{level:?} at {at}");
            }
        }
    }
}
