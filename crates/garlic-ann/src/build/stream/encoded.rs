//! Encoded groups of cells in files, and the arrays of all of them.

use garlic_core::buffer::{Blank, Buffer};
use garlic_core::{Error, Result};
use garlic_simd::{CodeBits, code_block_bytes};
use serde::{Deserialize, Serialize};

use super::folder::{Cursor, Folder, Output};
use crate::bins::{Bin, Bounds, EncodedBins, EncodedCell, LayoutCheck, Scales, append_bins};
use crate::quantize::BIN_BITS;

/// Lengths of the arrays of an encoded group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct GroupLengths {
    cells: usize,
    bins: usize,
    pub(super) points: usize,
    bin_block_bytes: usize,
    block_bytes: usize,
}

/// What the codes of all groups have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodeShape {
    pub(super) bits: CodeBits,
    pub(super) width: usize,
    pub(super) rank: usize,
}

/// An encoded cell, and its rows in stored order.
pub(super) type Part = (Scales, EncodedCell, Vec<u32>);

fn name(group: usize) -> String {
    format!("encoded-{group}")
}

/// Writes an encoded group.
pub(super) fn write(folder: &Folder, group: usize, parts: &[Part]) -> Result<GroupLengths> {
    let mut out = folder.create(&name(group), 1 << 20)?;
    let mut lengths = GroupLengths {
        cells: parts.len(),
        ..GroupLengths::default()
    };
    type Put<'a> = &'a dyn Fn(&mut Output, &Part) -> Result<()>;
    let arrays: [Put<'_>; 9] = [
        &|out, (scales, ..)| out.put(&scales.origin),
        &|out, (scales, ..)| out.put(&scales.bin_steps),
        &|out, (scales, ..)| out.put(&scales.steps),
        &|out, (_, part, _)| out.put(&[part.sizes.len() as u32]),
        &|out, (_, part, _)| out.put(&part.sizes),
        &|out, (_, _, rows)| out.put(rows),
        &|out, (_, part, _)| out.put(&part.bounds),
        &|out, (_, part, _)| out.put(&part.bin_blocks),
        &|out, (_, part, _)| out.put(&part.blocks),
    ];
    for put in arrays {
        parts.iter().try_for_each(|part| put(&mut out, part))?;
    }
    for (_, part, rows) in parts {
        lengths.bins += part.sizes.len();
        lengths.points += rows.len();
        lengths.bin_block_bytes += part.bin_blocks.len();
        lengths.block_bytes += part.blocks.len();
    }
    out.finish()?;
    Ok(lengths)
}

/// A blank array, or the error that there is no memory for it.
fn blank<T: bytemuck::Pod + Send>(len: usize) -> Result<Blank<T>> {
    Blank::new(len).ok_or_else(|| Error::Config {
        key: "memory".into(),
        message: format!(
            "the system has no {} bytes for an array of the index",
            len * size_of::<T>()
        ),
    })
}

/// The arrays of all groups, and the identifier of every position. `id` maps rows to identifiers. Each array has its
/// final size from the beginning, so that none is in memory twice.
pub(super) fn assemble(
    folder: &Folder,
    groups: &[GroupLengths],
    shape: CodeShape,
    id: impl Fn(u32) -> u64,
    held: &[u32],
) -> Result<(EncodedBins, Buffer<u64>, Vec<u32>)> {
    let total = |of: fn(&GroupLengths) -> usize| groups.iter().map(of).sum::<usize>();
    let CodeShape { bits, width, rank } = shape;
    let bin_block_bytes = code_block_bytes(BIN_BITS, width);
    let mut ids = blank::<u64>(total(|g| g.points))?;
    let mut blocks = blank::<u8>(total(|g| g.block_bytes))?;
    let mut bin_blocks = blank::<u8>(total(|g| g.bin_block_bytes))?;
    let mut bounds = blank::<Bounds>(total(|g| g.bins))?;
    let mut bins = Vec::with_capacity(total(|g| g.bins) + 1);
    bins.push(Bin::default());
    let (mut origins, mut bin_steps, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    let (mut cell_bins, mut bin_block_of) = (vec![0], vec![0]);
    let mut held_at = Vec::with_capacity(held.len());
    let (mut point, mut bin, mut bin_byte, mut byte) = (0, 0, 0, 0);
    for (number, group) in groups.iter().enumerate() {
        let mut from = Cursor::open(folder, &name(number))?;
        origins.extend(from.next::<f32>(group.cells * rank)?);
        bin_steps.extend(from.next::<f32>(group.cells * width)?);
        steps.extend(from.next::<f32>(group.cells * width)?);
        for count in from.next::<u32>(group.cells)? {
            cell_bins.push(cell_bins[cell_bins.len() - 1] + count);
            let bytes = (count as usize).div_ceil(garlic_simd::CODE_LANES);
            bin_block_of.push(bin_block_of[bin_block_of.len() - 1] + bytes as u32);
        }
        append_bins(&from.next::<u32>(group.bins)?, &mut bins);
        for row in from.next::<u32>(group.points)? {
            if held.binary_search(&row).is_ok() {
                held_at.push(point as u32);
            }
            ids[point] = id(row);
            point += 1;
        }
        from.fill(&mut bounds[bin..bin + group.bins])?;
        from.fill(&mut bin_blocks[bin_byte..bin_byte + group.bin_block_bytes])?;
        from.fill(&mut blocks[byte..byte + group.block_bytes])?;
        bin += group.bins;
        bin_byte += group.bin_block_bytes;
        byte += group.block_bytes;
    }
    debug_assert_eq!(
        bin_byte,
        bin_block_of[bin_block_of.len() - 1] as usize * bin_block_bytes
    );
    let encoded = EncodedBins {
        bits,
        width,
        origins: origins.into(),
        bin_steps: bin_steps.into(),
        steps: steps.into(),
        cell_bins: cell_bins.into(),
        bin_blocks: bin_blocks.freeze(),
        bin_block_of: bin_block_of.into(),
        bins: bins.into(),
        blocks: blocks.freeze(),
        bounds: bounds.freeze(),
        order: LayoutCheck::default(),
    };
    Ok((encoded, ids.freeze(), held_at))
}
