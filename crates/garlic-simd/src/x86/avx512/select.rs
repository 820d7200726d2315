//! The choice of the smallest estimates, eight keys at a time.

use std::arch::x86_64::*;

use crate::codes::Estimate;
use crate::select::{PIVOTS, compact, keep_smallest_by};

/// Keys in a vector.
const KEYS: usize = 8;

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(crate) fn keep_smallest(list: &mut Vec<Estimate>, keep: usize) -> Estimate {
    keep_smallest_by(
        list,
        keep,
        |list| range(list),
        |list, pivots| count(list, pivots),
        |list, threshold| squeeze(list, threshold),
    )
}

/// Calls `each` with all keys, the last vector filled up with the largest key there can be, and the mask of those that
/// are in the list.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn for_vectors(list: &[Estimate], mut each: impl FnMut(__m512i, __mmask8)) {
    let at = list.as_ptr().cast::<i64>();
    let whole = list.len() / KEYS * KEYS;
    for i in (0..whole).step_by(KEYS) {
        // SAFETY: i + KEYS <= the length. An estimate is eight bytes without padding, the number in the low half, as a
        // key has it.
        each(unsafe { _mm512_loadu_si512(at.add(i).cast()) }, !0);
    }
    if whole < list.len() {
        let mask = !0u8 >> (KEYS - (list.len() - whole));
        let most = _mm512_set1_epi64(i64::MAX);
        // SAFETY: lanes beyond the length are not read.
        let last = unsafe { _mm512_mask_loadu_epi64(most, mask, at.add(whole)) };
        each(last, mask);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn range(list: &[Estimate]) -> (i64, i64) {
    let (mut low, mut high) = (_mm512_set1_epi64(i64::MAX), _mm512_setzero_si512());
    for_vectors(list, |keys, mask| {
        low = _mm512_min_epi64(low, keys);
        high = _mm512_mask_max_epi64(high, mask, high, keys);
    });
    (_mm512_reduce_min_epi64(low), _mm512_reduce_max_epi64(high))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn count(list: &[Estimate], pivots: [i64; PIVOTS]) -> [usize; PIVOTS] {
    let pivots = pivots.map(|pivot| _mm512_set1_epi64(pivot));
    let mut counts = [0usize; PIVOTS];
    for_vectors(list, |keys, _| {
        for (count, pivot) in counts.iter_mut().zip(pivots) {
            *count += _mm512_cmple_epi64_mask(keys, pivot).count_ones() as usize;
        }
    });
    counts
}

/// [`compact`] with whole vectors. They are squeezed in registers: stores that leave lanes out are slow.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn squeeze(list: &mut [Estimate], threshold: i64) -> (usize, i64) {
    let whole = list.len() / KEYS * KEYS;
    let at = list.as_mut_ptr();
    let limit = _mm512_set1_epi64(threshold);
    let mut largest = _mm512_setzero_si512();
    let mut kept = 0;
    for i in (0..whole).step_by(KEYS) {
        // SAFETY: i + KEYS <= the length. No more are kept than have been read, so that what is written lies where all
        // has been read.
        unsafe {
            let keys = _mm512_loadu_si512(at.add(i).cast());
            let stays = _mm512_cmple_epi64_mask(keys, limit);
            largest = _mm512_mask_max_epi64(largest, stays, largest, keys);
            let squeezed = _mm512_maskz_compress_epi64(stays, keys);
            _mm512_storeu_si512(at.add(kept).cast(), squeezed);
            kept += stays.count_ones() as usize;
        }
    }
    let (more, last) = compact(&mut list[whole..], threshold);
    list.copy_within(whole..whole + more, kept);
    (kept + more, _mm512_reduce_max_epi64(largest).max(last))
}
