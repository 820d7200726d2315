//! Laying out a changed index as a new base: the same cells, bins and codes, without what was removed.

use crate::partition::FAR;
use std::sync::Arc;

use garlic_simd::CODE_LANES;
use rayon::prelude::*;

use crate::bins::{Assembly, EncodedCell};
use crate::partition::AnisotropicCells;
use crate::plan::Calibration;
use crate::quantize::{copy_lane, fit_norm};
use crate::segment::{Index, PAGE, Segment, Snapshot};
use garlic_core::Result;
use garlic_core::vectors::StoredRows;

impl Index {
    /// Drops removed points and lays out the others as a build does: the same cells, bins and codes. Exact answers stay
    /// what they are; others may differ by a candidate or two.
    ///
    /// # Errors
    /// A mapped file whose cells and bins are out of order. Where worker threads cannot be started, the calling one does the
    /// work.
    pub fn compact(&mut self) -> Result<()> {
        self.check_order()?;
        if let Some(flat) = self.compacted() {
            *self = flat;
        }
        Ok(())
    }

    /// The index as a base without changes; none when it is one already.
    ///
    /// It does not fail for want of threads: an index can be saved whatever else the system has run out of.
    pub(crate) fn compacted(&self) -> Option<Index> {
        self.delta.changes()?;
        let view = Snapshot::new(self);
        Some(match self.workers.get() {
            Ok(pool) => pool.install(|| {
                self.flatten(&view, |cells| {
                    cells.par_iter().map(|cell| lay_out(&view, *cell)).collect()
                })
            }),
            Err(_) => self.flatten(&view, |cells| {
                cells.iter().map(|cell| lay_out(&view, *cell)).collect()
            }),
        })
    }

    /// `lay_out_all` lays out each of the cells that it is given.
    fn flatten(
        &self,
        view: &Snapshot<'_>,
        lay_out_all: impl FnOnce(&[usize]) -> Vec<EncodedCell>,
    ) -> Index {
        let (old, dim) = (view.segment, self.transform.dim());
        // Cells that were trained and wait for points stay; an index without points keeps one cell, so that points can come.
        let waits = |cell: usize| {
            view.live_cell(cell).base && cell < old.cells.len() && view.base_bins(cell).is_empty()
        };
        let stays = |cell: &usize| view.points_in(*cell) > 0 || waits(*cell);
        let mut cells: Vec<usize> = (0..view.cells()).filter(stays).collect();
        if cells.is_empty() {
            cells.extend((0..view.cells()).find(|cell| view.mean(*cell)[0] < FAR));
        }
        let parts = lay_out_all(&cells);
        let mut encoded = Assembly::new(old.encoded.bits, old.encoded.width);
        let (mut means, mut axes) = (Vec::new(), Vec::new());
        let (mut variances, mut residual) = (Vec::new(), Vec::new());
        let mut vectors = StoredRows::new(self.segment.vectors.element());
        let mut ids = Vec::with_capacity(self.len());
        for (cell, part) in cells.into_iter().zip(parts) {
            let frame = view.frame(cell);
            means.extend_from_slice(view.mean(cell));
            axes.extend_from_slice(frame.axes);
            variances.extend_from_slice(frame.variances);
            residual.push(frame.residual);
            for point in part.order.iter().filter_map(|p| view.point(*p)) {
                point.push_to(&mut vectors, dim);
                ids.push(point.id);
            }
            encoded.push(frame.origin, frame.code_steps(), part);
        }
        let model = AnisotropicCells {
            anisotropy: old.cells.anisotropy,
            dim: old.cells.dim,
            rank: old.cells.rank,
            means: means.into(),
            axes: axes.into(),
            variances: variances.into(),
            residual: residual.into(),
        };
        let segment = Segment::new(
            &self.transform,
            model,
            encoded.finish(),
            vectors.into(),
            ids.into(),
        );
        let flat = Index::new(
            self.config.clone(),
            self.embedding,
            self.transform.clone(),
            segment,
            Calibration::default(),
            self.build_stats,
        );
        Index {
            calibration: Arc::clone(&self.calibration),
            workers: self.workers.clone(),
            uncovered: self.uncovered.clone(),
            ..flat
        }
    }
}

/// The bins of a cell that have points left; its order is that of their positions in the old index.
fn lay_out(view: &Snapshot<'_>, cell: usize) -> EncodedCell {
    let encoded = &view.segment.encoded;
    let (bytes, bin_bytes) = (encoded.block_bytes(), encoded.bin_block_bytes());
    let mut laid = EncodedCell::default();
    let (first, count, bin_codes): (u32, usize, &[u8]) = match view.run(cell) {
        Some((run, first)) => (first, run.bin_count(), &run.bin_blocks),
        None => {
            let bins = view.base_bins(cell);
            (bins.start as u32, bins.len(), encoded.bin_codes(cell))
        }
    };
    let (centres, _) = view.centres(cell);
    let rank = view.segment.cells.rank();
    for number in 0..count {
        let bin = first + number as u32;
        let (own, joined) = (view.bin(bin), view.joined(cell as u32, bin));
        let mut size = 0;
        let same = joined.is_none() && (own.first..).take(own.len).all(|p| view.is_alive(p));
        let mut bounds = None;
        let own = Some((&own, view.bounds(bin)));
        let joined = joined.as_ref().map(|(points, bounds)| (points, **bounds));
        for (points, their_bounds) in own.into_iter().chain(joined) {
            for lane in 0..points.len {
                let position = points.first + lane as u32;
                if view.is_alive(position) {
                    copy_lane(points.codes, lane, bytes, size, &mut laid.blocks);
                    laid.order.push(position);
                    size += 1;
                    let so_far = bounds.unwrap_or(their_bounds);
                    bounds = Some(so_far.and(&their_bounds));
                }
            }
        }
        if let Some(bounds) = bounds {
            let at = laid.sizes.len();
            copy_lane(bin_codes, number, bin_bytes, at, &mut laid.bin_blocks);
            let centre = &centres[number * rank..][..rank];
            if !same {
                fit_norm(
                    &mut laid.bin_blocks,
                    bin_bytes,
                    at,
                    centre,
                    [bounds.low, bounds.high],
                );
            }
            laid.sizes.push(size as u32);
            laid.bounds.push(bounds);
        }
    }
    laid
}

const _: () = assert!(PAGE == CODE_LANES, "a page of positions is a block");
