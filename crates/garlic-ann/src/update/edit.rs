//! Adds, removes and replaces points.
//!
//! Each change is prepared beside the current state and then takes effect at once. On an error the index is unchanged.

use std::collections::HashSet;
use std::sync::Arc;

use garlic_linalg::{Matrix, Rows};
use rayon::prelude::*;

use super::assign::Assigned;
use super::join::{PendingCell, Replacement, deliver_moved, empty_cell};
use super::rebuild::{Members, gather, rebuild_cell};
use crate::build::check_type;
use crate::config::Store;
use crate::graph::Grown;
use crate::partition::PRUNED_COORDINATE;
use crate::plan::EXHAUSTIVE_POINTS;
use crate::segment::{
    Bits, Delta, DeltaCell, DeltaSegment, IdMap, Index, Numbering, Places, Snapshot,
};
use garlic_core::Cancel;
use garlic_core::metric::Embedded;
use garlic_core::validate::{check_count, check_finite, check_ids};
use garlic_core::vectors::{StoredType, StoredVectors, is_byte};
use garlic_core::{Error, Result};
use garlic_core::{Lists, by_label};

/// A cell is rewritten if the share of removed points exceeds this.
const MAX_REMOVED_SHARE: f64 = 0.3;

/// Where a point is stored.
enum Location {
    Base { position: usize },
    RewrittenCell { cell: usize, at: usize },
    AppendBuffer { cell: usize, at: usize },
}

impl Index {
    /// Adds vectors under new identifiers. Their codes are stored in their cells at once. A cell that grows too large
    /// is split, and a cell whose points have moved is refitted.
    ///
    /// If the index has doubled in size, it is retrained before this returns, so that recall targets hold. On average
    /// this costs about twice the build time per point. If the index chose to store bytes because all vectors were
    /// whole numbers, it switches to 32-bit floats with the first other vector.
    ///
    /// # Errors
    /// Fails for vectors of another dimension or with values that cannot be indexed, and for identifiers that exist
    /// already, occur twice or are not below 2^63. An index with points in two cells is read-only. On an error the
    /// index is unchanged.
    pub fn add(&mut self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        let mut next = self.clone();
        next.add_only(vectors, ids)?;
        next.maintain()?;
        *self = next;
        Ok(())
    }

    /// [`Index::add`] without maintenance.
    pub(crate) fn add_only(&mut self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        let (mut next, embedded) = self.prepared_for(vectors, ids)?;
        if let Some(id) = ids.iter().find(|id| self.contains(**id)) {
            return Err(Error::IdExists { id: *id });
        }
        next.change(|index| index.insert(embedded.rows(), ids))?;
        *self = next;
        Ok(())
    }

    /// Removes the points with these identifiers and returns how many there were. Unknown identifiers are ignored.
    ///
    /// # Errors
    /// Fails if points are stored in two cells.
    pub fn remove(&mut self, ids: &[u64]) -> Result<usize> {
        let mut next = self.clone();
        let removed = next.remove_only(ids)?;
        next.maintain()?;
        *self = next;
        Ok(removed)
    }

    /// [`Index::remove`] without maintenance.
    pub(crate) fn remove_only(&mut self, ids: &[u64]) -> Result<usize> {
        let mut removed = 0;
        self.change(|index| {
            removed = index.remove_points(ids)?;
            Ok(())
        })?;
        Ok(removed)
    }

    /// Replaces the vectors of existing identifiers.
    ///
    /// # Errors
    /// Fails as [`Index::add`] does, except that the identifiers must exist. On an error the index is unchanged.
    pub fn update(&mut self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        let mut next = self.clone();
        next.update_only(vectors, ids)?;
        next.maintain()?;
        *self = next;
        Ok(())
    }

    /// [`Index::update`] without maintenance.
    pub(crate) fn update_only(&mut self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        let (mut next, embedded) = self.prepared_for(vectors, ids)?;
        if let Some(id) = ids.iter().find(|id| !self.contains(**id)) {
            return Err(Error::UnknownId { id: *id });
        }
        next.change(|index| {
            index.remove_points(ids)?;
            index.insert(embedded.rows(), ids)
        })?;
        *self = next;
        Ok(())
    }

    /// Replaces the vectors of the identifiers that exist and adds the others.
    ///
    /// # Errors
    /// Fails as [`Index::add`] does, except that identifiers may exist. On an error the index is unchanged.
    pub fn upsert(&mut self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        let mut next = self.clone();
        next.upsert_only(vectors, ids)?;
        next.maintain()?;
        *self = next;
        Ok(())
    }

    /// [`Index::upsert`] without maintenance.
    pub(crate) fn upsert_only(&mut self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        let (mut next, embedded) = self.prepared_for(vectors, ids)?;
        next.change(|index| {
            index.remove_points(ids)?;
            index.insert(embedded.rows(), ids)
        })?;
        *self = next;
        Ok(())
    }

    /// Checks the vectors. Returns an index that can store them, and the embedded vectors. Usually that is this index.
    /// If needed, it has room for longer vectors or stores 32-bit floats instead of bytes.
    fn prepared_for<'a>(&self, vectors: Rows<'a>, ids: &[u64]) -> Result<(Self, Embedded<'a>)> {
        self.check_change(vectors, ids)?;
        let mut next = self.clone();
        if vectors.is_empty() {
            return Ok((next, Embedded::Given(vectors)));
        }
        if let Some(longest) = self.embedding.longest_of(vectors)
            && let Some(longer) = next.lengthened(longest)?
        {
            next = longer;
        }
        let embedded = next.embedding.added(vectors)?;
        if !next.may_widen() {
            check_type(embedded.rows(), next.segment.vectors.element())?;
        }
        if let Some(wider) = next.widened(embedded.rows())? {
            next = wider;
        }
        Ok((next, embedded))
    }

    /// The index with 32-bit vectors if it chose to store bytes and these vectors do not fit. Codes and distances do
    /// not change.
    fn widened(&self, vectors: Rows<'_>) -> Result<Option<Self>> {
        if !self.may_widen() || vectors.data().iter().all(|v| is_byte(*v)) {
            return Ok(None);
        }
        let mut wider = self.clone();
        wider.compact()?;
        let segment = Arc::make_mut(&mut wider.segment);
        segment.vectors = segment.vectors.widen(self.transform.dim());
        Ok(Some(wider))
    }

    /// Whether the index chose to store bytes itself, rather than by configuration.
    pub(super) fn may_widen(&self) -> bool {
        self.segment.vectors.element() == StoredType::U8 && self.config.storage.store == Store::Auto
    }

    /// Whether a point has this identifier.
    pub fn contains(&self, id: u64) -> bool {
        self.locate(id).is_some()
    }

    /// The stored vector of an identifier. It is rounded if `store` is f16 or int8, and normalized with the cosine metric.
    pub fn get(&self, id: u64) -> Option<Vec<f32>> {
        let mut vector = Vec::new();
        let dim = self.transform.dim();
        let changed = |cell: usize| self.delta.changes().map(|c| &c.cells[cell]);
        let (vectors, at) = match self.locate(id)? {
            Location::Base { position } => (&self.segment.vectors, position),
            Location::RewrittenCell { cell, at } => {
                (&changed(cell)?.rewritten.as_ref()?.data.points.vectors, at)
            }
            Location::AppendBuffer { cell, at } => {
                (&changed(cell)?.appended.as_ref()?.data.vectors, at)
            }
        };
        vectors.read(dim, at, &mut vector).then_some(())?;
        vector.truncate(self.embedding.plain(&vector).len());
        Some(vector)
    }

    /// An unused identifier: one more than the largest. Removed points count until the index is compacted.
    pub fn next_id(&self) -> u64 {
        let base = self
            .segment
            .lookup()
            .largest()
            .map_or(0, |largest| largest.saturating_add(1));
        let base = base.max(self.build_stats.next_id);
        self.delta.changes().map_or(base, |c| c.next_id.max(base))
    }

    /// Identifiers of all points, in no particular order.
    pub fn ids(&self) -> Vec<u64> {
        let snapshot = self.snapshot();
        let points = snapshot.admitted().filter_map(|p| snapshot.point(p));
        let mut ids: Vec<u64> = points.map(|p| p.id).collect();
        if self.spills() {
            ids.sort_unstable();
            ids.dedup();
        }
        ids
    }

    fn locate(&self, id: u64) -> Option<Location> {
        let changes = self.delta.changes();
        if let Some(cell) = changes.and_then(|c| c.id_map.cell(id)) {
            let cell = cell as usize;
            let state = &changes?.cells[cell];
            let find = |ids: &[u64], tombstones: &Bits| {
                let mut found = ids.iter().enumerate().filter(|(_, other)| **other == id);
                found.find(|(at, _)| !tombstones.get(*at)).map(|(at, _)| at)
            };
            if let Some(appended) = &state.appended
                && let Some(at) = find(&appended.data.ids, &appended.tombstones)
            {
                return Some(Location::AppendBuffer { cell, at });
            }
            if let Some(rewritten) = &state.rewritten
                && let Some(at) = find(&rewritten.data.points.ids, &rewritten.tombstones)
            {
                return Some(Location::RewrittenCell { cell, at });
            }
        }
        let position = self.segment.lookup().position(id)? as usize;
        match changes {
            Some(changes) if changes.tombstones.get(position) => None,
            _ => Some(Location::Base { position }),
        }
    }

    /// Fails for vectors and identifiers that an index of this dimension cannot store.
    fn check_change(&self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        self.check_mutable()?;
        if vectors.dim() != self.dim() {
            return Err(Error::VectorDimension {
                expected: self.dim(),
                found: vectors.dim(),
            });
        }
        if vectors.len() != ids.len() {
            return Err(Error::IdCount {
                vectors: vectors.len(),
                ids: ids.len(),
            });
        }
        check_ids(ids)?;
        if vectors.is_empty() {
            return Ok(());
        }
        check_count(vectors)?;
        self.workers.get()?.install(|| check_finite(vectors))
    }

    /// Runs a change on the worker pool. On an error the delta is unchanged.
    fn change(&mut self, edit: impl FnOnce(&mut Self) -> Result<()> + Send) -> Result<()> {
        self.check_mutable()?;
        self.check_layout()?;
        let workers = self.workers.clone();
        let before = (self.delta.clone(), self.build_stats, self.uncovered.clone());
        let cancel = Cancel::current();
        let done = workers.get()?.install(|| cancel.scope(|| edit(self)));
        if done.is_err() {
            (self.delta, self.build_stats, self.uncovered) = before;
        }
        done
    }

    /// Inserts checked vectors under checked identifiers.
    fn insert(&mut self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let mut changes = self.changes();
        let first_node = changes.first_of(ids.len())?;
        let snapshot = self.snapshot();
        let element = self.segment.vectors.element();
        let rounded = element.round(vectors);
        let vectors = Rows::new(&rounded, vectors.dim())?;
        let Assigned {
            points,
            residual_squared,
            cells: labels,
            radii,
        } = self.assign_rounded(&snapshot, vectors)?;
        let members = Lists::group(snapshot.cells(), by_label(&labels));
        let touched: Vec<usize> = (0..snapshot.cells())
            .filter(|cell| !members.get(*cell).is_empty())
            .collect();
        let pending: Vec<PendingCell> = touched
            .into_par_iter()
            .map(|cell| {
                let rows = members.get(cell);
                let joining = Members {
                    vectors: StoredVectors::gather(vectors, rows, element),
                    ids: rows.iter().map(|i| ids[*i as usize]).collect(),
                    nodes: rows.iter().map(|i| first_node.wrapping_add(*i)).collect(),
                    points: Matrix::gather(points.as_rows(), rows),
                    residual_squared: rows.iter().map(|i| residual_squared[*i as usize]).collect(),
                };
                PendingCell::new(&snapshot, cell, joining)
            })
            .collect::<Result<_>>()?;
        let replaced: Vec<Replacement> = deliver_moved(&snapshot, pending)
            .into_par_iter()
            .map(|pending| pending.join(&snapshot, self.len() + ids.len()))
            .collect::<Result<_>>()?;
        if let Some(graph) = &mut changes.graph {
            graph.add(vectors)?;
        }
        changes.live += ids.len();
        let largest = ids.iter().copied().max().unwrap_or(0);
        changes.next_id = changes.next_id.max(largest + 1);
        self.commit(changes, replaced)?;
        self.build_stats.note_added(&radii);
        let is_drifting = self.build_stats.is_drifting();
        // A small index is read completely, so the count is enough. A check is due as soon as there are more points.
        let is_kept = self.len() > EXHAUSTIVE_POINTS;
        for (row, radius) in radii.iter().enumerate() {
            if is_drifting || self.is_uncovered(vectors.row(row), *radius) {
                self.build_stats.uncovered += 1;
                if is_kept {
                    self.uncovered.push(ids[row], vectors.row(row));
                }
            }
        }
        Ok(())
    }

    /// Removes points. Unknown and repeated identifiers are ignored.
    fn remove_points(&mut self, ids: &[u64]) -> Result<usize> {
        let mut changes = self.changes();
        let (mut gone, mut touched) = (HashSet::new(), Vec::new());
        for id in ids {
            let Some(locate) = self.locate(*id).filter(|_| gone.insert(*id)) else {
                continue;
            };
            let number = match locate {
                Location::Base { position } => {
                    changes.tombstones.set(position);
                    self.segment.cell_of(position)
                }
                Location::RewrittenCell { cell, at } => {
                    if let Some(rewritten) = &mut Arc::make_mut(&mut changes.cells[cell]).rewritten
                    {
                        rewritten.tombstones.set(at);
                        changes.places.set(rewritten.data.points.nodes[at], None);
                    }
                    cell
                }
                Location::AppendBuffer { cell, at } => {
                    if let Some(appended) = &mut Arc::make_mut(&mut changes.cells[cell]).appended {
                        appended.tombstones.set(at);
                        changes.places.set(appended.data.nodes[at], None);
                    }
                    cell
                }
            };
            let cell = Arc::make_mut(&mut changes.cells[number]);
            cell.live -= 1;
            cell.removed += 1;
            touched.push(number);
        }
        if gone.is_empty() {
            return Ok(0);
        }
        changes.live -= gone.len();
        let uncovered = self.uncovered.len();
        self.uncovered.remove(&gone, self.transform.dim());
        // A file keeps only the count of uncovered points. Those that it did not keep stay counted.
        self.build_stats.uncovered -= (uncovered - self.uncovered.len()) as u64;
        changes.id_map.remove(gone.iter().copied());
        touched.sort_unstable();
        touched.dedup();
        self.commit(changes, Vec::new())?;

        let snapshot = Snapshot::new(self);
        let has_many_removed = |cell: &usize| {
            let state = &snapshot.cell_state(*cell);
            state.removed as f64 > MAX_REMOVED_SHARE * (state.removed + state.live) as f64
        };
        touched.retain(has_many_removed);
        let replaced: Vec<Replacement> = touched
            .into_par_iter()
            .map(|cell| {
                let cells = match snapshot.points_in(cell) {
                    0 => vec![empty_cell(&snapshot, cell)],
                    _ => rebuild_cell(&snapshot, cell, gather(&snapshot, cell, None)?, self.len()),
                };
                Ok(Replacement::rewritten(cell, cells))
            })
            .collect::<Result<_>>()?;
        let changes = self.changes();
        self.commit(changes, replaced)?;
        self.build_stats.removed += gone.len() as u64;
        Ok(gone.len())
    }

    /// Whether a new vector lies where no cell was fitted, given its squared distance from the mean of its cell.
    fn is_uncovered(&self, vector: &[f32], squared: f32) -> bool {
        // A point is uncovered if its squared distance exceeds the mean of the fitted points by this factor.
        const UNCOVERED_FACTOR: f64 = 4.0;
        let is_trained = self.build_stats.built > 0;
        is_trained
            && (f64::from(squared) > UNCOVERED_FACTOR * self.build_stats.radius
                || self.embedding.is_longer(vector, self.build_stats.longest))
    }

    /// The position of a point.
    pub(crate) fn position_of(&self, id: u64) -> Option<u32> {
        let place = |cell: usize| Some(self.delta.changes()?.numbering.cells[cell]);
        match self.locate(id)? {
            Location::Base { position } => u32::try_from(position).ok(),
            Location::RewrittenCell { cell, at } => Some(place(cell)?.rewritten + at as u32),
            Location::AppendBuffer { cell, at } => Some(place(cell)?.appended + at as u32),
        }
    }

    /// A copy of the delta to be changed.
    fn changes(&self) -> DeltaSegment {
        match self.delta.changes() {
            Some(changes) => changes.clone(),
            None => DeltaSegment::none(self),
        }
    }

    /// Replaces cells, renumbers bins and positions and installs the new delta.
    fn commit(&mut self, mut changes: DeltaSegment, replaced: Vec<Replacement>) -> Result<()> {
        let segment = Arc::clone(&self.segment);
        let dim = segment.cells.dim();
        let mut id_map = Vec::new();
        for Replacement {
            cell,
            cells,
            joined,
            ..
        } in replaced
        {
            let moved = joined.is_none();
            if moved && changes.cells[cell].in_base {
                let bins = segment.encoded.bins_of(cell);
                for position in bins.flat_map(|bin| segment.encoded.positions(bin)) {
                    changes.tombstones.set(position);
                }
            }
            for (part, state) in cells.into_iter().enumerate() {
                let number = match part {
                    0 => cell,
                    _ => changes.free_slot(dim),
                };
                if moved {
                    let ids = state
                        .rewritten
                        .iter()
                        .flat_map(|rewritten| &rewritten.data.points.ids);
                    id_map.extend(ids.map(|id| (*id, number as u32)));
                }
                changes.place(number, &state, moved);
                let mean = state.shape.as_ref().map(|shape| shape.cell.mean.clone());
                let is_pruned = state.is_pruned();
                changes.cells[number] = Arc::new(state);
                if is_pruned {
                    changes.prune(number, dim);
                } else if let Some(mean) = mean {
                    let row = &mut Arc::make_mut(&mut changes.means)[number * dim..][..dim];
                    row.copy_from_slice(&mean);
                }
            }
            let joined = joined.into_iter().flatten();
            id_map.extend(joined.map(|id| (id, cell as u32)));
        }
        changes.id_map.put(id_map);
        let numbering = Numbering::new(&changes.cells, segment.bins(), self.segment.ids.len());
        changes.numbering = Arc::new(numbering.ok_or(Error::TooManyVectors {
            rows: changes.live,
            limit: u32::MAX as usize,
        })?);
        self.delta = Delta(Some(Arc::new(changes)));
        Ok(())
    }
}

impl DeltaSegment {
    /// A delta without changes.
    fn none(index: &Index) -> Self {
        let segment = &index.segment;
        let cells = (0..segment.cells.len())
            .map(|cell| {
                Arc::new(DeltaCell {
                    in_base: true,
                    live: segment.cell_len(cell),
                    ..DeltaCell::default()
                })
            })
            .collect();
        Self {
            means: Arc::new(segment.cells.means.to_vec()),
            cells,
            tombstones: Bits::new(index.segment.ids.len()),
            id_map: IdMap::default(),
            graph: segment.graph.as_ref().map(Grown::new),
            places: Places::default(),
            live: index.segment.ids.len(),
            next_id: 0,
            numbering: Arc::default(),
        }
    }

    /// The number of a pruned cell or, if there is none, of a new one.
    fn free_slot(&mut self, dim: usize) -> usize {
        match self.cells.iter().position(|cell| cell.is_pruned()) {
            Some(slot) => slot,
            None => {
                self.cells.push(Arc::default());
                let len = self.cells.len() * dim;
                Arc::make_mut(&mut self.means).resize(len, PRUNED_COORDINATE);
                self.cells.len() - 1
            }
        }
    }

    /// Moves the mean of a cell without points infinitely far away. The last cell stays, so that points can be added.
    fn prune(&mut self, cell: usize, dim: usize) {
        let others = self.cells.iter().enumerate();
        if others
            .filter(|(i, _)| *i != cell)
            .all(|(_, c)| c.is_pruned())
        {
            return;
        }
        Arc::make_mut(&mut self.means)[cell * dim..][..dim].fill(PRUNED_COORDINATE);
    }
}
