//! What opening leaves out because a search does not rely on it.

use garlic_core::file::{Fault, Kind, check_axes, inconsistent};

use crate::bins::Cell;
use crate::bins::sphere::distance_to_bin;
use crate::index::GaussianIndex;

/// Points whose bins are recomputed: each costs a rotation, so a large index is checked by sample.
const SAMPLE: usize = 2048;
/// How far a point may lie outside its bin, relative to its size: rounding differs between machines.
const BIN_TOLERANCE: f64 = 1e-4;

/// Checks identifiers, axes, members and bins of an index that was read.
pub(super) fn check(index: &GaussianIndex) -> Result<(), Fault> {
    check_ids(index)?;
    if let Some(rotation) = &index.transform.rotation {
        check_axes(rotation.as_slice(), index.transform.dim())
            .map_err(|message| inconsistent(Kind::Space, message))?;
    }
    check_cells(index)
}

/// Every identifier is there once.
fn check_ids(index: &GaussianIndex) -> Result<(), Fault> {
    let mut sorted: Vec<u64> = index.ids.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            let message = format!("the identifier {} is given twice", pair[0]);
            Err(inconsistent(Kind::Ids, message))
        }
        None => Ok(()),
    }
}

fn check_cells(index: &GaussianIndex) -> Result<(), Fault> {
    let dim = index.transform.dim();
    let mut last_cell = vec![usize::MAX; index.len()];
    let every = index.len().div_ceil(SAMPLE).max(1);
    let (mut vector, mut point) = (Vec::new(), vec![0.0; dim]);
    for (number, cell) in index.trained.cells.iter().enumerate() {
        check_axes(cell.frame.basis.as_slice(), dim)
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
                index.vectors.read(dim, at, &mut vector);
                index.transform.apply(&vector, &mut point);
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
