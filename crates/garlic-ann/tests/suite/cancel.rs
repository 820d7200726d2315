//! Searches and changes in the scope of a cancel flag: they end with an error, and nothing has changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::testdata::sheet;
#[cfg(feature = "live")]
use garlic_ann::Live;
use garlic_ann::{Cancel, Error, Index, RangeSearch, Rows, Search};

const DIM: usize = 12;

fn index(values: &[f32]) -> Index {
    let rows = Rows::new(values, DIM).unwrap();
    Index::builder().threads(2).seed(1).build(rows).unwrap()
}

fn set() -> Cancel {
    Cancel::new(Arc::new(AtomicBool::new(true)))
}

#[track_caller]
fn assert_cancelled<T: std::fmt::Debug>(result: garlic_ann::Result<T>) {
    assert!(matches!(result, Err(Error::Cancelled)), "{result:?}");
}

#[test]
fn batches_of_searches_end() {
    let values = sheet(6000, DIM, 1);
    let index = index(&values);
    let queries = Rows::new(&values[..200 * DIM], DIM).unwrap();
    let searches = [
        Search::new(5),
        Search::new(5).exact(true),
        Search::new(5).probes(3),
        Search::new(5).filter(garlic_ann::Filter::predicate(|id| id % 2 == 0)),
    ];
    for search in searches {
        for threads in [1, 2] {
            let search = search.clone().threads(threads);
            assert_cancelled(set().scope(|| index.search_batch(queries, &search)));
            // Outside of the scope, and inside one that is not set.
            let wanted = index.search_batch(queries, &search).unwrap();
            let never = Cancel::default();
            let found = never.scope(|| index.search_batch(queries, &search));
            assert_eq!(found.unwrap(), wanted);
        }
    }
    for threads in [1, 2] {
        let range = RangeSearch::new(0.5).threads(threads);
        assert_cancelled(set().scope(|| index.range_batch(queries, &range)));
        assert!(index.range_batch(queries, &range).is_ok());
    }
}

/// One query of a very large index takes long, too, if it reads all of it.
#[test]
fn single_searches_that_may_read_everything_end() {
    let values = sheet(6000, DIM, 1);
    let index = index(&values);
    let query = &values[..DIM];
    let (exact, range) = (Search::new(5).exact(true), RangeSearch::new(0.5));
    assert_cancelled(set().scope(|| index.search(query, &exact)));
    assert_cancelled(set().scope(|| index.range(query, &range)));
    assert_cancelled(set().scope(|| index.range(query, &RangeSearch::new(f32::MAX))));
    let wanted = index.search(query, &exact).unwrap();
    let found = Cancel::default().scope(|| index.search(query, &exact));
    assert_eq!(found.unwrap(), wanted);
}

#[test]
fn changes_end_and_leave_the_index_as_it_was() {
    let values = sheet(6000, DIM, 1);
    let mut index = index(&values);
    let more = sheet(300, DIM, 2);
    let more = Rows::new(&more, DIM).unwrap();
    let ids: Vec<u64> = (10_000..10_300).collect();
    index.add(more, &ids).unwrap();
    index.remove(&[1, 2, 3]).unwrap();
    let before = index.to_bytes().unwrap();
    let (points, drift) = (index.len(), index.drift());

    let new: Vec<u64> = (20_000..20_300).collect();
    assert_cancelled(set().scope(|| index.add(more, &new)));
    assert_cancelled(set().scope(|| index.update(more, &ids)));
    assert_cancelled(set().scope(|| index.retrain()));
    assert_cancelled(set().scope(|| index.recalibrate()));
    assert_cancelled(set().scope(|| index.tune(more)));
    assert_cancelled(set().scope(|| index.compact()));
    assert_eq!((index.len(), index.drift()), (points, drift));
    // Saving is no work that may be given up.
    assert!(set().scope(|| index.to_bytes()).unwrap() == before);
    index.compact().unwrap();
    assert!(index.to_bytes().unwrap() == before);
}

#[cfg(feature = "live")]
#[test]
fn a_directory_has_nothing_of_a_cancelled_change() {
    let values = sheet(6000, DIM, 1);
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("index");
    let live = Live::create(&place, index(&values)).unwrap();
    live.remove(&[5]).unwrap();
    let (points, status) = (live.snapshot().len(), live.status());
    let more = Rows::new(&values[..300 * DIM], DIM).unwrap();
    let ids: Vec<u64> = (10_000..10_300).collect();
    assert_cancelled(set().scope(|| live.add(more, &ids)));
    assert_cancelled(set().scope(|| live.recalibrate()));
    assert_cancelled(set().scope(|| live.retrain()));
    assert_cancelled(set().scope(|| live.compact()));
    assert_cancelled(set().scope(|| live.checkpoint()));
    assert_eq!((live.snapshot().len(), live.status()), (points, status));
    live.add(more, &ids).unwrap();
    drop(live);
    let again = Live::open_read_only(&place).unwrap();
    assert_eq!(again.snapshot().len(), points + 300);
}

/// A flag that is set in the middle of the work ends it long before its end.
#[test]
fn a_flag_that_is_set_later_ends_the_work() {
    let values = sheet(20_000, 32, 1);
    let rows = Rows::new(&values, 32).unwrap();
    let index = Index::builder().threads(2).seed(1).build(rows).unwrap();
    let many = values.repeat(40);
    let many = Rows::new(&many, 32).unwrap();
    let flag = Arc::new(AtomicBool::new(false));
    let cancel = Cancel::new(Arc::clone(&flag));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            flag.store(true, Ordering::Relaxed);
        });
        let start = Instant::now();
        let search = Search::new(10).exact(true).threads(2);
        assert_cancelled(cancel.scope(|| index.search_batch(many, &search)));
        // All of it takes minutes. The limit is generous: tests do not measure time.
        assert!(start.elapsed() < Duration::from_secs(20));
    });
}
