//! The closed-form distance to a hyperspherical bin against a numerical minimiser.

use std::f64::consts::{FRAC_PI_2, PI, TAU};

use garlic_paper::bins::sphere::{Bin, Interval, distance_to_bin};

/// Random bins per dimension in the comparison with the minimiser.
const CASES: usize = 10_000;
/// Starts that every case gets, so that a better minimum than the closed form would be seen.
const STARTS: usize = 32;
/// Starts after which a minimiser that has not come down to the closed form counts as a disagreement.
const MAX_STARTS: usize = 400;

/// A small seeded generator (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn within(&mut self, range: Interval) -> f64 {
        range.lo + (range.hi - range.lo) * self.unit()
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (TAU * self.unit()).cos()
    }

    /// A random interval inside `range`: of any width, narrow, of zero width, or all of it.
    fn part_of(&mut self, range: Interval) -> Interval {
        let (a, b) = (self.within(range), self.within(range));
        match self.below(12) {
            0 => range,
            1 => Interval::new(a, a),
            2 => Interval::new(range.lo, a),
            3 => Interval::new(a, range.hi),
            4..8 => Interval::new(a, (a + 0.2 * (range.hi - range.lo)).min(range.hi)),
            _ => Interval::new(a.min(b), a.max(b)),
        }
    }
}

/// Ranges of (radius, polar angles, azimuth) of a shell.
fn ranges(bin: &Bin) -> Vec<Interval> {
    let Bin::Shell {
        radius,
        polar,
        azimuth,
    } = bin
    else {
        panic!("a shell was expected")
    };
    std::iter::once(*radius)
        .chain(polar.iter().copied())
        .chain([*azimuth])
        .collect()
}

/// The point with these hyperspherical coordinates.
fn point(radius: f64, angles: &[f64]) -> Vec<f64> {
    let mut rest = radius;
    let mut out = Vec::with_capacity(angles.len() + 1);
    for angle in angles {
        out.push(rest * angle.cos());
        rest *= angle.sin();
    }
    out.push(rest);
    out
}

fn distance(a: &[f32], b: &[f64]) -> f64 {
    at_distance(&a.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(), b)
}

fn at_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(x, y)| (x - y).powi(2))
        .sum::<f64>()
        .sqrt()
}

/// Minimises the distance over a bin from one start, one coordinate at a time in random order, each exactly.
///
/// With all else fixed, <q, p> is `base + A cos + B sin` in one angle: coordinates before it do not change, its
/// own carries the cosine, all later ones the sine. The order is random because a fixed one can walk into a pole,
/// where the later angles have no effect, before those have been looked at.
fn descend(q: &[f32], ranges: &[Interval], at: &mut [f64], random: &mut Random) -> f64 {
    let r = q.len();
    let q: Vec<f64> = q.iter().map(|&x| f64::from(x)).collect();
    let mut trig: Vec<(f64, f64)> = at[1..].iter().map(|a| (a.cos(), a.sin())).collect();
    // <q[from..], direction of the angles from..>
    let along = |trig: &[(f64, f64)], from: usize| {
        let start = q[r - 1];
        (from..r - 1)
            .rev()
            .fold(start, |sum, k| q[k] * trig[k].0 + trig[k].1 * sum)
    };
    let q2: f64 = q.iter().map(|x| x * x).sum();
    let small = 1e-15 * (q2 + ranges[0].hi.powi(2));
    let mut order: Vec<usize> = (0..r).collect();
    let (mut best, mut idle) = (f64::INFINITY, 0);
    while idle < 2 {
        for k in (1..r).rev() {
            order.swap(k, random.below(k + 1));
        }
        for &axis in &order {
            let range = ranges[axis];
            if axis == 0 {
                at[0] = along(&trig, 0).clamp(range.lo, range.hi);
                continue;
            }
            let k = axis - 1;
            let before = at[0] * trig[..k].iter().map(|t| t.1).product::<f64>();
            let (a, b) = (before * q[k], before * along(&trig, k + 1));
            let value = |(cos, sin): (f64, f64)| a * cos + b * sin;
            let peak = b.atan2(a);
            let turns = [-1.0, 0.0, 1.0].map(|turn| peak + turn * TAU);
            for x in [range.lo, range.hi].into_iter().chain(turns) {
                let (sin, cos) = x.sin_cos();
                if range.lo <= x && x <= range.hi && value((cos, sin)) > value(trig[k]) {
                    (at[axis], trig[k]) = (x, (cos, sin));
                }
            }
        }
        let now = q2 + at[0] * (at[0] - 2.0 * along(&trig, 0));
        idle = if best - now < small { idle + 1 } else { 0 };
        best = best.min(now);
    }
    at_distance(&q, &point(at[0], &at[1..]))
}

/// A random case: a bin and a query, of one of the kinds that have gone wrong somewhere before.
fn case(r: usize, kind: usize, random: &mut Random) -> (Vec<f32>, Bin) {
    let mut radius = random.part_of(Interval::new(0.0, 2.0));
    let mut polar: Vec<_> = (2..r)
        .map(|_| random.part_of(Interval::new(0.0, PI)))
        .collect();
    let mut azimuth = random.part_of(Interval::new(-PI, PI));
    let mut q: Vec<f64> = (0..r).map(|_| random.normal()).collect();
    match kind {
        // The azimuth crosses pi, and the query looks at it from the other side of the cut.
        0 => {
            let start = random.within(Interval::new(0.5 * PI, PI));
            azimuth = Interval::new(start, start + random.within(Interval::new(0.5 * PI, TAU)));
        }
        1 => azimuth = Interval::new(-PI, PI),
        2 => {
            polar.fill(Interval::new(0.0, PI));
            radius = Interval::new(radius.lo, radius.lo);
        }
        3 => q.fill(0.0),
        4 => {
            let axis = random.below(r);
            let value = if random.below(2) == 0 { 1.0 } else { -1.0 } * random.unit();
            q.fill(0.0);
            q[axis] = value;
        }
        // Inside the bin, which needs some room for the rounding of the query to f32.
        5 => {
            for range in polar.iter_mut().chain([&mut radius]) {
                *range = Interval::new(range.lo * 0.5, range.hi * 0.5 + 0.4);
            }
            azimuth = Interval::new(azimuth.lo - 0.2, azimuth.hi.min(azimuth.lo + 5.0) + 0.2);
            let inner = |random: &mut Random, range: Interval| {
                random.within(Interval::new(range.lo + 0.01, range.hi - 0.01))
            };
            let at = inner(random, radius);
            let mut angles: Vec<_> = polar.iter().map(|&range| inner(random, range)).collect();
            angles.push(inner(random, azimuth));
            q = point(at, &angles);
        }
        // Every interval a single value: the bin is a point.
        6 => {
            for range in polar.iter_mut().chain([&mut radius, &mut azimuth]) {
                range.lo = range.hi;
            }
        }
        // Straight behind a bin without width that lies on an axis: both slopes of the last step are zero.
        7 => {
            let single = |quarters: usize| {
                let angle = quarters as f64 * FRAC_PI_2;
                Interval::new(angle, angle)
            };
            polar = (2..r).map(|_| single(random.below(3))).collect();
            azimuth = single(random.below(4));
            let angles: Vec<_> = polar.iter().map(|a| a.lo).chain([azimuth.lo]).collect();
            q = point(-1.0, &angles).into_iter().map(f64::round).collect();
        }
        // Later coordinates vanish: the remaining angles of the query are undefined.
        8 => {
            let from = random.below(r);
            q[from..].fill(0.0);
        }
        _ => {}
    }
    (
        q.into_iter().map(|x| x as f32).collect(),
        Bin::Shell {
            radius,
            polar,
            azimuth,
        },
    )
}

fn agrees_with_the_minimiser(r: usize) {
    let mut random = Random(r as u64);
    for i in 0..CASES {
        let kind = i % 16;
        let (q, bin) = case(r, kind, &mut random);
        let exact = distance_to_bin(&q, &bin);
        let ranges = ranges(&bin);
        let scale = distance(&q, &vec![0.0; r]).max(ranges[0].hi);
        if kind == 3 {
            assert!(
                (exact - ranges[0].lo).abs() <= 1e-12,
                "r {r} case {i}: {exact} from the origin"
            );
        }
        if kind == 5 {
            assert_eq!(exact, 0.0, "r {r} case {i}: the query is inside {bin:?}");
        }

        let mut found = f64::INFINITY;
        for start in 0..MAX_STARTS {
            if start >= STARTS && found <= exact + 1e-7 * scale {
                break;
            }
            let pick = random.next();
            let mut at: Vec<f64> = ranges
                .iter()
                .enumerate()
                .map(|(k, &range)| match (start % 3, pick >> k & 1) {
                    (0, 0) => range.lo,
                    (0, _) => range.hi,
                    _ => random.within(range),
                })
                .collect();
            // From radius 0 no angle matters.
            at[0] = at[0].max(0.5 * ranges[0].hi);
            // Points of the bin on the way are upper bounds in their own right.
            let sample = distance(&q, &point(at[0], &at[1..]));
            found = found
                .min(sample)
                .min(descend(&q, &ranges, &mut at, &mut random));
        }
        assert!(
            (found - exact).abs() <= 1e-6 * scale,
            "r {r} case {i} kind {kind}: closed form {exact}, minimiser {found}, q {q:?}, {bin:?}"
        );
    }
}

#[test]
fn closed_form_is_the_minimum_in_2_dimensions() {
    agrees_with_the_minimiser(2);
}

#[test]
fn closed_form_is_the_minimum_in_3_dimensions() {
    agrees_with_the_minimiser(3);
}

#[test]
fn closed_form_is_the_minimum_in_4_dimensions() {
    agrees_with_the_minimiser(4);
}

#[test]
fn closed_form_is_the_minimum_in_5_dimensions() {
    agrees_with_the_minimiser(5);
}

#[test]
fn closed_form_is_the_minimum_in_6_dimensions() {
    agrees_with_the_minimiser(6);
}

#[test]
fn closed_form_is_the_minimum_in_7_dimensions() {
    agrees_with_the_minimiser(7);
}

#[test]
fn closed_form_is_the_minimum_in_8_dimensions() {
    agrees_with_the_minimiser(8);
}
