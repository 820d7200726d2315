//! What has changed in an index since its base was laid out.
//!
//! The base (cells, bins, codes and vectors in long arrays, possibly mapped from a file) never changes. Points that
//! join a cell lie in its *tail*, each behind one of the cell's bins; removed points are marked; a cell that has
//! changed much is fitted anew and leaves the base for a *run* of its own. `homes` knows where identifiers are, `edit`
//! makes changes, `join` puts points into cells, `reshape` splits, refits and prunes cells, `settle` lets their points go to others, `flatten` lays
//! everything out as a new base.
//!
//! All of it is shared between copies of an index until one of them changes: a copy is a snapshot.

mod bits;
mod coded;
mod drift;
mod edit;
mod flatten;
mod homes;
mod join;
mod reshape;
mod run;
mod settle;
mod tail;
mod view;

pub use drift::{Drift, Ledger};
pub(crate) use homes::Lookup;
pub use view::EXHAUSTIVE_POINTS;
pub(crate) use view::{BinView, Snapshot};

use std::sync::{Arc, Weak};

use bits::Bits;
use homes::Homes;
use run::Run;
use tail::Tail;

use crate::cell::part::Scales;

/// Positions that share an entry of the table from positions to cells.
const PAGE: usize = 8;

/// Changes since the base was laid out; none in an index that was built or opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlay(Option<Arc<Changes>>);

impl Overlay {
    pub(crate) fn changes(&self) -> Option<&Changes> {
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
            let run = cell.run.as_ref().map_or(0, Run::bytes);
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
    pub(crate) fn stamp(&self) -> OverlayStamp {
        OverlayStamp(self.0.as_ref().map(Arc::downgrade))
    }
}

/// One state of an overlay, without keeping it.
pub(crate) struct OverlayStamp(Option<Weak<Changes>>);

impl OverlayStamp {
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
pub(crate) struct Changes {
    /// Means of all cells, one a row; those of pruned cells are infinitely far away.
    means: Arc<Vec<f32>>,
    cells: Vec<Arc<LiveCell>>,
    /// Points of the base that have been removed, and those of cells that have left it.
    dead: Bits,
    homes: Homes,
    /// Points that have not been removed.
    living: usize,
    /// No identifier is this large.
    next_id: u64,
    numbering: Arc<Numbering>,
}

impl Changes {
    /// Points that have not been removed.
    pub(crate) fn living(&self) -> usize {
        self.living
    }
}

/// A cell of a changed index.
#[derive(Clone, Debug, Default)]
struct LiveCell {
    /// The cell's bins in the base belong to it.
    base: bool,
    /// Removed points that are still in its bins.
    dead: usize,
    /// Points that have not been removed.
    living: usize,
    /// Mean, axes and scales, where they are not those of the base.
    shape: Option<Arc<Shape>>,
    /// The points of a cell that has left the base.
    run: Option<Run>,
    /// Points that have come since.
    tail: Option<Tail>,
}

impl LiveCell {
    /// Whether the cell has no points and takes none.
    fn is_pruned(&self) -> bool {
        !self.base && self.run.is_none()
    }
}

/// Mean, axes and scales of a cell that was fitted anew.
#[derive(Debug)]
struct Shape {
    mean: Vec<f32>,
    axes: Vec<f32>,
    variances: Vec<f32>,
    residual: f32,
    scales: Scales,
}

/// Numbers for the bins of all runs, and for the points of all runs and tails, behind those of the base.
#[derive(Debug, Default)]
struct Numbering {
    /// First bin and first position of each cell's run, and first position of its tail.
    cells: Vec<Place>,
    /// Cell of every bin behind the base.
    bin_cell: Vec<u32>,
    /// Cell of every [`PAGE`] positions behind the base.
    page_cell: Vec<u32>,
}

/// Where the numbers of a cell begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    first_bin: u32,
    run: u32,
    tail: u32,
}

impl Numbering {
    /// None when there are more numbers than 32 bits have; compacting frees those of removed points.
    fn new(cells: &[Arc<LiveCell>], base_bins: usize, base_points: usize) -> Option<Self> {
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
fn first_position(points: usize) -> usize {
    points.next_multiple_of(PAGE)
}
