//! Baselines against brute force, and the measuring code around them.

use garlic_eval::baseline::{
    BRUTE_FORCE, BruteForce, KMEANS, KmeansIndex, KmeansOptions, brute_force,
};
use garlic_eval::synthetic::{Synthetic, SyntheticOptions, synthetic};
use garlic_eval::{Error, Grid, Options, Params, Target, Truth, evaluate, sweep};
use garlic_linalg::Rows;

fn data() -> Synthetic {
    let options = SyntheticOptions {
        points: 3000,
        queries: 60,
        dim: 24,
        seed: 3,
    };
    synthetic(&options).unwrap()
}

fn all(k: usize, probes: Option<usize>) -> Params {
    Params {
        probes,
        ..Params::new(k)
    }
}

#[test]
fn brute_force_is_sorted_and_complete() {
    let rows = [3.0_f32, 1.0, 2.0, 1.0, 7.0];
    let base = Rows::new(&rows, 1).unwrap();
    let query = [1.0_f32];
    let query = Rows::new(&query, 1).unwrap();
    let answer = &brute_force(base, query, 3).unwrap()[0];
    let found: Vec<(u64, f32)> = answer.hits.iter().map(|h| (h.id, h.distance)).collect();
    assert_eq!(found, [(1, 0.0), (3, 0.0), (2, 1.0)]);
    assert_eq!((answer.stats.candidates, answer.stats.exact_madds), (5, 5));
    // More neighbours than points: all of them.
    assert_eq!(brute_force(base, query, 9).unwrap()[0].hits.len(), 5);
    assert_eq!(Truth::compute(base, query, 9).unwrap().k(), 5);
}

#[test]
fn kmeans_with_all_probes_finds_everything() {
    let data = data();
    let (base, queries) = (
        Rows::new(&data.vectors, 24).unwrap(),
        Rows::new(&data.queries, 24).unwrap(),
    );
    let truth = Truth::compute(base, queries, 10).unwrap();
    let index = KmeansIndex::build(base, &KmeansOptions::new(20, 1)).unwrap();
    assert_eq!(index.sizes().iter().sum::<usize>(), 3000);
    let row = evaluate(
        &index,
        queries,
        &truth,
        &all(10, Some(20)),
        &Options::default(),
    )
    .unwrap();
    assert_eq!((row.recall_at_1, row.recall_at_10), (1.0, Some(1.0)));
    assert_eq!((row.candidates, row.cells_scored), (3000.0, 20.0));
    // Choosing the cells is counted: one distance a centre.
    assert_eq!(
        (row.distance_equivalents, row.work.routing, row.work.exact),
        (3020.0, 20.0, 3000.0)
    );
    let one = evaluate(
        &index,
        queries,
        &truth,
        &all(10, Some(1)),
        &Options::default(),
    )
    .unwrap();
    assert!(
        one.candidates < 1000.0 && one.recall_at_1 < 1.0 && one.recall_at_1 > 0.3,
        "{one:?}"
    );
}

#[test]
fn a_sample_and_the_number_of_threads_do_not_change_what_is_found() {
    let data = data();
    let (base, queries) = (
        Rows::new(&data.vectors, 24).unwrap(),
        Rows::new(&data.queries, 24).unwrap(),
    );
    let truth = Truth::compute(base, queries, 10).unwrap();
    let options = KmeansOptions {
        sample: 500,
        ..KmeansOptions::new(15, 2)
    };
    let index = KmeansIndex::build(base, &options).unwrap();
    let measure = |threads| {
        let how = Options {
            threads,
            batch: true,
            ..Options::default()
        };
        let mut row = evaluate(&index, queries, &truth, &all(10, Some(3)), &how).unwrap();
        assert!(row.qps > 0.0 && row.p99_us >= row.p50_us && row.qps_batch.is_none());
        (row.qps, row.p50_us, row.p99_us, row.threads) = (0.0, 0.0, 0.0, 0);
        row
    };
    let one = measure(1);
    assert_eq!(one, measure(3));
    assert_eq!(one, measure(100));
}

#[test]
fn recall_is_null_where_it_is_not_defined() {
    let data = data();
    let (base, queries) = (
        Rows::new(&data.vectors, 24).unwrap(),
        Rows::new(&data.queries, 24).unwrap(),
    );
    let brute = BruteForce::new(base);
    let how = Options::default();
    let few = Truth::compute(base, queries, 5).unwrap();
    let many = Truth::compute(base, queries, 20).unwrap();
    let row = evaluate(&brute, queries, &few, &all(20, None), &how).unwrap();
    assert_eq!(
        (row.recall_at_1, row.recall_at_10, row.recall_at_k),
        (1.0, None, None)
    );
    let row = evaluate(&brute, queries, &many, &all(5, None), &how).unwrap();
    assert_eq!(
        (row.recall_at_1, row.recall_at_10, row.recall_at_k),
        (1.0, None, Some(1.0))
    );
    // Seven points: ten neighbours are seven, and known.
    let small = base.slice(0..7);
    let truth = Truth::compute(small, queries, 10).unwrap();
    let row = evaluate(
        &BruteForce::new(small),
        queries,
        &truth,
        &all(10, None),
        &how,
    )
    .unwrap();
    assert_eq!(
        (row.recall_at_1, row.recall_at_10, row.recall_at_k),
        (1.0, Some(1.0), Some(1.0))
    );
}

#[test]
fn a_row_is_one_json_object() {
    let data = data();
    let (base, queries) = (
        Rows::new(&data.vectors, 24).unwrap(),
        Rows::new(&data.queries, 24).unwrap(),
    );
    let truth = Truth::compute(base, queries, 1).unwrap();
    let row = evaluate(
        &BruteForce::new(base),
        queries,
        &truth,
        &all(1, None),
        &Options::default(),
    )
    .unwrap();
    let text = serde_json::to_string(&row).unwrap();
    assert!(!text.contains('\n'));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["method"], BRUTE_FORCE);
    assert_eq!(value["params"]["k"], 1);
    assert!(value["params"]["probes"].is_null() && value["recall_at_10"].is_null());
    assert_eq!(value["recall_at_1"], 1.0);
    assert_eq!(value["work"]["exact"], 3000.0);
}

#[test]
fn sweeps_stop_at_all_cells_and_mark_a_front() {
    let data = data();
    let (base, queries) = (
        Rows::new(&data.vectors, 24).unwrap(),
        Rows::new(&data.queries, 24).unwrap(),
    );
    let truth = Truth::compute(base, queries, 10).unwrap();
    let index = KmeansIndex::build(base, &KmeansOptions::new(10, 1)).unwrap();
    let grid = Grid::default();
    let probes: Vec<Option<usize>> = grid.settings(&index, 10).iter().map(|p| p.probes).collect();
    assert_eq!(probes, [1, 2, 3, 4, 5, 6, 7, 8, 12].map(Some));
    let mut heard = Vec::new();
    let how = Options::default();
    let rows = sweep(&index, queries, &truth, 10, &grid, &how, &mut |d, t| {
        heard.push((d, t))
    })
    .unwrap();
    assert_eq!(heard, (1..=9).map(|i| (i, 9)).collect::<Vec<_>>());
    assert!(rows.iter().all(|r| r.method == KMEANS));
    assert!(rows[0].front && rows[0].front_work);
    assert!(
        rows.windows(2)
            .all(|w| w[0].recall_at_1 <= w[1].recall_at_1)
    );
    assert_eq!(rows[8].candidates, 3000.0);
    // Everything after the first perfect recall is beaten.
    let perfect = rows.iter().position(|r| r.recall_at_1 == 1.0).unwrap();
    assert!(rows[perfect + 1..].iter().all(|r| !r.front));
}

#[test]
fn mistakes_are_errors() {
    let data = data();
    let (base, queries) = (
        Rows::new(&data.vectors, 24).unwrap(),
        Rows::new(&data.queries, 24).unwrap(),
    );
    let brute = BruteForce::new(base);
    assert!(!brute.is_empty());
    let how = Options::default();
    let truth = Truth::compute(base, queries, 1).unwrap();
    let other = Rows::new(&data.queries, 12).unwrap();
    let wrong = evaluate(&brute, other, &truth, &all(1, None), &how).unwrap_err();
    assert!(matches!(
        wrong,
        Error::Dimension {
            expected: 24,
            found: 12,
            ..
        }
    ));
    let wrong = evaluate(&brute, queries.slice(0..5), &truth, &all(1, None), &how).unwrap_err();
    assert!(matches!(
        wrong,
        Error::TruthRows {
            expected: 5,
            found: 60
        }
    ));
    let wrong = evaluate(&brute, queries.slice(0..0), &truth, &all(1, None), &how).unwrap_err();
    assert!(matches!(wrong, Error::NoQueries));
    assert!(evaluate(&brute, queries, &truth, &all(0, None), &how).is_err());
    let none = Options {
        threads: 0,
        ..Options::default()
    };
    assert!(evaluate(&brute, queries, &truth, &all(1, None), &none).is_err());
    assert!(KmeansIndex::build(base, &KmeansOptions::new(0, 1)).is_err());
    assert!(brute_force(base, other, 1).is_err());
    let nothing = Grid {
        probes: vec![],
        bins: vec![],
        rerank: vec![],
    };
    let index = KmeansIndex::build(base, &KmeansOptions::new(4, 1)).unwrap();
    assert!(sweep(&index, queries, &truth, 1, &nothing, &how, &mut |_, _| {}).is_err());
}
