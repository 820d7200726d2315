//! The example that all pictures show: points in the plane whose shape and density change from place to place.

use std::f64::consts::PI;

use garlic_linalg::{random_stream, uniform_unit};
use rand::Rng;

use super::Point;

/// Seed of the data and of every index.
pub(super) const SEED: u64 = 6;
/// Points along the dense arm, along the thin one, in the blob, and scattered.
const COUNTS: [usize; 4] = [640, 400, 536, 24];
/// The part of the plane that pictures show: left, bottom, right, top.
pub(super) const WINDOW: [f64; 4] = [0.0, 0.0, 10.0, 10.0];

/// Two crossing arms, a blob and scattered points, row by row.
pub(super) fn points() -> Vec<Point> {
    let mut rng = random_stream(SEED, 1);
    let mut all = Vec::with_capacity(COUNTS.iter().sum());
    for _ in 0..COUNTS[0] {
        all.push(arm(&mut rng, [4.6, 2.0], 3.6, [0.1 * PI, 0.95 * PI], 0.17));
    }
    for _ in 0..COUNTS[1] {
        all.push(arm(&mut rng, [2.4, 4.6], 3.4, [-0.45 * PI, 0.42 * PI], 0.3));
    }
    for _ in 0..COUNTS[2] {
        let [x, y] = [normal(&mut rng), normal(&mut rng)];
        all.push([8.0 + 0.4 * x, 7.9 + 0.4 * y]);
    }
    for _ in 0..COUNTS[3] {
        all.push([
            0.4 + 9.2 * uniform_unit(&mut rng),
            0.4 + 9.2 * uniform_unit(&mut rng),
        ]);
    }
    all
}

/// A point near an arc around `centre`, `width` being the standard deviation across it.
fn arm(rng: &mut impl Rng, centre: Point, radius: f64, [from, to]: [f64; 2], width: f64) -> Point {
    let angle = from + (to - from) * uniform_unit(rng);
    let radius = radius + width * normal(rng);
    [
        centre[0] + radius * angle.cos(),
        centre[1] + radius * angle.sin(),
    ]
}

/// A standard normal number (Box-Muller).
fn normal(rng: &mut impl Rng) -> f64 {
    let radius = (-2.0 * (1.0 - uniform_unit(rng)).ln()).sqrt();
    radius * (2.0 * PI * uniform_unit(rng)).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_lies_in_the_window_and_stays_the_same() {
        let all = points();
        assert_eq!(all.len(), 1600);
        assert_eq!(all, points());
        let [left, bottom, right, top] = WINDOW;
        let inside = |p: &&Point| p[0] > left && p[0] < right && p[1] > bottom && p[1] < top;
        assert_eq!(all.iter().filter(inside).count(), all.len());
    }
}
