//! Vectors that 32 bits can hardly tell apart: the true neighbours, or an error that says so.

use crate::testdata::truth::ordered_by;
use crate::testdata::{config, ids, normal, rows};
use garlic_ann::{Config, Error, Filter, Index, Metric, RangeSearch, Rows, Search};

fn around(centre: f64, spread: f64, n: usize, seed: u64) -> Vec<f32> {
    let values = normal(n, 1, seed).into_iter();
    values.map(|v| (centre + spread * v) as f32).collect()
}

fn build(values: &[f32], dim: usize, metric: Metric) -> garlic_ann::Result<Index> {
    let config = Config {
        metric,
        ..config(&[("calibration_queries", "20")])
    };
    let builder = Index::builder().config(config).threads(2);
    builder.build(Rows::new(values, dim).unwrap())
}

fn truth(metric: Metric, values: &[f32], query: &[f32]) -> Vec<(f64, u64)> {
    ordered_by(metric, rows(values, query.len()), query)
}

/// Exact answers, how many queries were answered, and how many got an error instead.
#[track_caller]
fn check_exact(index: &Index, values: &[f32], queries: &[f32], k: usize) -> (usize, usize) {
    let (metric, dim) = (index.metric(), index.dim());
    let (mut answered, mut refused) = (0, 0);
    for query in queries.chunks(dim) {
        match index.search(query, &Search::new(k).exact(true)) {
            Ok(answer) => {
                answered += 1;
                let all = truth(metric, values, query);
                let mut found: Vec<u64> = answer.hits.iter().map(|hit| hit.id).collect();
                let mut wanted: Vec<u64> = all[..k].iter().map(|hit| hit.1).collect();
                found.sort_unstable();
                wanted.sort_unstable();
                assert_eq!(found, wanted);
            }
            Err(Error::TooClose { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    (answered, refused)
}

#[test]
fn cosines_that_unit_vectors_cannot_tell_apart_are_an_error() {
    for dim in [16, 64] {
        let values = around(1e4, 1e-2, 2000 * dim, 1);
        let queries = around(1e4, 1e-2, 30 * dim, 2);
        let index = build(&values, dim, Metric::Cosine).unwrap();
        let (_, refused) = check_exact(&index, &values, &queries, 10);
        assert!(refused > 0);
        let error = index.search(&queries[..dim], &Search::new(10).exact(true));
        if let Err(error) = error {
            let error = error.to_string();
            assert!(
                error.contains("euclidean") && error.contains("subtract the mean"),
                "{error}"
            );
        }
        // All of them are the nearest 2,000, and approximate search promises nothing of the kind.
        assert!(
            index
                .search(&queries[..dim], &Search::new(2000).exact(true))
                .is_ok()
        );
        assert!(index.search(&queries[..dim], &Search::new(10)).is_ok());
        // Few points are searched in full, but no proof was asked for and none is claimed.
        let few = Filter::ids(ids(0..60));
        let answer = index
            .search(&queries[..dim], &Search::new(10).filter(few))
            .unwrap();
        assert!(answer.hits.len() == 10 && !answer.exact);
        // A batch fails as its queries do, and says which.
        let rows = Rows::new(&queries, dim).unwrap();
        let batch = index.search_batch(rows, &Search::new(10).exact(true));
        assert!(matches!(batch, Err(Error::TooClose { row, .. }) if row < 30));
        let middle = truth(Metric::Cosine, &values, &queries[..dim])[1000].0 as f32;
        let range = index.range(&queries[..dim], &RangeSearch::new(middle));
        assert!(matches!(range, Err(Error::TooClose { row: 0, .. })));
    }
}

#[test]
fn cosines_that_unit_vectors_tell_apart_are_found() {
    for (spread, dim) in [(1e-2, 16), (0.3, 16), (1e-2, 64)] {
        let values = around(1.0, spread, 2000 * dim, 3);
        let queries = around(1.0, spread, 40 * dim, 4);
        let index = build(&values, dim, Metric::Cosine).unwrap();
        assert_eq!(check_exact(&index, &values, &queries, 10), (40, 0));
    }
    // Close to the query, but well apart from each other.
    let dim = 8;
    let mut values = around(0.0, 1.0, 200 * dim, 5);
    let query: Vec<f32> = around(0.0, 1.0, dim, 6);
    for (row, step) in [1e-6, 3e-6, 8e-6].into_iter().enumerate() {
        for (at, (v, q)) in values[row * dim..].iter_mut().zip(&query).enumerate() {
            *v = if at == 0 {
                (f64::from(*q) + step * 3.0) as f32
            } else {
                *q
            };
        }
    }
    let index = build(&values, dim, Metric::Cosine).unwrap();
    for k in [1, 2, 3, 4] {
        assert_eq!(check_exact(&index, &values, &query, k), (1, 0));
    }
}

#[test]
fn what_is_told_apart_ends_where_rounding_begins() {
    let dim = 2;
    // The nearest two lie at these angles, in radians. Rounding moves each by 6e-8 at most.
    for (angles, told_apart) in [
        ([1e-6, 1.25e-6], true),
        ([1e-6, 1.1e-6], false),
        ([5e-4, 5e-4 + 3e-7], true),
        ([5e-4, 5e-4 + 1e-7], false),
        // The same unit vector as the query's: nothing is nearer.
        ([0.0, 1e-7], true),
        // Rounding is little beside this distance: as everywhere, 32 bits decide.
        ([2e-3, 2e-3 + 1e-7], true),
    ] {
        let mut values = vec![1.0, angles[1] as f32, 1.0, angles[0] as f32];
        values.extend((1..40).flat_map(|i| [1.0, i as f32]));
        let index = build(&values, dim, Metric::Cosine).unwrap();
        let answer = index.search(&[3.0, 0.0], &Search::new(1).exact(true));
        match told_apart {
            true => assert_eq!(answer.unwrap().hits[0].id, 1, "{angles:?}"),
            false => assert!(
                matches!(answer, Err(Error::TooClose { row: 0, .. })),
                "{angles:?}"
            ),
        }
        // Both of them are nearer than all others.
        let both = index.search(&[3.0, 0.0], &Search::new(2).exact(true));
        assert_eq!(both.unwrap().hits.len(), 2);
    }
}

#[test]
fn equal_directions_are_ties_and_no_error() {
    let dim = 12;
    let base: Vec<f32> = (0..dim).map(|i| (i * i % 7) as f32 + 1.0).collect();
    let mut values = around(0.0, 1.0, 300 * dim, 7);
    for (row, factor) in [1.0, 2.0, 3.0, 5.0, 0.5, 1.0, 12.0, 1.0]
        .into_iter()
        .enumerate()
    {
        for (v, b) in values[row * dim..].iter_mut().zip(&base) {
            *v = b * factor;
        }
    }
    let index = build(&values, dim, Metric::Cosine).unwrap();
    for query in [&base, &base.iter().map(|v| v * 7.0).collect()] {
        for k in [1, 3, 8, 9] {
            let answer = index.search(query, &Search::new(k).exact(true)).unwrap();
            let found: Vec<u64> = answer.hits.iter().take(8).map(|hit| hit.id).collect();
            assert_eq!(found, (0..k.min(8) as u64).collect::<Vec<u64>>());
            assert!(answer.hits.iter().take(8).all(|hit| hit.distance == 0.0));
        }
        let within = index.range(query, &RangeSearch::new(0.0)).unwrap();
        assert_eq!(within.hits.len(), 8);
    }
    // The same vector many times, beside a query that is none of them.
    let same = base.repeat(500);
    let index = build(&same, dim, Metric::Cosine).unwrap();
    let mut query = base.clone();
    query[3] += 1e-5;
    let answer = index.search(&query, &Search::new(5).exact(true)).unwrap();
    assert!(answer.hits.iter().map(|hit| hit.id).eq(0..5));
}

#[test]
fn tiny_values_have_cosines() {
    let dim = 10;
    let values = around(0.0, 1.0, 400 * dim, 8);
    for scale in [1e-23f32, 1e-30, 1e-37] {
        let tiny = |values: &[f32]| values.iter().map(|v| v * scale).collect::<Vec<f32>>();
        let (small, queries) = (tiny(&values), tiny(&around(0.0, 1.0, 20 * dim, 9)));
        let index = build(&small, dim, Metric::Cosine).unwrap();
        assert_eq!(check_exact(&index, &small, &queries, 5), (20, 0));
    }
}

#[test]
fn distances_that_vanish_in_32_bits_are_refused_or_found() {
    let dim = 10;
    let values = around(0.0, 1.0, 400 * dim, 10);
    for metric in [Metric::Euclidean, Metric::InnerProduct] {
        for scale in [1e-20f32, 1e-23, 1e-30, 1e-44] {
            let tiny: Vec<f32> = values.iter().map(|v| v * scale).collect();
            let error = build(&tiny, dim, metric).unwrap_err();
            assert!(matches!(error, Error::TooSmall { .. }), "{error}");
            assert!(error.to_string().contains("scale the data"), "{error}");
        }
        let small: Vec<f32> = values.iter().map(|v| v * 1e-17).collect();
        assert!(build(&small, dim, metric).is_ok());
        // Zeros are zeros.
        assert!(build(&[0.0; 40], dim, metric).is_ok());
    }
    // Among ordinary vectors: exact search computes what 32 bits would lose.
    for scale in [1e-16f32, 1e-18, 1e-23, 1e-30] {
        let mut mixed = values.clone();
        for v in &mut mixed[200 * dim..] {
            *v *= scale;
        }
        let index = build(&mixed, dim, Metric::Euclidean).unwrap();
        let tiny: Vec<f32> = around(0.0, 1.0, 10 * dim, 11)
            .iter()
            .map(|v| v * scale)
            .collect();
        for query in tiny.chunks(dim).chain([&mixed[390 * dim..391 * dim]]) {
            check_exact(&index, &mixed, query, 7);
            let answer = index.search(query, &Search::new(7).exact(true)).unwrap();
            let all = truth(Metric::Euclidean, &mixed, query);
            for (hit, (wanted, _)) in answer.hits.iter().zip(&all) {
                let found = f64::from(hit.distance);
                assert!(
                    (found - wanted).abs() <= 1e-5 * wanted,
                    "{found} for {wanted}"
                );
            }
            let radius = (0.5 * (all[9].0 + all[10].0)) as f32;
            let within = index.range(query, &RangeSearch::new(radius)).unwrap();
            assert_eq!(within.hits.len(), 10);
        }
    }
}
