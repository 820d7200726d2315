//! One change: from the points that come and go to the cells, bins and stored order after it.
//!
//! Old and new points are numbered together as *slots*: stored positions first, then the rows that are added.

use garlic_core::vectors::StoredVectors;
use garlic_core::{Cancel, Result};
use garlic_linalg::{Matrix, Rows};
use rayon::prelude::*;

use super::local::{Local, projected};
use crate::bins::{Cell, build};
use crate::gaussians::{Assignment, Gaussians, assign_projected};
use crate::index::{GaussianIndex, Trained};
use crate::route::Router;

/// Points that come and go.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) index: &'a GaussianIndex,
    /// New vectors in the metric's embedding.
    pub(super) added: Rows<'a>,
    /// Positions of the points that go, ascending.
    pub(super) gone: &'a [u32],
    pub(super) cancel: &'a Cancel,
}

/// What the index holds of its points after the change.
type After = (Trained, StoredVectors, Vec<u32>);

impl Change<'_> {
    /// The cells after the change, the vectors, and the slot that is stored at each position.
    pub(super) fn run(&self) -> Result<After> {
        let touched = self.touch()?;
        let mut model = self.index.model().clone();
        self.refit(&touched, &mut model)?;
        let mut is_touched = vec![false; self.index.cells()];
        touched.iter().for_each(|t| is_touched[t.cell] = true);
        is_touched.resize(model.len(), true);

        // The points of touched cells are assigned anew, to all cells.
        let mut slots: Vec<u32> = touched.iter().flat_map(|t| self.staying(t)).collect();
        slots.sort_unstable();
        slots.dedup();
        let points = self.mapped(&slots)?;
        let config = &self.index.config;
        let local = Local {
            points: points.as_rows(),
            projected: projected(points.as_rows(), config),
            all: self.count_after(),
            usual: self.index.coverage().mean * self.count_after() as f64
                / self.index.cells() as f64,
            config,
            cancel: self.cancel,
        };
        let (assignment, origin) = local.refine(&mut model, &is_touched)?;
        let untouched = |old: &Option<usize>| old.filter(|old| !is_touched[*old]);
        let origin: Vec<Option<usize>> = origin.iter().map(untouched).collect();

        let mut cells = self.cells(&model, &origin, &slots, &assignment)?;
        let order = first_listed(&cells, self.index.len() + self.added.len());
        build::store_in_order(&mut cells, &order)?;
        let vectors = StoredVectors::F32(self.vectors(&order).into());
        let coverage = self.coverage(&touched, &assignment, &cells)?;
        let trained = Trained {
            router: Router::new(&model),
            model,
            cells,
            coverage,
            history: self.index.history().clone(),
        };
        Ok((trained, vectors, order))
    }

    pub(super) fn count_after(&self) -> usize {
        self.index.len() + self.added.len() - self.gone.len()
    }

    pub(super) fn is_gone(&self, slot: u32) -> bool {
        self.gone.binary_search(&slot).is_ok()
    }

    /// Frames and bins of all cells; members are slots. `origin` names the untouched cells, which keep what they have unless
    /// their points have changed. The points at `slots` belong to the cells of `assignment`.
    fn cells(
        &self,
        model: &Gaussians,
        origin: &[Option<usize>],
        slots: &[u32],
        assignment: &Assignment,
    ) -> Result<Vec<Cell>> {
        let mut assigned = vec![Vec::new(); model.len()];
        for (cell, row) in assignment.memberships() {
            assigned[cell as usize].push(slots[row as usize]);
        }
        let cells = assigned.into_par_iter().zip(origin).enumerate();
        let cells = cells.map(|(number, (mut members, origin))| {
            self.cancel.check()?;
            if let Some(old) = origin.map(|old| self.index.cell(old)) {
                let is_kept = |slot: &&u32| slots.binary_search(*slot).is_err();
                members.extend(old.bins.members().iter().filter(is_kept));
                members.sort_unstable();
                let mut before = old.bins.members().to_vec();
                before.sort_unstable();
                if members == before {
                    return Ok(old.clone());
                }
            }
            let points = self.mapped(&members)?;
            build::cell(points.as_rows(), &members, &self.index.config, number)
        });
        cells.collect()
    }

    /// Cells of some points, exactly.
    pub(super) fn assign(&self, points: Rows<'_>, model: &Gaussians) -> Result<Assignment> {
        let tau = self.index.config.loss.tau as f32;
        let projected = projected(points, &self.index.config);
        assign_projected(points, projected.as_ref(), model, tau, self.cancel)
    }

    /// The vectors of some slots in the space of the Gaussians.
    pub(super) fn mapped(&self, slots: &[u32]) -> Result<Matrix> {
        let vectors = self.vectors(slots);
        let rows = Rows::new(&vectors, self.index.transform.dim())?;
        self.index.transform.apply_all(rows, self.cancel)
    }

    /// The vectors of some slots.
    fn vectors(&self, slots: &[u32]) -> Vec<f32> {
        let dim = self.index.transform.dim();
        let mut values = Vec::with_capacity(slots.len() * dim);
        let mut stored = Vec::new();
        for slot in slots {
            let at = *slot as usize;
            match at.checked_sub(self.index.len()) {
                Some(row) => values.extend_from_slice(self.added.row(row)),
                None => {
                    self.index.vectors.read(dim, at, &mut stored);
                    values.extend_from_slice(&stored);
                }
            }
        }
        values
    }
}

/// All members of the cells in the order in which the cells list them, each once: points of a bin lie side by side.
fn first_listed(cells: &[Cell], slots: usize) -> Vec<u32> {
    let mut is_listed = vec![false; slots];
    let members = cells.iter().flat_map(|cell| cell.bins.members());
    let first = members.filter(|m| !std::mem::replace(&mut is_listed[**m as usize], true));
    first.copied().collect()
}
