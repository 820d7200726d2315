//! Fitting cells anew: to points that have come, without those that have gone, in two where one is too large.

use crate::bins::Scales;
use crate::streams;
use std::sync::Arc;

use garlic_linalg::{Matrix, kmeans_plus_plus, lloyd};

use crate::bins::Projected;
use crate::partition::{default_cells, fit_cell};
use crate::segment::{CodeShape, DeltaCell, RewrittenCell, Shape, Snapshot, Uncoded};
use crate::transform::outside;
use garlic_core::Cancel;
use garlic_core::Result;
use garlic_core::vectors::{StoredRows, StoredVectors};
use garlic_core::{Lists, by_label};

#[cfg(test)]
mod tests;

/// Lloyd rounds of a split.
const ROUNDS: usize = 8;
/// A part that would keep this share of a cell's points is no split.
const REFUSED: f64 = 0.95;
/// A cell whose mean has moved by this share of its mean squared radius is fitted anew.
const MOVED: f64 = 0.01;
/// So is one whose mean squared radius has changed by this factor.
const SPREAD: f64 = 1.2;

/// Points of a cell, with all that a new layout needs.
pub(super) struct Members {
    pub(super) vectors: StoredVectors,
    pub(super) ids: Vec<u64>,
    /// Images in the space of the model.
    pub(super) points: Matrix,
    /// Squared distances from that space.
    pub(super) beyond: Vec<f32>,
}

/// A cell of this many times the points that a build of this size would give it is split.
const LARGE: f64 = 1.4;

/// Points of a cell beyond which it is split, in an index of `total` points.
fn split_limit(view: &Snapshot<'_>, total: usize) -> usize {
    let config = &view.index.config;
    let cells = match config.partition.cells {
        0 => default_cells(total),
        given => given,
    };
    ((LARGE * total as f64 / cells as f64) as usize).max(4 * config.bins.bin_size)
}

/// Points that may join a cell of `living` points before its bins are cut anew.
pub(super) fn tail_limit(view: &Snapshot<'_>, living: usize) -> usize {
    (living / 8).max(2 * view.index.config.bins.bin_size)
}

/// The size of codes.
pub(super) fn code_shape(view: &Snapshot<'_>) -> CodeShape {
    CodeShape {
        rank: view.segment.cells.rank(),
        width: view.segment.encoded.width,
        bits: view.segment.encoded.bits,
    }
}

/// The points of a cell that have not been removed, then `more`.
pub(super) fn gather(view: &Snapshot<'_>, cell: usize, more: Option<&Members>) -> Result<Members> {
    let index = view.index;
    let dim = index.transform.dim();
    let mut rows = StoredRows::new(index.segment.vectors.element());
    let mut ids = Vec::new();
    let bins = view.base_bins(cell);
    let encoded = &view.segment.encoded;
    for position in bins.flat_map(|bin| encoded.positions(bin)) {
        if view.is_alive(position as u32) {
            rows.push(&index.segment.vectors, dim, position);
            ids.push(index.segment.ids[position]);
        }
    }
    let state = view.live_cell(cell);
    if let Some(run) = &state.run {
        for at in (0..run.len()).filter(|at| !run.dead.get(*at)) {
            rows.push(&run.data.coded.vectors, dim, at);
            ids.push(run.data.coded.ids[at]);
        }
    }
    if let Some(tail) = &state.tail {
        for at in (0..tail.len()).filter(|at| !tail.dead.get(*at)) {
            rows.push(&tail.data.vectors, dim, at);
            ids.push(tail.data.ids[at]);
        }
    }
    if let Some(more) = more {
        for i in 0..more.ids.len() {
            rows.push(&more.vectors, dim, i);
        }
        ids.extend_from_slice(&more.ids);
    }
    Members::new(view, rows.into(), ids)
}

impl Members {
    /// Maps stored vectors into the space of the model.
    pub(super) fn new(view: &Snapshot<'_>, vectors: StoredVectors, ids: Vec<u64>) -> Result<Self> {
        let dim = view.index.transform.dim();
        let mut wide = Vec::with_capacity(ids.len() * dim);
        let mut row = Vec::new();
        for i in 0..ids.len() {
            vectors.read(dim, i, &mut row);
            wide.extend_from_slice(&row);
        }
        let wide = Matrix::from_vec(wide, dim)?;
        let points = view
            .index
            .transform
            .apply_all(wide.as_rows(), &Cancel::default())?;
        let beyond = outside(wide.as_rows(), &view.index.transform, points.as_rows());
        Ok(Self {
            vectors,
            ids,
            points,
            beyond,
        })
    }

    /// These, then others.
    pub(super) fn and(self, dim: usize, others: Vec<Self>) -> Result<Self> {
        if others.is_empty() {
            return Ok(self);
        }
        let mut rows = StoredRows::new(self.vectors.element());
        let (mut ids, mut points, mut beyond) = (Vec::new(), Vec::new(), Vec::new());
        let wide = self.points.cols();
        for part in std::iter::once(self).chain(others) {
            for i in 0..part.ids.len() {
                rows.push(&part.vectors, dim, i);
            }
            ids.extend(part.ids);
            points.extend_from_slice(part.points.as_rows().data());
            beyond.extend(part.beyond);
        }
        Ok(Self {
            vectors: rows.into(),
            ids,
            points: Matrix::from_vec(points, wide)?,
            beyond,
        })
    }

    /// None, of an index.
    pub(super) fn none(view: &Snapshot<'_>) -> Self {
        Self {
            vectors: StoredRows::new(view.index.segment.vectors.element()).into(),
            ids: Vec::new(),
            points: Matrix::zeros(0, view.segment.cells.dim()),
            beyond: Vec::new(),
        }
    }

    /// Some of them.
    pub(super) fn pick(&self, dim: usize, rows: &[u32]) -> Self {
        Self {
            vectors: self.vectors.pick(dim, rows),
            ids: rows.iter().map(|i| self.ids[*i as usize]).collect(),
            points: Matrix::gather(self.points.as_rows(), rows),
            beyond: rows.iter().map(|i| self.beyond[*i as usize]).collect(),
        }
    }
}

/// Lays the points of a cell out anew, outside the base: in several cells when they are too many for one. The
/// first takes the old one's place. `total` is the number of points that the index will have.
pub(super) fn relay(
    view: &Snapshot<'_>,
    cell: usize,
    members: Members,
    total: usize,
) -> Vec<DeltaCell> {
    let dim = view.index.transform.dim();
    let seed =
        view.index.config.seed ^ streams::LIVE ^ cell as u64 ^ (members.ids.len() as u64) << 20;
    let limit = split_limit(view, total);
    let parts = match members.ids.len() > limit {
        true => members.ids.len().div_ceil(limit * 3 / 5),
        false => 1,
    };
    if parts > 1 {
        let rows = members.points.as_rows();
        let halves = lloyd(rows, kmeans_plus_plus(rows, parts, seed), ROUNDS);
        let largest = halves.sizes.iter().copied().max().unwrap_or(0);
        // Copies of one point cannot be told apart, however often they are cut.
        if f64::from(largest) <= REFUSED * members.ids.len() as f64 {
            let lists = Lists::group(halves.sizes.len(), by_label(&halves.labels));
            return (0..halves.sizes.len())
                .filter(|part| !lists.get(*part).is_empty())
                .map(|part| {
                    let members = members.pick(dim, lists.get(part));
                    lay_out(view, fit(view, &members, seed ^ part as u64), members, seed)
                })
                .collect();
        }
    }
    let shape = match has_drifted(view, cell, &members) {
        true => fit(view, &members, seed),
        false => {
            let frame = view.frame(cell);
            let mean = view.mean(cell).to_vec();
            Frame {
                axes: frame.axes.to_vec(),
                variances: frame.variances.to_vec(),
                residual: frame.residual,
                mean,
            }
        }
    };
    vec![lay_out(view, shape, members, seed)]
}

/// A cell before its codes have scales.
struct Frame {
    mean: Vec<f32>,
    axes: Vec<f32>,
    variances: Vec<f32>,
    residual: f32,
}

fn fit(view: &Snapshot<'_>, members: &Members, seed: u64) -> Frame {
    let model = &view.segment.cells;
    let (rank, dim) = (model.rank(), model.dim());
    let fitted = fit_cell(members.points.as_rows(), model.form(), seed);
    let mut axes = fitted.axes.into_vec();
    axes.resize(rank * dim, 0.0);
    let mut variances = fitted.variances;
    variances.resize(rank, 0.0);
    Frame {
        mean: fitted.mean,
        axes,
        variances,
        residual: fitted.residual,
    }
}

/// Whether a cell's points are no longer where, or as far spread as, those were that it was fitted to.
fn has_drifted(view: &Snapshot<'_>, cell: usize, members: &Members) -> bool {
    let (frame, mean) = (view.frame(cell), view.mean(cell));
    let (rank, dim) = (view.segment.cells.rank(), view.segment.cells.dim());
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
    let fitted = along + f64::from(frame.residual) * dim.saturating_sub(rank) as f64;
    moved > MOVED * now || now > SPREAD * fitted || fitted > SPREAD * now
}

fn lay_out(view: &Snapshot<'_>, frame: Frame, members: Members, seed: u64) -> DeltaCell {
    let shape = code_shape(view);
    let Members {
        vectors,
        ids,
        points,
        beyond,
    } = members;
    let projected = Projected::new(points, beyond, &frame.mean, &frame.axes);
    let scales: Scales = projected.scales(&frame.mean, &frame.axes, shape.width, shape.bits);
    let points = Uncoded {
        projected: &projected,
        vectors: &vectors,
        dim: view.index.transform.dim(),
        ids: &ids,
    };
    let (bin_size, seed) = (view.index.config.bins.bin_size, seed ^ streams::BINS);
    let run = RewrittenCell::new(points, scales.steps(), shape, bin_size, seed);
    DeltaCell {
        base: false,
        dead: 0,
        living: ids.len(),
        shape: Some(Arc::new(Shape {
            mean: frame.mean,
            axes: frame.axes,
            variances: frame.variances,
            residual: frame.residual,
            scales,
        })),
        run: Some(run),
        tail: None,
    }
}
