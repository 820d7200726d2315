//! 256-bit kernels over vectors in their stored type.

use std::arch::x86_64::*;

use super::reduce::{load_f16, load_u8};
use crate::f16_to_f32;

/// Requires `a.len() == b.len()`, at most 65536 (checked by the caller).
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) unsafe fn l2_squared_u8_u8(a: &[u8], b: &[u8]) -> u32 {
    let n = a.len();
    let zero = _mm256_setzero_si256();
    let mut sums = [zero; 2];
    let mut i = 0;
    while i + 32 <= n {
        // SAFETY: i + 32 <= n, the length of both slices.
        let (x, y) = unsafe {
            (
                _mm256_loadu_si256(a.as_ptr().add(i).cast()),
                _mm256_loadu_si256(b.as_ptr().add(i).cast()),
            )
        };
        let gap = _mm256_sub_epi8(_mm256_max_epu8(x, y), _mm256_min_epu8(x, y));
        let (low, high) = (
            _mm256_unpacklo_epi8(gap, zero),
            _mm256_unpackhi_epi8(gap, zero),
        );
        sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(low, low));
        sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(high, high));
        i += 32;
    }
    let mut lanes = [0u32; 8];
    // SAFETY: `lanes` has 32 bytes.
    unsafe {
        _mm256_storeu_si256(
            lanes.as_mut_ptr().cast(),
            _mm256_add_epi32(sums[0], sums[1]),
        )
    };
    let rest = a[i..].iter().zip(&b[i..]);
    lanes.iter().sum::<u32>()
        + rest
            .map(|(x, y)| u32::from(x.abs_diff(*y)).pow(2))
            .sum::<u32>()
}

macro_rules! widen {
    ($name:ident, $stored:ty, $load:ident, $one:expr) => {
        /// Requires `values.len() == out.len()` (checked by the caller).
        #[target_feature(enable = "avx2,fma,f16c")]
        pub(crate) unsafe fn $name(values: &[$stored], out: &mut [f32]) {
            let mut i = 0;
            while i + 8 <= values.len() {
                // SAFETY: i + 8 <= the length of both slices.
                unsafe {
                    let wide = $load(values.as_ptr().add(i));
                    _mm256_storeu_ps(out.as_mut_ptr().add(i), wide);
                }
                i += 8;
            }
            for (to, from) in out[i..].iter_mut().zip(&values[i..]) {
                *to = $one(*from);
            }
        }
    };
}

widen!(widen_u8, u8, load_u8, |v: u8| f32::from(v));
widen!(widen_f16, u16, load_f16, f16_to_f32);
