//! Estimates from row codes: a line is one vector, and VNNI sums the four bytes of its lanes.

use std::arch::x86_64::*;

use crate::row_codes::{
    LANE_ELEMENTS, LINE_ELEMENTS, LINE_LANES, ROW_CODE_LINE, RowCodeQuery, RowCodes, lane_units,
};

/// Requires axes below the number of coordinates, of which there are at most 2³¹, as many steps and weights, and a
/// scale for each of their lanes, in whole lines (checked by the caller).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(crate) unsafe fn row_code_weights(
    coordinates: &[f32],
    axes: &[u32],
    steps: &[f32],
    weights: &mut [i8],
    scales: &mut [f32],
) -> f32 {
    let mut total = 0.0f32;
    for (lane, scale) in scales.iter_mut().enumerate() {
        let first = lane * LANE_ELEMENTS;
        // SAFETY: the lane has sixteen axes and steps, and the axes are those of coordinates.
        let values = unsafe {
            let axes = _mm512_loadu_si512(axes.as_ptr().add(first).cast());
            let gathered = _mm512_i32gather_ps::<4>(axes, coordinates.as_ptr());
            _mm512_mul_ps(gathered, _mm512_loadu_ps(steps.as_ptr().add(first)))
        };
        // What is no number counts as zero: the maximum is then its second operand.
        let sizes = _mm512_max_ps(_mm512_abs_ps(values), _mm512_setzero_ps());
        let (inverse, unit) = lane_units(_mm512_reduce_max_ps(sizes)).unwrap_or((0.0, 0.0));
        let scaled = _mm512_mul_ps(values, _mm512_set1_ps(inverse));
        // Rounds to even, as the mode of every thread is unless it was changed.
        let numbers = _mm512_cmp_ps_mask::<_CMP_ORD_Q>(scaled, scaled);
        let rounded = _mm512_maskz_cvtps_epi32(numbers, scaled);
        let bytes = _mm512_cvtepi32_epi8(rounded);
        let line = lane / LINE_LANES * LINE_ELEMENTS + lane % LINE_LANES * 4;
        // SAFETY: the four planes of the line, each with four bytes for every lane.
        unsafe {
            let to = weights.as_mut_ptr().add(line);
            let place = |plane: usize| to.add(plane * ROW_CODE_LINE).cast::<i32>();
            let put = |plane, four| place(plane).write_unaligned(four);
            put(0, _mm_extract_epi32::<0>(bytes));
            put(1, _mm_extract_epi32::<1>(bytes));
            put(2, _mm_extract_epi32::<2>(bytes));
            put(3, _mm_extract_epi32::<3>(bytes));
        }
        *scale = unit;
        total += unit * _mm512_reduce_add_epi32(rounded) as f32;
    }
    total
}

/// Requires rows of `codes`, weights for the lines that the scales have, and a result for each row (checked by the
/// caller).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
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
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn few<const N: usize>(
    codes: RowCodes<'_>,
    query: &RowCodeQuery<'_>,
    rows: [u32; N],
) -> __m128 {
    let lines = query.scales.len() / LINE_LANES;
    let bytes = codes.row_bytes();
    let crumb = _mm512_set1_epi8(3);
    let mut totals = [_mm512_setzero_ps(); 4];
    let mut terms = [0.0f32; 4];
    // SAFETY: the caller's promise: the rows lie within the codes, and each line has its weights and scales.
    unsafe {
        let rows = rows.map(|row| codes.as_ptr().add(row as usize * bytes));
        for line in 0..lines {
            let weights = query.weights.as_ptr().add(line * LINE_ELEMENTS);
            let plane = |c: usize| _mm512_loadu_si512(weights.add(c * ROW_CODE_LINE).cast());
            let weights = [plane(0), plane(1), plane(2), plane(3)];
            let scales = _mm512_loadu_ps(query.scales.as_ptr().add(line * LINE_LANES));
            for r in 0..N {
                let code = _mm512_loadu_si512(rows[r].add(line * ROW_CODE_LINE).cast());
                let crumbs = [
                    _mm512_and_si512(code, crumb),
                    _mm512_and_si512(_mm512_srli_epi16::<2>(code), crumb),
                    _mm512_and_si512(_mm512_srli_epi16::<4>(code), crumb),
                    _mm512_and_si512(_mm512_srli_epi16::<6>(code), crumb),
                ];
                let mut sums = _mm512_setzero_si512();
                for c in 0..4 {
                    sums = _mm512_dpbusd_epi32(sums, crumbs[c], weights[c]);
                }
                let scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), scales);
                totals[r] = _mm512_add_ps(totals[r], scaled);
            }
        }
        for r in 0..N {
            terms[r] = rows[r].add(bytes - 4).cast::<f32>().read_unaligned();
        }
    }
    let terms = _mm_setr_ps(terms[0], terms[1], terms[2], terms[3]);
    _mm_add_ps(sums(totals), _mm_add_ps(_mm_set1_ps(query.offset), terms))
}

/// Sums the lanes of every vector, i with i + 8 first, then i with i + 4, i + 2 and i + 1.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn sums(v: [__m512; 4]) -> __m128 {
    // Eight lanes of the first row to the left, eight of the second to the right.
    let eights = |a: __m512, b: __m512| {
        let low = _mm512_shuffle_f32x4::<0b01_00_01_00>(a, b);
        _mm512_add_ps(low, _mm512_shuffle_f32x4::<0b11_10_11_10>(a, b))
    };
    let (left, right) = (eights(v[0], v[1]), eights(v[2], v[3]));
    // Four lanes of every row.
    let fours = _mm512_add_ps(
        _mm512_shuffle_f32x4::<0b10_00_10_00>(left, right),
        _mm512_shuffle_f32x4::<0b11_01_11_01>(left, right),
    );
    let twos = _mm512_add_ps(fours, _mm512_permute_ps::<0b11_10_11_10>(fours));
    let ones = _mm512_add_ps(twos, _mm512_permute_ps::<0b01_01_01_01>(twos));
    let firsts = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
    _mm512_castps512_ps128(_mm512_permutexvar_ps(firsts, ones))
}
