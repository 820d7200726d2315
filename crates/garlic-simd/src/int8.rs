//! Vectors of 8-bit values with a common step for every 32 coordinates.
//!
//! A row is the values of all coordinates as `i8`, followed by the steps of its blocks as little-endian `bf16`, the upper
//! half of an `f32`. The step of a block is its largest magnitude over 127, rounded to the 8 significant bits of `bf16`.
//! A value has 7 bits, so its product with a step is exact in `f32`. As 2^-8 is less than half a step in 127, the largest
//! magnitude is always coded as 127. Encoding a decoded row therefore gives the same row.

use crate::level;

/// Coordinates that share a step. One large coordinate makes the others of its block coarse, not the whole vector.
pub const INT8_BLOCK: usize = 32;

/// Bytes of a step.
pub(crate) const STEP_BYTES: usize = 2;

/// The smallest step, far below distances that 32 bits can square. It is a power of two.
const MIN_STEP: f32 = f32::from_bits((127 - 100) << 23);

/// Largest magnitude of a code.
const LARGEST_CODE: f32 = 127.0;

/// Bytes of a row of `dim` coordinates.
pub const fn int8_row_bytes(dim: usize) -> usize {
    dim + STEP_BYTES * dim.div_ceil(INT8_BLOCK)
}

/// Encodes finite values as a row. Panics unless it has [`int8_row_bytes`].
pub fn encode_int8(values: &[f32], row: &mut [u8]) {
    // Adding this to a small number leaves the nearest whole number, ties to even, in the lowest bits.
    const SHIFT: f32 = (3 << 22) as f32;
    let expected = int8_row_bytes(values.len());
    assert_eq!(row.len(), expected, "a row of another length");
    let (codes, steps) = row.split_at_mut(values.len());
    let blocks = values
        .chunks(INT8_BLOCK)
        .zip(codes.chunks_mut(INT8_BLOCK))
        .zip(steps.as_chunks_mut::<STEP_BYTES>().0);
    for ((values, codes), bytes) in blocks {
        let largest = values.iter().fold(0.0f32, |most, v| most.max(v.abs()));
        let step = nearest_bf16(largest / LARGEST_CODE).max(MIN_STEP);
        *bytes = ((step.to_bits() >> 16) as u16).to_le_bytes();
        for (code, v) in codes.iter_mut().zip(values) {
            *code = (v / step + SHIFT).to_bits() as u8;
        }
    }
}

/// The number with 8 significant bits that is nearest to a finite number, ties to even.
fn nearest_bf16(value: f32) -> f32 {
    let bits = value.to_bits();
    let even = (bits >> 16) & 1;
    f32::from_bits((bits + 0x7fff + even) & 0xffff_0000)
}

/// The steps of a row of `dim` coordinates. Panics if the row is shorter than `dim`.
pub fn int8_steps(row: &[u8], dim: usize) -> impl Iterator<Item = f32> + '_ {
    let steps = row[dim..].as_chunks::<STEP_BYTES>().0;
    steps.iter().map(|bytes| step(*bytes))
}

/// A step, given as its bytes.
#[inline(always)]
pub(crate) fn step(bytes: [u8; STEP_BYTES]) -> f32 {
    f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)
}

/// The value of a code.
#[inline(always)]
pub(crate) fn value(code: u8, step: f32) -> f32 {
    f32::from(code as i8) * step
}

/// Decodes a row, exact. Panics unless it has [`int8_row_bytes`].
#[inline]
pub fn widen_int8(row: &[u8], out: &mut [f32]) {
    let expected = int8_row_bytes(out.len());
    assert_eq!(row.len(), expected, "a row of another length");
    dispatch!(level(), widen_int8(row, out));
}

/// Squared Euclidean distance to a row: bit for bit that of [`l2_squared`](crate::l2_squared) to the decoded values.
/// Panics unless the row has [`int8_row_bytes`].
#[inline]
pub fn l2_squared_int8(query: &[f32], row: &[u8]) -> f32 {
    let expected = int8_row_bytes(query.len());
    assert_eq!(row.len(), expected, "a row of another length");
    dispatch!(level(), l2_squared_int8(query, row))
}
