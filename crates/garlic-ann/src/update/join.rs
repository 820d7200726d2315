//! Cells that points come to: in the tail, or, when that has become too long, with all their points laid out anew.

use super::reassign::{Settled, settle};
use super::reshape::{Members, code_shape, gather, relay, tail_limit};
use crate::bins::Projected;
use crate::segment::{AppendBuffer, DeltaCell, Snapshot, Uncoded};
use garlic_core::Result;

/// A cell and what takes its place.
pub(super) struct Replaced {
    pub(super) cell: usize,
    /// The first has its number, the others get new ones.
    pub(super) cells: Vec<DeltaCell>,
    /// Identifiers of the points that have joined it; none when all its points lie elsewhere now.
    pub(super) joined: Option<Vec<u64>>,
}

impl Replaced {
    pub(super) fn whole(cell: usize, cells: Vec<DeltaCell>) -> Self {
        Self {
            cell,
            cells,
            joined: None,
        }
    }
}

/// A cell without points, with the shape it had.
pub(super) fn emptied(view: &Snapshot<'_>, cell: usize) -> DeltaCell {
    DeltaCell {
        shape: view.live_cell(cell).shape.clone(),
        ..DeltaCell::default()
    }
}

/// A cell and the points that come to it.
pub(super) struct Coming {
    cell: usize,
    /// What joins it; when it is to be laid out anew, all its points that stay.
    members: Members,
    /// Whether its tail has become too long, so that it is laid out anew.
    whole: bool,
    /// Points that leave it then.
    leaving: Vec<(usize, Members)>,
    /// Points of other cells that come.
    moved: Vec<Members>,
}

impl Coming {
    pub(super) fn new(view: &Snapshot<'_>, cell: usize, joining: Members) -> Result<Self> {
        let state = view.live_cell(cell);
        let waiting = state.tail.as_ref().map_or(0, AppendBuffer::len) + joining.ids.len();
        let mut coming = Self {
            cell,
            members: joining,
            whole: waiting > tail_limit(view, state.living) || state.living == 0,
            leaving: Vec::new(),
            moved: Vec::new(),
        };
        if coming.whole && state.living > 0 {
            let all = gather(view, cell, Some(&coming.members))?;
            let Settled { staying, leaving } = settle(view, cell, all)?;
            (coming.members, coming.leaving) = (staying, leaving);
        }
        Ok(coming)
    }

    /// A cell that only points of others come to.
    fn moved_to(view: &Snapshot<'_>, cell: usize) -> Self {
        Self {
            cell,
            members: Members::none(view),
            whole: view.points_in(cell) == 0,
            leaving: Vec::new(),
            moved: Vec::new(),
        }
    }

    /// What takes the cell's place: the points in its tail, or all of them laid out anew.
    pub(super) fn join(self, view: &Snapshot<'_>, total: usize) -> Result<Replaced> {
        let dim = view.index.transform.dim();
        let (cell, state) = (self.cell, view.live_cell(self.cell));
        let mut members = self.members.and(dim, self.moved)?;
        let waiting = state.tail.as_ref().map_or(0, AppendBuffer::len) + members.ids.len();
        let overflows = !self.whole && waiting > tail_limit(view, state.living);
        if overflows {
            members = gather(view, cell, Some(&members))?;
        }
        if self.whole || overflows {
            let cells = match members.ids.is_empty() {
                true => vec![emptied(view, cell)],
                false => relay(view, cell, members, total),
            };
            return Ok(Replaced::whole(cell, cells));
        }
        let frame = view.frame(cell);
        let joined = members.ids.clone();
        let projected = Projected::new(
            members.points.clone(),
            members.beyond.clone(),
            view.mean(cell),
            frame.axes,
        );
        let gone = state.tail.as_ref().map_or(0, |tail| tail.dead.count());
        let joining = Uncoded {
            projected: &projected,
            vectors: &members.vectors,
            dim,
            ids: &members.ids,
        };
        let (centres, _) = view.centres(cell);
        let steps = frame.code_steps();
        let tail = state.tail.as_ref();
        let tail = AppendBuffer::new(tail, joining, centres, steps, code_shape(view))?;
        let state = DeltaCell {
            living: state.living + joined.len(),
            dead: state.dead - gone,
            tail: Some(tail),
            ..(*state).clone()
        };
        Ok(Replaced {
            cell,
            cells: vec![state],
            joined: Some(joined),
        })
    }
}

/// The same with what leaves some of the cells come to others; in the order of the cells.
pub(super) fn with_moved(view: &Snapshot<'_>, mut coming: Vec<Coming>) -> Vec<Coming> {
    let leaving: Vec<(usize, Members)> = coming
        .iter_mut()
        .flat_map(|c| std::mem::take(&mut c.leaving))
        .collect();
    for (cell, moved) in leaving {
        let at = match coming.binary_search_by_key(&cell, |c| c.cell) {
            Ok(at) => at,
            Err(at) => {
                coming.insert(at, Coming::moved_to(view, cell));
                at
            }
        };
        coming[at].moved.push(moved);
    }
    coming
}
