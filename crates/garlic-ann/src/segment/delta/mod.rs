//! Changes since the base segment was encoded.
//!
//! In: the changes that `update` prepares. Out: a [`DeltaSegment`] that a snapshot reads with the base. The base never
//! changes and may be mapped from a file. An [`AppendBuffer`] holds the points added to a cell, [`Bits`] are the
//! tombstones of removed points, and a [`RewrittenCell`] replaces a cell that changed much. [`IdMap`] finds
//! identifiers, and [`Places`] the nodes of the neighbour graph. Clones of an index share all of it until one of them changes.

mod append;
mod encoded_points;
mod id_map;
mod places;
mod rewritten;
mod tombstones;

pub(crate) use append::AppendBuffer;
pub(crate) use encoded_points::{EncodedPoints, PointsToEncode};
pub(crate) use id_map::IdMap;
pub(crate) use places::{Place, Places};
pub(crate) use rewritten::{CodeShape, RewrittenCell, RewrittenData};
pub(crate) use tombstones::Bits;

use crate::bins::Scales;
use crate::graph::Grown;
use crate::partition::FittedCell;
use std::sync::{Arc, Weak};

/// Positions per entry of the table from positions to cells.
pub(crate) const PAGE_POSITIONS: usize = 8;

/// The changes since the base was encoded, or `None` after a build or an open.
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
            let rewritten = cell.rewritten.as_ref().map_or(0, RewrittenCell::bytes);
            rewritten
                + cell
                    .appended
                    .as_ref()
                    .map_or(0, |appended| appended.data.bytes())
        });
        let shapes = cells.filter_map(|cell| cell.shape.as_ref());
        let shapes: usize = shapes
            .map(|shape| size_of_val(shape.cell.axes.as_slice()))
            .sum();
        points.sum::<u64>()
            + (tables + shapes + size_of_val(changes.means.as_slice())) as u64
            + changes.tombstones.bytes()
            + changes.id_map.bytes()
            + changes.graph.as_ref().map_or(0, Grown::bytes)
            + changes.places.bytes()
    }

    /// Identifies this state among all others.
    pub(crate) fn stamp(&self) -> DeltaStamp {
        DeltaStamp(self.0.as_ref().map(Arc::downgrade))
    }
}

/// Identifies a state of the delta without keeping it alive.
pub(crate) struct DeltaStamp(Option<Weak<DeltaSegment>>);

impl DeltaStamp {
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => a.ptr_eq(b),
            (None, None) => true,
            _ => false,
        }
    }
}

/// All differences from the base.
#[derive(Clone, Debug)]
pub(crate) struct DeltaSegment {
    /// Means of all cells, one per row. Those of pruned cells are infinitely far away.
    pub(crate) means: Arc<Vec<f32>>,
    pub(crate) cells: Vec<Arc<DeltaCell>>,
    /// Removed points of the base, and all base points of rewritten cells.
    pub(crate) tombstones: Bits,
    pub(crate) id_map: IdMap,
    /// The neighbour graph of all points, if the base has one.
    pub(crate) graph: Option<Grown>,
    pub(crate) places: Places,
    /// Number of live points.
    pub(crate) live: usize,
    /// Larger than every identifier.
    pub(crate) next_id: u64,
    pub(crate) numbering: Arc<Numbering>,
}

impl DeltaSegment {
    /// Number of live points.
    pub(crate) fn live(&self) -> usize {
        self.live
    }
}

/// State of a cell in a changed index.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeltaCell {
    /// Whether the cell still uses its bins in the base.
    pub(crate) in_base: bool,
    /// Number of removed points that are still in the cell's bins.
    pub(crate) removed: usize,
    /// Number of live points.
    pub(crate) live: usize,
    /// Mean, axes and steps of a refitted cell.
    pub(crate) shape: Option<Arc<RefittedCell>>,
    /// The points of a cell that was rewritten.
    pub(crate) rewritten: Option<RewrittenCell>,
    /// Points added since.
    pub(crate) appended: Option<AppendBuffer>,
}

impl DeltaCell {
    /// Whether the cell has no points and accepts none.
    pub(crate) fn is_pruned(&self) -> bool {
        !self.in_base && self.rewritten.is_none()
    }
}

/// A refitted cell and its quantization steps.
#[derive(Debug)]
pub(crate) struct RefittedCell {
    pub(crate) cell: FittedCell,
    pub(crate) scales: Scales,
}

/// Numbers for the bins and points of the delta. They follow those of the base.
#[derive(Debug, Default)]
pub(crate) struct Numbering {
    /// First numbers of each cell.
    pub(crate) cells: Vec<CellNumbers>,
    /// Cell of every bin outside the base.
    pub(crate) bin_cell: Vec<u32>,
    /// Cell of every [`PAGE_POSITIONS`] positions outside the base.
    pub(crate) page_cell: Vec<u32>,
}

/// First bin and positions of a cell outside the base.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellNumbers {
    pub(crate) first_bin: u32,
    pub(crate) rewritten: u32,
    pub(crate) appended: u32,
}

impl Numbering {
    /// Returns `None` if the numbers do not fit into 32 bits. Compaction frees those of removed points.
    pub(crate) fn new(
        cells: &[Arc<DeltaCell>],
        base_bins: usize,
        base_points: usize,
    ) -> Option<Self> {
        let mut all = Self::default();
        let start = first_position(base_points);
        for (cell, state) in (0..).zip(cells) {
            let first_bin = (base_bins + all.bin_cell.len()) as u32;
            let rewritten = (start + all.page_cell.len() * PAGE_POSITIONS) as u32;
            if let Some(rewritten) = &state.rewritten {
                let bins = all.bin_cell.len() + rewritten.data.bin_count();
                all.bin_cell.resize(bins, cell);
                let pages = all.page_cell.len() + rewritten.len().div_ceil(PAGE_POSITIONS);
                all.page_cell.resize(pages, cell);
            }
            let appended = (start + all.page_cell.len() * PAGE_POSITIONS) as u32;
            if let Some(appended) = &state.appended {
                let pages = all.page_cell.len() + appended.len().div_ceil(PAGE_POSITIONS);
                all.page_cell.resize(pages, cell);
            }
            all.cells.push(CellNumbers {
                first_bin,
                rewritten,
                appended,
            });
        }
        // The numbers above may have wrapped. None of them was used yet.
        let positions = start as u64 + (all.page_cell.len() * PAGE_POSITIONS) as u64;
        let bins = (base_bins + all.bin_cell.len()) as u64;
        (positions.max(bins) < u64::from(u32::MAX)).then_some(all)
    }
}

/// The first position after a base of `points` points.
pub(crate) fn first_position(points: usize) -> usize {
    points.next_multiple_of(PAGE_POSITIONS)
}
