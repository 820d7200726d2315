//! Cosine and inner product: what is reported is what brute force in double precision finds.

use garlic_linalg::{random_stream, uniform_unit};
use garlic_paper::{Config, Error, GaussianIndex, Metric, RangeSearch, Rows, Search};

/// Numbers between -1 and 1.
fn random(n: usize, seed: u64) -> Vec<f32> {
    let mut rng = random_stream(seed, 4);
    (0..n)
        .map(|_| 2.0 * uniform_unit(&mut rng) as f32 - 1.0)
        .collect()
}

/// Vectors in clusters, of many lengths.
fn clustered(n: usize, dim: usize, seed: u64) -> Vec<f32> {
    let centres = random(12 * dim, 77);
    let mut values = random(n * dim, seed);
    for (row, vector) in values.chunks_mut(dim).enumerate() {
        let length = 1.0 + (row * 7 % 13) as f32 * 0.2;
        let centre = &centres[row % 12 * dim..][..dim];
        for (v, c) in vector.iter_mut().zip(centre) {
            *v = length * (0.4 * *v + c);
        }
    }
    values
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    let product = |(x, y): (&f32, &f32)| f64::from(*x) * f64::from(*y);
    a.iter().zip(b).map(product).sum()
}

/// The distance as the metric defines it.
fn reference(metric: Metric, a: &[f32], b: &[f32]) -> f64 {
    let (la, lb) = (dot(a, a).sqrt(), dot(b, b).sqrt());
    let apart = |la: f64, lb: f64| -> f64 {
        let difference = |(x, y): (&f32, &f32)| (f64::from(*x) / la - f64::from(*y) / lb).powi(2);
        a.iter().zip(b).map(difference).sum()
    };
    match metric {
        Metric::Euclidean => apart(1.0, 1.0).sqrt(),
        // Half the squared difference of unit vectors loses no digits where the angle is small.
        Metric::Cosine => apart(la, lb) / 2.0,
        Metric::InnerProduct => -dot(a, b),
    }
}

/// Everything by (distance as a 32-bit number, id).
fn truth(metric: Metric, rows: Rows<'_>, query: &[f32]) -> Vec<(f64, u64)> {
    let mut all: Vec<(f64, u64)> = rows
        .iter()
        .zip(0..)
        .map(|(row, id)| (reference(metric, row, query), id))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all
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
fn check_exact(index: &GaussianIndex, rows: Rows<'_>, query: &[f32], ks: &[usize]) {
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
        let order = |w: &[garlic_paper::Hit]| (w[0].distance, w[0].id) < (w[1].distance, w[1].id);
        assert!(answer.hits.windows(2).all(order), "by distance, then id");
        if metric == Metric::Cosine {
            assert!(answer.hits.iter().all(|h| h.distance >= 0.0));
        }
    }
}

fn short() -> Config {
    crate::common::config(&[
        ("epochs", "3"),
        ("initial_cells", "8"),
        ("warmup_epochs", "1"),
    ])
}

fn build(metric: Metric, rows: Rows<'_>) -> GaussianIndex {
    let builder = GaussianIndex::builder().config(short()).metric(metric);
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
            let index = build(metric, rows);
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
            let index = build(metric, rows);
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
    let index = build(Metric::InnerProduct, rows);
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
        let index = build(Metric::InnerProduct, rows);
        for query in queries.chunks(dim) {
            check_exact(&index, rows, query, &[10]);
            let answer = index.search(query, &Search::new(10).exact(true)).unwrap();
            assert_eq!(answer.stats.candidates, passes * n as u64);
        }
    }
}

/// Vectors so close together that 32 bits cannot tell them apart.
#[test]
fn cosines_that_rounding_decides_are_no_exact_answer() {
    let data: Vec<f32> = (0..60)
        .flat_map(|i| [1.0, 1e-8 * i as f32, 1e-8 * (i * i % 7) as f32])
        .collect();
    let index = build(Metric::Cosine, Rows::new(&data, 3).unwrap());
    let query = [1.0, 2e-7, 0.0];
    let error = index.search(&query, &Search::new(5).exact(true));
    assert!(matches!(error, Err(Error::TooClose { row: 0, .. })));
    let all = index.search(&query, &Search::new(60).exact(true)).unwrap();
    assert!(all.exact && all.hits.len() == 60, "nothing is left out");
    let near = RangeSearch::new(1e-15);
    assert!(matches!(
        index.range(&query, &near),
        Err(Error::TooClose { .. })
    ));
    assert!(index.range(&query, &near.recall(0.9)).is_ok());
}

#[test]
fn lengths_of_queries_change_what_they_should() {
    let (n, dim) = (1500, 10);
    let data = clustered(n, dim, 3);
    let rows = Rows::new(&data, dim).unwrap();
    for metric in [Metric::Cosine, Metric::InnerProduct] {
        let index = build(metric, rows);
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
        let index = build(metric, rows);
        let path = folder.path().join("index.garlic");
        index.save(&path).unwrap();
        assert_eq!(GaussianIndex::verify(&path).unwrap().dim, dim);
        let again = GaussianIndex::open(&path).unwrap();
        assert_eq!((again.metric(), again.dim()), (metric, dim));
        assert_eq!(again, index);
        for search in [Search::new(6), Search::new(6).exact(true)] {
            let answers = index.search_batch(queries, &search).unwrap();
            assert_eq!(again.search_batch(queries, &search).unwrap(), answers);
        }
        // A grid of settings answers as its settings do.
        for query in queries.iter() {
            let grid = again.searcher().search_grid(query, 6, &[2, 4], &[0.5]);
            let single = [2, 4].map(|probes| {
                let search = Search::new(6).probes(probes).bins(0.5);
                index.search(query, &search).unwrap()
            });
            assert_eq!(grid.unwrap(), single);
            assert_eq!(again.route(query, 2).unwrap().len(), 2.min(again.cells()));
        }
    }
}

#[test]
fn what_a_metric_cannot_take_is_an_error() {
    let data = [1.0, 2.0, 0.0, 0.0, 3.0, 1.0];
    let rows = Rows::new(&data, 2).unwrap();
    let built = |metric| GaussianIndex::builder().metric(metric).build(rows);
    let zero = built(Metric::Cosine);
    assert!(matches!(zero, Err(Error::ZeroVector { row: 1 })));
    let index = built(Metric::InnerProduct).unwrap();
    let wrong = index.search(&[1.0, 2.0, 3.0], &Search::new(1)).unwrap_err();
    assert!(matches!(
        wrong,
        Error::Dimension {
            expected: 2,
            found: 3
        }
    ));

    let index = build(Metric::Cosine, Rows::new(&data[..2], 2).unwrap());
    let queries = [1.0, 1.0, 0.0, 0.0];
    let batch = index.search_batch(Rows::new(&queries, 2).unwrap(), &Search::new(1));
    assert!(matches!(batch, Err(Error::ZeroQuery { row: 1 })));
    assert!(index.route(&queries[2..], 1).is_err());
}
