//! Rows of 8-bit values with a step per block.

use super::reduce::{PARTS, square};
use crate::int8::{INT8_BLOCK, int8_steps, value};

pub(crate) fn widen_int8(row: &[u8], out: &mut [f32]) {
    let dim = out.len();
    let codes = row[..dim].chunks(INT8_BLOCK);
    let blocks = out.chunks_mut(INT8_BLOCK).zip(codes);
    for ((out, codes), step) in blocks.zip(int8_steps(row, dim)) {
        for (to, code) in out.iter_mut().zip(codes) {
            *to = value(*code, step);
        }
    }
}

/// A block has a multiple of [`PARTS`] coordinates, so the sums are those of `l2_squared`.
pub(crate) fn l2_squared_int8(query: &[f32], row: &[u8]) -> f32 {
    let dim = query.len();
    let mut sums = [0.0f32; PARTS];
    let codes = row[..dim].chunks(INT8_BLOCK);
    let blocks = query.chunks(INT8_BLOCK).zip(codes);
    for ((query, codes), step) in blocks.zip(int8_steps(row, dim)) {
        for (x, codes) in query.chunks(PARTS).zip(codes.chunks(PARTS)) {
            for ((sum, x), code) in sums.iter_mut().zip(x).zip(codes) {
                *sum += square(x - value(*code, step));
            }
        }
    }
    sums.iter().sum()
}
