//! What has changed in an index since its base was laid out.
//!
//! The base (cells, bins, codes and vectors in long arrays, possibly mapped from a file) never changes. Points that
//! join a cell lie in its *tail*, each behind one of the cell's bins; removed points are marked; a cell that has
//! changed much is fitted anew and leaves the base for a *run* of its own. `homes` knows where identifiers are, `edit`
//! makes changes, `join` puts points into cells, `reshape` splits, refits and prunes cells, `settle` lets their points go to others, `flatten` lays
//! everything out as a new base.
//!
//! All of it is shared between copies of an index until one of them changes: a copy is a snapshot.

mod append;
mod coded;
mod id_map;
mod rewritten;
mod tombstones;

pub(crate) use append::AppendBuffer;
pub(crate) use coded::{Coded, Uncoded};
pub(crate) use id_map::IdMap;
pub(crate) use rewritten::{CodeShape, RewrittenCell, RewrittenData};
pub(crate) use tombstones::Bits;

use crate::bins::Scales;
use std::sync::{Arc, Weak};

/// Positions that share an entry of the table from positions to cells.
pub(crate) const PAGE: usize = 8;

/// DeltaSegment since the base was laid out; none in an index that was built or opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delta(pub(crate) Option<Arc<DeltaSegment>>);

impl Delta {
    pub(crate) fn changes(&self) -> Option<&DeltaSegment> {
        self.0.as_deref()
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        let Some(changes) = self.changes() else {
            return 0;
        };
        let numbering = &changes.numbering;
        let tables = size_of_val(&*numbering.bin_cell)
            + size_of_val(&*numbering.page_cell)
            + size_of_val(&*numbering.cells);
        let cells = changes.cells.iter();
        let points = cells.clone().map(|cell| {
            let run = cell.run.as_ref().map_or(0, RewrittenCell::bytes);
            run + cell.tail.as_ref().map_or(0, |tail| tail.data.bytes())
        });
        let shapes = cells.filter_map(|cell| cell.shape.as_ref());
        let shapes: usize = shapes.map(|shape| size_of_val(shape.axes.as_slice())).sum();
        points.sum::<u64>()
            + (tables + shapes + size_of_val(changes.means.as_slice())) as u64
            + changes.dead.bytes()
            + changes.homes.bytes()
    }

    /// What tells this state from all others.
    pub(crate) fn stamp(&self) -> DeltaStamp {
        DeltaStamp(self.0.as_ref().map(Arc::downgrade))
    }
}

/// One state of an overlay, without keeping it.
pub(crate) struct DeltaStamp(Option<Weak<DeltaSegment>>);

impl DeltaStamp {
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => a.ptr_eq(b),
            (None, None) => true,
            _ => false,
        }
    }
}

/// All that differs from the base.
#[derive(Clone, Debug)]
pub(crate) struct DeltaSegment {
    /// Means of all cells, one a row; those of pruned cells are infinitely far away.
    pub(crate) means: Arc<Vec<f32>>,
    pub(crate) cells: Vec<Arc<DeltaCell>>,
    /// Points of the base that have been removed, and those of cells that have left it.
    pub(crate) dead: Bits,
    pub(crate) homes: IdMap,
    /// Points that have not been removed.
    pub(crate) living: usize,
    /// No identifier is this large.
    pub(crate) next_id: u64,
    pub(crate) numbering: Arc<Numbering>,
}

impl DeltaSegment {
    /// Points that have not been removed.
    pub(crate) fn living(&self) -> usize {
        self.living
    }
}

/// A cell of a changed index.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeltaCell {
    /// The cell's bins in the base belong to it.
    pub(crate) base: bool,
    /// Removed points that are still in its bins.
    pub(crate) dead: usize,
    /// Points that have not been removed.
    pub(crate) living: usize,
    /// Mean, axes and scales, where they are not those of the base.
    pub(crate) shape: Option<Arc<Shape>>,
    /// The points of a cell that has left the base.
    pub(crate) run: Option<RewrittenCell>,
    /// Points that have come since.
    pub(crate) tail: Option<AppendBuffer>,
}

impl DeltaCell {
    /// Whether the cell has no points and takes none.
    pub(crate) fn is_pruned(&self) -> bool {
        !self.base && self.run.is_none()
    }
}

/// Mean, axes and scales of a cell that was fitted anew.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) mean: Vec<f32>,
    pub(crate) axes: Vec<f32>,
    pub(crate) variances: Vec<f32>,
    pub(crate) residual: f32,
    pub(crate) scales: Scales,
}

/// Numbers for the bins of all runs, and for the points of all runs and tails, behind those of the base.
#[derive(Debug, Default)]
pub(crate) struct Numbering {
    /// First bin and first position of each cell's run, and first position of its tail.
    pub(crate) cells: Vec<Place>,
    /// Cell of every bin behind the base.
    pub(crate) bin_cell: Vec<u32>,
    /// Cell of every [`PAGE`] positions behind the base.
    pub(crate) page_cell: Vec<u32>,
}

/// Where the numbers of a cell begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) first_bin: u32,
    pub(crate) run: u32,
    pub(crate) tail: u32,
}

impl Numbering {
    /// None when there are more numbers than 32 bits have; compacting frees those of removed points.
    pub(crate) fn new(
        cells: &[Arc<DeltaCell>],
        base_bins: usize,
        base_points: usize,
    ) -> Option<Self> {
        let mut all = Self::default();
        let start = first_position(base_points);
        for (cell, state) in (0..).zip(cells) {
            let first_bin = (base_bins + all.bin_cell.len()) as u32;
            let run = (start + all.page_cell.len() * PAGE) as u32;
            if let Some(run) = &state.run {
                let bins = all.bin_cell.len() + run.data.bin_count();
                all.bin_cell.resize(bins, cell);
                let pages = all.page_cell.len() + run.len().div_ceil(PAGE);
                all.page_cell.resize(pages, cell);
            }
            let tail = (start + all.page_cell.len() * PAGE) as u32;
            if let Some(tail) = &state.tail {
                let pages = all.page_cell.len() + tail.len().div_ceil(PAGE);
                all.page_cell.resize(pages, cell);
            }
            all.cells.push(Place {
                first_bin,
                run,
                tail,
            });
        }
        // Nothing has been looked up by numbers that wrapped.
        let positions = start as u64 + (all.page_cell.len() * PAGE) as u64;
        let bins = (base_bins + all.bin_cell.len()) as u64;
        (positions.max(bins) < u64::from(u32::MAX)).then_some(all)
    }
}

/// The first position behind a base of `points` points.
pub(crate) fn first_position(points: usize) -> usize {
    points.next_multiple_of(PAGE)
}
