//! A tempered index as a search sees it: the base, and what has changed since.

use crate::partition::relief;
use crate::plan::EXHAUSTIVE_POINTS;
use std::borrow::Cow;
use std::ops::Range;

use garlic_simd::{CodeBits, CodeQuery, Estimate};

use super::Segment;
use super::delta::Coded;
use super::delta::RewrittenData;
use super::delta::{DeltaCell, DeltaSegment, PAGE, Shape, first_position};
use super::filter::Allowed;
use super::index::Index;
use crate::bins::Bounds;
use crate::plan::Plan;
use crate::quantize::Steps;
use garlic_core::vectors::{Prepared, StoredRows, StoredVectors};

/// Everything a search reads. Bins and positions of runs are numbered behind those of the base.
#[derive(Clone, Copy)]
pub(crate) struct Snapshot<'a> {
    pub(crate) index: &'a Index,
    pub(crate) segment: &'a Segment,
    changes: Option<&'a DeltaSegment>,
    allowed: Option<&'a Allowed>,
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

impl<'a> CellFrame<'a> {
    /// The steps of both kinds of codes.
    pub(crate) fn code_steps(&self) -> Steps<'a> {
        Steps {
            bins: self.bin_steps,
            points: self.steps,
        }
    }
}

/// A bin: its codes, and the positions of its points.
#[derive(Clone, Copy, Default)]
pub(crate) struct BinView<'a> {
    pub(crate) cell: u32,
    pub(crate) first: u32,
    pub(crate) len: usize,
    pub(crate) codes: &'a [u8],
}

impl BinView<'_> {
    /// Appends the points that are estimated below `limit`, by their positions.
    #[inline]
    pub(crate) fn scan(
        &self,
        bits: CodeBits,
        query: &CodeQuery<'_>,
        limit: f32,
        found: &mut Vec<Estimate>,
    ) {
        let before = found.len();
        garlic_simd::scan_codes(bits, self.codes, query, limit, self.first, found);
        // Padding comes last, and of a file that nobody has checked it may look like a point.
        let end = self.first as usize + self.len;
        while found.len() > before && found.last().is_some_and(|f| f.at as usize >= end) {
            found.pop();
        }
    }
}

/// A stored point.
#[derive(Clone, Copy)]
pub(crate) struct PointView<'a> {
    vectors: &'a StoredVectors,
    at: usize,
    pub(crate) id: u64,
}

impl PointView<'_> {
    /// Squared distance from a query.
    #[inline]
    pub(crate) fn distance(&self, query: &Prepared<'_>) -> f32 {
        self.vectors.distance(query, self.at)
    }

    /// The vector, into `out`.
    pub(crate) fn read(&self, dim: usize, out: &mut Vec<f32>) {
        self.vectors.read(dim, self.at, out);
    }

    /// Appends the vector to `rows`.
    pub(crate) fn push_to(&self, rows: &mut StoredRows, dim: usize) {
        rows.push(self.vectors, dim, self.at);
    }
}

impl<'a> Snapshot<'a> {
    pub(crate) fn new(index: &'a Index) -> Self {
        Self {
            index,
            segment: &index.segment,
            changes: index.delta.changes(),
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
            .map_or(self.segment.cells.len(), |c| c.cells.len())
    }

    /// Number of bins.
    pub(crate) fn bins(&self) -> usize {
        let others = self.changes.map_or(0, |c| c.numbering.bin_cell.len());
        self.segment.bins() + others
    }

    /// Positions there are: every point's is below this.
    pub(crate) fn positions(&self) -> usize {
        let base = self.index.segment.ids.len();
        match self.changes {
            None => base,
            Some(c) => first_position(base) + c.numbering.page_cell.len() * PAGE,
        }
    }

    /// The cheapest way to search `k` neighbours with this recall, as far as it has been measured; everything where there
    /// are few points.
    pub(crate) fn plan(&self, k: usize, recall: f64) -> Plan {
        let plan = self.table_plan(k, recall);
        Plan {
            all: plan.all || self.index.len() <= EXHAUSTIVE_POINTS,
            ..plan
        }
    }

    /// What the table says, however few points there are.
    pub(crate) fn table_plan(&self, k: usize, recall: f64) -> Plan {
        self.index.calibration.plan_for(k, recall, self.index.len())
    }

    /// Means of all cells, one a row.
    pub(crate) fn means(&self) -> &'a [f32] {
        match self.changes {
            None => &self.segment.cells.means,
            Some(c) => &c.means,
        }
    }

    /// Mean of a cell.
    pub(crate) fn mean(&self, cell: usize) -> &'a [f32] {
        let dim = self.segment.cells.dim();
        &self.means()[cell * dim..][..dim]
    }

    /// The shape of a cell that was fitted anew.
    #[inline]
    fn shape(&self, cell: usize) -> Option<&'a Shape> {
        self.changes?.cells[cell].shape.as_deref()
    }

    /// Axes of a cell, one a row.
    #[inline]
    pub(crate) fn axes(&self, cell: usize) -> &'a [f32] {
        match self.shape(cell) {
            Some(shape) => &shape.axes,
            None => self.segment.cells.axes(cell),
        }
    }

    /// Inner products of a cell's axes with its mean.
    #[inline]
    pub(crate) fn origin(&self, cell: usize) -> &'a [f32] {
        let rank = self.segment.cells.rank();
        match self.shape(cell) {
            Some(shape) => &shape.scales.origin,
            None => &self.segment.encoded.origins[cell * rank..][..rank],
        }
    }

    /// Steps of the codes of a cell's points.
    #[inline]
    pub(crate) fn steps(&self, cell: usize) -> &'a [f32] {
        let width = self.segment.encoded.width;
        match self.shape(cell) {
            Some(shape) => &shape.scales.steps,
            None => &self.segment.encoded.steps[cell * width..][..width],
        }
    }

    /// Steps of the codes of a cell's bin centres.
    #[inline]
    pub(crate) fn bin_steps(&self, cell: usize) -> &'a [f32] {
        let width = self.segment.encoded.width;
        match self.shape(cell) {
            Some(shape) => &shape.scales.bin_steps,
            None => &self.segment.encoded.bin_steps[cell * width..][..width],
        }
    }

    /// Axes, variances and scales of a cell.
    pub(crate) fn frame(&self, cell: usize) -> CellFrame<'a> {
        let (variances, residual) = match self.shape(cell) {
            Some(shape) => (&*shape.variances, shape.residual),
            None => {
                let model = &self.segment.cells;
                (model.variances(cell), model.residual_of(cell))
            }
        };
        CellFrame {
            axes: self.axes(cell),
            variances,
            residual,
            origin: self.origin(cell),
            bin_steps: self.bin_steps(cell),
            steps: self.steps(cell),
        }
    }

    /// What is subtracted from the plain squared distance for a point with the coordinates `y` in a cell.
    #[inline]
    pub(crate) fn relief(&self, cell: usize, y: &[f32]) -> f32 {
        let frame = self.frame(cell);
        relief(
            self.segment.cells.anisotropy,
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
            _ => self.segment.encoded.bins_of(cell),
        }
    }

    /// The run of a cell that has left the base, and the number of its first bin.
    #[inline]
    pub(crate) fn run(&self, cell: usize) -> Option<(&'a RewrittenData, u32)> {
        let changes = self.changes?;
        let run = changes.cells[cell].run.as_ref()?;
        Some((&run.data, changes.numbering.cells[cell].first_bin))
    }

    /// The points that have joined a cell, and the position of the first.
    #[inline]
    pub(crate) fn tail(&self, cell: usize) -> Option<(&'a Coded, u32)> {
        let changes = self.changes?;
        let tail = changes.cells[cell].tail.as_ref()?;
        Some((&tail.data, changes.numbering.cells[cell].tail))
    }

    /// Number of bins of a cell.
    #[inline]
    pub(crate) fn bins_in(&self, cell: usize) -> usize {
        let run = self.run(cell).map_or(0, |(run, _)| run.bin_count());
        self.base_bins(cell).len() + run
    }

    /// Positions of a cell's points behind the base: those of its run, and of its tail.
    pub(crate) fn positions_behind(&self, cell: usize) -> [Range<usize>; 2] {
        let Some(changes) = self.changes else {
            return [0..0, 0..0];
        };
        let (place, cell) = (changes.numbering.cells[cell], &changes.cells[cell]);
        let range = |first: u32, len: usize| first as usize..first as usize + len;
        [
            range(place.run, cell.run.as_ref().map_or(0, |run| run.len())),
            range(place.tail, cell.tail.as_ref().map_or(0, |tail| tail.len())),
        ]
    }

    /// Coded centres of a cell's bins, `rank` values each, and the number of the first bin.
    pub(crate) fn centres(&self, cell: usize) -> (&'a [f32], u32) {
        let rank = self.segment.cells.rank();
        match self.run(cell) {
            Some((run, first)) => (&run.centres, first),
            None => {
                let bins = self.base_bins(cell);
                let centres = &self.segment.centres()[bins.start * rank..bins.end * rank];
                (centres, bins.start as u32)
            }
        }
    }

    /// Points of a cell that have not been removed.
    pub(crate) fn points_in(&self, cell: usize) -> usize {
        self.changes
            .map_or_else(|| self.segment.cell_len(cell), |c| c.cells[cell].living)
    }

    /// The state of a cell.
    pub(crate) fn live_cell(&self, cell: usize) -> Cow<'a, DeltaCell> {
        match self.changes {
            Some(c) => Cow::Borrowed(&*c.cells[cell]),
            None => Cow::Owned(DeltaCell {
                base: true,
                living: self.segment.cell_len(cell),
                ..DeltaCell::default()
            }),
        }
    }

    /// The run of a bin behind those of the base, its cell, and the bin's number in it.
    #[inline]
    fn run_of(&self, bin: usize) -> Option<(&'a RewrittenData, usize, usize)> {
        let numbering = &self.changes?.numbering;
        let cell = *numbering.bin_cell.get(bin - self.segment.bins())? as usize;
        let (run, first) = self.run(cell)?;
        Some((run, cell, bin - first as usize))
    }

    /// A bin, without the points that have joined it.
    #[inline]
    pub(crate) fn bin(&self, bin: u32) -> BinView<'a> {
        let at = bin as usize;
        let (segment, encoded) = (self.segment, &self.segment.encoded);
        if at < segment.bins() {
            let (points, codes) = encoded.points_of(at);
            return BinView {
                cell: segment.bin_cell()[at],
                first: points.start as u32,
                len: points.len(),
                codes,
            };
        }
        let Some((run, cell, at)) = self.run_of(at) else {
            return BinView::default();
        };
        let points = run.coded.points(at);
        let first = self.changes.map_or(0, |c| c.numbering.cells[cell].run);
        BinView {
            cell: cell as u32,
            first: first + points.start as u32,
            len: points.len(),
            codes: run.coded.codes(at),
        }
    }

    /// What the points of a bin can be skipped by, without those that have joined it.
    pub(crate) fn bounds(&self, bin: u32) -> Bounds {
        let at = bin as usize;
        match self.segment.encoded.bounds.get(at) {
            Some(bounds) => *bounds,
            None => match self.run_of(at) {
                Some((run, _, at)) => run.coded.bounds[at],
                None => Bounds::default(),
            },
        }
    }

    /// The points that have joined a bin of a cell; none in most.
    #[inline]
    pub(crate) fn joined(&self, cell: u32, bin: u32) -> Option<(BinView<'a>, &'a Bounds)> {
        let (tail, first) = self.tail(cell as usize)?;
        let first_bin = match self.run(cell as usize) {
            Some((_, first)) => first,
            None => self.base_bins(cell as usize).start as u32,
        };
        let at = (bin - first_bin) as usize;
        let points = tail.points(at);
        if points.is_empty() {
            return None;
        }
        let joined = BinView {
            cell,
            first: first + points.start as u32,
            len: points.len(),
            codes: tail.codes(at),
        };
        Some((joined, &tail.bounds[at]))
    }

    /// The cell of a position behind those of the base, whether it is in the tail, and the point's number there.
    #[inline]
    fn spot(&self, position: usize) -> Option<(&'a DeltaCell, bool, usize)> {
        let changes = self.changes?;
        let numbering = &changes.numbering;
        let page = position.checked_sub(first_position(self.index.segment.ids.len()))? / PAGE;
        let cell = *numbering.page_cell.get(page)? as usize;
        let place = numbering.cells[cell];
        let in_tail = position >= place.tail as usize;
        let first = if in_tail { place.tail } else { place.run };
        Some((&changes.cells[cell], in_tail, position - first as usize))
    }

    /// The point at a position, removed or not.
    #[inline]
    pub(crate) fn point(&self, position: u32) -> Option<PointView<'a>> {
        let at = position as usize;
        if let Some(id) = self.index.segment.ids.get(at) {
            return Some(PointView {
                vectors: &self.index.segment.vectors,
                at,
                id: *id,
            });
        }
        let (coded, at) = self.coded(at)?;
        let (vectors, ids) = (&coded.vectors, &coded.ids);
        let id = *ids.get(at)?;
        Some(PointView { vectors, at, id })
    }

    /// The run or the tail that has a position behind those of the base, and the point's number there.
    #[inline]
    fn coded(&self, position: usize) -> Option<(&'a Coded, usize)> {
        let (cell, in_tail, at) = self.spot(position)?;
        let coded = match in_tail {
            true => &*cell.tail.as_ref()?.data,
            false => &cell.run.as_ref()?.data.coded,
        };
        (at < coded.len()).then_some((coded, at))
    }

    /// Squared distance of the point at a position from a query; infinite where there is none.
    ///
    /// Without a look at its identifier, which lies elsewhere in memory and is rarely wanted.
    #[inline]
    pub(crate) fn distance(&self, position: u32, query: &Prepared<'_>) -> f32 {
        let at = position as usize;
        if at < self.index.segment.ids.len() {
            return self.index.segment.vectors.distance(query, at);
        }
        self.coded(at).map_or(f32::INFINITY, |(coded, at)| {
            coded.vectors.distance(query, at)
        })
    }

    /// Asks the memory for the vector at a position, and for its identifier.
    #[inline]
    pub(crate) fn prefetch(&self, position: u32) {
        let (at, dim) = (position as usize, self.index.transform.dim());
        if let Some(id) = self.index.segment.ids.get(at..=at) {
            garlic_simd::prefetch(id);
            self.index.segment.vectors.prefetch(dim, at);
        } else if let Some((coded, at)) = self.coded(at) {
            garlic_simd::prefetch(&coded.ids[at..=at]);
            coded.vectors.prefetch(dim, at);
        }
    }

    /// Whether every point counts.
    #[inline]
    pub(crate) fn admits_all(&self) -> bool {
        self.changes.is_none() && self.allowed.is_none()
    }

    /// Whether every point in the bins of a cell counts, as far as that is known without a look at them.
    #[inline]
    pub(crate) fn admits_all_of(&self, cell: u32) -> bool {
        self.allowed.is_none()
            && self
                .changes
                .is_none_or(|c| c.cells[cell as usize].dead == 0)
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
        if at < self.index.segment.ids.len() {
            return !changes.dead.get(at);
        }
        let dead = |cell: &DeltaCell, in_tail: bool, at: usize| match in_tail {
            true => cell.tail.as_ref().is_none_or(|tail| tail.dead.get(at)),
            false => cell.run.as_ref().is_none_or(|run| run.dead.get(at)),
        };
        self.spot(at)
            .is_some_and(|(cell, in_tail, at)| !dead(cell, in_tail, at))
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
