//! The training loop.

use garlic_linalg::{Matrix, Rows, permutation};

use super::adam::Adam;
use super::backend::{Backend, Gradient, Losses, Weights};
use super::history::{Ended, Epoch, History, Refinement};
use super::select::{self, Selection};
use super::{init, refine, streams};
use crate::cancel::Cancel;
use crate::config::Config;
use crate::error::Result;
use crate::model::{AssignWork, Assignment, Gaussians};

/// With fewer cells than this a large one is no surprise.
const RUNAWAY_CELLS: usize = 16;
/// Share of the points in one cell that is reported as running away.
const RUNAWAY_SHARE: f64 = 0.2;

/// Trains the Gaussians on `points` (already in the model's space). `report` is called after every epoch.
pub(crate) fn train(
    points: Rows<'_>,
    config: &Config,
    backend: &dyn Backend,
    cancel: &Cancel,
    report: &mut dyn FnMut(&Epoch),
) -> Result<(Gaussians, History)> {
    let (seen, selection) = select::hold_out(points, config).unzip();
    let points = seen.as_ref().map_or(points, Matrix::as_rows);
    let start = init::place(points, config);
    run(start, points, selection, config, backend, cancel, report)
}

/// Trains on from Gaussians that are there already; where models are selected, they are the first to be judged.
pub(super) fn train_from(
    start: Gaussians,
    points: Rows<'_>,
    config: &Config,
    backend: &dyn Backend,
    cancel: &Cancel,
    report: &mut dyn FnMut(&Epoch),
) -> Result<(Gaussians, History)> {
    let (seen, mut selection) = select::hold_out(points, config).unzip();
    let points = seen.as_ref().map_or(points, Matrix::as_rows);
    if let Some(selection) = &mut selection {
        let assignment = backend.assign(points, &start, config.tau as f32)?;
        selection.judge(0, &start, &assignment);
    }
    run(
        (start, 0),
        points,
        selection,
        config,
        backend,
        cancel,
        report,
    )
}

/// Trains from a start, some of whose scales were raised to the floor.
fn run(
    (mut model, floored_scales): (Gaussians, usize),
    points: Rows<'_>,
    mut selection: Option<Selection>,
    config: &Config,
    backend: &dyn Backend,
    cancel: &Cancel,
    report: &mut dyn FnMut(&Epoch),
) -> Result<(Gaussians, History)> {
    let mut history = History {
        points: points.len(),
        floored_scales,
        ended: Ended::Epochs,
        runaway: None,
        selected: None,
        epochs: Vec::with_capacity(config.epochs),
    };
    let mut adam = Adam::new(config, &model);
    let mut refused = vec![false; model.len()];
    let mut plateau = Plateau::new(config);
    let mut gradient = Gradient::default();

    for number in 1..=config.epochs {
        let mut epoch = one_epoch(
            points,
            number,
            &mut model,
            &mut adam,
            config,
            backend,
            &mut gradient,
        )?;
        let wants = Wants::at(number, config);
        if wants.any() {
            epoch.refinement = Some(refine_cells(
                points,
                number,
                wants,
                &mut model,
                &mut adam,
                &mut refused,
                config,
                backend,
                cancel,
            )?);
            plateau.reset();
            if let Some(selection) = &mut selection {
                selection.refined();
            }
        }
        epoch.cells = model.len();
        if history.runaway.is_none() && runs_away(&epoch) {
            history.runaway = Some(number);
        }
        let mut tired = false;
        if let Some(selection) = &mut selection
            && selection.due(number, config.epochs)
        {
            let assignment = backend.assign(points, &model, config.tau as f32)?;
            let candidates = selection.judge(number, &model, &assignment);
            epoch.candidates = candidates.is_finite().then_some(candidates);
            tired = selection.tired();
        }
        report(&epoch);
        let plateau = config.early_stop && plateau.reached(number, epoch.loss);
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
        model = best;
    }
    Ok((model, history))
}

/// Whether one of many cells holds a good part of all points.
fn runs_away(epoch: &Epoch) -> bool {
    epoch.cells >= RUNAWAY_CELLS && epoch.largest > RUNAWAY_SHARE
}

fn one_epoch(
    points: Rows<'_>,
    number: usize,
    model: &mut Gaussians,
    adam: &mut Adam,
    config: &Config,
    backend: &dyn Backend,
    gradient: &mut Gradient,
) -> Result<Epoch> {
    let weights = Weights {
        tau: config.tau as f32,
        divergence: config.weight_divergence,
        coverage: config.weight_coverage,
        anchor: config.weight_anchor,
        shape: config.anchor_shape,
    };
    let order = permutation(points.len(), config.seed, streams::EPOCH + number as u64);
    let steps = order.len().div_ceil(config.batch);
    let mut sums = Sums::default();
    for (step, ids) in order.chunks(config.batch).enumerate() {
        let batch = Matrix::gather(points, ids);
        let rows = batch.as_rows();
        let assignment = backend.assign(rows, model, weights.tau)?;
        let statistics = backend.statistics(rows, model.len(), &assignment)?;
        let losses = backend.gradient(rows, model, &assignment, &statistics, &weights, gradient)?;
        sums.add(&losses, &assignment, model.len());
        let progress = (number - 1) as f64 + step as f64 / steps as f64;
        adam.step(model, gradient, progress);
    }
    Ok(sums.epoch(number, &weights))
}

/// What is due after an epoch.
#[derive(Clone, Copy)]
struct Wants {
    refine: bool,
    prune: bool,
}

impl Wants {
    fn at(epoch: usize, config: &Config) -> Self {
        let settled = epoch >= config.warmup_epochs && epoch + config.refine_quiet <= config.epochs;
        Self {
            refine: settled
                && (config.split || config.clone)
                && epoch.is_multiple_of(config.refine_every),
            prune: settled && config.prune && epoch.is_multiple_of(config.prune_every),
        }
    }

    fn any(self) -> bool {
        self.refine || self.prune
    }
}

#[expect(clippy::too_many_arguments, reason = "the whole state of training")]
fn refine_cells(
    points: Rows<'_>,
    number: usize,
    wants: Wants,
    model: &mut Gaussians,
    adam: &mut Adam,
    refused: &mut Vec<bool>,
    config: &Config,
    backend: &dyn Backend,
    cancel: &Cancel,
) -> Result<Refinement> {
    let tau = config.tau as f32;
    let mut done = Refinement::default();
    if wants.refine {
        let assignment = backend.assign(points, model, tau)?;
        let origin;
        (done, origin) =
            refine::split_and_clone(points, &assignment, model, refused, config, number, cancel)?;
        adam.rearrange(&origin, model);
    }
    if wants.prune {
        let assignment = backend.assign(points, model, tau)?;
        let (pruned, origin) = refine::prune(&assignment, model, refused, config);
        adam.rearrange(&origin, model);
        done.pruned = pruned;
    }
    if config.adam_reset {
        *adam = Adam::new(config, model);
    }
    Ok(done)
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
        let mut sizes = vec![0usize; cells];
        assignment
            .holdings()
            .for_each(|(cell, _)| sizes[cell as usize] += 1);
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
            warmup: config.warmup_epochs,
            patience: config.patience,
            improvement: config.min_improvement,
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
    use crate::config::Preset;

    #[test]
    fn refinement_comes_when_the_schedule_says() {
        let config = Config {
            epochs: 120,
            ..Config::preset(Preset::Paper)
        };
        let due = |f: fn(Wants) -> bool| -> Vec<usize> {
            (1..=120).filter(|e| f(Wants::at(*e, &config))).collect()
        };
        assert_eq!(due(|w| w.refine), [35, 70]);
        assert_eq!(due(|w| w.prune), [60]);
    }

    #[test]
    fn a_plateau_needs_patience_after_the_warm_up() {
        let config = Config {
            warmup_epochs: 2,
            patience: 3,
            min_improvement: 0.01,
            ..Config::preset(Preset::Paper)
        };
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
