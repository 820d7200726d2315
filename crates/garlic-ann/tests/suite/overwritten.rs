//! An index file that is overwritten in place while it is mapped: whatever the bytes are then, every call returns, with
//! an answer or an error.
//!
//! Nobody should do that, and what is found afterwards means nothing. But `cp new.garlic index.garlic` does it.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::testdata::{config, ids, small};
use garlic_ann::RoaringTreemap;
use garlic_ann::{Config, Filter, Index, Metric, NeighborIndex as _, RangeSearch, Rows, Search};

/// How long all calls on a small index may take before they hang.
const PATIENCE: Duration = Duration::from_secs(120);

/// An index with more cells and bins than a query looks at.
fn many_cells(settings: &[(&str, &str)], metric: Metric, seed: u64) -> Index {
    build(small::DIM, settings, metric, seed)
}

fn build(dim: usize, settings: &[(&str, &str)], metric: Metric, seed: u64) -> Index {
    let given = [("cells", "12"), ("bin_size", "4"), ("axes", "2")];
    let config = Config {
        seed,
        metric,
        ..config(&[&given, settings].concat())
    };
    let mut values = small::points(400 * dim / small::DIM);
    for (i, value) in values.iter_mut().enumerate() {
        *value += (i as u64 * (seed + 11) % 97) as f32;
    }
    let builder = Index::builder().config(config).threads(1);
    builder.build(Rows::new(&values, dim).unwrap()).unwrap()
}

fn indexes() -> Vec<(&'static str, Index)> {
    let mut all = small::indexes();
    all.push(("many cells", many_cells(&[], Metric::Euclidean, 1)));
    all.push((
        "4 bits",
        many_cells(&[("code_bits", "4")], Metric::Euclidean, 2),
    ));
    all.push((
        "spilled",
        many_cells(&[("spill", "2")], Metric::Euclidean, 3),
    ));
    all.push(("cosine", many_cells(&[("store", "f16")], Metric::Cosine, 4)));
    all.push((
        "8-bit cosine",
        many_cells(&[("store", "int8")], Metric::Cosine, 6),
    ));
    all.push(("inner", many_cells(&[], Metric::InnerProduct, 5)));
    all
}

/// Changes the bytes of a file where they are.
fn overwrite(path: &Path, bytes: &[u8]) {
    let mut file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

/// Contents of the same length as `sound`.
fn contents(sound: &[u8], seed: u64) -> Vec<(&'static str, Vec<u8>)> {
    let mut other = many_cells(&[], Metric::Euclidean, seed + 100)
        .to_bytes()
        .unwrap();
    other.resize(sound.len(), 0);
    let mut state = seed | 1;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let noise = (0..sound.len()).map(|_| random() as u8).collect();
    // Small numbers pass more checks than large ones.
    let small = (0..sound.len() / 4).flat_map(|_| (random() as u32 % 64).to_le_bytes());
    let mut small: Vec<u8> = small.collect();
    small.resize(sound.len(), 0);
    let mut shifted = sound.to_vec();
    shifted.rotate_left(4);
    let mut spoiled = sound.to_vec();
    for word in spoiled.chunks_exact_mut(4).step_by(67) {
        word.copy_from_slice(&f32::NAN.to_le_bytes());
    }
    let mut backwards: Vec<u8> = sound.rchunks(4).flatten().copied().collect();
    backwards.resize(sound.len(), 0);
    vec![
        ("zeros", vec![0; sound.len()]),
        ("ones", vec![0xff; sound.len()]),
        ("another index", other),
        ("noise", noise),
        ("small numbers", small),
        ("shifted", shifted),
        ("some that are no numbers", spoiled),
        ("backwards", backwards),
    ]
}

/// Runs one call; tells whether it came back.
fn returns(what: &str, failed: &mut Vec<String>, call: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(call)).is_err() {
        failed.push(what.to_owned());
    }
}

/// Every sort of call; gives the names of those that panic.
fn call_everything(index: &Index) -> Vec<String> {
    let mut failed = Vec::new();
    let queries: Vec<f32> = (0..4 * index.dim())
        .map(|i| small::QUERIES[i % small::QUERIES.len()])
        .collect();
    let queries = Rows::new(&queries, index.dim()).unwrap();
    let bitmap: RoaringTreemap = (0..500).step_by(3).collect();
    let filters = [
        None,
        Some(Filter::ids(ids(0..40))),
        Some(Filter::predicate(|id| id % 3 != 0)),
        Some(Filter::bitmap(bitmap)),
    ];
    let searches = [
        ("default", Search::new(3)),
        ("exact", Search::new(5).exact(true)),
        ("probes", Search::new(40).probes(2).bins(0.5)),
        ("all", Search::new(5).probes(usize::MAX).bins(1.0)),
        ("rerank", Search::new(4).probes(3).rerank(usize::MAX)),
        ("recall", Search::new(4).recall(0.99)),
        ("low recall", Search::new(1).recall(0.5)),
        ("more than all", Search::new(5000)),
    ];
    for (number, filter) in filters.iter().enumerate() {
        for (name, search) in &searches {
            let search = match filter {
                Some(filter) => search.clone().filter(filter.clone()),
                None => search.clone(),
            };
            returns(
                &format!("search {name}, filter {number}"),
                &mut failed,
                || {
                    for query in queries.iter() {
                        let _ = index.search(query, &search);
                    }
                },
            );
            for threads in [1, 2] {
                let search = search.clone().threads(threads);
                returns(
                    &format!("batch {name}, filter {number}"),
                    &mut failed,
                    || {
                        let _ = index.search_batch(queries, &search);
                    },
                );
            }
        }
        for (name, range) in [
            ("range", RangeSearch::new(20.0)),
            ("range of recall", RangeSearch::new(20.0).recall(0.9)),
            ("range of all", RangeSearch::new(f32::MAX)),
            ("empty range", RangeSearch::new(0.0)),
        ] {
            let range = match filter {
                Some(filter) => range.filter(filter.clone()),
                None => range,
            };
            returns(&format!("{name}, filter {number}"), &mut failed, || {
                for query in queries.iter() {
                    let _ = index.range(query, &range);
                }
                let _ = index.range_batch(queries, &range);
            });
        }
    }
    look_at_everything(index, &mut failed);
    change_copies(index, &mut failed);
    failed
}

/// What a report reads.
fn look_at_everything(index: &Index, failed: &mut Vec<String>) {
    returns("ids", failed, || drop(index.ids()));
    returns("get", failed, || {
        for id in (0..450).chain([u64::MAX, 1 << 40]) {
            let _ = (index.get(id), index.contains(id), index.id_at(id as usize));
        }
    });
    returns("numbers", failed, || {
        let _ = (index.next_id(), index.len(), index.cells(), index.dim());
        let _ = (index.drift(), index.memory(), index.mapped_bytes());
    });
    returns("route", failed, || {
        for count in [0, 1, 5, usize::MAX / 4] {
            let _ = index.route(&vec![40.5; index.dim()], count);
        }
    });
    returns("bins and cells", failed, || {
        let _ = (index.bins(), index.code_bits(), index.cell_sizes());
        for cell in 0..index.cells() + 2 {
            let _ = index.cell_shape(cell);
        }
    });
    returns("details", failed, || {
        let _ = (index.details(), index.exhaustive_targets());
    });
    returns("bytes", failed, || drop(index.to_bytes()));
    returns("equality", failed, || {
        let _ = *index == index.clone();
    });
}

/// Changes of copies, one after the other.
fn change_copies(index: &Index, failed: &mut Vec<String>) {
    let dim = index.dim();
    let values: Vec<f32> = (0..2 * dim).map(|i| (i * 31 % 90) as f32 + 0.5).collect();
    let rows = Rows::new(&values, dim).unwrap();
    let query = rows.row(0);
    let mut copy = index.clone();
    returns("add", failed, || drop(copy.add(rows, &[1 << 40, 1 << 41])));
    returns("search what was added", failed, || {
        let _ = copy.search(query, &Search::new(3));
        let _ = copy.search(query, &Search::new(3).exact(true));
    });
    let mut copy = index.clone();
    returns("update", failed, || drop(copy.update(rows, &[3, 5])));
    let mut copy = index.clone();
    returns("remove", failed, || {
        let _ = copy.remove(&[1, 2, 3]);
        let _ = copy.remove(&ids(0..300));
        let _ = copy.search(query, &Search::new(3));
    });
    returns("compact", failed, || drop(copy.compact()));
    let mut copy = index.clone();
    returns("recalibrate", failed, || drop(copy.recalibrate()));
}

/// Runs `work` on a thread of its own; none when it does not end.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = done.send(work());
    });
    wait.recv_timeout(PATIENCE).ok()
}

#[test]
fn every_call_returns_after_the_file_was_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.garlic");
    let mut failures = Vec::new();
    for (kind, index) in indexes() {
        let sound = index.to_bytes().unwrap();
        for (name, content) in contents(&sound, 9) {
            for warm in [false, true] {
                small::put(&path, &sound);
                let opened = Index::open(&path).unwrap();
                if warm {
                    assert_eq!(call_everything(&opened), [""; 0], "{kind} before");
                }
                overwrite(&path, &content);
                let what = format!("{kind}, {name}, searched before: {warm}");
                match in_time(move || call_everything(&opened)) {
                    None => panic!("{what}: does not end"),
                    Some(failed) if failed.is_empty() => {}
                    Some(failed) => failures.push(format!("{what}: {failed:?}")),
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn every_call_returns_while_the_file_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.garlic");
    let mut failures = Vec::new();
    for (kind, index) in indexes() {
        let sound = index.to_bytes().unwrap();
        small::put(&path, &sound);
        let opened = Index::open(&path).unwrap();
        let stop = AtomicBool::new(false);
        let contents = contents(&sound, 5);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for (_, content) in contents.iter().cycle() {
                    overwrite(&path, content);
                    overwrite(&path, &sound);
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            let start = Instant::now();
            let mut rounds = 0;
            while rounds == 0 || start.elapsed() < Duration::from_millis(400) {
                rounds += 1;
                for failed in call_everything(&opened) {
                    failures.push(format!("{kind}: {failed}"));
                }
                // What is derived from the bytes is made anew.
                if let Ok(again) = Index::open(&path) {
                    for failed in call_everything(&again) {
                        failures.push(format!("{kind}, opened meanwhile: {failed}"));
                    }
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
    failures.sort();
    failures.dedup();
    assert!(failures.is_empty(), "{failures:#?}");
}
