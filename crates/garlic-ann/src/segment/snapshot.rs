//! What a search reads: the base segment and the delta of changes since.

use crate::graph::{Graph, Grown};
use crate::partition::{CellShape, anisotropic_discount};
use crate::plan::EXHAUSTIVE_POINTS;
use std::borrow::Cow;
use std::ops::Range;

use super::Segment;
use super::delta::EncodedPoints;
use super::delta::RewrittenData;
use super::delta::{DeltaCell, DeltaSegment, PAGE_POSITIONS, RefittedCell, first_position};
use super::filter::Allowed;
use super::index::Index;
use super::views::{BinView, CellFrame, PointView};
use crate::bins::Bounds;
use crate::plan::Plan;
use garlic_core::vectors::Prepared;

/// Everything a search reads. The bins and positions of the delta are numbered after those of the base.
#[derive(Clone, Copy)]
pub(crate) struct Snapshot<'a> {
    pub(crate) index: &'a Index,
    pub(crate) segment: &'a Segment,
    changes: Option<&'a DeltaSegment>,
    allowed: Option<&'a Allowed>,
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

    /// Restricts the snapshot to allowed points.
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

    /// Upper limit of all positions.
    pub(crate) fn positions(&self) -> usize {
        let base = self.index.segment.ids.len();
        match self.changes {
            None => base,
            Some(c) => first_position(base) + c.numbering.page_cell.len() * PAGE_POSITIONS,
        }
    }

    /// The cheapest plan that was measured to reach this recall for `k` neighbours. A small index is read completely.
    pub(crate) fn plan(&self, k: usize, recall: f64) -> Plan {
        let (calibration, graph) = (&self.index.calibration, self.graph().is_some());
        self.all_if_small(calibration.plan_for(k, recall, self.index.len(), graph))
    }

    /// [`Snapshot::plan`] without the neighbour graph.
    pub(crate) fn plan_with_bins(&self, k: usize, recall: f64) -> Plan {
        self.all_if_small(self.table_plan(k, recall))
    }

    fn all_if_small(&self, plan: Plan) -> Plan {
        Plan {
            all: plan.all || self.index.len() <= EXHAUSTIVE_POINTS,
            ..plan
        }
    }

    /// The plan of the calibration table for cells and bins, whatever the number of points.
    pub(crate) fn table_plan(&self, k: usize, recall: f64) -> Plan {
        let (calibration, points) = (&self.index.calibration, self.index.len());
        calibration.plan_for(k, recall, points, false)
    }

    /// The neighbour graph of the base. It prepares queries.
    #[inline]
    pub(crate) fn graph(&self) -> Option<&'a Graph> {
        self.segment.graph.as_deref()
    }

    /// The neighbour graph of all points, if there are changes.
    #[inline]
    pub(crate) fn grown(&self) -> Option<&'a Grown> {
        self.changes?.graph.as_ref()
    }

    /// Whether every node of the neighbour graph is an admitted point.
    pub(crate) fn admits_all_nodes(&self) -> bool {
        let removed = |c: &DeltaSegment| c.graph.as_ref().is_none_or(|g| g.points() != c.live);
        self.allowed.is_none() && !self.changes.is_some_and(removed)
    }

    /// The node of the point at a position in the neighbour graph.
    pub(crate) fn node_at(&self, position: u32) -> Option<u32> {
        if (position as usize) < self.segment.ids.len() {
            return Some(position);
        }
        let (points, at) = self.encoded_points(position as usize)?;
        points.nodes.get(at).copied()
    }

    /// The position of a node of the neighbour graph, or `None` if it was removed.
    #[inline]
    pub(crate) fn position_of_node(&self, node: u32) -> Option<u32> {
        let Some(changes) = self.changes else {
            return Some(node);
        };
        let at = node as usize;
        if at < self.segment.ids.len() && !changes.tombstones.get(at) {
            return Some(node);
        }
        let place = changes.places.get(node)?;
        let numbers = changes.numbering.cells.get(place.cell as usize)?;
        Some(match place.appended {
            true => numbers.appended + place.at,
            false => numbers.rewritten + place.at,
        })
    }

    /// Means of all cells, one per row.
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

    /// A cell that was refitted since the segment was encoded.
    #[inline]
    fn refitted(&self, cell: usize) -> Option<&'a RefittedCell> {
        self.changes?.cells[cell].shape.as_deref()
    }

    /// Axes of a cell, one per row.
    #[inline]
    pub(crate) fn axes(&self, cell: usize) -> &'a [f32] {
        match self.refitted(cell) {
            Some(refitted) => &refitted.cell.axes,
            None => self.segment.cells.axes(cell),
        }
    }

    /// Inner products of a cell's axes with its mean.
    #[inline]
    pub(crate) fn origin(&self, cell: usize) -> &'a [f32] {
        let rank = self.segment.cells.rank();
        match self.refitted(cell) {
            Some(refitted) => &refitted.scales.origin,
            None => &self.segment.encoded.origins[cell * rank..][..rank],
        }
    }

    /// Steps of the codes of a cell's points.
    #[inline]
    pub(crate) fn steps(&self, cell: usize) -> &'a [f32] {
        let width = self.segment.encoded.width;
        match self.refitted(cell) {
            Some(refitted) => &refitted.scales.steps,
            None => &self.segment.encoded.steps[cell * width..][..width],
        }
    }

    /// Steps of the codes of a cell's bin centres.
    #[inline]
    pub(crate) fn bin_steps(&self, cell: usize) -> &'a [f32] {
        let width = self.segment.encoded.width;
        match self.refitted(cell) {
            Some(refitted) => &refitted.scales.bin_steps,
            None => &self.segment.encoded.bin_steps[cell * width..][..width],
        }
    }

    /// Axes, variances and scales of a cell.
    pub(crate) fn frame(&self, cell: usize) -> CellFrame<'a> {
        CellFrame {
            shape: CellShape {
                mean: self.mean(cell),
                ..match self.refitted(cell) {
                    Some(refitted) => refitted.cell.shape(),
                    None => self.segment.cells.shape(cell),
                }
            },
            origin: self.origin(cell),
            bin_steps: self.bin_steps(cell),
            steps: self.steps(cell),
        }
    }

    /// The amount subtracted from the squared distance to the cell mean, for a point with the coordinates `y`.
    #[inline]
    pub(crate) fn anisotropic_discount(&self, cell: usize, y: &[f32]) -> f32 {
        let frame = self.frame(cell);
        anisotropic_discount(
            self.segment.cells.anisotropy,
            frame.shape.variances,
            frame.shape.residual_variance,
            y,
        )
    }

    /// Bins of a cell in the base. Empty if the cell was rewritten.
    #[inline]
    pub(crate) fn base_bins(&self, cell: usize) -> Range<usize> {
        match self.changes {
            Some(c) if !c.cells[cell].in_base => 0..0,
            _ => self.segment.encoded.bins_of(cell),
        }
    }

    /// The rewritten points of a cell, and the number of their first bin.
    #[inline]
    pub(crate) fn rewritten(&self, cell: usize) -> Option<(&'a RewrittenData, u32)> {
        let changes = self.changes?;
        let rewritten = changes.cells[cell].rewritten.as_ref()?;
        Some((&rewritten.data, changes.numbering.cells[cell].first_bin))
    }

    /// The append buffer of a cell, and the position of its first point.
    #[inline]
    pub(crate) fn appended(&self, cell: usize) -> Option<(&'a EncodedPoints, u32)> {
        let changes = self.changes?;
        let appended = changes.cells[cell].appended.as_ref()?;
        Some((&appended.data, changes.numbering.cells[cell].appended))
    }

    /// Number of bins of a cell.
    #[inline]
    pub(crate) fn bins_in(&self, cell: usize) -> usize {
        let rewritten = self
            .rewritten(cell)
            .map_or(0, |(rewritten, _)| rewritten.bin_count());
        self.base_bins(cell).len() + rewritten
    }

    /// Positions of a cell's points outside the base: those of its rewritten part and of its append buffer.
    pub(crate) fn delta_positions(&self, cell: usize) -> [Range<usize>; 2] {
        let Some(changes) = self.changes else {
            return [0..0, 0..0];
        };
        let (place, cell) = (changes.numbering.cells[cell], &changes.cells[cell]);
        let range = |first: u32, len: usize| first as usize..first as usize + len;
        [
            range(
                place.rewritten,
                cell.rewritten
                    .as_ref()
                    .map_or(0, |rewritten| rewritten.len()),
            ),
            range(
                place.appended,
                cell.appended.as_ref().map_or(0, |appended| appended.len()),
            ),
        ]
    }

    /// Quantized centres of a cell's bins, `rank` values each, and the number of the first bin.
    pub(crate) fn centres(&self, cell: usize) -> (&'a [f32], u32) {
        let rank = self.segment.cells.rank();
        match self.rewritten(cell) {
            Some((rewritten, first)) => (&rewritten.centres, first),
            None => {
                let bins = self.base_bins(cell);
                let centres = &self.segment.centres()[bins.start * rank..bins.end * rank];
                (centres, bins.start as u32)
            }
        }
    }

    /// Number of live points of a cell.
    pub(crate) fn points_in(&self, cell: usize) -> usize {
        self.changes
            .map_or_else(|| self.segment.cell_len(cell), |c| c.cells[cell].live)
    }

    /// The state of a cell in the delta.
    pub(crate) fn cell_state(&self, cell: usize) -> Cow<'a, DeltaCell> {
        match self.changes {
            Some(c) => Cow::Borrowed(&*c.cells[cell]),
            None => Cow::Owned(DeltaCell {
                in_base: true,
                live: self.segment.cell_len(cell),
                ..DeltaCell::default()
            }),
        }
    }

    /// The rewritten cell that a bin outside the base belongs to, the cell's number, and the bin's number in it.
    #[inline]
    fn rewritten_bin(&self, bin: usize) -> Option<(&'a RewrittenData, usize, usize)> {
        let numbering = &self.changes?.numbering;
        let cell = *numbering.bin_cell.get(bin - self.segment.bins())? as usize;
        let (rewritten, first) = self.rewritten(cell)?;
        Some((rewritten, cell, bin - first as usize))
    }

    /// A bin without its appended points.
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
        let Some((rewritten, cell, at)) = self.rewritten_bin(at) else {
            return BinView::default();
        };
        let points = rewritten.points.points(at);
        let first = self
            .changes
            .map_or(0, |c| c.numbering.cells[cell].rewritten);
        BinView {
            cell: cell as u32,
            first: first + points.start as u32,
            len: points.len(),
            codes: rewritten.points.codes(at),
        }
    }

    /// Bounds of a bin without its appended points.
    pub(crate) fn bounds(&self, bin: u32) -> Bounds {
        let at = bin as usize;
        match self.segment.encoded.bounds.get(at) {
            Some(bounds) => *bounds,
            None => match self.rewritten_bin(at) {
                Some((rewritten, _, at)) => rewritten.points.bounds[at],
                None => Bounds::default(),
            },
        }
    }

    /// The points appended to a bin, if any.
    #[inline]
    pub(crate) fn joined(&self, cell: u32, bin: u32) -> Option<(BinView<'a>, &'a Bounds)> {
        let (appended, first) = self.appended(cell as usize)?;
        let first_bin = match self.rewritten(cell as usize) {
            Some((_, first)) => first,
            None => self.base_bins(cell as usize).start as u32,
        };
        let at = (bin - first_bin) as usize;
        let points = appended.points(at);
        if points.is_empty() {
            return None;
        }
        let joined = BinView {
            cell,
            first: first + points.start as u32,
            len: points.len(),
            codes: appended.codes(at),
        };
        Some((joined, &appended.bounds[at]))
    }

    /// The cell of a position outside the base, whether the point is in the append buffer, and its number there.
    #[inline]
    fn locate(&self, position: usize) -> Option<(&'a DeltaCell, bool, usize)> {
        let changes = self.changes?;
        let numbering = &changes.numbering;
        let page =
            position.checked_sub(first_position(self.index.segment.ids.len()))? / PAGE_POSITIONS;
        let cell = *numbering.page_cell.get(page)? as usize;
        let place = numbering.cells[cell];
        let is_appended = position >= place.appended as usize;
        let first = if is_appended {
            place.appended
        } else {
            place.rewritten
        };
        Some((&changes.cells[cell], is_appended, position - first as usize))
    }

    /// The point at a position, whether removed or not.
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
        let (points, at) = self.encoded_points(at)?;
        let (vectors, ids) = (&points.vectors, &points.ids);
        let id = *ids.get(at)?;
        Some(PointView { vectors, at, id })
    }

    /// The encoded points that contain a position outside the base, and the point's number there.
    #[inline]
    fn encoded_points(&self, position: usize) -> Option<(&'a EncodedPoints, usize)> {
        let (cell, is_appended, at) = self.locate(position)?;
        let points = match is_appended {
            true => &*cell.appended.as_ref()?.data,
            false => &cell.rewritten.as_ref()?.data.points,
        };
        (at < points.len()).then_some((points, at))
    }

    /// Squared distance of the point at a position from a query, infinite if there is no such point.
    ///
    /// It does not read the identifier, which lies elsewhere in memory and is rarely needed.
    #[inline]
    pub(crate) fn distance(&self, position: u32, query: &Prepared<'_>) -> f32 {
        let at = position as usize;
        if at < self.index.segment.ids.len() {
            return self.index.segment.vectors.distance(query, at);
        }
        self.encoded_points(at)
            .map_or(f32::INFINITY, |(points, at)| {
                points.vectors.distance(query, at)
            })
    }

    /// Prefetches the vector and the identifier at a position.
    #[inline]
    pub(crate) fn prefetch(&self, position: u32) {
        let (at, dim) = (position as usize, self.index.transform.dim());
        if let Some(id) = self.index.segment.ids.get(at..=at) {
            garlic_simd::prefetch(id);
            self.index.segment.vectors.prefetch(dim, at);
        } else if let Some((points, at)) = self.encoded_points(at) {
            garlic_simd::prefetch(&points.ids[at..=at]);
            points.vectors.prefetch(dim, at);
        }
    }

    /// Whether every point is admitted: none was removed and there is no filter.
    #[inline]
    pub(crate) fn admits_all(&self) -> bool {
        self.changes.is_none() && self.allowed.is_none()
    }

    /// Whether every point in the bins of a cell is known to be admitted without testing each.
    #[inline]
    pub(crate) fn admits_all_of(&self, cell: u32) -> bool {
        self.allowed.is_none()
            && self
                .changes
                .is_none_or(|c| c.cells[cell as usize].removed == 0)
    }

    /// Whether the point at a position is admitted: it is live and the filter allows it.
    #[inline]
    pub(crate) fn admits(&self, position: u32) -> bool {
        match self.allowed {
            Some(allowed) => allowed.contains(position),
            None => self.is_live(position),
        }
    }

    /// Whether the point at a position is live, that is, not removed.
    #[inline]
    pub(crate) fn is_live(&self, position: u32) -> bool {
        let Some(changes) = self.changes else {
            return true;
        };
        let at = position as usize;
        if at < self.index.segment.ids.len() {
            return !changes.tombstones.get(at);
        }
        let removed = |cell: &DeltaCell, is_appended: bool, at: usize| match is_appended {
            true => cell
                .appended
                .as_ref()
                .is_none_or(|appended| appended.tombstones.get(at)),
            false => cell
                .rewritten
                .as_ref()
                .is_none_or(|rewritten| rewritten.tombstones.get(at)),
        };
        self.locate(at)
            .is_some_and(|(cell, is_appended, at)| !removed(cell, is_appended, at))
    }

    /// Number of admitted points.
    pub(crate) fn counted(&self) -> usize {
        self.allowed
            .map_or_else(|| self.index.len(), Allowed::count)
    }

    /// Number of admitted points of a cell.
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

    /// All admitted positions, in order.
    pub(crate) fn admitted(&self) -> impl Iterator<Item = u32> + use<'a> {
        let snapshot = *self;
        (0..snapshot.positions() as u32)
            .filter(move |p| snapshot.point(*p).is_some() && snapshot.admits(*p))
    }
}
