//! A tempered index as a search sees it: the base, and what has changed since.

use std::borrow::Cow;
use std::ops::Range;

use super::{Changes, LiveCell, PAGE, first_position};
use crate::cell::learned::Bounds;
use crate::index::overlay::run::Run;
use crate::index::stored::{Prepared, Stored, StoredRows};
use crate::index::{Fast, Index};
use crate::search::Allowed;

/// Everything a search reads. Bins and positions of runs are numbered behind those of the base.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) index: &'a Index,
    pub(crate) body: &'a Fast,
    changes: Option<&'a Changes>,
    allowed: Option<&'a Allowed>,
}

/// A run and where its numbers begin.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) cell: u32,
    pub(crate) first_bin: u32,
    pub(crate) first_position: u32,
    pub(crate) run: Run,
}

/// Axes and scales of a cell.
pub(crate) struct CellFrame<'a> {
    pub(crate) axes: &'a [f32],
    pub(crate) variances: &'a [f32],
    pub(crate) residual: f32,
    /// Inner products of the axes with the mean.
    pub(crate) origin: &'a [f32],
    pub(crate) bin_steps: &'a [f32],
    pub(crate) steps: &'a [f32],
}

/// A bin: its codes, and the positions of its points.
pub(crate) struct BinView<'a> {
    pub(crate) cell: u32,
    pub(crate) first: u32,
    pub(crate) len: usize,
    pub(crate) codes: &'a [u8],
}

/// A stored point.
#[derive(Clone, Copy)]
pub(crate) struct PointView<'a> {
    vectors: &'a Stored,
    at: usize,
    pub(crate) id: u64,
}

impl PointView<'_> {
    /// Squared distance from a query.
    #[inline]
    pub(crate) fn distance(&self, query: &Prepared<'_>) -> f32 {
        self.vectors.distance(query, self.at)
    }

    /// Appends the vector to `rows`.
    pub(crate) fn push_to(&self, rows: &mut StoredRows, dim: usize) {
        rows.push(self.vectors, dim, self.at);
    }
}

impl<'a> View<'a> {
    pub(crate) fn new(index: &'a Index, body: &'a Fast) -> Self {
        Self {
            index,
            body,
            changes: index.overlay.changes(),
            allowed: None,
        }
    }

    /// The same, with only these points.
    pub(crate) fn with(self, allowed: Option<&'a Allowed>) -> Self {
        Self { allowed, ..self }
    }

    /// Number of cells.
    pub(crate) fn cells(&self) -> usize {
        self.changes
            .map_or(self.body.model.len(), |c| c.cells.len())
    }

    /// Number of bins.
    pub(crate) fn bins(&self) -> usize {
        let others = self.changes.map_or(0, |c| c.numbering.bin_place.len());
        self.body.bins() + others
    }

    /// Positions there are: every point's is below this.
    pub(crate) fn positions(&self) -> usize {
        let base = self.index.ids.len();
        match self.changes {
            None => base,
            Some(c) => first_position(base) + c.numbering.page_place.len() * PAGE,
        }
    }

    /// Means of all cells, one a row.
    pub(crate) fn means(&self) -> &'a [f32] {
        match self.changes {
            None => &self.body.model.means,
            Some(c) => &c.means,
        }
    }

    /// Mean of a cell.
    pub(crate) fn mean(&self, cell: usize) -> &'a [f32] {
        let dim = self.body.model.dim();
        &self.means()[cell * dim..][..dim]
    }

    /// Axes and scales of a cell.
    #[inline]
    pub(crate) fn frame(&self, cell: usize) -> CellFrame<'a> {
        if let Some(shape) = self.changes.and_then(|c| c.cells[cell].shape.as_deref()) {
            return CellFrame {
                axes: &shape.axes,
                variances: &shape.variances,
                residual: shape.residual,
                origin: &shape.scales.origin,
                bin_steps: &shape.scales.bin_steps,
                steps: &shape.scales.steps,
            };
        }
        let (model, learned) = (&self.body.model, &self.body.learned);
        let (rank, width) = (model.rank(), learned.width);
        CellFrame {
            axes: model.axes(cell),
            variances: model.variances(cell),
            residual: model.residual_of(cell),
            origin: &learned.origins[cell * rank..][..rank],
            bin_steps: &learned.bin_steps[cell * width..][..width],
            steps: &learned.steps[cell * width..][..width],
        }
    }

    /// What is subtracted from the plain squared distance for a point with the coordinates `y` in a cell.
    #[inline]
    pub(crate) fn relief(&self, cell: usize, y: &[f32]) -> f32 {
        let frame = self.frame(cell);
        crate::model::relief(
            self.body.model.anisotropy,
            frame.variances,
            frame.residual,
            y,
        )
    }

    /// Bins of a cell in the base; none when it has left it.
    #[inline]
    pub(crate) fn base_bins(&self, cell: usize) -> Range<usize> {
        match self.changes {
            Some(c) if !c.cells[cell].base => 0..0,
            _ => self.body.learned.bins_of(cell),
        }
    }

    /// Runs of a cell.
    #[inline]
    pub(crate) fn places(&self, cell: usize) -> &'a [Place] {
        match self.changes {
            None => &[],
            Some(c) => {
                let first = &c.numbering.cell_places;
                &c.numbering.places[first[cell] as usize..first[cell + 1] as usize]
            }
        }
    }

    /// Number of bins of a cell.
    #[inline]
    pub(crate) fn bins_in(&self, cell: usize) -> usize {
        let others = self.places(cell).iter();
        self.base_bins(cell).len() + others.map(|p| p.run.data.bin_count()).sum::<usize>()
    }

    /// Points of a cell that have not been removed.
    pub(crate) fn points_in(&self, cell: usize) -> usize {
        self.changes
            .map_or_else(|| self.body.cell_len(cell), |c| c.cells[cell].living)
    }

    /// The state of a cell.
    pub(super) fn live_cell(&self, cell: usize) -> Cow<'a, LiveCell> {
        match self.changes {
            Some(c) => Cow::Borrowed(&*c.cells[cell]),
            None => Cow::Owned(LiveCell {
                base: true,
                living: self.body.cell_len(cell),
                ..LiveCell::default()
            }),
        }
    }

    /// The run of a bin behind those of the base, and the bin's number in it.
    fn bin_place(&self, bin: usize) -> Option<(&'a Place, usize)> {
        let numbering = &self.changes?.numbering;
        let number = *numbering.bin_place.get(bin - self.body.bins())?;
        let place = &numbering.places[number as usize];
        Some((place, bin - place.first_bin as usize))
    }

    /// A bin.
    #[inline]
    pub(crate) fn bin(&self, bin: u32) -> BinView<'a> {
        let at = bin as usize;
        let (body, learned) = (self.body, &self.body.learned);
        if at < body.bins() {
            let points = learned.positions(at);
            return BinView {
                cell: body.bin_cell[at],
                first: points.start as u32,
                len: points.len(),
                codes: learned.codes(at),
            };
        }
        let Some((place, at)) = self.bin_place(at) else {
            return BinView {
                cell: 0,
                first: 0,
                len: 0,
                codes: &[],
            };
        };
        let points = place.run.data.points(at);
        BinView {
            cell: place.cell,
            first: place.first_position + points.start as u32,
            len: points.len(),
            codes: place.run.data.codes(at),
        }
    }

    /// What a bin can be skipped by.
    pub(crate) fn bounds(&self, bin: u32) -> Bounds {
        let at = bin as usize;
        match self.body.learned.bounds.get(at) {
            Some(bounds) => *bounds,
            None => match self.bin_place(at) {
                Some((place, at)) => place.run.data.bounds[at],
                None => Bounds::default(),
            },
        }
    }

    /// The run of a position behind those of the base, and the point's number in it.
    fn position_place(&self, position: usize) -> Option<(&'a Place, usize)> {
        let numbering = &self.changes?.numbering;
        let page = position.checked_sub(first_position(self.index.ids.len()))? / PAGE;
        let place = &numbering.places[*numbering.page_place.get(page)? as usize];
        let at = position - place.first_position as usize;
        (at < place.run.len()).then_some((place, at))
    }

    /// The point at a position, removed or not.
    #[inline]
    pub(crate) fn point(&self, position: u32) -> Option<PointView<'a>> {
        let at = position as usize;
        if let Some(id) = self.index.ids.get(at) {
            return Some(PointView {
                vectors: &self.index.vectors,
                at,
                id: *id,
            });
        }
        let (place, at) = self.position_place(at)?;
        Some(PointView {
            vectors: &place.run.data.vectors,
            at,
            id: place.run.data.ids[at],
        })
    }

    /// Asks the memory for the vector at a position.
    #[inline]
    pub(crate) fn prefetch(&self, position: u32) {
        if let Some(point) = self.point(position) {
            point.vectors.prefetch(self.index.space.dim(), point.at);
        }
    }

    /// Whether every point counts.
    #[inline]
    pub(crate) fn admits_all(&self) -> bool {
        self.changes.is_none() && self.allowed.is_none()
    }

    /// Whether the point at a position counts: it has not been removed, and the filter lets it through.
    #[inline]
    pub(crate) fn admits(&self, position: u32) -> bool {
        match self.allowed {
            Some(allowed) => allowed.contains(position),
            None => self.is_alive(position),
        }
    }

    /// Whether the point at a position has not been removed.
    #[inline]
    pub(crate) fn is_alive(&self, position: u32) -> bool {
        let Some(changes) = self.changes else {
            return true;
        };
        let at = position as usize;
        if at < self.index.ids.len() {
            return !changes.dead.get(at);
        }
        match self.position_place(at) {
            Some((place, at)) => !place.run.dead.get(at),
            None => false,
        }
    }

    /// Number of points that count.
    pub(crate) fn counted(&self) -> usize {
        self.allowed
            .map_or_else(|| self.index.len(), Allowed::count)
    }

    /// Number of points of a cell that count.
    pub(crate) fn counted_in(&self, cell: usize) -> usize {
        match self.allowed {
            Some(allowed) => allowed.count_of(cell),
            None => self.points_in(cell),
        }
    }

    /// The filter.
    pub(crate) fn allowed(&self) -> Option<&'a Allowed> {
        self.allowed
    }

    /// All positions that count, in order.
    pub(crate) fn admitted(&self) -> impl Iterator<Item = u32> + use<'a> {
        let view = *self;
        (0..view.positions() as u32).filter(move |p| view.point(*p).is_some() && view.admits(*p))
    }
}
