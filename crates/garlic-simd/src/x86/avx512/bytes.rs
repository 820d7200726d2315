//! 512-bit inner products of bytes with small whole numbers.

use std::arch::x86_64::*;

/// Rows that share the loads of a vector.
const BLOCK: usize = 8;
/// Vectors whose sums with eight rows fit the registers.
const VECTORS: usize = 3;

/// Requires `rows` and `xs` to hold rows of `n` values, and a result in `out` for each pair (checked by the caller).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(crate) unsafe fn dots_bytes(rows: &[i8], xs: &[u8], n: usize, out: &mut [i32]) {
    let (count, vectors) = (rows.len() / n, xs.len() / n);
    for first in (0..count).step_by(BLOCK) {
        let left = BLOCK.min(count - first);
        // The last row is repeated where a block is not full, and its results dropped.
        // SAFETY: row first + left - 1 exists.
        let block = unsafe {
            let row = |r: usize| rows.as_ptr().add((first + r.min(left - 1)) * n);
            std::array::from_fn(row)
        };
        let mut put = |vector: usize, values: __m256i| {
            let mut lanes = [0i32; BLOCK];
            // SAFETY: `lanes` has eight values.
            unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), values) };
            out[vector * count + first..][..left].copy_from_slice(&lanes[..left]);
        };
        let mut vector = 0;
        while vector < vectors {
            // SAFETY: the vectors exist, of n values as the rows are.
            unsafe {
                let x = |j: usize| xs.as_ptr().add((vector + j) * n);
                if vector + VECTORS <= vectors {
                    let values = few::<VECTORS>(block, std::array::from_fn(x), n);
                    for (j, values) in values.into_iter().enumerate() {
                        put(vector + j, values);
                    }
                    vector += VECTORS;
                } else {
                    put(vector, few(block, [x(0)], n)[0]);
                    vector += 1;
                }
            }
        }
    }
}

/// The sums of eight rows with `N` vectors, of `n` values each.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn few<const N: usize>(
    rows: [*const i8; BLOCK],
    xs: [*const u8; N],
    n: usize,
) -> [__m256i; N] {
    let mut acc = [[_mm512_setzero_si512(); BLOCK]; N];
    let mut i = 0;
    while i < n {
        // All 64, or what is left of them.
        let mask = u64::MAX >> (64 - (n - i).min(64));
        // SAFETY: the mask keeps the loads below n.
        unsafe {
            let v = xs.map(|x| _mm512_maskz_loadu_epi8(mask, x.add(i).cast()));
            for r in 0..BLOCK {
                let row = _mm512_maskz_loadu_epi8(mask, rows[r].add(i));
                for j in 0..N {
                    acc[j][r] = _mm512_dpbusd_epi32(acc[j][r], v[j], row);
                }
            }
        }
        i += 64;
    }
    acc.map(|acc| sums(acc))
}

/// Sums the lanes of every vector.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn sums(v: [__m512i; BLOCK]) -> __m256i {
    // Halves: row k to the left, row k + 4 to the right.
    let halves = |a: __m512i, b: __m512i| {
        let low = _mm512_shuffle_i32x4::<0b01_00_01_00>(a, b);
        _mm512_add_epi32(low, _mm512_shuffle_i32x4::<0b11_10_11_10>(a, b))
    };
    let pairs = |a: __m512i, b: __m512i| {
        _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b))
    };
    let left = pairs(halves(v[0], v[4]), halves(v[1], v[5]));
    let right = pairs(halves(v[2], v[6]), halves(v[3], v[7]));
    let quarters = _mm512_add_epi32(
        _mm512_unpacklo_epi64(left, right),
        _mm512_unpackhi_epi64(left, right),
    );
    let even = _mm512_shuffle_i32x4::<0b10_00_10_00>(quarters, quarters);
    let odd = _mm512_shuffle_i32x4::<0b11_01_11_01>(quarters, quarters);
    _mm256_add_epi32(_mm512_castsi512_si256(even), _mm512_castsi512_si256(odd))
}

/// Requires rows of a table of rows of `n` bytes, `n` values of `x`, and a result for each row (checked by the caller).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
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
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn rows_at<const N: usize>(table: &[u8], n: usize, x: &[i8], rows: [u32; N]) -> __m128i {
    let mut acc = [_mm512_setzero_si512(); 4];
    // SAFETY: the caller's promise: the rows lie within the table.
    let rows = unsafe { rows.map(|row| table.as_ptr().add(row as usize * n)) };
    let mut i = 0;
    while i < n {
        // All 64, or what is left of them.
        let mask = u64::MAX >> (64 - (n - i).min(64));
        // SAFETY: the mask keeps the loads below n.
        unsafe {
            let v = _mm512_maskz_loadu_epi8(mask, x.as_ptr().add(i));
            for r in 0..N {
                let row = _mm512_maskz_loadu_epi8(mask, rows[r].add(i).cast());
                acc[r] = _mm512_dpbusd_epi32(acc[r], row, v);
            }
        }
        i += 64;
    }
    sums_of_four(acc)
}

/// Sums the lanes of every vector.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn sums_of_four(v: [__m512i; 4]) -> __m128i {
    let pairs = |a: __m512i, b: __m512i| {
        _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b))
    };
    let (left, right) = (pairs(v[0], v[1]), pairs(v[2], v[3]));
    let quarters = _mm512_add_epi32(
        _mm512_unpacklo_epi64(left, right),
        _mm512_unpackhi_epi64(left, right),
    );
    let halves = _mm256_add_epi32(
        _mm512_castsi512_si256(quarters),
        _mm512_extracti64x4_epi64::<1>(quarters),
    );
    _mm_add_epi32(
        _mm256_castsi256_si128(halves),
        _mm256_extracti128_si256::<1>(halves),
    )
}
