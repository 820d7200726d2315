//! Safe access to cells and bins.
//!
//! The arrays may belong to a mapped file that was not verified. Every function here returns a result for every
//! argument and every content. The order of cells and bins is checked once, on first use. If the check fails, every
//! cell is empty, because overlapping ranges could make a small file demand any amount of work and memory.
//!
//! A mapped file may also be overwritten in place. The tables with the ranges of bins and points are therefore copied
//! before the check, and only the copies are used. All other content is numbers, and any number is safe.

use std::ops::Range;
use std::sync::OnceLock;

use bytemuck::{Pod, Zeroable};
use garlic_simd::{CODE_LANES, CodeQuery, Estimate, code_block_bytes, scan_codes};

use super::arrays::{Bin, Bounds, EncodedBins};
use crate::quantize::{BIN_BITS, decode_centres};
use garlic_core::buffer::Buffer;

// SAFETY: two `u32` without padding. All zero bits are valid.
#[allow(unsafe_code)]
unsafe impl Zeroable for Bin {}
// SAFETY: `repr(C)`, `Copy`, two `u32` and so without padding. All bit patterns are valid.
#[allow(unsafe_code)]
unsafe impl Pod for Bin {}
// SAFETY: five `f32` without padding. All zero bits are valid.
#[allow(unsafe_code)]
unsafe impl Zeroable for Bounds {}
// SAFETY: `repr(C)`, `Copy`, five `f32` and so without padding. All bit patterns are valid.
#[allow(unsafe_code)]
unsafe impl Pod for Bounds {}

/// The checked tables, or `None` if the check failed. Equality ignores them.
#[derive(Clone, Debug, Default)]
pub(crate) struct LayoutCheck(OnceLock<Option<Tables>>);

/// Checked tables in memory. See [`EncodedBins`] for their meaning.
#[derive(Clone, Debug)]
struct Tables {
    cell_bins: Buffer<u32>,
    bin_block_of: Buffer<u32>,
    bins: Buffer<Bin>,
}

impl PartialEq for LayoutCheck {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl EncodedBins {
    /// Bytes of a block of point codes.
    pub(crate) fn block_bytes(&self) -> usize {
        code_block_bytes(self.bits, self.width)
    }

    /// Bytes of a block of bin codes.
    pub(crate) fn bin_block_bytes(&self) -> usize {
        code_block_bytes(BIN_BITS, self.width)
    }

    /// Number of cells.
    pub(crate) fn cells(&self) -> usize {
        self.cell_bins.len().saturating_sub(1)
    }

    /// Number of points in all bins.
    pub(crate) fn points(&self) -> usize {
        self.bins.last().map_or(0, |bin| bin.first as usize)
    }

    /// The checked tables, or `None` unless cells cover all bins and bins all points, in order, each with the blocks
    /// it needs.
    #[inline]
    fn tables(&self) -> Option<&Tables> {
        let checked = self.order.0.get_or_init(|| self.checked_tables());
        checked.as_ref()
    }

    /// Whether the check succeeds.
    #[cfg(test)]
    pub(crate) fn in_order(&self) -> bool {
        self.tables().is_some()
    }

    /// Start of every bin, followed by the end of the last. Empty if the check failed.
    #[inline]
    pub(crate) fn starts(&self) -> &[Bin] {
        self.tables().map_or(&[], |tables| &tables.bins)
    }

    /// Bytes of tables that are copies of those in a mapped file.
    pub(crate) fn copied_bytes(&self) -> u64 {
        let mapped = self.bins.mapped_bytes() > 0;
        match self.order.0.get() {
            Some(Some(tables)) if mapped => {
                let cells = size_of_val(&*tables.cell_bins) + size_of_val(&*tables.bin_block_of);
                (cells + size_of_val(&*tables.bins)) as u64
            }
            _ => 0,
        }
    }

    /// Checks the order of cells, bins and `points` points. The error describes the fault.
    pub(crate) fn check_layout(&self, points: usize) -> Result<(), String> {
        let cells = (&*self.cell_bins, &*self.bin_block_of);
        check_cells_and_bins(cells, &self.bins, self.bounds.len(), points)
    }

    fn checked_tables(&self) -> Option<Tables> {
        let tables = Tables {
            cell_bins: self.cell_bins.in_memory(),
            bin_block_of: self.bin_block_of.in_memory(),
            bins: self.bins.in_memory(),
        };
        let end = tables.bins.last()?;
        let bin_blocks = *tables.bin_block_of.last()?;
        let bytes = |blocks: u32, bytes: usize| u64::from(blocks) * bytes as u64;
        let fits = bytes(bin_blocks, self.bin_block_bytes()) == self.bin_blocks.len() as u64
            && bytes(end.block, self.block_bytes()) == self.blocks.len() as u64
            && tables.cell_bins.len() == tables.bin_block_of.len()
            && tables.bins.len() == self.bounds.len() + 1;
        let cells = (&*tables.cell_bins, &*tables.bin_block_of);
        let points = end.first as usize;
        let checked = check_cells_and_bins(cells, &tables.bins, self.bounds.len(), points);
        (fits && checked.is_ok()).then_some(tables)
    }

    /// Bins of a cell. Empty if there is no such cell.
    #[inline]
    pub(crate) fn bins_of(&self, cell: usize) -> Range<usize> {
        match self
            .tables()
            .and_then(|tables| tables.cell_bins.get(cell..))
        {
            Some(&[from, to, ..]) => from as usize..to as usize,
            _ => 0..0,
        }
    }

    /// Appends the quantized centres of a cell's bins to `out`, `rank` values each.
    pub(crate) fn decode_centres(&self, cell: usize, rank: usize, out: &mut Vec<f32>) {
        let steps = self.bin_steps.get(cell.saturating_mul(self.width)..);
        let steps = steps.and_then(|s| s.get(..rank)).unwrap_or_default();
        let count = self.bins_of(cell).len();
        decode_centres(self.bin_codes(cell), steps, self.width, count, out);
    }

    /// Codes of a cell's bins, in whole blocks. Empty if there is no such cell.
    #[inline]
    pub(crate) fn bin_codes(&self, cell: usize) -> &[u8] {
        let tables = self.tables();
        match tables.and_then(|tables| tables.bin_block_of.get(cell..)) {
            Some(&[from, to, ..]) => blocks(&self.bin_blocks, from, to, self.bin_block_bytes()),
            _ => &[],
        }
    }

    /// A bin and the next one, or `None` if there is no such bin.
    #[inline]
    fn bin(&self, bin: usize) -> Option<[Bin; 2]> {
        match self.starts().get(bin..) {
            Some(&[bin, next, ..]) => Some([bin, next]),
            _ => None,
        }
    }

    /// Positions of a bin's points, limited by its blocks. Empty if there is no such bin.
    #[inline]
    pub(crate) fn positions(&self, bin: usize) -> Range<usize> {
        self.bin(bin)
            .map_or(0..0, |[bin, next]| position_range(bin, next))
    }

    /// Codes of a bin's points, in whole blocks. Empty if there is no such bin.
    #[inline]
    pub(crate) fn codes(&self, bin: usize) -> &[u8] {
        match self.bin(bin) {
            Some([bin, next]) => blocks(&self.blocks, bin.block, next.block, self.block_bytes()),
            None => &[],
        }
    }

    /// Appends the bins of a cell whose estimate is below `limit`.
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

    /// Positions and codes of a bin's points. Empty if there is no such bin.
    #[inline]
    pub(crate) fn points_of(&self, bin: usize) -> (Range<usize>, &[u8]) {
        match self.bin(bin) {
            Some([bin, next]) => {
                let codes = blocks(&self.blocks, bin.block, next.block, self.block_bytes());
                (position_range(bin, next), codes)
            }
            None => (0..0, &[]),
        }
    }
}

/// Positions of the points of `bin`, limited by its blocks.
#[inline]
fn position_range(bin: Bin, next: Bin) -> Range<usize> {
    let lanes = next.block.saturating_sub(bin.block) as usize * CODE_LANES;
    let count = next.first.saturating_sub(bin.first) as usize;
    let first = bin.first as usize;
    first..first + count.min(lanes)
}

/// Drops entries from `end` on. They come last and are padding whose norm is, against the rule, not infinite.
#[inline]
fn drop_padding(found: &mut Vec<Estimate>, before: usize, end: usize) {
    while found.len() > before && found.last().is_some_and(|last| last.at as usize >= end) {
        found.pop();
    }
}

/// The blocks from `from` to `to`. Empty if they are out of order or out of range.
#[inline]
fn blocks(all: &[u8], from: u32, to: u32, bytes: usize) -> &[u8] {
    let at = |block: u32| (block as usize).checked_mul(bytes);
    match (at(from), at(to)) {
        (Some(from), Some(to)) => all.get(from..to).unwrap_or_default(),
        _ => &[],
    }
}

/// Checks the order of cells, given their first bins and blocks, of `count` bins and of `points` points.
fn check_cells_and_bins(
    (cell_bins, bin_block_of): (&[u32], &[u32]),
    bins: &[Bin],
    count: usize,
    points: usize,
) -> Result<(), String> {
    let cells = cell_bins.iter().zip(bin_block_of);
    let cells = cells.map(|(bin, block)| [*bin, *block]);
    // A trained cell may have no points. A bin may not.
    check_ranges(cells, count, "bins", "cell", true)?;
    let bins = bins.iter().map(|bin| [bin.first, bin.block]);
    check_ranges(bins, points, "points", "bin", false)
}

/// Checks that consecutive ranges, given as [number, block] with the end as the last entry, cover all of `total`,
/// each with as many whole blocks as it needs.
fn check_ranges(
    ranges: impl Iterator<Item = [u32; 2]>,
    total: usize,
    what: &str,
    owner: &str,
    may_be_empty: bool,
) -> Result<(), String> {
    let mut last: Option<[u32; 2]> = None;
    for (number, [next, next_block]) in (0..).zip(ranges) {
        let Some([first, block]) = last.replace([next, next_block]) else {
            if [next, next_block] != [0, 0] {
                return Err(format!("the {what} do not begin with the first"));
            }
            continue;
        };
        let number: usize = number - 1;
        if next < first || next == first && !may_be_empty {
            return Err(format!("{owner} {number} has no {what}"));
        }
        let blocks = (next - first).div_ceil(CODE_LANES as u32);
        if block.checked_add(blocks) != Some(next_block) {
            return Err(format!(
                "{owner} {number} has {} {what} but not {blocks} blocks",
                next - first
            ));
        }
        // A scan numbers the lanes of whole blocks.
        if u64::from(first) + u64::from(blocks) * CODE_LANES as u64 > u64::from(u32::MAX) {
            return Err(format!("the blocks of {owner} {number} cannot be numbered"));
        }
    }
    match last {
        Some([end, _]) if end as usize == total => Ok(()),
        _ => Err(format!(
            "there are {total} {what}, which is not the number that the tables cover"
        )),
    }
}
