//! Scans with `maddubs`: exact while codes stay below 128, because two products then fit sixteen bits.

use std::arch::x86_64::*;

use crate::codes::{CODE_LANES, CodeBits, CodeQuery, Estimate, ROW};

/// Adds the products of four bytes to every lane.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn accumulate(sums: __m256i, codes: __m256i, weights: __m256i) -> __m256i {
    let pairs = _mm256_maddubs_epi16(codes, weights);
    _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
}

/// Requires `N` blocks of `rows` rows and the norms, and the weights of all coordinates of a block.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn dots<const BITS: usize, const N: usize>(
    blocks: *const u8,
    rows: usize,
    weights: *const i8,
) -> [__m256i; N] {
    let stride = rows * ROW + ROW;
    let weights = weights.cast::<i32>();
    let nibble = _mm256_set1_epi8(0x0f);
    let mut sums = [_mm256_setzero_si256(); N];
    for r in 0..rows {
        // SAFETY: the row lies within its block, and as many groups of weights as it has codes for exist.
        unsafe {
            let row = |b: usize| _mm256_loadu_si256(blocks.add(b * stride + r * ROW).cast());
            let weight = |group: usize| _mm256_set1_epi32(weights.add(group).read_unaligned());
            if BITS == 8 {
                let w = weight(r);
                for (b, sum) in sums.iter_mut().enumerate() {
                    *sum = accumulate(*sum, row(b), w);
                }
            } else {
                let (w, v) = (weight(2 * r), weight(2 * r + 1));
                for (b, sum) in sums.iter_mut().enumerate() {
                    let bytes = row(b);
                    let low = _mm256_and_si256(bytes, nibble);
                    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), nibble);
                    // Four products of a code below 16 fit sixteen bits.
                    let fours = _mm256_add_epi16(
                        _mm256_maddubs_epi16(low, w),
                        _mm256_maddubs_epi16(high, v),
                    );
                    let wide = _mm256_madd_epi16(fours, _mm256_set1_epi16(1));
                    *sum = _mm256_add_epi32(*sum, wide);
                }
            }
        }
    }
    sums
}

/// Requires room for one estimate per lane.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn emit<const N: usize>(
    estimates: &[__m256; N],
    mut below: u32,
    first: u32,
    sink: *mut Estimate,
) -> usize {
    let mut values = [[0.0f32; CODE_LANES]; N];
    for (values, estimates) in values.iter_mut().zip(estimates) {
        // SAFETY: as many values as the vector has.
        unsafe { _mm256_storeu_ps(values.as_mut_ptr(), *estimates) };
    }
    let values = values.as_flattened();
    let mut count = 0;
    while below != 0 {
        let lane = below.trailing_zeros();
        below &= below - 1;
        let estimate = values[lane as usize % values.len()];
        // SAFETY: the caller's promise.
        unsafe {
            sink.add(count).write(Estimate {
                estimate,
                at: first + lane,
            });
        }
        count += 1;
    }
    count
}

crate::x86::codes::scan_codes!("avx2,fma,f16c");
