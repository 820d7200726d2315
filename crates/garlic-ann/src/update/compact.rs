//! Compaction: encodes a changed index as a new base, with the same cells, bins and codes, without removed points.

use crate::partition::PRUNED_COORDINATE;
use std::sync::Arc;

use garlic_simd::CODE_LANES;
use rayon::prelude::*;

use crate::bins::{EncodedBinsBuilder, EncodedCell};
use crate::partition::AnisotropicCells;
use crate::plan::Calibration;
use crate::quantize::{clamp_norm, copy_lane};
use crate::segment::{Index, PAGE_POSITIONS, Segment, Snapshot};
use garlic_core::vectors::StoredRows;
use garlic_core::{Cancel, Result};

impl Index {
    /// Drops removed points and encodes the others as a new base with the same cells, bins and codes. Exact answers
    /// do not change. Approximate answers may differ by a candidate or two.
    ///
    /// # Errors
    /// Fails for a mapped file whose cells and bins are out of order. If worker threads cannot be started, the
    /// calling thread does the work.
    pub fn compact(&mut self) -> Result<()> {
        self.check_layout()?;
        let cancel = Cancel::current();
        let compacted = self.compacted(&cancel);
        cancel.check()?;
        if let Some(compacted) = compacted {
            *self = compacted;
        }
        Ok(())
    }

    /// The compacted index, or `None` if there are no changes.
    ///
    /// It does not fail without threads, so an index can be saved even if the system has run out of them. What is cancelled
    /// has no graph and must not be used.
    pub(crate) fn compacted(&self, cancel: &Cancel) -> Option<Index> {
        self.delta.changes()?;
        let snapshot = Snapshot::new(self);
        Some(match self.workers.get() {
            Ok(pool) => pool.install(|| {
                let (mut compacted, origin) = self.compacted_with(&snapshot, |cells| {
                    cells
                        .par_iter()
                        .map(|cell| compact_cell(&snapshot, *cell))
                        .collect()
                });
                self.carry_graph(&mut compacted, &origin, cancel);
                compacted
            }),
            Err(_) => {
                let compact_all = |cells: &[usize]| {
                    let all = cells.iter().map(|cell| compact_cell(&snapshot, *cell));
                    all.collect()
                };
                self.compacted_with(&snapshot, compact_all).0
            }
        })
    }

    /// Carries the neighbour graph over to the compacted index. `origin` has the old position of every point.
    fn carry_graph(&self, compacted: &mut Index, origin: &[u32], cancel: &Cancel) {
        let snapshot = self.snapshot();
        let Some(graph) = snapshot.grown().filter(|_| !compacted.is_empty()) else {
            return;
        };
        let segment = &compacted.segment;
        let nodes = origin.iter().map(|position| snapshot.node_at(*position));
        let Some(nodes) = nodes.collect::<Option<Vec<u32>>>() else {
            return;
        };
        let cell_of = segment.cells_of((0..origin.len() as u32).into_par_iter());
        let cells = segment.cells.len();
        // Only a cancelled build fails.
        if let Ok(graph) = graph.carry(&nodes, &cell_of, cells, cancel) {
            *compacted = compacted.with_graph(Arc::new(graph));
        }
    }

    /// The compacted index without a graph, and the old position of every point. `compact_all` compacts the cells that
    /// it is given.
    fn compacted_with(
        &self,
        snapshot: &Snapshot<'_>,
        compact_all: impl FnOnce(&[usize]) -> Vec<EncodedCell>,
    ) -> (Index, Vec<u32>) {
        let (old, dim) = (snapshot.segment, self.transform.dim());
        // Trained cells without points stay. An index without points keeps one cell, so that points can be added.
        let waits = |cell: usize| {
            snapshot.cell_state(cell).in_base
                && cell < old.cells.len()
                && snapshot.base_bins(cell).is_empty()
        };
        let stays = |cell: &usize| snapshot.points_in(*cell) > 0 || waits(*cell);
        let mut cells: Vec<usize> = (0..snapshot.cells()).filter(stays).collect();
        if cells.is_empty() {
            cells.extend(
                (0..snapshot.cells()).find(|cell| snapshot.mean(*cell)[0] < PRUNED_COORDINATE),
            );
        }
        let parts = compact_all(&cells);
        let mut encoded = EncodedBinsBuilder::new(old.encoded.bits, old.encoded.width);
        let (mut means, mut axes) = (Vec::new(), Vec::new());
        let (mut variances, mut residual_variances) = (Vec::new(), Vec::new());
        let mut vectors = StoredRows::new(self.segment.vectors.element());
        let mut ids = Vec::with_capacity(self.len());
        let mut origin = Vec::with_capacity(self.len());
        for (cell, part) in cells.into_iter().zip(parts) {
            let frame = snapshot.frame(cell);
            means.extend_from_slice(snapshot.mean(cell));
            axes.extend_from_slice(frame.shape.axes);
            variances.extend_from_slice(frame.shape.variances);
            residual_variances.push(frame.shape.residual_variance);
            for position in &part.order {
                if let Some(point) = snapshot.point(*position) {
                    point.push_to(&mut vectors, dim);
                    ids.push(point.id);
                    origin.push(*position);
                }
            }
            encoded.push(frame.origin, frame.code_steps(), part);
        }
        let new_cells = AnisotropicCells {
            anisotropy: old.cells.anisotropy,
            dim: old.cells.dim,
            rank: old.cells.rank,
            means: means.into(),
            axes: axes.into(),
            variances: variances.into(),
            residual_variances: residual_variances.into(),
        };
        let segment = Segment::new(
            &self.transform,
            new_cells,
            encoded.finish(),
            vectors.into(),
            ids.into(),
        );
        let compacted = Index::new(
            self.config.clone(),
            self.embedding,
            self.transform.clone(),
            segment,
            Calibration::default(),
            self.build_stats,
        );
        let compacted = Index {
            calibration: Arc::clone(&self.calibration),
            workers: self.workers.clone(),
            uncovered: self.uncovered.clone(),
            attachment: self.attachment.clone(),
            ..compacted
        };
        (compacted, origin)
    }
}

/// The bins of a cell that still have live points. The order holds their positions in the old index.
fn compact_cell(snapshot: &Snapshot<'_>, cell: usize) -> EncodedCell {
    let encoded = &snapshot.segment.encoded;
    let (bytes, bin_bytes) = (encoded.block_bytes(), encoded.bin_block_bytes());
    let mut compacted = EncodedCell::default();
    let (first, count, bin_codes): (u32, usize, &[u8]) = match snapshot.rewritten(cell) {
        Some((rewritten, first)) => (first, rewritten.bin_count(), &rewritten.bin_blocks),
        None => {
            let bins = snapshot.base_bins(cell);
            (bins.start as u32, bins.len(), encoded.bin_codes(cell))
        }
    };
    let (centres, _) = snapshot.centres(cell);
    let rank = snapshot.segment.cells.rank();
    for number in 0..count {
        let bin = first + number as u32;
        let (own, joined) = (snapshot.bin(bin), snapshot.joined(cell as u32, bin));
        let mut size = 0;
        let same = joined.is_none() && (own.first..).take(own.len).all(|p| snapshot.is_live(p));
        let mut bounds = None;
        let own = Some((&own, snapshot.bounds(bin)));
        let joined = joined.as_ref().map(|(points, bounds)| (points, **bounds));
        for (points, their_bounds) in own.into_iter().chain(joined) {
            for lane in 0..points.len {
                let position = points.first + lane as u32;
                if snapshot.is_live(position) {
                    copy_lane(points.codes, lane, bytes, size, &mut compacted.blocks);
                    compacted.order.push(position);
                    size += 1;
                    let so_far = bounds.unwrap_or(their_bounds);
                    bounds = Some(so_far.union(&their_bounds));
                }
            }
        }
        if let Some(bounds) = bounds {
            let at = compacted.sizes.len();
            copy_lane(bin_codes, number, bin_bytes, at, &mut compacted.bin_blocks);
            let centre = &centres[number * rank..][..rank];
            if !same {
                clamp_norm(
                    &mut compacted.bin_blocks,
                    bin_bytes,
                    at,
                    centre,
                    [bounds.low, bounds.high],
                );
            }
            compacted.sizes.push(size as u32);
            compacted.bounds.push(bounds);
        }
    }
    compacted
}

const _: () = assert!(
    PAGE_POSITIONS == CODE_LANES,
    "a page of positions is a block"
);
