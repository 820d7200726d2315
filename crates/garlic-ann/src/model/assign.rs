//! The nearest cell of every point and the cells that cover it, exactly, with most of the work pruned.
//!
//! For a block of points: a short prefix bounds the distance to every cell; the cell with the smallest bound
//! is evaluated in full; any other cell is followed only while its growing bound stays below what still
//! matters, the larger of tau and the best distance so far.

use garlic_linalg::Rows;
use garlic_simd::LANES;
use rayon::prelude::*;

use super::gaussians::Gaussians;
use super::tile::{self, STEP, Tile};
use crate::cancel::Cancel;
use crate::error::Result;

/// Points handled by one task. Fixed, so that the result does not depend on the number of threads.
const BLOCK: usize = 1024;

/// Lists of cells (or points), one list a row, end to end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Lists {
    pub(crate) offsets: Vec<usize>,
    pub(crate) items: Vec<u32>,
}

impl Lists {
    /// Number of lists.
    pub(crate) fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// One list.
    pub(crate) fn get(&self, i: usize) -> &[u32] {
        &self.items[self.offsets[i]..self.offsets[i + 1]]
    }

    /// From pairs (list, item): items keep the order in which they come.
    pub(crate) fn group(lists: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut offsets = vec![0usize; lists + 1];
        for (list, _) in pairs.clone() {
            offsets[list as usize + 1] += 1;
        }
        for i in 0..lists {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let mut items = vec![0u32; offsets[lists]];
        for (list, item) in pairs {
            let place = &mut next[list as usize];
            items[*place] = item;
            *place += 1;
        }
        Self { offsets, items }
    }
}

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

/// Finds the nearest and the covering cells of every point.
pub fn assign(
    points: Rows<'_>,
    model: &Gaussians,
    tau: f32,
    cancel: &Cancel,
) -> Result<Assignment> {
    let ids: Vec<u32> = (0..points.len() as u32).collect();
    let blocks: Vec<BlockResult> = ids
        .par_chunks(BLOCK)
        .map_init(
            || Scratch::new(model),
            |scratch, block| {
                cancel.check()?;
                assign_block(points, block, model, tau, scratch, cancel)
            },
        )
        .collect::<Result<_>>()?;

    let mut all = Assignment {
        nearest: Vec::with_capacity(points.len()),
        distance: Vec::with_capacity(points.len()),
        covering: Lists {
            offsets: vec![0],
            items: Vec::new(),
        },
        work: AssignWork {
            done: 0,
            full: points.len() as u64 * model.len() as u64 * tile::madds(model, model.dim()),
        },
    };
    for mut block in blocks {
        block.covering.sort_unstable();
        let mut pairs = block.covering.iter().peekable();
        for (p, (cell, squared)) in block.nearest.iter().enumerate() {
            all.nearest.push(*cell);
            all.distance.push(squared.sqrt());
            while let Some((_, cell)) = pairs.next_if(|(point, _)| *point as usize == p) {
                all.covering.items.push(*cell);
            }
            all.covering.offsets.push(all.covering.items.len());
        }
        all.work.done += block.madds;
    }
    Ok(all)
}

struct Scratch {
    tile: Tile,
    /// First coordinates of the block, tile by tile, transposed.
    columns: Vec<f32>,
    /// Prefix bounds: a row of `BLOCK` a cell.
    bounds: Vec<f32>,
    survivors: Vec<(f32, u32)>,
    lanes: Vec<u32>,
}

impl Scratch {
    fn new(model: &Gaussians) -> Self {
        Self {
            tile: Tile::new(model.dim()),
            columns: vec![0.0; STEP.min(model.dim()) * BLOCK],
            bounds: vec![0.0; BLOCK * model.len()],
            survivors: Vec::new(),
            lanes: Vec::new(),
        }
    }
}

struct BlockResult {
    /// Nearest cell and squared distance of each point.
    nearest: Vec<(u32, f32)>,
    /// (point in the block, cell) of every cover.
    covering: Vec<(u32, u32)>,
    madds: u64,
}

fn assign_block(
    points: Rows<'_>,
    block: &[u32],
    model: &Gaussians,
    tau: f32,
    scratch: &mut Scratch,
    cancel: &Cancel,
) -> Result<BlockResult> {
    let dim = model.dim();
    let short = STEP.min(dim);
    let tau_squared = tau * tau;
    let mut madds = prefix_bounds(points, block, model, scratch);

    // The most promising cell of every point, in full.
    let mut guess = vec![(u32::MAX, f32::INFINITY); block.len()];
    for cell in 0..model.len() {
        let bounds = &scratch.bounds[cell * BLOCK..][..block.len()];
        for (g, bound) in guess.iter_mut().zip(bounds) {
            if *bound < g.1 || g.0 == u32::MAX {
                *g = (cell as u32, *bound);
            }
        }
    }
    let mut result = BlockResult {
        nearest: vec![(u32::MAX, f32::INFINITY); block.len()],
        covering: Vec::new(),
        madds: 0,
    };
    let guessed = Lists::group(
        model.len(),
        guess.iter().enumerate().map(|(p, g)| (g.0, p as u32)),
    );
    for cell in 0..model.len() {
        for lanes in guessed.get(cell).chunks(LANES) {
            scratch.lanes.clear();
            scratch
                .lanes
                .extend(lanes.iter().map(|p| block[*p as usize]));
            let (squared, done) =
                scratch
                    .tile
                    .distances(points, &scratch.lanes, model, cell, |_| true);
            madds += LANES as u64 * tile::madds(model, done);
            for (p, squared) in lanes.iter().zip(squared) {
                result.offer(*p, cell as u32, squared, tau_squared);
            }
        }
    }

    // Every other cell, for as long as it may still matter.
    for cell in 0..model.len() {
        cancel.check()?;
        let bounds = &scratch.bounds[cell * BLOCK..][..block.len()];
        scratch.survivors.clear();
        for (p, bound) in bounds.iter().enumerate() {
            let limit = result.nearest[p].1.max(tau_squared);
            if *bound <= limit && guess[p].0 != cell as u32 {
                scratch.survivors.push((*bound / limit, p as u32));
            }
        }
        // Points of a like fate share a tile.
        scratch
            .survivors
            .sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for lanes in scratch.survivors.chunks(LANES) {
            scratch.lanes.clear();
            scratch
                .lanes
                .extend(lanes.iter().map(|(_, p)| block[*p as usize]));
            let limits: [f32; LANES] = std::array::from_fn(|t| match lanes.get(t) {
                Some((_, p)) => result.nearest[*p as usize].1.max(tau_squared),
                None => f32::NEG_INFINITY,
            });
            let alive = |sums: &[f32; LANES]| sums.iter().zip(&limits).any(|(s, l)| s <= l);
            let (squared, done) =
                scratch
                    .tile
                    .distances(points, &scratch.lanes, model, cell, alive);
            madds += LANES as u64 * tile::madds(model, done);
            if done == dim {
                for ((_, p), squared) in lanes.iter().zip(squared) {
                    result.offer(*p, cell as u32, squared, tau_squared);
                }
            }
        }
    }
    debug_assert!(short <= dim);
    result.madds = madds;
    Ok(result)
}

impl BlockResult {
    /// Takes the final distance of a point to a cell into account.
    fn offer(&mut self, point: u32, cell: u32, squared: f32, tau_squared: f32) {
        let best = &mut self.nearest[point as usize];
        if squared < best.1 || (squared == best.1 && cell < best.0) || best.0 == u32::MAX {
            *best = (cell, squared);
        }
        if squared <= tau_squared {
            self.covering.push((point, cell));
        }
    }
}

/// Fills `scratch.bounds` and returns the multiply-adds spent.
fn prefix_bounds(points: Rows<'_>, block: &[u32], model: &Gaussians, scratch: &mut Scratch) -> u64 {
    let short = STEP.min(model.dim());
    let tiles = block.len().div_ceil(LANES);
    for tile in 0..tiles {
        let columns = &mut scratch.columns[tile * short * LANES..][..short * LANES];
        for t in 0..LANES {
            let p = (tile * LANES + t).min(block.len() - 1);
            for (i, x) in points.row(block[p] as usize)[..short].iter().enumerate() {
                columns[i * LANES + t] = *x;
            }
        }
    }
    for cell in 0..model.len() {
        let bounds = &mut scratch.bounds[cell * BLOCK..][..tiles * LANES];
        for (tile, bounds) in bounds.chunks_exact_mut(LANES).enumerate() {
            let columns = &scratch.columns[tile * short * LANES..][..short * LANES];
            bounds.copy_from_slice(&scratch.tile.prefix(columns, model, cell, short));
        }
    }
    (tiles * LANES * model.len()) as u64 * tile::madds(model, short)
}
