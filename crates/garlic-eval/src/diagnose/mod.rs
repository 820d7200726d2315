//! Diagnosis of an index: how well its cells cover the data, what shapes they have, how curved the data are.
//!
//! [`diagnose`] looks at a sample of the points of an index of either preset: cells of the default preset are taken for the
//! Gaussians that their axes and variances describe.
//!
//! ```
//! use garlic_ann::Index;
//! use garlic_eval::diagnose::{Options, diagnose};
//! use garlic_linalg::Rows;
//!
//! # fn main() -> Result<(), garlic_eval::Error> {
//! let data: Vec<f32> = (0..4000).map(|i| ((i * 37) % 1009) as f32).collect();
//! let index = Index::builder().seed(1).build(Rows::new(&data, 8)?)?;
//! let diagnosis = diagnose(&index, &Options::default())?;
//! assert_eq!(diagnosis.cell_sizes.sizes.iter().sum::<usize>(), 500);
//! # Ok(())
//! # }
//! ```

mod anisotropy;
mod by_cell;
mod cover;
mod curvature;
#[cfg(test)]
mod dense;
mod landscape;
mod neighbours;
mod sample;
mod sizes;
mod stats;
#[cfg(test)]
mod tests;

use garlic_core::{CellShapes, NeighborIndex, Transform};
use serde::Serialize;

pub use anisotropy::{Anisotropy, Quantity, Step};
pub use by_cell::{CellCurvature, CellCurvatures};
pub use curvature::{Curvature, SizeCurvature};
pub use landscape::Landscape;
pub use sizes::CellSizes;
pub use stats::{Group, Histogram, Summary};

use crate::error::{Error, Result};
use sample::Sample;

/// Neighbour whose distance tells the density.
const DENSITY_NEIGHBOUR: usize = 10;
/// Parts that points are cut into by their density.
const DENSITY_PARTS: usize = 10;

/// How closely an index is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Most points of the sample.
    pub points: usize,
    /// Points of the sample whose neighbourhoods are looked at.
    pub centres: usize,
    /// Tiles along each side of a landscape.
    pub tiles: usize,
    /// Principal directions that count as flat in the curvature.
    pub flat_directions: usize,
    /// Seed of the sample.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            points: 20_000,
            centres: 1000,
            tiles: 64,
            flat_directions: 3,
            seed: 1,
        }
    }
}

/// All numbers of a diagnosis.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Diagnosis {
    /// What was looked at.
    pub subject: Subject,
    /// The Mahalanobis distance up to which a cell covers a point.
    pub radius: Radius,
    /// Cells seen from the plane of the first two principal components.
    pub landscape: Landscape,
    /// How often the points of the sample are covered.
    pub coverage: Coverage,
    /// Density of the data against coverage.
    pub density: Density,
    /// How far the data are from flat.
    pub curvature: Curvature,
    /// Shapes of the cells.
    pub anisotropy: Anisotropy,
    /// Points in the cells.
    pub cell_sizes: CellSizes,
}

/// The index and the sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Subject {
    /// `paper` for trained Gaussians, `default` for anisotropic cells.
    pub preset: &'static str,
    /// Points of the index.
    pub points: usize,
    /// Dimension of its vectors.
    pub dim: usize,
    /// Dimension of the space of the model.
    pub model_dim: usize,
    /// Its metric.
    pub metric: String,
    /// Its cells.
    pub cells: usize,
    /// Whether a point may be in several cells.
    pub overlapping: bool,
    /// Points of the sample.
    pub sampled: usize,
    /// Points of the sample whose cells were computed.
    pub covered: usize,
    /// Points of the sample whose neighbourhoods were looked at.
    pub centres: usize,
    /// Seed of the sample.
    pub seed: u64,
}

/// The radius of the cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Radius {
    /// The tau of the configuration.
    pub config_tau: f64,
    /// The radius that coverage is counted with.
    pub value: f64,
    /// The one over the other.
    pub over_tau: f64,
    /// Why, in words.
    pub reason: String,
}

/// Deviations above the average that cells without a radius are given.
const USUAL_TAU: f64 = 3.0;

impl Radius {
    /// Tau itself for trained Gaussians, which grow until tau means something. Anisotropic cells have the covariance of their
    /// points: in `dim` dimensions the squared distance of a Gaussian's own points is `dim` on average, with deviation
    /// sqrt(2 dim), so tau counts deviations above that.
    fn of(shapes: &dyn CellShapes) -> Self {
        let dim = shapes.dim() as f64;
        let tau = shapes.tau().unwrap_or(USUAL_TAU);
        let (value, reason) = match shapes.tau() {
            Some(tau) => (
                tau,
                format!("the tau of the configuration, {tau}, which the cells were trained with"),
            ),
            None => (
                (dim + tau * (2.0 * dim).sqrt()).sqrt(),
                format!(
                    "cells of this preset have no tau: they are fitted to their points, and the squared distance of a \
                     Gaussian's own points in {dim} dimensions is {dim} on average with a deviation of {:.1}; the \
                     radius lies {tau} deviations above that average",
                    (2.0 * dim).sqrt()
                ),
            ),
        };
        Self {
            config_tau: tau,
            value,
            over_tau: if tau > 0.0 { value / tau } else { f64::NAN },
            reason,
        }
    }
}

/// How often points are covered.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Coverage {
    /// Share of the points within the radius of a cell.
    pub share: f64,
    /// Mean number of cells within the radius of a point.
    pub mean: f64,
    /// Share of the points within the tau of the configuration.
    pub share_within_tau: f64,
    /// Points by the number of cells that cover them.
    pub counts: Histogram,
    /// Mahalanobis distance of a point to its nearest cell.
    pub nearest: Quantity,
}

/// Density against coverage.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Density {
    /// Which neighbour's distance the density is one over.
    pub neighbour: usize,
    /// Cells that cover a point, by density.
    pub covered: Vec<Group>,
    /// Distance to the nearest cell, by density.
    pub nearest: Vec<Group>,
    /// Density, by the number of cells that cover a point.
    pub by_coverage: Vec<Group>,
    /// Rank correlation of density and number of covering cells; null when one of them is constant.
    pub covered_correlation: Option<f64>,
    /// Rank correlation of density and distance to the nearest cell.
    pub nearest_correlation: Option<f64>,
}

/// Looks at an index. Runs in rayon's current pool; the same index and options give the same numbers.
///
/// Points added since the index was laid out are among its points, but cells are those of the layout: call
/// `Index::compact` before, if it has changed.
pub fn diagnose(index: &dyn NeighborIndex, options: &Options) -> Result<Diagnosis> {
    check(options)?;
    let sample = Sample::of(index, options.points, options.seed)?;
    let placed = sample.placed.as_rows();
    let shapes = index.shapes();
    let shapes = &*shapes;
    if shapes.is_empty() {
        return Err(nothing("cells"));
    }
    let radius = Radius::of(shapes);
    let covered = cover::affordable(shapes, sample.len());
    let cover = cover::cover(
        placed.slice(0..covered),
        shapes,
        radius.value,
        radius.config_tau,
    )?;
    let centres = options.centres.min(covered);
    let vectors = sample.vectors.as_rows();
    let largest = curvature::SIZES.into_iter().max().unwrap_or(0);
    let near = neighbours::neighbours(vectors, centres, largest);
    let (tiles, seed) = (options.tiles, options.seed);
    let sizes = CellSizes::of(index);
    let (mut curvature, of_centres) =
        curvature::curvature(vectors, &near, &cover.count, options.flat_directions);
    curvature.by_cell = by_cell::by_cell(index, shapes, vectors, &of_centres)?;
    Ok(Diagnosis {
        subject: Subject {
            preset: index.preset(),
            points: index.len(),
            dim: index.dim(),
            model_dim: shapes.dim(),
            metric: index.metric().to_string(),
            cells: shapes.len(),
            overlapping: sizes.sizes.iter().sum::<usize>() > index.len(),
            sampled: sample.len(),
            covered,
            centres,
            seed,
        },
        landscape: landscape::landscape(placed, &cover, shapes, radius.value, tiles, seed),
        coverage: coverage(&cover),
        density: density(&near, &cover),
        curvature,
        anisotropy: anisotropy::anisotropy(shapes, coordinates(index.transform())),
        cell_sizes: sizes,
        radius,
    })
}

fn check(options: &Options) -> Result<()> {
    let rule = "take at least one";
    for (name, value) in [
        ("points", options.points),
        ("centres", options.centres),
        ("tiles", options.tiles),
        ("flat_directions", options.flat_directions),
    ] {
        if value == 0 {
            let value = "0".to_owned();
            return Err(Error::Parameter { name, value, rule });
        }
    }
    Ok(())
}

fn nothing(name: &'static str) -> Error {
    Error::Parameter {
        name,
        value: "0".into(),
        rule: "there is nothing to look at",
    }
}

/// What the coordinates of the space of the cells are.
fn coordinates(transform: &Transform) -> String {
    match transform.out_dim() {
        _ if transform.rotation.is_none() => "the coordinates of the vectors".into(),
        dim if dim == transform.dim() => {
            "the principal components of all points, the largest first".into()
        }
        dim => format!("the first {dim} principal components of all points, the largest first"),
    }
}

fn coverage(cover: &cover::Cover) -> Coverage {
    let points = cover.count.len().max(1) as f64;
    let share = |counts: &[usize]| counts.iter().filter(|c| **c > 0).count() as f64 / points;
    let nearest: Vec<f64> = cover.nearest.iter().map(|v| f64::from(*v)).collect();
    Coverage {
        share: share(&cover.count),
        mean: cover.count.iter().sum::<usize>() as f64 / points,
        share_within_tau: share(&cover.within_tau),
        counts: Histogram::of_counts(&cover.count, 40),
        nearest: Quantity {
            summary: Summary::of(nearest.iter().copied()),
            histogram: Histogram::of(&nearest, 40, false),
            // As many numbers as points would say no more than the histogram.
            values: Vec::new(),
        },
    }
}

fn density(near: &[neighbours::Near], cover: &cover::Cover) -> Density {
    let densities = neighbours::densities(near, DENSITY_NEIGHBOUR);
    let counts = &cover.count[..near.len().min(cover.count.len())];
    let covered: Vec<f64> = counts.iter().map(|c| *c as f64).collect();
    let nearest: Vec<f64> = cover
        .nearest
        .iter()
        .take(near.len())
        .map(|v| f64::from(*v))
        .collect();
    Density {
        neighbour: DENSITY_NEIGHBOUR,
        covered: stats::by_quantile(&densities, &covered, DENSITY_PARTS),
        nearest: stats::by_quantile(&densities, &nearest, DENSITY_PARTS),
        by_coverage: stats::by_count(counts, &densities),
        covered_correlation: stats::rank_correlation(&densities, &covered),
        nearest_correlation: stats::rank_correlation(&densities, &nearest),
    }
}
