//! Seeding, assignment and Lloyd's iteration.

use std::collections::HashSet;

use proptest::prelude::*;

use crate::reference::{blobs, inertia, nearest, random};
use crate::{Matrix, Rows, farthest_points, kmeans_plus_plus, lloyd, nearest_centres, random_rows};

type Seeding = fn(Rows<'_>, usize, u64) -> Matrix;

fn distinct(matrix: &Matrix) -> usize {
    let rows: HashSet<Vec<u32>> = matrix
        .as_rows()
        .iter()
        .map(|r| r.iter().map(|v| v.to_bits()).collect())
        .collect();
    rows.len()
}

#[test]
fn nearest_centres_match_plain_distances() {
    for (n, d, k) in [
        (1, 1, 1),
        (2, 3, 2),
        (17, 17, 9),
        (300, 5, 64),
        (600, 33, 1100),
        (257, 129, 8),
    ] {
        // The offset is what ruins the expanded formula when it is used without care.
        for offset in [0.0, 50.0, 3000.0] {
            let shift = |v: Vec<f32>| v.into_iter().map(|x| x + offset).collect::<Vec<f32>>();
            let (data, centres) = (shift(random(n * d, 1)), shift(random(k * d, 2)));
            let (rows, centres) = (
                Rows::new(&data, d).unwrap(),
                Rows::new(&centres, d).unwrap(),
            );
            assert_eq!(
                nearest_centres(rows, centres),
                nearest(rows, centres),
                "{n} {d} {k}"
            );
        }
    }
}

#[test]
fn ties_go_to_the_lower_centre() {
    for k in [2, 7, 8, 40, 700] {
        let centre = random(20, 3);
        let centres = centre.repeat(k);
        let data = random(300 * 20, 4);
        let (labels, _) = nearest_centres(
            Rows::new(&data, 20).unwrap(),
            Rows::new(&centres, 20).unwrap(),
        );
        assert!(labels.iter().all(|&l| l == 0), "{k}");
    }
    let none = nearest_centres(Rows::new(&[1.0], 1).unwrap(), Rows::new(&[], 1).unwrap());
    assert_eq!(none, (vec![0], vec![f32::INFINITY]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// A grid of small integers is full of exact ties and duplicates.
    #[test]
    fn nearest_centres_on_a_grid(
        d in 1usize..6,
        data in prop::collection::vec(-3i8..4, 60..300),
        centres in prop::collection::vec(-3i8..4, 6..200),
    ) {
        let widen = |v: &[i8]| v[..v.len() / d * d].iter().map(|&x| f32::from(x)).collect::<Vec<_>>();
        let (data, centres) = (widen(&data), widen(&centres));
        let (rows, centres) = (Rows::new(&data, d).unwrap(), Rows::new(&centres, d).unwrap());
        prop_assert_eq!(nearest_centres(rows, centres), nearest(rows, centres));
    }
}

#[test]
fn seeds_are_rows_and_reproducible() {
    let data = random(800 * 6, 5);
    let rows = Rows::new(&data, 6).unwrap();
    let all: HashSet<Vec<u32>> = rows
        .iter()
        .map(|r| r.iter().map(|v| v.to_bits()).collect())
        .collect();
    for seeding in [kmeans_plus_plus as Seeding, farthest_points, random_rows] {
        let centres = seeding(rows, 40, 9);
        assert_eq!((centres.rows(), distinct(&centres)), (40, 40));
        for centre in centres.as_rows().iter() {
            assert!(all.contains(&centre.iter().map(|v| v.to_bits()).collect::<Vec<_>>()));
        }
        assert_eq!(centres, seeding(rows, 40, 9));
        assert_ne!(centres, seeding(rows, 40, 10));
    }
}

#[test]
fn seeding_clamps_to_what_there_is() {
    // Three distinct rows, many times over, and more centres asked for than rows exist.
    let three = [0.0, 0.0, 1.0, 0.0, 0.0, 2.0f32];
    let data = three.repeat(400);
    let rows = Rows::new(&data, 2).unwrap();
    for seeding in [kmeans_plus_plus as Seeding, farthest_points] {
        let centres = seeding(rows, 10, 1);
        assert_eq!((centres.rows(), distinct(&centres)), (3, 3));
        assert_eq!(seeding(rows.slice(0..1), 10, 1).rows(), 1);
        assert_eq!(seeding(rows, 0, 1).rows(), 0);
        assert_eq!(seeding(rows.slice(0..0), 4, 1).rows(), 0);
        let same = [5.0f32; 40];
        assert_eq!(seeding(Rows::new(&same, 4).unwrap(), 3, 1).rows(), 1);
    }
    assert_eq!(random_rows(rows.slice(0..5), 9, 1).rows(), 5);
    assert_eq!(random_rows(rows.slice(0..0), 9, 1).rows(), 0);
}

#[test]
fn farthest_points_are_farthest() {
    let data = random(700 * 3, 6);
    let rows = Rows::new(&data, 3).unwrap();
    let centres = farthest_points(rows, 12, 1);
    for k in 1..12 {
        let (_, distances) = nearest(rows, centres.as_rows().slice(0..k));
        let largest = distances.iter().copied().fold(0.0, f32::max);
        let chosen = rows.row(distances.iter().position(|&x| x == largest).unwrap());
        assert_eq!(centres.row(k), chosen);
    }
}

#[test]
fn plus_plus_draws_in_proportion_to_squared_distance() {
    // All rows but two lie at the origin; from there those two have squared distances 1 and 9, so the second draw
    // takes the far one in nine cases of ten.
    let mut data = vec![0.0f32; 1000];
    data[17] = 1.0;
    data[900] = 3.0;
    let rows = Rows::new(&data, 1).unwrap();
    let (mut far, mut cases) = (0, 0);
    for seed in 0..1000 {
        let centres = kmeans_plus_plus(rows, 2, seed);
        if centres.row(0) == [0.0] {
            cases += 1;
            far += usize::from(centres.row(1) == [3.0]);
        }
    }
    assert!(cases > 980);
    let share = far as f64 / cases as f64;
    assert!((share - 0.9).abs() < 0.05, "{share}");
}

#[test]
fn lloyd_finds_separated_blobs() {
    let (n, d, k) = (900, 10, 6);
    let data = blobs(n, d, k, 7);
    let rows = Rows::new(&data, d).unwrap();
    let found = lloyd(rows, kmeans_plus_plus(rows, k, 3), 20);
    assert_eq!(found.sizes, vec![(n / k) as u32; k]);
    for i in 0..n {
        assert_eq!(found.labels[i], found.labels[i % k]);
    }
    for (c, centre) in found.centres.as_rows().iter().enumerate() {
        for (j, &value) in centre.iter().enumerate() {
            let (sum, count) = (0..n)
                .filter(|&i| found.labels[i] as usize == c)
                .fold((0.0, 0.0), |(s, m), i| {
                    (s + f64::from(rows.row(i)[j]), m + 1.0)
                });
            assert!((f64::from(value) - sum / count).abs() < 1e-5);
        }
    }
}

#[test]
fn lloyd_never_gets_worse_and_its_labels_fit_its_centres() {
    let data = random(600 * 8, 8);
    let rows = Rows::new(&data, 8).unwrap();
    let start = random_rows(rows, 30, 1);
    let mut last = inertia(rows, start.as_rows());
    for iterations in 0..8 {
        let found = lloyd(rows, start.clone(), iterations);
        let now = inertia(rows, found.centres.as_rows());
        assert!(
            now <= last * (1.0 + 1e-6),
            "{iterations}: {now} after {last}"
        );
        last = now;
        assert_eq!(found.labels, nearest(rows, found.centres.as_rows()).0);
        for (c, &size) in found.sizes.iter().enumerate() {
            assert_eq!(
                size as usize,
                found.labels.iter().filter(|&&l| l as usize == c).count()
            );
            assert!(size > 0);
        }
    }
}

#[test]
fn empty_clusters_are_reseeded_or_dropped() {
    // Centres 1 to 3 coincide with centre 0 and start empty; with rows to spare each is put to use.
    let data = blobs(400, 4, 4, 9);
    let rows = Rows::new(&data, 4).unwrap();
    let start = Matrix::gather(rows, &[0, 0, 0, 0]);
    let found = lloyd(rows, start, 30);
    assert_eq!(found.centres.rows(), 4);
    assert_eq!(found.sizes.iter().sum::<u32>(), 400);
    // Without iterations they are only dropped.
    assert_eq!(
        lloyd(rows, Matrix::gather(rows, &[0, 0, 5]), 0)
            .centres
            .rows(),
        2
    );
    // Identical rows support one cluster.
    let same = [2.0f32; 30];
    let rows = Rows::new(&same, 3).unwrap();
    let found = lloyd(rows, random_rows(rows, 4, 1), 5);
    assert_eq!((found.sizes, found.labels), (vec![10], vec![0; 10]));
    assert_eq!(found.centres.as_slice(), [2.0; 3]);
}

#[test]
fn lloyd_on_the_smallest_inputs() {
    let data = [1.0, 2.0f32];
    let rows = Rows::new(&data, 2).unwrap();
    let one = lloyd(rows, kmeans_plus_plus(rows, 5, 1), 3);
    assert_eq!(
        (one.sizes, one.centres.into_vec()),
        (vec![1], data.to_vec())
    );
    let none = lloyd(rows.slice(0..0), Matrix::zeros(2, 2), 3);
    assert!(none.labels.is_empty() && none.sizes.is_empty() && none.centres.rows() == 0);
    let no_centres = lloyd(rows, Matrix::zeros(0, 2), 3);
    assert!(no_centres.labels.is_empty() && no_centres.centres.rows() == 0);
}
