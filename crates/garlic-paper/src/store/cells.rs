//! The sections MEANS, FACTORS and FRAMES: Gaussians and frames of the cells.

use std::io::{self, Write};

use garlic_core::file::{Fault, Kind, Reader, Source, inconsistent, matrix, product, put};

use super::bins;
use super::meta::{Body, Meta};
use crate::bins::{Cell, Frame};
use crate::config::Covariance;
use crate::gaussians::{Factors, Gaussians};
use crate::index::Trained;
use crate::route::Router;

/// The number that stands for a structure of factors.
const fn structure_number(covariance: Covariance) -> u64 {
    match covariance {
        Covariance::Full => 0,
        Covariance::Diagonal => 1,
        Covariance::Isotropic => 2,
    }
}

/// Writes FACTORS.
pub(super) fn write_factors(model: &Gaussians, out: &mut dyn Write) -> io::Result<()> {
    put(out, &[structure_number(model.factors.covariance())])?;
    put(out, model.factors.values())
}

/// Writes FRAMES.
pub(super) fn write_frames(cells: &[Cell], out: &mut dyn Write) -> io::Result<()> {
    let frames = || cells.iter().map(|cell| &cell.frame);
    let ranks: Vec<u32> = frames().map(|frame| frame.basis.rows() as u32).collect();
    let axes = ranks.iter().map(|rank| u64::from(*rank)).sum();
    put(out, &[ranks.len() as u64, axes])?;
    put(out, &ranks)?;
    for frame in frames() {
        put(out, &frame.centre)?;
    }
    for frame in frames() {
        put(out, frame.basis.as_slice())?;
    }
    Ok(())
}

/// Reads the sections of Gaussians, frames and bins, which follow each other.
pub(super) fn read<R: Source>(reader: &mut Reader<R>, meta: &Meta) -> Result<Trained, Fault> {
    let model = read_model(reader, meta)?;
    let frames = read_frames(reader, meta)?;
    let bins = bins::read(reader, meta, &frames)?;
    let cells = frames.into_iter().zip(bins);
    let Body::Published { coverage, history } = &meta.body;
    Ok(Trained {
        cells: cells.map(|(frame, bins)| Cell { frame, bins }).collect(),
        coverage: *coverage,
        history: history.clone(),
        router: Router::new(&model),
        model,
    })
}

fn read_model<R: Source>(reader: &mut Reader<R>, meta: &Meta) -> Result<Gaussians, Fault> {
    let means = reader.section(Kind::Means, |section| {
        section.expect(product(&[meta.cells, meta.dim, 4]))?;
        section.words::<f32>(meta.cells * meta.dim)
    })?;
    let (covariance, values) = reader.section(Kind::Factors, |section| {
        let number = section.word::<u64>()?;
        let structures = [
            Covariance::Full,
            Covariance::Diagonal,
            Covariance::Isotropic,
        ];
        let known = structures
            .into_iter()
            .find(|structure| structure_number(*structure) == number);
        let Some(covariance) = known else {
            return Err(inconsistent(
                Kind::Factors,
                format!("there is no structure {number}"),
            ));
        };
        let stride = match covariance {
            Covariance::Full => meta
                .dim
                .checked_add(1)
                .and_then(|next| next.checked_mul(meta.dim)),
            Covariance::Diagonal => meta.dim.checked_mul(2),
            Covariance::Isotropic => Some(2),
        };
        let stride = stride.map(|twice| twice / 2);
        section.expect(stride.and_then(|stride| product(&[meta.cells, stride, 4])))?;
        Ok((covariance, section.words::<f32>(section.left() / 4)?))
    })?;
    let dim = meta.dim as usize;
    let stride = Factors::stride(covariance, dim);
    for (cell, factor) in values.chunks_exact(stride).enumerate() {
        let on_diagonal = |row: usize| match covariance {
            Covariance::Full => factor[row * (row + 1) / 2 + row],
            Covariance::Diagonal => factor[row],
            Covariance::Isotropic => factor[0],
        };
        if let Some(row) = (0..dim).find(|row| on_diagonal(*row) <= 0.0) {
            let message =
                format!("the factor of cell {cell} is not positive at diagonal entry {row}");
            return Err(inconsistent(Kind::Factors, message));
        }
    }
    Ok(Gaussians {
        means: matrix(Kind::Means, means, meta.dim)?,
        factors: Factors::from_values(covariance, values),
    })
}

fn read_frames<R: Source>(reader: &mut Reader<R>, meta: &Meta) -> Result<Vec<Frame>, Fault> {
    let wrong = |message: String| inconsistent(Kind::Frames, message);
    let (ranks, centres, bases) = reader.section(Kind::Frames, |section| {
        let [cells, axes] = [section.word::<u64>()?, section.word::<u64>()?];
        if cells != meta.cells {
            return Err(wrong(format!("{cells} frames for {} cells", meta.cells)));
        }
        let rows = cells
            .checked_add(axes)
            .and_then(|rows| product(&[rows, meta.dim, 4]));
        let ranks = product(&[cells, 4]);
        section.expect(
            rows.zip(ranks)
                .and_then(|(rows, ranks)| rows.checked_add(ranks)),
        )?;
        let ranks = section.words::<u32>(cells)?;
        let centres = section.words::<f32>(cells * meta.dim)?;
        let bases = section.words::<f32>(axes * meta.dim)?;
        Ok((ranks, centres, bases))
    })?;
    let dim = meta.dim as usize;
    let most = meta.config.0.bins.rank.min(dim);
    let mut rest = bases.as_slice();
    let mut frames = Vec::with_capacity(ranks.len());
    for (cell, (rank, centre)) in ranks.into_iter().zip(centres.chunks_exact(dim)).enumerate() {
        let rank = rank as usize;
        if rank > most {
            return Err(wrong(format!(
                "the frame of cell {cell} has {rank} axes, at most {most} are allowed"
            )));
        }
        let Some((basis, after)) = rest.split_at_checked(rank * dim) else {
            return Err(wrong(format!(
                "the ranks up to cell {cell} need more axes than there are"
            )));
        };
        rest = after;
        frames.push(Frame {
            centre: centre.to_vec(),
            basis: matrix(Kind::Frames, basis.to_vec(), meta.dim)?,
        });
    }
    if !rest.is_empty() {
        return Err(wrong(format!(
            "{} axes belong to no cell",
            rest.len() / dim
        )));
    }
    Ok(frames)
}
