//! 512-bit kernels over rows of 8-bit values with a step per block. Their sums are in the order of those of `reduce.rs`.

use std::arch::x86_64::*;

use super::reduce::{load, masked, tail_mask};
use crate::int8::{INT8_BLOCK, STEP_BYTES, step};

/// Lanes of a register, half a block.
const WIDE: usize = 16;

/// Sixteen codes times the step of their block.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn scaled(codes: __m128i, step: f32) -> __m512 {
    let wide = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes));
    _mm512_mul_ps(wide, _mm512_set1_ps(step))
}

/// Requires that `row` is a row of `query.len()` coordinates (checked by the caller).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(crate) unsafe fn l2_squared_int8(query: &[f32], row: &[u8]) -> f32 {
    let n = query.len();
    let (codes, steps) = row.split_at(n);
    let steps = steps.as_chunks::<STEP_BYTES>().0;
    let (pa, pb) = (query.as_ptr(), codes.as_ptr());
    let mut sums = [_mm512_setzero_ps(); 4];
    let mut i = 0;
    while i + 4 * WIDE <= n {
        for (p, s) in sums.iter_mut().enumerate() {
            let at = i + WIDE * p;
            // SAFETY: at + 16 <= i + 64 <= n, the length of both slices.
            let (x, y) = unsafe { (load(pa.add(at)), _mm_loadu_si128(pb.add(at).cast())) };
            let d = _mm512_sub_ps(x, scaled(y, step(steps[at / INT8_BLOCK])));
            *s = _mm512_fmadd_ps(d, d, *s);
        }
        i += 4 * WIDE;
    }
    while i + WIDE <= n {
        // SAFETY: i + 16 <= n, the length of both slices.
        let (x, y) = unsafe { (load(pa.add(i)), _mm_loadu_si128(pb.add(i).cast())) };
        let d = _mm512_sub_ps(x, scaled(y, step(steps[i / INT8_BLOCK])));
        sums[0] = _mm512_fmadd_ps(d, d, sums[0]);
        i += WIDE;
    }
    if i < n {
        // What is left lies in one block.
        let last = step(steps[i / INT8_BLOCK]);
        let (x, y) = if n >= WIDE {
            // The last sixteen, without those that are counted already.
            let mask = !tail_mask(WIDE - (n - i));
            // SAFETY: both slices have n >= 16 values.
            let (x, y) = unsafe {
                (
                    load(pa.add(n - WIDE)),
                    _mm_loadu_si128(pb.add(n - WIDE).cast()),
                )
            };
            let y = _mm512_maskz_mov_ps(mask, scaled(y, last));
            (_mm512_maskz_mov_ps(mask, x), y)
        } else {
            let mask = tail_mask(n - i);
            // SAFETY: the mask keeps the loads below n.
            let (x, y) = unsafe {
                (
                    masked(mask, pa.add(i)),
                    _mm_maskz_loadu_epi8(mask, pb.add(i).cast()),
                )
            };
            // A step that is no number, as in a damaged file, must not spread to the other lanes.
            (x, _mm512_maskz_mov_ps(mask, scaled(y, last)))
        };
        let d = _mm512_sub_ps(x, y);
        sums[1] = _mm512_fmadd_ps(d, d, sums[1]);
    }
    let total = _mm512_add_ps(
        _mm512_add_ps(sums[0], sums[1]),
        _mm512_add_ps(sums[2], sums[3]),
    );
    _mm512_reduce_add_ps(total)
}

/// Requires that `row` is a row of `out.len()` coordinates (checked by the caller).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(crate) unsafe fn widen_int8(row: &[u8], out: &mut [f32]) {
    let n = out.len();
    let (codes, steps) = row.split_at(n);
    let steps = steps.as_chunks::<STEP_BYTES>().0;
    let (from, to) = (codes.as_ptr(), out.as_mut_ptr());
    let mut i = 0;
    while i + WIDE <= n {
        // SAFETY: i + 16 <= n, the length of both slices.
        unsafe {
            let codes = _mm_loadu_si128(from.add(i).cast());
            _mm512_storeu_ps(to.add(i), scaled(codes, step(steps[i / INT8_BLOCK])));
        }
        i += WIDE;
    }
    if i < n {
        let mask = tail_mask(n - i);
        // SAFETY: the mask keeps load and store below n.
        unsafe {
            let codes = _mm_maskz_loadu_epi8(mask, from.add(i).cast());
            let wide = scaled(codes, step(steps[i / INT8_BLOCK]));
            _mm512_mask_storeu_ps(to.add(i), mask, wide);
        }
    }
}
