//! Fits cells to their points and encodes them, one group of cells after the other.

use std::sync::atomic::{AtomicUsize, Ordering};

use garlic_core::{Result, Stage};
use rayon::prelude::*;

use super::StreamedBuild;
use super::encoded::{self, GroupLengths, Part};
use super::groups::{Records, gather};
use super::journal::Grouped;
use super::steps::VECTORS;
use crate::bins::{BinShapes, encode_cell};
use crate::partition::{AnisotropicCells, AxisCounts, FittedCell, code_bits, fit_options};
use crate::streams;

impl StreamedBuild<'_> {
    /// Fits every cell to its points.
    pub(super) fn fit_cells(&self, grouped: &Grouped) -> Result<AnisotropicCells> {
        let builder = &self.builder;
        let axes = AxisCounts {
            rank: grouped.rank,
            scored_axes: grouped.scored_axes,
        };
        let options = fit_options(&builder.config, axes);
        let dim = grouped.record.out_dim;
        let mut fitted = Vec::with_capacity(grouped.cells);
        for group in 0..grouped.groups.len() {
            let records = self.records(grouped, group)?;
            let cells = grouped.groups.cells(group);
            let members = members(&records, None, cells.clone(), &[]);
            let parts: Result<Vec<FittedCell>> = cells
                .into_par_iter()
                .zip(members)
                .map(|(cell, places)| {
                    builder.cancel.check()?;
                    let rows = gather(places.iter().map(|(_, at)| (&records, *at)), dim)?;
                    let seed = options.seed ^ cell as u64;
                    Ok(FittedCell::fit(rows.as_rows(), axes, seed))
                })
                .collect();
            fitted.extend(parts?);
        }
        let rank = grouped.rank;
        Ok(AnisotropicCells::from_fitted(
            fitted,
            options.anisotropy,
            dim,
            rank,
        ))
    }

    fn records(&self, grouped: &Grouped, group: usize) -> Result<Records> {
        Records::of_group(&self.folder, group, grouped.record)
    }

    /// Encodes the groups that are not encoded yet. `labels` are the cells of the held-out points.
    pub(super) fn encode(
        &mut self,
        grouped: &Grouped,
        cells: &AnisotropicCells,
        held: &Records,
        labels: &[u32],
        rows: usize,
    ) -> Result<()> {
        let config = &self.builder.config;
        let shape = BinShapes {
            bin_size: config.bins.bin_size,
            bits: code_bits(config, rows),
            seed: config.seed ^ streams::BINS,
        };
        let held_rows: Vec<u32> = (0..held.len()).map(|at| held.row(at)).collect();
        let finished = AtomicUsize::new(0);
        for group in 0..grouped.groups.len() {
            let range = grouped.groups.cells(group);
            if group < self.journal.encoded.len() {
                finished.fetch_add(range.len(), Ordering::Relaxed);
                continue;
            }
            let records = self.records(grouped, group)?;
            let members = members(&records, Some(held), range.clone(), labels);
            let builder = &self.builder;
            let parts: Result<Vec<Part>> = range
                .into_par_iter()
                .zip(&members)
                .map(|(cell, places)| {
                    builder.cancel.check()?;
                    let of = |(is_held, at): &(bool, usize)| match is_held {
                        true => (held, *at),
                        false => (&records, *at),
                    };
                    let rows: Vec<u32> = places.iter().map(|p| of(p).0.row(p.1)).collect();
                    let points = gather(places.iter().map(of), cells.dim())?;
                    let residual = |p: &(bool, usize)| of(p).0.residual_squared(p.1);
                    let residuals = places.iter().map(residual).collect();
                    let is_held = |i: u32| held_rows.binary_search(&rows[i as usize]).is_ok();
                    let (scales, part) =
                        encode_cell(cells, cell, points, residuals, &shape, is_held);
                    let order = part.order.iter().map(|i| rows[*i as usize]).collect();
                    let done = finished.fetch_add(1, Ordering::Relaxed) + 1;
                    builder.report_progress(Stage::Bins, done, cells.len());
                    Ok((scales, part, order))
                })
                .collect();
            let parts = parts?;
            let before: usize = self.journal.encoded.iter().map(|g| g.points).sum();
            let row_bytes = grouped.record.stored_bytes();
            let mut out = self.folder.append(VECTORS, (before * row_bytes) as u64)?;
            for ((_, part, _), places) in parts.iter().zip(&members) {
                for i in &part.order {
                    let (is_held, at) = places[*i as usize];
                    let records = if is_held { held } else { &records };
                    out.put(records.stored(at))?;
                }
            }
            out.finish()?;
            let lengths: GroupLengths = encoded::write(&self.folder, group, &parts)?;
            self.journal.encoded.push(lengths);
            self.journal.save(&self.folder)?;
        }
        Ok(())
    }
}

/// The places of the points of each cell of a group, in the order of their rows. Held-out points are marked.
fn members(
    records: &Records,
    held: Option<&Records>,
    cells: std::ops::Range<usize>,
    labels: &[u32],
) -> Vec<Vec<(bool, usize)>> {
    let mut members = vec![Vec::new(); cells.len()];
    for at in 0..records.len() {
        members[records.cell(at) as usize - cells.start].push((false, at));
    }
    let Some(held) = held else {
        return members;
    };
    for (at, label) in labels.iter().enumerate() {
        if cells.contains(&(*label as usize)) {
            members[*label as usize - cells.start].push((true, at));
        }
    }
    for places in &mut members {
        places.sort_by_key(|(is_held, at)| match is_held {
            true => held.row(*at),
            false => records.row(*at),
        });
    }
    members
}
