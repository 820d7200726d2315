//! The frames, cells and bins of the default preset, seen in the plane of the data.

use garlic_ann::Index;
use garlic_ann::index::LearnedBin;

use super::plane::{Back, hull, pair};
use super::world::{World, query};
use super::{Missing, Point};
use crate::error::Result;
use crate::plot::Ellipse;

/// Where a vector lies in the frame of a cell, and its squared distance from the frame.
pub(super) fn in_frame(index: &Index, cell: usize, at: Point) -> Result<(Vec<f64>, f64)> {
    let model = index.tempered().missing("no tempered cells")?.model();
    let mut inside = [0.0; 2];
    index.space().apply(&query(at), &mut inside);
    let (inside, mean) = (pair(&inside), pair(model.mean(cell)));
    let centred = [inside[0] - mean[0], inside[1] - mean[1]];
    let axes = model.axes(cell).chunks_exact(2).map(pair);
    let y: Vec<f64> = axes
        .map(|u| u[0] * centred[0] + u[1] * centred[1])
        .collect();
    let within: f64 = y.iter().map(|y| y * y).sum();
    let whole = centred[0] * centred[0] + centred[1] * centred[1];
    Ok((y, (whole - within).max(0.0)))
}

/// Squared distance of two places in a frame.
pub(super) fn squared(a: &[f64], b: &[f32]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - f64::from(*b)).powi(2))
        .sum()
}

/// A tempered cell.
pub(super) fn cell(index: &Index, cell: usize) -> Result<Ellipse> {
    let model = index.tempered().missing("no tempered cells")?.model();
    let mut covariance = [0.0; 3];
    for (axis, variance) in model
        .axes(cell)
        .chunks_exact(2)
        .map(pair)
        .zip(model.variances(cell))
    {
        let variance = f64::from(*variance);
        covariance[0] += variance * axis[0] * axis[0];
        covariance[1] += variance * axis[0] * axis[1];
        covariance[2] += variance * axis[1] * axis[1];
    }
    Ok(Back::of(index.space()).ellipse(pair(model.mean(cell)), covariance))
}

/// The outline of a bin's points, and their middle.
pub(super) fn outline(
    world: &World,
    index: &Index,
    bin: &LearnedBin,
) -> Result<(Vec<Point>, Point)> {
    let points: Vec<Point> = bin
        .positions
        .clone()
        .map(|p| world.at(index, p))
        .collect::<Result<_>>()?;
    let count = points.len().max(1) as f64;
    // One or two points have no outline: a little square around each gives them one.
    let square = |p: &Point| {
        [-0.07, 0.07]
            .map(|dx| [-0.07, 0.07].map(|dy| [p[0] + dx, p[1] + dy]))
            .concat()
    };
    let outlined = if points.len() < 3 {
        points.iter().flat_map(square).collect()
    } else {
        points.clone()
    };
    let sum = points
        .iter()
        .fold([0.0, 0.0], |s, p| [s[0] + p[0], s[1] + p[1]]);
    Ok((hull(&outlined), [sum[0] / count, sum[1] / count]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bins share out all points, each within its radius.
    #[test]
    fn bins_hold_all_points() {
        let world = World::shared();
        for index in [&world.tempered, &world.line] {
            let body = index.tempered().unwrap();
            let mut held = 0;
            for bin in (0..body.bins()).map(|bin| body.bin(bin).unwrap()) {
                held += bin.positions.len();
                for position in bin.positions.clone() {
                    let (y, outside) =
                        in_frame(index, bin.cell, world.at(index, position).unwrap()).unwrap();
                    assert!(squared(&y, &bin.centre).sqrt() <= f64::from(bin.radius) + 1e-4);
                    let [low, high] = bin.outside.map(f64::from);
                    assert!(outside.sqrt() >= low - 1e-2 && outside.sqrt() <= high + 1e-2);
                }
            }
            assert_eq!(held, world.points.len());
            assert!(body.bin(body.bins()).is_none());
        }
    }
}
