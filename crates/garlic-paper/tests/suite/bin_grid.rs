//! What grids and bins of a cell promise: every point in its bin, every member once, bins in order.

use std::f64::consts::{FRAC_PI_2, PI};

use garlic_paper::bins::sphere::{Bin, Interval, distance_to_bin, to_spherical};
use garlic_paper::bins::{BinScratch, Bins, BinsError, Grid, MAX_BINS, SphereError, Steps};
use garlic_paper::config::BinBudget;
use proptest::prelude::*;

/// Fixed values without visible order in (-1, 1).
fn scattered(i: usize) -> f32 {
    (i as f32 * 12.9898).sin()
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
    a.iter()
        .zip(b)
        .map(|(&x, y)| (f64::from(x) - y).powi(2))
        .sum::<f64>()
        .sqrt()
}

fn spherical(y: &[f32]) -> Vec<f64> {
    let mut out = vec![9.0; 3];
    to_spherical(y, &mut out);
    out
}

#[test]
fn degenerate_points_have_fixed_coordinates() {
    assert_eq!(spherical(&[]), [0.0_f64; 0]);
    assert_eq!(spherical(&[-2.5]), [-2.5]);
    assert_eq!(spherical(&[-0.0, -0.0, -0.0, -0.0]), [0.0; 4]);
    assert_eq!(spherical(&[-3.0, 0.0, -0.0, 0.0]), [3.0, PI, 0.0, 0.0]);
    assert_eq!(spherical(&[0.0, -2.0, 0.0]), [2.0, FRAC_PI_2, PI]);
    // Both signs of zero, and what rounds to -pi, are pi.
    for z in [0.0, -0.0, -1e-40] {
        assert_eq!(spherical(&[-1.0, z]), [1.0, PI]);
    }
    assert_eq!(
        spherical(&[0.0, 0.0, 0.0, -1.0]),
        [1.0, FRAC_PI_2, FRAC_PI_2, -FRAC_PI_2]
    );
}

#[test]
fn many_coordinates_work_when_few_are_cut() {
    let r = 40;
    let points: Vec<f32> = (0..r * 20).map(scattered).collect();
    let grid = Grid::fit(&points, r, 5, 1).expect("five bins");
    let q: Vec<f32> = (900..900 + r).map(scattered).collect();
    let mut out = Vec::new();
    grid.distances(&q, &[0, 3, 4], &mut out);
    for (bin, d) in [0, 3, 4].into_iter().zip(out) {
        assert_eq!(d, distance_to_bin(&q, &grid.region(bin)) as f32);
    }
}

#[test]
fn an_azimuth_outside_the_grid_goes_to_the_nearer_end_of_the_circle() {
    let azimuth = Steps {
        lo: 2.0,
        hi: 3.0,
        count: 4,
    };
    let grid = Grid::from_steps(&[
        Steps {
            lo: 0.0,
            hi: 1.0,
            count: 1,
        },
        azimuth,
    ])
    .expect("valid");
    assert_eq!(grid.bin_of(&[-1.0, -0.1]), 3);
    assert_eq!(grid.bin_of(&[1.0, 0.0]), 0);
}

#[test]
fn lines_and_points_have_bins() {
    let line = Grid::fit(&[-1.0, 3.0, 0.5], 1, 4, 9).expect("a line");
    assert_eq!(line.bins(), 4);
    assert_eq!(line.region(1), Bin::Segment(Interval::new(0.0, 1.0)));
    assert_eq!(
        [-9.0, 0.5, 3.0, 9.0].map(|x| line.bin_of(&[x])),
        [0, 1, 3, 3]
    );
    let mut out = Vec::new();
    line.distances(&[-1.5], &[0, 1, 3], &mut out);
    assert_eq!(out, [0.5, 1.5, 3.5]);

    let single = Grid::fit(&[], 0, 6, 4).expect("a point");
    assert_eq!(
        (single.bins(), single.bin_of(&[]), single.region(0)),
        (1, 0, Bin::Point)
    );
    let bins = Bins::build(single, &[], &[4, 2]).expect("two members");
    assert_eq!(
        (bins.occupied(), bins.members_of(0)),
        (&[0][..], &[2, 4][..])
    );
    assert_eq!(bins.nearest(&[], 1, &mut BinScratch::default()), [0]);
    assert_eq!(bins.ordering_work(), 0);
}

#[test]
fn identical_points_share_one_bin_and_no_points_have_none() {
    let rows: Vec<f32> = [0.3, -0.7, 0.2].repeat(5);
    let grid = Grid::fit(&rows, 3, 6, 4).expect("one place");
    assert_eq!(grid.bins(), 1);
    let bins = Bins::build(grid, &rows, &[9, 1, 3, 0, 2]).expect("five members");
    assert_eq!(bins.members_of(0), [0, 1, 2, 3, 9]);
    assert!(distance_to_bin(&[0.3, -0.7, 0.2], &bins.grid().region(0)) <= 1e-15);

    let none = Bins::build(Grid::fit(&[], 3, 6, 4).expect("empty"), &[], &[]).expect("empty");
    assert_eq!(
        (
            none.occupied().len(),
            none.budget(1.0, BinBudget::All),
            none.budget(0.3, BinBudget::Occupied)
        ),
        (0, 0, 0)
    );
    assert!(none.members_of(0).is_empty() && none.members_of(usize::MAX).is_empty());
    assert!(
        none.nearest(&[1.0, 0.0, 0.0], 1, &mut BinScratch::default())
            .is_empty()
    );
}

#[test]
fn a_budget_is_rounded_up_and_never_empty() {
    let rows: Vec<f32> = (0..10).map(|i| i as f32).collect();
    let members: Vec<u32> = (0..10).collect();
    let bins =
        Bins::build(Grid::fit(&rows, 1, 10, 1).expect("a line"), &rows, &members).expect("ten");
    assert_eq!(bins.occupied().len(), 10);
    for (rho, count) in [
        (0.3, 3),
        (0.7, 7),
        (0.31, 4),
        (1e-9, 1),
        (1.0, 10),
        (0.0, 1),
        (-1.0, 1),
        (7.0, 10),
    ] {
        assert_eq!(bins.budget(rho, BinBudget::Occupied), count, "rho {rho}");
        let mut scratch = BinScratch::default();
        let nearest = bins.nearest(&[-1.0], count, &mut scratch);
        assert_eq!(nearest, &members[..count], "rho {rho}");
    }
    assert_eq!(bins.budget(f32::NAN, BinBudget::Occupied), 1);
    // A query that is not a number has no nearest bin, but gets an answer of the promised size.
    assert_eq!(
        bins.nearest(&[f32::NAN], 3, &mut BinScratch::default())
            .len(),
        3
    );
}

#[test]
fn a_budget_counts_all_bins_or_those_that_hold_points() {
    // Ten bins between 0 and 9, of which 0, 1, 2 and 9 hold points.
    let rows = [0.0, 1.0, 2.0, 9.0];
    let grid = Grid::fit(&rows, 1, 10, 1).expect("a line");
    let bins = Bins::build(grid, &rows, &[0, 1, 2, 3]).expect("four");
    assert_eq!((bins.grid().bins(), bins.occupied().len()), (10, 4));
    for (rho, all, occupied) in [(0.1, 1, 1), (0.3, 3, 2), (0.5, 4, 2), (1.0, 4, 4)] {
        assert_eq!(bins.budget(rho, BinBudget::All), all, "rho {rho}");
        assert_eq!(bins.budget(rho, BinBudget::Occupied), occupied, "rho {rho}");
    }
}

#[test]
fn equal_distances_are_ordered_by_bin() {
    // Seen from the origin every bin of the inner shell is equally far.
    let rows: Vec<f32> = (0..900).map(scattered).collect();
    let members: Vec<u32> = (0..300).collect();
    let bins = Bins::build(
        Grid::fit(&rows, 3, 1, 4).expect("one shell"),
        &rows,
        &members,
    )
    .expect("ok");
    let mut scratch = BinScratch::default();
    let nearest = bins
        .nearest(&[0.0; 3], bins.occupied().len() / 2, &mut scratch)
        .to_vec();
    assert!(nearest.len() >= 4 && nearest.iter().copied().eq(0..nearest.len() as u32));
}

#[test]
fn ordering_work_counts_shared_angles_once() {
    let steps = |count| Steps {
        lo: 0.0,
        hi: 1.0,
        count,
    };
    let grid = Grid::from_steps(&[steps(6), steps(4), steps(4)]).expect("96 bins");
    let all: Vec<u32> = (0..96).collect();
    assert_eq!(grid.ordering_work(&all), 3 * 4 + (4 + 16) * 30 + 96 * 8);
    // The second shares the direction of the first, the third only its azimuth, the fourth nothing.
    assert_eq!(
        grid.ordering_work(&[0, 1, 6, 24]),
        3 * 4 + (2 + 1 + 2) * 30 + 4 * 8
    );
    assert_eq!(grid.ordering_work(&[]), 0);
    assert_eq!(
        Grid::from_steps(&[steps(6)])
            .expect("a line")
            .ordering_work(&[1, 2]),
        4
    );
}

/// Steps of any coordinate.
const GOOD: Steps = Steps {
    lo: 0.0,
    hi: 1.0,
    count: 2,
};

#[test]
fn bad_grids_are_refused_with_their_reason() {
    assert!(matches!(
        Grid::fit(&[1.0], 1, 0, 4),
        Err(SphereError::NoSteps { n_r: 0, n_a: 4 })
    ));
    assert!(matches!(
        Grid::fit(&[], 30, 6, 4),
        Err(SphereError::TooManyBins { r: 30 })
    ));
    assert!(matches!(
        Grid::fit(&[], 1, MAX_BINS + 1, 1),
        Err(SphereError::TooManyBins { .. })
    ));
    assert!(Grid::fit(&[], 1, MAX_BINS, 1).is_ok());
    assert!(matches!(
        Grid::fit(&[1.0; 5], 2, 6, 4),
        Err(SphereError::Ragged { len: 5, r: 2 })
    ));
    assert!(matches!(
        Grid::fit(&[1.0], 0, 6, 4),
        Err(SphereError::Ragged { .. })
    ));
    let rows = [0.0, 0.0, 1.0, f32::NAN];
    assert!(matches!(
        Grid::fit(&rows, 2, 6, 4),
        Err(SphereError::NotFinite { row: 1 })
    ));
    for (axis, bad) in [
        (0, Steps { lo: -1.0, ..GOOD }),
        (0, Steps { count: 0, ..GOOD }),
        (1, Steps { hi: 4.0, ..GOOD }),
        (1, Steps { lo: 2.0, ..GOOD }),
        (2, Steps { hi: 7.0, ..GOOD }),
        (
            2,
            Steps {
                hi: f64::NAN,
                ..GOOD
            },
        ),
    ] {
        let mut steps = [GOOD; 3];
        steps[axis] = bad;
        let error = Grid::from_steps(&steps).expect_err("bad steps");
        assert!(
            matches!(error, SphereError::BadSteps { axis: a, .. } if a == axis),
            "{error}"
        );
    }
}

#[test]
fn bad_bins_are_refused_with_their_reason() {
    let grid = || Grid::from_steps(&[GOOD; 2]).expect("four bins");
    let parts = |occupied: &[u32], offsets: &[u32], members: &[u32]| {
        Bins::from_parts(
            grid(),
            occupied.to_vec(),
            offsets.to_vec(),
            members.to_vec(),
        )
    };
    assert!(parts(&[0, 3], &[0, 1, 3], &[7, 1, 2]).is_ok());
    assert!(matches!(
        parts(&[3, 3], &[0, 1, 3], &[7, 1, 2]),
        Err(BinsError::BinOrder(1))
    ));
    assert!(matches!(
        parts(&[0, 4], &[0, 1, 3], &[7, 1, 2]),
        Err(BinsError::BinRange { bin: 4, bins: 4 })
    ));
    for offsets in [
        &[][..],
        &[0, 3],
        &[1, 2, 3],
        &[0, 1, 2],
        &[0, 0, 3],
        &[0, 9, 3],
    ] {
        assert!(
            matches!(
                parts(&[0, 3], offsets, &[7, 1, 2]),
                Err(BinsError::Offsets(_))
            ),
            "{offsets:?}"
        );
    }
    assert!(matches!(
        parts(&[0, 3], &[0, 1, 3], &[7, 2, 2]),
        Err(BinsError::MemberOrder(1))
    ));
    assert!(matches!(
        Bins::build(grid(), &[0.0; 3], &[0, 1]),
        Err(BinsError::Shape { .. })
    ));
    assert!(matches!(
        Bins::build(grid(), &[0.0; 4], &[5, 5]),
        Err(BinsError::MemberOrder(0))
    ));
    let nan = Bins::build(grid(), &[0.0, f32::NAN], &[0]);
    assert!(matches!(
        nan,
        Err(BinsError::Coordinates(SphereError::NotFinite { row: 0 }))
    ));
}

/// Values with many ties, zeros of both signs, and different magnitudes.
fn value() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => -3.0_f32..3.0,
        2 => (-2_i8..=2).prop_map(f32::from),
        1 => Just(-0.0_f32),
        1 => -1e-20_f32..1e-20,
        1 => -1e6_f32..1e6,
    ]
}

/// (r, rows, query): up to 50 points in up to 6 coordinates, duplicates included.
fn cell() -> impl Strategy<Value = (usize, Vec<f32>, Vec<f32>)> {
    (0_usize..=6).prop_flat_map(|r| {
        let rows = prop::collection::vec(prop::collection::vec(value(), r), 0..25);
        let rows = (rows, 1_usize..=2).prop_map(|(rows, copies)| rows.concat().repeat(copies));
        (Just(r), rows, prop::collection::vec(value(), r))
    })
}

fn norm(y: &[f32]) -> f64 {
    distance(y, &vec![0.0; y.len()])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn coordinates_lead_back_to_the_point(y in prop::collection::vec(value(), 2..9)) {
        let s = spherical(&y);
        prop_assert!(s[1..y.len() - 1].iter().all(|a| (0.0..=PI).contains(a)));
        prop_assert!(s[y.len() - 1] > -PI && s[y.len() - 1] <= PI);
        prop_assert!(distance(&y, &point(s[0], &s[1..])) <= 1e-14 * norm(&y));
    }

    #[test]
    fn every_fitted_point_lies_in_its_bin((r, rows, q) in cell(), n_r in 1_usize..8, n_a in 1_usize..5) {
        let grid = Grid::fit(&rows, r, n_r, n_a).expect("valid points");
        prop_assert!(grid.bins() <= n_r * n_a.pow(r.saturating_sub(1) as u32));
        prop_assert_eq!(&Grid::from_steps(&grid.steps().collect::<Vec<_>>()).expect("its own steps"), &grid);
        prop_assert!((grid.bin_of(&q) as usize) < grid.bins());
        for y in rows.chunks_exact(r.max(1)) {
            let bin = grid.bin_of(y);
            prop_assert!((bin as usize) < grid.bins());
            let region = grid.region(bin);
            prop_assert!(distance_to_bin(y, &region) <= 1e-14 * norm(y), "{:?} not in {:?}", y, region);
            // A bin is never farther than what is in it.
            let y64: Vec<f64> = y.iter().map(|&x| f64::from(x)).collect();
            let scale = norm(y).max(norm(&q));
            prop_assert!(distance_to_bin(&q, &region) <= distance(&q, &y64) + 1e-13 * scale);
        }
    }

    #[test]
    fn all_distances_are_the_single_ones((r, rows, q) in cell(), n_r in 1_usize..5, n_a in 1_usize..4) {
        let grid = Grid::fit(&rows, r, n_r, n_a).expect("valid points");
        let ascending: Vec<u32> = (0..grid.bins() as u32).collect();
        // A fixed stride visits the bins in an order that shares little.
        let jumping = (0..ascending.len()).map(|i| (i * 7 % ascending.len()) as u32).collect();
        let mut out = Vec::new();
        for bins in [ascending, jumping] {
            grid.distances(&q, &bins, &mut out);
            prop_assert_eq!(out.len(), bins.len());
            for (&bin, &d) in bins.iter().zip(&out) {
                prop_assert_eq!(d, distance_to_bin(&q, &grid.region(bin)) as f32);
            }
        }
    }

    #[test]
    fn bins_hold_every_member_once((r, rows, q) in cell(), rho in 0.01_f32..=1.0) {
        let n = rows.len() / r.max(1);
        let members: Vec<u32> = (0..n as u32).map(|i| (i * 37 + 5) % 997).collect();
        let grid = Grid::fit(&rows, r, 6, 3).expect("valid points");
        let bins = Bins::build(grid.clone(), &rows, &members).expect("valid members");
        let count = bins.occupied().len();
        let mut seen = 0;
        for i in 0..count {
            let held = bins.members_of(i);
            seen += held.len();
            let mut expected: Vec<u32> = (0..n)
                .filter(|&j| grid.bin_of(&rows[j * r..(j + 1) * r]) == bins.occupied()[i])
                .map(|j| members[j])
                .collect();
            expected.sort_unstable();
            prop_assert_eq!(held, expected);
        }
        prop_assert_eq!(seen, n);

        let mut scratch = BinScratch::default();
        let budget = bins.budget(rho, BinBudget::Occupied);
        let nearest = bins.nearest(&q, budget, &mut scratch).to_vec();
        let mut all: Vec<u32> = (0..count as u32).collect();
        let d = scratch.distances();
        all.sort_by(|&a, &b| d[a as usize].total_cmp(&d[b as usize]).then(a.cmp(&b)));
        prop_assert!(nearest.len() >= count.min(1));
        prop_assert!((nearest.len() as f64 - f64::from(rho) * count as f64).abs() <= 1.0);
        prop_assert_eq!(&nearest[..], &all[..nearest.len()]);

        let p = bins.parts();
        let again = Bins::from_parts(p.grid.clone(), p.occupied.to_vec(), p.offsets.to_vec(), p.members.to_vec());
        prop_assert_eq!(again, Ok(bins.clone()));
    }
}
