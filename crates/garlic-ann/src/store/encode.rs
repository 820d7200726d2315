//! From an index to the bytes of its sections.

use std::io::{self, Write};

use serde::Serialize;

use super::MAX_META;
use super::decode::{Meta, edge_limit};
use super::layout::Kind;
use super::write::{Sections, put};
use crate::config::{Config, Covariance};
use crate::index::{Coverage, Index};
use crate::train::History;

/// What META holds, borrowed; [`Meta`] is its owner.
#[derive(Serialize)]
struct MetaView<'a> {
    dim: usize,
    points: usize,
    cells: usize,
    config: &'a Config,
    coverage: &'a Coverage,
    history: &'a History,
}

/// The number that stands for a structure of factors.
pub(super) const fn structure_number(covariance: Covariance) -> u64 {
    match covariance {
        Covariance::Full => 0,
        Covariance::Diagonal => 1,
        Covariance::Isotropic => 2,
    }
}

/// An index with its META section ready.
pub(super) struct Source<'a> {
    index: &'a Index,
    meta: Vec<u8>,
}

impl<'a> Source<'a> {
    pub(super) fn new(index: &'a Index) -> io::Result<Self> {
        let meta = serde_json::to_vec(&MetaView {
            dim: index.dim(),
            points: index.len(),
            cells: index.cells(),
            config: &index.config,
            coverage: &index.coverage,
            history: &index.history,
        })?;
        Ok(Self { index, meta })
    }

    /// Fails for an index that could be written but not opened again.
    pub(super) fn check(&self, file_len: u64) -> io::Result<()> {
        let refuse = |message: String| Err(io::Error::new(io::ErrorKind::InvalidData, message));
        if self.meta.len() as u64 > MAX_META {
            let len = self.meta.len();
            return refuse(format!(
                "configuration and history take {len} bytes, more than the {MAX_META} an index file holds; \
                 train fewer epochs"
            ));
        }
        // JSON has no NaN and no infinity: they come back as an error.
        if let Err(error) = serde_json::from_slice::<Meta>(&self.meta) {
            return refuse(format!(
                "configuration or history cannot be stored, probably because a number is not finite: {error}"
            ));
        }
        let edges = self
            .grids()
            .map(|steps| u64::from(steps.count))
            .sum::<u64>();
        if edges > edge_limit(file_len) {
            return refuse(format!(
                "the grids of all cells have {edges} steps, too many for this number of points; \
                 lower `radial_steps` or `angular_steps`"
            ));
        }
        Ok(())
    }

    fn grids(&self) -> impl Iterator<Item = crate::cell::sphere::Steps> + '_ {
        self.index
            .cells
            .iter()
            .flat_map(|cell| cell.bins.grid().steps())
    }

    fn space(&self, out: &mut dyn Write) -> io::Result<()> {
        let space = &self.index.space;
        let rotation = space.rotation.as_ref();
        let rows = rotation.map_or(0, |rotation| rotation.rows());
        put(out, &[space.mean.len() as u64, rows as u64])?;
        put(out, &space.mean)?;
        put(out, &space.scale)?;
        put(
            out,
            rotation.map_or(&[][..], |rotation| rotation.as_slice()),
        )
    }

    fn frames(&self, out: &mut dyn Write) -> io::Result<()> {
        let frames = || self.index.cells.iter().map(|cell| &cell.frame);
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

    fn bins(&self, out: &mut dyn Write) -> io::Result<()> {
        let parts = || self.index.cells.iter().map(|cell| cell.bins.parts());
        let total = |count: fn(&crate::cell::bins::BinsParts<'_>) -> usize| {
            parts().map(|parts| count(&parts) as u64).sum::<u64>()
        };
        put(
            out,
            &[
                self.index.cells.len() as u64,
                total(|parts| parts.grid.dim()),
                total(|parts| parts.occupied.len()),
                total(|parts| parts.members.len()),
            ],
        )?;
        let (lows, (highs, counts)): (Vec<f64>, (Vec<f64>, Vec<u32>)) = self
            .grids()
            .map(|steps| (steps.lo, (steps.hi, steps.count)))
            .unzip();
        put(out, &lows)?;
        put(out, &highs)?;
        put(out, &counts)?;
        put(
            out,
            &parts()
                .map(|parts| parts.grid.dim() as u32)
                .collect::<Vec<_>>(),
        )?;
        put(
            out,
            &parts()
                .map(|parts| parts.occupied.len() as u32)
                .collect::<Vec<_>>(),
        )?;
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
}

impl Sections for Source<'_> {
    fn write_section(&self, kind: Kind, out: &mut dyn Write) -> io::Result<()> {
        let model = &self.index.model;
        match kind {
            Kind::Meta => out.write_all(&self.meta),
            Kind::Space => self.space(out),
            Kind::Means => put(out, model.means.as_slice()),
            Kind::Factors => {
                put(out, &[structure_number(model.factors.covariance())])?;
                put(out, model.factors.values())
            }
            Kind::Frames => self.frames(out),
            Kind::Bins => self.bins(out),
            Kind::Vectors => put(out, &self.index.vectors),
            Kind::Ids => put(out, &self.index.ids),
        }
    }
}
