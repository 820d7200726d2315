//! The indexes that the pictures look into, all of the same points.

use garlic_ann::config::Init;
use garlic_ann::model::{Assignment, Gaussians};
use garlic_ann::train::{Backend, Cpu};
use garlic_ann::{Config, Index, Preset};
use garlic_linalg::{Matrix, Rows};

use super::example::{SEED, points};
use super::{Missing, Point};
use crate::error::Result;

/// Epochs of the warm-up, after which the second gradients are drawn.
pub(super) const WARM_UP: usize = 35;

/// The points and what was built of them.
pub(super) struct World {
    pub(super) points: Vec<Point>,
    data: Vec<f32>,
    /// Preset `paper` before the first step, after the warm-up, and at the end.
    pub(super) start: Index,
    pub(super) warm: Index,
    pub(super) trained: Index,
    /// Preset `paper` after one step, and after the refinement that follows it.
    pub(super) first: Index,
    pub(super) refined: Index,
    /// The default preset, with frames of two axes, which is all of the plane, and of one.
    pub(super) tempered: Index,
    pub(super) line: Index,
}

/// Preset `paper` for a few points in the plane: few and small first cells, batches that make more than one step
/// an epoch, and shapes that learn four times as fast, because so few points make few steps.
pub(super) fn published() -> Config {
    let paper = Config::preset(Preset::Paper);
    Config {
        seed: SEED,
        init: Init::Kmeans,
        initial_cells: 20,
        init_scale_floor: 0.08,
        batch: 100,
        factor_rate: paper.factor_rate.map(|rate| 4.0 * rate),
        split_threshold: 0.12,
        ..paper
    }
}

fn default_with(axes: usize) -> Config {
    Config {
        seed: SEED,
        axes,
        // Few points: with half of the usual bin there is more to see.
        bin_size: 24,
        ..Config::preset(Preset::Default)
    }
}

impl World {
    /// Builds all indexes.
    pub(super) fn new() -> Result<Self> {
        let points = points();
        let data: Vec<f32> = points.iter().flatten().map(|v| *v as f32).collect();
        let rows = Rows::new(&data, 2)?;
        let build = |config: Config| Index::builder().config(config).build(rows);
        // Warm-up rates do not depend on the number of epochs: a run that ends early is the same up to there.
        let until = |epochs: usize| Config {
            epochs,
            ..published()
        };
        // In the plane cells soon cover nearly everything, and none is left to clone: this refinement comes after an
        // epoch of one step, to cells that begin smaller, and splits are allowed earlier.
        let early = |refine_quiet: usize| Config {
            batch: points.len(),
            init_scale_floor: 0.05,
            split_threshold: 0.08,
            warmup_epochs: 1,
            refine_every: 1,
            refine_quiet,
            ..until(1)
        };
        Ok(Self {
            start: build(until(0))?,
            warm: build(until(WARM_UP))?,
            first: build(early(1))?,
            refined: build(early(0))?,
            trained: build(published())?,
            tempered: build(default_with(0))?,
            line: build(default_with(1))?,
            points,
            data,
        })
    }

    /// The world that all tests look at: building it takes longer than looking.
    #[cfg(test)]
    pub(super) fn shared() -> &'static Self {
        static WORLD: std::sync::LazyLock<World> =
            std::sync::LazyLock::new(|| World::new().expect("the example can be indexed"));
        &WORLD
    }

    /// The points in the space of an index.
    pub(super) fn inside(&self, index: &Index) -> Matrix {
        let mut out = Matrix::zeros(self.points.len(), 2);
        for (at, row) in self.data.chunks_exact(2).enumerate() {
            index.space().apply(row, out.row_mut(at));
        }
        out
    }

    /// Nearest and covering cells of the points.
    pub(super) fn assignment(&self, index: &Index) -> Result<Assignment> {
        let model = gaussians(index)?;
        let tau = index.config().tau as f32;
        Ok(Cpu::default().assign(self.inside(index).as_rows(), model, tau)?)
    }

    /// The point at a position of an index.
    pub(super) fn at(&self, index: &Index, position: usize) -> Result<Point> {
        let row = index
            .id_at(position)
            .and_then(|id| usize::try_from(id).ok());
        row.and_then(|row| self.points.get(row))
            .copied()
            .missing("a position without a point")
    }
}

/// The Gaussians of an index of preset `paper`.
pub(super) fn gaussians(index: &Index) -> Result<&Gaussians> {
    Ok(index.published().missing("no Gaussians")?.model())
}

/// A query as an index takes it.
pub(super) fn query(at: Point) -> [f32; 2] {
    at.map(|v| v as f32)
}
