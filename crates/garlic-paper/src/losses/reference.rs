//! The three losses and their gradients in plain f64 loops: the oracle of the fast versions, itself checked
//! against central differences.

use garlic_core::Cancel;
use garlic_linalg::{Matrix, Rows, random_stream, uniform_unit};

use super::{Gradient, Weights};
use crate::config::AnchorPoints;
use crate::gaussians::{Factors, Gaussians, assign};

/// Parameters of all cells; factors are packed.
#[derive(Clone)]
struct Model {
    dim: usize,
    means: Vec<f64>,
    factors: Vec<f64>,
}

/// What the losses take as given: the points of each cell and the cells of each point.
struct Sets {
    nearest: Vec<usize>,
    covering: Vec<Vec<usize>>,
    anchored_by: AnchorPoints,
}

const ANCHORS: [AnchorPoints; 2] = [AnchorPoints::Covered, AnchorPoints::Nearest];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    Divergence,
    Coverage,
    Anchor,
}

const LOSSES: [Loss; 3] = [Loss::Divergence, Loss::Coverage, Loss::Anchor];
const SHAPE: f64 = 0.1;

impl Model {
    fn cells(&self) -> usize {
        self.means.len() / self.dim
    }

    fn mean(&self, cell: usize) -> &[f64] {
        &self.means[cell * self.dim..][..self.dim]
    }

    fn entry(&self, cell: usize, i: usize, j: usize) -> f64 {
        let stride = self.dim * (self.dim + 1) / 2;
        self.factors[cell * stride + i * (i + 1) / 2 + j]
    }

    /// L⁻¹(x - mean).
    fn whiten(&self, x: &[f64], cell: usize) -> Vec<f64> {
        let mut y = vec![0.0; self.dim];
        for i in 0..self.dim {
            let sum: f64 = (0..i).map(|j| self.entry(cell, i, j) * y[j]).sum();
            y[i] = (x[i] - self.mean(cell)[i] - sum) / self.entry(cell, i, i);
        }
        y
    }

    fn mahalanobis(&self, x: &[f64], cell: usize) -> f64 {
        norm(&self.whiten(x, cell))
    }

    fn euclid(&self, x: &[f64], cell: usize) -> f64 {
        let difference: Vec<f64> = x.iter().zip(self.mean(cell)).map(|(a, b)| a - b).collect();
        norm(&difference)
    }
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn sets(points: &[Vec<f64>], model: &Model, tau: f64, anchored_by: AnchorPoints) -> Sets {
    let distances = |x: &Vec<f64>| -> Vec<f64> {
        (0..model.cells())
            .map(|c| model.mahalanobis(x, c))
            .collect()
    };
    let nearest = |d: &[f64]| (0..d.len()).min_by(|a, b| d[*a].total_cmp(&d[*b])).unwrap();
    Sets {
        nearest: points.iter().map(|x| nearest(&distances(x))).collect(),
        covering: points
            .iter()
            .map(|x| {
                let d = distances(x);
                (0..d.len()).filter(|c| d[*c] <= tau).collect()
            })
            .collect(),
        anchored_by,
    }
}

/// Mean and covariance of a cell's points.
fn moments(
    points: &[Vec<f64>],
    sets: &Sets,
    cell: usize,
    dim: usize,
) -> Option<(Vec<f64>, Vec<f64>, usize)> {
    let anchors = |p: &usize| {
        let covers = sets.anchored_by == AnchorPoints::Covered && sets.covering[*p].contains(&cell);
        sets.nearest[*p] == cell || covers
    };
    let own: Vec<&Vec<f64>> = (0..points.len())
        .filter(anchors)
        .map(|p| &points[p])
        .collect();
    if own.is_empty() {
        return None;
    }
    let count = own.len() as f64;
    let mean: Vec<f64> = (0..dim)
        .map(|i| own.iter().map(|x| x[i]).sum::<f64>() / count)
        .collect();
    let mut covariance = vec![0.0; dim * dim];
    for x in &own {
        for i in 0..dim {
            for j in 0..dim {
                covariance[i * dim + j] += (x[i] - mean[i]) * (x[j] - mean[j]) / count;
            }
        }
    }
    Some((mean, covariance, own.len()))
}

/// L Lᵀ - S.
fn shape_difference(model: &Model, cell: usize, covariance: &[f64]) -> Vec<f64> {
    let d = model.dim;
    let mut out = vec![0.0; d * d];
    for i in 0..d {
        for j in 0..d {
            let sum: f64 = (0..=i.min(j))
                .map(|k| model.entry(cell, i, k) * model.entry(cell, j, k))
                .sum();
            out[i * d + j] = sum - covariance[i * d + j];
        }
    }
    out
}

fn value(loss: Loss, points: &[Vec<f64>], model: &Model, sets: &Sets, tau: f64) -> f64 {
    let (d, cells, n) = (model.dim, model.cells(), points.len() as f64);
    match loss {
        Loss::Divergence => {
            let nearest = |x| {
                (0..cells)
                    .map(|c| model.mahalanobis(x, c))
                    .fold(f64::INFINITY, f64::min)
            };
            points
                .iter()
                .map(|x| (nearest(x) - tau).max(0.0))
                .sum::<f64>()
                / n
        }
        Loss::Coverage => {
            let confidence = |x: &Vec<f64>, covering: &Vec<usize>| {
                let weights: Vec<f64> = covering
                    .iter()
                    .map(|c| (-model.euclid(x, *c)).exp())
                    .collect();
                weights.iter().copied().fold(0.0, f64::max)
                    / weights.iter().sum::<f64>().max(1e-300)
            };
            let pairs = points.iter().zip(&sets.covering);
            1.0 - pairs
                .map(|(x, c)| if c.is_empty() { 0.0 } else { confidence(x, c) })
                .sum::<f64>()
                / n
        }
        Loss::Anchor => {
            let mut total = 0.0;
            for cell in 0..cells {
                let Some((mean, covariance, count)) = moments(points, sets, cell, d) else {
                    continue;
                };
                total += model
                    .mean(cell)
                    .iter()
                    .zip(&mean)
                    .map(|(a, b)| (a - b).powi(2))
                    .sum::<f64>();
                if count >= 2 {
                    total += SHAPE
                        * shape_difference(model, cell, &covariance)
                            .iter()
                            .map(|v| v * v)
                            .sum::<f64>();
                }
            }
            total / (d * cells) as f64
        }
    }
}

/// The closed form: derivatives by means and by packed factors.
fn closed_form(
    loss: Loss,
    points: &[Vec<f64>],
    model: &Model,
    sets: &Sets,
    tau: f64,
) -> (Vec<f64>, Vec<f64>) {
    let (d, cells, n) = (model.dim, model.cells(), points.len() as f64);
    let stride = d * (d + 1) / 2;
    let (mut means, mut factors) = (vec![0.0; cells * d], vec![0.0; cells * stride]);
    match loss {
        Loss::Divergence => {
            for (x, cell) in points.iter().zip(&sets.nearest) {
                let y = model.whiten(x, *cell);
                let length = norm(&y);
                if length <= tau {
                    continue;
                }
                let mut t: Vec<f64> = y.iter().map(|v| v / length).collect();
                for i in (0..d).rev() {
                    let sum: f64 = (i + 1..d).map(|j| model.entry(*cell, j, i) * t[j]).sum();
                    t[i] = (t[i] - sum) / model.entry(*cell, i, i);
                }
                for i in 0..d {
                    means[cell * d + i] -= t[i] / n;
                    for j in 0..=i {
                        factors[cell * stride + i * (i + 1) / 2 + j] -= t[i] * y[j] / n;
                    }
                }
            }
        }
        Loss::Coverage => {
            for (x, covering) in points.iter().zip(&sets.covering) {
                let distances: Vec<f64> = covering.iter().map(|c| model.euclid(x, *c)).collect();
                let smallest = distances.iter().copied().fold(f64::INFINITY, f64::min);
                let weights: Vec<f64> = distances.iter().map(|v| (smallest - v).exp()).collect();
                let total: f64 = weights.iter().sum();
                for (i, cell) in covering.iter().enumerate() {
                    let own = if distances[i] == smallest { 1.0 } else { 0.0 };
                    let slope = (own - weights[i] / total) / total / n;
                    for j in 0..d {
                        means[cell * d + j] += slope * (model.mean(*cell)[j] - x[j]) / distances[i];
                    }
                }
            }
        }
        Loss::Anchor => {
            let factor = 1.0 / (d * cells) as f64;
            for cell in 0..cells {
                let Some((mean, covariance, count)) = moments(points, sets, cell, d) else {
                    continue;
                };
                for i in 0..d {
                    means[cell * d + i] += 2.0 * factor * (model.mean(cell)[i] - mean[i]);
                }
                if count < 2 {
                    continue;
                }
                let difference = shape_difference(model, cell, &covariance);
                for i in 0..d {
                    for j in 0..=i {
                        let product: f64 = (j..d)
                            .map(|k| difference[i * d + k] * model.entry(cell, k, j))
                            .sum();
                        factors[cell * stride + i * (i + 1) / 2 + j] +=
                            4.0 * SHAPE * factor * product;
                    }
                }
            }
        }
    }
    (means, factors)
}

/// A batch with points inside several cells, between them and outside all, away from the borders where the
/// losses have kinks.
fn problem(dim: usize, cells: usize, seed: u64) -> (Vec<Vec<f64>>, Model, f64) {
    let mut rng = random_stream(seed, (dim * 100 + cells) as u64);
    let mut draw = |scale: f64| scale * (2.0 * uniform_unit(&mut rng) - 1.0);
    let stride = dim * (dim + 1) / 2;
    let mut factors = vec![0.0; cells * stride];
    for factor in factors.chunks_exact_mut(stride) {
        for i in 0..dim {
            for j in 0..i {
                factor[i * (i + 1) / 2 + j] = draw(0.4 / (dim as f64).sqrt());
            }
            factor[i * (i + 1) / 2 + i] = 1.0 + draw(0.3);
        }
    }
    let means: Vec<f64> = (0..cells * dim).map(|_| draw(1.0)).collect();
    let model = Model {
        dim,
        means,
        factors,
    };
    // A radius that about half the points are within.
    let tau = 1.2 * (dim as f64 / 2.0).sqrt();
    let mut points = Vec::new();
    while points.len() < 24 {
        let x: Vec<f64> = (0..dim).map(|_| draw(2.2)).collect();
        let mut distances: Vec<f64> = (0..cells).map(|c| model.mahalanobis(&x, c)).collect();
        distances.sort_by(f64::total_cmp);
        let mut euclid: Vec<f64> = (0..cells).map(|c| model.euclid(&x, c)).collect();
        euclid.sort_by(f64::total_cmp);
        let clear = |v: &[f64]| v.windows(2).all(|w| w[1] - w[0] > 1e-3);
        if distances.iter().all(|v| (v - tau).abs() > 1e-3) && clear(&distances) && clear(&euclid) {
            points.push(x);
        }
    }
    (points, model, tau)
}

const DIMS: [usize; 5] = [1, 2, 3, 17, 64];
const CELLS: [usize; 3] = [1, 2, 9];

#[test]
fn closed_forms_agree_with_central_differences() {
    let mut checked = 0;
    for dim in DIMS {
        for cells in CELLS {
            let (points, model, tau) = problem(dim, cells, 1);
            for (loss, anchored_by) in LOSSES.into_iter().flat_map(|l| ANCHORS.map(|a| (l, a))) {
                let sets = sets(&points, &model, tau, anchored_by);
                let (means, factors) = closed_form(loss, &points, &model, &sets, tau);
                let largest = means
                    .iter()
                    .chain(&factors)
                    .fold(0.0f64, |m, v| m.max(v.abs()));
                // All parameters of small models, a spread of those of large ones.
                let count = means.len() + factors.len();
                for i in (0..count).step_by(count.div_ceil(60)) {
                    let h = 1e-5;
                    let shifted = |step: f64| {
                        let mut m = model.clone();
                        if i < means.len() {
                            m.means[i] += step;
                        } else {
                            m.factors[i - means.len()] += step;
                        }
                        value(loss, &points, &m, &sets, tau)
                    };
                    let numeric = (shifted(h) - shifted(-h)) / (2.0 * h);
                    let exact = if i < means.len() {
                        means[i]
                    } else {
                        factors[i - means.len()]
                    };
                    let error = (numeric - exact).abs();
                    assert!(
                        error <= 1e-5 * exact.abs() + 1e-7 * largest.max(1e-3),
                        "{loss:?} d {dim} K {cells} parameter {i}: {numeric} {exact}"
                    );
                    checked += usize::from(exact != 0.0);
                }
            }
        }
    }
    assert!(checked > 1600, "only {checked} derivatives were not zero");
}

fn to_f32(values: &[f64]) -> Vec<f32> {
    values.iter().map(|v| *v as f32).collect()
}

/// Runs the fast gradient of `model` on `points`.
fn fast(points: &[Vec<f64>], model: &Gaussians, weights: &Weights) -> (super::Losses, Gradient) {
    let flat: Vec<f32> = points.iter().flat_map(|x| to_f32(x)).collect();
    let rows = Rows::new(&flat, model.dim()).unwrap();
    let cancel = Cancel::default();
    let assignment = assign(rows, model, weights.tau, &cancel).unwrap();
    let mut gradient = Gradient::default();
    let losses =
        super::gradient(rows, model, &assignment, weights, &cancel, &mut gradient).unwrap();
    (losses, gradient)
}

fn assert_near(got: &[f32], want: &[f64], label: &str) {
    assert_eq!(got.len(), want.len(), "{label}");
    let largest = want.iter().fold(1e-9f64, |m, v| m.max(v.abs()));
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!(
            (f64::from(*g) - w).abs() <= 2e-4 * largest,
            "{label} [{i}]: {g} {w}"
        );
    }
}

#[test]
fn the_fast_gradients_agree_with_the_closed_forms() {
    for dim in DIMS {
        for cells in CELLS {
            let (points, mut model, tau) = problem(dim, cells, 2);
            for structure in ["full", "diagonal", "isotropic"] {
                // The same cell, as far as its structure allows.
                let stride = dim * (dim + 1) / 2;
                for factor in model.factors.chunks_exact_mut(stride) {
                    let scale = factor[0];
                    for i in 0..dim {
                        for j in 0..i {
                            factor[i * (i + 1) / 2 + j] *= f64::from(u8::from(structure == "full"));
                        }
                        if structure == "isotropic" {
                            factor[i * (i + 1) / 2 + i] = scale;
                        }
                    }
                }
                let diagonal = |v: &[f64]| -> Vec<f64> {
                    v.chunks_exact(stride)
                        .flat_map(|f| (0..dim).map(|i| f[i * (i + 1) / 2 + i]).collect::<Vec<_>>())
                        .collect()
                };
                let factors = match structure {
                    "full" => Factors::Full(to_f32(&model.factors)),
                    "diagonal" => Factors::Diagonal(to_f32(&diagonal(&model.factors))),
                    _ => Factors::Isotropic(
                        model
                            .factors
                            .chunks_exact(stride)
                            .map(|f| f[0] as f32)
                            .collect(),
                    ),
                };
                let gaussians = Gaussians {
                    means: Matrix::from_vec(to_f32(&model.means), dim).unwrap(),
                    factors,
                };
                for (loss, anchored_by) in LOSSES.into_iter().flat_map(|l| ANCHORS.map(|a| (l, a)))
                {
                    let sets = sets(&points, &model, tau, anchored_by);
                    let on = |l: Loss| f64::from(u8::from(l == loss));
                    let weights = Weights {
                        tau: tau as f32,
                        divergence: on(Loss::Divergence),
                        coverage: on(Loss::Coverage),
                        anchor: on(Loss::Anchor),
                        shape: SHAPE,
                        anchored_by,
                    };
                    let label = format!("{structure} {loss:?} d {dim} K {cells}");
                    let (losses, gradient) = fast(&points, &gaussians, &weights);
                    let (means, factors) = closed_form(loss, &points, &model, &sets, tau);
                    assert_near(&gradient.means, &means, &label);
                    match structure {
                        "full" => assert_near(&gradient.factors, &factors, &label),
                        "diagonal" => assert_near(&gradient.factors, &diagonal(&factors), &label),
                        _ => {
                            let sums: Vec<f64> = diagonal(&factors)
                                .chunks_exact(dim)
                                .map(|f| f.iter().sum())
                                .collect();
                            assert_near(&gradient.factors, &sums, &label);
                        }
                    }
                    let want = value(loss, &points, &model, &sets, tau);
                    let got = match loss {
                        Loss::Divergence => losses.divergence,
                        Loss::Coverage => losses.coverage,
                        Loss::Anchor => losses.anchor,
                    };
                    // The simple structures leave the covariance's off-diagonal entries out of the anchor.
                    if structure == "full" || loss != Loss::Anchor || dim == 1 {
                        assert!(
                            (got - want).abs() <= 1e-4 * want.abs().max(1e-3),
                            "{label}: {got} {want}"
                        );
                    }
                }
            }
        }
    }
}
