//! What may be shared between threads, and the threads that an index starts.

mod testdata;

use std::sync::Arc;

use garlic_ann::{
    Answer, Builder, Calibration, Cancel, Config, Error, Filter, FormatError, Index, Live,
    RangeSearch, Search, Searcher,
};
use testdata::{rows, sheet};

/// Compiles only if these can be shared.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    const fn sent<T: Send>() {}
    shared::<Index>();
    shared::<Arc<Index>>();
    shared::<Live>();
    shared::<Search>();
    shared::<RangeSearch>();
    shared::<Filter>();
    shared::<Answer>();
    shared::<Config>();
    shared::<Calibration>();
    shared::<Cancel>();
    shared::<Builder<'_>>();
    shared::<Error>();
    shared::<FormatError>();
    sent::<Searcher<'_>>();
};

/// Threads of this process, by number. Not by name: a thread gives itself its name when it first runs.
#[cfg(target_os = "linux")]
fn threads() -> std::collections::BTreeSet<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let number = |task: std::io::Result<std::fs::DirEntry>| task.unwrap().file_name();
    tasks
        .map(|task| number(task).into_string().unwrap())
        .collect()
}

/// Waits until only the threads `before` are there: one that ends may take a moment.
#[cfg(target_os = "linux")]
#[track_caller]
fn wait_for(before: &std::collections::BTreeSet<String>) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while threads() != *before {
        assert!(std::time::Instant::now() < deadline, "threads do not end");
        std::thread::yield_now();
    }
}

/// Batches share the threads of their index, and so do those of its copies. The only test here that runs: others would
/// start threads of their own.
#[cfg(target_os = "linux")]
#[test]
fn batches_start_their_threads_once() {
    let before = threads();
    let values = sheet(2000, 12, 1);
    let rows = rows(&values, 12);
    let index = Index::builder().threads(2).build(rows).unwrap();
    wait_for(&before);
    let queries = rows.slice(0..300);
    index.search_batch(queries, &Search::new(5)).unwrap();
    assert_eq!(threads(), before, "one thread is the caller's");

    let two = Search::new(5).threads(2);
    index.search_batch(queries, &two).unwrap();
    let started = threads();
    assert_eq!(started.difference(&before).count(), 2);
    let (copy, range) = (index.clone(), RangeSearch::new(3.0).threads(2));
    for _ in 0..20 {
        index.search_batch(queries, &two).unwrap();
        copy.search_batch(queries, &two.clone().exact(true))
            .unwrap();
        copy.range_batch(queries, &range).unwrap();
        assert_eq!(threads(), started, "the same ones");
    }
    drop((index, copy));
    wait_for(&before);
}
