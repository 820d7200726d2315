//! Builds: what is refused, what is told on the way, and how one is ended.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{short, uniform};
use garlic_paper::training::Epoch;
use garlic_paper::{Cancel, Error, GaussianIndex, Rows, Search, Stage};

#[test]
fn bad_vectors_are_refused() {
    let build = |data: &[f32], dim: usize| {
        GaussianIndex::builder()
            .config(short())
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
fn bad_parameters_are_refused_before_any_work() {
    let data = uniform(100, 4);
    let rows = Rows::new(&data, 4).unwrap();
    let called = AtomicUsize::new(0);
    let mut config = short();
    config.loss.tau = -1.0;
    let result = GaussianIndex::builder()
        .config(config)
        .progress(|_| {
            called.fetch_add(1, Ordering::Relaxed);
        })
        .build(rows);
    assert!(matches!(result, Err(Error::Config { key, .. }) if key == "tau"));
    assert_eq!(called.load(Ordering::Relaxed), 0);
    assert!(matches!(
        GaussianIndex::builder().threads(0).build(rows),
        Err(Error::Config { .. })
    ));
    assert!(matches!(
        GaussianIndex::builder().set("epoch", "3"),
        Err(Error::UnknownKey { .. })
    ));
}

#[test]
fn progress_names_every_stage_and_epoch() {
    let data = uniform(400, 6);
    let seen = Mutex::new(Vec::new());
    let index = GaussianIndex::builder()
        .config(short())
        .progress(|p| {
            seen.lock().unwrap().push((
                p.stage,
                p.done,
                p.total,
                p.detail.map(|epoch| epoch.to_string()),
            ))
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
    let told: Vec<String> = seen.into_iter().filter_map(|s| s.3).collect();
    let epochs = &index.history().epochs;
    assert_eq!(told.len(), 8);
    assert!(
        told.iter()
            .eq(&epochs.iter().map(ToString::to_string).collect::<Vec<_>>())
    );
    assert!(told[0].starts_with("epoch 1, loss "), "{}", told[0]);
    let sound = |e: &Epoch| e.loss.is_finite() && e.cells > 0 && (0.0..=1.0).contains(&e.covered);
    assert!(epochs.iter().all(sound));
    assert_eq!(epochs.last().unwrap().cells, index.cells());
}

#[test]
fn a_raised_flag_cancels() {
    let data = uniform(3000, 16);
    let rows = Rows::new(&data, 16).unwrap();
    let flag = Arc::new(AtomicBool::new(true));
    let result = GaussianIndex::builder()
        .config(short())
        .cancel(Cancel::new(flag.clone()))
        .build(rows);
    assert!(matches!(result, Err(Error::Cancelled)));

    flag.store(false, Ordering::Relaxed);
    let raised = flag.clone();
    let epochs = AtomicUsize::new(0);
    let result = GaussianIndex::builder()
        .config(short())
        .cancel(Cancel::new(flag))
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
    shared::<GaussianIndex>();
}

#[test]
fn identifiers_are_those_that_were_given() {
    let data = uniform(60, 3);
    let rows = Rows::new(&data, 3).unwrap();
    let builder = || GaussianIndex::builder().config(short());
    let ids: Vec<u64> = (0..60).map(|i| 1000 - 3 * i).collect();
    let index = builder().ids(ids.clone()).build(rows).unwrap();
    let mut found: Vec<u64> = (0..60).map(|at| index.id_at(at).unwrap()).collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!((found, index.id_at(60)), (ids, None));
    let hits = index.search(rows.row(7), &Search::new(1).exact(true));
    assert_eq!(hits.unwrap().hits[0].id, 1000 - 21);

    let refused = |ids: Vec<u64>| builder().ids(ids).build(rows).unwrap_err();
    let few = refused(vec![1; 59]);
    assert!(matches!(
        few,
        Error::IdCount {
            vectors: 60,
            ids: 59
        }
    ));
    assert!(matches!(refused(vec![1; 60]), Error::IdTwice { id: 1 }));
    let large = refused((0..60).map(|i| (1 << 63) + i).collect());
    assert!(matches!(large, Error::IdTooLarge { .. }));
}

#[test]
fn vectors_of_many_coordinates_are_refused_before_they_fill_the_memory() {
    let dim = 1 << 16;
    let values = vec![1.0; 2 * dim];
    let rows = Rows::new(&values, dim).unwrap();
    let error = GaussianIndex::builder()
        .build(rows)
        .unwrap_err()
        .to_string();
    assert!(error.contains("65536") && error.contains("GiB"), "{error}");
}
