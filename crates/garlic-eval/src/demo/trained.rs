//! The cells of the published method as plain numbers, so that a report need not know the index.

use garlic_linalg::Rows;
use garlic_paper::GaussianIndex;
use garlic_paper::gaussians::Factors;
use serde::Serialize;

use crate::diagnose::CellSizes;

/// Points that a view of the cells shows; more would hide the cells.
const DRAWN: usize = 4000;

/// What training made of an index.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TrainedCells {
    /// Cells that training began with.
    pub initial_cells: usize,
    /// Points that training saw.
    pub training_points: usize,
    /// Mahalanobis radius within which a cell covers a point.
    pub tau: f64,
    /// Cells that a point belongs to, on average.
    pub cells_of_a_point: f64,
    /// The epochs of the training, in order.
    pub epochs: Vec<Epoch>,
    /// Points in the cells.
    pub sizes: CellSizes,
    /// The cells from above.
    pub view: CellView,
}

/// One epoch of the training; the terms of the loss are without their weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Epoch {
    /// Number of the epoch, from 1.
    pub epoch: usize,
    /// Weighted sum of the terms.
    pub loss: f64,
    /// How far points lie outside every cell.
    pub divergence: f64,
    /// How undecided points are between cells.
    pub coverage: f64,
    /// How far cells are from the points they hold.
    pub anchor: f64,
    /// Cells at its end.
    pub cells: usize,
    /// Share of the points within tau of some cell.
    pub covered: f64,
    /// Share of the points in the largest cell.
    pub largest: f64,
}

/// Points and cells along the first two coordinates of the model's space.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CellView {
    /// The coordinates are principal components.
    pub rotated: bool,
    /// Places of some points, and the number of the shape that each was drawn from.
    pub points: Vec<(f64, f64, usize)>,
    /// The cells, the one with the most points first.
    pub ellipses: Vec<Ellipse>,
}

/// A Gaussian seen in two dimensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Ellipse {
    /// Its mean.
    pub centre: (f64, f64),
    /// Lower Cholesky factor of its covariance: the entries (0, 0), (1, 0) and (1, 1).
    pub factor: [f64; 3],
}

impl TrainedCells {
    /// The cells of `index`; `shapes` has the number of the shape of every row of `base`.
    pub(super) fn of(index: &GaussianIndex, base: Rows<'_>, shapes: &[usize]) -> Self {
        let history = index.history();
        Self {
            initial_cells: index.config().init.initial_cells,
            training_points: history.points,
            tau: index.config().loss.tau,
            cells_of_a_point: index.coverage().mean,
            epochs: history
                .epochs
                .iter()
                .map(|e| Epoch {
                    epoch: e.epoch,
                    loss: e.loss,
                    divergence: e.divergence,
                    coverage: e.coverage,
                    anchor: e.anchor,
                    cells: e.cells,
                    covered: e.covered,
                    largest: e.largest,
                })
                .collect(),
            sizes: CellSizes::of(index),
            view: CellView {
                rotated: index.transform().rotation.is_some(),
                points: places(index, base, shapes),
                ellipses: ellipses(index),
            },
        }
    }
}

fn ellipses(index: &GaussianIndex) -> Vec<Ellipse> {
    let model = index.model();
    let mut order: Vec<usize> = (0..model.len()).collect();
    order.sort_by_key(|&cell| std::cmp::Reverse(index.cell(cell).bins.members().len()));
    order
        .into_iter()
        .map(|cell| {
            let (mean, factor) = (model.mean(cell), model.factor(cell));
            let l = |i: usize| f64::from(factor[i]);
            Ellipse {
                centre: (f64::from(mean[0]), f64::from(mean[1])),
                factor: match &model.factors {
                    Factors::Full(_) => [l(0), l(1), l(2)],
                    Factors::Diagonal(_) => [l(0), 0.0, l(1)],
                    Factors::Isotropic(_) => [l(0), 0.0, l(0)],
                },
            }
        })
        .collect()
}

/// Rows spread evenly over all, in the space of the model.
fn places(index: &GaussianIndex, base: Rows<'_>, shapes: &[usize]) -> Vec<(f64, f64, usize)> {
    let mut out = vec![0.0; index.dim()];
    let every = base.len().div_ceil(DRAWN).max(1);
    (0..base.len())
        .step_by(every)
        .map(|row| {
            index.transform().apply(base.row(row), &mut out);
            (f64::from(out[0]), f64::from(out[1]), shapes[row])
        })
        .collect()
}
