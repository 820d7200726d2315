//! From the bytes of the sections to an index that a search can trust.
//!
//! Arrays are read as they come; what they mean is checked once the section's checksum is known to be right.
//! Whatever passes here must not make a search panic.

use std::io::Read;

use garlic_linalg::Matrix;
use serde::Deserialize;

use super::encode::structure_number;
use super::error::{Fault, inconsistent};
use super::layout::{Kind, Layout};
use super::read::Reader;
use super::{MAX_META, bins::read_bins};
use crate::cell::{Cell, Frame};
use crate::config::{Config, Covariance};
use crate::index::{Coverage, Index};
use crate::model::{Factors, Gaussians};
use crate::space::Space;
use crate::train::History;

/// What META holds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Meta {
    pub(super) dim: u64,
    pub(super) points: u64,
    pub(super) cells: u64,
    pub(super) config: Config,
    pub(super) coverage: Coverage,
    pub(super) history: History,
}

/// Most steps that the grids of all cells may have together in a file of `file_len` bytes. A grid keeps its
/// edges in memory, so a few bytes of steps could otherwise ask for any amount of it.
pub(super) fn edge_limit(file_len: u64) -> u64 {
    (1_u64 << 22).saturating_add(file_len)
}

/// Reads a whole index of `file_len` bytes.
pub(super) fn read_index(inner: impl Read, file_len: u64) -> Result<(Index, Layout), Fault> {
    let mut reader = Reader::open(inner, file_len)?;
    let meta = read_meta(&mut reader)?;
    let space = read_space(&mut reader, &meta)?;
    let model = read_model(&mut reader, &meta)?;
    let frames = read_frames(&mut reader, &meta)?;
    let bins = read_bins(&mut reader, &meta, &frames)?;
    let vectors = reader.section(Kind::Vectors, |section| {
        section.expect(product(&[meta.points, meta.dim, 4]))?;
        section.words::<f32>(meta.points * meta.dim)
    })?;
    let ids = reader.section(Kind::Ids, |section| {
        section.expect(product(&[meta.points, 8]))?;
        section.words::<u64>(meta.points)
    })?;
    if let Some(at) = ids.iter().position(|id| *id >= 1 << 63) {
        let message = format!(
            "the identifier {} at position {at} is not below 2^63",
            ids[at]
        );
        return Err(inconsistent(Kind::Ids, message));
    }
    let cells = frames
        .into_iter()
        .zip(bins)
        .map(|(frame, bins)| Cell { frame, bins })
        .collect();
    let router = crate::search::Router::new(&model);
    let index = Index {
        config: meta.config,
        space,
        model,
        cells,
        vectors,
        ids,
        coverage: meta.coverage,
        history: meta.history,
        router,
        scratch: Default::default(),
    };
    Ok((index, reader.layout().clone()))
}

fn read_meta<R: Read>(reader: &mut Reader<R>) -> Result<Meta, Fault> {
    let wrong = |message: String| inconsistent(Kind::Meta, message);
    let json = reader.section(Kind::Meta, |section| {
        if section.left() > MAX_META {
            return Err(wrong(format!(
                "{} bytes, at most {MAX_META} are allowed",
                section.left()
            )));
        }
        section.words::<u8>(section.left())
    })?;
    let meta: Meta = serde_json::from_slice(&json).map_err(|error| wrong(error.to_string()))?;
    if meta.dim == 0 || meta.points == 0 || meta.cells == 0 {
        let Meta {
            dim, points, cells, ..
        } = meta;
        return Err(wrong(format!(
            "{points} points of dimension {dim} in {cells} cells are no index"
        )));
    }
    // The largest 32-bit position means "none".
    if meta.points >= u64::from(u32::MAX) {
        return Err(wrong(format!(
            "{} points are more than positions can number",
            meta.points
        )));
    }
    meta.config
        .validate()
        .map_err(|error| wrong(error.to_string()))?;
    // The largest section bounds dimension and points by the file's size before anything relies on them.
    let vectors = reader
        .layout()
        .entries
        .iter()
        .find(|entry| entry.kind == Kind::Vectors);
    if product(&[meta.points, meta.dim, 4]) != vectors.map(|entry| entry.length) {
        return Err(wrong(format!(
            "{} points of dimension {} do not fit the section VECTORS",
            meta.points, meta.dim
        )));
    }
    Ok(meta)
}

fn read_space<R: Read>(reader: &mut Reader<R>, meta: &Meta) -> Result<Space, Fault> {
    let (mean, scale, rotation) = reader.section(Kind::Space, |section| {
        let [dim, rows] = [section.word::<u64>()?, section.word::<u64>()?];
        if dim != meta.dim || (rows != 0 && rows != dim) {
            let message = format!(
                "dimension {dim} with {rows} axes, where vectors have dimension {}",
                meta.dim
            );
            return Err(inconsistent(Kind::Space, message));
        }
        section.expect(
            rows.checked_add(2)
                .and_then(|rows| product(&[rows, dim, 4])),
        )?;
        let mean = section.words::<f32>(dim)?;
        let scale = section.words::<f32>(dim)?;
        let rotation = section.words::<f32>(rows * dim)?;
        Ok((mean, scale, rotation))
    })?;
    if let Some(at) = scale.iter().position(|scale| *scale < 0.0) {
        return Err(inconsistent(
            Kind::Space,
            format!("the scale of coordinate {at} is negative"),
        ));
    }
    let rotation = match rotation.is_empty() {
        true => None,
        false => Some(matrix(Kind::Space, rotation, meta.dim)?),
    };
    Ok(Space {
        mean,
        scale,
        rotation,
    })
}

fn read_model<R: Read>(reader: &mut Reader<R>, meta: &Meta) -> Result<Gaussians, Fault> {
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

fn read_frames<R: Read>(reader: &mut Reader<R>, meta: &Meta) -> Result<Vec<Frame>, Fault> {
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

fn matrix(kind: Kind, values: Vec<f32>, cols: u64) -> Result<Matrix, Fault> {
    Matrix::from_vec(values, cols as usize).map_err(|error| inconsistent(kind, error.to_string()))
}

/// The product, unless it overflows.
pub(super) fn product(factors: &[u64]) -> Option<u64> {
    factors
        .iter()
        .try_fold(1_u64, |all, factor| all.checked_mul(*factor))
}
