//! Cosine and inner product: what is reported is what brute force in double precision finds.

use crate::testdata::truth::{Recall, distance as reference, ordered_by as truth};
use crate::testdata::{clumps, config, uniform};
use garlic_ann::{Config, Error, Index, Metric, Rows, Search, Store};

/// Numbers between -1 and 1.
fn random(n: usize, seed: u64) -> Vec<f32> {
    let values = uniform(n, 1, seed).into_iter();
    values.map(|v| 2.0 * v - 1.0).collect()
}

/// Vectors in clusters, of many lengths.
fn clustered(n: usize, dim: usize, seed: u64) -> Vec<f32> {
    let mut values = clumps(n, dim, 12, 0.4, seed);
    for (row, vector) in values.chunks_mut(dim).enumerate() {
        let length = 1.0 + (row * 7 % 13) as f32 * 0.2;
        vector.iter_mut().for_each(|v| *v *= length);
    }
    values
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    let product = |(x, y): (&f32, &f32)| f64::from(*x) * f64::from(*y);
    a.iter().zip(b).map(product).sum()
}

/// How far a reported distance may be from the true one.
fn slack(metric: Metric, rows: Rows<'_>, query: &[f32], distance: f64) -> f64 {
    let length = |v: &[f32]| dot(v, v).sqrt();
    let longest = length(rows.row(0)).max(length(rows.row(rows.len() / 2)));
    match metric {
        Metric::Euclidean => 1e-6 * (longest + length(query) + distance),
        // Unit vectors are rounded once: the difference is off by 1e-7 at most, and so is its square.
        Metric::Cosine => 3e-7 * (distance.sqrt() + 1e-7) + 1e-6 * distance,
        Metric::InnerProduct => 1e-6 * distance.abs() + 1e-12 * longest * length(query),
    }
}

#[track_caller]
fn check_exact(index: &Index, rows: Rows<'_>, query: &[f32], ks: &[usize]) {
    let metric = index.metric();
    let truth = truth(metric, rows, query);
    for k in ks {
        let answer = index.search(query, &Search::new(*k).exact(true)).unwrap();
        assert!(answer.exact);
        assert_eq!(answer.hits.len(), rows.len().min(*k));
        for (rank, (hit, (distance, _))) in answer.hits.iter().zip(&truth).enumerate() {
            let slack = slack(metric, rows, query, *distance);
            let found = f64::from(hit.distance);
            assert!(
                (found - distance).abs() <= slack,
                "{metric}: rank {rank} is {found}, not {distance}"
            );
            let own = reference(metric, rows.row(hit.id as usize), query);
            assert!((found - own).abs() <= slack, "{metric}: {found} for {own}");
        }
        let order = |w: &[garlic_ann::Hit]| (w[0].distance, w[0].id) < (w[1].distance, w[1].id);
        assert!(answer.hits.windows(2).all(order), "by distance, then id");
        if metric == Metric::Cosine {
            assert!(answer.hits.iter().all(|h| h.distance >= 0.0));
        }
    }
}

fn small() -> Config {
    config(&[("calibration_queries", "60")])
}

fn build(config: &Config, metric: Metric, rows: Rows<'_>) -> Index {
    let builder = Index::builder().config(config.clone()).metric(metric);
    let index = builder.threads(2).build(rows).unwrap();
    assert_eq!((index.metric(), index.dim()), (metric, rows.dim()));
    index
}

#[test]
fn exact_search_is_brute_force_in_double_precision() {
    for (n, dim, seed) in [(1, 3, 1), (7, 1, 2), (90, 2, 3), (700, 9, 4), (4000, 20, 5)] {
        let data = clustered(n, dim, seed);
        let rows = Rows::new(&data, dim).unwrap();
        let queries = random(6 * dim, seed + 100);
        for metric in Metric::ALL {
            let index = build(&small(), metric, rows);
            for (i, query) in queries.chunks(dim).enumerate() {
                // Queries of all lengths, one of them a vector of the index.
                let scale = [1.0, 1e-6, 30.0, 1e6, 0.1, 1.0][i];
                let mut query: Vec<f32> = query.iter().map(|v| v * scale).collect();
                if i == 5 {
                    query.copy_from_slice(rows.row(n / 2));
                }
                check_exact(&index, rows, &query, &[1, 10, n + 3]);
            }
        }
    }
}

#[test]
fn equal_vectors_and_equal_distances() {
    let dim = 4;
    // Four directions, two lengths, many times each, in both signs.
    let data: Vec<f32> = (0..400)
        .flat_map(|row: usize| {
            let sign = if row.is_multiple_of(3) { -1.0 } else { 1.0 };
            let length = (1 + row % 2) as f32;
            (0..dim).map(move |i| if i == row % dim { sign * length } else { 0.0 })
        })
        .collect();
    let same: Vec<f32> = (0..200 * dim).map(|i| (i % dim) as f32 - 1.5).collect();
    for metric in Metric::ALL {
        for data in [&data, &same] {
            let rows = Rows::new(data, dim).unwrap();
            let index = build(&small(), metric, rows);
            for query in [[1.0, 0.0, 0.0, 0.0], [-2.0, 0.5, 0.25, 1.0], [-1.0; 4]] {
                check_exact(&index, rows, &query, &[1, 30, 150]);
            }
            // Exact in every digit here, so that ties are decided by id.
            let query = [-1.0, 0.0, 0.0, 0.0];
            let hits = index.search(&query, &Search::new(9).exact(true)).unwrap();
            let found: Vec<u64> = hits.hits.iter().map(|h| h.id).collect();
            let all = truth(metric, rows, &query);
            let wanted: Vec<u64> = all[..9].iter().map(|(_, id)| *id).collect();
            assert_eq!(found, wanted, "{metric}");
        }
    }
    // Nothing is nearer to zero than anything else.
    let rows = Rows::new(&data, dim).unwrap();
    let index = build(&small(), Metric::InnerProduct, rows);
    let answer = index
        .search(&[0.0; 4], &Search::new(5).exact(true))
        .unwrap();
    let found: Vec<(u64, f32)> = answer.hits.iter().map(|h| (h.id, h.distance)).collect();
    assert_eq!(found, [0, 1, 2, 3, 4].map(|id| (id, 0.0)));
    assert!(answer.hits.iter().all(|h| h.distance.is_sign_positive()));
}

/// One vector that is far longer than all others costs the distances inside their digits: exact search notices.
#[test]
fn inner_products_are_exact_beside_a_giant() {
    let (n, dim) = (3000, 8);
    let ordinary = clustered(n, dim, 8);
    let queries = random(20 * dim, 9);
    for (factor, passes) in [(1.0, 1), (1e7, 2)] {
        let mut data = ordinary.clone();
        for v in &mut data[17 * dim..18 * dim] {
            *v *= factor;
        }
        let rows = Rows::new(&data, dim).unwrap();
        let mut config = small();
        config.partition.cells = 1000;
        // So many cells that exact search takes the way over all vectors, and counts them.
        let index = build(&config, Metric::InnerProduct, rows);
        for query in queries.chunks(dim) {
            check_exact(&index, rows, query, &[10]);
            let answer = index.search(query, &Search::new(10).exact(true)).unwrap();
            assert_eq!(answer.stats.candidates, passes * n as u64);
        }
    }
}

#[test]
fn recall_is_what_was_asked_for_and_batches_answer_as_single_queries_do() {
    let (n, dim) = (5000, 16);
    // Without clusters a calibration with vectors in place of queries is far off for inner products.
    let [clustered, random] = [clustered(n + 200, dim, 6), random((n + 200) * dim, 6)];
    for (metric, data) in [(Metric::Cosine, clustered), (Metric::InnerProduct, random)] {
        let rows = Rows::new(&data, dim).unwrap();
        let (base, queries) = (rows.slice(0..n), rows.slice(n..n + 200));
        let config = config(&[("calibration_queries", "400")]);
        let index = build(&config, metric, base);
        for target in [0.8, 0.95, 0.99] {
            let search = Search::new(10).recall(target);
            let farthest = |query: &[f32]| {
                let limit = truth(metric, base, query)[9].0;
                limit + slack(metric, base, query, limit)
            };
            let recall = Recall::of(&index, queries, &search, farthest);
            recall.assert_meets(target, metric.name());
            for search in [search.clone(), search.exact(true)] {
                let answers = index.search_batch(queries, &search).unwrap();
                for threads in [1, 3] {
                    let again = index.search_batch(queries, &search.clone().threads(threads));
                    assert_eq!(again.unwrap(), answers);
                }
                for (query, answer) in queries.iter().zip(&answers) {
                    assert_eq!(index.search(query, &search).unwrap(), *answer);
                }
            }
        }
    }
}

#[test]
fn lengths_of_queries_change_what_they_should() {
    let (n, dim) = (1500, 10);
    let data = clustered(n, dim, 3);
    let rows = Rows::new(&data, dim).unwrap();
    for metric in [Metric::Cosine, Metric::InnerProduct] {
        let index = build(&small(), metric, rows);
        for query in random(10 * dim, 31).chunks(dim) {
            let longer: Vec<f32> = query.iter().map(|v| v * 1024.0).collect();
            let search = Search::new(7);
            let (one, other) = (index.search(query, &search), index.search(&longer, &search));
            let factor = if metric == Metric::Cosine {
                1.0
            } else {
                1024.0
            };
            let mut wanted = one.unwrap();
            for hit in &mut wanted.hits {
                hit.distance *= factor;
            }
            assert_eq!(other.unwrap(), wanted, "{metric}");
        }
    }
}

#[test]
fn files_keep_the_metric() {
    let dim = 5;
    let data = clustered(400, dim, 12);
    let rows = Rows::new(&data, dim).unwrap();
    let queries = random(15 * dim, 13);
    let queries = Rows::new(&queries, dim).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for metric in Metric::ALL {
        let index = build(&small(), metric, rows);
        let path = folder.path().join("index.garlic");
        index.save(&path).unwrap();
        assert_eq!(Index::verify(&path).unwrap().dim, dim);
        let again = Index::open(&path).unwrap();
        assert_eq!((again.metric(), again.dim()), (metric, dim));
        assert_eq!(again, index);
        for search in [Search::new(6), Search::new(6).exact(true)] {
            let answers = index.search_batch(queries, &search).unwrap();
            assert_eq!(again.search_batch(queries, &search).unwrap(), answers);
        }
        for query in queries.iter() {
            let cells = 2.min(again.cells());
            assert_eq!(again.route(query, 2).unwrap().len(), cells);
        }
    }
}

#[test]
fn half_precision_goes_with_cosine() {
    let (n, dim) = (800, 12);
    let data = clustered(n, dim, 14);
    let rows = Rows::new(&data, dim).unwrap();
    let config = config(&[("store", "f16"), ("calibration_queries", "60")]);
    let index = build(&config, Metric::Cosine, rows);
    assert_eq!(index.stored_as(), "f16");
    for query in random(10 * dim, 15).chunks(dim) {
        let hits = index.search(query, &Search::new(5).exact(true)).unwrap();
        for (hit, (distance, _)) in hits.hits.iter().zip(truth(Metric::Cosine, rows, query)) {
            assert!((f64::from(hit.distance) - distance).abs() < 2e-3 * distance.sqrt() + 1e-6);
        }
    }
}

#[test]
fn what_a_metric_cannot_take_is_an_error() {
    let data = [1.0, 2.0, 0.0, 0.0, 3.0, 1.0];
    let rows = Rows::new(&data, 2).unwrap();
    let build = |metric, store| Index::builder().store(store).metric(metric).build(rows);
    let zero = build(Metric::Cosine, Store::Auto);
    assert!(matches!(zero, Err(Error::ZeroVector { row: 1 })));
    for (metric, store) in [
        (Metric::Cosine, Store::U8),
        (Metric::InnerProduct, Store::U8),
        (Metric::InnerProduct, Store::F16),
        (Metric::InnerProduct, Store::Int8),
    ] {
        let error = build(metric, store).unwrap_err();
        assert!(matches!(&error, Error::Config { key, .. } if key == "store"));
    }
    // Whole numbers stay what they are only where nothing is added to them.
    let index = build(Metric::InnerProduct, Store::Auto).unwrap();
    assert_eq!(index.stored_as(), "f32");
    assert_eq!(
        build(Metric::Euclidean, Store::Auto).unwrap().stored_as(),
        "u8"
    );
    let wrong = index.search(&[1.0, 2.0, 3.0], &Search::new(1));
    let wrong = wrong.unwrap_err();
    assert!(matches!(
        wrong,
        Error::Dimension {
            expected: 2,
            found: 3
        }
    ));

    let units = Rows::new(&data[..2], 2).unwrap();
    let index = Index::builder()
        .metric(Metric::Cosine)
        .build(units)
        .unwrap();
    let queries = [1.0, 1.0, 0.0, 0.0];
    let batch = index.search_batch(Rows::new(&queries, 2).unwrap(), &Search::new(1));
    assert!(matches!(batch, Err(Error::ZeroQuery { row: 1 })));
    assert!(index.route(&queries[2..], 1).is_err());
}
