//! Rewrites cells: refits them to their points and splits those that are too large.

use crate::bins::Scales;
use crate::streams;
use std::sync::Arc;

use garlic_linalg::{Matrix, kmeans_plus_plus, lloyd};

use crate::bins::Projected;
use crate::partition::{FittedCell, default_cells};
use crate::segment::{CodeShape, DeltaCell, PointsToEncode, RefittedCell, RewrittenCell, Snapshot};
use crate::transform::residuals_squared;
use garlic_core::Cancel;
use garlic_core::Result;
use garlic_core::vectors::{StoredRows, StoredVectors};
use garlic_core::{Lists, by_label};

#[cfg(test)]
mod tests;

/// Lloyd iterations of a split.
const SPLIT_ROUNDS: usize = 8;
/// A split is rejected if one part keeps more than this share of the points.
const MAX_SPLIT_SHARE: f64 = 0.95;
/// A cell is refitted if its mean moved by this share of its mean squared radius (both squared).
const REFIT_SHIFT: f64 = 0.01;
/// A cell is refitted if its mean squared radius changed by this factor.
const REFIT_SPREAD: f64 = 1.2;

/// Points of a cell, with everything needed to encode them.
pub(super) struct Members {
    pub(super) vectors: StoredVectors,
    pub(super) ids: Vec<u64>,
    /// Nodes of the points in the neighbour graph.
    pub(super) nodes: Vec<u32>,
    /// The transformed points.
    pub(super) points: Matrix,
    /// Squared distance of each vector from the truncated space.
    pub(super) residual_squared: Vec<f32>,
}

/// A cell is split if it has this many times the points of an average cell of a new build.
const SPLIT_FACTOR: f64 = 1.4;

/// Upper limit of the points of a cell in an index of `total` points. Larger cells are split.
fn split_limit(snapshot: &Snapshot<'_>, total: usize) -> usize {
    let config = &snapshot.index.config;
    let cells = match config.partition.cells {
        0 => default_cells(total),
        given => given,
    };
    ((SPLIT_FACTOR * total as f64 / cells as f64) as usize).max(4 * config.bins.bin_size)
}

/// Upper limit of the points appended to a cell of `live` points. Above it, the cell is rewritten.
pub(super) fn append_limit(snapshot: &Snapshot<'_>, live: usize) -> usize {
    (live / 8).max(2 * snapshot.index.config.bins.bin_size)
}

/// The layout of codes.
pub(super) fn code_shape(snapshot: &Snapshot<'_>) -> CodeShape {
    CodeShape {
        rank: snapshot.segment.cells.rank(),
        width: snapshot.segment.encoded.width,
        bits: snapshot.segment.encoded.bits,
    }
}

/// The live points of a cell, followed by `more`.
pub(super) fn gather(
    snapshot: &Snapshot<'_>,
    cell: usize,
    more: Option<&Members>,
) -> Result<Members> {
    let index = snapshot.index;
    let dim = index.transform.dim();
    let mut rows = StoredRows::new(index.segment.vectors.element());
    let (mut ids, mut nodes) = (Vec::new(), Vec::new());
    let bins = snapshot.base_bins(cell);
    let encoded = &snapshot.segment.encoded;
    for position in bins.flat_map(|bin| encoded.positions(bin)) {
        if snapshot.is_live(position as u32) {
            rows.push(&index.segment.vectors, dim, position);
            ids.push(index.segment.ids[position]);
            nodes.push(position as u32);
        }
    }
    let state = snapshot.cell_state(cell);
    if let Some(rewritten) = &state.rewritten {
        for at in (0..rewritten.len()).filter(|at| !rewritten.tombstones.get(*at)) {
            rows.push(&rewritten.data.points.vectors, dim, at);
            ids.push(rewritten.data.points.ids[at]);
            nodes.push(rewritten.data.points.nodes[at]);
        }
    }
    if let Some(appended) = &state.appended {
        for at in (0..appended.len()).filter(|at| !appended.tombstones.get(*at)) {
            rows.push(&appended.data.vectors, dim, at);
            ids.push(appended.data.ids[at]);
            nodes.push(appended.data.nodes[at]);
        }
    }
    if let Some(more) = more {
        for i in 0..more.ids.len() {
            rows.push(&more.vectors, dim, i);
        }
        ids.extend_from_slice(&more.ids);
        nodes.extend_from_slice(&more.nodes);
    }
    Members::new(snapshot, rows.into(), ids, nodes)
}

impl Members {
    /// Transforms stored vectors.
    pub(super) fn new(
        snapshot: &Snapshot<'_>,
        vectors: StoredVectors,
        ids: Vec<u64>,
        nodes: Vec<u32>,
    ) -> Result<Self> {
        let dim = snapshot.index.transform.dim();
        let mut wide = Vec::with_capacity(ids.len() * dim);
        let mut row = Vec::new();
        for i in 0..ids.len() {
            vectors.read(dim, i, &mut row);
            wide.extend_from_slice(&row);
        }
        let wide = Matrix::from_vec(wide, dim)?;
        let points = snapshot
            .index
            .transform
            .apply_all(wide.as_rows(), &Cancel::default())?;
        let residual_squared =
            residuals_squared(wide.as_rows(), &snapshot.index.transform, points.as_rows());
        Ok(Self {
            vectors,
            ids,
            nodes,
            points,
            residual_squared,
        })
    }

    /// These points followed by others.
    pub(super) fn extended(self, dim: usize, others: Vec<Self>) -> Result<Self> {
        if others.is_empty() {
            return Ok(self);
        }
        let mut rows = StoredRows::new(self.vectors.element());
        let (mut ids, mut nodes) = (Vec::new(), Vec::new());
        let (mut points, mut residual_squared) = (Vec::new(), Vec::new());
        let wide = self.points.cols();
        for part in std::iter::once(self).chain(others) {
            for i in 0..part.ids.len() {
                rows.push(&part.vectors, dim, i);
            }
            ids.extend(part.ids);
            nodes.extend(part.nodes);
            points.extend_from_slice(part.points.as_rows().data());
            residual_squared.extend(part.residual_squared);
        }
        Ok(Self {
            vectors: rows.into(),
            ids,
            nodes,
            points: Matrix::from_vec(points, wide)?,
            residual_squared,
        })
    }

    /// An empty set of points for this index.
    pub(super) fn empty(snapshot: &Snapshot<'_>) -> Self {
        Self {
            vectors: StoredRows::new(snapshot.index.segment.vectors.element()).into(),
            ids: Vec::new(),
            nodes: Vec::new(),
            points: Matrix::zeros(0, snapshot.segment.cells.dim()),
            residual_squared: Vec::new(),
        }
    }

    /// The points with these row numbers.
    pub(super) fn pick(&self, dim: usize, rows: &[u32]) -> Self {
        Self {
            vectors: self.vectors.pick(dim, rows),
            ids: rows.iter().map(|i| self.ids[*i as usize]).collect(),
            nodes: rows.iter().map(|i| self.nodes[*i as usize]).collect(),
            points: Matrix::gather(self.points.as_rows(), rows),
            residual_squared: rows
                .iter()
                .map(|i| self.residual_squared[*i as usize])
                .collect(),
        }
    }
}

/// Rewrites a cell outside the base, as several cells if it is too large. The first one takes over the number of the
/// cell. `total` is the number of points that the index will have.
pub(super) fn rebuild_cell(
    snapshot: &Snapshot<'_>,
    cell: usize,
    members: Members,
    total: usize,
) -> Vec<DeltaCell> {
    let dim = snapshot.index.transform.dim();
    let seed = snapshot.index.config.seed
        ^ streams::REWRITTEN_CELLS
        ^ cell as u64
        ^ (members.ids.len() as u64) << 20;
    let limit = split_limit(snapshot, total);
    let parts = match members.ids.len() > limit {
        true => members.ids.len().div_ceil(limit * 3 / 5),
        false => 1,
    };
    if parts > 1 {
        let rows = members.points.as_rows();
        let split = lloyd(rows, kmeans_plus_plus(rows, parts, seed), SPLIT_ROUNDS);
        let largest = split.sizes.iter().copied().max().unwrap_or(0);
        // Copies of one point cannot be separated.
        if f64::from(largest) <= MAX_SPLIT_SHARE * members.ids.len() as f64 {
            let lists = Lists::group(split.sizes.len(), by_label(&split.labels));
            return (0..split.sizes.len())
                .filter(|part| !lists.get(*part).is_empty())
                .map(|part| {
                    let members = members.pick(dim, lists.get(part));
                    encode_cell(
                        snapshot,
                        fit(snapshot, &members, seed ^ part as u64),
                        members,
                        seed,
                    )
                })
                .collect();
        }
    }
    let shape = match has_drifted(snapshot, cell, &members) {
        true => fit(snapshot, &members, seed),
        false => snapshot.frame(cell).shape.into(),
    };
    vec![encode_cell(snapshot, shape, members, seed)]
}

fn fit(snapshot: &Snapshot<'_>, members: &Members, seed: u64) -> FittedCell {
    let axis_counts = snapshot.segment.cells.axis_counts();
    FittedCell::fit(members.points.as_rows(), axis_counts, seed)
}

/// Whether the points of a cell moved or spread since it was fitted.
fn has_drifted(snapshot: &Snapshot<'_>, cell: usize, members: &Members) -> bool {
    let frame = snapshot.frame(cell).shape;
    let mean = frame.mean;
    let (rank, dim) = (snapshot.segment.cells.rank(), snapshot.segment.cells.dim());
    let count = members.ids.len().max(1) as f64;
    let (mut sums, mut squares) = (vec![0.0f64; dim], 0.0f64);
    for row in members.points.as_rows().iter() {
        for ((sum, x), m) in sums.iter_mut().zip(row).zip(mean) {
            let centred = f64::from(x - m);
            *sum += centred;
            squares += centred * centred;
        }
    }
    let now = squares / count;
    let moved: f64 = sums.iter().map(|s| (s / count) * (s / count)).sum();
    let along: f64 = frame.variances.iter().map(|v| f64::from(*v)).sum();
    let fitted = along + f64::from(frame.residual_variance) * dim.saturating_sub(rank) as f64;
    moved > REFIT_SHIFT * now || now > REFIT_SPREAD * fitted || fitted > REFIT_SPREAD * now
}

fn encode_cell(
    snapshot: &Snapshot<'_>,
    cell: FittedCell,
    members: Members,
    seed: u64,
) -> DeltaCell {
    let shape = code_shape(snapshot);
    let Members {
        vectors,
        ids,
        nodes,
        points,
        residual_squared,
    } = members;
    let projected = Projected::new(points, residual_squared, &cell.mean, &cell.axes);
    let scales: Scales = projected.scales(&cell.mean, &cell.axes, shape.width, shape.bits);
    let points = PointsToEncode {
        projected: &projected,
        vectors: &vectors,
        dim: snapshot.index.transform.dim(),
        ids: &ids,
        nodes: &nodes,
    };
    let (bin_size, seed) = (snapshot.index.config.bins.bin_size, seed ^ streams::BINS);
    let rewritten = RewrittenCell::new(points, scales.steps(), shape, bin_size, seed);
    DeltaCell {
        in_base: false,
        removed: 0,
        live: ids.len(),
        shape: Some(Arc::new(RefittedCell { cell, scales })),
        rewritten: Some(rewritten),
        appended: None,
    }
}
