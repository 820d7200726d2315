//! 256-bit kernels over rows of 8-bit values with a step per block. Their sums are in the order of those of `reduce.rs`.

use std::arch::x86_64::*;

use super::reduce::sum;
use crate::int8::{INT8_BLOCK, STEP_BYTES, step, value};

/// Eight codes behind `p`, times the step of their block.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn load(p: *const u8, step: __m256) -> __m256 {
    // SAFETY: the caller's promise.
    let codes = unsafe { _mm_loadl_epi64(p.cast()) };
    _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)), step)
}

/// Requires that `row` is a row of `query.len()` coordinates (checked by the caller).
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) unsafe fn l2_squared_int8(query: &[f32], row: &[u8]) -> f32 {
    let n = query.len();
    let (codes, steps) = row.split_at(n);
    let steps = steps.as_chunks::<STEP_BYTES>().0;
    let mut sums = [_mm256_setzero_ps(); 4];
    let mut i = 0;
    while i + INT8_BLOCK <= n {
        let scale = _mm256_set1_ps(step(steps[i / INT8_BLOCK]));
        for (p, s) in sums.iter_mut().enumerate() {
            // SAFETY: i + 8 p + 8 <= i + 32 <= n, the length of both slices.
            let (x, y) = unsafe {
                (
                    _mm256_loadu_ps(query.as_ptr().add(i + 8 * p)),
                    load(codes.as_ptr().add(i + 8 * p), scale),
                )
            };
            let d = _mm256_sub_ps(x, y);
            *s = _mm256_fmadd_ps(d, d, *s);
        }
        i += INT8_BLOCK;
    }
    let last = steps.get(i / INT8_BLOCK).map_or(0.0, |bytes| step(*bytes));
    while i + 8 <= n {
        // SAFETY: i + 8 <= n, the length of both slices.
        let (x, y) = unsafe {
            (
                _mm256_loadu_ps(query.as_ptr().add(i)),
                load(codes.as_ptr().add(i), _mm256_set1_ps(last)),
            )
        };
        let d = _mm256_sub_ps(x, y);
        sums[0] = _mm256_fmadd_ps(d, d, sums[0]);
        i += 8;
    }
    let total = _mm256_add_ps(
        _mm256_add_ps(sums[0], sums[1]),
        _mm256_add_ps(sums[2], sums[3]),
    );
    let rest = query[i..].iter().zip(&codes[i..]);
    let squares = rest.map(|(x, code)| {
        let d = x - value(*code, last);
        d * d
    });
    sum(total) + squares.sum::<f32>()
}

/// Requires that `row` is a row of `out.len()` coordinates (checked by the caller).
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) unsafe fn widen_int8(row: &[u8], out: &mut [f32]) {
    let (codes, steps) = row.split_at(out.len());
    let blocks = codes.chunks(INT8_BLOCK).zip(out.chunks_mut(INT8_BLOCK));
    for ((codes, out), bytes) in blocks.zip(steps.as_chunks::<STEP_BYTES>().0) {
        let step = step(*bytes);
        let mut i = 0;
        while i + 8 <= codes.len() {
            // SAFETY: i + 8 <= the length of both slices, which are equally long.
            unsafe {
                let wide = load(codes.as_ptr().add(i), _mm256_set1_ps(step));
                _mm256_storeu_ps(out.as_mut_ptr().add(i), wide);
            }
            i += 8;
        }
        for (to, code) in out[i..].iter_mut().zip(&codes[i..]) {
            *to = value(*code, step);
        }
    }
}
