//! The section BINS: grids, occupied bins, offsets and members of all cells.

use std::io::{self, Write};

use garlic_core::file::{Fault, Kind, Reader, Source, inconsistent, product, put};

use super::meta::Meta;
use crate::bins::{Bins, BinsParts, Cell, Frame, Grid, Steps};

/// Most steps that the grids of all cells may have together in a file of `file_len` bytes. A grid keeps its
/// edges in memory, so a few bytes of steps could otherwise ask for any amount of it.
fn edge_limit(file_len: u64) -> u64 {
    (1_u64 << 22).saturating_add(file_len)
}

/// Says what to do when the grids have more steps than [`edge_limit`] allows.
pub(super) fn too_many_steps(cells: &[Cell], file_len: u64) -> Option<String> {
    let edges: u64 = grids(cells).map(|steps| u64::from(steps.count)).sum();
    (edges > edge_limit(file_len)).then(|| {
        format!(
            "the grids of all cells have {edges} steps, too many for this number of points; \
             lower `radial_steps` or `angular_steps`"
        )
    })
}

fn grids(cells: &[Cell]) -> impl Iterator<Item = Steps> + '_ {
    cells.iter().flat_map(|cell| cell.bins.grid().steps())
}

/// Writes the section.
pub(super) fn write(cells: &[Cell], out: &mut dyn Write) -> io::Result<()> {
    let parts = || cells.iter().map(|cell| cell.bins.parts());
    let total =
        |count: fn(&BinsParts<'_>) -> usize| parts().map(|parts| count(&parts) as u64).sum::<u64>();
    put(
        out,
        &[
            cells.len() as u64,
            total(|parts| parts.grid.dim()),
            total(|parts| parts.occupied.len()),
            total(|parts| parts.members.len()),
        ],
    )?;
    let (lows, (highs, counts)): (Vec<f64>, (Vec<f64>, Vec<u32>)) = grids(cells)
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

/// The arrays of the section, each for all cells together.
struct Arrays {
    lows: Vec<f64>,
    highs: Vec<f64>,
    counts: Vec<u32>,
    dims: Vec<u32>,
    occupied_counts: Vec<u32>,
    offsets: Vec<u32>,
    occupied: Vec<u32>,
    members: Vec<u32>,
}

/// Reads the bins of every cell and checks that together they hold every point.
pub(super) fn read<R: Source>(
    reader: &mut Reader<R>,
    meta: &Meta,
    frames: &[Frame],
) -> Result<Vec<Bins>, Fault> {
    let file_len = reader.layout().file_len;
    let arrays = read_arrays(reader, meta.cells)?;
    let edges = arrays
        .counts
        .iter()
        .map(|count| u64::from(*count))
        .sum::<u64>();
    if edges > edge_limit(file_len) {
        return Err(wrong(format!(
            "grids of {edges} steps are too large for this file"
        )));
    }

    let mut steps = (arrays.lows.into_iter().zip(arrays.highs).zip(arrays.counts))
        .map(|((lo, hi), count)| Steps { lo, hi, count });
    let mut offsets = Parts::new(&arrays.offsets, "offsets");
    let mut occupied = Parts::new(&arrays.occupied, "occupied bins");
    let mut members = Parts::new(&arrays.members, "members");
    let mut seen = vec![false; meta.points as usize];
    let mut all = Vec::with_capacity(frames.len());
    for (cell, frame) in frames.iter().enumerate() {
        let in_cell = |message: String| wrong(format!("cell {cell}: {message}"));
        let rank = frame.basis.rows();
        if arrays.dims[cell] as usize != rank {
            let dim = arrays.dims[cell];
            return Err(in_cell(format!(
                "a grid of {dim} coordinates in a frame of {rank} axes"
            )));
        }
        let steps: Vec<Steps> = steps.by_ref().take(rank).collect();
        if steps.len() < rank {
            return Err(in_cell("its grid is missing".into()));
        }
        let grid = Grid::from_steps(&steps).map_err(|error| in_cell(error.to_string()))?;
        let bins = arrays.occupied_counts[cell] as usize;
        let occupied = occupied.take(bins).map_err(in_cell)?;
        let offsets = offsets.take(bins.saturating_add(1)).map_err(in_cell)?;
        let members = members.take(offsets[bins] as usize).map_err(in_cell)?;
        for position in &members {
            match seen.get_mut(*position as usize) {
                Some(seen) => *seen = true,
                None => {
                    let points = meta.points;
                    return Err(in_cell(format!(
                        "the member {position} is not below {points}"
                    )));
                }
            }
        }
        let bins = Bins::from_parts(grid, occupied, offsets, members)
            .map_err(|error| in_cell(error.to_string()))?;
        all.push(bins);
    }
    if steps.next().is_some() {
        return Err(wrong("steps that belong to no grid".into()));
    }
    for done in [offsets.done(), occupied.done(), members.done()] {
        done.map_err(wrong)?;
    }
    match seen.iter().position(|seen| !seen) {
        Some(position) => Err(wrong(format!(
            "the point at position {position} is in no cell"
        ))),
        None => Ok(all),
    }
}

fn read_arrays<R: Source>(reader: &mut Reader<R>, expected: u64) -> Result<Arrays, Fault> {
    reader.section(Kind::Bins, |section| {
        let mut header = [0_u64; 4];
        for word in &mut header {
            *word = section.word()?;
        }
        let [cells, axes, occupied, members] = header;
        if cells != expected {
            return Err(wrong(format!(
                "bins of {cells} cells, there are {expected}"
            )));
        }
        let needed = [(axes, 20), (cells, 12), (occupied, 8), (members, 4)]
            .into_iter()
            .try_fold(0_u64, |sum, (count, bytes)| {
                sum.checked_add(product(&[count, bytes])?)
            });
        section.expect(needed)?;
        Ok(Arrays {
            lows: section.words(axes)?,
            highs: section.words(axes)?,
            counts: section.words(axes)?,
            dims: section.words(cells)?,
            occupied_counts: section.words(cells)?,
            offsets: section.words(occupied + cells)?,
            occupied: section.words(occupied)?,
            members: section.words(members)?,
        })
    })
}

fn wrong(message: String) -> Fault {
    inconsistent(Kind::Bins, message)
}

/// An array of all cells, handed out cell by cell.
struct Parts<'a> {
    rest: &'a [u32],
    what: &'static str,
}

impl<'a> Parts<'a> {
    fn new(rest: &'a [u32], what: &'static str) -> Self {
        Self { rest, what }
    }

    fn take(&mut self, count: usize) -> Result<Vec<u32>, String> {
        let Some((part, rest)) = self.rest.split_at_checked(count) else {
            return Err(format!(
                "{count} {} are more than the {} left",
                self.what,
                self.rest.len()
            ));
        };
        self.rest = rest;
        Ok(part.to_vec())
    }

    fn done(&self) -> Result<(), String> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(format!("{left} {} belong to no cell", self.what)),
        }
    }
}
