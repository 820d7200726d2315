//! Adds points to cells: to the append buffer, or by rewriting a cell whose buffer is full.

use super::reassign::{Reassigned, reassign};
use super::rebuild::{Members, append_limit, code_shape, gather, rebuild_cell};
use crate::bins::Projected;
use crate::segment::{AppendBuffer, DeltaCell, PointsToEncode, Snapshot};
use garlic_core::Result;

/// A cell and the cells that replace it.
pub(super) struct Replacement {
    pub(super) cell: usize,
    /// The first takes over the number of the cell. The others get new numbers.
    pub(super) cells: Vec<DeltaCell>,
    /// Identifiers of the appended points, or `None` if the cell was rewritten.
    pub(super) joined: Option<Vec<u64>>,
}

impl Replacement {
    pub(super) fn rewritten(cell: usize, cells: Vec<DeltaCell>) -> Self {
        Self {
            cell,
            cells,
            joined: None,
        }
    }
}

/// A cell without points that keeps its shape.
pub(super) fn empty_cell(snapshot: &Snapshot<'_>, cell: usize) -> DeltaCell {
    DeltaCell {
        shape: snapshot.cell_state(cell).shape.clone(),
        ..DeltaCell::default()
    }
}

/// A cell and the points that are added to it.
pub(super) struct PendingCell {
    cell: usize,
    /// The points to append or, if the cell is rewritten, all points that stay.
    members: Members,
    /// Whether the append buffer is full, so that the cell is rewritten.
    rewrites: bool,
    /// Points that move to other cells when this one is rewritten.
    leaving: Vec<(usize, Members)>,
    /// Points that move here from other cells.
    moved: Vec<Members>,
}

impl PendingCell {
    pub(super) fn new(snapshot: &Snapshot<'_>, cell: usize, joining: Members) -> Result<Self> {
        let state = snapshot.cell_state(cell);
        let waiting = state.appended.as_ref().map_or(0, AppendBuffer::len) + joining.ids.len();
        let mut pending = Self {
            cell,
            members: joining,
            rewrites: waiting > append_limit(snapshot, state.live) || state.live == 0,
            leaving: Vec::new(),
            moved: Vec::new(),
        };
        if pending.rewrites && state.live > 0 {
            let all = gather(snapshot, cell, Some(&pending.members))?;
            let Reassigned { staying, leaving } = reassign(snapshot, cell, all)?;
            (pending.members, pending.leaving) = (staying, leaving);
        }
        Ok(pending)
    }

    /// A cell that only receives points of other cells.
    fn receiving(snapshot: &Snapshot<'_>, cell: usize) -> Self {
        Self {
            cell,
            members: Members::empty(snapshot),
            rewrites: snapshot.points_in(cell) == 0,
            leaving: Vec::new(),
            moved: Vec::new(),
        }
    }

    /// Creates the replacement of the cell, appended to or rewritten.
    pub(super) fn join(self, snapshot: &Snapshot<'_>, total: usize) -> Result<Replacement> {
        let dim = snapshot.index.transform.dim();
        let (cell, state) = (self.cell, snapshot.cell_state(self.cell));
        let mut members = self.members.extended(dim, self.moved)?;
        let waiting = state.appended.as_ref().map_or(0, AppendBuffer::len) + members.ids.len();
        let overflows = !self.rewrites && waiting > append_limit(snapshot, state.live);
        if overflows {
            members = gather(snapshot, cell, Some(&members))?;
        }
        if self.rewrites || overflows {
            let cells = match members.ids.is_empty() {
                true => vec![empty_cell(snapshot, cell)],
                false => rebuild_cell(snapshot, cell, members, total),
            };
            return Ok(Replacement::rewritten(cell, cells));
        }
        let frame = snapshot.frame(cell);
        let joined = members.ids.clone();
        let projected = Projected::new(
            members.points.clone(),
            members.residual_squared.clone(),
            snapshot.mean(cell),
            frame.shape.axes,
        );
        let gone = state
            .appended
            .as_ref()
            .map_or(0, |appended| appended.tombstones.count());
        let joining = PointsToEncode {
            projected: &projected,
            vectors: &members.vectors,
            dim,
            ids: &members.ids,
            nodes: &members.nodes,
        };
        let (centres, _) = snapshot.centres(cell);
        let steps = frame.code_steps();
        let appended = state.appended.as_ref();
        let appended = AppendBuffer::new(appended, joining, centres, steps, code_shape(snapshot))?;
        let state = DeltaCell {
            live: state.live + joined.len(),
            removed: state.removed - gone,
            appended: Some(appended),
            ..(*state).clone()
        };
        Ok(Replacement {
            cell,
            cells: vec![state],
            joined: Some(joined),
        })
    }
}

/// Delivers points that leave a cell to their new cells. The result is in the order of the cells.
pub(super) fn deliver_moved(
    snapshot: &Snapshot<'_>,
    mut pending: Vec<PendingCell>,
) -> Vec<PendingCell> {
    let leaving: Vec<(usize, Members)> = pending
        .iter_mut()
        .flat_map(|c| std::mem::take(&mut c.leaving))
        .collect();
    for (cell, moved) in leaving {
        let at = match pending.binary_search_by_key(&cell, |c| c.cell) {
            Ok(at) => at,
            Err(at) => {
                pending.insert(at, PendingCell::receiving(snapshot, cell));
                at
            }
        };
        pending[at].moved.push(moved);
    }
    pending
}
