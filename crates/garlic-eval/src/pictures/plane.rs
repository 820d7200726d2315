//! From the coordinates of a model or a frame back to the plane of the data, and a few shapes there.

use garlic_ann::cell::Frame;
use garlic_ann::cell::sphere::Bin;
use garlic_ann::model::Gaussians;
use garlic_ann::space::Space;

use super::Point;
use crate::plot::Ellipse;

/// Undoes the change of coordinates of an index over the plane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Back {
    origin: Point,
    /// Rows of the inverse matrix.
    inverse: [Point; 2],
}

impl Back {
    /// From a space of two dimensions; the map is affine, so three points tell all of it.
    pub(super) fn of(space: &Space) -> Self {
        let image = |x: f32, y: f32| {
            let mut out = [0.0; 2];
            space.apply(&[x, y], &mut out);
            out.map(f64::from)
        };
        let (o, x, y) = (image(0.0, 0.0), image(1.0, 0.0), image(0.0, 1.0));
        let [a, b, c, d] = [x[0] - o[0], y[0] - o[0], x[1] - o[1], y[1] - o[1]];
        let inverse = 1.0 / (a * d - b * c);
        Self {
            origin: o,
            inverse: [[d * inverse, -b * inverse], [-c * inverse, a * inverse]],
        }
    }

    /// A direction.
    pub(super) fn direction(&self, [x, y]: Point) -> Point {
        self.inverse.map(|row| row[0] * x + row[1] * y)
    }

    /// A point.
    pub(super) fn point(&self, [x, y]: Point) -> Point {
        self.direction([x - self.origin[0], y - self.origin[1]])
    }

    /// A Gaussian with this mean and covariance (variance of x, covariance, variance of y).
    pub(super) fn ellipse(&self, mean: Point, [xx, xy, yy]: [f64; 3]) -> Ellipse {
        let [p, q] = self.inverse;
        let product = |a: Point, b: Point| {
            a[0] * b[0] * xx + (a[0] * b[1] + a[1] * b[0]) * xy + a[1] * b[1] * yy
        };
        let [x, y] = self.point(mean);
        Ellipse {
            centre: (x, y),
            covariance: [product(p, p), product(p, q), product(q, q)],
        }
    }

    /// A cell of a model with full factors.
    pub(super) fn cell(&self, model: &Gaussians, cell: usize) -> Ellipse {
        let mean = pair(model.mean(cell));
        self.shaped(mean, model.factor(cell))
    }

    /// A cell with this factor, packed row by row.
    pub(super) fn shaped(&self, mean: Point, factor: &[f32]) -> Ellipse {
        let l = |i: usize| factor.get(i).copied().map_or(0.0, f64::from);
        let covariance = [l(0) * l(0), l(0) * l(1), l(1) * l(1) + l(2) * l(2)];
        self.ellipse(mean, covariance)
    }

    /// A point given by its coordinates in a cell's frame.
    pub(super) fn out_of_frame(&self, frame: &Frame, y: Point) -> Point {
        let mut point = pair(&frame.centre);
        for (axis, y) in frame.basis.as_rows().iter().zip(y) {
            let axis = pair(axis);
            point = [point[0] + y * axis[0], point[1] + y * axis[1]];
        }
        self.point(point)
    }
}

/// Two coordinates; zero where there is none.
pub(super) fn pair(values: &[f32]) -> Point {
    let at = |i: usize| values.get(i).copied().map_or(0.0, f64::from);
    [at(0), at(1)]
}

/// Distance of two points.
pub(super) fn distance(a: Point, b: Point) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

/// The corners of a bin of a two-dimensional frame, its arcs cut into short pieces; none for other bins.
pub(super) fn sector(bin: &Bin) -> Vec<Point> {
    let Bin::Shell {
        radius, azimuth, ..
    } = bin
    else {
        return Vec::new();
    };
    let pieces = ((azimuth.hi - azimuth.lo) / 0.08).ceil().max(1.0) as usize;
    let arc = |r: f64, i: usize| {
        let angle = azimuth.lo + (azimuth.hi - azimuth.lo) * i as f64 / pieces as f64;
        [r * angle.cos(), r * angle.sin()]
    };
    let outer = (0..=pieces).map(|i| arc(radius.hi, i));
    outer
        .chain((0..=pieces).rev().map(|i| arc(radius.lo, i)))
        .collect()
}

/// The middle of a bin of a two-dimensional frame.
pub(super) fn middle(bin: &Bin) -> Point {
    match bin {
        Bin::Shell {
            radius, azimuth, ..
        } => {
            let (r, angle) = (
                (radius.lo + radius.hi) / 2.0,
                (azimuth.lo + azimuth.hi) / 2.0,
            );
            [r * angle.cos(), r * angle.sin()]
        }
        _ => [0.0, 0.0],
    }
}

/// The convex hull of some points, counter-clockwise.
pub(super) fn hull(points: &[Point]) -> Vec<Point> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
    sorted.dedup();
    if sorted.len() < 3 {
        return sorted;
    }
    let half = |points: &mut dyn Iterator<Item = Point>| {
        let mut chain: Vec<Point> = Vec::new();
        for p in points {
            while let [.., a, b] = chain[..] {
                if (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) > 0.0 {
                    break;
                }
                chain.pop();
            }
            chain.push(p);
        }
        chain.pop();
        chain
    };
    let mut all = half(&mut sorted.iter().copied());
    all.extend(half(&mut sorted.iter().rev().copied()));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use garlic_ann::cell::sphere::{Interval, distance_to_bin};

    #[test]
    fn hulls_hold_their_points() {
        let square = [
            [0.0, 0.0],
            [1.0, 0.0],
            [0.5, 0.5],
            [1.0, 1.0],
            [0.0, 1.0],
            [0.2, 0.7],
        ];
        assert_eq!(
            hull(&square),
            [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
        );
        assert_eq!(hull(&square[..1]), [[0.0, 0.0]]);
    }

    #[test]
    fn corners_lie_on_the_edge_of_their_bin() {
        let bin = Bin::Shell {
            radius: Interval::new(1.0, 2.0),
            polar: vec![],
            azimuth: Interval::new(-0.5, 1.2),
        };
        let corners = sector(&bin);
        assert!(corners.len() > 20);
        for corner in corners {
            assert!(distance_to_bin(&corner.map(|v| v as f32), &bin) < 1e-6);
        }
        assert_eq!(distance_to_bin(&middle(&bin).map(|v| v as f32), &bin), 0.0);
    }
}
