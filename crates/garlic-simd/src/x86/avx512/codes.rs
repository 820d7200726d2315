//! Scans with the four-byte dot product of VNNI, two rows of a block in one vector.

use std::arch::x86_64::*;

use crate::codes::{CODE_LANES, CodeBits, CodeQuery, Estimate, ROW};

/// Adds two rows of every block to the sums: with eight bits to those that `part` names; with four bits low
/// nibbles go to the first and high nibbles, sixteen times too large because they stay where they are, to the
/// second.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn add_rows<const BITS: usize, const N: usize>(
    sums: &mut [[__m512i; 2]; N],
    part: usize,
    rows: *const u8,
    stride: usize,
    weights: [__m512i; 2],
) {
    for (b, sums) in sums.iter_mut().enumerate() {
        // SAFETY: the caller's promise: two rows lie here in every block.
        let bytes = unsafe { _mm512_loadu_si512(rows.add(b * stride).cast()) };
        if BITS == 8 {
            sums[part] = _mm512_dpbusd_epi32(sums[part], bytes, weights[0]);
        } else {
            let low = _mm512_and_si512(bytes, _mm512_set1_epi8(0x0f));
            let high = _mm512_and_si512(bytes, _mm512_set1_epi8(0xf0u8 as i8));
            sums[0] = _mm512_dpbusd_epi32(sums[0], low, weights[0]);
            sums[1] = _mm512_dpbusd_epi32(sums[1], high, weights[1]);
        }
    }
}

/// Requires `N` blocks of `rows` rows and the norms, and the weights of all coordinates of a block.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn dots<const BITS: usize, const N: usize>(
    blocks: *const u8,
    rows: usize,
    weights: *const i8,
) -> [__m256i; N] {
    let stride = rows * ROW + ROW;
    let weights = weights.cast::<i32>();
    // The weights of the first row go to the left half of a vector, those of the second to the right half.
    let left_right = |first: i32, second: i32, from: __m512i| {
        let lane = _mm512_mask_set1_epi32(_mm512_set1_epi32(first), 0xff00, second);
        _mm512_permutexvar_epi32(lane, from)
    };
    // SAFETY: as many groups of weights as a row has codes for exist.
    let two = |r: usize| unsafe {
        if BITS == 8 {
            let from = _mm512_set1_epi64(weights.add(r).cast::<i64>().read_unaligned());
            [left_right(0, 1, from); 2]
        } else {
            let from = _mm512_broadcast_i32x4(_mm_loadu_si128(weights.add(2 * r).cast()));
            [left_right(0, 2, from), left_right(1, 3, from)]
        }
    };
    let left = |group: usize| {
        // SAFETY: as above.
        let weights = unsafe { weights.add(group).read_unaligned() };
        _mm512_zextsi256_si512(_mm256_set1_epi32(weights))
    };
    let mut sums = [[_mm512_setzero_si512(); 2]; N];
    let mut r = 0;
    // SAFETY: all rows lie within their block. The vector that starts at the last row of an odd number takes in
    // the norms, which meet weights of zero.
    unsafe {
        let at = |r: usize| blocks.add(r * ROW);
        while r + 4 <= rows {
            add_rows::<BITS, N>(&mut sums, 0, at(r), stride, two(r));
            add_rows::<BITS, N>(&mut sums, 1, at(r + 2), stride, two(r + 2));
            r += 4;
        }
        if r + 2 <= rows {
            add_rows::<BITS, N>(&mut sums, 0, at(r), stride, two(r));
            r += 2;
        }
        if r < rows {
            let last = if BITS == 8 {
                [left(r); 2]
            } else {
                [left(2 * r), left(2 * r + 1)]
            };
            add_rows::<BITS, N>(&mut sums, 0, at(r), stride, last);
        }
    }
    let mut dots = [_mm256_setzero_si256(); N];
    for (dot, [first, second]) in dots.iter_mut().zip(sums) {
        let second = if BITS == 8 {
            second
        } else {
            _mm512_srai_epi32::<4>(second)
        };
        let both = _mm512_add_epi32(first, second);
        *dot = _mm256_add_epi32(
            _mm512_castsi512_si256(both),
            _mm512_extracti64x4_epi64::<1>(both),
        );
    }
    dots
}

/// Requires room for one estimate per lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn emit<const N: usize>(
    estimates: &[__m256; N],
    below: u32,
    first: u32,
    sink: *mut Estimate,
) -> usize {
    let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let mut count = 0;
    for (b, estimates) in estimates.iter().enumerate() {
        let at = _mm256_add_epi32(
            lanes,
            _mm256_set1_epi32((first as usize + b * CODE_LANES) as i32),
        );
        let high = _mm512_slli_epi64::<32>(_mm512_cvtepu32_epi64(_mm256_castps_si256(*estimates)));
        let all = _mm512_or_si512(high, _mm512_cvtepu32_epi64(at));
        let stays = (below >> (b * CODE_LANES)) as u8;
        // SAFETY: the caller's promise: before this block at most as many were written as there are lanes before it,
        // so that a whole vector fits. An estimate has the number in its first four bytes.
        unsafe {
            let squeezed = _mm512_maskz_compress_epi64(stays, all);
            _mm512_storeu_si512(sink.add(count).cast(), squeezed);
        }
        count += stays.count_ones() as usize;
    }
    count
}

crate::x86::codes::scan_codes!("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni");
