//! Splitting, cloning and pruning of the cells that a change has touched, by the rules of training.

use garlic_core::{Cancel, Result};
use garlic_linalg::Rows;

use crate::config::Config;
use crate::gaussians::{Assignment, Gaussians, Projected, assign_projected};
use crate::refine::{self, Origin, Refiner};

/// Rounds of splitting and cloning after one change. Many points that come to one place need more than one.
const ROUNDS: usize = 4;
/// A touched cell is refined only if it holds so many times the points of an average cell. Where cells overlap, most of them
/// pass the thresholds of training, and without a training after it every split would be followed by the next.
const LARGE: f64 = 3.0;
/// The same for a cell that holds more than half of all points.
const LARGE_OF_ALL: f64 = 1.5;

/// Points from which on it pays to find their leading axes before they are assigned.
const MANY_POINTS: usize = 2048;

/// The points along their leading axes, where that saves work.
pub(super) fn projected(points: Rows<'_>, config: &Config) -> Option<Projected> {
    match points.len() < MANY_POINTS {
        true => None,
        false => Projected::of(points, config),
    }
}

/// The points of touched cells.
pub(super) struct Local<'a> {
    pub(super) points: Rows<'a>,
    pub(super) projected: Option<Projected>,
    /// Number of points in the index: thresholds are shares of it.
    pub(super) all: usize,
    /// Points that a cell holds on average.
    pub(super) usual: f64,
    pub(super) config: &'a Config,
    pub(super) cancel: &'a Cancel,
}

impl Local<'_> {
    /// Refines the touched cells. Returns the cells of the points, and for every cell the one that it was before.
    pub(super) fn refine(
        &self,
        model: &mut Gaussians,
        touched: &[bool],
    ) -> Result<(Assignment, Origin)> {
        let mut open = touched.to_vec();
        let mut origin: Origin = (0..model.len()).map(Some).collect();
        let mut assignment = self.assign(model)?;
        for round in 0..ROUNDS {
            if !self.split_and_clone(model, &open, &assignment, round)? {
                break;
            }
            open.resize(model.len(), true);
            origin.resize(model.len(), None);
            assignment = self.assign(model)?;
        }
        let rules = &self.config.refinement;
        if rules.prune {
            let mut sizes = refine::sizes(&assignment, model.len());
            // Of the other cells not all points are here.
            let closed = sizes.iter_mut().zip(&open).filter(|(_, open)| !**open);
            closed.for_each(|(size, _)| *size = usize::MAX);
            let before = model.len();
            let kept = refine::prune(&sizes, model, &mut open, rules.prune_size);
            if model.len() < before {
                let was = |old: &Option<usize>| old.and_then(|old| origin[old]);
                origin = kept.iter().map(was).collect();
                assignment = self.assign(model)?;
            }
        }
        Ok((assignment, origin))
    }

    /// Splits and clones open cells that are large; whether there were any.
    fn split_and_clone(
        &self,
        model: &mut Gaussians,
        open: &[bool],
        assignment: &Assignment,
        round: usize,
    ) -> Result<bool> {
        let sizes = refine::sizes(assignment, model.len());
        let half = 0.5 * self.all as f64;
        let least = (LARGE * self.usual).min(half.max(LARGE_OF_ALL * self.usual));
        let is_large = |size: &usize| *size as f64 > least;
        let large: Vec<bool> = (sizes.iter().zip(open))
            .map(|(size, open)| *open && is_large(size))
            .collect();
        let refiner = Refiner {
            points: self.points,
            all: self.all,
            open: Some(&large),
            assignment,
            config: self.config,
            // Training has used the streams of its own epochs.
            epoch: self.config.training.epochs + 1 + round,
            cancel: self.cancel,
        };
        let mut refused = vec![false; model.len()];
        let (done, _) = refiner.split_and_clone(model, &mut refused)?;
        Ok(done.split + done.cloned > 0)
    }

    fn assign(&self, model: &Gaussians) -> Result<Assignment> {
        let (tau, projected) = (self.config.loss.tau as f32, self.projected.as_ref());
        assign_projected(self.points, projected, model, tau, self.cancel)
    }
}
