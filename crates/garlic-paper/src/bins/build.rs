//! From an assignment to cells: frames, bins, and the order in which the points are stored.

use std::sync::atomic::{AtomicUsize, Ordering};

use garlic_core::{Cancel, Error, Lists, Result};
use garlic_linalg::{Matrix, Rows};
use rayon::prelude::*;

use super::{Bins, Cell, Frame, Grid};
use crate::config::Config;
use crate::gaussians::Assignment;
use crate::streams;

/// The cells of all points, and the stored order: `order[position]` is the row that lies there.
///
/// A point's home is its nearest cell; points lie in the order of (home, bin in the home cell, row), so that a
/// bin's own points are neighbours in memory. Other cells that cover a point refer to its position.
pub(crate) fn cells(
    points: Rows<'_>,
    assignment: &Assignment,
    count: usize,
    config: &Config,
    cancel: &Cancel,
    done: &(dyn Fn(usize) + Sync),
) -> Result<(Vec<Cell>, Vec<u32>)> {
    let members = Lists::group(count, assignment.memberships());
    let finished = AtomicUsize::new(0);
    let mut cells: Vec<Cell> = (0..count)
        .into_par_iter()
        .map(|cell| {
            cancel.check()?;
            let members = members.get(cell);
            let own = Matrix::gather(points, members);
            let built = self::cell(own.as_rows(), members, config, cell)?;
            done(finished.fetch_add(1, Ordering::Relaxed) + 1);
            Ok(built)
        })
        .collect::<Result<_>>()?;

    let mut order = Vec::with_capacity(points.len());
    for (number, cell) in cells.iter().enumerate() {
        let own = cell
            .bins
            .members()
            .iter()
            .filter(|p| assignment.nearest[**p as usize] as usize == number);
        order.extend(own.copied());
    }
    debug_assert_eq!(order.len(), points.len());
    store_in_order(&mut cells, &order)?;
    Ok((cells, order))
}

/// Replaces the members of all cells by the positions that they are stored at: `order[position]` is a member's number.
pub(crate) fn store_in_order(cells: &mut [Cell], order: &[u32]) -> Result<()> {
    let numbers = order.iter().max().map_or(0, |most| *most as usize + 1);
    let mut position = vec![0u32; numbers];
    for (at, row) in order.iter().enumerate() {
        position[*row as usize] = at as u32;
    }
    cells.par_iter_mut().try_for_each(|cell| {
        let parts = cell.bins.parts();
        let (occupied, offsets) = (parts.occupied.to_vec(), parts.offsets.to_vec());
        let mut places: Vec<u32> = parts
            .members
            .iter()
            .map(|row| position[*row as usize])
            .collect();
        for bin in offsets.windows(2) {
            places[bin[0] as usize..bin[1] as usize].sort_unstable();
        }
        cell.bins =
            Bins::from_parts(parts.grid.clone(), occupied, offsets, places).map_err(bins_error)?;
        Ok::<_, Error>(())
    })
}

/// Frame and bins of one cell; `points` are those of its `members`, in order.
pub(crate) fn cell(
    points: Rows<'_>,
    members: &[u32],
    config: &Config,
    number: usize,
) -> Result<Cell> {
    let frame = if members.is_empty() {
        Frame {
            centre: vec![0.0; points.dim()],
            basis: Matrix::zeros(0, points.dim()),
        }
    } else {
        Frame::fit(
            points,
            config.bins.rank,
            config.seed ^ (streams::FRAMES + number as u64),
        )
    };
    let mut coordinates = Vec::with_capacity(members.len() * frame.rank());
    let mut centred = Vec::new();
    for row in points.iter() {
        frame.project(row, &mut centred, &mut coordinates);
    }
    let (radial, angular) = (config.bins.radial_steps, config.bins.angular_steps);
    let grid = Grid::fit(&coordinates, frame.rank(), radial, angular).map_err(bins_error)?;
    let bins = Bins::build(grid, &coordinates, members).map_err(bins_error)?;
    Ok(Cell { frame, bins })
}

/// The configuration is checked before, so this names a bug rather than a user's mistake.
fn bins_error(error: impl std::fmt::Display) -> Error {
    Error::Config {
        key: "radial_steps".into(),
        message: error.to_string(),
    }
}
