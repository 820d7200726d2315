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

/// Requires rows of a table of rows of `n` bytes, `n` values of `x`, and a result for each row (checked by the caller).
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) unsafe fn dots_bytes_at(
    table: &[u8],
    n: usize,
    x: &[i8],
    rows: &[u32],
    out: &mut [i32],
) {
    let (fours, rest) = rows.as_chunks::<4>();
    let (full, tail) = out.as_chunks_mut::<4>();
    for (rows, out) in fours.iter().zip(full) {
        // SAFETY: the caller's promise; `out` has four values.
        unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), rows_at(table, n, x, *rows)) };
    }
    // SAFETY: the caller's promise.
    let last = unsafe {
        match *rest {
            [a, b, c] => rows_at(table, n, x, [a, b, c]),
            [a, b] => rows_at(table, n, x, [a, b]),
            [a] => rows_at(table, n, x, [a]),
            _ => return,
        }
    };
    let mut values = [0i32; 4];
    // SAFETY: `values` has four.
    unsafe { _mm_storeu_si128(values.as_mut_ptr().cast(), last) };
    tail.copy_from_slice(&values[..tail.len()]);
}

/// The inner products of up to four rows, which share the loads of `x`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn rows_at<const N: usize>(table: &[u8], n: usize, x: &[i8], rows: [u32; N]) -> __m128i {
    let mut acc = [_mm256_setzero_si256(); 4];
    // SAFETY: the caller's promise: the rows lie within the table.
    let rows = unsafe { rows.map(|row| table.as_ptr().add(row as usize * n)) };
    let mut i = 0;
    while i + 16 <= n {
        // SAFETY: i + 16 <= n, the length of the rows and of `x`.
        unsafe {
            let v = _mm256_cvtepi8_epi16(_mm_loadu_si128(x.as_ptr().add(i).cast()));
            for r in 0..N {
                let row = _mm256_cvtepu8_epi16(_mm_loadu_si128(rows[r].add(i).cast()));
                acc[r] = _mm256_add_epi32(acc[r], _mm256_madd_epi16(row, v));
            }
        }
        i += 16;
    }
    let mut rest = [0i32; 4];
    for r in 0..N {
        for (j, v) in x.iter().enumerate().skip(i) {
            // SAFETY: j < n.
            rest[r] += i32::from(unsafe { *rows[r].add(j) }) * i32::from(*v);
        }
    }
    let pairs = _mm256_hadd_epi32(
        _mm256_hadd_epi32(acc[0], acc[1]),
        _mm256_hadd_epi32(acc[2], acc[3]),
    );
    let whole = _mm_add_epi32(
        _mm256_castsi256_si128(pairs),
        _mm256_extracti128_si256::<1>(pairs),
    );
    _mm_add_epi32(whole, _mm_setr_epi32(rest[0], rest[1], rest[2], rest[3]))
}
