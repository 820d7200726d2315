//! Codes: quantized coordinates in the frame of a cell, with 8 or 4 bits each.
//!
//! In: coordinates in a frame. Out: blocks of codes with the squared distance of each point from the cell mean, and,
//! for a query, the weights that turn codes into estimates of squared distances. `fit` chooses the steps, `encode`
//! writes blocks, `query` prepares a query, `rows` has the codes of the neighbour graph. The kernels are in `garlic-simd`. The code of a coordinate v is `zero +
//! round(v / step)`, clamped to the range of the bits. A block holds the codes of
//! [`CODE_LANES`](garlic_simd::CODE_LANES) points, coordinate by coordinate, and ends with their norms.

mod encode;
mod fit;
mod query;
mod rows;

pub(crate) use encode::{
    clamp_norm, copy_lane, decode_centres, encode, encode_lane, lane_block, norms,
};
pub(crate) use fit::{Steps, fit_steps};
pub(crate) use query::{Probe, probe};
pub(crate) use rows::{RowQuantizer, RowQuery};

use garlic_simd::CodeBits;

/// Codes of bin centres are always of this size: there are few of them.
pub(crate) const BIN_BITS: CodeBits = CodeBits::Eight;

/// The code that stands for zero.
pub(crate) const fn zero_code(bits: CodeBits) -> i32 {
    match bits {
        CodeBits::Eight => 64,
        CodeBits::Four => 8,
    }
}

/// Steps from the code of zero to the farthest code that 8 bits have on both sides.
const HALF_RANGE: f32 = 63.0;

/// Coordinates of a code for frames of `rank` axes: whole groups of eight.
pub(crate) fn code_width(rank: usize) -> usize {
    rank.max(1).next_multiple_of(8)
}

/// Rounding of squared lengths, relative to the squared distance from the mean.
pub(crate) const ROUNDING: f32 = 1e-5;

/// The code of a coordinate.
pub(crate) fn code(bits: CodeBits, value: f32, step: f32) -> i32 {
    let steps = if step > 0.0 {
        (value / step).round() as i32
    } else {
        0
    };
    let code = zero_code(bits).saturating_add(steps);
    code.clamp(0, i32::from(bits.largest()))
}

/// The coordinate that a code stands for.
pub(crate) fn decoded(bits: CodeBits, value: f32, step: f32) -> f32 {
    (code(bits, value, step) - zero_code(bits)) as f32 * step
}

/// Squared length of a centre, or of its code if the centre exceeds the range of the code.
pub(crate) fn coded_length(centre: &[f32], steps: &[f32]) -> f32 {
    let fits = |(v, s): (&f32, &f32)| v.abs() <= (HALF_RANGE + 0.5) * s;
    if centre.iter().zip(steps).all(fits) {
        return garlic_simd::dot(centre, centre);
    }
    let coded = centre.iter().zip(steps);
    let coded = coded.map(|(v, s)| decoded(BIN_BITS, *v, *s));
    coded.map(|v| v * v).sum()
}
