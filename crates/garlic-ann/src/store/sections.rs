//! The sections of a segment: cells, bins and codes.
//!
//! Every array is aligned and stored as in memory, so that it can be mapped. Shapes are always checked. The content
//! of arrays that are read is checked by [`validate`](super::validate).

use super::validate;
use std::io::{self, Write};

use garlic_simd::CodeBits;

use crate::bins::{Bin, Bounds, EncodedBins, LayoutCheck};
use crate::partition::AnisotropicCells;
use crate::segment::Segment;
use garlic_core::Transform;
use garlic_core::buffer::Buffer;
use garlic_core::file::{
    Aligned, Fault, Kind, Reader, Section, Source, Word, inconsistent, product,
};

/// Writes one section of the segment. Sections of other kinds are empty.
pub(super) fn write(segment: &Segment, kind: Kind, out: &mut dyn Write) -> io::Result<()> {
    let out = Aligned::new(out);
    match kind {
        Kind::Cells => write_cells(&segment.cells, out),
        Kind::Learned => write_bins(&segment.encoded, &segment.cells, out),
        Kind::Codes => write_codes(&segment.encoded, out),
        _ => Ok(()),
    }
}

fn write_cells(model: &AnisotropicCells, mut out: Aligned<'_>) -> io::Result<()> {
    out.put(&[model.len() as u64, model.rank as u64, model.dim as u64])?;
    out.put(&[model.anisotropy])?;
    out.array(&model.means)?;
    out.array(&model.axes)?;
    out.array(&model.variances)?;
    out.array(&model.residual_variances)
}

fn write_bins(
    encoded: &EncodedBins,
    model: &AnisotropicCells,
    mut out: Aligned<'_>,
) -> io::Result<()> {
    let bits = match encoded.bits {
        CodeBits::Eight => 8,
        CodeBits::Four => 4,
    };
    out.put(&[
        model.len() as u64,
        model.rank as u64,
        encoded.width as u64,
        bits,
        encoded.bounds.len() as u64,
    ])?;
    out.array(&encoded.origins)?;
    out.array(&encoded.bin_steps)?;
    out.array(&encoded.steps)?;
    out.array(&encoded.cell_bins)?;
    out.array(&encoded.bin_block_of)?;
    out.array(&encoded.bins)?;
    out.array(&encoded.bounds)
}

fn write_codes(encoded: &EncodedBins, mut out: Aligned<'_>) -> io::Result<()> {
    out.array(&encoded.bin_blocks)?;
    out.array(&encoded.blocks)
}

/// Reads the consecutive sections of the segment.
pub(super) fn read<R: Source>(
    reader: &mut Reader<R>,
    cells: u64,
    points: u64,
    transform: &Transform,
) -> Result<(AnisotropicCells, EncodedBins), Fault> {
    let checked = !reader.is_mapped();
    let points = points as usize;
    let model = reader.large_section(Kind::Cells, |section| read_cells(section, cells))?;
    validate::check_cell_shapes(&model, transform)?;
    if checked {
        validate::check_cells(&model, transform)?;
    }
    let mut encoded = reader.large_section(Kind::Learned, |section| read_bins(section, &model))?;
    validate::check_bin_shapes(&encoded, &model, points)?;
    if checked {
        validate::check_bins(&encoded, transform, points)?;
    }
    (encoded.bin_blocks, encoded.blocks) = reader.large_section(Kind::Codes, |section| {
        let [bins, points] = validate::code_bytes(&encoded);
        section.expect_arrays(&[(Some(bins), 1), (Some(points), 1)])?;
        Ok((section.array(bins)?, section.array(points)?))
    })?;
    if checked {
        validate::check_codes(&encoded)?;
    }
    Ok((model, encoded))
}

fn read_cells<R: Source>(
    section: &mut Section<'_, R>,
    expected: u64,
) -> Result<AnisotropicCells, Fault> {
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
    Ok(AnisotropicCells {
        anisotropy,
        dim: dim as usize,
        rank: rank as usize,
        means: section.array(cells * dim)?,
        axes: section.array(cells * rank * dim)?,
        variances: section.array(cells * rank)?,
        residual_variances: section.array(cells)?,
    })
}

/// Reads everything except the codes.
fn read_bins<R: Source>(
    section: &mut Section<'_, R>,
    model: &AnisotropicCells,
) -> Result<EncodedBins, Fault> {
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
    Ok(EncodedBins {
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
        order: LayoutCheck::default(),
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
            code_sum: self.code_sum.swapped(),
        }
    }

    fn is_valid(self) -> bool {
        [self.radius, self.low, self.high, self.error, self.code_sum]
            .into_iter()
            .all(f32::is_finite)
    }
}
