//! 256-bit sums of one vector with many rows.

use std::arch::x86_64::*;

/// Rows that share the loads of the vector; their sums are enough to keep the multiply-adds busy.
const BLOCK: usize = 8;

/// Sums the lanes of every vector, all in the same order.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn sums(v: [__m256; BLOCK]) -> __m256 {
    let pairs =
        |a: __m256, b: __m256| _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    let fours = |a: __m256, b: __m256| {
        _mm256_add_ps(
            _mm256_shuffle_ps::<0b01_00_01_00>(a, b),
            _mm256_shuffle_ps::<0b11_10_11_10>(a, b),
        )
    };
    let left = fours(pairs(v[0], v[1]), pairs(v[2], v[3]));
    let right = fours(pairs(v[4], v[5]), pairs(v[6], v[7]));
    _mm256_add_ps(
        _mm256_permute2f128_ps::<0x20>(left, right),
        _mm256_permute2f128_ps::<0x31>(left, right),
    )
}

/// Mask of the first `n` lanes, `n` <= 8.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn first_lanes(n: usize) -> __m256i {
    let lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), lane)
}

macro_rules! rows {
    ($name:ident, $block:ident, $few:ident, $step:expr) => {
        /// Requires `rows.len() == out.len() * x.len()` (checked by the caller).
        #[target_feature(enable = "avx2,fma,f16c")]
        pub(crate) unsafe fn $name(rows: &[f32], x: &[f32], out: &mut [f32]) {
            let n = x.len();
            let mut first = rows.as_ptr();
            let (full, rest) = out.as_chunks_mut::<BLOCK>();
            for out in full {
                // SAFETY: eight rows from `first` on exist, as do eight results.
                unsafe {
                    let values = $block(std::array::from_fn(|r| first.add(r * n)), x);
                    _mm256_storeu_ps(out.as_mut_ptr(), values);
                    first = first.add(BLOCK * n);
                }
            }
            if !rest.is_empty() {
                // The last row is repeated and the results dropped, so that the order of the additions never
                // depends on the number of rows.
                // SAFETY: `rest.len()` rows from `first` on exist.
                let values = unsafe {
                    let row = |r: usize| first.add(r.min(rest.len() - 1) * n);
                    $block(std::array::from_fn(row), x)
                };
                let kept = first_lanes(rest.len());
                // SAFETY: the mask keeps the store below the length of `rest`.
                unsafe { _mm256_maskstore_ps(rest.as_mut_ptr(), kept, values) };
            }
        }

        /// Requires rows of `x.len()` values.
        #[inline]
        #[target_feature(enable = "avx2,fma,f16c")]
        unsafe fn $block(rows: [*const f32; BLOCK], x: &[f32]) -> __m256 {
            // SAFETY: the caller's promise.
            unsafe { $few(rows, [x.as_ptr()], x.len())[0] }
        }

        /// The sums of eight rows with `N` vectors, of `n` values each. One sum is made in one order, whatever N.
        #[inline]
        #[target_feature(enable = "avx2,fma,f16c")]
        unsafe fn $few<const N: usize>(
            rows: [*const f32; BLOCK],
            xs: [*const f32; N],
            n: usize,
        ) -> [__m256; N] {
            let mut acc = [[_mm256_setzero_ps(); BLOCK]; N];
            let mut i = 0;
            while i + 8 <= n {
                // SAFETY: i + 8 <= n, the length of every vector and of every row.
                unsafe {
                    let v = xs.map(|x| _mm256_loadu_ps(x.add(i)));
                    for r in 0..BLOCK {
                        let row = _mm256_loadu_ps(rows[r].add(i));
                        for j in 0..N {
                            acc[j][r] = $step(row, v[j], acc[j][r]);
                        }
                    }
                }
                i += 8;
            }
            if i < n {
                let mask = first_lanes(n - i);
                // SAFETY: the mask keeps the loads below n.
                unsafe {
                    let v = xs.map(|x| _mm256_maskload_ps(x.add(i), mask));
                    for r in 0..BLOCK {
                        let row = _mm256_maskload_ps(rows[r].add(i), mask);
                        for j in 0..N {
                            acc[j][r] = $step(row, v[j], acc[j][r]);
                        }
                    }
                }
            }
            acc.map(|acc| sums(acc))
        }
    };
}

rows!(dots, dots_block, dots_few, |x, y, s| _mm256_fmadd_ps(
    x, y, s
));
rows!(
    l2_squared_rows,
    l2_squared_block,
    l2_squared_few,
    |x, y, s| {
        let d = _mm256_sub_ps(x, y);
        _mm256_fmadd_ps(d, d, s)
    }
);

/// Vectors whose sums with eight rows fit the registers.
const VECTORS: usize = 1;

/// Requires `xs` to hold vectors of `n` values, and a result in `out` for each of them with each row (checked by
/// the caller).
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) unsafe fn dots_many(rows: &[f32], xs: &[f32], n: usize, out: &mut [f32]) {
    let (count, vectors) = (rows.len() / n, xs.len() / n);
    for first in (0..count).step_by(BLOCK) {
        let left = BLOCK.min(count - first);
        // The last row is repeated where a block is not full, and its results dropped.
        // SAFETY: row first + left - 1 exists.
        let block = unsafe {
            let row = |r: usize| rows.as_ptr().add((first + r.min(left - 1)) * n);
            std::array::from_fn(row)
        };
        let mut put = |vector: usize, values: __m256| {
            let mut lanes = [0.0f32; BLOCK];
            // SAFETY: `lanes` has eight values.
            unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), values) };
            out[vector * count + first..][..left].copy_from_slice(&lanes[..left]);
        };
        let mut vector = 0;
        while vector < vectors {
            // SAFETY: the vectors exist, of n values as the rows are.
            unsafe {
                let x = |j: usize| xs.as_ptr().add((vector + j) * n);
                if vector + VECTORS <= vectors {
                    let values = dots_few::<VECTORS>(block, std::array::from_fn(x), n);
                    for (j, values) in values.into_iter().enumerate() {
                        put(vector + j, values);
                    }
                    vector += VECTORS;
                } else {
                    put(vector, dots_few(block, [x(0)], n)[0]);
                    vector += 1;
                }
            }
        }
    }
}
