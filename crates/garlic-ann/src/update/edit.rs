//! Adding, removing and replacing points.
//!
//! A change is prepared beside what it replaces and takes effect all at once: on an error the index is as it was.

use std::collections::HashSet;
use std::sync::Arc;

use garlic_linalg::{Matrix, Rows};
use rayon::prelude::*;

use super::join::{Coming, Replaced, emptied, with_moved};
use super::reshape::{Members, gather, relay};
use crate::build::check_type;
use crate::config::Store;
use crate::partition::{Cells, FAR, SHORTLIST};
use crate::plan::EXHAUSTIVE_POINTS;
use crate::segment::{Bits, Delta, DeltaCell, DeltaSegment, IdMap, Index, Numbering, Snapshot};
use crate::transform::outside;
use garlic_core::Cancel;
use garlic_core::metric::Embedded;
use garlic_core::validate::{check_count, check_finite, check_ids};
use garlic_core::vectors::{StoredType, StoredVectors, is_byte};
use garlic_core::{Error, Result};
use garlic_core::{Lists, by_label};

/// Share of removed points above which a cell is laid out without them.
const CROWDED: f64 = 0.3;

/// Where a point is.
enum Spot {
    Base { position: usize },
    RewrittenCell { cell: usize, at: usize },
    AppendBuffer { cell: usize, at: usize },
}

impl Index {
    /// Adds vectors under new identifiers. They join their cells with codes at once; a cell that grows too large
    /// is split, one whose points have moved is fitted anew. An index that has doubled is trained anew before this returns,
    /// so that recall targets are kept; on average that costs each point about what a build costs it, twice. An index that
    /// stores bytes because all vectors were
    /// whole numbers stores 32-bit floats from the first vector on that is none.
    ///
    /// # Errors
    /// Vectors of another dimension or with values that cannot be indexed, identifiers that are there already,
    /// that come twice or are not below 2^63, and an index whose points lie in two cells, which does not change.
    /// The index is then as it was.
    pub fn add(&mut self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        let mut next = self.clone();
        next.add_only(vectors, ids)?;
        next.maintain()?;
        *self = next;
        Ok(())
    }

    /// [`Index::add`] without what is due afterwards.
    pub(crate) fn add_only(&mut self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        let (mut next, embedded) = self.ready_for(vectors, ids)?;
        if let Some(id) = ids.iter().find(|id| self.contains(**id)) {
            return Err(Error::IdExists { id: *id });
        }
        next.change(|index| index.insert(embedded.rows(), ids))?;
        *self = next;
        Ok(())
    }

    /// Removes the points of these identifiers and returns how many there were; unknown ones are passed over.
    ///
    /// # Errors
    /// An index whose points lie in two cells does not change.
    pub fn remove(&mut self, ids: &[u64]) -> Result<usize> {
        let mut next = self.clone();
        let removed = next.remove_only(ids)?;
        next.maintain()?;
        *self = next;
        Ok(removed)
    }

    /// [`Index::remove`] without what is due afterwards.
    pub(crate) fn remove_only(&mut self, ids: &[u64]) -> Result<usize> {
        let mut removed = 0;
        self.change(|index| {
            removed = index.take_out(ids)?;
            Ok(())
        })?;
        Ok(removed)
    }

    /// Replaces the vectors of identifiers that are there.
    ///
    /// # Errors
    /// As for [`Index::add`], but the identifiers must be there. The index is then as it was.
    pub fn update(&mut self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        let mut next = self.clone();
        next.update_only(vectors, ids)?;
        next.maintain()?;
        *self = next;
        Ok(())
    }

    /// [`Index::update`] without what is due afterwards.
    pub(crate) fn update_only(&mut self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        let (mut next, embedded) = self.ready_for(vectors, ids)?;
        if let Some(id) = ids.iter().find(|id| !self.contains(**id)) {
            return Err(Error::UnknownId { id: *id });
        }
        next.change(|index| {
            index.take_out(ids)?;
            index.insert(embedded.rows(), ids)
        })?;
        *self = next;
        Ok(())
    }

    /// An index that can take these vectors, and the vectors as it takes them, once everything about them has been checked:
    /// usually this one; one with room for longer vectors, or with 32-bit vectors instead of bytes, where that is needed.
    fn ready_for<'a>(&self, vectors: Rows<'a>, ids: &[u64]) -> Result<(Self, Embedded<'a>)> {
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

    /// The index with 32-bit vectors, when it chose to store bytes and these vectors are none; codes and distances
    /// stay what they are.
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

    /// Whether bytes are what the index chose, not what it was told to store.
    fn may_widen(&self) -> bool {
        self.segment.vectors.element() == StoredType::U8 && self.config.storage.store == Store::Auto
    }

    /// Whether there is a point of this identifier.
    pub fn contains(&self, id: u64) -> bool {
        self.spot(id).is_some()
    }

    /// The vector of an identifier, as it is stored: rounded in half precision, of unit length with cosine distances.
    pub fn get(&self, id: u64) -> Option<Vec<f32>> {
        let mut vector = Vec::new();
        let dim = self.transform.dim();
        let changed = |cell: usize| self.delta.changes().map(|c| &c.cells[cell]);
        let (vectors, at) = match self.spot(id)? {
            Spot::Base { position } => (&self.segment.vectors, position),
            Spot::RewrittenCell { cell, at } => {
                (&changed(cell)?.run.as_ref()?.data.coded.vectors, at)
            }
            Spot::AppendBuffer { cell, at } => (&changed(cell)?.tail.as_ref()?.data.vectors, at),
        };
        vectors.read(dim, at, &mut vector);
        vector.truncate(self.embedding.plain(&vector).len());
        Some(vector)
    }

    /// An identifier that no point has, nor any above it: one more than the largest, removed points included until
    /// the index is laid out anew.
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
        let view = self.snapshot();
        let points = view.admitted().filter_map(|p| view.point(p));
        let mut ids: Vec<u64> = points.map(|p| p.id).collect();
        if self.spills() {
            ids.sort_unstable();
            ids.dedup();
        }
        ids
    }

    fn spot(&self, id: u64) -> Option<Spot> {
        let changes = self.delta.changes();
        if let Some(cell) = changes.and_then(|c| c.homes.cell(id)) {
            let cell = cell as usize;
            let state = &changes?.cells[cell];
            let find = |ids: &[u64], dead: &Bits| {
                let mut found = ids.iter().enumerate().filter(|(_, other)| **other == id);
                found.find(|(at, _)| !dead.get(*at)).map(|(at, _)| at)
            };
            if let Some(tail) = &state.tail
                && let Some(at) = find(&tail.data.ids, &tail.dead)
            {
                return Some(Spot::AppendBuffer { cell, at });
            }
            if let Some(run) = &state.run
                && let Some(at) = find(&run.data.coded.ids, &run.dead)
            {
                return Some(Spot::RewrittenCell { cell, at });
            }
        }
        let position = self.segment.lookup().position(id)? as usize;
        match changes {
            Some(changes) if changes.dead.get(position) => None,
            _ => Some(Spot::Base { position }),
        }
    }

    /// Fails for vectors and identifiers that no index of this dimension could take.
    fn check_change(&self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        self.check_changes()?;
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

    /// Runs a change on the pool; on an error the overlay stays what it was.
    fn change(&mut self, edit: impl FnOnce(&mut Self) -> Result<()> + Send) -> Result<()> {
        self.check_changes()?;
        self.check_order()?;
        let workers = self.workers.clone();
        let before = (self.delta.clone(), self.build_stats, self.uncovered.clone());
        let done = workers.get()?.install(|| edit(self));
        if done.is_err() {
            (self.delta, self.build_stats, self.uncovered) = before;
        }
        done
    }

    /// Adds checked vectors under checked identifiers.
    fn insert(&mut self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let (segment, view) = (Arc::clone(&self.segment), self.snapshot());
        let element = self.segment.vectors.element();
        let rounded = element.round(vectors);
        let vectors = Rows::new(&rounded, vectors.dim())?;
        let points = self.transform.apply_all(vectors, &Cancel::default())?;
        let beyond = outside(vectors, &self.transform, points.as_rows());
        let cells = Cells {
            anisotropy: segment.cells.anisotropy,
            rank: segment.cells.rank(),
            means: view.means(),
            shape: |cell: usize| {
                let frame = view.frame(cell);
                (frame.axes, frame.variances, frame.residual)
            },
        };
        let labels = cells.assign(points.as_rows(), SHORTLIST, &Cancel::default())?;
        let radii: Vec<f32> = (0..ids.len())
            .map(|row| {
                let mean = view.mean(labels[row] as usize);
                garlic_simd::l2_squared(points.row(row), mean) + beyond[row]
            })
            .collect();
        let members = Lists::group(view.cells(), by_label(&labels));
        let touched: Vec<usize> = (0..view.cells())
            .filter(|cell| !members.get(*cell).is_empty())
            .collect();
        let coming: Vec<Coming> = touched
            .into_par_iter()
            .map(|cell| {
                let rows = members.get(cell);
                let joining = Members {
                    vectors: StoredVectors::gather(vectors, rows, element),
                    ids: rows.iter().map(|i| ids[*i as usize]).collect(),
                    points: Matrix::gather(points.as_rows(), rows),
                    beyond: rows.iter().map(|i| beyond[*i as usize]).collect(),
                };
                Coming::new(&view, cell, joining)
            })
            .collect::<Result<_>>()?;
        let replaced: Vec<Replaced> = with_moved(&view, coming)
            .into_par_iter()
            .map(|coming| coming.join(&view, self.len() + ids.len()))
            .collect::<Result<_>>()?;
        let mut changes = self.changes();
        changes.living += ids.len();
        let largest = ids.iter().copied().max().unwrap_or(0);
        changes.next_id = changes.next_id.max(largest + 1);
        self.commit(changes, replaced)?;
        self.build_stats.note_added(&radii);
        let is_drifting = self.build_stats.is_drifting();
        // Where everything is read their number is enough: with it a check is due as soon as there are more points.
        let is_kept = self.len() > EXHAUSTIVE_POINTS;
        for (row, radius) in radii.iter().enumerate() {
            if is_drifting || self.is_strange(vectors.row(row), *radius) {
                self.build_stats.uncovered += 1;
                if is_kept {
                    self.uncovered.push(ids[row], vectors.row(row));
                }
            }
        }
        Ok(())
    }

    /// Removes points; identifiers that are unknown, or named before, are passed over.
    fn take_out(&mut self, ids: &[u64]) -> Result<usize> {
        let mut changes = self.changes();
        let (mut gone, mut touched) = (HashSet::new(), Vec::new());
        for id in ids {
            let Some(spot) = self.spot(*id).filter(|_| gone.insert(*id)) else {
                continue;
            };
            let number = match spot {
                Spot::Base { position } => {
                    changes.dead.set(position);
                    self.segment.cell_of(position)
                }
                Spot::RewrittenCell { cell, at } => {
                    if let Some(run) = &mut Arc::make_mut(&mut changes.cells[cell]).run {
                        run.dead.set(at);
                    }
                    cell
                }
                Spot::AppendBuffer { cell, at } => {
                    if let Some(tail) = &mut Arc::make_mut(&mut changes.cells[cell]).tail {
                        tail.dead.set(at);
                    }
                    cell
                }
            };
            let cell = Arc::make_mut(&mut changes.cells[number]);
            cell.living -= 1;
            cell.dead += 1;
            touched.push(number);
        }
        if gone.is_empty() {
            return Ok(0);
        }
        changes.living -= gone.len();
        let strangers = self.uncovered.len();
        self.uncovered.remove(&gone, self.transform.dim());
        // Those that a file did not keep stay lost.
        self.build_stats.uncovered -= (strangers - self.uncovered.len()) as u64;
        changes.homes.remove(gone.iter().copied());
        touched.sort_unstable();
        touched.dedup();
        self.commit(changes, Vec::new())?;

        let view = Snapshot::new(self);
        let crowded = |cell: &usize| {
            let state = &view.live_cell(*cell);
            state.dead as f64 > CROWDED * (state.dead + state.living) as f64
        };
        touched.retain(crowded);
        let replaced: Vec<Replaced> = touched
            .into_par_iter()
            .map(|cell| {
                let cells = match view.points_in(cell) {
                    0 => vec![emptied(&view, cell)],
                    _ => relay(&view, cell, gather(&view, cell, None)?, self.len()),
                };
                Ok(Replaced::whole(cell, cells))
            })
            .collect::<Result<_>>()?;
        let changes = self.changes();
        self.commit(changes, replaced)?;
        self.build_stats.removed += gone.len() as u64;
        Ok(gone.len())
    }

    /// Whether a new vector, at a squared distance from the mean of its cell, comes from where no cell was fitted.
    fn is_strange(&self, vector: &[f32], squared: f32) -> bool {
        // A point whose squared distance is this many times that of the points that cells were fitted to.
        const STRANGE: f64 = 4.0;
        let is_trained = self.build_stats.built > 0;
        is_trained
            && (f64::from(squared) > STRANGE * self.build_stats.radius
                || self.embedding.is_longer(vector, self.build_stats.longest))
    }

    /// The position of a point.
    pub(crate) fn position_of(&self, id: u64) -> Option<u32> {
        let place = |cell: usize| Some(self.delta.changes()?.numbering.cells[cell]);
        match self.spot(id)? {
            Spot::Base { position } => u32::try_from(position).ok(),
            Spot::RewrittenCell { cell, at } => Some(place(cell)?.run + at as u32),
            Spot::AppendBuffer { cell, at } => Some(place(cell)?.tail + at as u32),
        }
    }

    /// The changes so far, to be changed further.
    fn changes(&self) -> DeltaSegment {
        match self.delta.changes() {
            Some(changes) => changes.clone(),
            None => DeltaSegment::none(self),
        }
    }

    /// Puts cells in the places of those they replace, numbers everything and makes it so.
    fn commit(&mut self, mut changes: DeltaSegment, replaced: Vec<Replaced>) -> Result<()> {
        let segment = Arc::clone(&self.segment);
        let dim = segment.cells.dim();
        let mut homes = Vec::new();
        for Replaced {
            cell,
            cells,
            joined,
            ..
        } in replaced
        {
            let moved = joined.is_none();
            if moved && changes.cells[cell].base {
                let bins = segment.encoded.bins_of(cell);
                for position in bins.flat_map(|bin| segment.encoded.positions(bin)) {
                    changes.dead.set(position);
                }
            }
            for (part, state) in cells.into_iter().enumerate() {
                let number = match part {
                    0 => cell,
                    _ => changes.free_slot(dim),
                };
                if moved {
                    let ids = state.run.iter().flat_map(|run| &run.data.coded.ids);
                    homes.extend(ids.map(|id| (*id, number as u32)));
                }
                let mean = state.shape.as_ref().map(|shape| shape.mean.clone());
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
            homes.extend(joined.map(|id| (id, cell as u32)));
        }
        changes.homes.put(homes);
        let numbering = Numbering::new(&changes.cells, segment.bins(), self.segment.ids.len());
        changes.numbering = Arc::new(numbering.ok_or(Error::TooManyVectors {
            rows: changes.living,
            limit: u32::MAX as usize,
        })?);
        self.delta = Delta(Some(Arc::new(changes)));
        Ok(())
    }
}

impl DeltaSegment {
    /// No change yet.
    fn none(index: &Index) -> Self {
        let segment = &index.segment;
        let cells = (0..segment.cells.len())
            .map(|cell| {
                Arc::new(DeltaCell {
                    base: true,
                    living: segment.cell_len(cell),
                    ..DeltaCell::default()
                })
            })
            .collect();
        Self {
            means: Arc::new(segment.cells.means.to_vec()),
            cells,
            dead: Bits::new(index.segment.ids.len()),
            homes: IdMap::default(),
            living: index.segment.ids.len(),
            next_id: 0,
            numbering: Arc::default(),
        }
    }

    /// The number of a cell that has been pruned, else a new one.
    fn free_slot(&mut self, dim: usize) -> usize {
        match self.cells.iter().position(|cell| cell.is_pruned()) {
            Some(slot) => slot,
            None => {
                self.cells.push(Arc::default());
                let len = self.cells.len() * dim;
                Arc::make_mut(&mut self.means).resize(len, FAR);
                self.cells.len() - 1
            }
        }
    }

    /// Takes a cell without points out of the way; the last one stays, for points to come.
    fn prune(&mut self, cell: usize, dim: usize) {
        let others = self.cells.iter().enumerate();
        if others
            .filter(|(i, _)| *i != cell)
            .all(|(_, c)| c.is_pruned())
        {
            return;
        }
        Arc::make_mut(&mut self.means)[cell * dim..][..dim].fill(FAR);
    }
}
