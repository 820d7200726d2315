//! 256-bit inner products of bytes with small whole numbers.

use std::arch::x86_64::*;

/// Requires `rows` and `xs` to hold rows of `n` values, and a result in `out` for each pair (checked by the caller).
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) unsafe fn dots_bytes(rows: &[i8], xs: &[u8], n: usize, out: &mut [i32]) {
    let count = rows.len() / n;
    for (x, out) in xs.chunks_exact(n).zip(out.chunks_exact_mut(count.max(1))) {
        for (row, value) in rows.chunks_exact(n).zip(out) {
            *value = dot(row, x);
        }
    }
}

/// Products of bytes with bytes are summed in pairs of 16 bits each, which cannot overflow 32.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn dot(row: &[i8], x: &[u8]) -> i32 {
    let n = row.len().min(x.len());
    let mut sums = _mm256_setzero_si256();
    let mut i = 0;
    while i + 16 <= n {
        // SAFETY: i + 16 <= n, the length of both slices.
        let (r, x) = unsafe {
            (
                _mm_loadu_si128(row.as_ptr().add(i).cast()),
                _mm_loadu_si128(x.as_ptr().add(i).cast()),
            )
        };
        let products = _mm256_madd_epi16(_mm256_cvtepi8_epi16(r), _mm256_cvtepu8_epi16(x));
        sums = _mm256_add_epi32(sums, products);
        i += 16;
    }
    let mut lanes = [0i32; 8];
    // SAFETY: `lanes` has 32 bytes.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sums) };
    let rest = row[i..].iter().zip(&x[i..]);
    let rest: i32 = rest.map(|(r, x)| i32::from(*r) * i32::from(*x)).sum();
    lanes.iter().sum::<i32>() + rest
}
