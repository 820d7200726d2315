//! The coverage loss: points should be decided between the cells that cover them.
//!
//! With p = softmax over the covering cells of the negative distance to their means, a point's loss is
//! 1 - max p. The covering set is taken as fixed, so only means have a gradient, and only points that at
//! least two cells cover pull at all.

use garlic_core::Lists;
use garlic_linalg::Rows;
use rayon::prelude::*;

use super::Weights;
use crate::gaussians::{Assignment, Gaussians};

/// Added to the softmax's denominator.
const EPSILON: f64 = 1e-12;

/// What points pull at which means: the gradient of a mean is the sum of `strength * (mean - point)`.
pub(super) struct Pulls {
    /// Indices into `points` and `strengths`, by cell.
    by_cell: Lists,
    points: Vec<u32>,
    strengths: Vec<f32>,
}

impl Pulls {
    /// Adds the pulls at one cell to the gradient of its mean.
    pub(super) fn add(&self, points: Rows<'_>, mean: &[f32], cell: usize, gradient: &mut [f32]) {
        for i in self.by_cell.get(cell) {
            let strength = self.strengths[*i as usize];
            let row = points.row(self.points[*i as usize] as usize);
            for ((g, m), x) in gradient.iter_mut().zip(mean).zip(row) {
                *g += strength * (m - x);
            }
        }
    }
}

/// The coverage loss and what it pulls.
pub(super) fn pulls(
    points: Rows<'_>,
    model: &Gaussians,
    assignment: &Assignment,
    weights: &Weights,
) -> (f64, Pulls) {
    let factor = weights.coverage / points.len().max(1) as f64;
    let per_point: Vec<(f64, Vec<f32>)> = (0..points.len())
        .into_par_iter()
        .with_min_len(256)
        .map(|p| match assignment.covering(p) {
            [] => (1.0, Vec::new()),
            [_] => (0.0, Vec::new()),
            cells => point(points.row(p), model, cells, factor),
        })
        .collect();

    let loss = per_point.iter().map(|(l, _)| l).sum::<f64>() / points.len().max(1) as f64;
    let mut cells = Vec::new();
    let mut pulling = Vec::new();
    let mut strengths = Vec::new();
    for (p, (_, pulls)) in per_point.iter().enumerate() {
        for (cell, strength) in assignment.covering(p).iter().zip(pulls) {
            cells.push(*cell);
            pulling.push(p as u32);
            strengths.push(*strength);
        }
    }
    let pairs = cells.iter().enumerate().map(|(i, c)| (*c, i as u32));
    let pulls = Pulls {
        by_cell: Lists::group(model.len(), pairs),
        points: pulling,
        strengths,
    };
    (loss, pulls)
}

/// One point that several cells cover: its loss and its pull at each of them.
fn point(row: &[f32], model: &Gaussians, cells: &[u32], factor: f64) -> (f64, Vec<f32>) {
    let distances: Vec<f64> = cells
        .iter()
        .map(|c| f64::from(garlic_simd::l2_squared(row, model.mean(*c as usize))).sqrt())
        .collect();
    let smallest = distances.iter().copied().fold(f64::INFINITY, f64::min);
    let weights: Vec<f64> = distances.iter().map(|d| (smallest - d).exp()).collect();
    let total = weights.iter().sum::<f64>() + EPSILON;
    let best = 1.0 / total;
    let winner = distances.iter().position(|d| *d == smallest).unwrap_or(0);
    let pulls = distances
        .iter()
        .zip(&weights)
        .enumerate()
        .map(|(i, (distance, weight))| {
            let own = if i == winner { 1.0 } else { 0.0 };
            let slope = factor * best * (own - weight / total);
            // A point on the mean has no direction to pull in.
            if *distance > 0.0 {
                (slope / distance) as f32
            } else {
                0.0
            }
        })
        .collect();
    (1.0 - best, pulls)
}
