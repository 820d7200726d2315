//! 512-bit sums over two vectors, the second in any stored type.

use std::arch::x86_64::*;

/// Mask of the first `n` lanes, `n` < 16.
#[inline]
pub(super) fn tail_mask(n: usize) -> __mmask16 {
    (1u16 << n) - 1
}

/// The values behind `p` that the mask keeps, zero elsewhere.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) unsafe fn masked(mask: __mmask16, p: *const f32) -> __m512 {
    // SAFETY: the caller's promise; masked lanes are not touched.
    unsafe { _mm512_maskz_loadu_ps(mask, p) }
}

/// The bytes behind `p` that the mask keeps, widened.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) unsafe fn masked_u8(mask: __mmask16, p: *const u8) -> __m512 {
    // SAFETY: as above.
    let bytes = unsafe { _mm_maskz_loadu_epi8(mask, p.cast()) };
    _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))
}

/// The halves behind `p` that the mask keeps, widened.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) unsafe fn masked_f16(mask: __mmask16, p: *const u16) -> __m512 {
    // SAFETY: as above.
    _mm512_cvtph_ps(unsafe { _mm256_maskz_loadu_epi16(mask, p.cast()) })
}

/// Sixteen values behind `p`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) unsafe fn load(p: *const f32) -> __m512 {
    // SAFETY: the caller's promise.
    unsafe { _mm512_loadu_ps(p) }
}

/// Sixteen bytes behind `p`, widened.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) unsafe fn load_u8(p: *const u8) -> __m512 {
    // SAFETY: the caller's promise.
    let bytes = unsafe { _mm_loadu_si128(p.cast()) };
    _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))
}

/// Sixteen halves behind `p`, widened.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) unsafe fn load_f16(p: *const u16) -> __m512 {
    // SAFETY: the caller's promise.
    _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(p.cast()) })
}

macro_rules! reduction {
    ($name:ident, $stored:ty, $load:ident, $masked:ident, $step:expr) => {
        /// Requires `a.len() == b.len()` (checked by the caller).
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
        pub(crate) unsafe fn $name(a: &[f32], b: &[$stored]) -> f32 {
            let n = a.len();
            let (pa, pb) = (a.as_ptr(), b.as_ptr());
            let mut sums = [_mm512_setzero_ps(); 4];
            let mut i = 0;
            while i + 64 <= n {
                for (p, s) in sums.iter_mut().enumerate() {
                    // SAFETY: i + 16 p + 16 <= i + 64 <= n, the length of both slices.
                    let (x, y) = unsafe { (load(pa.add(i + 16 * p)), $load(pb.add(i + 16 * p))) };
                    *s = $step(x, y, *s);
                }
                i += 64;
            }
            while i + 16 <= n {
                // SAFETY: i + 16 <= n, the length of both slices.
                let (x, y) = unsafe { (load(pa.add(i)), $load(pb.add(i))) };
                sums[0] = $step(x, y, sums[0]);
                i += 16;
            }
            if i < n && n >= 16 {
                // The last sixteen, without those that are counted already. A masked load at `i` would wait for the
                // cache line behind the vector, which nobody has asked for.
                let mask = !tail_mask(16 - (n - i));
                // SAFETY: both slices have n >= 16 values.
                let (x, y) = unsafe { (load(pa.add(n - 16)), $load(pb.add(n - 16))) };
                let (x, y) = (_mm512_maskz_mov_ps(mask, x), _mm512_maskz_mov_ps(mask, y));
                sums[1] = $step(x, y, sums[1]);
            } else if i < n {
                let mask = tail_mask(n - i);
                // SAFETY: the mask keeps the loads below n.
                let (x, y) = unsafe { (masked(mask, pa.add(i)), $masked(mask, pb.add(i))) };
                sums[1] = $step(x, y, sums[1]);
            }
            let total = _mm512_add_ps(
                _mm512_add_ps(sums[0], sums[1]),
                _mm512_add_ps(sums[2], sums[3]),
            );
            _mm512_reduce_add_ps(total)
        }
    };
    (distance $name:ident, $stored:ty, $load:ident, $masked:ident) => {
        reduction!($name, $stored, $load, $masked, |x, y, s| {
            let d = _mm512_sub_ps(x, y);
            _mm512_fmadd_ps(d, d, s)
        });
    };
}

reduction!(distance l2_squared, f32, load, masked);
reduction!(distance l2_squared_u8, u8, load_u8, masked_u8);
reduction!(distance l2_squared_f16, u16, load_f16, masked_f16);
reduction!(dot, f32, load, masked, |x, y, s| _mm512_fmadd_ps(x, y, s));
