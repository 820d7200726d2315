//! 256-bit sums over two vectors, the second in any stored type.

use std::arch::x86_64::*;

use crate::f16_to_f32;

/// Sums the eight lanes in a fixed order.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn sum(v: __m256) -> f32 {
    let half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
    let quarter = _mm_add_ps(half, _mm_movehl_ps(half, half));
    _mm_cvtss_f32(_mm_add_ss(quarter, _mm_shuffle_ps::<1>(quarter, quarter)))
}

/// Eight values behind `p`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn load(p: *const f32) -> __m256 {
    // SAFETY: the caller's promise.
    unsafe { _mm256_loadu_ps(p) }
}

/// Eight bytes behind `p`, widened.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn load_u8(p: *const u8) -> __m256 {
    // SAFETY: the caller's promise.
    let bytes = unsafe { _mm_loadl_epi64(p.cast()) };
    _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes))
}

/// Eight halves behind `p`, widened.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn load_f16(p: *const u16) -> __m256 {
    // SAFETY: the caller's promise.
    _mm256_cvtph_ps(unsafe { _mm_loadu_si128(p.cast()) })
}

macro_rules! reduction {
    ($name:ident, $stored:ty, $load:ident, $one:expr, $step:expr, $tail:expr) => {
        /// Requires `a.len() == b.len()` (checked by the caller).
        #[target_feature(enable = "avx2,fma,f16c")]
        pub(crate) unsafe fn $name(a: &[f32], b: &[$stored]) -> f32 {
            let n = a.len();
            let mut sums = [_mm256_setzero_ps(); 4];
            let mut i = 0;
            while i + 32 <= n {
                for (p, s) in sums.iter_mut().enumerate() {
                    // SAFETY: i + 8 p + 8 <= i + 32 <= n, the length of both slices.
                    let (x, y) = unsafe {
                        (
                            load(a.as_ptr().add(i + 8 * p)),
                            $load(b.as_ptr().add(i + 8 * p)),
                        )
                    };
                    *s = $step(x, y, *s);
                }
                i += 32;
            }
            while i + 8 <= n {
                // SAFETY: i + 8 <= n, the length of both slices.
                let (x, y) = unsafe { (load(a.as_ptr().add(i)), $load(b.as_ptr().add(i))) };
                sums[0] = $step(x, y, sums[0]);
                i += 8;
            }
            let total = _mm256_add_ps(
                _mm256_add_ps(sums[0], sums[1]),
                _mm256_add_ps(sums[2], sums[3]),
            );
            let rest = a[i..].iter().zip(&b[i..]);
            let rest: f32 = rest.map(|(x, y)| $tail(*x, $one(*y))).sum();
            sum(total) + rest
        }
    };
    (distance $name:ident, $stored:ty, $load:ident, $one:expr) => {
        reduction!(
            $name,
            $stored,
            $load,
            $one,
            |x, y, s| {
                let d = _mm256_sub_ps(x, y);
                _mm256_fmadd_ps(d, d, s)
            },
            |x: f32, y: f32| (x - y) * (x - y)
        );
    };
}

reduction!(distance l2_squared, f32, load, |y: f32| y);
reduction!(distance l2_squared_u8, u8, load_u8, |y: u8| f32::from(y));
reduction!(distance l2_squared_f16, u16, load_f16, f16_to_f32);
reduction!(
    dot,
    f32,
    load,
    |y: f32| y,
    |x, y, s| _mm256_fmadd_ps(x, y, s),
    |x: f32, y: f32| x * y
);
