//! A tiny index measured and compared.

use std::sync::Mutex;

use garlic_ann::{Index, Metric};
use garlic_eval::baseline::{BruteForce, KmeansIndex, KmeansOptions};
use garlic_eval::demo::{self, DemoOptions, DemoStage};
use garlic_eval::synthetic::{SyntheticOptions, synthetic};
use garlic_eval::{Error, Grid, IndexTarget, Options, Params, Row, Target, Truth, evaluate, sweep};
use garlic_linalg::Rows;
use garlic_paper::GaussianIndex;

#[test]
fn a_sweep_over_an_index() {
    let options = SyntheticOptions {
        points: 2000,
        queries: 40,
        dim: 16,
        seed: 5,
    };
    let data = synthetic(&options).unwrap();
    let (base, queries) = (
        Rows::new(&data.vectors, 16).unwrap(),
        Rows::new(&data.queries, 16).unwrap(),
    );
    let index = GaussianIndex::builder()
        .set("initial_cells", "12")
        .unwrap()
        .set("epochs", "5")
        .unwrap()
        .threads(1)
        .build(base)
        .unwrap();
    let truth = Truth::compute(base, queries, 10).unwrap();
    let grid = Grid {
        probes: vec![1, 4, index.cells(), index.cells() + 1],
        bins: vec![0.3, 1.0],
        rerank: vec![],
    };
    let how = Options {
        threads: 2,
        batch: true,
        ..Options::default()
    };
    let rows = sweep(
        &IndexTarget(&index),
        queries,
        &truth,
        10,
        &grid,
        &how,
        &mut |_, _| {},
    )
    .unwrap();
    assert_eq!(rows.len(), 6);

    // Timing fewer queries changes nothing but the times.
    let timed = Options { timed: 7, ..how };
    let quick = sweep(
        &IndexTarget(&index),
        queries,
        &truth,
        10,
        &grid,
        &timed,
        &mut |_, _| {},
    )
    .unwrap();
    for (quick, row) in quick.iter().zip(&rows) {
        assert_eq!(
            (quick.timed_queries, quick.queries, row.timed_queries),
            (7, 40, 40)
        );
        assert!((quick.recall_at_1 - row.recall_at_1).abs() < 1e-12);
        assert!((quick.recall_at_10.unwrap() - row.recall_at_10.unwrap()).abs() < 1e-12);
        assert!(row.quality.is_some());
        assert_eq!(
            (quick.quality, quick.candidates),
            (row.quality, row.candidates)
        );
        assert_eq!((quick.work, quick.front), (row.work, row.front));
    }
    let exhaustive = &rows[5];
    assert_eq!(
        (exhaustive.recall_at_1, exhaustive.recall_at_10),
        (1.0, Some(1.0))
    );
    assert_eq!(exhaustive.candidates, 2000.0);
    for row in &rows {
        let w = &row.work;
        let parts = w.rotation + w.routing + w.projection + w.ordering + w.code + w.exact;
        assert!(
            (parts - row.distance_equivalents).abs() < 1e-6 * parts,
            "{row:?}"
        );
        assert!(row.distance_equivalents > row.candidates && row.qps_batch.is_some());
    }
    assert!(rows[0].candidates < rows[1].candidates && rows[0].recall_at_1 <= rows[1].recall_at_1);
}

#[test]
fn a_sweep_over_the_default_preset_measures_its_front_on_all_queries() {
    let options = SyntheticOptions {
        points: 4000,
        queries: 60,
        dim: 16,
        seed: 5,
    };
    let data = synthetic(&options).unwrap();
    let (base, queries) = (
        Rows::new(&data.vectors, 16).unwrap(),
        Rows::new(&data.queries, 16).unwrap(),
    );
    let index = Index::builder().threads(1).build(base).unwrap();
    assert_eq!(IndexTarget(&index).method(), "garlic default");
    let truth = Truth::compute(base, queries, 10).unwrap();

    let own = Grid::of(&IndexTarget(&index), 10);
    assert_eq!(own.rerank, [10, 20, 40, 80, 160, 320]);
    assert!(own.probes.iter().all(|p| *p <= index.cells()));
    let grid = Grid {
        bins: vec![0.05, 0.2, 1.0],
        ..own
    };
    let settings = grid.settings(&IndexTarget(&index), 10);
    let how = Options {
        timed: 25,
        repeat: 2,
        batch: true,
        ..Options::default()
    };
    let mut last = (0, 0);
    let rows = sweep(
        &IndexTarget(&index),
        queries,
        &truth,
        10,
        &grid,
        &how,
        &mut |d, t| {
            assert_eq!(d, last.0 + 1);
            last = (d, t);
        },
    )
    .unwrap();
    let measured: Vec<Params> = rows.iter().map(|r| r.params).collect();
    assert_eq!(measured, settings);
    let whole: Vec<&Row> = rows.iter().filter(|r| r.queries == 60).collect();
    assert_eq!(last, (rows.len() + whole.len(), rows.len() + whole.len()));
    assert!(!whole.is_empty() && whole.len() < rows.len());
    for row in &rows {
        assert_eq!(row.queries, row.timed_queries);
        let all = row.queries == 60;
        assert!(all || (row.queries == 25 && !row.front && !row.front_work));
        assert_eq!(row.qps_batch.is_some(), all);
        assert_eq!((row.target, row.gap), (None, None));
        let w = &row.work;
        let parts = w.rotation + w.routing + w.projection + w.ordering + w.code + w.exact;
        assert!((parts - row.distance_equivalents).abs() < 1e-6 * parts);
        assert!(row.candidates <= row.params.rerank.unwrap() as f64 && w.codes > 0.0);
    }
    // The front is that of k-recall@k and work, among the rows of all queries.
    for row in &whole {
        let beaten = whole.iter().any(|o| {
            let (cost, gain) = (o.distance_equivalents, o.recall_at_k);
            cost <= row.distance_equivalents
                && gain >= row.recall_at_k
                && (cost < row.distance_equivalents || gain > row.recall_at_k)
        });
        assert_eq!(row.front_work, !beaten, "{row:?}");
    }
    let best = whole.iter().filter_map(|r| r.recall_at_k).reduce(f64::max);
    assert!(best.unwrap() > 0.9, "{best:?}");
}

#[test]
fn a_recall_target_is_told_with_its_gap() {
    let options = SyntheticOptions {
        points: 3000,
        queries: 30,
        dim: 16,
        seed: 6,
    };
    let data = synthetic(&options).unwrap();
    let (base, queries) = (
        Rows::new(&data.vectors, 16).unwrap(),
        Rows::new(&data.queries, 16).unwrap(),
    );
    let index = Index::builder().threads(1).build(base).unwrap();
    let truth = Truth::compute(base, queries, 10).unwrap();
    let how = Options::default();
    for target in [0.5, 0.9] {
        let params = Params::new(10).recall(target);
        let row = evaluate(&IndexTarget(&index), queries, &truth, &params, &how).unwrap();
        assert_eq!(
            (row.target, row.params.recall),
            (Some(target), Some(target))
        );
        assert_eq!(row.gap, row.recall_at_k.map(|r| r - target));
        let value = serde_json::to_value(&row).unwrap();
        assert_eq!(value["params"]["recall"], target);
        assert_eq!(value["params"]["exact"], false);
        assert!(value["gap"].is_number() && value["work"]["codes"].is_number());
    }
    // Without enough true neighbours there is no k-recall@k to compare with.
    let few = Truth::compute(base, queries, 5).unwrap();
    let params = Params::new(10).recall(0.9);
    let row = evaluate(&IndexTarget(&index), queries, &few, &params, &how).unwrap();
    assert_eq!((row.target, row.gap), (Some(0.9), None));
    let never = Options { repeat: 0, ..how };
    assert!(evaluate(&IndexTarget(&index), queries, &truth, &params, &never).is_err());
}

#[test]
fn the_demo_runs_and_repeats_itself() {
    let run = |threads: usize| {
        let options = DemoOptions {
            points: 2500,
            dim: 16,
            queries: 60,
            initial_cells: 10,
            epochs: 4,
            train_fraction: 0.5,
            threads,
            ..DemoOptions::default()
        };
        let stages = Mutex::new(Vec::new());
        let result = demo::run(&options, &|p| stages.lock().unwrap().push(p.stage)).unwrap();
        let stages = stages.into_inner().unwrap();
        for stage in [
            DemoStage::Draw,
            DemoStage::Truth,
            DemoStage::Kmeans,
            DemoStage::Measure,
        ] {
            assert!(stages.contains(&stage), "{stage:?}");
        }
        result
    };
    let (a, b) = (run(1), run(2));
    assert_eq!(a.by_candidates, b.by_candidates);
    assert_eq!(a.by_work, b.by_work);
    let found = |r: &garlic_eval::demo::DemoResult| -> Vec<(String, f64, f64)> {
        r.rows
            .iter()
            .map(|r| (r.method.clone(), r.candidates, r.recall_at_1))
            .collect()
    };
    assert_eq!(found(&a), found(&b));
    let methods: Vec<&str> = a.rows.iter().map(|r| r.method.as_str()).collect();
    for method in [
        "garlic paper",
        "garlic default",
        "k-means cells",
        "k-means, 4x cells",
        "brute force",
    ] {
        assert!(methods.contains(&method));
    }
    assert_eq!(a.by_candidates.len(), 6);
    assert_eq!(a.by_shape, b.by_shape);
    assert_eq!(a.trained, b.trained);
    let trained = &a.trained;
    assert_eq!((trained.initial_cells, trained.epochs.len()), (10, 4));
    assert_eq!(trained.view.ellipses.len(), a.cells);
    assert_eq!(
        (trained.view.points.len(), trained.sizes.sizes.len()),
        (2500, a.cells)
    );
    let held: usize = trained.sizes.sizes.iter().sum();
    assert!((held as f64 / 2500.0 - trained.cells_of_a_point).abs() < 1e-9);
    let targets: Vec<f64> = a.rows.iter().filter_map(|r| r.target).collect();
    assert_eq!(targets, garlic_eval::TARGETS);
    assert!(
        a.rows
            .iter()
            .all(|r| r.target.is_some() == (r.method == garlic_eval::GARLIC_DEFAULT))
    );
    assert_eq!(a.by_shape.iter().map(|s| s.queries).sum::<usize>(), 60);
}

#[test]
fn every_method_is_measured_by_every_metric() {
    let options = SyntheticOptions {
        points: 1500,
        queries: 30,
        dim: 16,
        seed: 8,
    };
    let mut data = synthetic(&options).unwrap();
    for (i, v) in data.vectors.iter_mut().enumerate() {
        *v *= 1.0 + (i / 16 % 5) as f32;
    }
    let base = Rows::new(&data.vectors, 16).unwrap();
    let queries = Rows::new(&data.queries, 16).unwrap();
    let how = Options::default();
    let exact = Params {
        exact: true,
        ..Params::new(10)
    };
    let mut truths = Vec::new();
    for metric in Metric::ALL {
        let truth = Truth::compute_by(metric, base, queries, 10).unwrap();
        let index = Index::builder()
            .metric(metric)
            .threads(1)
            .build(base)
            .unwrap();
        let brute = BruteForce::by(metric, base).unwrap();
        let kmeans = KmeansIndex::build(
            base,
            &KmeansOptions {
                metric,
                ..KmeansOptions::new(10, 1)
            },
        )
        .unwrap();
        let own = IndexTarget(&index);
        let targets: [&dyn Target; 3] = [&own, &brute, &kmeans];
        for target in targets {
            assert_eq!(target.metric(), metric);
            let row = evaluate(target, queries, &truth, &exact, &how).unwrap();
            assert_eq!(row.recall_at_10, Some(1.0), "{metric}: {}", row.method);
        }
        // Half of the cells hold most neighbours if they are ordered by the right metric.
        let half = Params {
            probes: Some(5),
            ..Params::new(10)
        };
        let row = evaluate(&kmeans, queries, &truth, &half, &how).unwrap();
        assert!(row.recall_at_1 > 0.7, "{metric}: {}", row.recall_at_1);
        truths.push(truth);
        if metric != Metric::Euclidean {
            let wrong = evaluate(&IndexTarget(&index), queries, &truths[0], &exact, &how);
            let wrong = wrong.unwrap_err();
            assert!(matches!(wrong, Error::TruthMetric { expected, .. } if expected == metric));
        }
    }
}
