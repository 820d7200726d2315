//! 512-bit triangular kernels.

use std::arch::x86_64::*;

use crate::{GROUP, LANES, MAX_PREFIX};

/// A row of 32 values; they must lie behind `p`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn load(p: *const f32) -> [__m512; 2] {
    // SAFETY: the caller's promise.
    unsafe { [_mm512_loadu_ps(p), _mm512_loadu_ps(p.add(16))] }
}

/// Rows handled together: sixteen independent sums hide the latency of a multiply-add, and every factor that
/// is loaded serves both halves of the lanes.
const BLOCK: usize = 8;

/// Requires the lengths that `crate::solve_rows` asserts.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(crate) unsafe fn solve_rows(
    l: &[f32],
    from: usize,
    to: usize,
    residual: &[f32],
    y: &mut [f32],
    sums: &mut [f32; LANES],
) {
    let row = |i: usize| l[i * (i + 1) / 2..].as_ptr();
    let solution = y.as_mut_ptr();
    // SAFETY: `sums` has 32 values.
    let mut total = unsafe { load(sums.as_ptr()) };
    let mut first = from;
    while first < to {
        let count = BLOCK.min(to - first);
        let mut acc = [[_mm512_setzero_ps(); 2]; BLOCK];
        let mut rows = [l.as_ptr(); BLOCK];
        for b in 0..count {
            rows[b] = row(first + b);
            // SAFETY: row first + b - from < to - from of `residual`, 32 values long.
            acc[b] = unsafe { load(residual.as_ptr().add((first + b - from) * LANES)) };
        }
        for b in count..BLOCK {
            // Unused rows repeat a valid one: their results are dropped.
            rows[b] = rows[0];
        }
        for j in 0..first {
            // SAFETY: j < first <= every row's length; row j of `y` lies below row `to`.
            unsafe {
                let s = load(solution.add(j * LANES));
                for b in 0..BLOCK {
                    let factor = _mm512_set1_ps(*rows[b].add(j));
                    acc[b][0] = _mm512_fnmadd_ps(factor, s[0], acc[b][0]);
                    acc[b][1] = _mm512_fnmadd_ps(factor, s[1], acc[b][1]);
                }
            }
        }
        for (b, row) in rows.iter().enumerate().take(count) {
            let (done, open) = acc.split_at_mut(b);
            let current = &mut open[0];
            // SAFETY: row first + b has first + b + 1 values; row first + b of `y` lies below row `to`.
            unsafe {
                for (e, earlier) in done.iter().enumerate() {
                    let factor = _mm512_set1_ps(*row.add(first + e));
                    current[0] = _mm512_fnmadd_ps(factor, earlier[0], current[0]);
                    current[1] = _mm512_fnmadd_ps(factor, earlier[1], current[1]);
                }
                let inverse = _mm512_set1_ps(1.0 / *row.add(first + b));
                for h in 0..2 {
                    current[h] = _mm512_mul_ps(current[h], inverse);
                    _mm512_storeu_ps(solution.add((first + b) * LANES + 16 * h), current[h]);
                    total[h] = _mm512_fmadd_ps(current[h], current[h], total[h]);
                }
            }
        }
        first += count;
    }
    // SAFETY: `sums` has 32 values.
    unsafe {
        _mm512_storeu_ps(sums.as_mut_ptr(), total[0]);
        _mm512_storeu_ps(sums.as_mut_ptr().add(16), total[1]);
    }
}

/// Requires the lengths that `crate::prefix_norms` asserts.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(crate) unsafe fn prefix_norms(w: &[f32], means: &[f32], x: &[f32]) -> [f32; GROUP] {
    let mut centred = [_mm512_setzero_ps(); MAX_PREFIX];
    let mut total = _mm512_setzero_ps();
    let mut entry = w.as_ptr();
    for (i, value) in x.iter().enumerate() {
        // SAFETY: `means` has x.len() rows of 16 values.
        let mean = unsafe { _mm512_loadu_ps(means.as_ptr().add(i * GROUP)) };
        centred[i] = _mm512_sub_ps(_mm512_set1_ps(*value), mean);
        let mut parts = [_mm512_setzero_ps(); 4];
        for (j, earlier) in centred[..=i].iter().enumerate() {
            // SAFETY: the loops read entries in packed order, below m (m + 1) / 2.
            unsafe {
                parts[j % 4] = _mm512_fmadd_ps(_mm512_loadu_ps(entry), *earlier, parts[j % 4]);
                entry = entry.add(GROUP);
            }
        }
        let y = _mm512_add_ps(
            _mm512_add_ps(parts[0], parts[1]),
            _mm512_add_ps(parts[2], parts[3]),
        );
        total = _mm512_fmadd_ps(y, y, total);
    }
    let mut out = [0.0f32; GROUP];
    // SAFETY: `out` has 16 values.
    unsafe { _mm512_storeu_ps(out.as_mut_ptr(), total) };
    out
}
