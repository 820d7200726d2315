//! The bounds at their edge: radii that are the distance of a point, bit for bit, and data that rounding hurts most.
//!
//! True quantities are computed in double precision from the 32-bit numbers that an index has.

use super::Most;
use super::bounds::{Rounding, Sizes};
use super::within::Within;
use crate::search::query::QueryScratch;
use crate::segment::{Index, Snapshot};
use crate::testdata::{clustered, config, gaussian, rows, uniform};
use garlic_core::{Cancel, SearchStats};

/// Bounds are gone through with, whatever they leave.
const ALL: Most = Most {
    points: usize::MAX,
    found: usize::MAX,
};

/// An index of data that rounding hurts.
struct Case {
    name: &'static str,
    data: Vec<f32>,
    dim: usize,
    index: Index,
}

fn case(name: &'static str, dim: usize, data: Vec<f32>, settings: &[(&str, usize)]) -> Case {
    let mut all = vec![("cells", 6), ("bin_size", 6), ("calibration_queries", 20)];
    all.extend_from_slice(settings);
    let builder = Index::builder().config(config(&all));
    let index = builder.build(rows(&data, dim)).unwrap();
    Case {
        name,
        data,
        dim,
        index,
    }
}

/// Twelve clusters along the diagonal, each of them flat: the products of a point's coordinates with the first axis all
/// have one sign, and so may their roundings.
fn diagonal(count: usize, dim: usize, length: f32, spread: f32, seed: u64) -> Vec<f32> {
    const FLAT: usize = 4;
    let ways = uniform(FLAT, dim, seed);
    let along = gaussian(count, FLAT, seed + 1);
    let value = |i: usize| {
        let (row, column) = (i / dim, i % dim);
        let local = |way: usize| along[row * FLAT + way] * ways[way * dim + column];
        length * (1.0 + (row % 12) as f32) + spread * (0..FLAT).map(local).sum::<f32>()
    };
    (0..count * dim).map(value).collect()
}

fn cases() -> Vec<Case> {
    let far = |reach, spread, seed| clustered(700, 20, reach, spread, seed);
    let mut scales = gaussian(700, 24, 5);
    for (i, value) in scales.iter_mut().enumerate() {
        *value *= 10f32.powi((i % 24 % 13) as i32 - 6);
    }
    let mut equal = gaussian(700, 12, 6);
    for i in 0..300 {
        let (from, to) = (i % 50 * 12, (400 + i) * 12);
        equal.copy_within(from..from + 12, to);
        // One in three differs from its twin in the last bit of a coordinate.
        if i % 3 == 0 {
            equal[to + i % 12] = equal[to + i % 12].next_up();
        }
    }
    vec![
        case("far", 20, far(1e6, 1.0, 1), &[("axes", 3)]),
        case(
            "less far",
            20,
            far(1e4, 0.5, 2),
            &[("axes", 8), ("code_bits", 4)],
        ),
        case("small", 20, far(1e-18, 1e-18, 3), &[("axes", 4)]),
        case("large", 20, far(1e12, 1e9, 4), &[("axes", 20)]),
        case("scales", 24, scales, &[("axes", 6), ("max_dim", 16)]),
        case("equal points", 12, equal, &[("axes", 4)]),
        case(
            "diagonal",
            600,
            diagonal(500, 600, 1e3, 1.0, 7),
            &[("cells", 12), ("axes", 8), ("max_dim", 32), ("bin_size", 2)],
        ),
        case(
            "wide",
            2000,
            diagonal(300, 2000, 1e3, 1.0, 8),
            &[("cells", 12), ("axes", 6), ("max_dim", 16), ("bin_size", 2)],
        ),
    ]
}

/// Positions of all points by their squared distance, as a search computes it.
fn by_distance(view: &Snapshot<'_>, query: &[f32]) -> Vec<(f32, u32)> {
    let mut bytes = Vec::new();
    let prepared = view.index.segment.vectors.prepare(query, &mut bytes);
    let distances = view.admitted().map(|at| (view.distance(at, &prepared), at));
    let mut distances: Vec<(f32, u32)> = distances.collect();
    distances.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    distances
}

/// Queries: points, some of them moved a little.
fn queries(case: &Case) -> Vec<Vec<f32>> {
    let points = rows(&case.data, case.dim);
    let query = |i: usize| {
        let mut query = points.row(i * 31 % points.len()).to_vec();
        let other = points.row((i * 31 + 12) % points.len());
        let share = [0.0, 1e-3, 0.3][i % 3];
        for (v, o) in query.iter_mut().zip(other) {
            *v += share * (o - *v);
        }
        query
    };
    (0..18).map(query).collect()
}

/// Points that searches with these errors miss although they lie within the radius, which is the distance of a point;
/// and all points that lie within.
fn missed(case: &Case, rounding: Rounding) -> (usize, usize) {
    let view = case.index.snapshot();
    let mut scratch = QueryScratch::default();
    let (mut missed, mut all) = (0, 0);
    for query in queries(case) {
        let points = by_distance(&view, &query);
        for k in [0, 1, 2, 5, 12, 40, 100, 250] {
            let radius = points[k].0;
            let search = Within {
                view: &view,
                radius,
                most: ALL,
                rounding,
                cancel: Cancel::default(),
            };
            assert!(search.run(&query, &mut scratch, &mut SearchStats::default()));
            let mut found: Vec<u32> = scratch.found.iter().map(|f| f.at).collect();
            found.sort_unstable();
            let within = points.iter().take_while(|p| p.0 <= radius);
            for point in within {
                all += 1;
                missed += usize::from(found.binary_search(&point.1).is_err());
            }
        }
    }
    (missed, all)
}

/// Every point is found with a radius that is its distance; without what rounding adds to the bounds some are lost.
#[test]
fn no_point_at_the_radius_is_skipped() {
    let mut lost = Vec::new();
    for case in cases() {
        let sizes = case.index.snapshot().sizes();
        let (none, all) = missed(&case, Rounding::new(sizes));
        assert_eq!(none, 0, "{} of {all}: {}", none, case.name);
        let (some, _) = missed(&case, Rounding::none(sizes));
        lost.push((case.name, some));
    }
    let hurt = lost.iter().filter(|(_, some)| *some > 0).count();
    assert!(hurt >= 4, "the data must need the slack: {lost:?}");
}

/// A vector as an index sees it, in double precision.
struct True {
    /// In the truncated space, and its squared distance from that.
    z: Vec<f64>,
    outside: f64,
}

/// The same in a cell.
struct TrueInCell {
    y: Vec<f64>,
    residual: f64,
}

fn products(axes: &[f32], x: &[f64]) -> Vec<f64> {
    let product = |axis: &[f32]| axis.iter().zip(x).map(|(a, x)| f64::from(*a) * x).sum();
    axes.chunks_exact(x.len()).map(product).collect()
}

fn squares(x: &[f64]) -> f64 {
    x.iter().map(|v| v * v).sum()
}

fn differences(a: impl Iterator<Item = f64>, b: &[f32]) -> Vec<f64> {
    a.zip(b).map(|(a, b)| a - f64::from(*b)).collect()
}

impl True {
    fn new(view: &Snapshot<'_>, vector: &[f32]) -> Self {
        let values = vector.iter().map(|v| f64::from(*v));
        let x = differences(values, &view.index.transform.mean);
        let z = products(&view.segment.rotation, &x);
        let outside = squares(&x) - squares(&z);
        Self { z, outside }
    }

    fn in_cell(&self, view: &Snapshot<'_>, cell: usize) -> TrueInCell {
        let away = differences(self.z.iter().copied(), view.mean(cell));
        let y = products(view.axes(cell), &away);
        let residual = squares(&away) + self.outside - squares(&y);
        TrueInCell { y, residual }
    }
}

/// What a search computes, and what a build has stored, is as near to the truth as the bounds say.
#[test]
fn every_quantity_is_within_its_error() {
    for case in cases() {
        let view = case.index.snapshot();
        let rounding = Rounding::new(view.sizes());
        let rank = view.sizes().rank;
        let mut scratch = QueryScratch::default();
        let mut vector = Vec::new();
        for query in queries(&case) {
            let truth = True::new(&view, &query);
            let points = by_distance(&view, &query);
            let near: Vec<u32> = points.iter().take(60).map(|p| p.1).collect();
            let outside = view.rotate(&query, &mut scratch);
            view.nearest_cells(view.cells(), &mut scratch);
            let slack = rounding.slack(scratch.whole, points[near.len() - 1].0);
            for number in 0..scratch.cells.len() {
                let base = view.project(number, outside, &mut scratch);
                let (at, mean) = (scratch.cells[number].at, scratch.cells[number].estimate);
                let seen = slack.query_in_cell(mean, base, &scratch.y);
                let [low, high, shift] = seen.residual_and_shift();
                let TrueInCell { y, residual } = truth.in_cell(&view, at as usize);
                let name = case.name;
                assert!(
                    low.powi(2) <= residual.max(0.0) * (1.0 + 1e-9),
                    "{name}: {low}"
                );
                assert!(high.powi(2) >= residual * (1.0 - 1e-9), "{name}: {high}");
                let computed = differences(y.iter().copied(), &scratch.y);
                assert!(squares(&computed).sqrt() <= shift, "{name}: {shift}");
                let (centres, first) = view.centres(at as usize);
                for (bin, centre) in (first..).zip(centres.chunks_exact(rank)) {
                    let bounds = view.bounds(bin);
                    let (points, [error, longer]) = (view.bin(bin), seen.point_errors());
                    let positions = points.first..points.first + points.len as u32;
                    for position in positions.filter(|p| near.contains(p)) {
                        view.point(position).unwrap().read(case.dim, &mut vector);
                        let point = True::new(&view, &vector).in_cell(&view, at as usize);
                        let from_centre = differences(point.y.iter().copied(), centre);
                        let radius = f64::from(bounds.radius) * longer + shift;
                        assert!(squares(&from_centre).sqrt() <= radius, "{name}: {radius}");
                        let high = f64::from(bounds.high).powi(2) + error;
                        let low = f64::from(bounds.low).powi(2) - error;
                        assert!(point.residual <= high, "{name}: {high}");
                        assert!(point.residual >= low, "{name}: {low}");
                    }
                }
            }
        }
    }
}

/// Matrices of axes have no norm above what the bounds allow for.
#[test]
fn axes_are_orthonormal_up_to_rounding() {
    let excess = |axes: &[f32], dim: usize| {
        let axes: Vec<Vec<f64>> = axes
            .chunks_exact(dim)
            .map(|axis| axis.iter().map(|v| f64::from(*v)).collect())
            .collect();
        let mut squared = 0.0;
        for (i, a) in axes.iter().enumerate() {
            for (j, b) in axes.iter().enumerate() {
                let product: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                // Axes that the points of a cell do not span are zero.
                let expected = f64::from(u8::from(i == j && squares(a) > 0.0));
                squared += (product - expected).powi(2);
            }
        }
        squared.sqrt()
    };
    for case in cases() {
        let view = case.index.snapshot();
        let Sizes { dim, wide, .. } = view.sizes();
        let most = Rounding::new(view.sizes()).axes();
        let space = excess(&view.segment.rotation, dim);
        assert!(space <= most, "{}: {space} {most}", case.name);
        for cell in 0..view.cells() {
            let cell = excess(view.axes(cell), wide);
            assert!(cell <= most, "{}: {cell} {most}", case.name);
        }
    }
}
