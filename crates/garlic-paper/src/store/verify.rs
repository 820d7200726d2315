//! What opening leaves out because a search does not rely on it, and the summary of a file.

mod tempered;

use serde::Serialize;

use super::error::{Fault, inconsistent};
use super::layout::{Kind, Layout};
use crate::cell::Cell;
use crate::cell::sphere::distance_to_bin;
use crate::index::{Body, Index, Published};

/// Points whose bins are recomputed: each costs a rotation, so a large index is checked by sample.
const SAMPLE: usize = 2048;
/// How far inner products of axes may be from those of an orthonormal basis.
const AXIS_TOLERANCE: f32 = 1e-3;
/// How far a point may lie outside its bin, relative to its size: rounding differs between machines.
const BIN_TOLERANCE: f64 = 1e-4;

/// What a verified file holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Format version.
    pub version: u32,
    /// Length of the file.
    pub file_bytes: u64,
    /// Dimension of the vectors.
    pub dim: usize,
    /// Number of vectors.
    pub points: usize,
    /// Number of cells.
    pub cells: usize,
    /// The sections, in the order of the file.
    pub sections: Vec<SectionSummary>,
}

/// One section of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SectionSummary {
    /// Name of what it holds.
    pub kind: &'static str,
    /// Where it begins.
    pub offset: u64,
    /// How long it is.
    pub length: u64,
    /// CRC-32 of its bytes.
    pub checksum: u32,
}

impl Summary {
    pub(super) fn new(index: &Index, layout: &Layout) -> Self {
        let section = |entry: &super::layout::Entry| SectionSummary {
            kind: entry.kind.name(),
            offset: entry.offset,
            length: entry.length,
            checksum: entry.checksum,
        };
        Self {
            version: layout.version,
            file_bytes: layout.file_len,
            dim: index.dim(),
            points: index.len(),
            cells: index.cells(),
            sections: layout.entries.iter().map(section).collect(),
        }
    }
}

/// Checks identifiers, axes, members, bins and codes of an index that was read.
pub(super) fn check(index: &Index) -> Result<(), Fault> {
    check_ids(index)?;
    if let Some(rotation) = &index.space.rotation {
        let axes = rotation.as_slice();
        check_axes(axes, index.space.dim())
            .map_err(|message| inconsistent(Kind::Space, message))?;
    }
    match &index.body {
        Body::Published(body) => check_published(index, body),
        Body::Tempered(body) => tempered::check(index, body),
    }
}

/// Points between two that are looked at more closely.
fn every(index: &Index) -> usize {
    index.len().div_ceil(SAMPLE).max(1)
}

/// The vector at a position.
fn vector(index: &Index, position: usize) -> Vec<f32> {
    let mut out = Vec::new();
    index.vectors.read(index.space.dim(), position, &mut out);
    out
}

fn check_published(index: &Index, body: &Published) -> Result<(), Fault> {
    let mut last_cell = vec![usize::MAX; index.len()];
    let every = every(index);
    let mut point = vec![0.0; index.space.dim()];
    for (number, cell) in body.cells.iter().enumerate() {
        check_axes(cell.frame.basis.as_slice(), index.space.dim())
            .map_err(|message| inconsistent(Kind::Frames, format!("cell {number}: {message}")))?;
        let wrong = |message: String| inconsistent(Kind::Bins, format!("cell {number}: {message}"));
        for (bin, position) in members(cell) {
            let at = position as usize;
            if std::mem::replace(&mut last_cell[at], number) == number {
                return Err(wrong(format!(
                    "the point at position {position} is listed twice"
                )));
            }
            if at.is_multiple_of(every) {
                index.space.apply(&vector(index, at), &mut point);
                if !lies_in_bin(cell, bin, &point) {
                    return Err(wrong(format!(
                        "the point at position {position} does not lie in bin {bin}"
                    )));
                }
            }
        }
    }
    Ok(())
}

/// Every identifier is there once; where points may lie in two cells, at most twice, with the same vector.
fn check_ids(index: &Index) -> Result<(), Fault> {
    let mut sorted: Vec<(u64, usize)> = index.ids.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    let wrong = |message: String| Err(inconsistent(Kind::Ids, message));
    let mut distinct = 0;
    for same in sorted.chunk_by(|a, b| a.0 == b.0) {
        distinct += 1;
        let id = same[0].0;
        match same {
            [_] => {}
            [_, _] if !index.spills() => {
                return wrong(format!("the identifier {id} is given twice"));
            }
            [(_, first), (_, second)] => {
                if vector(index, *first) != vector(index, *second) {
                    return wrong(format!("the identifier {id} has two vectors"));
                }
            }
            more => return wrong(format!("the identifier {id} is given {} times", more.len())),
        }
    }
    match index.spills() && distinct != index.len() {
        true => wrong(format!("{distinct} identifiers of {} points", index.len())),
        false => Ok(()),
    }
}

/// Fails unless the rows of `axes` are orthonormal.
fn check_axes(axes: &[f32], dim: usize) -> Result<(), String> {
    let axes: Vec<&[f32]> = axes.chunks_exact(dim).collect();
    for (i, a) in axes.iter().enumerate() {
        for (j, b) in axes[..=i].iter().enumerate() {
            let expected = if i == j { 1.0 } else { 0.0 };
            let found = garlic_simd::dot(a, b);
            // Not `> AXIS_TOLERANCE`: NaN has to fail as well.
            let near = (found - expected).abs() <= AXIS_TOLERANCE;
            if !near {
                return Err(format!(
                    "axes {j} and {i} have the inner product {found}, not {expected}"
                ));
            }
        }
    }
    Ok(())
}

/// Every member with the number of its bin.
fn members(cell: &Cell) -> impl Iterator<Item = (u32, u32)> + '_ {
    let bins = &cell.bins;
    bins.occupied()
        .iter()
        .enumerate()
        .flat_map(move |(index, bin)| {
            bins.members_of(index)
                .iter()
                .map(move |position| (*bin, *position))
        })
}

fn lies_in_bin(cell: &Cell, bin: u32, point: &[f32]) -> bool {
    let (mut centred, mut local) = (Vec::new(), Vec::new());
    cell.frame.project(point, &mut centred, &mut local);
    let size = |v: &[f32]| v.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    let slack =
        BIN_TOLERANCE * (size(point) + size(&cell.frame.centre)) + f64::from(f32::MIN_POSITIVE);
    distance_to_bin(&local, &cell.bins.grid().region(bin)) <= slack
}
