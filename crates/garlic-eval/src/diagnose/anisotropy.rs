//! How far the cells are from balls, and from boxes along the coordinates.

use garlic_core::CellShapes;
use rayon::prelude::*;
use serde::Serialize;

use super::stats::{Histogram, Summary};

/// Fewest and most bars of a histogram; few cells are seen better in few bars.
const BARS: [usize; 2] = [8, 30];
/// Cells are left out, evenly, when the covariances of all would take more multiply-adds than this.
const MOST_WORK: f64 = 2e11;
/// Cells that are looked at whatever they cost.
const LEAST_CELLS: usize = 16;

/// Shapes of the cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Anisotropy {
    /// Cells that were looked at, spread evenly over all.
    pub cells: usize,
    /// The coordinates that entries of a covariance belong to, in words.
    pub coordinates: String,
    /// Axes of `explained_variance`.
    pub axes: usize,
    /// Largest eigenvalue of a covariance over its smallest.
    pub ratio: Quantity,
    /// Participation ratio of the eigenvalues.
    pub effective_dimension: Quantity,
    /// Share of the variance along the first `axes` axes of a cell.
    pub explained_variance: Quantity,
    /// Share of the squared entries of the covariance that is on its diagonal.
    pub diagonality: Quantity,
    /// Share of the variance along the first axes, for growing numbers of axes.
    pub explained: Vec<Step>,
    /// Share of the squared entries at most so far from the diagonal.
    pub band_energy: Vec<Step>,
}

/// A number of every cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Quantity {
    /// In a few numbers.
    pub summary: Summary,
    /// Cells by value.
    pub histogram: Histogram,
    /// The value of every cell that was looked at.
    pub values: Vec<f64>,
}

impl Quantity {
    fn of(values: Vec<f64>, log: bool) -> Self {
        let bars = 2 * values.len().isqrt();
        Self {
            summary: Summary::of(values.iter().copied()),
            histogram: Histogram::of(&values, bars.clamp(BARS[0], BARS[1]), log),
            values,
        }
    }
}

/// A step of a curve over the cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Step {
    /// Number of axes, or distance from the diagonal.
    pub at: usize,
    /// The cells' values.
    pub share: Summary,
    /// What a ball (for axes), or a covariance with all entries alike (for a band) would have.
    pub plain: f64,
}

/// What is kept of one cell.
struct CellShape {
    ratio: f64,
    effective: f64,
    /// Share along the first axes, one entry for each of [`steps`].
    explained: Vec<f64>,
    /// Share within a band, one entry for each of [`widths`].
    band: Vec<f64>,
}

/// Looks at the shapes of the cells.
pub(super) fn anisotropy(shapes: &dyn CellShapes, coordinates: String) -> Anisotropy {
    let dim = shapes.dim();
    let axes = shapes.rank().clamp(1, dim.max(1));
    let chosen = chosen(shapes);
    let (steps, widths) = (steps(dim, axes), widths(dim));
    let found: Vec<CellShape> = chosen
        .par_iter()
        .map(|cell| of_cell(shapes, *cell, &steps, &widths))
        .collect();
    let at_axes = steps.iter().position(|s| *s == axes).unwrap_or(0);
    let all = |value: &dyn Fn(&CellShape) -> f64| found.iter().map(value).collect::<Vec<f64>>();
    let band_plain = |w: usize| {
        let (d, w) = (dim as f64, w as f64);
        (d + w * (2.0 * d - w - 1.0)) / (d * d)
    };
    Anisotropy {
        cells: chosen.len(),
        coordinates,
        axes,
        ratio: Quantity::of(all(&|c| c.ratio), true),
        effective_dimension: Quantity::of(all(&|c| c.effective), false),
        explained_variance: Quantity::of(all(&|c| c.explained[at_axes]), false),
        diagonality: Quantity::of(all(&|c| c.band[0]), false),
        explained: curve(
            &steps,
            |i| all(&|c| c.explained[i]),
            |r| r as f64 / dim as f64,
        ),
        band_energy: curve(&widths, |i| all(&|c| c.band[i]), band_plain),
    }
}

fn curve(
    at: &[usize],
    values: impl Fn(usize) -> Vec<f64>,
    plain: impl Fn(usize) -> f64,
) -> Vec<Step> {
    at.iter()
        .enumerate()
        .map(|(i, &at)| Step {
            at,
            share: Summary::of(values(i)),
            plain: plain(at),
        })
        .collect()
}

/// Cells spread evenly over all, as many as can be afforded.
fn chosen(shapes: &dyn CellShapes) -> Vec<usize> {
    let count = ((MOST_WORK / shapes.spectrum_madds()) as usize)
        .max(LEAST_CELLS)
        .min(shapes.len());
    (0..count).map(|i| i * shapes.len() / count).collect()
}

/// Numbers of axes: 1, 2, 3, 4, 6, 8, 12, 16 and so on, with `axes` among them and all of them last.
fn steps(dim: usize, axes: usize) -> Vec<usize> {
    let mut steps: Vec<usize> = (0..usize::BITS)
        .flat_map(|p| [1 << p, 3 << p])
        .take_while(|s| *s <= 2 * dim)
        .filter(|s| *s <= dim)
        .chain([axes, dim])
        .collect();
    steps.sort_unstable();
    steps.dedup();
    steps
}

/// Distances from the diagonal: 0, 1, 2, 4, 8 and so on, all of the matrix last.
fn widths(dim: usize) -> Vec<usize> {
    let last = dim.saturating_sub(1);
    let mut widths: Vec<usize> = [0]
        .into_iter()
        .chain((0..40).map(|p| 1 << p))
        .filter(|w| *w < last)
        .collect();
    widths.push(last);
    widths.dedup();
    widths
}

fn of_cell(shapes: &dyn CellShapes, cell: usize, steps: &[usize], widths: &[usize]) -> CellShape {
    let dim = shapes.dim();
    let sigma = shapes.covariance(cell);
    let values = shapes.eigenvalues(cell);
    let (sum, squares) = values
        .iter()
        .fold((0.0, 0.0), |(s, q), v| (s + v, q + v * v));
    let share = |part: f64, all: f64| if all > 0.0 { part / all } else { f64::NAN };
    let mut along = 0.0;
    let running: Vec<f64> = values
        .iter()
        .map(|v| {
            along += v;
            share(along, sum).min(1.0)
        })
        .collect();
    let energy = diagonals(&sigma, dim);
    let all: f64 = energy.iter().sum();
    let within = |w: usize| share(energy[..=w].iter().sum(), all).min(1.0);
    CellShape {
        ratio: share(values[0], values[dim - 1]),
        effective: share(sum * sum, squares),
        explained: steps.iter().map(|r| running[r - 1]).collect(),
        band: widths.iter().map(|w| within(*w)).collect(),
    }
}

/// Sum of the squared entries at each distance from the diagonal, from the lower triangle; both sides count.
fn diagonals(sigma: &[f64], dim: usize) -> Vec<f64> {
    let mut energy = vec![0.0; dim];
    for i in 0..dim {
        for j in 0..=i {
            energy[i - j] += sigma[i * dim + j].powi(2) * if i == j { 1.0 } else { 2.0 };
        }
    }
    energy
}

#[cfg(test)]
mod tests {

    use super::super::dense::Dense;
    use super::super::tests::index;
    use super::*;

    #[test]
    fn a_diagonal_covariance_has_known_shape() {
        // Variances 9, 4, 1 and 2.
        let shapes = Dense::diagonal(&[9.0, 4.0, 1.0, 2.0], 2);
        let found = anisotropy(&shapes, String::new());
        let close = |q: &Quantity, v: f64| assert!((q.values[0] - v).abs() < 1e-6, "{q:?} {v}");
        close(&found.ratio, 9.0);
        close(&found.diagonality, 1.0);
        close(&found.effective_dimension, 256.0 / 102.0);
        close(&found.explained_variance, 13.0 / 16.0);
        assert_eq!(found.explained.last().unwrap().share.mean, 1.0);
        assert!(found.band_energy.iter().all(|s| s.share.mean == 1.0));
    }

    #[test]
    fn a_full_covariance_has_energy_off_its_diagonal() {
        // Sigma = [[4, 2], [2, 2]]: squares 16 + 4 on the diagonal, 8 beside it.
        let shapes = Dense {
            mean: vec![0.0; 2],
            covariance: vec![4.0, 0.0, 2.0, 2.0],
            rank: 1,
        };
        let found = anisotropy(&shapes, String::new());
        let root = 5_f64.sqrt();
        assert!((found.diagonality.values[0] - 20.0 / 28.0).abs() < 1e-6);
        assert!((found.ratio.values[0] - (3.0 + root) / (3.0 - root)).abs() < 1e-4);
        assert!((found.explained_variance.values[0] - (3.0 + root) / 6.0).abs() < 1e-6);
        let band: Vec<(usize, f64, f64)> = found
            .band_energy
            .iter()
            .map(|s| (s.at, s.share.mean, s.plain))
            .collect();
        assert_eq!((band[0].0, band[0].2), (0, 0.5));
        assert_eq!(band[1], (1, 1.0, 1.0));
    }

    #[test]
    fn balls_are_isotropic() {
        let found = anisotropy(&Dense::diagonal(&[0.25; 6], 3), String::new());
        assert_eq!((found.cells, found.ratio.summary.max), (1, 1.0));
        assert!((found.effective_dimension.summary.mean - 6.0).abs() < 1e-9);
        assert!((found.explained_variance.summary.mean - 0.5).abs() < 1e-9);
    }

    #[test]
    fn curves_of_an_index_grow_to_one() {
        let index = index();
        let shapes = garlic_core::NeighborIndex::shapes(&index);
        let found = anisotropy(&*shapes, String::new());
        assert_eq!(found.cells, shapes.len());
        for curve in [&found.explained, &found.band_energy] {
            assert!(
                curve
                    .windows(2)
                    .all(|s| s[0].share.mean <= s[1].share.mean + 1e-12)
            );
            assert!((curve.last().unwrap().share.min - 1.0).abs() < 1e-9);
        }
        assert!(found.ratio.summary.min > 1.0);
    }

    #[test]
    fn steps_hold_the_axes_and_end_with_all() {
        assert_eq!(steps(10, 5), [1, 2, 3, 4, 5, 6, 8, 10]);
        assert_eq!(steps(1, 1), [1]);
        assert_eq!(widths(10), [0, 1, 2, 4, 8, 9]);
        assert_eq!(widths(1), [0]);
    }
}
