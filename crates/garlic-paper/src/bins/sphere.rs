//! Hyperspherical bins of one cell: coordinates, regions, and the exact distance to a region.
//!
//! A point of the cell's frame, `y` in R^r, has a radius, `r - 2` polar angles in [0, pi] (the first one
//! measured from the first axis) and one azimuth in (-pi, pi]. A [`Grid`](super::Grid) cuts each coordinate into equal
//! steps between the cell's own extremes, and a bin is one step of every coordinate. With `r = 1` the only
//! coordinate is the signed position on the line; with `r = 0` there is a single bin.
//!
//! The distance to a bin needs no solver. For a query with angle `a` and a bin direction with angle `b`,
//! `cos(gamma) = cos(a) cos(b) + sin(a) sin(b) c`, where `c` belongs to the remaining angles. Polar sines are
//! never negative, so the largest `c` is always the right one, and the angles can be settled one by one from
//! the last to the first. Everything here works with the versine `v = 1 - c` instead of the cosine: it stays
//! exact for nearly parallel directions, where a cosine has lost half its digits.

use std::f64::consts::PI;

use super::MAX_BINS;

/// What can be wrong with the description of a grid or with the points it is fitted to.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SphereError {
    /// A step count of zero.
    #[error(
        "a grid needs at least one step per coordinate, got {n_r} radial and {n_a} angular: use 1 for no cut"
    )]
    NoSteps {
        /// Radial steps asked for.
        n_r: usize,
        /// Steps per angle asked for.
        n_a: usize,
    },
    /// The product of the step counts is over [`MAX_BINS`].
    #[error("{r} coordinates cut this finely give more than {MAX_BINS} bins: lower r, n_r or n_a")]
    TooManyBins {
        /// Number of coordinates.
        r: usize,
    },
    /// The values are not a whole number of rows.
    #[error("{len} values are not rows of {r} coordinates: pass n * r values")]
    Ragged {
        /// Number of values given.
        len: usize,
        /// Number of coordinates a row has.
        r: usize,
    },
    /// A coordinate is NaN or infinite.
    #[error("row {row} has a NaN or infinite coordinate: remove or repair it before binning")]
    NotFinite {
        /// The first such row.
        row: usize,
    },
    /// The stored steps of a coordinate make no sense.
    #[error(
        "coordinate {axis} of the grid is invalid ({reason}): the grid is damaged, build it again"
    )]
    BadSteps {
        /// Position of the coordinate: radius first, azimuth last.
        axis: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
}

/// A closed interval, `lo <= hi`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end, included.
    pub lo: f64,
    /// Upper end, included.
    pub hi: f64,
}

impl Interval {
    /// The interval from `lo` to `hi`, both included.
    pub const fn new(lo: f64, hi: f64) -> Self {
        Self { lo, hi }
    }
}

/// The region of space that a bin covers, edges included.
#[derive(Debug, Clone, PartialEq)]
pub enum Bin {
    /// The whole of R^0.
    Point,
    /// A piece of the line, by signed coordinate.
    Segment(Interval),
    /// A piece of a shell in R^r, `r = polar.len() + 2`.
    Shell {
        /// Distances from the origin, not negative.
        radius: Interval,
        /// Polar angles within [0, pi], the one from the first axis first.
        polar: Vec<Interval>,
        /// Azimuth; any two ends at most one turn apart, so it may cross pi.
        azimuth: Interval,
    },
}

impl Bin {
    /// Number of coordinates of the space the bin lies in.
    pub fn dim(&self) -> usize {
        match self {
            Bin::Point => 0,
            Bin::Segment(_) => 1,
            Bin::Shell { polar, .. } => polar.len() + 2,
        }
    }
}

/// Writes the hyperspherical coordinates of `y` to `out`: radius, polar angles, azimuth.
///
/// An angle that is undefined because nothing is left of the vector is 0, so the origin has all angles 0.
/// One coordinate is returned as it is, with its sign; no coordinates give none.
pub fn to_spherical(y: &[f32], out: &mut Vec<f64>) {
    out.clear();
    out.resize(y.len(), 0.0);
    each_coordinate(y, y.len(), |axis, value| out[axis] = value);
}

/// The Euclidean distance from `q` to the nearest point of `bin`, zero inside it.
///
/// `q` has the bin's dimension: in a release build missing coordinates count as zero and surplus ones are ignored.
pub fn distance_to_bin(q: &[f32], bin: &Bin) -> f64 {
    debug_assert_eq!(
        q.len(),
        bin.dim(),
        "the query and the bin differ in dimension"
    );
    match bin {
        Bin::Point => 0.0,
        Bin::Segment(segment) => segment_distance(at(q, 0), segment.lo, segment.hi),
        Bin::Shell {
            radius,
            polar,
            azimuth,
        } => {
            let mut versine = 0.0;
            let mut angles = polar.iter().chain(std::iter::once(azimuth)).rev();
            let norm = each_direction(q, polar.len() + 2, |cos, sin| {
                if let Some(angle) = angles.next() {
                    versine = least_versine(
                        cos,
                        sin,
                        versine,
                        &Edge::new(angle.lo),
                        &Edge::new(angle.hi),
                    );
                }
            });
            shell_distance(norm, versine, radius.lo, radius.hi)
        }
    }
}

/// An edge of a step with its trigonometry, which a query then never has to compute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Edge {
    pub(super) value: f64,
    cos: f64,
    sin: f64,
}

impl Edge {
    pub(super) fn new(value: f64) -> Self {
        let (sin, cos) = value.sin_cos();
        Self { value, cos, sin }
    }
}

pub(super) fn at(y: &[f32], axis: usize) -> f64 {
    y.get(axis).map_or(0.0, |&v| f64::from(v))
}

/// Visits (axis, value) from the azimuth (axis r-1) down to the radius (axis 0).
pub(super) fn each_coordinate(y: &[f32], r: usize, mut visit: impl FnMut(usize, f64)) {
    if r < 2 {
        if r == 1 {
            visit(0, at(y, 0));
        }
        return;
    }
    let (x, z) = (at(y, r - 2), at(y, r - 1));
    visit(r - 1, azimuth(x, z));
    let mut rest = x * x + z * z;
    for axis in (0..r - 2).rev() {
        let x = at(y, axis);
        // Written out for zero because atan2(0, -0.0) is pi.
        let angle = if x == 0.0 && rest == 0.0 {
            0.0
        } else {
            rest.sqrt().atan2(x)
        };
        visit(axis + 1, angle);
        rest += x * x;
    }
    visit(0, rest.sqrt());
}

/// The azimuth in (-pi, pi]: negative zeros and values that round to -pi would leave it.
fn azimuth(x: f64, z: f64) -> f64 {
    if x == 0.0 && z == 0.0 {
        return 0.0;
    }
    let angle = z.atan2(x);
    if angle == -PI { PI } else { angle }
}

/// Visits (cos, sin) of every angle of `q` from the azimuth to the first polar angle, and returns the norm.
pub(super) fn each_direction(q: &[f32], r: usize, mut visit: impl FnMut(f64, f64)) -> f64 {
    let mut rest = at(q, r - 1);
    let mut rest2 = rest * rest;
    for axis in (0..r - 1).rev() {
        let x = at(q, axis);
        rest2 += x * x;
        let norm = rest2.sqrt();
        // The azimuth alone keeps the sign of its sine: a polar angle sees the norm of what follows.
        if norm == 0.0 {
            visit(1.0, 0.0)
        } else {
            visit(x / norm, rest / norm)
        }
        rest = norm;
    }
    rest
}

/// The smallest `1 - cos(gamma)` over one angle's interval, given the query's angle and the smallest versine of
/// the angles after it. The azimuth is the case `versine = 0`.
pub(super) fn least_versine(cos: f64, sin: f64, versine: f64, lo: &Edge, hi: &Edge) -> f64 {
    // 1 - cos(a - b) as half a squared chord, then the part of the remaining angles.
    let at_edge = |edge: &Edge| {
        let (dc, ds) = (cos - edge.cos, sin - edge.sin);
        0.5 * (dc * dc + ds * ds) + sin * edge.sin * versine
    };
    let ends = at_edge(lo).min(at_edge(hi));

    // f = cos * cos(b) + along * sin(b) has its maximum inside if it rises at lo and falls at hi; an interval
    // longer than half a turn needs only one of the two.
    let along = sin * (1.0 - versine);
    let rises = along * lo.cos - cos * lo.sin >= 0.0;
    let falls = along * hi.cos - cos * hi.sin <= 0.0;
    let top = (cos * cos + along * along).sqrt();
    let inside = if hi.value - lo.value > PI {
        rises || falls
    } else {
        // Around the *minimum* of f the slopes of a very short interval are rounding noise, but f is -top there,
        // and at the better end of an interval that holds the maximum it is not negative.
        rises && falls && 1.0 - ends > -0.5 * top
    };
    if inside {
        // 1 - top, without the cancellation.
        sin * sin * versine * (2.0 - versine) / (1.0 + top)
    } else {
        ends
    }
}

/// The distance to a shell piece whose nearest direction has this versine from the query.
pub(super) fn shell_distance(norm: f64, versine: f64, lo: f64, hi: f64) -> f64 {
    // max and min, not clamp: clamp panics on NaN.
    let radius = (norm * (1.0 - versine)).max(lo).min(hi);
    let gap = norm - radius;
    (gap * gap + 2.0 * norm * radius * versine).sqrt()
}

pub(super) fn segment_distance(q: f64, lo: f64, hi: f64) -> f64 {
    if q < lo {
        lo - q
    } else if q > hi {
        q - hi
    } else {
        0.0
    }
}

/// Checks that `values` are finite rows of `r` coordinates.
pub(super) fn check_rows(values: &[f32], r: usize) -> Result<(), SphereError> {
    if (r == 0 && !values.is_empty()) || (r > 0 && !values.len().is_multiple_of(r)) {
        return Err(SphereError::Ragged {
            len: values.len(),
            r,
        });
    }
    match values.iter().position(|v| !v.is_finite()) {
        Some(i) => Err(SphereError::NotFinite { row: i / r }),
        None => Ok(()),
    }
}
