//! Distances to vectors in the type they are stored in, and conversions from it.

use crate::level;

/// Squared Euclidean distance to a vector of bytes: bit for bit that of [`l2_squared`](crate::l2_squared) to the
/// same values as f32. Panics when the lengths differ.
#[inline]
pub fn l2_squared_u8(query: &[f32], v: &[u8]) -> f32 {
    assert_eq!(query.len(), v.len(), "vectors of different length");
    dispatch!(level(), l2_squared_u8(query, v))
}

/// Squared Euclidean distance to a vector of IEEE half-precision values, given as their bits: bit for bit that of
/// [`l2_squared`](crate::l2_squared) to the same values as f32. Panics when the lengths differ.
#[inline]
pub fn l2_squared_f16(query: &[f32], v: &[u16]) -> f32 {
    assert_eq!(query.len(), v.len(), "vectors of different length");
    dispatch!(level(), l2_squared_f16(query, v))
}

/// Longest vectors that [`l2_squared_u8_u8`] takes: the largest distance still fits 32 bits.
pub const MAX_U8_LENGTH: usize = 65_536;

/// Squared Euclidean distance of two vectors of bytes, exact.
///
/// Panics when the lengths differ or exceed [`MAX_U8_LENGTH`].
#[inline]
pub fn l2_squared_u8_u8(a: &[u8], b: &[u8]) -> u32 {
    assert_eq!(a.len(), b.len(), "vectors of different length");
    assert!(a.len() <= MAX_U8_LENGTH, "vectors too long for 32-bit sums");
    dispatch!(level(), l2_squared_u8_u8(a, b))
}

/// Bytes as f32. Panics when the lengths differ.
#[inline]
pub fn widen_u8(values: &[u8], out: &mut [f32]) {
    assert_eq!(values.len(), out.len(), "vectors of different length");
    dispatch!(level(), widen_u8(values, out));
}

/// The bits of IEEE half-precision values as f32, exact. Panics when the lengths differ.
#[inline]
pub fn widen_f16(values: &[u16], out: &mut [f32]) {
    assert_eq!(values.len(), out.len(), "vectors of different length");
    dispatch!(level(), widen_f16(values, out));
}

/// The value of an IEEE half-precision number, given as its bits. Exact; a NaN stays one and becomes quiet.
#[inline]
pub fn f16_to_f32(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let rest = u32::from(half & 0x7fff);
    let magnitude = match rest {
        // Subnormal: `rest` units of 2^-24, which an f32 holds exactly.
        0..0x0400 => (rest as f32 * f32::from_bits(0x3380_0000)).to_bits(),
        // The exponent moves from bias 15 to bias 127.
        0x0400..0x7c00 => (rest << 13) + (112 << 23),
        0x7c00 => 0x7f80_0000,
        _ => 0x7fc0_0000 | (rest << 13),
    };
    f32::from_bits(sign | magnitude)
}

/// The bits of the IEEE half-precision number nearest to `value`, ties to even. Values from 65520 on become
/// infinite; a NaN stays one and becomes quiet.
#[inline]
pub fn f32_to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let rest = bits & 0x7fff_ffff;
    let magnitude = match rest {
        // Below 2^-14, the least normal half: adding 0.5, whose unit is 2^-24, rounds to the units of a subnormal.
        0..0x3880_0000 => (f32::from_bits(rest) + 0.5).to_bits() - 0x3f00_0000,
        // Half of the last kept place, less one unless that place is odd; a carry moves the exponent on, and
        // from 65520 on it arrives at infinity.
        0x3880_0000..0x4780_0000 => {
            let even = (rest >> 13) & 1;
            (rest - (112 << 23) + 0x0fff + even) >> 13
        }
        0x4780_0000..=0x7f80_0000 => 0x7c00,
        _ => 0x7e00 | ((rest >> 13) & 0x01ff),
    };
    sign | magnitude as u16
}
