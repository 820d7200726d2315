//! 256-bit triangular kernels.

use std::arch::x86_64::*;

use crate::{GROUP, LANES, MAX_PREFIX};

/// Rows handled together: eight accumulators of two halves fit the registers with room for operands.
const BLOCK: usize = 4;

/// Requires the lengths that `crate::solve_rows` asserts.
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) unsafe fn solve_rows(
    l: &[f32],
    from: usize,
    to: usize,
    residual: &[f32],
    y: &mut [f32],
    sums: &mut [f32; LANES],
) {
    for half in [0, 16] {
        // SAFETY: the caller's lengths hold, and half + 16 <= 32 lanes.
        unsafe { solve_half(l, from, to, residual, y, sums, half) };
    }
}

/// Sixteen of the lanes, from `half` on.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn solve_half(
    l: &[f32],
    from: usize,
    to: usize,
    residual: &[f32],
    y: &mut [f32],
    sums: &mut [f32; LANES],
    half: usize,
) {
    let row = |i: usize| l[i * (i + 1) / 2..].as_ptr();
    // SAFETY: half + 16 <= 32, the length of a row of `y`, `residual` and `sums`.
    let (solution, right, sums) = unsafe {
        (
            y.as_mut_ptr().add(half),
            residual.as_ptr().add(half),
            sums.as_mut_ptr().add(half),
        )
    };
    // SAFETY: sixteen values of `sums` follow.
    let mut total = unsafe { [_mm256_loadu_ps(sums), _mm256_loadu_ps(sums.add(8))] };
    let mut first = from;
    while first < to {
        let count = BLOCK.min(to - first);
        let mut acc = [[_mm256_setzero_ps(); 2]; BLOCK];
        let mut rows = [l.as_ptr(); BLOCK];
        for b in 0..count {
            rows[b] = row(first + b);
            // SAFETY: row first + b - from < to - from of `residual`.
            unsafe {
                let r = right.add((first + b - from) * LANES);
                acc[b] = [_mm256_loadu_ps(r), _mm256_loadu_ps(r.add(8))];
            }
        }
        for b in count..BLOCK {
            // Unused rows repeat a valid one: their results are dropped.
            rows[b] = rows[0];
        }
        for j in 0..first {
            // SAFETY: j < first <= every row's length; row j of `y` lies below row `to`.
            unsafe {
                let s = solution.add(j * LANES);
                let (low, high) = (_mm256_loadu_ps(s), _mm256_loadu_ps(s.add(8)));
                for b in 0..BLOCK {
                    let factor = _mm256_broadcast_ss(&*rows[b].add(j));
                    acc[b][0] = _mm256_fnmadd_ps(factor, low, acc[b][0]);
                    acc[b][1] = _mm256_fnmadd_ps(factor, high, acc[b][1]);
                }
            }
        }
        for (b, row) in rows.iter().enumerate().take(count) {
            let (done, open) = acc.split_at_mut(b);
            let current = &mut open[0];
            // SAFETY: row first + b has first + b + 1 values; row first + b of `y` lies below row `to`.
            unsafe {
                for (e, earlier) in done.iter().enumerate() {
                    let factor = _mm256_broadcast_ss(&*row.add(first + e));
                    current[0] = _mm256_fnmadd_ps(factor, earlier[0], current[0]);
                    current[1] = _mm256_fnmadd_ps(factor, earlier[1], current[1]);
                }
                let inverse = _mm256_set1_ps(1.0 / *row.add(first + b));
                let s = solution.add((first + b) * LANES);
                for h in 0..2 {
                    current[h] = _mm256_mul_ps(current[h], inverse);
                    _mm256_storeu_ps(s.add(8 * h), current[h]);
                    total[h] = _mm256_fmadd_ps(current[h], current[h], total[h]);
                }
            }
        }
        first += count;
    }
    // SAFETY: sixteen values of `sums` follow.
    unsafe {
        _mm256_storeu_ps(sums, total[0]);
        _mm256_storeu_ps(sums.add(8), total[1]);
    }
}

/// Requires the lengths that `crate::prefix_norms` asserts.
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) unsafe fn prefix_norms(w: &[f32], means: &[f32], x: &[f32]) -> [f32; GROUP] {
    let mut out = [0.0f32; GROUP];
    for half in [0, 8] {
        let mut centred = [_mm256_setzero_ps(); MAX_PREFIX];
        let mut total = _mm256_setzero_ps();
        let mut entry = half;
        for (i, value) in x.iter().enumerate() {
            // SAFETY: `means` has x.len() rows of 16 values and half + 8 <= 16.
            let mean = unsafe { _mm256_loadu_ps(means.as_ptr().add(i * GROUP + half)) };
            centred[i] = _mm256_sub_ps(_mm256_set1_ps(*value), mean);
            let mut parts = [_mm256_setzero_ps(); 2];
            for (j, earlier) in centred[..=i].iter().enumerate() {
                // SAFETY: the loops read entries in packed order, below m (m + 1) / 2.
                let factor = unsafe { _mm256_loadu_ps(w.as_ptr().add(entry)) };
                parts[j % 2] = _mm256_fmadd_ps(factor, *earlier, parts[j % 2]);
                entry += GROUP;
            }
            let y = _mm256_add_ps(parts[0], parts[1]);
            total = _mm256_fmadd_ps(y, y, total);
        }
        // SAFETY: half + 8 <= 16.
        unsafe { _mm256_storeu_ps(out.as_mut_ptr().add(half), total) };
    }
    out
}
