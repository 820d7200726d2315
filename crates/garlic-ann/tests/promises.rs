//! What every user may rely on: the same index for any number of threads, errors instead of panics,
//! cancelling, progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use garlic_ann::{Config, Error, Index, Preset, Rows, Search, Stage};
use garlic_linalg::{random_stream, uniform_unit};

fn data(n: usize, dim: usize) -> Vec<f32> {
    let mut rng = random_stream(4, 4);
    (0..n * dim)
        .map(|i| uniform_unit(&mut rng) as f32 * (1 + i % 5) as f32)
        .collect()
}

fn small() -> Config {
    Config {
        initial_cells: 10,
        epochs: 8,
        batch: 200,
        warmup_epochs: 1,
        refine_every: 2,
        refine_quiet: 1,
        split_threshold: 0.05,
        ..Config::preset(Preset::Paper)
    }
}

#[test]
fn same_seed_same_bytes_for_any_number_of_threads() {
    let data = data(1500, 20);
    let rows = Rows::new(&data, 20).unwrap();
    let bytes = |threads: usize, seed: u64| {
        Index::builder()
            .config(small())
            .seed(seed)
            .threads(threads)
            .build(rows)
            .unwrap()
            .to_bytes()
    };
    let one = bytes(1, 7);
    assert_eq!(one, bytes(2, 7));
    assert_eq!(one, bytes(5, 7));
    assert_ne!(one, bytes(1, 8), "another seed gives another index");
}

#[test]
fn batches_and_single_queries_give_the_same_answers() {
    let data = data(800, 12);
    let rows = Rows::new(&data, 12).unwrap();
    let index = Index::builder().config(small()).build(rows).unwrap();
    let search = Search::new(5).probes(3).bins(0.4);
    let one = index.search_batch(rows, &search).unwrap();
    let two = index
        .search_batch(rows, &search.clone().threads(2))
        .unwrap();
    assert_eq!(one, two);
    let mut searcher = index.searcher();
    for (query, answer) in rows.iter().zip(&one) {
        assert_eq!(&index.search(query, &search).unwrap(), answer);
        assert_eq!(&searcher.search(query, &search).unwrap(), answer);
        assert!(
            answer
                .hits
                .windows(2)
                .all(|w| (w[0].distance, w[0].id) < (w[1].distance, w[1].id))
        );
        assert!(answer.hits.len() <= 5 && answer.work.candidates <= 800);
    }
}

#[test]
fn a_grid_of_settings_gives_what_single_searches_give() {
    let data = data(900, 12);
    let rows = Rows::new(&data, 12).unwrap();
    // A wide radius: many points lie in several cells.
    let config = Config {
        tau: 6.0,
        ..small()
    };
    let index = Index::builder().config(config).build(rows).unwrap();
    assert!(
        index.published().unwrap().coverage().mean > 1.5,
        "{:?}",
        index.published().unwrap().coverage()
    );
    let (probes, bins) = ([4, 1, 2, 1000], [0.7, 0.1, 1.0]);
    let mut searcher = index.searcher();
    for query in rows.iter().take(40) {
        let answers = searcher.search_grid(query, 6, &probes, &bins).unwrap();
        let mut answers = answers.into_iter();
        for p in probes {
            for b in bins {
                let alone = index
                    .search(query, &Search::new(6).probes(p).bins(b))
                    .unwrap();
                assert_eq!(answers.next(), Some(alone), "probes {p} bins {b}");
            }
        }
    }
    assert!(
        searcher
            .search_grid(rows.row(0), 0, &probes, &bins)
            .is_err()
    );
    assert!(
        searcher
            .search_grid(rows.row(0), 1, &probes, &[1.1])
            .is_err()
    );
    assert!(
        searcher
            .search_grid(rows.row(0), 1, &[], &bins)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn more_probes_and_more_bins_never_look_at_fewer_points() {
    let data = data(2000, 10);
    let rows = Rows::new(&data, 10).unwrap();
    let index = Index::builder().config(small()).build(rows).unwrap();
    let count = |probes: usize, bins: f64| -> u64 {
        let answers = index
            .search_batch(rows.slice(0..50), &Search::new(1).probes(probes).bins(bins))
            .unwrap();
        answers.iter().map(|a| a.work.candidates).sum()
    };
    assert!(count(1, 0.3) < count(2, 0.3) && count(2, 0.3) < count(4, 0.3));
    assert!(count(2, 0.1) < count(2, 0.5) && count(2, 0.5) < count(2, 1.0));
}

#[test]
fn bad_vectors_are_refused() {
    let build = |data: &[f32], dim: usize| {
        Index::builder()
            .config(small())
            .build(Rows::new(data, dim)?)
    };
    assert!(matches!(build(&[], 3), Err(Error::NoVectors)));
    assert!(matches!(build(&[1.0; 7], 3), Err(Error::Shape(_))));
    assert!(matches!(build(&[1.0; 7], 0), Err(Error::Shape(_))));
    let mut values = vec![1.0; 12];
    values[7] = f32::NAN;
    assert!(matches!(
        build(&values, 3),
        Err(Error::NotFinite {
            row: 2,
            column: 1,
            ..
        })
    ));
    values[7] = f32::NEG_INFINITY;
    assert!(matches!(
        build(&values, 3),
        Err(Error::NotFinite {
            row: 2,
            column: 1,
            ..
        })
    ));
    values[7] = 1e30;
    assert!(matches!(
        build(&values, 3),
        Err(Error::TooLarge {
            row: 2,
            column: 1,
            ..
        })
    ));
}

#[test]
fn bad_queries_are_refused() {
    let data = data(100, 4);
    let index = Index::builder()
        .config(small())
        .build(Rows::new(&data, 4).unwrap())
        .unwrap();
    let run = |q: &[f32], s: Search| index.search(q, &s);
    let q = &data[..4];
    assert!(matches!(
        run(q, Search::new(0)),
        Err(Error::SearchParameter { name: "k", .. })
    ));
    assert!(matches!(
        run(q, Search::new(1).probes(0)),
        Err(Error::SearchParameter { name: "probes", .. })
    ));
    for bins in [0.0, -1.0, 1.5, f64::NAN] {
        assert!(matches!(
            run(q, Search::new(1).bins(bins)),
            Err(Error::SearchParameter { name: "bins", .. })
        ));
    }
    assert!(matches!(
        run(&q[..3], Search::new(1)),
        Err(Error::Dimension {
            expected: 4,
            found: 3
        })
    ));
    let bad = [1.0, f32::NAN, 0.0, 0.0];
    assert!(matches!(
        run(&bad, Search::new(1)),
        Err(Error::QueryNotFinite {
            row: 0,
            column: 1,
            ..
        })
    ));
    let batch = [1.0, 1.0, 0.0, 0.0, 1.0, 2.0, 3.0, f32::INFINITY];
    let batch = index.search_batch(Rows::new(&batch, 4).unwrap(), &Search::new(1));
    assert!(matches!(
        batch,
        Err(Error::QueryNotFinite {
            row: 1,
            column: 3,
            ..
        })
    ));
    let threads = index.search_batch(Rows::new(q, 4).unwrap(), &Search::new(1).threads(0));
    assert!(matches!(
        threads,
        Err(Error::SearchParameter {
            name: "threads",
            ..
        })
    ));
    // Far away is fine as long as distances can be told apart; beyond that it is an error.
    let far = index.search(&[9e14; 4], &Search::new(2)).unwrap();
    assert!(far.hits.len() == 2 && far.hits[1].distance.is_finite());
    let beyond = index.search(&[0.0, 3e38, 0.0, 0.0], &Search::new(2));
    assert!(matches!(
        beyond,
        Err(Error::QueryTooLarge {
            row: 0,
            column: 1,
            ..
        })
    ));
}

#[test]
fn bad_parameters_are_refused_before_any_work() {
    let data = data(100, 4);
    let rows = Rows::new(&data, 4).unwrap();
    let called = AtomicUsize::new(0);
    let config = Config {
        tau: -1.0,
        ..small()
    };
    let result = Index::builder()
        .config(config)
        .progress(|_| {
            called.fetch_add(1, Ordering::Relaxed);
        })
        .build(rows);
    assert!(matches!(result, Err(Error::Config { key, .. }) if key == "tau"));
    assert_eq!(called.load(Ordering::Relaxed), 0);
    assert!(matches!(
        Index::builder().threads(0).build(rows),
        Err(Error::Config { .. })
    ));
    assert!(matches!(
        Index::builder().set("epoch", "3"),
        Err(Error::UnknownKey { .. })
    ));
}

#[test]
fn progress_names_every_stage_and_epoch() {
    let data = data(400, 6);
    let seen = std::sync::Mutex::new(Vec::new());
    let index = Index::builder()
        .preset(Preset::Paper)
        .config(small())
        .progress(|p| {
            seen.lock()
                .unwrap()
                .push((p.stage, p.done, p.total, p.epoch.cloned()))
        })
        .build(Rows::new(&data, 6).unwrap())
        .unwrap();
    let seen = seen.into_inner().unwrap();
    for stage in [Stage::Prepare, Stage::Train, Stage::Assign, Stage::Bins] {
        let last = seen
            .iter()
            .filter(|s| s.0 == stage)
            .map(|s| (s.1, s.2))
            .max()
            .unwrap();
        assert_eq!(last.0, last.1, "{stage:?} is reported to its end");
    }
    let epochs: Vec<_> = seen.into_iter().filter_map(|s| s.3).collect();
    assert_eq!(epochs.len(), 8);
    assert_eq!(epochs, index.published().unwrap().history().epochs);
    assert!(
        epochs
            .iter()
            .all(|e| e.loss.is_finite() && e.cells > 0 && (0.0..=1.0).contains(&e.covered))
    );
    assert_eq!(epochs.last().unwrap().cells, index.cells());
}

#[test]
fn a_raised_flag_cancels() {
    let data = data(3000, 16);
    let rows = Rows::new(&data, 16).unwrap();
    let flag = Arc::new(AtomicBool::new(true));
    let result = Index::builder()
        .config(small())
        .cancel(flag.clone())
        .build(rows);
    assert!(matches!(result, Err(Error::Cancelled)));

    flag.store(false, Ordering::Relaxed);
    let raised = flag.clone();
    let epochs = AtomicUsize::new(0);
    let result = Index::builder()
        .config(small())
        .cancel(flag)
        .progress(|p| {
            if p.stage == Stage::Train && p.done == 2 {
                raised.store(true, Ordering::Relaxed);
            }
            epochs.fetch_max(p.done, Ordering::Relaxed);
        })
        .build(rows);
    assert!(matches!(result, Err(Error::Cancelled)));
    assert_eq!(
        epochs.load(Ordering::Relaxed),
        2,
        "training ends with the epoch in which the flag was raised"
    );
}

#[test]
fn an_index_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Index>();
}
