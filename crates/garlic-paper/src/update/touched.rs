//! The cells that a change touches: which they are, their Gaussians after it, and how many points are covered then.

use garlic_core::Result;
use garlic_linalg::Rows;
use rayon::prelude::*;

use super::change::Change;
use super::refit::{Gaussian, Moves};
use crate::bins::Cell;
use crate::gaussians::{Assignment, Gaussians, assign};
use crate::index::Coverage;

/// A new point is far away if it is so many times as far from the nearest cell as all points of that cell.
const FAR: f32 = 2.0;

/// A cell that points join or leave.
pub(super) struct Touched {
    pub(super) cell: usize,
    /// Slots of the new points that it covers, with zero, or is nearest to, with their Mahalanobis distance.
    joining: Vec<(u32, f32)>,
    /// Its points that go.
    leaving: Vec<u32>,
}

impl Change<'_> {
    /// The cells that points join or leave, in order.
    pub(super) fn touch(&self) -> Result<Vec<Touched>> {
        let rows: Vec<u32> = (self.index.len()..self.index.len() + self.added.len())
            .map(|slot| slot as u32)
            .collect();
        let points = self.mapped(&rows)?;
        let assignment = self.assign(points.as_rows(), self.index.model())?;
        let mut joining = vec![Vec::new(); self.index.cells()];
        for (cell, row) in assignment.memberships() {
            let away = match assignment.covering(row as usize) {
                [] => assignment.distance[row as usize],
                _ => 0.0,
            };
            joining[cell as usize].push((rows[row as usize], away));
        }
        let cells = joining.into_iter().enumerate();
        let touched = cells.filter_map(|(cell, joining)| {
            let members = self.index.cell(cell).bins.members().iter().copied();
            let (leaving, _) = members.partition::<Vec<u32>, _>(|p| self.is_gone(*p));
            let is_touched = !(joining.is_empty() && leaving.is_empty());
            is_touched.then_some(Touched {
                cell,
                joining,
                leaving,
            })
        });
        Ok(touched.collect())
    }

    /// The slots of a touched cell after the change.
    pub(super) fn staying<'a>(&'a self, touched: &'a Touched) -> impl Iterator<Item = u32> + 'a {
        let members = self.index.cell(touched.cell).bins.members().iter().copied();
        let staying = members.filter(|p| !self.is_gone(*p));
        staying.chain(touched.joining.iter().map(|(slot, _)| *slot))
    }

    /// Refits the Gaussians of touched cells. Points that come from far away do not stretch the nearest cell: enough of them
    /// make a cell of their own.
    pub(super) fn refit(&self, touched: &[Touched], model: &mut Gaussians) -> Result<()> {
        let config = &self.index.config;
        let refitted = touched.par_iter().map(|touched| {
            self.cancel.check()?;
            let before = self.mapped(self.index.cell(touched.cell).bins.members())?;
            let own = Gaussian::of(self.index.model(), touched.cell);
            let limit = FAR * self.reach(touched, &own, before.as_rows())?;
            let slots = |is_far: bool| -> Vec<u32> {
                let joining = touched.joining.iter();
                let wanted = joining.filter(|(_, away)| (*away > limit) == is_far);
                wanted.map(|(slot, _)| *slot).collect()
            };
            let removed = self.mapped(&touched.leaving)?;
            let (near, far) = (self.mapped(&slots(false))?, self.mapped(&slots(true))?);
            let moves = Moves {
                before: before.as_rows(),
                removed: removed.as_rows(),
                added: near.as_rows(),
            };
            let rules = &config.refinement;
            let enough = (rules.clone_threshold * self.count_after() as f64)
                .max(rules.prune_size as f64 + 1.0);
            let founded = rules.clone && far.rows() as f64 > enough;
            let founded = founded.then(|| own.copy_for(before.as_rows(), far.as_rows(), config));
            Ok((own.refit(moves, config), founded))
        });
        let refitted = refitted.collect::<Result<Vec<(Gaussian, Option<Gaussian>)>>>()?;
        for (touched, (gaussian, founded)) in touched.iter().zip(refitted) {
            gaussian.put(model, touched.cell);
            if let Some(founded) = founded.filter(|_| model.len() < config.refinement.max_cells) {
                model.means.push_row(&founded.mean);
                model.factors.values_mut().extend(founded.factor);
            }
        }
        Ok(())
    }

    /// Distance of the farthest point of a cell, at least tau; only needed where a new point is not covered.
    fn reach(&self, touched: &Touched, own: &Gaussian, before: Rows<'_>) -> Result<f32> {
        let tau = self.index.config.loss.tau as f32;
        if touched.joining.iter().all(|(_, away)| *away <= FAR * tau) {
            return Ok(tau);
        }
        let alone = own.alone(self.index.model().factors.covariance())?;
        let found = assign(before, &alone, tau, self.cancel)?;
        Ok(found.distance.iter().copied().fold(tau, f32::max))
    }

    /// Covered points and memberships after the change: those of the points that were assigned anew are exchanged.
    pub(super) fn coverage(
        &self,
        touched: &[Touched],
        assignment: &Assignment,
        cells: &[Cell],
    ) -> Result<Coverage> {
        let old = &self.index.trained;
        let mut lists = vec![0u32; self.index.len()];
        for position in old.cells.iter().flat_map(|cell| cell.bins.members()) {
            lists[*position as usize] += 1;
        }
        // A point in several cells is covered; one in a single cell if that covers it.
        let mut several: Vec<u32> = Vec::new();
        let mut single: Vec<Vec<u32>> = Vec::new();
        for touched in touched {
            let members = old.cells[touched.cell].bins.members().iter().copied();
            let (alone, shared) = members.partition(|p| lists[*p as usize] == 1);
            single.push(alone);
            several.extend::<Vec<u32>>(shared);
        }
        several.sort_unstable();
        several.dedup();
        let alone = touched.par_iter().zip(single).map(|(touched, alone)| {
            let own =
                Gaussian::of(&old.model, touched.cell).alone(old.model.factors.covariance())?;
            let tau = self.index.config.loss.tau as f32;
            let found = assign(self.mapped(&alone)?.as_rows(), &own, tau, self.cancel)?;
            Ok(covered(&found))
        });
        let alone: usize = alone.collect::<Result<Vec<usize>>>()?.into_iter().sum();
        let before = (old.coverage.share * self.index.len() as f64).round();
        let after = before - (several.len() + alone) as f64 + covered(assignment) as f64;
        let points = self.count_after() as f64;
        let memberships: usize = cells.iter().map(|cell| cell.bins.members().len()).sum();
        Ok(Coverage {
            share: (after / points).clamp(0.0, 1.0),
            mean: memberships as f64 / points,
        })
    }
}

/// Number of points within tau of some cell.
fn covered(assignment: &Assignment) -> usize {
    let points = 0..assignment.nearest.len();
    points
        .filter(|p| !assignment.covering(*p).is_empty())
        .count()
}
