//! Estimates from row codes with `maddubs`: all products of a lane, of codes up to 3, fit sixteen bits in pairs.

use std::arch::x86_64::*;

use crate::row_codes::{
    LANE_ELEMENTS, LINE_ELEMENTS, LINE_LANES, ROW_CODE_LINE, RowCodeQuery, RowCodes, lane_units,
};

/// Requires axes below the number of coordinates, of which there are at most 2³¹, as many steps and weights, and a
/// scale for each of their lanes, in whole lines (checked by the caller).
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) unsafe fn row_code_weights(
    coordinates: &[f32],
    axes: &[u32],
    steps: &[f32],
    weights: &mut [i8],
    scales: &mut [f32],
) -> f32 {
    let sign = _mm256_set1_ps(-0.0);
    let mut total = 0.0f32;
    for (lane, scale) in scales.iter_mut().enumerate() {
        // SAFETY: the lane has sixteen axes and steps, and the axes are those of coordinates.
        let values = [0, 8].map(|half| unsafe {
            let first = lane * LANE_ELEMENTS + half;
            let axes = _mm256_loadu_si256(axes.as_ptr().add(first).cast());
            let gathered = _mm256_i32gather_ps::<4>(coordinates.as_ptr(), axes);
            _mm256_mul_ps(gathered, _mm256_loadu_ps(steps.as_ptr().add(first)))
        });
        // What is no number counts as zero: the maximum is then its second operand.
        let sizes = values.map(|v| _mm256_max_ps(_mm256_andnot_ps(sign, v), _mm256_setzero_ps()));
        let largest = largest(_mm256_max_ps(sizes[0], sizes[1]));
        let (inverse, unit) = lane_units(largest).unwrap_or((0.0, 0.0));
        let rounded = values.map(|v| {
            let scaled = _mm256_mul_ps(v, _mm256_set1_ps(inverse));
            // Rounds to even, as the mode of every thread is unless it was changed.
            let numbers = _mm256_cmp_ps::<_CMP_ORD_Q>(scaled, scaled);
            _mm256_cvtps_epi32(_mm256_and_ps(scaled, numbers))
        });
        // Planes 0 and 2 to the left, 1 and 3 to the right.
        let words = _mm256_packs_epi32(rounded[0], rounded[1]);
        let bytes = _mm256_packs_epi16(words, words);
        let line = lane / LINE_LANES * LINE_ELEMENTS + lane % LINE_LANES * 4;
        // SAFETY: the four planes of the line, each with four bytes for every lane.
        unsafe {
            let to = weights.as_mut_ptr().add(line);
            let place = |plane: usize| to.add(plane * ROW_CODE_LINE).cast::<i32>();
            let put = |plane, four| place(plane).write_unaligned(four);
            put(0, _mm256_extract_epi32::<0>(bytes));
            put(1, _mm256_extract_epi32::<4>(bytes));
            put(2, _mm256_extract_epi32::<1>(bytes));
            put(3, _mm256_extract_epi32::<5>(bytes));
        }
        *scale = unit;
        total += unit * sum(words) as f32;
    }
    total
}

/// The largest lane; none is below zero or no number.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn largest(v: __m256) -> f32 {
    let four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
    let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
}

/// The sum of sixteen words.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn sum(words: __m256i) -> i32 {
    let eight = _mm256_madd_epi16(words, _mm256_set1_epi16(1));
    let four = _mm_add_epi32(
        _mm256_castsi256_si128(eight),
        _mm256_extracti128_si256::<1>(eight),
    );
    let two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<0b01>(two)))
}

/// Requires rows of `codes`, weights for the lines that the scales have, and a result for each row (checked by the
/// caller).
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) unsafe fn estimate_rows(
    codes: RowCodes<'_>,
    query: &RowCodeQuery<'_>,
    rows: &[u32],
    out: &mut [f32],
) {
    let (fours, rest) = rows.as_chunks::<4>();
    let (full, tail) = out.as_chunks_mut::<4>();
    for (rows, out) in fours.iter().zip(full) {
        // SAFETY: the caller's promise; `out` has four values.
        unsafe { _mm_storeu_ps(out.as_mut_ptr(), few(codes, query, *rows)) };
    }
    // SAFETY: the caller's promise.
    let last = unsafe {
        match *rest {
            [a, b, c] => few(codes, query, [a, b, c]),
            [a, b] => few(codes, query, [a, b]),
            [a] => few(codes, query, [a]),
            _ => return,
        }
    };
    let mut values = [0.0f32; 4];
    // SAFETY: `values` has four.
    unsafe { _mm_storeu_ps(values.as_mut_ptr(), last) };
    tail.copy_from_slice(&values[..tail.len()]);
}

/// The estimates of up to four rows, which share the loads of the weights.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn few<const N: usize>(
    codes: RowCodes<'_>,
    query: &RowCodeQuery<'_>,
    rows: [u32; N],
) -> __m128 {
    let lines = query.scales.len() / LINE_LANES;
    let bytes = codes.row_bytes();
    let mut totals = [_mm256_setzero_ps(); 4];
    let mut terms = [0.0f32; 4];
    // SAFETY: the caller's promise: the rows lie within the codes, and each line has its weights and scales.
    unsafe {
        let rows = rows.map(|row| codes.as_ptr().add(row as usize * bytes));
        let left = half(&rows, query, lines, 0);
        let right = half(&rows, query, lines, 1);
        for r in 0..N {
            totals[r] = _mm256_add_ps(left[r], right[r]);
            terms[r] = rows[r].add(bytes - 4).cast::<f32>().read_unaligned();
        }
    }
    let terms = _mm_setr_ps(terms[0], terms[1], terms[2], terms[3]);
    _mm_add_ps(sums(totals), _mm_add_ps(_mm_set1_ps(query.offset), terms))
}

/// The totals of one half of the lanes, so that the sums of four rows fit the registers.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn half<const N: usize>(
    rows: &[*const u8; N],
    query: &RowCodeQuery<'_>,
    lines: usize,
    half: usize,
) -> [__m256; N] {
    let crumb = _mm256_set1_epi8(3);
    let mut totals = [_mm256_setzero_ps(); N];
    for line in 0..lines {
        // SAFETY: the caller's promise: a half is 32 bytes of a row or plane, and eight scales.
        unsafe {
            let weights = query.weights.as_ptr().add(line * LINE_ELEMENTS + 32 * half);
            let plane = |c: usize| _mm256_loadu_si256(weights.add(c * ROW_CODE_LINE).cast());
            let weights = [plane(0), plane(1), plane(2), plane(3)];
            let scales = query.scales.as_ptr().add(line * LINE_LANES + 8 * half);
            let scales = _mm256_loadu_ps(scales);
            for r in 0..N {
                let code = rows[r].add(line * ROW_CODE_LINE + 32 * half);
                let code = _mm256_loadu_si256(code.cast());
                let crumbs = [
                    _mm256_and_si256(code, crumb),
                    _mm256_and_si256(_mm256_srli_epi16::<2>(code), crumb),
                    _mm256_and_si256(_mm256_srli_epi16::<4>(code), crumb),
                    _mm256_and_si256(_mm256_srli_epi16::<6>(code), crumb),
                ];
                let pairs = |c: usize| _mm256_maddubs_epi16(crumbs[c], weights[c]);
                let eights = _mm256_add_epi16(
                    _mm256_add_epi16(pairs(0), pairs(1)),
                    _mm256_add_epi16(pairs(2), pairs(3)),
                );
                let sums = _mm256_madd_epi16(eights, _mm256_set1_epi16(1));
                let scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), scales);
                totals[r] = _mm256_add_ps(totals[r], scaled);
            }
        }
    }
    totals
}

/// Sums the lanes of every vector, i with i + 4 first, then i with i + 2 and i + 1.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn sums(v: [__m256; 4]) -> __m128 {
    // Four lanes of the first row to the left, four of the second to the right.
    let fours = |a: __m256, b: __m256| {
        let low = _mm256_permute2f128_ps::<0x20>(a, b);
        _mm256_castps_pd(_mm256_add_ps(low, _mm256_permute2f128_ps::<0x31>(a, b)))
    };
    let (left, right) = (fours(v[0], v[1]), fours(v[2], v[3]));
    let twos = _mm256_add_ps(
        _mm256_castpd_ps(_mm256_unpacklo_pd(left, right)),
        _mm256_castpd_ps(_mm256_unpackhi_pd(left, right)),
    );
    // Rows 0 and 2 to the left, 1 and 3 to the right.
    let ones = _mm256_hadd_ps(twos, twos);
    _mm_unpacklo_ps(
        _mm256_castps256_ps128(ones),
        _mm256_extractf128_ps::<1>(ones),
    )
}
