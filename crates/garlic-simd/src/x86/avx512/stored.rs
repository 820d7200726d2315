//! 512-bit kernels over vectors in their stored type.

use std::arch::x86_64::*;

use super::reduce::{load_f16, load_u8, masked_f16, masked_u8, tail_mask};

/// Adds the squares of the differences of 64 bytes to two groups of sums.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn squares(x: __m512i, y: __m512i, sums: &mut [__m512i; 2]) {
    let zero = _mm512_setzero_si512();
    let gap = _mm512_sub_epi8(_mm512_max_epu8(x, y), _mm512_min_epu8(x, y));
    let (low, high) = (
        _mm512_unpacklo_epi8(gap, zero),
        _mm512_unpackhi_epi8(gap, zero),
    );
    sums[0] = _mm512_dpwssd_epi32(sums[0], low, low);
    sums[1] = _mm512_dpwssd_epi32(sums[1], high, high);
}

/// Requires `a.len() == b.len()`, at most 65536 (checked by the caller).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(crate) unsafe fn l2_squared_u8_u8(a: &[u8], b: &[u8]) -> u32 {
    let n = a.len();
    let (pa, pb) = (a.as_ptr().cast::<i8>(), b.as_ptr().cast::<i8>());
    let mut sums = [_mm512_setzero_si512(); 2];
    let mut i = 0;
    while i + 64 <= n {
        // SAFETY: i + 64 <= n, the length of both slices.
        let (x, y) = unsafe { (_mm512_loadu_epi8(pa.add(i)), _mm512_loadu_epi8(pb.add(i))) };
        squares(x, y, &mut sums);
        i += 64;
    }
    if i < n && n >= 64 {
        // The last 64, without those that are counted already. A masked load at `i` would wait for the cache line behind
        // the vector, which nobody has asked for.
        let mask = !0u64 << (64 - (n - i));
        // SAFETY: both slices have n >= 64 bytes.
        let (x, y) = unsafe {
            (
                _mm512_loadu_epi8(pa.add(n - 64)),
                _mm512_loadu_epi8(pb.add(n - 64)),
            )
        };
        let (x, y) = (
            _mm512_maskz_mov_epi8(mask, x),
            _mm512_maskz_mov_epi8(mask, y),
        );
        squares(x, y, &mut sums);
    } else if i < n {
        let mask = (1u64 << (n - i)) - 1;
        // SAFETY: the mask keeps the loads below n.
        let (x, y) = unsafe {
            (
                _mm512_maskz_loadu_epi8(mask, pa.add(i)),
                _mm512_maskz_loadu_epi8(mask, pb.add(i)),
            )
        };
        squares(x, y, &mut sums);
    }
    _mm512_reduce_add_epi32(_mm512_add_epi32(sums[0], sums[1])) as u32
}

macro_rules! widen {
    ($name:ident, $stored:ty, $load:ident, $masked:ident) => {
        /// Requires `values.len() == out.len()` (checked by the caller).
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
        pub(crate) unsafe fn $name(values: &[$stored], out: &mut [f32]) {
            let n = values.len();
            let (from, to) = (values.as_ptr(), out.as_mut_ptr());
            let mut i = 0;
            while i + 16 <= n {
                // SAFETY: i + 16 <= n, the length of both slices.
                unsafe { _mm512_storeu_ps(to.add(i), $load(from.add(i))) };
                i += 16;
            }
            if i < n {
                let mask = tail_mask(n - i);
                // SAFETY: the mask keeps load and store below n.
                unsafe { _mm512_mask_storeu_ps(to.add(i), mask, $masked(mask, from.add(i))) };
            }
        }
    };
}

widen!(widen_u8, u8, load_u8, masked_u8);
widen!(widen_f16, u16, load_f16, masked_f16);
