//! The smallest of a list of estimates.

use crate::codes::Estimate;
use crate::level;

/// Keeps the `keep` smallest of `list` by (estimate, at), in the order they have, and returns the largest of them. Estimates are not negative, and no two of the list have the same number.
///
/// Panics when `keep` is 0 or more than there are.
#[inline]
pub fn keep_smallest(list: &mut Vec<Estimate>, keep: usize) -> Estimate {
    assert!(0 < keep && keep <= list.len(), "none, or more than all");
    dispatch!(level(), keep_smallest(list, keep))
}

/// As a signed number, which every instruction set can compare.
#[inline(always)]
pub(crate) fn key(e: &Estimate) -> i64 {
    e.key() as i64
}

/// Keys between which the threshold is looked for, together in one pass.
pub(crate) const PIVOTS: usize = 4;

/// A key that exactly `keep` of the list are not above, found by counting: vectors are good at that, and a few dozen
/// estimates take few rounds. `range` gives the smallest and the largest key, `count` how many keys are not above each
/// of some others.
#[inline(always)]
fn threshold(
    list: &[Estimate],
    keep: usize,
    range: impl Fn(&[Estimate]) -> (i64, i64),
    count: impl Fn(&[Estimate], [i64; PIVOTS]) -> [usize; PIVOTS],
) -> i64 {
    let (smallest, mut high) = range(list);
    // Fewer than `keep` are not above `low`; as many as `upto`, at least `keep`, are not above `high`.
    let (mut low, mut upto) = (smallest.saturating_sub(1), list.len());
    // What is no number may be below zero as a key; it is then anywhere, but nothing goes wrong.
    while upto > keep && high.saturating_sub(low) > 1 {
        // Estimates are ordered as their bits are, and evenly spread in them where they differ little.
        let step = (high.saturating_sub(low) / (PIVOTS as i64 + 1)).max(1);
        let pivots = std::array::from_fn(|i| low.saturating_add(step * (i as i64 + 1)).min(high));
        for (pivot, counted) in pivots.into_iter().zip(count(list, pivots)) {
            if counted >= keep {
                (high, upto) = (pivot, counted);
                break;
            }
            low = pivot;
        }
    }
    high
}

/// The smallest and the largest key.
#[inline(always)]
pub(crate) fn range(list: &[Estimate]) -> (i64, i64) {
    list.iter().fold((i64::MAX, 0), |(low, high), e| {
        (low.min(key(e)), high.max(key(e)))
    })
}

/// How many keys are not above each of some others.
#[inline(always)]
pub(crate) fn count(list: &[Estimate], pivots: [i64; PIVOTS]) -> [usize; PIVOTS] {
    pivots.map(|pivot| list.iter().map(|e| usize::from(key(e) <= pivot)).sum())
}

/// Moves what is not above `threshold` to the front; returns how many there are and the largest of their keys.
#[inline(always)]
pub(crate) fn compact(list: &mut [Estimate], threshold: i64) -> (usize, i64) {
    let (mut kept, mut largest) = (0, 0);
    for i in 0..list.len() {
        let e = list[i];
        list[kept] = e;
        let stays = key(&e) <= threshold;
        kept += usize::from(stays);
        largest = if stays { largest.max(key(&e)) } else { largest };
    }
    (kept, largest)
}

/// What every level does with these three.
#[inline(always)]
pub(crate) fn keep_smallest_by(
    list: &mut Vec<Estimate>,
    keep: usize,
    range: impl Fn(&[Estimate]) -> (i64, i64),
    count: impl Fn(&[Estimate], [i64; PIVOTS]) -> [usize; PIVOTS],
    compact: impl FnOnce(&mut [Estimate], i64) -> (usize, i64),
) -> Estimate {
    let highest = threshold(list, keep, range, count);
    let (kept, largest) = compact(list, highest);
    list.truncate(kept.min(keep));
    Estimate {
        at: largest as u32,
        estimate: f32::from_bits((largest >> 32) as u32),
    }
}
