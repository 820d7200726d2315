//! The bulk operations on the CPU: parallel over cells, each cell's sums in the order of its points.

mod coverage;
mod full;
mod simple;

use garlic_linalg::Rows;
use rayon::prelude::*;

use super::backend::{Backend, Gradient, Losses, Statistics, Weights};
use crate::cancel::Cancel;
use crate::error::Result;
use crate::model::{self, Assignment, Factors, Gaussians, Lists};

/// Runs in the thread pool of the caller.
#[derive(Clone, Debug, Default)]
pub struct Cpu {
    cancel: Cancel,
}

impl Cpu {
    /// Work that stops when `cancel` is raised.
    pub fn new(cancel: Cancel) -> Self {
        Self { cancel }
    }
}

/// What one cell sees of a batch.
struct CellBatch<'a> {
    points: Rows<'a>,
    /// Points nearest to the cell, and the mean of them.
    nearest: &'a [u32],
    centre: &'a [f64],
    /// The nearest points that lie outside the cell.
    outside: &'a [u32],
    /// Factor of every point's term in the gradient: weight over batch size.
    divergence: f32,
    /// Factor of the anchor's terms: weight over (dimension x cells).
    anchor: f64,
    shape: f64,
}

impl Backend for Cpu {
    fn assign(&self, points: Rows<'_>, model: &Gaussians, tau: f32) -> Result<Assignment> {
        model::assign(points, model, tau, &self.cancel)
    }

    fn statistics(
        &self,
        points: Rows<'_>,
        cells: usize,
        assignment: &Assignment,
    ) -> Result<Statistics> {
        self.cancel.check()?;
        let dim = points.dim();
        let pairs = assignment
            .nearest
            .iter()
            .enumerate()
            .map(|(p, c)| (*c, p as u32));
        let nearest = Lists::group(cells, pairs);
        let mut means = vec![0.0; cells * dim];
        means
            .par_chunks_mut(dim)
            .enumerate()
            .for_each(|(cell, mean)| {
                let own = nearest.get(cell);
                for p in own {
                    for (m, x) in mean.iter_mut().zip(points.row(*p as usize)) {
                        *m += f64::from(*x);
                    }
                }
                for m in mean {
                    *m /= own.len().max(1) as f64;
                }
            });
        Ok(Statistics { nearest, means })
    }

    fn gradient(
        &self,
        points: Rows<'_>,
        model: &Gaussians,
        assignment: &Assignment,
        statistics: &Statistics,
        weights: &Weights,
        gradient: &mut Gradient,
    ) -> Result<Losses> {
        let (dim, cells, stride) = (model.dim(), model.len(), model.stride());
        let count = points.len().max(1) as f64;
        let (coverage, pulls) = coverage::pulls(points, model, assignment, weights);
        gradient.means.resize(cells * dim, 0.0);
        gradient.factors.resize(cells * stride, 0.0);
        let anchors: Vec<f64> = gradient
            .means
            .par_chunks_mut(dim)
            .zip(gradient.factors.par_chunks_mut(stride))
            .enumerate()
            .map_init(
                || full::Scratch::for_model(model),
                |scratch, (cell, (mean, factor))| {
                    self.cancel.check()?;
                    mean.fill(0.0);
                    let nearest = statistics.nearest.get(cell);
                    let outside: Vec<u32> = nearest
                        .iter()
                        .copied()
                        .filter(|p| assignment.distance[*p as usize] > weights.tau)
                        .collect();
                    let batch = CellBatch {
                        points,
                        nearest,
                        centre: &statistics.means[cell * dim..(cell + 1) * dim],
                        outside: &outside,
                        divergence: (weights.divergence / count) as f32,
                        anchor: weights.anchor / (dim * cells) as f64,
                        shape: weights.shape,
                    };
                    let shape = match &model.factors {
                        Factors::Full(_) => {
                            full::gradient(&batch, model, cell, scratch, mean, factor)
                        }
                        _ => simple::gradient(&batch, model, cell, mean, factor),
                    };
                    let drift = anchor_mean(&batch, model.mean(cell), mean);
                    pulls.add(points, model.mean(cell), cell, mean);
                    Ok(drift + weights.shape * shape)
                },
            )
            .collect::<Result<_>>()?;

        let beyond = assignment
            .distance
            .iter()
            .map(|d| f64::from((d - weights.tau).max(0.0)));
        Ok(Losses {
            divergence: beyond.sum::<f64>() / count,
            coverage,
            anchor: anchors.iter().sum::<f64>() / (dim * cells) as f64,
        })
    }
}

/// Adds the anchor's pull on the mean; returns the squared distance to the points' mean.
fn anchor_mean(batch: &CellBatch<'_>, mean: &[f32], gradient: &mut [f32]) -> f64 {
    if batch.nearest.is_empty() {
        return 0.0;
    }
    let mut squared = 0.0;
    for ((g, m), c) in gradient.iter_mut().zip(mean).zip(batch.centre) {
        let difference = f64::from(*m) - c;
        squared += difference * difference;
        *g += (2.0 * batch.anchor * difference) as f32;
    }
    squared
}
