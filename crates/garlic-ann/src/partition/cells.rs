//! Cells with a mean, a few principal axes and one residual variance, scored with tempered anisotropy.
//!
//! The score of a point x in a cell with axes u_j, variances lambda_j along them and residual variance s2 is
//! `|x - mean|^2 - a * sum_j (1 - s2 / lambda_j) y_j^2` with `y_j = u_j . (x - mean)`: at a = 0 the plain
//! distance, at a = 1 as much as a Gaussian's own shape asks for.

use garlic_linalg::{Matrix, Operand, Rows, gemm, top_components};
use rayon::prelude::*;

use garlic_core::Cancel;
use garlic_core::Lists;
use garlic_core::Result;
use garlic_core::buffer::Buffer;

/// Points that one task assigns.
const BLOCK: usize = 256;

/// Points that cells must have on average for each axis that their score knows. With fewer, the variances along the axes
/// are those of the few points that happened to be there, and queries are routed worse than without them: of 4 to 32 axes, 4
/// to 8 were the best for 400 cells of 150 points on Fashion-MNIST, 16 on MNIST. All cells know as many, or those that know more would swallow the others.
const POINTS_PER_AXIS: usize = 24;

/// Axes of cells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axes {
    /// How many there are: codes are coordinates along all of them.
    pub(crate) rank: usize,
    /// How many of them, the first ones, scores know.
    pub(crate) known: usize,
}

impl Axes {
    /// `rank` axes for each of so many cells of so many points.
    pub(crate) fn new(rank: usize, points: usize, cells: usize) -> Self {
        let known = rank.min(points / (POINTS_PER_AXIS * cells.max(1)));
        Self { rank, known }
    }
}

/// Coordinates of the mean of a cell that takes no point: farther than any point, and its square is finite.
pub(crate) const FAR: f32 = 1e18;

/// Stands for no cell.
pub(crate) const NONE: u32 = u32::MAX;

/// Low-rank plus isotropic cells: (rank + 2) values a dimension instead of a square matrix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AnisotropicCells {
    /// Share of the anisotropy that the score uses.
    pub(crate) anisotropy: f32,
    /// Dimension of the space.
    pub(crate) dim: usize,
    /// Axes of a cell; cells whose points span less have zero rows at the end.
    pub(crate) rank: usize,
    /// One mean a row.
    pub(crate) means: Buffer<f32>,
    /// `rank` axes of every cell, one a row.
    pub(crate) axes: Buffer<f32>,
    /// Variance along every axis; beyond those that scores know, that of any other direction.
    pub(crate) variances: Buffer<f32>,
    /// Variance in a direction orthogonal to the axes, per cell.
    pub(crate) residual: Buffer<f32>,
}

impl AnisotropicCells {
    /// Number of cells.
    pub(crate) fn len(&self) -> usize {
        self.residual.len()
    }

    /// Dimension of the space the cells live in.
    pub(crate) fn dim(&self) -> usize {
        self.dim
    }

    /// Number of axes of a cell.
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// Axes of every cell.
    pub(crate) fn form(&self) -> Axes {
        let known = |cell| {
            let above = |v: &&f32| **v > self.residual_of(cell);
            self.variances(cell).iter().filter(above).count()
        };
        Axes {
            rank: self.rank,
            known: (0..self.len()).map(known).max().unwrap_or(0),
        }
    }

    /// Mean of a cell.
    pub(crate) fn mean(&self, cell: usize) -> &[f32] {
        &self.means[cell * self.dim..(cell + 1) * self.dim]
    }

    /// Axes of a cell, `rank` rows.
    pub(crate) fn axes(&self, cell: usize) -> &[f32] {
        let len = self.rank * self.dim;
        &self.axes[cell * len..(cell + 1) * len]
    }

    /// Variance along the axes of a cell.
    pub(crate) fn variances(&self, cell: usize) -> &[f32] {
        &self.variances[cell * self.rank..(cell + 1) * self.rank]
    }

    /// Variance of a cell in a direction orthogonal to its axes.
    pub(crate) fn residual_of(&self, cell: usize) -> f32 {
        self.residual[cell]
    }

    /// Fits means and shapes to those of the points `ids` that `labels` gives each cell; cells without points
    /// are dropped and the labels renumbered.
    pub(crate) fn fit(
        points: Rows<'_>,
        ids: &[u32],
        labels: &mut [u32],
        count: usize,
        shape: FitOptions,
        cancel: &Cancel,
    ) -> Result<Self> {
        let FitOptions {
            axes: form,
            anisotropy,
            seed,
        } = shape;
        let count = renumber(labels, count);
        let pairs = labels.iter().copied().zip(ids.iter().copied());
        let members = Lists::group(count, pairs);
        let (dim, rank) = (points.dim(), form.rank);
        let fitted: Vec<_> = (0..count)
            .into_par_iter()
            .map(|cell| {
                cancel.check()?;
                let rows = Matrix::gather(points, members.get(cell));
                Ok(fit_cell(rows.as_rows(), form, seed ^ cell as u64))
            })
            .collect::<Result<_>>()?;
        let (mut means, mut residual) =
            (Vec::with_capacity(count * dim), Vec::with_capacity(count));
        let mut axes = vec![0.0; count * rank * dim];
        let mut variances = vec![0.0; count * rank];
        for (cell, shape) in fitted.into_iter().enumerate() {
            means.extend(shape.mean);
            residual.push(shape.residual);
            let found = shape.variances.len();
            axes[cell * rank * dim..][..found * dim].copy_from_slice(shape.axes.as_slice());
            variances[cell * rank..][..found].copy_from_slice(&shape.variances);
        }
        Ok(Self {
            anisotropy,
            dim,
            rank,
            means: means.into(),
            axes: axes.into(),
            variances: variances.into(),
            residual: residual.into(),
        })
    }

    /// The cell with the smallest score of every point, among its `shortlist` nearest by plain distance.
    pub(crate) fn assign(
        &self,
        points: Rows<'_>,
        shortlist: usize,
        cancel: &Cancel,
    ) -> Result<Vec<u32>> {
        self.cells().assign(points, shortlist, cancel)
    }

    /// The cell with the smallest score but that of `labels` of every point, where it is at most `times` as far;
    /// [`NONE`] where it is farther. Scores are squared distances.
    pub(crate) fn seconds(
        &self,
        points: Rows<'_>,
        labels: &[u32],
        times: f64,
        shortlist: usize,
        cancel: &Cancel,
    ) -> Result<Vec<u32>> {
        let times = times * times;
        let decide = |point: usize, scores: &[(f32, u32)]| {
            let own = labels[point];
            let mut others = scores.iter().copied().filter(|(_, cell)| *cell != own);
            let Some(first) = others.next() else {
                return NONE;
            };
            let next = others.fold(first, |best, other| match by_score(&other, &best).is_lt() {
                true => other,
                false => best,
            });
            // Its own cell is not among those looked at when somebody else has chosen it: any of them is nearer.
            let own = scores.iter().find(|(_, cell)| *cell == own);
            let length = garlic_simd::dot(points.row(point), points.row(point));
            let squared = |score: f32| f64::from(score + length);
            match own.is_none_or(|own| squared(next.0) <= times * squared(own.0)) {
                true => next.1,
                false => NONE,
            }
        };
        self.cells()
            .decide(points, shortlist.max(2), cancel, decide)
    }

    fn cells<'a>(&'a self) -> Cells<'a, impl Fn(usize) -> Outline<'a> + Sync> {
        Cells {
            anisotropy: self.anisotropy,
            rank: self.rank,
            means: &self.means,
            shape: |cell: usize| (self.axes(cell), self.variances(cell), self.residual[cell]),
        }
    }
}

/// Axes of a cell, variances along them, and residual variance.
pub(crate) type Outline<'a> = (&'a [f32], &'a [f32], f32);

/// Cells that points can be assigned to; `shape` gives axes, variances along them and residual variance of one.
pub(crate) struct Cells<'a, F> {
    pub(crate) anisotropy: f32,
    pub(crate) rank: usize,
    /// One mean a row; a cell at [`FAR`] takes no point.
    pub(crate) means: &'a [f32],
    pub(crate) shape: F,
}

impl<'a, F> Cells<'a, F>
where
    F: Fn(usize) -> Outline<'a> + Sync,
{
    /// The cell with the smallest score of every point, among its `shortlist` nearest by plain distance.
    pub(crate) fn assign(
        &self,
        points: Rows<'_>,
        shortlist: usize,
        cancel: &Cancel,
    ) -> Result<Vec<u32>> {
        let shortlist = match self.anisotropy == 0.0 {
            true => 1,
            false => shortlist,
        };
        self.decide(points, shortlist, cancel, |_, scores| {
            let mut best = (f32::INFINITY, NONE);
            for score in scores {
                if by_score(score, &best).is_lt() {
                    best = *score;
                }
            }
            // Scores that are no numbers, of a damaged file, win against nothing.
            match best.1 {
                NONE => scores.first().map_or(0, |first| first.1),
                cell => cell,
            }
        })
    }

    /// What `decide` makes of each point, by its number, and the scores of the `shortlist` cells that are nearest to it by
    /// plain distance, in no order and less the point's own squared length.
    fn decide(
        &self,
        points: Rows<'_>,
        shortlist: usize,
        cancel: &Cancel,
        decide: impl Fn(usize, &[(f32, u32)]) -> u32 + Sync,
    ) -> Result<Vec<u32>> {
        let mut decided = vec![0; points.len()];
        let norms: Vec<f32> = self
            .means
            .chunks_exact(points.dim())
            .map(|m| garlic_simd::dot(m, m))
            .collect();
        let shortlist = shortlist.clamp(1, norms.len().max(1));
        decided.par_chunks_mut(BLOCK).enumerate().try_for_each(
            |(block, decided)| -> Result<()> {
                cancel.check()?;
                let first = block * BLOCK;
                let rows = points.slice(first..first + decided.len());
                self.score_block(rows, &norms, shortlist, |row, scores| {
                    decided[row] = decide(first + row, scores);
                });
                Ok(())
            },
        )?;
        Ok(decided)
    }

    /// Tells `each` row of a block its scores.
    fn score_block(
        &self,
        rows: Rows<'_>,
        norms: &[f32],
        shortlist: usize,
        mut each: impl FnMut(usize, &[(f32, u32)]),
    ) {
        let (cells, dim) = (norms.len(), rows.dim());
        let mut products = vec![0.0; rows.len() * cells];
        gemm(
            &mut products,
            Operand::new(rows.data(), rows.len(), dim),
            Operand::transposed(self.means, cells, dim),
            -2.0,
            0.0,
        );
        let mut scores: Vec<(f32, u32)> = Vec::with_capacity(cells);
        let mut centred = vec![0.0; dim];
        let mut y = vec![0.0; self.rank];
        for (number, row) in rows.iter().enumerate() {
            let products = products[number * cells..][..cells].iter();
            scores.clear();
            scores.extend(products.zip(norms).zip(0..).map(|((p, n), c)| (p + n, c)));
            if shortlist < cells {
                scores.select_nth_unstable_by(shortlist - 1, by_score);
                scores.truncate(shortlist);
            }
            for (score, cell) in &mut scores {
                if self.anisotropy == 0.0 || *score > 0.25 * FAR * FAR {
                    continue;
                }
                let cell = *cell as usize;
                let mean = &self.means[cell * dim..][..dim];
                for ((c, x), m) in centred.iter_mut().zip(row).zip(mean) {
                    *c = x - m;
                }
                let (axes, variances, residual) = (self.shape)(cell);
                garlic_simd::dots(axes, &centred, &mut y);
                *score -= relief(self.anisotropy, variances, residual, &y);
            }
            each(number, &scores);
        }
    }
}

/// What is subtracted from the plain squared distance for a point with the coordinates `y` in a cell of this shape.
#[inline]
pub(crate) fn relief(anisotropy: f32, variances: &[f32], residual: f32, y: &[f32]) -> f32 {
    let sum: f32 = y
        .iter()
        .zip(variances)
        .map(|(y, v)| {
            // An axis without variance holds no point off the mean: it tells nothing.
            let weight = if *v > residual {
                1.0 - residual / v
            } else {
                0.0
            };
            weight * y * y
        })
        .sum();
    anisotropy * sum
}

fn by_score(a: &(f32, u32), b: &(f32, u32)) -> std::cmp::Ordering {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
}

/// Numbers the cells that have points from 0 on, keeping their order; returns how many there are.
fn renumber(labels: &mut [u32], count: usize) -> usize {
    let mut names = vec![u32::MAX; count];
    for label in labels.iter() {
        names[*label as usize] = 0;
    }
    let mut next = 0;
    for name in names.iter_mut().filter(|n| **n == 0) {
        *name = next;
        next += 1;
    }
    for label in labels {
        *label = names[*label as usize];
    }
    next as usize
}

/// How cells are fitted to their points.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FitOptions {
    pub(crate) axes: Axes,
    /// Share of a cell's shape that its score uses.
    pub(crate) anisotropy: f32,
    pub(crate) seed: u64,
}

/// Mean, leading axes and what is left over of some points.
pub(crate) struct Fitted {
    pub(crate) mean: Vec<f32>,
    /// As many axes as the points span, but at most the rank asked for.
    pub(crate) axes: Matrix,
    pub(crate) variances: Vec<f32>,
    pub(crate) residual: f32,
}

/// Fits one cell to its points.
pub(crate) fn fit_cell(rows: Rows<'_>, form: Axes, seed: u64) -> Fitted {
    let dim = rows.dim();
    let found = top_components(rows, form.rank.min(dim), seed);
    let total: f64 = rows
        .iter()
        .map(|r| f64::from(garlic_simd::l2_squared(r, &found.mean)))
        .sum::<f64>()
        / rows.len().max(1) as f64;
    let mut variances = found.values;
    let known = form.known.min(variances.len());
    let kept: f64 = variances[..known].iter().map(|v| f64::from(*v)).sum();
    let residual = if known == dim {
        // Full rank: the smallest variance stands for the rest.
        variances.last().copied().unwrap_or(0.0)
    } else {
        ((total - kept).max(0.0) / (dim - known) as f64) as f32
    };
    variances[known..].fill(residual);
    Fitted {
        mean: found.mean,
        axes: found.basis,
        variances,
        residual,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::{rows, uniform};

    /// Cells of random points, stretched by different amounts along every coordinate.
    fn model(dim: usize, rank: usize, anisotropy: f32) -> (Vec<f32>, AnisotropicCells) {
        let mut data = uniform(400, dim, 1);
        for row in data.chunks_exact_mut(dim) {
            for (i, x) in row.iter_mut().enumerate() {
                *x *= 12.0 / (1 + i) as f32;
            }
        }
        let mut labels: Vec<u32> = (0..400).map(|i| i / 80).collect();
        let ids: Vec<u32> = (0..400).collect();
        let rows = rows(&data, dim);
        let cancel = Cancel::default();
        let form = Axes { rank, known: rank };
        let fitted = AnisotropicCells::fit(
            rows,
            &ids,
            &mut labels,
            5,
            FitOptions {
                axes: form,
                anisotropy,
                seed: 3,
            },
            &cancel,
        )
        .unwrap();
        (data, fitted)
    }

    /// The score by its definition.
    fn score(model: &AnisotropicCells, cell: usize, x: &[f32]) -> f64 {
        let centred: Vec<f64> = x
            .iter()
            .zip(model.mean(cell))
            .map(|(x, m)| f64::from(*x) - f64::from(*m))
            .collect();
        let mut score: f64 = centred.iter().map(|c| c * c).sum();
        let residual = f64::from(model.residual_of(cell));
        let axes = model.axes(cell).chunks_exact(model.dim());
        for (axis, variance) in axes.zip(model.variances(cell)) {
            let y: f64 = axis
                .iter()
                .zip(&centred)
                .map(|(a, c)| f64::from(*a) * c)
                .sum();
            let weight = (1.0 - residual / f64::from(*variance)).max(0.0);
            score -= f64::from(model.anisotropy) * weight * y * y;
        }
        score
    }

    #[test]
    fn points_go_to_the_cell_with_the_smallest_score() {
        for (rank, anisotropy) in [(2, 0.0), (2, 0.5), (5, 1.0)] {
            let (data, model) = model(7, rank, anisotropy);
            let rows = rows(&data, 7);
            let labels = model.assign(rows, 5, &Cancel::default()).unwrap();
            let mut other = 0;
            for (row, label) in rows.iter().zip(&labels) {
                let scores: Vec<f64> = (0..5).map(|cell| score(&model, cell, row)).collect();
                let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
                assert!(scores[*label as usize] <= least + 1e-4, "{scores:?}");
                let plain = |c: usize| garlic_simd::l2_squared(row, model.mean(c));
                let nearest = (0..5).min_by(|a, b| plain(*a).total_cmp(&plain(*b)));
                other += usize::from(nearest != Some(*label as usize));
            }
            assert_eq!(other > 0, anisotropy > 0.0, "shapes matter: {other}");
        }
    }

    #[test]
    fn a_cell_far_away_takes_no_point() {
        let (data, model) = model(7, 2, 1.0);
        let mut means = model.means.to_vec();
        means[7..14].fill(FAR);
        let cells = Cells {
            anisotropy: 1.0,
            rank: 2,
            means: &means,
            shape: |cell: usize| {
                (
                    model.axes(cell),
                    model.variances(cell),
                    model.residual[cell],
                )
            },
        };
        let rows = rows(&data, 7);
        let labels = cells.assign(rows, 5, &Cancel::default()).unwrap();
        assert!(labels.iter().all(|label| *label != 1 && *label < 5));
    }

    #[test]
    fn a_fit_finds_mean_axes_and_what_is_left_over() {
        // Variance 12, 3 and 1/12 along three directions of five, none along the others.
        let dim = 5;
        let mut data = uniform(3000, dim, 2);
        for row in data.chunks_exact_mut(dim) {
            let [a, b, c] = [row[0] * 12.0, row[1] * 6.0, row[2]];
            row.copy_from_slice(&[4.0 + a, b - 1.0, c, 2.0, -3.0]);
        }
        let fitted = fit_cell(rows(&data, dim), Axes { rank: 2, known: 2 }, 1);
        for (found, expected) in fitted.mean.iter().zip([4.0, -1.0, 0.0, 2.0, -3.0]) {
            assert!((found - expected).abs() < 0.2, "{:?}", fitted.mean);
        }
        assert!(
            (fitted.variances[0] - 12.0).abs() < 0.6 && (fitted.variances[1] - 3.0).abs() < 0.2
        );
        assert!(fitted.axes.row(0)[0].abs() > 0.99 && fitted.axes.row(1)[1].abs() > 0.99);
        let third: f32 = 1.0 / 12.0;
        assert!(
            (fitted.residual - third / 3.0).abs() < 0.01,
            "{}",
            fitted.residual
        );
    }

    #[test]
    fn cells_without_points_are_dropped() {
        let mut labels = [4, 1, 1, 4, 0];
        assert_eq!(renumber(&mut labels, 6), 3);
        assert_eq!(labels, [2, 1, 1, 2, 0]);
    }

    #[test]
    fn axes_that_few_points_cannot_tell_look_like_any_direction() {
        let (dim, rank) = (7, 5);
        let form = Axes::new(rank, 10 * 2 * POINTS_PER_AXIS, 10);
        assert_eq!((form.rank, form.known), (rank, 2));
        assert_eq!(Axes::new(rank, 1_000_000, 10).known, rank);
        let data = uniform(2 * POINTS_PER_AXIS, dim, 5);
        let rows = rows(&data, dim);
        let all = fit_cell(rows, Axes { rank, known: rank }, 1);
        let some = fit_cell(rows, form, 1);
        assert_eq!(some.axes, all.axes, "codes have them all");
        assert_eq!(some.variances[..2], all.variances[..2]);
        assert!(all.variances[2..].iter().all(|v| *v > all.residual));
        assert_eq!(some.variances[2..], [some.residual; 3]);
        // The variance as a whole is the same.
        let whole = |f: &Fitted| f.variances.iter().sum::<f32>() + f.residual * (dim - rank) as f32;
        assert!((whole(&some) / whole(&all) - 1.0).abs() < 1e-5);
        // Such an axis does not count, and a model knows how many do.
        let y = [0.0, 0.0, 1.0, 1.0, 1.0];
        assert_eq!(relief(0.5, &some.variances, some.residual, &y), 0.0);
        let ids: Vec<u32> = (0..rows.len() as u32).collect();
        let mut labels = vec![0; rows.len()];
        let cancel = Cancel::default();
        let model = AnisotropicCells::fit(
            rows,
            &ids,
            &mut labels,
            1,
            FitOptions {
                axes: form,
                anisotropy: 0.5,
                seed: 1,
            },
            &cancel,
        )
        .unwrap();
        assert_eq!(model.form().known, 2);
    }
}
