//! Online updates: points that come and go without a new training. The paper names them as future work.
//!
//! In: an index and points to add or to remove. Out: the changed index, which is an index like any other.
//!
//! A point that comes joins the cells that cover it, or the nearest one. The cells that points join or leave are *touched*
//! (`touched`): `refit` moves and reshapes their Gaussians by `statistics` of these points, `local` splits, clones and prunes
//! them as training does, and their points are assigned anew. `change` builds frames and bins of all cells whose points are
//! not the same as before. Everything else stays as it is. Points that lie in untouched cells alone are not looked at, so a
//! touched cell that has come to cover one of them does not list it: every point is in some cell, and searches that probe
//! everything are exact.

mod change;
mod local;
mod refit;
mod statistics;
mod touched;

use std::sync::Arc;

use garlic_core::validate::{check_count, check_finite, check_ids};
use garlic_core::{Cancel, Error, Result};
use garlic_linalg::Rows;

use crate::index::GaussianIndex;
use change::Change;

impl GaussianIndex {
    /// Adds vectors under new identifiers, all or none. Cells that they join are refitted, and split or cloned where they
    /// have come to hold too much.
    ///
    /// A change takes time in proportion to the points of the cells that it touches, and copies all vectors once: many
    /// vectors at a time cost less than one after the other.
    ///
    /// # Errors
    /// Vectors of another dimension or with values that cannot be indexed; a vector that is longer than all that an index
    /// for inner products was built from; identifiers that exist already, occur twice or are not below 2^63. On an
    /// error the index is unchanged.
    pub fn add(&mut self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        self.check_change(vectors, ids)?;
        if let Some(id) = ids.iter().find(|id| self.lookup().position(**id).is_some()) {
            return Err(Error::IdExists { id: *id });
        }
        self.replace(vectors, ids, Vec::new())
    }

    /// Removes the points with these identifiers and returns how many there were. Unknown identifiers are ignored. Cells
    /// that they leave are refitted, and pruned where they have come to hold nothing.
    ///
    /// # Errors
    /// [`Error::LastPoints`] if no point would be left. On an error the index is unchanged.
    pub fn remove(&mut self, ids: &[u64]) -> Result<usize> {
        let gone = self.positions(ids);
        let removed = gone.len();
        self.replace(Rows::new(&[], self.dim())?, &[], gone)?;
        Ok(removed)
    }

    /// Replaces the vectors of existing identifiers, all or none.
    ///
    /// # Errors
    /// Those of [`GaussianIndex::add`], except that the identifiers must exist.
    pub fn update(&mut self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        self.check_change(vectors, ids)?;
        if let Some(id) = ids.iter().find(|id| self.lookup().position(**id).is_none()) {
            return Err(Error::UnknownId { id: *id });
        }
        self.replace(vectors, ids, self.positions(ids))
    }

    /// Replaces the vectors of the identifiers that exist and adds the others, all or none.
    ///
    /// # Errors
    /// Those of [`GaussianIndex::add`], except that identifiers may exist.
    pub fn upsert(&mut self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        self.check_change(vectors, ids)?;
        self.replace(vectors, ids, self.positions(ids))
    }

    /// Positions of the identifiers that there are, ascending, each once.
    fn positions(&self, ids: &[u64]) -> Vec<u32> {
        let known = ids.iter().filter_map(|id| self.lookup().position(*id));
        let mut positions: Vec<u32> = known.collect();
        positions.sort_unstable();
        positions.dedup();
        positions
    }

    /// Fails for vectors and identifiers that this index cannot take.
    fn check_change(&self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
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

    /// Takes the points at some positions out and puts checked vectors in.
    fn replace(&mut self, vectors: Rows<'_>, ids: &[u64], gone: Vec<u32>) -> Result<()> {
        if vectors.is_empty() && gone.is_empty() {
            return Ok(());
        }
        if self.len() + vectors.len() == gone.len() {
            return Err(Error::LastPoints);
        }
        // Old and new points are numbered together while they change.
        let (rows, limit) = (self.len() + vectors.len(), (u32::MAX - 1) as usize);
        if rows > limit {
            return Err(Error::TooManyVectors { rows, limit });
        }
        let cancel = Cancel::current();
        let workers = self.workers.clone();
        let (trained, vectors, order) = workers.get()?.install(|| {
            let embedded = self.embedding.added(vectors)?;
            let change = Change {
                index: self,
                added: embedded.rows(),
                gone: &gone,
                cancel: &cancel,
            };
            change.run()
        })?;
        let old = self.len();
        let id = |slot: &u32| match (*slot as usize).checked_sub(old) {
            None => self.ids[*slot as usize],
            Some(row) => ids[row],
        };
        self.ids = order.iter().map(id).collect::<Vec<u64>>().into();
        self.trained = Arc::new(trained);
        self.vectors = vectors;
        self.lookup = Arc::default();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use garlic_core::pool::Workers;
    use garlic_linalg::{random_stream, uniform_unit};

    use super::*;

    #[test]
    fn threads_change_nothing() {
        let mut random = random_stream(2, 9);
        let mut cloud = |count: usize, at: f32| -> Vec<f32> {
            let values = (0..count * 5).map(|_| uniform_unit(&mut random) as f32 + at);
            values.collect()
        };
        let (old, new) = (cloud(200, 0.0), [cloud(90, 0.3), cloud(30, 4.0)].concat());
        let builder = GaussianIndex::builder().seed(1).threads(1);
        let builder = builder.set("initial_cells", "8").unwrap();
        let builder = builder.set("epochs", "4").unwrap();
        let index = builder.build(Rows::new(&old, 5).unwrap()).unwrap();
        let changed = |threads: usize| {
            let mut index = index.clone();
            index.workers = Workers::of(threads);
            let ids: Vec<u64> = (150..270).collect();
            index.upsert(Rows::new(&new, 5).unwrap(), &ids).unwrap();
            index.remove(&(0..60).collect::<Vec<u64>>()).unwrap();
            index.to_bytes().unwrap()
        };
        let once = changed(1);
        assert!(once == changed(3));
        assert!(once != index.to_bytes().unwrap());
    }
}
