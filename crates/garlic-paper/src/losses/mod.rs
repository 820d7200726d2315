//! The objective: divergence, coverage and anchoring, with their gradients.
//!
//! In: a batch of points with their nearest and covering cells. Out: the three losses and the derivative of their
//! weighted sum by every mean and factor. The sets of points are taken as fixed: the derivative does not see that a
//! point may change its cell.
//!
//! `divergence` pulls cells towards points outside, `coverage` makes points belong to one cell, `anchor` keeps a cell at
//! the mean and covariance of its points. Work is parallel over cells, and each cell's sums run in the order of its
//! points, so that the result does not depend on the number of threads. `reference` has all of it in plain loops for the
//! tests.

mod anchor;
mod coverage;
mod divergence;
#[cfg(test)]
mod reference;

use garlic_core::{Cancel, Lists, Result, by_label};
use garlic_linalg::Rows;
use rayon::prelude::*;

use crate::config::{AnchorPoints, Config};
use crate::gaussians::{Assignment, Factors, Gaussians, unpack};

/// Weights and radii of the losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// Mahalanobis radius of a cell (tau).
    pub tau: f32,
    /// Weight of the divergence loss.
    pub divergence: f64,
    /// Weight of the coverage loss.
    pub coverage: f64,
    /// Weight of the anchor loss.
    pub anchor: f64,
    /// Weight of the shape term inside the anchor loss (alpha).
    pub shape: f64,
    /// Points whose mean and covariance anchor a cell.
    pub anchored_by: AnchorPoints,
}

impl Weights {
    /// The weights of a configuration.
    pub fn of(config: &Config) -> Self {
        let loss = &config.loss;
        Self {
            tau: loss.tau as f32,
            divergence: loss.weight_divergence,
            coverage: loss.weight_coverage,
            anchor: loss.weight_anchor,
            shape: loss.anchor_shape,
            anchored_by: loss.anchor_points,
        }
    }
}

/// Values of the three losses, unweighted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// Mean distance of the points outside every cell to the nearest cell's border.
    pub divergence: f64,
    /// One minus the mean confidence of the points in their best covering cell.
    pub coverage: f64,
    /// Mean squared distance of the cells' means and shapes from those of their points.
    pub anchor: f64,
}

/// Derivatives of the weighted loss, laid out like the parameters of [`Gaussians`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gradient {
    /// One row a cell.
    pub means: Vec<f32>,
    /// One factor a cell.
    pub factors: Vec<f32>,
}

/// What one cell sees of a batch.
struct CellBatch<'a> {
    points: Rows<'a>,
    /// The cell.
    mean: &'a [f32],
    factor: &'a [f32],
    /// Points that anchor the cell, and the mean of them.
    anchors: &'a [u32],
    centre: &'a [f64],
    /// Points nearest to the cell that lie outside of it.
    outside: &'a [u32],
    /// Factor of every point's term in the gradient: weight over batch size.
    divergence: f32,
    /// Factor of the anchor's terms: weight over (dimension x cells).
    anchor: f64,
    shape: f64,
}

/// Losses of a batch whose cells `assignment` tells, in rayon's current pool; their derivatives replace what is in
/// `gradient`.
///
/// The buffer is the caller's because it is as large as the model: a new one for every step would cost more than the
/// arithmetic of many cells.
///
/// # Errors
/// When cancelled.
pub fn gradient(
    points: Rows<'_>,
    model: &Gaussians,
    assignment: &Assignment,
    weights: &Weights,
    cancel: &Cancel,
    gradient: &mut Gradient,
) -> Result<Losses> {
    cancel.check()?;
    let (dim, cells, stride) = (model.dim(), model.len(), model.stride());
    let count = points.len().max(1) as f64;
    let nearest = Lists::group(cells, by_label(&assignment.nearest));
    let covered = (weights.anchored_by == AnchorPoints::Covered)
        .then(|| Lists::group(cells, assignment.holdings()));
    let anchors = covered.as_ref().unwrap_or(&nearest);
    let centres = centres(points, anchors);
    let (coverage, pulls) = coverage::pulls(points, model, assignment, weights);
    gradient.means.resize(cells * dim, 0.0);
    gradient.factors.resize(cells * stride, 0.0);
    let errors: Vec<f64> = gradient
        .means
        .par_chunks_mut(dim)
        .zip(gradient.factors.par_chunks_mut(stride))
        .enumerate()
        .map_init(
            || Scratch::for_model(model),
            |scratch, (cell, (mean, factor))| {
                cancel.check()?;
                mean.fill(0.0);
                let is_outside = |p: &u32| assignment.distance[*p as usize] > weights.tau;
                let own = nearest.get(cell).iter().copied();
                let outside: Vec<u32> = own.filter(is_outside).collect();
                let batch = CellBatch {
                    points,
                    mean: model.mean(cell),
                    factor: model.factor(cell),
                    anchors: anchors.get(cell),
                    centre: &centres[cell * dim..(cell + 1) * dim],
                    outside: &outside,
                    divergence: (weights.divergence / count) as f32,
                    anchor: weights.anchor / (dim * cells) as f64,
                    shape: weights.shape,
                };
                let shape = match &model.factors {
                    Factors::Full(_) => full(&batch, scratch, mean, factor),
                    Factors::Diagonal(_) | Factors::Isotropic(_) => simple(&batch, mean, factor),
                };
                let drift = anchor::mean(&batch, mean);
                pulls.add(points, model.mean(cell), cell, mean);
                Ok(drift + weights.shape * shape)
            },
        )
        .collect::<Result<_>>()?;
    Ok(Losses {
        divergence: divergence::loss(assignment, weights.tau) / count,
        coverage,
        anchor: errors.iter().sum::<f64>() / (dim * cells) as f64,
    })
}

/// Means of each cell's points, one row a cell, summed in double precision; zero where there is none.
fn centres(points: Rows<'_>, anchors: &Lists) -> Vec<f64> {
    let dim = points.dim();
    let mut means = vec![0.0; anchors.len() * dim];
    let rows = means.par_chunks_mut(dim).enumerate();
    rows.for_each(|(cell, mean)| {
        let own = anchors.get(cell);
        for p in own {
            for (m, x) in mean.iter_mut().zip(points.row(*p as usize)) {
                *m += f64::from(*x);
            }
        }
        for m in mean {
            *m /= own.len().max(1) as f64;
        }
    });
    means
}

/// Square matrices of one worker.
struct Scratch {
    factor: Vec<f32>,
    difference: Vec<f32>,
    gradient: Vec<f32>,
    rows: Vec<f32>,
    turned: Vec<f32>,
}

impl Scratch {
    /// Scratch for the model's structure; empty when there is no full factor.
    fn for_model(model: &Gaussians) -> Self {
        let square = match model.factors {
            Factors::Full(_) => model.dim() * model.dim(),
            Factors::Diagonal(_) | Factors::Isotropic(_) => 0,
        };
        Self {
            factor: vec![0.0; square],
            difference: vec![0.0; square],
            gradient: vec![0.0; square],
            rows: Vec::new(),
            turned: Vec::new(),
        }
    }
}

/// Divergence and shape of a cell with a full factor, where all products are matrix products. Adds to the mean's gradient,
/// writes the factor's and returns the squared shape error.
fn full(
    batch: &CellBatch<'_>,
    scratch: &mut Scratch,
    mean_gradient: &mut [f32],
    factor_gradient: &mut [f32],
) -> f64 {
    let dim = batch.mean.len();
    unpack(batch.factor, &mut scratch.factor, dim);
    scratch.gradient.fill(0.0);
    divergence::full(batch, scratch, mean_gradient);
    let shape_error = anchor::full_shape(batch, scratch);
    pack(&scratch.gradient, factor_gradient, dim);
    shape_error
}

/// The same for a diagonal or isotropic factor: sums of each coordinate by itself.
fn simple(batch: &CellBatch<'_>, mean_gradient: &mut [f32], factor_gradient: &mut [f32]) -> f64 {
    let dim = batch.mean.len();
    let mut means = vec![0.0f64; dim];
    let mut scales = vec![0.0f64; dim];
    divergence::simple(batch, &mut means, &mut scales);
    let shape_error = anchor::simple_shape(batch, &mut scales);
    for (g, m) in mean_gradient.iter_mut().zip(means) {
        *g += m as f32;
    }
    match factor_gradient {
        [one] => *one = scales.iter().sum::<f64>() as f32,
        all => {
            for (g, s) in all.iter_mut().zip(scales) {
                *g = s as f32;
            }
        }
    }
    shape_error
}

impl CellBatch<'_> {
    /// The diagonal entry of a diagonal or isotropic factor.
    fn scale(&self, i: usize) -> f64 {
        // An isotropic factor has one entry for all coordinates.
        f64::from(self.factor[i.min(self.factor.len() - 1)])
    }
}

fn pack(square: &[f32], packed: &mut [f32], dim: usize) {
    let mut rest = packed;
    for (i, row) in square.chunks_exact(dim).enumerate() {
        let (own, after) = rest.split_at_mut(i + 1);
        own.copy_from_slice(&row[..=i]);
        rest = after;
    }
}
