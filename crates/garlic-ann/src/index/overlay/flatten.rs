//! Laying out a changed index as a new base: the same cells, bins and codes, without what was removed.

use garlic_simd::CODE_LANES;
use rayon::prelude::*;

use super::PAGE;
use super::view::View;
use crate::cell::learned::{Bin, Bounds, Learned};
use crate::error::Result;
use crate::index::stored::StoredRows;
use crate::index::{Body, Fast, Index};
use crate::model::Tempered;

/// Bytes of a lane in a row of a block, and of a row.
const LANE: usize = 4;
const ROW: usize = LANE * CODE_LANES;

/// One cell, laid out.
struct Laid {
    bin_blocks: Vec<u8>,
    blocks: Vec<u8>,
    sizes: Vec<u32>,
    bounds: Vec<Bounds>,
    /// Positions of its points in the old index.
    points: Vec<u32>,
}

impl Index {
    /// Drops removed points and lays out the others as a build does. Answers stay what they are.
    ///
    /// # Errors
    /// When worker threads cannot be started.
    pub fn compact(&mut self) -> Result<()> {
        if let Some(flat) = self.flattened()? {
            *self = flat;
        }
        Ok(())
    }

    /// The index as a base without changes; none when it is one already.
    pub(crate) fn flattened(&self) -> Result<Option<Index>> {
        let (Body::Tempered(body), Some(_)) = (&self.body, self.overlay.changes()) else {
            return Ok(None);
        };
        self.workers
            .get()?
            .install(|| Ok(Some(self.flatten(&View::new(self, body)))))
    }

    fn flatten(&self, view: &View<'_>) -> Index {
        let (old, dim) = (view.body, self.space.dim());
        // An index without points keeps one cell, so that points can come.
        let living = |cell: &usize| view.points_in(*cell) > 0;
        let mut cells: Vec<usize> = (0..view.cells()).filter(living).collect();
        if cells.is_empty() {
            cells.extend((0..view.cells()).find(|cell| view.mean(*cell)[0] < crate::model::FAR));
        }
        let laid: Vec<Laid> = cells.par_iter().map(|cell| lay_out(view, *cell)).collect();
        let learned = &old.learned;
        let (mut means, mut axes) = (Vec::new(), Vec::new());
        let (mut variances, mut residual) = (Vec::new(), Vec::new());
        let (mut origins, mut bin_steps, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        let (mut cell_bins, mut bin_block_of) = (vec![0], vec![0]);
        let (mut bin_blocks, mut blocks) = (Vec::new(), Vec::new());
        let (mut bins, mut bounds) = (Vec::new(), Vec::new());
        let mut vectors = StoredRows::new(self.vectors.element());
        let mut ids = Vec::with_capacity(self.len());
        let (mut first, mut block) = (0, 0);
        for (cell, laid) in cells.into_iter().zip(laid) {
            let frame = view.frame(cell);
            means.extend_from_slice(view.mean(cell));
            axes.extend_from_slice(frame.axes);
            variances.extend_from_slice(frame.variances);
            residual.push(frame.residual);
            origins.extend_from_slice(frame.origin);
            bin_steps.extend_from_slice(frame.bin_steps);
            steps.extend_from_slice(frame.steps);
            for size in &laid.sizes {
                bins.push(Bin { first, block });
                first += size;
                block += size.div_ceil(CODE_LANES as u32);
            }
            bin_blocks.extend(laid.bin_blocks);
            blocks.extend(laid.blocks);
            bounds.extend(laid.bounds);
            cell_bins.push(bins.len() as u32);
            bin_block_of.push((bin_blocks.len() / learned.bin_block_bytes()) as u32);
            for position in laid.points {
                if let Some(point) = view.point(position) {
                    point.push_to(&mut vectors, dim);
                    ids.push(point.id);
                }
            }
        }
        bins.push(Bin { first, block });
        let learned = Learned {
            bits: learned.bits,
            width: learned.width,
            origins: origins.into(),
            bin_steps: bin_steps.into(),
            steps: steps.into(),
            cell_bins: cell_bins.into(),
            bin_blocks: bin_blocks.into(),
            bin_block_of: bin_block_of.into(),
            bins: bins.into(),
            blocks: blocks.into(),
            bounds: bounds.into(),
        };
        let model = Tempered {
            anisotropy: old.model.anisotropy,
            dim: old.model.dim,
            rank: old.model.rank,
            means: means.into(),
            axes: axes.into(),
            variances: variances.into(),
            residual: residual.into(),
        };
        let body = Fast::new(&self.space, model, learned, old.calibration.clone());
        let flat = Index::new(
            self.config.clone(),
            self.space.clone(),
            Body::Tempered(body.into()),
            vectors.into(),
            ids,
            self.ledger,
        );
        Index {
            workers: self.workers.clone(),
            ..flat
        }
    }
}

/// The bins of a cell that have points left.
fn lay_out(view: &View<'_>, cell: usize) -> Laid {
    let learned = &view.body.learned;
    let (bytes, bin_bytes) = (learned.block_bytes(), learned.bin_block_bytes());
    let mut laid = Laid {
        bin_blocks: Vec::new(),
        blocks: Vec::new(),
        sizes: Vec::new(),
        bounds: Vec::new(),
        points: Vec::new(),
    };
    let base = view.base_bins(cell);
    let base_codes = match base.is_empty() {
        true => &[],
        false => learned.bin_codes(cell),
    };
    let base = (base.start as u32, base.len(), base_codes);
    let places = view.places(cell).iter();
    let others = places.map(|p| (p.first_bin, p.run.data.bin_count(), &*p.run.data.bin_blocks));
    for (first, count, bin_codes) in std::iter::once(base).chain(others) {
        for number in 0..count {
            let bin = first + number as u32;
            let points = view.bin(bin);
            let positions = points.first..points.first + points.len as u32;
            let living: Vec<u32> = positions.filter(|p| view.is_alive(*p)).collect();
            if living.is_empty() {
                continue;
            }
            let lanes = living.iter().map(|p| (p - points.first) as usize);
            copy_lanes(points.codes, bytes, lanes, 0, &mut laid.blocks);
            let number = std::iter::once(number);
            copy_lanes(
                bin_codes,
                bin_bytes,
                number,
                laid.sizes.len(),
                &mut laid.bin_blocks,
            );
            laid.sizes.push(living.len() as u32);
            laid.bounds.push(view.bounds(bin));
            laid.points.extend(living);
        }
    }
    laid
}

/// Appends lanes of blocks of `bytes` bytes, the first of them as the lane `next` of what is appended to.
fn copy_lanes(
    from: &[u8],
    bytes: usize,
    lanes: impl Iterator<Item = usize>,
    next: usize,
    to: &mut Vec<u8>,
) {
    for (next, lane) in (next..).zip(lanes) {
        if next % CODE_LANES == 0 {
            let start = to.len();
            to.resize(start + bytes, 0);
            for norm in to[start + bytes - ROW..].chunks_exact_mut(LANE) {
                norm.copy_from_slice(&f32::INFINITY.to_le_bytes());
            }
        }
        let source = &from[lane / CODE_LANES * bytes..][..bytes];
        let start = to.len() - bytes;
        let target = &mut to[start..];
        for row in (0..bytes).step_by(ROW) {
            let (from, to) = (
                row + lane % CODE_LANES * LANE,
                row + next % CODE_LANES * LANE,
            );
            target[to..to + LANE].copy_from_slice(&source[from..from + LANE]);
        }
    }
}

const _: () = assert!(PAGE == CODE_LANES, "a page of positions is a block");
