//! The body of the published method: Gaussians, frames and bins.

use std::io::{self, Write};

use super::bins::read_bins;
use super::decode::{Meta, matrix, product};
use super::error::{Fault, inconsistent};
use super::layout::Kind;
use super::read::Reader;
use super::source::Source;
use super::write::put;
use crate::cell::bins::BinsParts;
use crate::cell::sphere::Steps;
use crate::cell::{Cell, Frame};
use crate::config::Covariance;
use crate::index::{Coverage, Published};
use crate::model::{Factors, Gaussians};
use crate::search::Router;
use crate::train::History;

/// Most steps that the grids of all cells may have together in a file of `file_len` bytes. A grid keeps its
/// edges in memory, so a few bytes of steps could otherwise ask for any amount of it.
pub(super) fn edge_limit(file_len: u64) -> u64 {
    (1_u64 << 22).saturating_add(file_len)
}

/// The number that stands for a structure of factors.
const fn structure_number(covariance: Covariance) -> u64 {
    match covariance {
        Covariance::Full => 0,
        Covariance::Diagonal => 1,
        Covariance::Isotropic => 2,
    }
}

/// Says what to do when the grids have more steps than [`edge_limit`] allows.
pub(super) fn too_many_steps(body: &Published, file_len: u64) -> Option<String> {
    let edges: u64 = grids(body).map(|steps| u64::from(steps.count)).sum();
    (edges > edge_limit(file_len)).then(|| {
        format!(
            "the grids of all cells have {edges} steps, too many for this number of points; \
             lower `radial_steps` or `angular_steps`"
        )
    })
}

fn grids(body: &Published) -> impl Iterator<Item = Steps> + '_ {
    body.cells.iter().flat_map(|cell| cell.bins.grid().steps())
}

/// Writes one section of the body; sections of other bodies are empty.
pub(super) fn write(body: &Published, kind: Kind, out: &mut dyn Write) -> io::Result<()> {
    let model = &body.model;
    match kind {
        Kind::Means => put(out, model.means.as_slice()),
        Kind::Factors => {
            put(out, &[structure_number(model.factors.covariance())])?;
            put(out, model.factors.values())
        }
        Kind::Frames => write_frames(body, out),
        Kind::Bins => write_bins(body, out),
        _ => Ok(()),
    }
}

fn write_frames(body: &Published, out: &mut dyn Write) -> io::Result<()> {
    let frames = || body.cells.iter().map(|cell| &cell.frame);
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

fn write_bins(body: &Published, out: &mut dyn Write) -> io::Result<()> {
    let parts = || body.cells.iter().map(|cell| cell.bins.parts());
    let total =
        |count: fn(&BinsParts<'_>) -> usize| parts().map(|parts| count(&parts) as u64).sum::<u64>();
    put(
        out,
        &[
            body.cells.len() as u64,
            total(|parts| parts.grid.dim()),
            total(|parts| parts.occupied.len()),
            total(|parts| parts.members.len()),
        ],
    )?;
    let (lows, (highs, counts)): (Vec<f64>, (Vec<f64>, Vec<u32>)) = grids(body)
        .map(|steps| (steps.lo, (steps.hi, steps.count)))
        .unzip();
    put(out, &lows)?;
    put(out, &highs)?;
    put(out, &counts)?;
    let each = |count: fn(&BinsParts<'_>) -> usize| -> Vec<u32> {
        parts().map(|parts| count(&parts) as u32).collect()
    };
    put(out, &each(|parts| parts.grid.dim()))?;
    put(out, &each(|parts| parts.occupied.len()))?;
    for parts in parts() {
        put(out, parts.offsets)?;
    }
    for parts in parts() {
        put(out, parts.occupied)?;
    }
    for parts in parts() {
        put(out, parts.members)?;
    }
    Ok(())
}

/// Reads the sections of the body, which follow each other.
pub(super) fn read<R: Source>(
    reader: &mut Reader<R>,
    meta: &Meta,
    coverage: Coverage,
    history: History,
) -> Result<Published, Fault> {
    let model = read_model(reader, meta)?;
    let frames = read_frames(reader, meta)?;
    let bins = read_bins(reader, meta, &frames)?;
    let cells = frames
        .into_iter()
        .zip(bins)
        .map(|(frame, bins)| Cell { frame, bins })
        .collect();
    let router = Router::new(&model);
    Ok(Published {
        model,
        cells,
        coverage,
        history,
        router,
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
    let most = meta.config.rank.min(dim);
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
