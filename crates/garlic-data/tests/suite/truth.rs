//! Ground truth against a naive loop in double precision.

use garlic_data::{
    DataError, Ids, Metric, check_truth, check_truth_by, ground_truth, ground_truth_by,
};
use proptest::prelude::*;

fn naive(train: &[f32], dim: usize, query: &[f32], k: usize) -> Vec<(f64, i64)> {
    let mut all: Vec<(f64, i64)> = train
        .chunks(dim)
        .zip(0..)
        .map(|(row, id)| {
            let terms = row.iter().zip(query);
            let squares = terms.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2));
            (squares.sum(), id)
        })
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all.truncate(k);
    all
}

#[track_caller]
fn compare(train: &[f32], dim: usize, queries: &[f32], k: usize) {
    let truth = ground_truth(train, dim, queries, k).unwrap();
    assert_eq!(truth.k, k.min(train.len() / dim));
    assert_eq!(truth.rows(), queries.len() / dim);
    for (i, query) in queries.chunks(dim).enumerate() {
        let range = i * truth.k..(i + 1) * truth.k;
        let expected = naive(train, dim, query, k);
        let ids: Vec<i64> = expected.iter().map(|(_, id)| *id).collect();
        assert_eq!(truth.ids[range.clone()], ids, "query {i}");
        let distances: Vec<f32> = expected.iter().map(|(d, _)| d.sqrt() as f32).collect();
        assert_eq!(truth.distances[range], distances, "query {i}");
    }
}

/// Deterministic numbers in [0, 1).
fn numbers(seed: u64) -> impl Iterator<Item = f32> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 24) as f32
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Few distinct values: many duplicates and equal distances.
    #[test]
    fn duplicates_and_ties(
        dim in 1_usize..5,
        seed in any::<u64>(),
        rows in 1_usize..300,
        k in 1_usize..40,
    ) {
        let mut values = numbers(seed).map(|v| (v * 3.0).floor());
        let train: Vec<f32> = values.by_ref().take(rows * dim).collect();
        let queries: Vec<f32> = values.take(40 * dim).collect();
        compare(&train, dim, &queries, k);
    }

    /// Rows that are one vector in other orders, but for the last bits of a coordinate: their
    /// distances from the origin differ by less than single precision errs.
    #[test]
    fn near_ties(seed in any::<u64>(), dim in 200_usize..500, k in 1_usize..20) {
        let base: Vec<f32> = numbers(seed).take(dim).map(|v| v + 0.5).collect();
        let mut random = numbers(seed ^ 1);
        let mut below = |n: usize| (random.next().unwrap_or(0.0) * n as f32) as usize;
        let mut train = Vec::new();
        for _ in 0..300 {
            let mut row = base.clone();
            for i in (1..dim).rev() {
                row.swap(i, below(i + 1));
            }
            let bits = row[0].to_bits() + below(16) as u32;
            row[0] = f32::from_bits(bits);
            train.extend(row);
        }
        compare(&train, dim, &vec![0.0; dim], k);
    }
}

#[test]
fn several_blocks_of_rows_and_queries() {
    let dim = 70;
    let mut values = numbers(7);
    let train: Vec<f32> = values.by_ref().take(1500 * dim).collect();
    let queries: Vec<f32> = values.take(70 * dim).collect();
    compare(&train, dim, &queries, 10);
    compare(&train, dim, &queries, 1);
}

#[test]
fn more_neighbours_than_rows() {
    let train = [0.0, 3.0, 1.0, 1.0];
    compare(&train, 1, &[0.9, 10.0], 100);
    assert_eq!(
        ground_truth(&train, 1, &[0.9], 100).unwrap().ids,
        [2, 3, 0, 1]
    );
}

#[test]
fn all_rows_equal() {
    compare(&vec![2.5; 3 * 2000], 3, &[1.0, 2.0, 3.0, 2.5, 2.5, 2.5], 5);
}

#[test]
fn extreme_magnitudes() {
    // Squares that overflow or vanish in single precision.
    let huge: Vec<f32> = numbers(1).take(200).map(|v| (v - 0.5) * 1e30).collect();
    compare(&huge, 2, &huge[..20], 7);
    let tiny: Vec<f32> = numbers(2).take(200).map(|v| (v - 0.5) * 1e-25).collect();
    compare(&tiny, 2, &tiny[..20], 7);
    let mixed: Vec<f32> = huge.iter().zip(&tiny).flat_map(|(a, b)| [*a, *b]).collect();
    compare(&mixed, 4, &mixed[..40], 7);
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let mut values = numbers(3);
    let train: Vec<f32> = values
        .by_ref()
        .take(3000)
        .map(|v| (v * 8.0).floor())
        .collect();
    let queries: Vec<f32> = values.take(300).collect();
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap()
            .install(|| ground_truth(&train, 3, &queries, 9).unwrap())
    };
    assert_eq!(with(1), with(3));
}

#[test]
fn bad_arguments() {
    use crate::common::assert_error;
    assert_error(
        ground_truth(&[1.0, 2.0], 0, &[1.0], 1),
        kind!(DataError::ZeroDimension { .. }),
        &["'train'"],
    );
    assert_error(
        ground_truth(&[1.0, 2.0], 2, &[1.0], 1),
        kind!(DataError::BadLength { .. }),
        &["'test'"],
    );
    assert_error(
        ground_truth(&[1.0, f32::NAN], 2, &[1.0, 1.0], 1),
        kind!(DataError::NotFinite { .. }),
        &["'train'", "column 1"],
    );
    assert_error(
        ground_truth(&[1.0, 2.0], 2, &[1.0, 1.0], 0),
        kind!(DataError::ZeroNeighbors { .. }),
        &["k must be at least 1"],
    );
    assert_error(
        ground_truth(&[], 2, &[1.0, 1.0], 1),
        kind!(DataError::ZeroRows { .. }),
        &["'train'"],
    );
}

#[test]
fn given_truth_is_compared_by_distance() {
    let train = [0.0, 1.0, -1.0, 5.0];
    let check = |ids: Vec<i64>| {
        let cols = ids.len();
        check_truth(&train, 1, &[0.0], &Ids::new(ids, cols).unwrap())
    };
    assert_eq!(check(vec![0, 1, 2]).unwrap().agree, 3);
    // Rows 1 and 2 are equally near, so either order is right.
    assert_eq!(check(vec![0, 2, 1]).unwrap().first_disagreement, None);
    let wrong = check(vec![0, 3, 1]).unwrap();
    assert_eq!((wrong.compared, wrong.agree), (3, 2));
    assert_eq!(wrong.first_disagreement, Some((0, 1)));
    let twice = check(vec![0, 1, 1]).unwrap();
    assert_eq!(twice.first_disagreement, Some((0, 2)));
    assert!(matches!(
        check(vec![4]),
        Err(DataError::IdOutOfRange { .. })
    ));
    let two_rows = Ids::new(vec![0, 0], 1).unwrap();
    assert!(matches!(
        check_truth(&train, 1, &[0.0], &two_rows),
        Err(DataError::CountMismatch { .. })
    ));
}

fn product(a: &[f32], b: &[f32]) -> f64 {
    let terms = a.iter().zip(b);
    terms.map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

/// The distances to all vectors by another metric, in order, and what they are relative to.
fn naive_by(metric: Metric, train: &[f32], dim: usize, query: &[f32]) -> Vec<(f64, i64)> {
    let distance = |row: &[f32]| match metric {
        Metric::InnerProduct => -product(row, query),
        _ => 1.0 - product(row, query) / (product(row, row) * product(query, query)).sqrt(),
    };
    let mut all: Vec<(f64, i64)> = train.chunks(dim).map(distance).zip(0..).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all
}

#[test]
fn cosines_and_inner_products_against_a_naive_loop() {
    for (dim, rows, k, size) in [
        (1, 40, 7, 1.0),
        (2, 300, 400, 1e3),
        (19, 900, 25, 1e-9),
        (64, 500, 10, 1e18),
        (3, 200, 5, 3e38),
    ] {
        let mut values = numbers(dim as u64).map(|v| (v - 0.4) * size);
        let train: Vec<f32> = values.by_ref().take(dim * rows).collect();
        let queries: Vec<f32> = values.take(dim * 40).collect();
        for metric in [Metric::Cosine, Metric::InnerProduct] {
            let truth = ground_truth_by(metric, &train, dim, &queries, k).unwrap();
            assert_eq!(truth.k, k.min(rows));
            for (i, query) in queries.chunks(dim).enumerate() {
                let expected = naive_by(metric, &train, dim, query);
                let scale = match metric {
                    Metric::Cosine => 1.0,
                    _ => expected.iter().map(|e| e.0.abs()).fold(0.0, f64::max),
                };
                let range = i * truth.k..(i + 1) * truth.k;
                let found = truth.ids[range.clone()].iter().zip(&truth.distances[range]);
                for ((id, distance), (wanted, _)) in found.zip(&expected) {
                    let own = expected.iter().find(|e| e.1 == *id).unwrap().0;
                    assert!((own - wanted).abs() <= 1e-13 * scale, "{own} for {wanted}");
                    // Beyond the largest number there is only infinity.
                    let off = (f64::from(*distance) - own).abs();
                    let endless = distance.is_infinite() && own.abs() > f64::from(f32::MAX);
                    assert!(
                        endless || off <= 1e-7 * own.abs() + 1e-14,
                        "{distance} for {own}"
                    );
                }
            }
            let ids = truth.into_ids();
            let check = check_truth_by(metric, &train, dim, &queries, &ids);
            if size < 1e10 {
                let check = check.unwrap();
                assert_eq!(
                    (check.agree, check.first_disagreement),
                    (check.compared, None)
                );
            }
        }
    }
}

#[test]
fn metrics_differ_where_they_should_and_zero_has_no_direction() {
    // The long one has the largest inner product, the one straight ahead the smallest angle.
    let train = [9.0, 9.0, 1.0, 0.0, -5.0, 0.0];
    let query = [2.0, 0.0];
    let nearest = |metric| {
        let truth = ground_truth_by(metric, &train, 2, &query, 3).unwrap();
        (truth.ids, truth.distances)
    };
    assert_eq!(nearest(Metric::Euclidean).0, [1, 2, 0]);
    let (ids, distances) = nearest(Metric::Cosine);
    assert_eq!(
        (&ids[..], distances[0], distances[2]),
        (&[1, 0, 2][..], 0.0, 2.0)
    );
    let (ids, distances) = nearest(Metric::InnerProduct);
    assert_eq!(
        (&ids[..], &distances[..]),
        (&[0, 1, 2][..], &[-18.0, -2.0, 10.0][..])
    );

    let none = ground_truth_by(Metric::Cosine, &[1.0, 0.0], 1, &[1.0], 1);
    assert!(matches!(none, Err(DataError::ZeroVector { row: 1, .. })));
    let none = ground_truth_by(Metric::Cosine, &[1.0], 1, &[1.0, 0.0], 1);
    assert!(none.unwrap_err().to_string().contains("'test'"));
    let wrong = Ids::new(vec![1, 0, 2], 3).unwrap();
    let check = check_truth_by(Metric::InnerProduct, &train, 2, &query, &wrong).unwrap();
    assert_eq!((check.agree, check.first_disagreement), (1, Some((0, 0))));
}
