//! Blocks of codes: writes lanes, copies them and decodes centres.

use super::{BIN_BITS, code, zero_code};
use garlic_simd::{CODE_LANES, CodeBits, code_block_bytes};

/// Bytes of a lane in a row of a block, and of a row.
const LANE_BYTES: usize = 4;
const ROW_BYTES: usize = LANE_BYTES * CODE_LANES;

/// Appends whole blocks of codes. Lanes without a point have an infinite norm.
pub(crate) fn encode<'a>(
    bits: CodeBits,
    width: usize,
    steps: &[f32],
    rows: impl Iterator<Item = (&'a [f32], f32)>,
    out: &mut Vec<u8>,
) {
    let bytes = code_block_bytes(bits, width);
    for (i, (row, norm)) in rows.enumerate() {
        let block = lane_block(bytes, i, out);
        encode_lane(bits, steps, row, norm, block, i % CODE_LANES);
    }
}

/// The block at the end of `out` that contains the lane `number`. Starts a new block for the first lane of a block.
pub(crate) fn lane_block(bytes: usize, number: usize, out: &mut Vec<u8>) -> &mut [u8] {
    if number.is_multiple_of(CODE_LANES) {
        let start = out.len();
        out.resize(start + bytes, 0);
        for norm in out[start + bytes - ROW_BYTES..].chunks_exact_mut(LANE_BYTES) {
            norm.copy_from_slice(&f32::INFINITY.to_le_bytes());
        }
    }
    let start = out.len() - bytes;
    &mut out[start..]
}

/// Writes the code of one point.
pub(crate) fn encode_lane(
    bits: CodeBits,
    steps: &[f32],
    row: &[f32],
    norm: f32,
    block: &mut [u8],
    lane: usize,
) {
    for (j, (v, s)) in row.iter().zip(steps).enumerate() {
        let code = code(bits, *v, *s) as u8;
        match bits {
            CodeBits::Eight => block[j / 4 * ROW_BYTES + lane * LANE_BYTES + j % 4] = code,
            CodeBits::Four => {
                block[j / 8 * ROW_BYTES + lane * LANE_BYTES + j % 4] |=
                    code << (if j % 8 < 4 { 0 } else { 4 });
            }
        }
    }
    lane_norm(block, lane).copy_from_slice(&norm.to_le_bytes());
}

/// The bytes of a lane's norm, at the end of a block.
fn lane_norm(block: &mut [u8], lane: usize) -> &mut [u8] {
    let norms_at = block.len() - ROW_BYTES;
    &mut block[norms_at + LANE_BYTES * lane..][..LANE_BYTES]
}

/// Clamps the norm of a bin, the last lane of `blocks`, to the bounds of its points, which may have changed since.
pub(crate) fn clamp_norm(
    blocks: &mut [u8],
    bytes: usize,
    number: usize,
    centre: &[f32],
    residual: [f32; 2],
) {
    let start = blocks.len() - bytes;
    let norm = lane_norm(&mut blocks[start..], number % CODE_LANES);
    let mut old = [0; LANE_BYTES];
    old.copy_from_slice(norm);
    let inside = garlic_simd::dot(centre, centre);
    let [low, high] = residual.map(|r| r * r);
    let residual_squared = f32::from_le_bytes(old) - inside;
    if !(low..=high).contains(&residual_squared) {
        // In this order the expression does not panic, even for NaN.
        let fitted = inside + residual_squared.min(high).max(low);
        norm.copy_from_slice(&fitted.to_le_bytes());
    }
}

/// Copies one lane of blocks of `bytes` bytes to the lane `number` at the end of `to`.
pub(crate) fn copy_lane(from: &[u8], lane: usize, bytes: usize, number: usize, to: &mut Vec<u8>) {
    let source = &from[lane / CODE_LANES * bytes..][..bytes];
    let target = lane_block(bytes, number, to);
    for row in (0..bytes).step_by(ROW_BYTES) {
        let from = row + lane % CODE_LANES * LANE_BYTES;
        let to = row + number % CODE_LANES * LANE_BYTES;
        target[to..to + LANE_BYTES].copy_from_slice(&source[from..from + LANE_BYTES]);
    }
}

/// Appends the quantized centres of `count` bins, one value for each of `steps`.
pub(crate) fn decode_centres(
    blocks: &[u8],
    steps: &[f32],
    width: usize,
    count: usize,
    out: &mut Vec<f32>,
) {
    let blocks = blocks.chunks_exact(code_block_bytes(BIN_BITS, width));
    let lanes = blocks.flat_map(|block| (0..CODE_LANES).map(move |lane| (block, lane)));
    for (block, lane) in lanes.take(count) {
        out.extend(steps.iter().enumerate().map(|(j, s)| {
            let code = i32::from(block[j / 4 * ROW_BYTES + lane * LANE_BYTES + j % 4]);
            (code - zero_code(BIN_BITS)) as f32 * s
        }));
    }
}

/// The norms of all points in blocks of `bytes` bytes.
pub(crate) fn norms(blocks: &[u8], bytes: usize) -> impl Iterator<Item = f32> + '_ {
    let ends = blocks
        .chunks_exact(bytes)
        .map(move |block| &block[bytes - ROW_BYTES..]);
    let norms = ends.flat_map(|norms| norms.as_chunks::<LANE_BYTES>().0);
    norms.map(|norm| f32::from_le_bytes(*norm))
}
