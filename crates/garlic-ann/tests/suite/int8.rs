//! Vectors stored as 8-bit values: what an index holds, finds and proves is that of the rounded vectors, whatever happens
//! to it.

use crate::testdata::truth::{Model, ordered, pairs};
use crate::testdata::{clumps, config, ids, rows, sheet};
use garlic_ann::{Filter, Index, Live, Metric, RangeSearch, Rows, Search};
use proptest::prelude::*;

/// The rounding by its definition, in double precision: the step of 32 coordinates is their largest magnitude over 127,
/// with 8 significant bits; a coordinate is the nearest multiple of it.
fn rounded(vector: &[f32]) -> Vec<f32> {
    let block = |values: &[f32]| -> Vec<f32> {
        let largest = values.iter().fold(0.0f64, |m, v| m.max(f64::from(v.abs())));
        if largest == 0.0 {
            return vec![0.0; values.len()];
        }
        let ideal = largest / 127.0;
        let unit = 2f64.powi(ideal.log2().floor() as i32 - 7);
        let step = (ideal / unit).round_ties_even() * unit;
        let multiple = |v: &f32| ((f64::from(*v) / step).round_ties_even() * step) as f32;
        values.iter().map(multiple).collect()
    };
    vector.chunks(32).flat_map(block).collect()
}

/// A vector as an index stores it.
fn stored(metric: Metric, vector: &[f32]) -> Vec<f32> {
    match metric {
        Metric::Cosine => rounded(&unit(vector)),
        _ => rounded(vector),
    }
}

fn unit(vector: &[f32]) -> Vec<f32> {
    let squares = vector.iter().map(|v| f64::from(*v) * f64::from(*v));
    let length = squares.sum::<f64>().sqrt();
    vector
        .iter()
        .map(|v| (f64::from(*v) / length) as f32)
        .collect()
}

/// Fails unless the index holds the vectors of the model and proves their order, with and without a filter.
fn check(index: &Index, model: &Model, queries: Rows<'_>) {
    assert_eq!(index.len(), model.len());
    for (id, vector) in model {
        assert_eq!(index.get(*id).as_ref(), Some(vector), "{id}");
    }
    let third = Filter::predicate(|id| id % 3 == 0);
    for query in queries.iter() {
        let asked = match index.metric() {
            Metric::Cosine => unit(query),
            _ => query.to_vec(),
        };
        let report = |all: Vec<(f32, u64)>| -> Vec<(f32, u64)> {
            let distance = |d: f32| match index.metric() {
                Metric::Cosine => 0.5 * d * d,
                _ => d,
            };
            all.into_iter().map(|(d, id)| (distance(d), id)).collect()
        };
        let among = |allows: &dyn Fn(u64) -> bool| {
            let points = model.iter().filter(|(id, _)| allows(**id));
            report(ordered(points.map(|(id, v)| (*id, &v[..])), &asked))
        };
        let all = among(&|_| true);
        let k = all.len().min(7);
        let exact = Search::new(k).exact(true);
        same(&pairs(&index.search(query, &exact).unwrap()), &all[..k]);
        let everything = Search::new(k).probes(usize::MAX).bins(1.0);
        let everything = everything.rerank(usize::MAX);
        same(
            &pairs(&index.search(query, &everything).unwrap()),
            &all[..k],
        );
        let allowed = among(&|id| id % 3 == 0);
        let k = allowed.len().min(5);
        let filtered = exact.filter(third.clone());
        same(
            &pairs(&index.search(query, &filtered).unwrap())[..k],
            &allowed[..k],
        );
        // Half way between two distances, so that rounding does not decide.
        let Some(gap) = all.windows(2).skip(3).find(|w| w[1].0 > 1.001 * w[0].0) else {
            continue;
        };
        let radius = 0.5 * (gap[0].0 + gap[1].0);
        let within = all.iter().filter(|(d, _)| *d <= radius).count();
        let found = index.range(query, &RangeSearch::new(radius)).unwrap();
        assert_eq!(found.hits.len(), within);
    }
}

/// Equal identifiers in order, and distances up to the last bits: a unit query is not rounded alike everywhere.
#[track_caller]
fn same(found: &[(f32, u64)], expected: &[(f32, u64)]) {
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        let slack = 1e-5 * b.0 + 1e-7;
        assert!((a.0 - b.0).abs() <= slack, "{found:?} {expected:?}");
        // Copies of a point and points as far away may change places.
        let tied = |id: u64| {
            expected
                .iter()
                .any(|e| e.1 == id && (e.0 - a.0).abs() <= 2.0 * slack)
        };
        let last = expected.last().is_some_and(|e| e.0 - a.0 <= 2.0 * slack);
        assert!(a.1 == b.1 || tied(a.1) || last, "{found:?} {expected:?}");
    }
}

/// Clumps, some coordinates of which are much larger than the others.
fn data(n: usize, dim: usize, large: f32, seed: u64) -> Vec<f32> {
    let mut values = clumps(n, dim, 4, 0.3, seed);
    for row in values.chunks_exact_mut(dim) {
        row[0] += 0.01;
        row[dim / 2] *= large;
    }
    values
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn answers_are_those_of_brute_force_over_rounded_vectors(
        dim in 1usize..70,
        cosine in any::<bool>(),
        bits in prop::sample::select(vec!["4", "8"]),
        large in prop::sample::select(vec![1.0f32, 30.0]),
        seed in 0u64..1000,
    ) {
        let metric = if cosine && dim > 1 { Metric::Cosine } else { Metric::Euclidean };
        let values = data(420, dim, large, seed);
        let base = rows(&values, dim);
        let settings = [
            ("store", "int8"),
            ("cells", "4"),
            ("bin_size", "8"),
            ("code_bits", bits),
            ("calibration_queries", "20"),
        ];
        let builder = Index::builder().config(config(&settings)).metric(metric);
        let mut index = builder.seed(seed).threads(2).build(base.slice(0..300)).unwrap();
        prop_assert_eq!(index.stored_as(), "int8");
        let vectors = base.iter().map(|v| stored(metric, v));
        let mut model: Model = (0..).zip(vectors.take(300)).collect();
        let queries = base.slice(400..410);
        check(&index, &model, queries);

        index.add(base.slice(300..360), &ids(300..360)).unwrap();
        let gone: Vec<u64> = (0..360).filter(|id| id % 7 == 2).collect();
        prop_assert_eq!(index.remove(&gone).unwrap(), gone.len());
        index.update(base.slice(360..400), &ids(300..360).into_iter()
            .filter(|id| id % 7 != 2).take(40).collect::<Vec<_>>()).unwrap();
        model.extend((300..360).map(|id| (id, stored(metric, base.row(id as usize)))));
        model.retain(|id, _| id % 7 != 2);
        let moved: Vec<u64> = (300..360).filter(|id| id % 7 != 2).take(40).collect();
        for (id, row) in moved.iter().zip(360..) {
            model.insert(*id, stored(metric, base.row(row)));
        }
        check(&index, &model, queries);

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        index.save(&path).unwrap();
        Index::verify(&path).unwrap();
        for mut opened in [Index::open(&path).unwrap(), Index::load(&path).unwrap()] {
            check(&opened, &model, queries);
            // Rounding again changes nothing.
            opened.retrain().unwrap();
            prop_assert_eq!(opened.stored_as(), "int8");
            check(&opened, &model, queries);
        }
    }
}

/// An index that grows from nothing and trains itself on the way, and one whose changes lie in a log.
#[test]
fn points_keep_their_values_while_an_index_grows() {
    let dim = 40;
    let values = sheet(5200, dim, 3);
    let base = rows(&values, dim);
    let model: Model = (0..).zip(base.iter().map(rounded)).collect();
    let config = config(&[("store", "int8"), ("calibration_queries", "50")]);
    let mut index = Index::empty(dim, config.clone()).unwrap();
    for start in (0..5200).step_by(1300) {
        let new = ids(start as u64..start as u64 + 1300);
        index.add(base.slice(start..start + 1300), &new).unwrap();
    }
    assert_eq!(index.stored_as(), "int8");
    check(&index, &model, base.slice(10..14));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live");
    let live = Live::create(&path, Index::empty(dim, config).unwrap()).unwrap();
    live.add(base.slice(0..900), &ids(0..900)).unwrap();
    live.checkpoint().unwrap();
    live.add(base.slice(900..1000), &ids(900..1000)).unwrap();
    drop(live);
    let live = Live::open(&path).unwrap();
    let few: Model = model.into_iter().take(1000).collect();
    check(&live.snapshot(), &few, base.slice(10..14));
}

/// One coordinate that is much larger than the others costs the precision of its block, not that of the vector.
#[test]
fn a_large_coordinate_spoils_its_block_only() {
    let mut vector = vec![0.1; 96];
    vector[40] = 1000.0;
    let index = Index::builder().set("store", "int8").unwrap();
    let index = index.build(rows(&vector, 96)).unwrap();
    let kept = index.get(0).unwrap();
    let wrong: Vec<usize> = (0..96).filter(|i| (kept[*i] - 0.1).abs() > 4e-4).collect();
    assert_eq!(wrong, (32..64).collect::<Vec<usize>>());
}
