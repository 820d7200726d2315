//! Reading cells and bins so that no content of the arrays can do harm.
//!
//! The arrays may be those of a mapped file that nobody has checked. Every function here gives an answer for every
//! argument and every content. Whether cells and bins follow each other in order is found out once, at the first
//! use: if they do not, every cell is empty, because parts that overlap could make a small file ask for any amount
//! of work and memory.

use std::ops::Range;
use std::sync::OnceLock;

use bytemuck::{Pod, Zeroable};
use garlic_simd::{CODE_LANES, CodeQuery, Estimate, code_block_bytes, scan_codes};

use super::{BIN_BITS, Bin, Bounds, Learned};
use crate::cell::part::decode_centres;

// SAFETY: two numbers without padding between them; zero is a value of both.
#[allow(unsafe_code)]
unsafe impl Zeroable for Bin {}
// SAFETY: `repr(C)`, `Copy`, made of two `u32` and so without padding; any bits are two numbers.
#[allow(unsafe_code)]
unsafe impl Pod for Bin {}
// SAFETY: five numbers without padding between them; zero is a value of all.
#[allow(unsafe_code)]
unsafe impl Zeroable for Bounds {}
// SAFETY: `repr(C)`, `Copy`, made of five `f32` and so without padding; any bits are five numbers.
#[allow(unsafe_code)]
unsafe impl Pod for Bounds {}

/// Whether cells and bins are in order, once that is known; no part of what they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order(OnceLock<bool>);

impl PartialEq for Order {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Learned {
    /// Bytes of a block of points.
    pub(crate) fn block_bytes(&self) -> usize {
        code_block_bytes(self.bits, self.width)
    }

    /// Bytes of a block of bins.
    pub(crate) fn bin_block_bytes(&self) -> usize {
        code_block_bytes(BIN_BITS, self.width)
    }

    /// Number of cells.
    pub(crate) fn cells(&self) -> usize {
        self.cell_bins.len().saturating_sub(1)
    }

    /// Number of points that the bins share out.
    pub(crate) fn points(&self) -> usize {
        self.bins.last().map_or(0, |bin| bin.first as usize)
    }

    /// Whether the cells share out all bins and the bins all points, in order, each in the blocks it needs.
    #[inline]
    pub(crate) fn in_order(&self) -> bool {
        *self.order.0.get_or_init(|| self.check_order())
    }

    /// Says what is wrong with the order of cells, bins and `points` points, codes aside.
    pub(crate) fn check_groups(&self, points: usize) -> Result<(), String> {
        let cells = self.cell_bins.iter().zip(&*self.bin_block_of);
        let cells = cells.map(|(bin, block)| [*bin, *block]);
        check_groups(cells, self.bounds.len(), "bins", "cell")?;
        let bins = self.bins.iter().map(|bin| [bin.first, bin.block]);
        check_groups(bins, points, "points", "bin")
    }

    fn check_order(&self) -> bool {
        let blocks = |count: Option<u32>, bytes: usize| count.map(|c| u64::from(c) * bytes as u64);
        let bin_blocks = self.bin_block_of.last().copied();
        let point_blocks = self.bins.last().map(|bin| bin.block);
        blocks(bin_blocks, self.bin_block_bytes()) == Some(self.bin_blocks.len() as u64)
            && blocks(point_blocks, self.block_bytes()) == Some(self.blocks.len() as u64)
            && self.cell_bins.len() == self.bin_block_of.len()
            && self.bins.len() == self.bounds.len() + 1
            && self.check_groups(self.points()).is_ok()
    }

    /// Bins of a cell; none for a cell that is not there.
    #[inline]
    pub(crate) fn bins_of(&self, cell: usize) -> Range<usize> {
        match self.cell_bins.get(cell..) {
            Some(&[from, to, ..]) if self.in_order() => {
                let to = (to as usize).min(self.bounds.len());
                (from as usize).min(to)..to
            }
            _ => 0..0,
        }
    }

    /// Centres of a cell's bins as their codes have them, `rank` values each, appended to `out`.
    pub(crate) fn decode_centres(&self, cell: usize, rank: usize, out: &mut Vec<f32>) {
        let steps = self.bin_steps.get(cell.saturating_mul(self.width)..);
        let steps = steps.and_then(|s| s.get(..rank)).unwrap_or_default();
        let count = self.bins_of(cell).len();
        decode_centres(self.bin_codes(cell), steps, self.width, count, out);
    }

    /// Codes of a cell's bins, in whole blocks; none for a cell that is not there.
    #[inline]
    pub(crate) fn bin_codes(&self, cell: usize) -> &[u8] {
        match self.bin_block_of.get(cell..) {
            Some(&[from, to, ..]) if self.in_order() => {
                blocks(&self.bin_blocks, from, to, self.bin_block_bytes())
            }
            _ => &[],
        }
    }

    /// A bin and the one after it, which ends it; `None` for a bin that is not there.
    #[inline]
    fn bin(&self, bin: usize) -> Option<[Bin; 2]> {
        match self.bins.get(bin..) {
            Some(&[bin, next, ..]) if self.in_order() => Some([bin, next]),
            _ => None,
        }
    }

    /// Positions of a bin's points, no more than its blocks hold; none for a bin that is not there.
    #[inline]
    pub(crate) fn positions(&self, bin: usize) -> Range<usize> {
        self.bin(bin).map_or(0..0, |[bin, next]| held(bin, next))
    }

    /// Codes of a bin's points, in whole blocks; none for a bin that is not there.
    #[inline]
    pub(crate) fn codes(&self, bin: usize) -> &[u8] {
        match self.bin(bin) {
            Some([bin, next]) => blocks(&self.blocks, bin.block, next.block, self.block_bytes()),
            None => &[],
        }
    }

    /// Appends the bins of a cell that are estimated below `limit`, by their numbers.
    #[inline]
    pub(crate) fn scan_bins(
        &self,
        cell: usize,
        query: &CodeQuery<'_>,
        limit: f32,
        out: &mut Vec<Estimate>,
    ) {
        let bins = self.bins_of(cell);
        let before = out.len();
        let first = bins.start as u32;
        scan_codes(BIN_BITS, self.bin_codes(cell), query, limit, first, out);
        drop_padding(out, before, bins.end);
    }

    /// Positions and codes of a bin's points; none for a bin that is not there.
    #[inline]
    pub(crate) fn points_of(&self, bin: usize) -> (Range<usize>, &[u8]) {
        match self.bin(bin) {
            Some([bin, next]) => {
                let codes = blocks(&self.blocks, bin.block, next.block, self.block_bytes());
                (held(bin, next), codes)
            }
            None => (0..0, &[]),
        }
    }
}

/// Positions of the points of `bin`, no more than its blocks hold.
#[inline]
fn held(bin: Bin, next: Bin) -> Range<usize> {
    let lanes = next.block.saturating_sub(bin.block) as usize * CODE_LANES;
    let count = next.first.saturating_sub(bin.first) as usize;
    let first = bin.first as usize;
    first..first + count.min(lanes)
}

/// Takes back lanes from `end` on: padding whose norm is not infinite, as it should be. They come last.
#[inline]
fn drop_padding(found: &mut Vec<Estimate>, before: usize, end: usize) {
    while found.len() > before && found.last().is_some_and(|last| last.at as usize >= end) {
        found.pop();
    }
}

/// The blocks from `from` to `to`, none where they are out of order or out of range.
#[inline]
fn blocks(all: &[u8], from: u32, to: u32, bytes: usize) -> &[u8] {
    let at = |block: u32| (block as usize).checked_mul(bytes);
    match (at(from), at(to)) {
        (Some(from), Some(to)) => all.get(from..to).unwrap_or_default(),
        _ => &[],
    }
}

/// Fails unless groups that begin at [number, block], the last of them the end, share out all of `total` in order,
/// none empty, each in as many whole blocks as it needs.
fn check_groups(
    groups: impl Iterator<Item = [u32; 2]>,
    total: usize,
    what: &str,
    group: &str,
) -> Result<(), String> {
    let mut last: Option<[u32; 2]> = None;
    for (number, [next, next_block]) in (0..).zip(groups) {
        let Some([first, block]) = last.replace([next, next_block]) else {
            if [next, next_block] != [0, 0] {
                return Err(format!("the {what} do not begin with the first"));
            }
            continue;
        };
        let number: usize = number - 1;
        // Only an index without any point has a cell without bins.
        if next < first || next == first && total > 0 {
            return Err(format!("{group} {number} has no {what}"));
        }
        let blocks = (next - first).div_ceil(CODE_LANES as u32);
        if block.checked_add(blocks) != Some(next_block) {
            return Err(format!(
                "{group} {number} has {} {what} but not {blocks} blocks",
                next - first
            ));
        }
        // A scan numbers the lanes of whole blocks.
        if u64::from(first) + u64::from(blocks) * CODE_LANES as u64 > u64::from(u32::MAX) {
            return Err(format!("the blocks of {group} {number} cannot be numbered"));
        }
    }
    match last {
        Some([end, _]) if end as usize == total => Ok(()),
        _ => Err(format!(
            "there are {total} {what}, not as many as are shared out"
        )),
    }
}
