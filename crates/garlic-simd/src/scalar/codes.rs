//! The plain scan over blocks of codes.

use crate::codes::{CODE_LANES, CodeBits, CodeQuery, Estimate, ROW, code_block_bytes};

pub(crate) fn scan_codes(
    bits: CodeBits,
    blocks: &[u8],
    count: usize,
    query: &CodeQuery<'_>,
    limit: f32,
    first: u32,
    out: &mut Vec<Estimate>,
) {
    let bytes = code_block_bytes(bits, query.weights.len());
    let groups = query.weights.as_chunks::<4>().0;
    for (b, block) in blocks.chunks_exact(bytes).take(count).enumerate() {
        let (codes, norms) = block.split_at(bytes - ROW);
        let mut dots = [0i32; CODE_LANES];
        match bits {
            CodeBits::Eight => {
                for (row, weights) in codes.chunks_exact(ROW).zip(groups) {
                    add(&mut dots, row, weights, |byte| byte);
                }
            }
            CodeBits::Four => {
                for (row, weights) in codes.chunks_exact(ROW).zip(groups.chunks_exact(2)) {
                    add(&mut dots, row, &weights[0], |byte| byte & 0x0f);
                    add(&mut dots, row, &weights[1], |byte| byte >> 4);
                }
            }
        }
        for (lane, (dot, norm)) in dots.iter().zip(norms.as_chunks::<4>().0).enumerate() {
            let raw = f32::from_le_bytes(*norm) + (query.offset + query.scale * *dot as f32);
            let estimate = if raw > 0.0 { raw } else { 0.0 };
            // A sum that is no number is no estimate: lanes without a point may have one.
            if estimate < limit && !raw.is_nan() {
                let at = first + (b * CODE_LANES + lane) as u32;
                out.push(Estimate { estimate, at });
            }
        }
    }
}

pub(crate) fn code_weights(coordinates: &[f32], steps: &[f32], weights: &mut [i8]) -> (f32, i32) {
    let products = || coordinates.iter().zip(steps).map(|(c, s)| c * s);
    let largest = products().fold(0.0f32, |m, p| if p.abs() > m { p.abs() } else { m });
    let inverse = 127.0 / largest;
    if largest == 0.0 || !largest.is_finite() || !inverse.is_finite() {
        weights.fill(0);
        return (0.0, 0);
    }
    let mut sum = 0;
    for (w, p) in weights.iter_mut().zip(products()) {
        *w = (p * inverse).round_ties_even() as i8;
        sum += i32::from(*w);
    }
    (largest / 127.0, sum)
}

/// Adds the products of one row of codes, four coordinates of every lane.
#[inline]
fn add(dots: &mut [i32; CODE_LANES], row: &[u8], weights: &[i8; 4], code: impl Fn(u8) -> u8) {
    for (dot, codes) in dots.iter_mut().zip(row.as_chunks::<4>().0) {
        for c in 0..4 {
            *dot += i32::from(weights[c]) * i32::from(code(codes[c]));
        }
    }
}
