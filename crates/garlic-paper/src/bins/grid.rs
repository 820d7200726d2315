//! The product grid of bins, and the distance from one query to all occupied bins of a cell.

use std::f64::consts::{PI, TAU};

use super::sphere::{
    Bin, Edge, Interval, SphereError, at, check_rows, each_coordinate, each_direction,
    least_versine, segment_distance, shell_distance,
};

/// The largest number of bins a grid may have, occupied or not.
pub const MAX_BINS: usize = 1 << 20;

/// Operations that settle one angle of one bin, see [`Grid::ordering_work`].
const ANGLE_WORK: u64 = 30;
/// Operations that settle the radius of one bin and give its distance.
const RADIUS_WORK: u64 = 8;
/// Operations per coordinate that turn a query into a norm and cosines.
const QUERY_WORK: u64 = 4;
/// Angles kept on the stack during [`Grid::distances`]; more than this needs one allocation a call.
const STACK_ANGLES: usize = 24;

/// Equal steps of one coordinate between two extremes; what a store has to keep of a [`Grid`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steps {
    /// Smallest value of the coordinate.
    pub lo: f64,
    /// Largest value of the coordinate.
    pub hi: f64,
    /// Number of equal steps between them.
    pub count: u32,
}

/// A product grid over the hyperspherical coordinates of one cell.
///
/// Bins are numbered with the azimuth as the most significant digit, then the polar angles from the last to
/// the first, then the radius. Angles are settled in that order as well, so bins with near numbers share work.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    axes: Vec<Axis>,
    bins: usize,
}

impl Grid {
    /// Fits a grid to `points`, rows of `r` coordinates: `n_r` radial steps (on a line: intervals) and `n_a` steps
    /// for every angle, equal between the smallest and largest value seen. A coordinate with one value gets one step.
    ///
    /// No points give a grid of one bin.
    ///
    /// # Errors
    /// When a step count is zero, `n_r * n_a^(r-1)` exceeds [`MAX_BINS`], or the values are ragged or not finite.
    pub fn fit(points: &[f32], r: usize, n_r: usize, n_a: usize) -> Result<Self, SphereError> {
        if n_r == 0 || n_a == 0 {
            return Err(SphereError::NoSteps { n_r, n_a });
        }
        // Checked before collapsing, so that settings fail for every cell or for none.
        let counts = (0..r).map(|axis| if axis == 0 { n_r } else { n_a });
        checked_product(counts).ok_or(SphereError::TooManyBins { r })?;
        check_rows(points, r)?;

        let mut ranges = vec![Interval::new(f64::INFINITY, f64::NEG_INFINITY); r];
        for row in points.chunks_exact(r.max(1)) {
            each_coordinate(row, r, |axis, value| {
                let range = &mut ranges[axis];
                range.lo = range.lo.min(value);
                range.hi = range.hi.max(value);
            });
        }
        let steps = ranges.iter().enumerate().map(|(axis, range)| {
            if range.lo < range.hi {
                let count = if axis == 0 { n_r } else { n_a } as u32;
                Steps {
                    lo: range.lo,
                    hi: range.hi,
                    count,
                }
            } else {
                let value = if range.lo.is_finite() { range.lo } else { 0.0 };
                Steps {
                    lo: value,
                    hi: value,
                    count: 1,
                }
            }
        });
        Self::from_steps(&steps.collect::<Vec<_>>())
    }

    /// The grid with these steps of radius, polar angles and azimuth, in this order; the inverse of [`Grid::steps`].
    ///
    /// # Errors
    /// When a range is reversed, not finite or outside the coordinate's domain, a count is zero, or there are
    /// more than [`MAX_BINS`] bins.
    pub fn from_steps(steps: &[Steps]) -> Result<Self, SphereError> {
        let r = steps.len();
        let bins = checked_product(steps.iter().map(|s| s.count as usize))
            .ok_or(SphereError::TooManyBins { r })?;
        let mut axes = Vec::with_capacity(r);
        let mut stride = 1;
        for (axis, &s) in steps.iter().enumerate() {
            check_steps(s, axis, r).map_err(|reason| SphereError::BadSteps { axis, reason })?;
            axes.push(Axis::new(s, stride));
            stride *= s.count;
        }
        Ok(Self { axes, bins })
    }

    /// The steps of every coordinate: radius, polar angles, azimuth.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = Steps> + '_ {
        self.axes.iter().map(|axis| axis.steps)
    }

    /// Number of coordinates.
    pub fn dim(&self) -> usize {
        self.axes.len()
    }

    /// Number of bins, occupied or not; at least one.
    pub fn bins(&self) -> usize {
        self.bins
    }

    /// The bin of `y`. A point outside the grid gets a bin at its edge; every point the grid was fitted to lies
    /// in the region of its bin.
    ///
    /// `y` has the grid's dimension: in a release build missing coordinates count as zero and surplus ones are ignored.
    pub fn bin_of(&self, y: &[f32]) -> u32 {
        debug_assert_eq!(
            y.len(),
            self.dim(),
            "the point and the grid differ in dimension"
        );
        let mut bin = 0;
        let last = self.dim().saturating_sub(1);
        each_coordinate(y, self.dim(), |axis, value| {
            let is_azimuth = axis == last && axis > 0;
            let value = if is_azimuth {
                self.axes[axis].unwrap_angle(value)
            } else {
                value
            };
            bin += self.axes[axis].step_of(value) * self.axes[axis].stride;
        });
        bin
    }

    /// The region of a bin below [`Grid::bins`]; larger numbers start again from zero.
    pub fn region(&self, bin: u32) -> Bin {
        let interval = |axis: &Axis| {
            let step = (bin / axis.stride % axis.steps.count) as usize;
            Interval::new(axis.edges[step].value, axis.edges[step + 1].value)
        };
        match self.axes.as_slice() {
            [] => Bin::Point,
            [line] => Bin::Segment(interval(line)),
            [radius, polar @ .., azimuth] => Bin::Shell {
                radius: interval(radius),
                polar: polar.iter().map(interval).collect(),
                azimuth: interval(azimuth),
            },
        }
    }

    /// Writes to `out` the distance from `q` to each bin of `occupied`, in the same order.
    ///
    /// The same distance as [`distance_to_bin`](super::sphere::distance_to_bin), rounded to `f32` at the end: a lower bound
    /// for the members needs slack for that rounding. Any order of `occupied` is right, ascending is fastest. `q` has the
    /// grid's dimension: in a release build missing coordinates count as zero and surplus ones are ignored.
    pub fn distances(&self, q: &[f32], occupied: &[u32], out: &mut Vec<f32>) {
        debug_assert_eq!(
            q.len(),
            self.dim(),
            "the query and the grid differ in dimension"
        );
        out.clear();
        let [radius, angles @ ..] = self.axes.as_slice() else {
            out.resize(occupied.len(), 0.0);
            return;
        };
        if angles.is_empty() {
            let q = at(q, 0);
            out.extend(occupied.iter().map(|&bin| {
                let (lo, hi) = radius.edges_of(bin);
                segment_distance(q, lo.value, hi.value) as f32
            }));
            return;
        }

        let mut on_stack = [Level::START; STACK_ANGLES];
        let mut on_heap = Vec::new();
        let levels = match on_stack.get_mut(..angles.len()) {
            Some(levels) => levels,
            None => {
                on_heap.resize(angles.len(), Level::START);
                on_heap.as_mut_slice()
            }
        };
        let mut next = levels.iter_mut();
        let norm = each_direction(q, self.dim(), |cos, sin| {
            if let Some(level) = next.next() {
                (level.cos, level.sin) = (cos, sin);
            }
        });

        out.extend(occupied.iter().map(|&bin| {
            let (mut rest, mut versine, mut changed) = (bin, 0.0, false);
            for (level, axis) in levels.iter_mut().zip(angles.iter().rev()) {
                let step = (rest / axis.stride).min(axis.steps.count - 1);
                rest -= step * axis.stride;
                changed |= step != level.step;
                if changed {
                    let (lo, hi) = axis.edges_of(step);
                    level.step = step;
                    level.versine = least_versine(level.cos, level.sin, versine, lo, hi);
                }
                versine = level.versine;
            }
            let (lo, hi) = radius.edges_of(rest);
            shell_distance(norm, versine, lo.value, hi.value) as f32
        }));
    }

    /// Operations that [`Grid::distances`] spends on one query and these bins, to be counted as multiply-adds.
    ///
    /// Every addition, product, quotient and square root counts as one: 4 per coordinate for the query, 30 for
    /// each angle that has to be settled (angles shared with the bin before are not), 8 for each bin's radius;
    /// on a line 2 per bin. It depends on the bins only, so it can be computed once per cell.
    pub fn ordering_work(&self, occupied: &[u32]) -> u64 {
        let bins = occupied.len() as u64;
        let Some((_, angles)) = self.axes.split_first() else {
            return 0;
        };
        if angles.is_empty() || bins == 0 {
            return 2 * bins;
        }
        let mut settled = angles.len();
        for pair in occupied.windows(2) {
            // Level by level from the azimuth down: the first digit that differs unsettles all that follow.
            let shared = angles
                .iter()
                .rev()
                .take_while(|axis| pair[0] / axis.stride == pair[1] / axis.stride);
            settled += angles.len() - shared.count();
        }
        QUERY_WORK * self.dim() as u64 + ANGLE_WORK * settled as u64 + RADIUS_WORK * bins
    }
}

/// One coordinate of a grid.
#[derive(Debug, Clone, PartialEq)]
struct Axis {
    steps: Steps,
    /// `steps.count + 1` ascending edges, the first and last exactly at the extremes.
    edges: Vec<Edge>,
    /// Difference of bin numbers between neighbouring steps.
    stride: u32,
}

impl Axis {
    fn new(steps: Steps, stride: u32) -> Self {
        let Steps { lo, hi, count } = steps;
        let edge = |i: u32| match i {
            0 => lo,
            i if i == count => hi,
            i => (lo + (hi - lo) * (f64::from(i) / f64::from(count))).min(hi),
        };
        Self {
            steps,
            edges: (0..=count).map(|i| Edge::new(edge(i))).collect(),
            stride,
        }
    }

    /// The edges of a step, of the last one for numbers past it.
    fn edges_of(&self, step: u32) -> (&Edge, &Edge) {
        let step = step.min(self.steps.count - 1) as usize;
        (&self.edges[step], &self.edges[step + 1])
    }

    /// The step whose closed interval holds `value`, the nearest one when none does.
    fn step_of(&self, value: f64) -> u32 {
        let inner = &self.edges[1..self.edges.len() - 1];
        inner.partition_point(|edge| edge.value <= value) as u32
    }

    /// An azimuth outside the range goes to the end that is nearer on the circle, not on the line.
    fn unwrap_angle(&self, value: f64) -> f64 {
        let Steps { lo, hi, .. } = self.steps;
        if (lo..=hi).contains(&value) {
            return value;
        }
        if (lo - value).rem_euclid(TAU) < (value - hi).rem_euclid(TAU) {
            lo
        } else {
            hi
        }
    }
}

/// The query's side of one angle, and what was last settled for it.
#[derive(Clone, Copy)]
struct Level {
    cos: f64,
    sin: f64,
    step: u32,
    versine: f64,
}

impl Level {
    const START: Self = Self {
        cos: 1.0,
        sin: 0.0,
        step: u32::MAX,
        versine: 0.0,
    };
}

/// The product of the counts if it stays within [`MAX_BINS`].
fn checked_product(counts: impl Iterator<Item = usize>) -> Option<usize> {
    let mut product = 1_usize;
    for count in counts {
        product = product.checked_mul(count).filter(|&p| p <= MAX_BINS)?;
    }
    Some(product)
}

fn check_steps(s: Steps, axis: usize, r: usize) -> Result<(), &'static str> {
    if s.count == 0 {
        return Err("no steps");
    }
    if !(s.lo.is_finite() && s.hi.is_finite()) {
        return Err("range not finite");
    }
    if s.lo > s.hi {
        return Err("range reversed");
    }
    match axis {
        _ if r < 2 => Ok(()),
        0 if s.lo < 0.0 => Err("negative radius"),
        0 => Ok(()),
        _ if axis == r - 1 && s.hi - s.lo > TAU => Err("azimuth longer than a turn"),
        _ if axis < r - 1 && (s.lo < 0.0 || s.hi > PI) => Err("polar angle outside [0, pi]"),
        _ => Ok(()),
    }
}
