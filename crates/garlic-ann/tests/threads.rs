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

/// Worker threads of this process, by number.
#[cfg(target_os = "linux")]
fn workers() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let mut found: Vec<String> = tasks
        .map(|task| task.unwrap().path())
        // A thread may end meanwhile.
        .filter(|task| {
            let name = std::fs::read_to_string(task.join("comm"));
            name.is_ok_and(|name| name.starts_with("garlic-"))
        })
        .map(|task| task.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    found.sort();
    found
}

/// Batches share the threads of their index, which copies and changes share as well.
#[cfg(target_os = "linux")]
#[test]
fn batches_start_their_threads_once() {
    let values = sheet(2000, 12, 1);
    let rows = rows(&values, 12);
    let index = Index::builder().threads(2).build(rows).unwrap();
    // Those of the build end with it, but may take a moment.
    while !workers().is_empty() {
        std::thread::yield_now();
    }
    let two = Search::new(5).threads(2);
    index
        .search_batch(rows.slice(0..300), &Search::new(5))
        .unwrap();
    assert_eq!(workers().len(), 0, "one thread is the caller's");
    index.search_batch(rows.slice(0..300), &two).unwrap();
    let started = workers();
    assert_eq!(started.len(), 2);
    let copy = index.clone();
    for _ in 0..20 {
        index.search_batch(rows.slice(0..300), &two).unwrap();
        copy.search_batch(rows.slice(0..300), &two.clone().exact(true))
            .unwrap();
        let range = RangeSearch::new(3.0).threads(2);
        copy.range_batch(rows.slice(0..100), &range).unwrap();
        assert_eq!(workers(), started, "the same ones");
    }
    drop((index, copy));
    while !workers().is_empty() {
        std::thread::yield_now();
    }
}
