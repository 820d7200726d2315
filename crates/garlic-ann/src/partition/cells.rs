//! Cells with a mean, a few principal axes and one residual variance, and their shrunk anisotropic score.
//!
//! A cell has axes u_j, variances lambda_j along them and the residual variance s2. The score of a point x is `|x -
//! mean|^2 - a * sum_j (1 - s2 / lambda_j) y_j^2` with `y_j = u_j . (x - mean)`. With a = 0 it is the squared
//! distance to the mean, with a = 1 the squared Mahalanobis distance times s2.

use garlic_linalg::{Matrix, Operand, Rows, gemm, top_components};
use rayon::prelude::*;

use garlic_core::Cancel;
use garlic_core::Lists;
use garlic_core::Result;
use garlic_core::buffer::Buffer;

/// Number of points per task.
const POINTS_PER_TASK: usize = 256;

/// Number of points per cell and axis that the score needs. With fewer, the variances are those of a random sample,
/// and they make routing worse. The number of points is averaged over cells, so that all cells score the same number
/// of axes. Otherwise, cells with more axes would absorb the others.
const POINTS_PER_AXIS: usize = 24;

/// Numbers of axes of a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisCounts {
    /// Number of axes. Codes store the coordinates along all of them.
    pub(crate) rank: usize,
    /// Number of leading axes that the score uses.
    pub(crate) scored_axes: usize,
}

impl AxisCounts {
    /// Counts for `cells` cells of `points` points with `rank` axes each.
    pub(crate) fn new(rank: usize, points: usize, cells: usize) -> Self {
        let scored_axes = rank.min(points / (POINTS_PER_AXIS * cells.max(1)));
        Self { rank, scored_axes }
    }
}

/// Coordinate of the mean of a pruned cell. It is farther than any point, but its square is finite.
pub(crate) const PRUNED_COORDINATE: f32 = 1e18;

/// Marks the absence of a cell.
pub(crate) const NO_CELL: u32 = u32::MAX;

/// Low-rank plus isotropic cells. They store rank + 2 values per dimension instead of a covariance matrix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AnisotropicCells {
    /// Strength of the anisotropy in the score, from 0 to 1.
    pub(crate) anisotropy: f32,
    /// Dimension of the space.
    pub(crate) dim: usize,
    /// Number of axes per cell. Cells whose points span fewer dimensions end with zero axes.
    pub(crate) rank: usize,
    /// One mean per row.
    pub(crate) means: Buffer<f32>,
    /// `rank` axes of every cell, one per row.
    pub(crate) axes: Buffer<f32>,
    /// Variance along every axis. For axes that the score does not use, it is the residual variance.
    pub(crate) variances: Buffer<f32>,
    /// Variance in a direction orthogonal to the axes, per cell.
    pub(crate) residual_variances: Buffer<f32>,
}

impl AnisotropicCells {
    /// Number of cells.
    pub(crate) fn len(&self) -> usize {
        self.residual_variances.len()
    }

    /// Dimension of the space the cells live in.
    pub(crate) fn dim(&self) -> usize {
        self.dim
    }

    /// Number of axes of a cell.
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// Numbers of axes of every cell.
    pub(crate) fn axis_counts(&self) -> AxisCounts {
        let scored_axes = |cell| {
            let above = |v: &&f32| **v > self.residual_variance(cell);
            self.variances(cell).iter().filter(above).count()
        };
        AxisCounts {
            rank: self.rank,
            scored_axes: (0..self.len()).map(scored_axes).max().unwrap_or(0),
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
    pub(crate) fn residual_variance(&self, cell: usize) -> f32 {
        self.residual_variances[cell]
    }

    /// A cell by itself.
    pub(crate) fn shape(&self, cell: usize) -> CellShape<'_> {
        CellShape {
            mean: self.mean(cell),
            axes: self.axes(cell),
            variances: self.variances(cell),
            residual_variance: self.residual_variance(cell),
        }
    }

    /// Fits means and shapes to the points `ids` with their `labels`. Cells without points are dropped and labels
    /// renumbered.
    pub(crate) fn fit(
        points: Rows<'_>,
        ids: &[u32],
        labels: &mut [u32],
        count: usize,
        shape: FitOptions,
        cancel: &Cancel,
    ) -> Result<Self> {
        let FitOptions {
            axes: axis_counts,
            anisotropy,
            seed,
        } = shape;
        let count = renumber(labels, count);
        let pairs = labels.iter().copied().zip(ids.iter().copied());
        let members = Lists::group(count, pairs);
        let (dim, rank) = (points.dim(), axis_counts.rank);
        let fitted: Vec<FittedCell> = (0..count)
            .into_par_iter()
            .map(|cell| {
                cancel.check()?;
                let rows = Matrix::gather(points, members.get(cell));
                Ok(FittedCell::fit(
                    rows.as_rows(),
                    axis_counts,
                    seed ^ cell as u64,
                ))
            })
            .collect::<Result<_>>()?;
        Ok(Self::from_fitted(fitted, anisotropy, dim, rank))
    }

    /// The cells that were fitted one by one.
    pub(crate) fn from_fitted(
        fitted: Vec<FittedCell>,
        anisotropy: f32,
        dim: usize,
        rank: usize,
    ) -> Self {
        let (mut means, mut axes) = (Vec::new(), Vec::new());
        let (mut variances, mut residual_variances) =
            (Vec::new(), Vec::with_capacity(fitted.len()));
        for cell in fitted {
            means.extend(cell.mean);
            axes.extend(cell.axes);
            variances.extend(cell.variances);
            residual_variances.push(cell.residual_variance);
        }
        Self {
            anisotropy,
            dim,
            rank,
            means: means.into(),
            axes: axes.into(),
            variances: variances.into(),
            residual_variances: residual_variances.into(),
        }
    }

    /// Assigns every point to the cell with the smallest score among its `shortlist` nearest cells by plain distance.
    pub(crate) fn assign(
        &self,
        points: Rows<'_>,
        shortlist: usize,
        cancel: &Cancel,
    ) -> Result<Vec<u32>> {
        self.cells().assign(points, shortlist, cancel)
    }

    /// The second-best cell of every point: the one with the smallest score except that of `labels`. It is [`NO_CELL`]
    /// if its distance exceeds that of the own cell by more than the factor `times`. Scores are squared distances.
    pub(crate) fn second_cells(
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
                return NO_CELL;
            };
            let next = others.fold(first, |best, other| match by_score(&other, &best).is_lt() {
                true => other,
                false => best,
            });
            // The own cell is not on the shortlist if the caller chose it. All others are nearer then.
            let own = scores.iter().find(|(_, cell)| *cell == own);
            let length = garlic_simd::dot(points.row(point), points.row(point));
            let squared = |score: f32| f64::from(score + length);
            match own.is_none_or(|own| squared(next.0) <= times * squared(own.0)) {
                true => next.1,
                false => NO_CELL,
            }
        };
        self.cells()
            .decide(points, shortlist.max(2), cancel, decide)
    }

    fn cells<'a>(&'a self) -> Cells<'a, impl Fn(usize) -> ShapeSlices<'a> + Sync> {
        Cells {
            anisotropy: self.anisotropy,
            rank: self.rank,
            means: &self.means,
            shape: |cell: usize| {
                (
                    self.axes(cell),
                    self.variances(cell),
                    self.residual_variances[cell],
                )
            },
        }
    }
}

/// Axes of a cell, variances along them, and residual variance.
pub(crate) type ShapeSlices<'a> = (&'a [f32], &'a [f32], f32);

/// Cells that points are assigned to. `shape` returns the axes, variances and residual variance of a cell.
pub(crate) struct Cells<'a, F> {
    pub(crate) anisotropy: f32,
    pub(crate) rank: usize,
    /// One mean per row. A cell at [`PRUNED_COORDINATE`] gets no point.
    pub(crate) means: &'a [f32],
    pub(crate) shape: F,
}

impl<'a, F> Cells<'a, F>
where
    F: Fn(usize) -> ShapeSlices<'a> + Sync,
{
    /// Assigns every point to the cell with the smallest score among its `shortlist` nearest cells by plain distance.
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
            let mut best = (f32::INFINITY, NO_CELL);
            for score in scores {
                if by_score(score, &best).is_lt() {
                    best = *score;
                }
            }
            // All scores are NaN, as in a damaged file.
            match best.1 {
                NO_CELL => scores.first().map_or(0, |first| first.1),
                cell => cell,
            }
        })
    }

    /// Calls `decide` for each point number with the scores of its `shortlist` nearest cells by plain distance. The
    /// scores are unordered and exclude the squared length of the point.
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
        decided
            .par_chunks_mut(POINTS_PER_TASK)
            .enumerate()
            .try_for_each(|(block, decided)| -> Result<()> {
                cancel.check()?;
                let first = block * POINTS_PER_TASK;
                let rows = points.slice(first..first + decided.len());
                self.score_block(rows, &norms, shortlist, |row, scores| {
                    decided[row] = decide(first + row, scores);
                });
                Ok(())
            })?;
        Ok(decided)
    }

    /// Calls `each` with every row of a block and its scores.
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
                if self.anisotropy == 0.0 || *score > 0.25 * PRUNED_COORDINATE * PRUNED_COORDINATE {
                    continue;
                }
                let cell = *cell as usize;
                let mean = &self.means[cell * dim..][..dim];
                for ((c, x), m) in centred.iter_mut().zip(row).zip(mean) {
                    *c = x - m;
                }
                let (axes, variances, residual_variance) = (self.shape)(cell);
                garlic_simd::dots(axes, &centred, &mut y);
                *score -= anisotropic_discount(self.anisotropy, variances, residual_variance, &y);
            }
            each(number, &scores);
        }
    }
}

/// The amount subtracted from the squared distance, for a point with the coordinates `y` in a cell of this shape.
#[inline]
pub(crate) fn anisotropic_discount(
    anisotropy: f32,
    variances: &[f32],
    residual_variance: f32,
    y: &[f32],
) -> f32 {
    let sum: f32 = y
        .iter()
        .zip(variances)
        .map(|(y, v)| {
            // The discount is zero for axes without excess variance.
            let weight = if *v > residual_variance {
                1.0 - residual_variance / v
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

/// Renumbers the cells that have points from 0 on in their order. Returns their number. Points without a cell,
/// [`NO_CELL`], stay as they are.
pub(crate) fn renumber(labels: &mut [u32], count: usize) -> usize {
    let mut names = vec![u32::MAX; count];
    for label in labels.iter().filter(|label| **label != NO_CELL) {
        names[*label as usize] = 0;
    }
    let mut next = 0;
    for name in names.iter_mut().filter(|n| **n == 0) {
        *name = next;
        next += 1;
    }
    for label in labels.iter_mut().filter(|label| **label != NO_CELL) {
        *label = names[*label as usize];
    }
    next as usize
}

/// Options of the fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FitOptions {
    pub(crate) axes: AxisCounts,
    /// Strength of the anisotropy in the score, from 0 to 1.
    pub(crate) anisotropy: f32,
    pub(crate) seed: u64,
}

/// A cell in the space of the index's transform.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CellShape<'a> {
    /// Mean of its points.
    pub mean: &'a [f32],
    /// Principal axes, one behind the other; zeros where its points span fewer.
    pub axes: &'a [f32],
    /// Variance along each axis.
    pub variances: &'a [f32],
    /// Variance in every other direction.
    pub residual_variance: f32,
}

/// A cell that was fitted to its points.
#[derive(Clone, Debug)]
pub(crate) struct FittedCell {
    pub(crate) mean: Vec<f32>,
    /// As many axes as were requested; zeros where the points span fewer.
    pub(crate) axes: Vec<f32>,
    pub(crate) variances: Vec<f32>,
    pub(crate) residual_variance: f32,
}

impl FittedCell {
    /// Fits one cell to its points.
    pub(crate) fn fit(rows: Rows<'_>, axis_counts: AxisCounts, seed: u64) -> Self {
        let (dim, rank) = (rows.dim(), axis_counts.rank);
        let found = top_components(rows, rank.min(dim), seed);
        let total: f64 = rows
            .iter()
            .map(|r| f64::from(garlic_simd::l2_squared(r, &found.mean)))
            .sum::<f64>()
            / rows.len().max(1) as f64;
        let mut variances = found.values;
        let scored_axes = axis_counts.scored_axes.min(variances.len());
        let kept: f64 = variances[..scored_axes].iter().map(|v| f64::from(*v)).sum();
        let residual_variance = if scored_axes == dim {
            // With full rank, the smallest variance serves as the residual variance.
            variances.last().copied().unwrap_or(0.0)
        } else {
            ((total - kept).max(0.0) / (dim - scored_axes) as f64) as f32
        };
        variances[scored_axes..].fill(residual_variance);
        variances.resize(rank, 0.0);
        let mut axes = found.basis.into_vec();
        axes.resize(rank * dim, 0.0);
        Self {
            mean: found.mean,
            axes,
            variances,
            residual_variance,
        }
    }

    /// The cell, borrowed.
    pub(crate) fn shape(&self) -> CellShape<'_> {
        CellShape {
            mean: &self.mean,
            axes: &self.axes,
            variances: &self.variances,
            residual_variance: self.residual_variance,
        }
    }
}

impl From<CellShape<'_>> for FittedCell {
    fn from(shape: CellShape<'_>) -> Self {
        Self {
            mean: shape.mean.to_vec(),
            axes: shape.axes.to_vec(),
            variances: shape.variances.to_vec(),
            residual_variance: shape.residual_variance,
        }
    }
}

#[cfg(test)]
mod tests;
