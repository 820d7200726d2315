//! The training loop.

use garlic_core::{Cancel, Result};
use garlic_linalg::{Matrix, Rows, permutation};

use super::adam::Adam;
use super::history::{Ended, Epoch, History, Refinement};
use super::init;
use super::select::{self, Selection};
use crate::config::Config;
use crate::gaussians::{AssignWork, Assignment, Gaussians, Projected, assign_projected};
use crate::losses::{self, Gradient, Losses, Weights};
use crate::refine::{self, Refiner};
use crate::streams;

/// With fewer cells than this a large one is no surprise.
const RUNAWAY_CELLS: usize = 16;
/// Share of the points in one cell that is reported as running away.
const RUNAWAY_SHARE: f64 = 0.2;

/// Trains the Gaussians on `points`, which are in their space already, in rayon's current pool. `report` is called after
/// every epoch.
///
/// # Errors
/// When cancelled.
pub(crate) fn train(
    points: Rows<'_>,
    config: &Config,
    cancel: &Cancel,
    report: &mut dyn FnMut(&Epoch),
) -> Result<(Gaussians, History)> {
    let (seen, selection) = select::hold_out(points, config).unzip();
    let points = seen.as_ref().map_or(points, Matrix::as_rows);
    let (model, floored_scales) = init::place(points, config);
    let history = History {
        points: points.len(),
        floored_scales,
        ..History::default()
    };
    let trainer = Trainer {
        points,
        projected: Projected::of(points, config),
        config,
        cancel,
        weights: Weights::of(config),
        adam: Adam::new(config, &model),
        refused: vec![false; model.len()],
        gradient: Gradient::default(),
        model,
    };
    trainer.run(selection, history, report)
}

/// The whole state of training.
struct Trainer<'a> {
    points: Rows<'a>,
    /// The points along the leading axes of the data.
    projected: Option<Projected>,
    config: &'a Config,
    cancel: &'a Cancel,
    weights: Weights,
    model: Gaussians,
    adam: Adam,
    /// Cells whose split was refused.
    refused: Vec<bool>,
    gradient: Gradient,
}

impl Trainer<'_> {
    fn run(
        mut self,
        mut selection: Option<Selection>,
        mut history: History,
        report: &mut dyn FnMut(&Epoch),
    ) -> Result<(Gaussians, History)> {
        let config = self.config;
        let last = config.training.epochs;
        let mut plateau = Plateau::new(config);
        for number in 1..=last {
            let mut epoch = self.epoch(number)?;
            let wants = Wants::at(number, config);
            if wants.any() {
                epoch.refinement = Some(self.refine(number, wants)?);
                plateau.reset();
                if let Some(selection) = &mut selection {
                    selection.refined();
                }
            }
            epoch.cells = self.model.len();
            if history.runaway.is_none() && runs_away(&epoch) {
                history.runaway = Some(number);
            }
            let mut tired = false;
            if let Some(selection) = &mut selection
                && selection.due(number, last)
            {
                let assignment = self.assign()?;
                let candidates = selection.judge(number, &self.model, &assignment);
                epoch.candidates = candidates.is_finite().then_some(candidates);
                tired = selection.tired();
            }
            report(&epoch);
            let plateau = config.training.early_stop && plateau.reached(number, epoch.loss);
            history.epochs.push(epoch);
            if plateau || tired {
                history.ended = if tired {
                    Ended::Candidates
                } else {
                    Ended::Plateau
                };
                break;
            }
        }
        if let Some((epoch, best)) = selection.and_then(Selection::into_best) {
            history.selected = Some(epoch);
            self.model = best;
        }
        Ok((self.model, history))
    }

    /// The cells of all points.
    fn assign(&self) -> Result<Assignment> {
        self.assign_some(self.points, self.projected.as_ref())
    }

    fn assign_some(&self, points: Rows<'_>, projected: Option<&Projected>) -> Result<Assignment> {
        assign_projected(
            points,
            projected,
            &self.model,
            self.weights.tau,
            self.cancel,
        )
    }

    /// One pass over all points in random order, a step for every batch.
    fn epoch(&mut self, number: usize) -> Result<Epoch> {
        let config = self.config;
        let stream = streams::EPOCH + number as u64;
        let order = permutation(self.points.len(), config.seed, stream);
        let steps = order.len().div_ceil(config.training.batch);
        let mut sums = Sums::default();
        for (step, ids) in order.chunks(config.training.batch).enumerate() {
            let batch = Matrix::gather(self.points, ids);
            let rows = batch.as_rows();
            let projected = self.projected.as_ref().map(|all| all.gather(ids));
            let assignment = self.assign_some(rows, projected.as_ref())?;
            let losses = losses::gradient(
                rows,
                &self.model,
                &assignment,
                &self.weights,
                self.cancel,
                &mut self.gradient,
            )?;
            sums.add(&losses, &assignment, self.model.len());
            let progress = (number - 1) as f64 + step as f64 / steps as f64;
            self.adam.step(&mut self.model, &self.gradient, progress);
        }
        Ok(sums.epoch(number, &self.weights))
    }

    /// Splits, clones and prunes; the optimiser's moments follow the cells.
    fn refine(&mut self, number: usize, wants: Wants) -> Result<Refinement> {
        let mut done = Refinement::default();
        if wants.refine {
            let assignment = self.assign()?;
            let refiner = Refiner {
                points: self.points,
                all: self.points.len(),
                open: None,
                assignment: &assignment,
                config: self.config,
                epoch: number,
                cancel: self.cancel,
            };
            let origin;
            (done, origin) = refiner.split_and_clone(&mut self.model, &mut self.refused)?;
            self.adam.rearrange(&origin, &self.model);
        }
        if wants.prune {
            let assignment = self.assign()?;
            let most = self.config.refinement.prune_size;
            let before = self.model.len();
            let held = refine::sizes(&assignment, before);
            let origin = refine::prune(&held, &mut self.model, &mut self.refused, most);
            done.pruned = before - self.model.len();
            self.adam.rearrange(&origin, &self.model);
        }
        if self.config.training.adam_reset {
            self.adam = Adam::new(self.config, &self.model);
        }
        Ok(done)
    }
}

/// Whether one of many cells holds a good part of all points.
fn runs_away(epoch: &Epoch) -> bool {
    epoch.cells >= RUNAWAY_CELLS && epoch.largest > RUNAWAY_SHARE
}

/// What is due after an epoch.
#[derive(Clone, Copy)]
struct Wants {
    refine: bool,
    prune: bool,
}

impl Wants {
    fn at(epoch: usize, config: &Config) -> Self {
        let (rules, training) = (&config.refinement, &config.training);
        let settled =
            epoch >= training.warmup_epochs && epoch + rules.refine_quiet <= training.epochs;
        Self {
            refine: settled
                && (rules.split || rules.clone)
                && epoch.is_multiple_of(rules.refine_every),
            prune: settled && rules.prune && epoch.is_multiple_of(rules.prune_every),
        }
    }

    fn any(self) -> bool {
        self.refine || self.prune
    }
}

/// Sums over the batches of an epoch.
#[derive(Default)]
struct Sums {
    points: usize,
    losses: Losses,
    covered: usize,
    largest: f64,
    work: AssignWork,
}

impl Sums {
    fn add(&mut self, losses: &Losses, assignment: &Assignment, cells: usize) {
        let count = assignment.nearest.len();
        let share = count as f64;
        self.points += count;
        self.losses.divergence += losses.divergence * share;
        self.losses.coverage += losses.coverage * share;
        self.losses.anchor += losses.anchor * share;
        self.covered += (0..count)
            .filter(|p| !assignment.covering(*p).is_empty())
            .count();
        let sizes = refine::sizes(assignment, cells);
        self.largest += sizes.iter().copied().max().unwrap_or(0) as f64;
        self.work.done += assignment.work.done;
        self.work.full += assignment.work.full;
    }

    fn epoch(&self, number: usize, weights: &Weights) -> Epoch {
        let points = self.points.max(1) as f64;
        let (divergence, coverage, anchor) = (
            self.losses.divergence / points,
            self.losses.coverage / points,
            self.losses.anchor / points,
        );
        Epoch {
            epoch: number,
            candidates: None,
            loss: weights.divergence * divergence
                + weights.coverage * coverage
                + weights.anchor * anchor,
            divergence,
            coverage,
            anchor,
            cells: 0,
            covered: self.covered as f64 / points,
            largest: self.largest / points,
            assign_work: self.work.done as f64 / self.work.full.max(1) as f64,
            refinement: None,
        }
    }
}

/// Watches the loss after the warm-up.
struct Plateau {
    best: f64,
    waited: usize,
    warmup: usize,
    patience: usize,
    improvement: f64,
}

impl Plateau {
    fn new(config: &Config) -> Self {
        Self {
            best: f64::INFINITY,
            waited: 0,
            warmup: config.training.warmup_epochs,
            patience: config.training.patience,
            improvement: config.training.min_improvement,
        }
    }

    /// New cells start a new count.
    fn reset(&mut self) {
        self.best = f64::INFINITY;
        self.waited = 0;
    }

    fn reached(&mut self, epoch: usize, loss: f64) -> bool {
        if loss < self.best * (1.0 - self.improvement) {
            self.best = loss;
            self.waited = 0;
        } else {
            self.waited += 1;
        }
        epoch > self.warmup && self.waited >= self.patience
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refinement_comes_when_the_schedule_says() {
        let due = |quiet: usize, f: fn(Wants) -> bool| -> Vec<usize> {
            let mut config = Config::default();
            config.refinement.refine_quiet = quiet;
            (1..=250).filter(|e| f(Wants::at(*e, &config))).collect()
        };
        assert_eq!(due(0, |w| w.refine), [35, 70, 105, 140, 175, 210, 245]);
        assert_eq!(due(0, |w| w.prune), [60, 120, 180, 240]);
        assert_eq!(due(20, |w| w.refine), [35, 70, 105, 140, 175, 210]);
        assert_eq!(due(20, |w| w.prune), [60, 120, 180]);
    }

    #[test]
    fn a_plateau_needs_patience_after_the_warm_up() {
        let mut config = Config::default();
        config.training.warmup_epochs = 2;
        config.training.patience = 3;
        config.training.min_improvement = 0.01;
        let mut plateau = Plateau::new(&config);
        let losses = [1.0, 0.5, 0.4999, 0.45, 0.4499, 0.4498, 0.4497];
        let stops: Vec<bool> = losses
            .iter()
            .enumerate()
            .map(|(i, l)| plateau.reached(i + 1, *l))
            .collect();
        assert_eq!(stops, [false, false, false, false, false, false, true]);
    }
}
