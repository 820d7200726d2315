//! The cells seen from the plane of the first two principal components of the points.
//!
//! On a plane the squared Mahalanobis distance to a cell is a polynomial of degree two in the two coordinates. Six numbers
//! a cell therefore give the exact value at every place, however fine the grid.

use garlic_core::CellShapes;
use garlic_linalg::{Rows, top_components};
use rayon::prelude::*;
use serde::Serialize;

use super::cover::Cover;
use crate::metrics::quantile;

/// Points drawn over the map.
const DRAWN: usize = 700;
/// Share of the points that the map leaves out at each of its four sides.
const OUTSIDE: f64 = 0.001;

/// Values over a rectangle of the plane, on `columns` x `rows` tiles; the lowest row comes first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Landscape {
    /// Range of the first principal component, in the units of the model's space.
    pub x: [f64; 2],
    /// Range of the second.
    pub y: [f64; 2],
    /// Tiles in a row.
    pub columns: usize,
    /// Rows of tiles.
    pub rows: usize,
    /// Share of the variance in the model's space that the plane holds.
    pub variance_share: f64,
    /// Smallest Mahalanobis distance over the cells, at the middle of each tile.
    pub nearest: Vec<f32>,
    /// Cells within the radius, at the middle of each tile.
    pub covered: Vec<u32>,
    /// Points of the sample that are seen in each tile.
    pub points: Vec<u32>,
    /// Mean distance of those points to their nearest cell; null without points.
    pub points_nearest: Vec<Option<f32>>,
    /// Mean number of cells that cover those points; null without points.
    pub points_covered: Vec<Option<f32>>,
    /// Places of some points.
    pub drawn: Vec<(f32, f32)>,
}

/// The plane: a place, two directions.
struct Plane {
    mean: Vec<f64>,
    axes: [Vec<f64>; 2],
    variance_share: f64,
}

impl Plane {
    fn of(points: Rows<'_>, seed: u64) -> Self {
        let fitted = top_components(points, 2, seed);
        // Points on a line, or all in one place, have fewer components.
        let axis = |i: usize| -> Vec<f64> {
            match i < fitted.basis.rows() {
                true => fitted.basis.row(i).iter().map(|v| f64::from(*v)).collect(),
                false => vec![0.0; points.dim()],
            }
        };
        let mean: Vec<f64> = fitted.mean.iter().map(|v| f64::from(*v)).collect();
        let kept: f64 = fitted.values.iter().map(|v| f64::from(*v)).sum();
        let all = total_variance(points, &mean);
        Self {
            axes: [axis(0), axis(1)],
            mean,
            variance_share: if all > 0.0 {
                (kept / all).min(1.0)
            } else {
                0.0
            },
        }
    }

    fn project(&self, point: &[f32]) -> (f64, f64) {
        let along = |axis: &[f64]| -> f64 {
            let centred = point.iter().zip(&self.mean).map(|(x, m)| f64::from(*x) - m);
            centred.zip(axis).map(|(c, a)| c * a).sum()
        };
        (along(&self.axes[0]), along(&self.axes[1]))
    }
}

/// Sum of the variances of all coordinates about `mean`.
pub(super) fn total_variance(points: Rows<'_>, mean: &[f64]) -> f64 {
    let squares = |row: &[f32]| -> f64 {
        let pairs = row.iter().zip(mean);
        pairs.map(|(x, m)| (f64::from(*x) - m).powi(2)).sum()
    };
    points.iter().map(squares).sum::<f64>() / points.len().max(1) as f64
}

/// The squared distance to one cell: coefficients of x², y², xy, x, y and 1.
struct Bowl([f64; 6]);

impl Bowl {
    fn of(plane: &Plane, shapes: &dyn CellShapes, cell: usize) -> Self {
        let offset: Vec<f64> = plane
            .mean
            .iter()
            .zip(shapes.mean(cell))
            .map(|(p, m)| p - f64::from(*m))
            .collect();
        let [u, v] = [0, 1].map(|i| shapes.whiten(cell, &plane.axes[i]));
        let c = shapes.whiten(cell, &offset);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        Self([
            dot(&u, &u),
            dot(&v, &v),
            2.0 * dot(&u, &v),
            2.0 * dot(&u, &c),
            2.0 * dot(&v, &c),
            dot(&c, &c),
        ])
    }

    fn at(&self, x: f64, y: f64) -> f64 {
        let [xx, yy, xy, bx, by, c] = self.0;
        (x * (xx * x + xy * y + bx) + y * (yy * y + by) + c).max(0.0)
    }
}

/// Looks at the cells from the plane of `points`; `cover` is what is known of the first of them.
pub(super) fn landscape(
    points: Rows<'_>,
    cover: &Cover,
    shapes: &dyn CellShapes,
    radius: f64,
    side: usize,
    seed: u64,
) -> Landscape {
    let plane = Plane::of(points, seed);
    let places: Vec<(f64, f64)> = (0..points.len())
        .into_par_iter()
        .map(|i| plane.project(points.row(i)))
        .collect();
    let mut map = Landscape {
        x: window(places.iter().map(|p| p.0).collect()),
        y: window(places.iter().map(|p| p.1).collect()),
        columns: side,
        rows: side,
        variance_share: plane.variance_share,
        drawn: places
            .iter()
            .take(DRAWN)
            .map(|p| (thousandths(p.0), thousandths(p.1)))
            .collect(),
        ..Landscape::default()
    };
    let bowls: Vec<Bowl> = (0..shapes.len())
        .into_par_iter()
        .map(|cell| Bowl::of(&plane, shapes, cell))
        .collect();
    let limit = radius * radius;
    let tiles: Vec<(f32, u32)> = (0..side * side)
        .into_par_iter()
        .map(|tile| {
            let (x, y) = map.middle(tile);
            let (nearest, covered) = bowls.iter().map(|bowl| bowl.at(x, y)).fold(
                (f64::INFINITY, 0),
                |(nearest, covered), squared| {
                    (squared.min(nearest), covered + u32::from(squared <= limit))
                },
            );
            (thousandths(nearest.sqrt()), covered)
        })
        .collect();
    (map.nearest, map.covered) = tiles.into_iter().unzip();
    map.add_points(&places, cover);
    map
}

impl Landscape {
    /// The middle of a tile.
    fn middle(&self, tile: usize) -> (f64, f64) {
        let (column, row) = (tile % self.columns, tile / self.columns);
        let at = |[a, b]: [f64; 2], i: usize, n: usize| a + (b - a) * (i as f64 + 0.5) / n as f64;
        (at(self.x, column, self.columns), at(self.y, row, self.rows))
    }

    /// The tile of a place; none outside.
    fn tile(&self, (x, y): (f64, f64)) -> Option<usize> {
        let at = |[a, b]: [f64; 2], v: f64, n: usize| {
            let i = ((v - a) / (b - a) * n as f64).floor();
            (i >= 0.0 && i < n as f64).then_some(i as usize)
        };
        Some(at(self.y, y, self.rows)? * self.columns + at(self.x, x, self.columns)?)
    }

    fn add_points(&mut self, places: &[(f64, f64)], cover: &Cover) {
        let tiles = self.columns * self.rows;
        self.points = vec![0; tiles];
        let mut sums = vec![(0u32, 0.0, 0.0); tiles];
        for (i, place) in places.iter().enumerate() {
            let Some(tile) = self.tile(*place) else {
                continue;
            };
            self.points[tile] += 1;
            if let (Some(nearest), Some(count)) = (cover.nearest.get(i), cover.count.get(i)) {
                let sum = &mut sums[tile];
                *sum = (
                    sum.0 + 1,
                    sum.1 + f64::from(*nearest),
                    sum.2 + *count as f64,
                );
            }
        }
        let mean = |n: u32, sum: f64| (n > 0).then(|| thousandths(sum / f64::from(n)));
        self.points_nearest = sums.iter().map(|s| mean(s.0, s.1)).collect();
        self.points_covered = sums.iter().map(|s| mean(s.0, s.2)).collect();
    }
}

/// What holds nearly all values, with some room.
fn window(mut values: Vec<f64>) -> [f64; 2] {
    values.sort_by(f64::total_cmp);
    let (low, high) = (quantile(&values, OUTSIDE), quantile(&values, 1.0 - OUTSIDE));
    let room = if high > low { 0.06 * (high - low) } else { 1.0 };
    [low - room, high + room]
}

/// As many digits as a drawing needs.
fn thousandths(value: f64) -> f32 {
    ((value * 1000.0).round() / 1000.0) as f32
}

#[cfg(test)]
mod tests {
    use garlic_core::NeighborIndex as _;

    use super::super::cover::cover;
    use super::super::dense::Dense;
    use super::super::tests::index;
    use super::*;

    #[test]
    fn the_grid_has_the_distances_of_its_places() {
        let index = index();
        let shapes = index.shapes();
        let shapes = &*shapes;
        let sample = super::super::sample::Sample::of(&index, 300, 3).unwrap();
        let points = sample.placed.as_rows();
        let of_points = cover(points, shapes, 3.0, 3.0).unwrap();
        let map = landscape(points, &of_points, shapes, 3.0, 12, 1);
        let plane = Plane::of(points, 1);
        let mut lifted = Vec::new();
        for tile in 0..144 {
            let (x, y) = map.middle(tile);
            let coordinates = (0..points.dim())
                .map(|j| plane.mean[j] + x * plane.axes[0][j] + y * plane.axes[1][j]);
            lifted.extend(coordinates.map(|v| v as f32));
        }
        let expected = cover(Rows::new(&lifted, points.dim()).unwrap(), shapes, 3.0, 3.0).unwrap();
        for tile in 0..144 {
            let (found, right) = (map.nearest[tile], expected.nearest[tile]);
            assert!(
                (found - right).abs() < 2e-3 * right.max(1.0),
                "{found} {right}"
            );
            assert_eq!(map.covered[tile] as usize, expected.count[tile]);
        }
        let seen: u32 = map.points.iter().sum();
        assert!((290..=300).contains(&seen), "{seen}");
        let tile = map.points.iter().position(|n| *n > 0).unwrap();
        assert!(map.points_nearest[tile].is_some());
    }

    #[test]
    fn points_on_a_line_or_in_one_place_have_a_map() {
        let shapes = Dense {
            mean: vec![1.0, 1.0],
            ..Dense::diagonal(&[1.0, 1.0], 1)
        };
        for data in [vec![2.0, 1.0, 3.0, 1.0], vec![1.0; 6]] {
            let rows = Rows::new(&data, 2).unwrap();
            let of_points = cover(rows, &shapes, 3.0, 3.0).unwrap();
            let map = landscape(rows, &of_points, &shapes, 3.0, 4, 1);
            assert!(map.nearest.iter().all(|v| v.is_finite()));
            assert_eq!(map.points.iter().sum::<u32>() as usize, rows.len());
        }
    }
}
