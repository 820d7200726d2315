//! The nearest cell of every point and the cells that cover it, exactly, with most of the work pruned.
//!
//! For a block of points: a short prefix bounds the distance to every cell; the cell with the smallest bound
//! is evaluated in full; any other cell is followed only while its growing bound stays below what still
//! matters, the larger of tau and the distance to that first guess. Each of the three passes is parallel over
//! cells, because the points that still matter to one cell fill its tiles only when there are many of them.
//!
//! The prefix is one of the points' own coordinates, or of their coordinates along the leading axes of the data
//! (`marginal`). In the latter case a cell is followed through its marginal first, and what is left in full.

use garlic_core::{Cancel, Error, Lists, Result};
use garlic_linalg::Rows;
use garlic_simd::LANES;
use rayon::prelude::*;

use super::Gaussians;
use super::mahalanobis::{STEP, SimpleCell, Tile, madds};
use super::marginal::Projected;

/// Points handled together. Bounds for all of them and all cells are kept, so it limits memory.
const BLOCK: usize = 16_384;
/// Work of evaluating all points against a cell, in units of its marginal's work, from which on a marginal is computed:
/// a small batch is evaluated sooner.
const PAYING_WORK: u64 = 4;
/// Points whose first guess is looked up by one task.
const GUESS_CHUNK: usize = 256;

/// Work of an assignment, in multiply-adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AssignWork {
    /// What was done.
    pub done: u64,
    /// What evaluating every point against every cell would have cost.
    pub full: u64,
}

/// Cells of a set of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// Nearest cell of each point; ties go to the lower cell.
    pub nearest: Vec<u32>,
    /// Mahalanobis distance to it.
    pub distance: Vec<f32>,
    /// Cells within tau of each point, ascending.
    pub(crate) covering: Lists,
    /// What it cost.
    pub work: AssignWork,
}

impl Assignment {
    /// Cells within tau of a point, ascending; empty when none is.
    pub fn covering(&self, point: usize) -> &[u32] {
        self.covering.get(point)
    }

    /// Pairs (cell, point) of the final cells: every covering cell, or the nearest one if none covers.
    pub(crate) fn memberships(&self) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        (0..self.nearest.len()).flat_map(|p| {
            let covering = self.covering(p);
            let alone = covering.is_empty().then_some(self.nearest[p]);
            covering
                .iter()
                .copied()
                .chain(alone)
                .map(move |c| (c, p as u32))
        })
    }

    /// Pairs (cell, point) of a cell's own points for refinement: within tau of it, or nearest to it.
    pub(crate) fn holdings(&self) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        (0..self.nearest.len()).flat_map(|p| {
            let covering = self.covering(p);
            let nearest = self.nearest[p];
            let apart = (!covering.contains(&nearest)).then_some(nearest);
            covering
                .iter()
                .copied()
                .chain(apart)
                .map(move |c| (c, p as u32))
        })
    }
}

/// Finds the nearest and the covering cells of every point, in rayon's current pool.
///
/// # Errors
/// When cancelled.
pub fn assign(
    points: Rows<'_>,
    model: &Gaussians,
    tau: f32,
    cancel: &Cancel,
) -> Result<Assignment> {
    assign_projected(points, None, model, tau, cancel)
}

/// [`assign`] with the help of the same points along the leading axes of the data, where marginals can pay.
///
/// # Errors
/// When cancelled.
pub(crate) fn assign_projected(
    points: Rows<'_>,
    projected: Option<&Projected>,
    model: &Gaussians,
    tau: f32,
    cancel: &Cancel,
) -> Result<Assignment> {
    let full = points.len() as u64 * madds(model, model.dim());
    let projected = projected.filter(|along| along.marginal_madds() * PAYING_WORK <= full);
    let marginals = match projected {
        Some(projected) => Some(projected.marginals(model, cancel)?),
        None => None,
    };
    let mut all = Assignment {
        nearest: Vec::with_capacity(points.len()),
        distance: Vec::with_capacity(points.len()),
        covering: Lists {
            offsets: vec![0],
            items: Vec::new(),
        },
        work: AssignWork {
            done: marginals.as_ref().map_or(0, |m| m.madds),
            full: full * model.len() as u64,
        },
    };
    for start in (0..points.len()).step_by(BLOCK) {
        let range = start..(start + BLOCK).min(points.len());
        let along = projected.zip(marginals.as_ref());
        let marginal = along.map(|(projected, marginals)| Marginal {
            points: projected.points().slice(range.clone()),
            model: &marginals.gaussians,
            margins: &marginals.margins,
        });
        let block = points.slice(range);
        let mut result = assign_block(block, marginal, model, tau * tau, cancel)?;
        result.covering.sort_unstable();
        let mut pairs = result.covering.iter().peekable();
        for (p, (cell, squared)) in result.nearest.iter().enumerate() {
            all.nearest.push(*cell);
            all.distance.push(squared.sqrt());
            while let Some((_, cell)) = pairs.next_if(|(point, _)| *point as usize == p) {
                all.covering.items.push(*cell);
            }
            all.covering.offsets.push(all.covering.items.len());
        }
        all.work.done += result.madds;
    }
    Ok(all)
}

/// What is known of a block's points so far.
struct BlockResult {
    /// Nearest cell and squared distance of each point.
    nearest: Vec<(u32, f32)>,
    /// (point in the block, cell) of every cover.
    covering: Vec<(u32, u32)>,
    madds: u64,
}

/// Final squared distances of some points to one cell, and what they cost.
struct Evaluated {
    points: Vec<(u32, f32)>,
    madds: u64,
}

/// The points of a block along the leading axes, and the marginals of all cells.
#[derive(Clone, Copy)]
struct Marginal<'a> {
    points: Rows<'a>,
    model: &'a Gaussians,
    /// What rounding may have added to a distance in a cell's marginal.
    margins: &'a [f32],
}

impl Marginal<'_> {
    /// What a squared distance in a cell's marginal may be for the squared distance to the cell to be at most `limit`.
    fn limit(&self, cell: usize, limit: f32) -> f32 {
        (limit.sqrt() + self.margins[cell]).powi(2)
    }

    /// Those of `ids` whose distance in the cell's marginal does not exceed their limits.
    fn remaining(
        &self,
        cell: usize,
        ids: &[u32],
        limits: &[f32],
        madds_done: &mut u64,
    ) -> Vec<u32> {
        let mut tile = Tile::new(self.model.dim());
        let mut remaining = Vec::new();
        for lanes in ids.chunks(LANES) {
            let limits: [f32; LANES] = std::array::from_fn(|t| match lanes.get(t) {
                Some(p) => self.limit(cell, limits[*p as usize]),
                None => f32::NEG_INFINITY,
            });
            let alive = |sums: &[f32; LANES]| sums.iter().zip(limits).any(|(s, l)| *s <= l);
            let (bounds, done) = tile.distances(self.points, lanes, self.model, cell, alive);
            *madds_done += LANES as u64 * madds(self.model, done);
            let within = lanes.iter().zip(bounds).zip(limits);
            remaining.extend(within.filter(|((_, b), l)| b <= l).map(|((p, _), _)| *p));
        }
        remaining
    }
}

fn assign_block(
    points: Rows<'_>,
    marginal: Option<Marginal<'_>>,
    model: &Gaussians,
    tau_squared: f32,
    cancel: &Cancel,
) -> Result<BlockResult> {
    let mut result = BlockResult {
        nearest: vec![(u32::MAX, f32::INFINITY); points.len()],
        covering: Vec::new(),
        madds: 0,
    };
    let bounds = match marginal {
        Some(marginal) => Bounds::of(marginal.points, marginal.model, cancel)?,
        None => Bounds::of(points, model, cancel)?,
    };
    result.madds += bounds.madds;
    let guess = bounds.smallest(points.len());

    // The most promising cell of every point, in full.
    let pairs = guess.iter().enumerate().map(|(p, cell)| (*cell, p as u32));
    let guessed = Lists::group(model.len(), pairs);
    let everything = [f32::INFINITY; LANES];
    let pairs = |cell: usize| Pairs {
        points,
        model,
        cell,
        simple: SimpleCell::of(model, cell),
    };
    let evaluated = for_each_cell(model, cancel, |cell, tile, out| {
        let pairs = pairs(cell);
        for lanes in guessed.get(cell).chunks(LANES) {
            pairs.evaluate(lanes, &everything, tile, out);
        }
    })?;
    result.take(evaluated, tau_squared);

    // Every other cell, for as long as it may still matter.
    let limits: Vec<f32> = result
        .nearest
        .iter()
        .map(|n| n.1.max(tau_squared))
        .collect();
    let evaluated = for_each_cell(model, cancel, |cell, tile, out| {
        let raised = |limit: f32| match marginal {
            Some(marginal) => marginal.limit(cell, limit),
            None => limit,
        };
        let mut survivors = bounds.survivors(cell, &limits, raised, &guess);
        if let Some(marginal) = marginal {
            survivors = marginal.remaining(cell, &survivors, &limits, &mut out.madds);
        }
        let pairs = pairs(cell);
        for lanes in survivors.chunks(LANES) {
            let limits = std::array::from_fn(|t| match lanes.get(t) {
                Some(p) => limits[*p as usize],
                None => f32::NEG_INFINITY,
            });
            pairs.evaluate(lanes, &limits, tile, out);
        }
    })?;
    result.take(evaluated, tau_squared);
    Ok(result)
}

/// Runs `task` for all cells in parallel; results come in the order of the cells.
fn for_each_cell(
    model: &Gaussians,
    cancel: &Cancel,
    task: impl Fn(usize, &mut Tile, &mut Evaluated) + Sync,
) -> Result<Vec<Evaluated>> {
    (0..model.len())
        .into_par_iter()
        .map_init(
            || Tile::new(model.dim()),
            |tile, cell| {
                cancel.check()?;
                let mut out = Evaluated {
                    points: Vec::new(),
                    madds: 0,
                };
                task(cell, tile, &mut out);
                Ok(out)
            },
        )
        .collect()
}

/// Some points and a cell.
struct Pairs<'a> {
    points: Rows<'a>,
    model: &'a Gaussians,
    cell: usize,
    /// The cell, unless its factor is full.
    simple: Option<SimpleCell<'a>>,
}

impl Pairs<'_> {
    /// Distances of one tile of points, unless all of them pass their limits on the way.
    fn evaluate(&self, lanes: &[u32], limits: &[f32; LANES], tile: &mut Tile, out: &mut Evaluated) {
        if let Some(simple) = &self.simple {
            for (p, limit) in lanes.iter().zip(limits) {
                let (squared, done) = simple.distance(self.points.row(*p as usize), *limit);
                out.madds += madds(self.model, done);
                if done == self.model.dim() && squared <= *limit {
                    out.points.push((*p, squared));
                }
            }
            return;
        }
        let alive = |sums: &[f32; LANES]| sums.iter().zip(limits).any(|(s, l)| s <= l);
        let (squared, done) = tile.distances(self.points, lanes, self.model, self.cell, alive);
        out.madds += LANES as u64 * madds(self.model, done);
        if done == self.model.dim() {
            let found = lanes.iter().zip(squared).zip(limits);
            let within = found.filter(|((_, s), l)| s <= *l);
            out.points.extend(within.map(|((p, s), _)| (*p, s)));
        }
    }
}

impl BlockResult {
    /// Takes final distances into account, cell after cell.
    fn take(&mut self, evaluated: Vec<Evaluated>, tau_squared: f32) {
        for (cell, evaluated) in evaluated.into_iter().enumerate() {
            let cell = cell as u32;
            self.madds += evaluated.madds;
            for (point, squared) in evaluated.points {
                let best = &mut self.nearest[point as usize];
                if (squared, cell) < (best.1, best.0) || best.0 == u32::MAX {
                    *best = (cell, squared);
                }
                if squared <= tau_squared {
                    self.covering.push((point, cell));
                }
            }
        }
    }
}

/// Lower bounds of the squared distances of a block's points to every cell.
struct Bounds {
    /// Points of a row, rounded up to whole tiles.
    stride: usize,
    /// A row a cell.
    values: Vec<f32>,
    madds: u64,
}

impl Bounds {
    fn of(points: Rows<'_>, model: &Gaussians, cancel: &Cancel) -> Result<Self> {
        let short = STEP.min(model.dim());
        let tiles = points.len().div_ceil(LANES);
        let stride = tiles * LANES;
        // The first coordinates of every tile of points, transposed once for all cells.
        let mut columns = vec![0.0; stride * short];
        columns
            .par_chunks_mut(short * LANES)
            .enumerate()
            .for_each(|(tile, columns)| {
                for t in 0..LANES {
                    let p = (tile * LANES + t).min(points.len() - 1);
                    for (i, x) in points.row(p)[..short].iter().enumerate() {
                        columns[i * LANES + t] = *x;
                    }
                }
            });
        let mut values = vec![0.0; stride * model.len()];
        values
            .par_chunks_mut(stride)
            .enumerate()
            .try_for_each_init(
                || Tile::new(model.dim()),
                |tile, (cell, bounds)| {
                    cancel.check()?;
                    if let Some(simple) = SimpleCell::of(model, cell) {
                        let rows = bounds.iter_mut().zip(points.iter());
                        rows.for_each(|(bound, row)| *bound = simple.prefix(row));
                        return Ok(());
                    }
                    let tiles = bounds
                        .chunks_exact_mut(LANES)
                        .zip(columns.chunks_exact(short * LANES));
                    for (bounds, columns) in tiles {
                        bounds.copy_from_slice(&tile.prefix(columns, model, cell, short));
                    }
                    Ok::<_, Error>(())
                },
            )?;
        let madds = (stride * model.len()) as u64 * madds(model, short);
        Ok(Self {
            stride,
            values,
            madds,
        })
    }

    /// The cell with the smallest bound for every point.
    fn smallest(&self, points: usize) -> Vec<u32> {
        let mut guess = vec![0u32; points];
        guess
            .par_chunks_mut(GUESS_CHUNK)
            .enumerate()
            .for_each(|(chunk, guess)| {
                let mut best = [f32::INFINITY; GUESS_CHUNK];
                for (cell, bounds) in self.values.chunks_exact(self.stride).enumerate() {
                    let bounds = &bounds[chunk * GUESS_CHUNK..];
                    for ((g, b), bound) in guess.iter_mut().zip(&mut best).zip(bounds) {
                        if bound < b {
                            (*g, *b) = (cell as u32, *bound);
                        }
                    }
                }
            });
        guess
    }

    /// Points to which a cell may still matter, those of a like fate side by side.
    fn survivors(
        &self,
        cell: usize,
        limits: &[f32],
        raised: impl Fn(f32) -> f32,
        guess: &[u32],
    ) -> Vec<u32> {
        let bounds = &self.values[cell * self.stride..][..limits.len()];
        let mut found: Vec<(f32, u32)> = Vec::new();
        for (p, (bound, limit)) in bounds.iter().zip(limits).enumerate() {
            if *bound <= raised(*limit) && guess[p] as usize != cell {
                found.push((bound / limit, p as u32));
            }
        }
        found.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        found.into_iter().map(|(_, p)| p).collect()
    }
}

#[cfg(test)]
mod tests {
    use garlic_linalg::{Matrix, random_stream, uniform_unit};

    use super::*;
    use crate::config::Config;
    use crate::gaussians::{Factors, packed_len};

    /// Points near a plane of few dimensions that lies askew, so that no coordinate tells much, and cells at some of them.
    /// `narrow` is the smallest scale on the diagonal of a factor.
    fn askew(
        dim: usize,
        count: usize,
        cells: usize,
        narrow: f32,
        seed: u64,
    ) -> (Vec<f32>, Gaussians) {
        const HIDDEN: usize = 12;
        let mut rng = random_stream(seed, 7);
        let mut draw = |scale: f64| (scale * (2.0 * uniform_unit(&mut rng) - 1.0)) as f32;
        let plane: Vec<f32> = (0..HIDDEN * dim).map(|_| draw(1.0)).collect();
        let mut points = Vec::with_capacity(count * dim);
        for _ in 0..count {
            let place: Vec<f32> = (0..HIDDEN).map(|_| draw(2.0)).collect();
            for i in 0..dim {
                let along = (0..HIDDEN).map(|h| place[h] * plane[h * dim + i]);
                points.push(along.sum::<f32>() + draw(0.3));
            }
        }
        let mut factors = vec![0.0; cells * packed_len(dim)];
        for factor in factors.chunks_exact_mut(packed_len(dim)) {
            for i in 0..dim {
                for j in 0..i {
                    factor[packed_len(i) + j] = draw(0.2 / (dim as f64).sqrt());
                }
                factor[packed_len(i) + i] = narrow.max(0.5 + draw(0.5));
            }
        }
        let means = points[..cells * dim].to_vec();
        let model = Gaussians {
            means: Matrix::from_vec(means, dim).unwrap(),
            factors: Factors::Full(factors),
        };
        (points, model)
    }

    #[test]
    fn few_points_are_evaluated_without_marginals() {
        let cancel = Cancel::default();
        let (data, model) = askew(96, 700, 40, 0.3, 5);
        let points = Rows::new(&data, 96).unwrap();
        let projected = Projected::of(points, &Config::default()).unwrap();
        for (count, same) in [(50, true), (700, false)] {
            let ids: Vec<u32> = (0..count).collect();
            let some = Matrix::gather(points, &ids);
            let plain = assign(some.as_rows(), &model, 1.0, &cancel).unwrap();
            let along = projected.gather(&ids);
            let pruned =
                assign_projected(some.as_rows(), Some(&along), &model, 1.0, &cancel).unwrap();
            assert_eq!(plain.nearest, pruned.nearest);
            assert_eq!(plain.work.done == pruned.work.done, same, "{count} points");
        }
    }

    #[test]
    fn marginals_change_the_work_and_nothing_else() {
        let cancel = Cancel::default();
        for (dim, narrow) in [(96, 0.01), (96, 0.3), (200, 0.1), (300, 0.5)] {
            let (data, model) = askew(dim, 700, 40, narrow, dim as u64);
            let points = Rows::new(&data, dim).unwrap();
            let projected = Projected::of(points, &Config::default()).unwrap();
            let mut farthest = assign(points, &model, 0.0, &cancel).unwrap().distance;
            farthest.sort_by(f32::total_cmp);
            // Radii that cover nothing, some points and most of them.
            for tau in [0.0, farthest[200], farthest[600]] {
                let plain = assign(points, &model, tau, &cancel).unwrap();
                let pruned =
                    assign_projected(points, Some(&projected), &model, tau, &cancel).unwrap();
                let label = format!("d {dim}, scales from {narrow}, tau {tau}");
                assert_eq!(plain.nearest, pruned.nearest, "{label}");
                assert_eq!(plain.distance, pruned.distance, "{label}");
                assert!(plain.covering == pruned.covering, "{label}");
                if narrow >= 0.3 {
                    assert!(pruned.work.done < plain.work.done, "{label}");
                }
            }
        }
    }
}
