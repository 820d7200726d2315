//! The neighbour graph: each point knows some points near it.
//!
//! In: the points of a segment in the order of their positions, and their cells. Out: a [`Graph`] with a list of
//! neighbours and a code for every point. `links` builds the lists with the distances of `bytes`, `add` adds points to
//! them, `repair` takes points out, `prune` chooses among candidates, `codes` holds the codes, `heads` fits their heads, `expand` and `descend`
//! search the `nodes`, `grown` adds points, and `carry` encodes a changed graph anew. Cells give the first points of a
//! search.
//!
//! Where the local dimension is high, the neighbours of a query lie in many cells, and each of these cells has many
//! points that are no neighbours. Lists lead from neighbour to neighbour instead.

mod add;
mod bytes;
mod carry;
mod codes;
mod descend;
mod expand;
mod grown;
mod heads;
mod links;
mod nodes;
mod pages;
mod prune;
mod repair;

pub(crate) use codes::{Line, RowCodes};
pub(crate) use expand::{Admission, AllAdmitted, Expanded, Expansion, Limits};
pub(crate) use grown::Grown;
pub(crate) use pages::Pages;

use garlic_core::buffer::Buffer;
use garlic_core::vectors::StoredVectors;
use garlic_core::{Cancel, Result};
use garlic_linalg::{Matrix, Rows, permutation};
use rayon::prelude::*;

use crate::config::TransformOptions;
use crate::quantize::RowQuantizer;
use crate::{streams, transform};
use bytes::{ByteTable, Centre};
use links::Links;

/// The end of a list that is not full.
pub(crate) const NO_NEIGHBOUR: u32 = u32::MAX;
/// Neighbours of a point.
pub(crate) const DEGREE: usize = 32;
/// Largest number of points of a graph. A search marks positions with the highest bit.
pub(crate) const MAX_POINTS: usize = 1 << 31;

/// The axes of the codes keep this share of the variance, but there are at most so many. Near neighbours differ in the
/// axes of little variance as well.
const KEEP_VARIANCE: f64 = 0.999;
const MAX_AXES: usize = 768;
/// Points that the axes and steps are fitted to.
const SAMPLE_POINTS: usize = 25_000;

/// Neighbour lists and codes of all points of a segment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Graph {
    pub(crate) degree: usize,
    /// `degree` positions for every point, near ones first. Lists that are not full end with [`NO_NEIGHBOUR`].
    pub(crate) neighbours: Buffer<u32>,
    /// The most central point of every cell that has points.
    pub(crate) centres: Buffer<u32>,
    pub(crate) codes: RowCodes,
}

/// The points of a new graph.
pub(crate) struct Nodes<'a> {
    pub(crate) vectors: &'a StoredVectors,
    pub(crate) dim: usize,
    /// Cell of every position. Cells are numbered from zero, and positions are in the order of cells.
    pub(crate) cell_of: &'a [u32],
    pub(crate) cells: usize,
    pub(crate) seed: u64,
}

impl Nodes<'_> {
    fn len(&self) -> usize {
        self.cell_of.len()
    }

    /// The vectors at some positions.
    fn gather(&self, positions: impl Iterator<Item = u32>) -> Vec<f32> {
        let (mut all, mut row) = (Vec::new(), Vec::new());
        for position in positions {
            self.vectors.read(self.dim, position as usize, &mut row);
            all.extend_from_slice(&row);
        }
        all
    }
}

impl Graph {
    /// Number of points.
    #[inline]
    pub(crate) fn points(&self) -> usize {
        self.neighbours.len() / self.degree.max(1)
    }

    /// The list of a point.
    #[inline]
    pub(crate) fn neighbours_of(&self, at: u32) -> &[u32] {
        let from = at as usize * self.degree;
        self.neighbours
            .get(from..from + self.degree)
            .unwrap_or_default()
    }

    /// Bytes of all arrays.
    pub(crate) fn bytes(&self) -> u64 {
        let codes = &self.codes;
        let floats = codes.mean.len() + codes.rotation.len();
        (size_of_val(&*self.neighbours)
            + size_of_val(&*self.centres)
            + size_of_val(&*codes.heads)
            + size_of_val(&*codes.rests)
            + 5 * floats) as u64
    }

    /// Bytes that lie in a mapped file.
    pub(crate) fn mapped_bytes(&self) -> u64 {
        let codes = &self.codes;
        self.neighbours.mapped_bytes() + codes.heads.mapped_bytes() + codes.rests.mapped_bytes()
    }

    /// Builds the graph of all points. Runs in the current rayon pool. `step` receives the share that is done.
    pub(crate) fn build(
        nodes: &Nodes<'_>,
        cancel: &Cancel,
        step: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Self> {
        GraphBuilder::new(nodes, &[], cancel, step)?.finish(cancel)
    }
}

/// A graph that lacks some points.
pub(crate) struct GraphBuilder<'a> {
    nodes: &'a Nodes<'a>,
    table: ByteTable,
    links: Links,
    codes: RowCodes,
    /// The order of insertion. Points from number `inserted` on are missing.
    order: Vec<u32>,
    inserted: usize,
}

impl<'a> GraphBuilder<'a> {
    /// Builds the graph of all points but `held`, which is sorted. Runs in the current rayon pool. `step` receives the
    /// share that is done.
    pub(crate) fn new(
        nodes: &'a Nodes<'a>,
        held: &[u32],
        cancel: &Cancel,
        step: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Self> {
        let (mut codes, table) = fit(nodes, cancel)?.encode(nodes, cancel)?;
        let order = permutation(nodes.len(), nodes.seed, streams::GRAPH);
        let is_held = |at: &u32| held.binary_search(at).is_ok();
        let (last, mut order): (Vec<u32>, Vec<u32>) = order.into_iter().partition(is_held);
        let inserted = order.len();
        let step = |done| step(done, 2 * inserted);
        let links = links::link(&table, DEGREE, &order, nodes.cell_of, cancel, &step)?;
        heads::fit(&mut codes, &links, &order, nodes);
        order.extend(last);
        Ok(Self {
            nodes,
            table,
            links,
            codes,
            order,
            inserted,
        })
    }

    /// The graph so far. Points that are missing have no neighbours and are in no list.
    pub(crate) fn graph(&self) -> Graph {
        let mut missing = self.order[self.inserted..].to_vec();
        missing.sort_unstable();
        let Nodes { cell_of, cells, .. } = *self.nodes;
        Graph {
            degree: DEGREE,
            neighbours: self.links.neighbours.clone().into(),
            centres: centres(&self.table, cell_of, cells, &missing, |at| at).into(),
            codes: self.codes.clone(),
        }
    }

    /// Inserts the missing points.
    pub(crate) fn finish(self, cancel: &Cancel) -> Result<Graph> {
        let Self {
            nodes,
            table,
            mut links,
            codes,
            order,
            inserted,
        } = self;
        if inserted < order.len() {
            let cell_of = nodes.cell_of;
            links = links::insert(&table, links, &order, inserted, cell_of, cancel, &|_| ())?;
            let mut last = order[inserted..].to_vec();
            last.sort_unstable();
            links::refine(&table, &mut links, &last, cancel)?;
        }
        Ok(Graph {
            degree: DEGREE,
            neighbours: links.neighbours.into(),
            centres: centres(&table, nodes.cell_of, nodes.cells, &[], |at| at).into(),
            codes,
        })
    }
}

/// Fits the axes and steps of codes to a sample. There are no codes yet.
fn fit(nodes: &Nodes<'_>, cancel: &Cancel) -> Result<RowCodes> {
    let mut sample = permutation(nodes.len(), nodes.seed, streams::GRAPH_SAMPLE);
    sample.truncate(SAMPLE_POINTS);
    sample.sort_unstable();
    let sample = nodes.gather(sample.into_iter());
    let sample = Rows::new(&sample, nodes.dim)?;
    let options = TransformOptions {
        keep_variance: KEEP_VARIANCE,
        max_dim: MAX_AXES,
    };
    let fitted = transform::fit(sample, &options, nodes.seed, cancel)?;
    let coordinates: Matrix = fitted.apply_all(sample, cancel)?;
    let variance = |axis: usize| {
        let column = coordinates.as_rows().iter().map(|row| f64::from(row[axis]));
        column.map(|v| v * v).sum::<f64>() / sample.len().max(1) as f64
    };
    let variances: Vec<f64> = (0..coordinates.cols()).map(variance).collect();
    let quantizer = RowQuantizer::fit(&variances);
    let rotation = fitted.rotation.map_or_else(Vec::new, Matrix::into_vec);
    let (mean, rotation) = (fitted.mean.into(), rotation.into());
    let none = [Buffer::default(), Buffer::default()];
    Ok(RowCodes::new(
        mean,
        rotation,
        quantizer,
        none,
        f32::INFINITY,
    ))
}

/// The most central point of every cell that has points, in the order of cells; [`NO_NEIGHBOUR`] for empty cells. Points
/// in `missing`, which is sorted, are no centres. `node` has the row of every point in the table.
fn centres(
    table: &ByteTable,
    cell_of: &[u32],
    cells: usize,
    missing: &[u32],
    node: impl Fn(u32) -> u32 + Sync,
) -> Vec<u32> {
    let mut first = 0;
    let ranges: Vec<std::ops::Range<usize>> = (0..cells as u32)
        .map(|cell| {
            let from = first;
            first = cell_of.partition_point(|c| *c <= cell);
            from..first
        })
        .collect();
    ranges
        .into_par_iter()
        .map(|range| {
            let range = range.start as u32..range.end as u32;
            let there = range.filter(|at| missing.binary_search(at).is_err());
            let there: Vec<u32> = there.collect();
            let nodes: Vec<u32> = there.iter().map(|at| node(*at)).collect();
            let mut centre = Centre::default();
            table.mean(&nodes, &mut centre);
            let mut distances = Vec::new();
            table.distances(&centre, &nodes, &mut distances);
            let nearest = distances.iter().zip(there).min();
            nearest.map_or(NO_NEIGHBOUR, |(_, at)| at)
        })
        .collect()
}

#[cfg(test)]
mod tests;
