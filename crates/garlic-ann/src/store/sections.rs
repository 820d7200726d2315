//! The segment of the default preset: tempered cells, learned bins and codes.
//!
//! Every array begins at a multiple of the alignment and is kept as it is in memory, so that it can be mapped.
//! Shapes are checked always; what the arrays mean, [`validate`](super::validate) checks of those that are read.

use std::io::{self, Write};

use garlic_simd::CodeBits;

use garlic_core::Transform;
use garlic_core::buffer::Buffer;
use garlic_core::file::{
    Aligned, Fault, Kind, Reader, Section, Source, Word, inconsistent, product,
};

use super::validate;
use crate::cell::learned::{Bin, Bounds, Learned, Order};
use crate::index::Segment;
use crate::model::Tempered;

/// Writes one section of the segment; sections of other bodies are empty.
pub(super) fn write(segment: &Segment, kind: Kind, out: &mut dyn Write) -> io::Result<()> {
    let out = Aligned::new(out);
    match kind {
        Kind::Cells => write_cells(&segment.model, out),
        Kind::Learned => write_learned(&segment.learned, &segment.model, out),
        Kind::Codes => write_codes(&segment.learned, out),
        _ => Ok(()),
    }
}

fn write_cells(model: &Tempered, mut out: Aligned<'_>) -> io::Result<()> {
    out.put(&[model.len() as u64, model.rank as u64, model.dim as u64])?;
    out.put(&[model.anisotropy])?;
    out.array(&model.means)?;
    out.array(&model.axes)?;
    out.array(&model.variances)?;
    out.array(&model.residual)
}

fn write_learned(learned: &Learned, model: &Tempered, mut out: Aligned<'_>) -> io::Result<()> {
    let bits = match learned.bits {
        CodeBits::Eight => 8,
        CodeBits::Four => 4,
    };
    out.put(&[
        model.len() as u64,
        model.rank as u64,
        learned.width as u64,
        bits,
        learned.bounds.len() as u64,
    ])?;
    out.array(&learned.origins)?;
    out.array(&learned.bin_steps)?;
    out.array(&learned.steps)?;
    out.array(&learned.cell_bins)?;
    out.array(&learned.bin_block_of)?;
    out.array(&learned.bins)?;
    out.array(&learned.bounds)
}

fn write_codes(learned: &Learned, mut out: Aligned<'_>) -> io::Result<()> {
    out.array(&learned.bin_blocks)?;
    out.array(&learned.blocks)
}

/// Reads the sections of the segment, which follow each other.
pub(super) fn read<R: Source>(
    reader: &mut Reader<R>,
    cells: u64,
    points: u64,
    transform: &Transform,
) -> Result<(Tempered, Learned), Fault> {
    let checked = !reader.stays();
    let points = points as usize;
    let model = reader.large_section(Kind::Cells, |section| read_cells(section, cells))?;
    validate::check_cell_shapes(&model, transform)?;
    if checked {
        validate::check_cells(&model, transform)?;
    }
    let mut learned =
        reader.large_section(Kind::Learned, |section| read_learned(section, &model))?;
    validate::check_bin_shapes(&learned, &model, points)?;
    if checked {
        validate::check_bins(&learned, transform, points)?;
    }
    (learned.bin_blocks, learned.blocks) = reader.large_section(Kind::Codes, |section| {
        let [bins, points] = validate::code_bytes(&learned);
        section.expect_arrays(&[(Some(bins), 1), (Some(points), 1)])?;
        Ok((section.array(bins)?, section.array(points)?))
    })?;
    if checked {
        validate::check_codes(&learned)?;
    }
    Ok((model, learned))
}

fn read_cells<R: Source>(section: &mut Section<'_, R>, expected: u64) -> Result<Tempered, Fault> {
    let [cells, rank, dim] = [section.word::<u64>()?, section.word()?, section.word()?];
    let anisotropy = section.word::<f32>()?;
    if cells != expected {
        return Err(inconsistent(
            Kind::Cells,
            format!("{cells} cells, META says {expected}"),
        ));
    }
    let [means, axes, variances] = [
        product(&[cells, dim]),
        product(&[cells, rank, dim]),
        product(&[cells, rank]),
    ];
    section.expect_arrays(&[(means, 4), (axes, 4), (variances, 4), (Some(cells), 4)])?;
    Ok(Tempered {
        anisotropy,
        dim: dim as usize,
        rank: rank as usize,
        means: section.array(cells * dim)?,
        axes: section.array(cells * rank * dim)?,
        variances: section.array(cells * rank)?,
        residual: section.array(cells)?,
    })
}

/// Reads all but the codes.
fn read_learned<R: Source>(
    section: &mut Section<'_, R>,
    model: &Tempered,
) -> Result<Learned, Fault> {
    let wrong = |message: String| inconsistent(Kind::Learned, message);
    let mut header = [0_u64; 5];
    for word in &mut header {
        *word = section.word()?;
    }
    let [cells, rank, width, bits, bins] = header;
    if [cells, rank] != [model.len() as u64, model.rank as u64] {
        return Err(wrong(format!(
            "{cells} cells of {rank} axes, CELLS has {} of {}",
            model.len(),
            model.rank
        )));
    }
    let bits = match bits {
        8 => CodeBits::Eight,
        4 => CodeBits::Four,
        other => return Err(wrong(format!("codes of {other} bits, neither 8 nor 4"))),
    };
    let [origins, steps] = [product(&[cells, rank]), product(&[cells, width])];
    let one_more = |count: u64| count.checked_add(1);
    section.expect_arrays(&[
        (origins, 4),
        (steps, 4),
        (steps, 4),
        (one_more(cells), 4),
        (one_more(cells), 4),
        (one_more(bins), size_of::<Bin>()),
        (Some(bins), size_of::<Bounds>()),
    ])?;
    Ok(Learned {
        bits,
        width: width as usize,
        origins: section.array(cells * rank)?,
        bin_steps: section.array(cells * width)?,
        steps: section.array(cells * width)?,
        cell_bins: section.array(cells + 1)?,
        bin_block_of: section.array(cells + 1)?,
        bins: section.array(bins + 1)?,
        bounds: section.array(bins)?,
        bin_blocks: Buffer::default(),
        blocks: Buffer::default(),
        order: Order::default(),
    })
}

impl Word for Bin {
    fn swapped(self) -> Self {
        Self {
            first: self.first.swapped(),
            block: self.block.swapped(),
        }
    }
}

impl Word for Bounds {
    fn swapped(self) -> Self {
        Self {
            radius: self.radius.swapped(),
            low: self.low.swapped(),
            high: self.high.swapped(),
            error: self.error.swapped(),
            mass: self.mass.swapped(),
        }
    }

    fn sound(self) -> bool {
        [self.radius, self.low, self.high, self.error, self.mass]
            .into_iter()
            .all(f32::is_finite)
    }
}
