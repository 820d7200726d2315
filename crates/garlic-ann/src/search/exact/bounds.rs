//! How far rounding can move what exact search computes, and the bounds that allow for it.
//!
//! docs/internals/exactness.md has the proof; the sections named here are those of that page. Matrix products are allowed
//! for in any order of additions and the kernels of garlic-simd on every instruction set, with or without fused multiply-adds.

use crate::bins::Bounds;
use crate::quantize::zero_code;
use garlic_simd::{CodeBits, CodeQuery};

/// Largest relative error of one rounding to a 32-bit float (section "Rounding").
const UNIT: f64 = 1.0 / (1u64 << 24) as f64;
/// Absolute error of a product that underflows: half of the smallest 32-bit float (section "Rounding").
const UNDERFLOW: f64 = f64::from_bits((1023 - 150) << 52);
/// Running sums that the kernels of garlic-simd have at least, and roundings that it takes to add those up (section
/// "Rounding").
const LANES: f64 = 8.0;
const TAIL: f64 = 12.0;
/// Roundings beside those of a sum: of roots, factors and differences (section "Rounding").
const SCALARS: f64 = 8.0;
/// Axes are rounded from orthonormal ones in double precision; a multiple of that rounding (section "Axes").
const AXES: f64 = 8.0;
/// Largest weight of a coordinate (section "Codes").
const LARGEST_WEIGHT: f64 = 127.0;
/// The rounding of everything here, which is computed in double precision (section "Rounding").
const DOUBLE: f64 = 1.0 + 1e-12;

/// Largest relative error of a result that `count` roundings lead to; infinite where nothing is known any more.
fn gamma(count: f64, unit: f64) -> f64 {
    let product = count * unit;
    match product < 0.5 {
        true => product / (1.0 - product),
        false => f64::INFINITY,
    }
}

/// A 32-bit float that is no less.
fn up(value: f64) -> f32 {
    ((value * DOUBLE) as f32).next_up()
}

/// A 32-bit float that is not negative and no more.
fn down(value: f64) -> f32 {
    ((value / DOUBLE) as f32).next_down().max(0.0)
}

/// Sizes that rounding grows with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Coordinates of a vector.
    pub(super) dim: usize,
    /// Coordinates in the truncated space.
    pub(super) wide: usize,
    /// Axes of a cell.
    pub(super) rank: usize,
}

/// Relative errors of what an index of some sizes computes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounding {
    /// Error of sums of squares that underflow, and its root.
    floor: f64,
    floor_root: f64,
    sizes: Sizes,
    /// The excess of the squared norm of a matrix of axes over 1: eta.
    axes: f64,
    /// Of coordinates in the space, relative to the distance from its mean: a.
    rotation: Sides,
    /// Of coordinates in a frame, relative to the lengths that they are computed from: e.
    projection: Sides,
    /// Of squared lengths of vectors, of coordinates in the space, and of coordinates in a frame.
    vector: f64,
    space: f64,
    frame: f64,
    /// Of scalars.
    scalar: f64,
}

/// One number for the query and one for points.
#[derive(Clone, Copy, Debug)]
struct Sides {
    query: f64,
    point: f64,
}

impl Sides {
    fn sum(self) -> f64 {
        self.query + self.point
    }

    fn times(self, factor: f64) -> Self {
        Self {
            query: self.query * factor,
            point: self.point * factor,
        }
    }
}

impl Rounding {
    /// The errors of an index of these sizes.
    pub(super) fn new(sizes: Sizes) -> Self {
        Self::with_unit(sizes, UNIT)
    }

    /// The same if one rounding had the relative error `unit`; without any if it is zero.
    fn with_unit(sizes: Sizes, unit: f64) -> Self {
        let [dim, wide, rank] = [sizes.dim, sizes.wide, sizes.rank].map(|size| size as f64);
        let in_lanes = |terms: f64| gamma(terms / LANES + TAIL + SCALARS, unit);
        let in_any_order = |terms: f64| gamma(terms + SCALARS, unit);
        let axes = AXES * unit * wide.max(rank).sqrt();
        let products = |terms: f64| Sides {
            query: in_lanes(terms),
            point: in_any_order(terms),
        };
        let floor = (dim + wide + rank + SCALARS) * 4.0 * UNDERFLOW * (unit / UNIT);
        Self {
            floor,
            floor_root: floor.sqrt(),
            sizes,
            axes,
            rotation: products(dim).times(wide.sqrt() * (1.0 + axes)),
            projection: products(wide).times(rank.sqrt() * (1.0 + axes)),
            vector: in_lanes(dim),
            space: in_lanes(wide),
            frame: in_lanes(rank),
            scalar: gamma(SCALARS, unit),
        }
    }

    /// What a query needs: its computed squared distance from the mean of the space is `whole`, and points count up to the
    /// computed squared distance `radius`.
    pub(super) fn slack(&self, whole: f32, radius: f32) -> Slack<'_> {
        let squared = |value: f32| f64::from(value) * (1.0 + self.vector) + self.floor;
        let radius = squared(radius);
        Slack {
            rounding: self,
            radius,
            far: squared(whole).sqrt() + radius.sqrt(),
        }
    }
}

/// Errors of what is computed for one query and for points within its radius.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slack<'a> {
    rounding: &'a Rounding,
    /// True squared distance of a point that counts, at most.
    radius: f64,
    /// Distance of the query, and of a point that counts, from the mean of the space, at most.
    far: f64,
}

/// The same in one cell.
#[derive(Clone, Copy, Debug)]
struct CellSlack {
    /// Length of the coordinates of query and points, at most.
    length: f64,
    /// Errors of coordinates in the space, as lengths.
    rotation: Sides,
    /// Errors that projection adds to coordinates in the frame, as lengths.
    projection: Sides,
    /// Error of a squared distance from the mean of the cell, beyond that of the coordinates.
    norm: f64,
    /// The same of a squared distance from the frame.
    residual: f64,
}

impl CellSlack {
    /// Error of the squared distance of query and points from the frame, where their images in it are at most `span` from
    /// the mean of the space.
    fn residuals(&self, span: f64) -> f64 {
        let moved = self.rotation.query.max(self.rotation.point);
        self.residual + moved * (2.0 * span + 2.0 * moved)
    }

    /// Error of an estimate, beyond those of codes.
    fn estimates(&self, span: f64) -> f64 {
        let moved = self.rotation.sum();
        let Sides { query, point } = self.projection;
        2.0 * self.norm
            + moved * (2.0 * span + 2.0 * moved)
            + 2.0 * ((query + point) * self.length + query * point)
    }

    /// Error of the distance between query and points within the frame.
    fn shift(&self, rounding: &Rounding) -> f64 {
        (1.0 + rounding.axes) * self.rotation.sum()
            + self.projection.sum()
            + 4.0 * rounding.floor_root
    }
}

impl Slack<'_> {
    /// Errors in a cell whose mean is at most `mean` from the query, in the truncated space (section "Cells").
    fn cell(&self, mean: f64) -> CellSlack {
        let rounding = self.rounding;
        let Rounding { axes, floor, .. } = *rounding;
        let far = self.far;
        let rotation = rounding.rotation.times(far);
        let reach = mean + rotation.sum() + (1.0 + axes) * self.radius.sqrt();
        let (reach2, far2) = (reach.powi(2), far.powi(2));
        let length = (1.0 + axes) * reach;
        let images = (1.0 + axes) * far + rotation.query.max(rotation.point);
        let projection = Sides {
            query: rounding.projection.query * (2.0 * images + reach),
            point: rounding.projection.point * reach,
        };
        let norm = rounding.space * (reach2 + images.powi(2))
            + (rounding.vector + axes) * far2
            + rounding.scalar * (reach2 + far2)
            + floor;
        let moved = projection.query.max(projection.point);
        let residual = norm
            + moved * (2.0 * length + moved)
            + rounding.frame * (length + moved).powi(2)
            + (axes + rounding.scalar) * (reach2 + far2)
            + floor;
        CellSlack {
            length,
            rotation,
            projection,
            norm,
            residual,
        }
    }

    /// The query in a cell: `mean` is its computed squared distance from the cell's mean in the truncated space, `base` the
    /// same in the whole space, and `y` are its coordinates in the frame.
    pub(super) fn query_in_cell(&self, mean: f32, base: f32, y: &[f32]) -> QueryInCell {
        let rounding = self.rounding;
        let Rounding { axes, floor, .. } = *rounding;
        let mean = (f64::from(mean) * (1.0 + rounding.space) + floor).sqrt();
        let slack = self.cell(mean);
        let inside = garlic_simd::dot(y, y);
        let away = f64::from((base - inside).max(0.0));
        // How far the images are from the mean of the space: first by the length within the cell, then by what that gives
        // for the distance from the frame.
        let span = |residual: f64| {
            (1.0 + 4.0 * axes) * (self.far + residual.min(slack.length)) + axes * slack.length
        };
        let span = span((away + slack.residuals(span(f64::INFINITY))).sqrt());
        let residual = slack.residuals(span);
        let radius = self.radius * (1.0 + 3.0 * axes);
        QueryInCell {
            base,
            low: down((away - residual).max(0.0).sqrt()),
            high: up((away + residual).sqrt()),
            shift: up(slack.shift(rounding)),
            residual: up(residual),
            shorter: down(1.0 - rounding.frame),
            longer: up(1.0 + rounding.frame),
            radius: up(radius * (1.0 + 2.0 * rounding.scalar)),
            length: f64::from(inside).sqrt() * (1.0 + rounding.frame) + rounding.floor_root,
            decoded: slack.length + slack.shift(rounding),
            estimate: radius + slack.estimates(span) + rounding.scalar * f64::from(base),
            rounding: *rounding,
        }
    }
}

/// A query as one cell sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueryInCell {
    /// Squared distance from the cell's mean, as it was computed.
    pub(super) base: f32,
    /// Distance from the frame, at least and at most.
    low: f32,
    high: f32,
    /// Error of a distance between query and point within the frame.
    shift: f32,
    /// Error of a point's squared distance from the frame.
    residual: f32,
    /// Factors that allow for the error of a length within the frame.
    shorter: f32,
    longer: f32,
    /// Squared distance up to which points count, with the rounding of the bound that is compared with it.
    radius: f32,
    /// Length within the frame, at most.
    length: f64,
    /// Length of the coordinates of a point that counts, at most.
    decoded: f64,
    /// The limit of estimates, without the terms that depend on the bin.
    estimate: f64,
    rounding: Rounding,
}

impl QueryInCell {
    /// Whether a bin whose centre is at this squared distance within the frame may have a point that counts.
    #[inline]
    pub(super) fn may_hold(&self, centre: f32, bin: &Bounds) -> bool {
        // Not `<=`: what is no number, of a damaged file, proves nothing.
        !matches!(
            self.bound(centre, bin).partial_cmp(&self.radius),
            Some(std::cmp::Ordering::Greater)
        )
    }

    /// A lower bound for the squared distance to a point of a bin (section "Bins"), up to the factor that
    /// [`Self::may_hold`] allows for.
    #[inline]
    fn bound(&self, centre: f32, bin: &Bounds) -> f32 {
        let within = centre.sqrt() * self.shorter - bin.radius * self.longer - self.shift;
        let within = within.max(0.0);
        let low = (bin.low * bin.low - self.residual).max(0.0).sqrt() * self.shorter;
        let high = (bin.high * bin.high + self.residual).sqrt() * self.longer;
        let gap = (self.low - high).max(low - self.high).max(0.0);
        within * within + gap * gap
    }

    /// The limit that the estimates of all points of a bin that count are below (section "Codes").
    pub(super) fn limit(&self, bin: &Bounds, query: &CodeQuery<'_>, bits: CodeBits) -> f32 {
        // Products too small for weights have none, and estimates say nothing.
        if query.scale == 0.0 && self.length > 0.0 {
            return f32::INFINITY;
        }
        let rounding = &self.rounding;
        let [error, code_sum, high] = [bin.error, bin.code_sum, bin.high].map(f64::from);
        let residual = (high.powi(2) + f64::from(self.residual)).sqrt();
        let error = error * (1.0 + rounding.frame) + rounding.floor_root;
        let coding = error + rounding.scalar * (self.decoded + error);
        // Half a unit of every weight at most, times two for the cross term.
        let scale = f64::from(query.scale.abs());
        let weighing = scale * 0.5 * code_sum * (1.0 + rounding.scalar);
        let codes = f64::from(bits.largest()) + f64::from(zero_code(bits));
        let sums = LARGEST_WEIGHT * rounding.sizes.rank as f64 * codes;
        let summing = scale * rounding.scalar * sums;
        let limit = self.estimate
            + 2.0 * f64::from(self.high) * residual
            + 2.0 * self.length * coding
            + weighing
            + summing;
        // Estimates below the limit are kept: one that equals it is wanted as well.
        let limit = up(limit * (1.0 + rounding.scalar) + rounding.floor).next_up();
        match limit.is_nan() {
            true => f32::INFINITY,
            false => limit,
        }
    }
}

#[cfg(test)]
impl Rounding {
    /// No rounding at all: what the bounds would be in exact arithmetic.
    pub(super) fn none(sizes: Sizes) -> Self {
        Self::with_unit(sizes, 0.0)
    }

    /// Excess of the squared norm of axes over 1.
    pub(super) fn axes(&self) -> f64 {
        self.axes
    }
}

#[cfg(test)]
impl QueryInCell {
    /// Least and largest distance of the query from the frame, and the error of distances within it.
    pub(super) fn residual_and_shift(&self) -> [f64; 3] {
        [self.low, self.high, self.shift].map(f64::from)
    }

    /// What a point's squared distance from the frame, and lengths within the frame, may be wrong by.
    pub(super) fn point_errors(&self) -> [f64; 2] {
        [self.residual, self.longer].map(f64::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One large term swallows all terms that its running sum meets: no more than a lane has.
    #[test]
    fn kernels_sum_in_lanes() {
        let large = (1u32 << 24) as f32;
        for n in [1usize, 7, 8, 9, 31, 64, 100, 257, 784, 2000, 4096] {
            for at in [0, n / 3, n / 2, n - 1] {
                let mut terms = vec![1.0f32; n];
                terms[at] = large;
                let roots: Vec<f32> = terms.iter().map(|v| v.sqrt()).collect();
                let (ones, zeros) = (vec![1.0f32; n], vec![0.0f32; n]);
                let mut rows = [0.0f32; 2];
                garlic_simd::dots(&terms, &ones, &mut rows[..1]);
                garlic_simd::l2_squared_rows(&roots, &zeros, &mut rows[1..]);
                let found = [
                    garlic_simd::dot(&terms, &ones),
                    garlic_simd::l2_squared(&roots, &zeros),
                    rows[0],
                    rows[1],
                ];
                let exact = f64::from(large) + (n - 1) as f64;
                let most = gamma(n as f64 / LANES + TAIL, UNIT) * exact;
                for found in found.map(f64::from) {
                    assert!((found - exact).abs() <= most, "{n} {at}: {found} {exact}");
                }
            }
        }
    }

    #[test]
    fn floats_are_rounded_outwards() {
        for value in [0.0, 1e-46, 1e-45, 1e-39, 0.1, 1.0 / 3.0, 1e20, 3.5e38] {
            assert!(f64::from(up(value)) >= value && f64::from(down(value)) <= value);
        }
        assert!(down(0.0) == 0.0 && up(f64::INFINITY) == f32::INFINITY);
    }

    /// What is no number, and what nothing is known of, is never skipped.
    #[test]
    fn nothing_is_skipped_without_proof() {
        let sizes = Sizes {
            dim: 1 << 24,
            wide: 8,
            rank: 4,
        };
        let rounding = Rounding::new(sizes);
        let seen = rounding.slack(1.0, 1.0).query_in_cell(1e6, 1e6, &[1e3; 4]);
        let bin = Bounds {
            low: 1e3,
            high: 1e3,
            ..Bounds::default()
        };
        assert!(seen.may_hold(1e12, &bin));
        let query = CodeQuery {
            weights: &[0; 4],
            scale: 1.0,
            offset: 0.0,
        };
        let rounding = Rounding::new(Sizes { dim: 8, ..sizes });
        let seen = rounding.slack(1.0, 1.0).query_in_cell(1e6, 1e6, &[1e3; 4]);
        assert!(!seen.may_hold(1e12, &Bounds::default()));
        let damaged = Bounds {
            radius: f32::NAN,
            high: f32::NAN,
            ..Bounds::default()
        };
        assert_eq!(seen.limit(&damaged, &query, CodeBits::Eight), f32::INFINITY);
        let bin = Bounds {
            code_sum: f32::NAN,
            ..bin
        };
        assert_eq!(seen.limit(&bin, &query, CodeBits::Eight), f32::INFINITY);
    }
}
