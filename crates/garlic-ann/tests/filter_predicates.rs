//! Predicates of filters that search themselves.

mod testdata;

use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use garlic_ann::{Error, Filter, Index, RangeSearch, Search};
use testdata::{lattice, rows};

const DIM: usize = 4;

fn built() -> Index {
    let builder = Index::builder().threads(1);
    builder.build(rows(&lattice(100, DIM), DIM)).unwrap()
}

/// What `work` returns, unless it takes for ever.
fn within_a_minute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    thread::spawn(move || done.send(work()));
    wait.recv_timeout(Duration::from_secs(60))
        .expect("it waits for itself")
}

#[test]
fn a_predicate_that_searches_with_its_own_filter_is_told() {
    let index = Arc::new(built());
    let own: Arc<OnceLock<Filter>> = Arc::default();
    let told = Arc::new(OnceLock::new());
    let (inside, mine, error) = (Arc::clone(&index), Arc::clone(&own), Arc::clone(&told));
    let filter = Filter::predicate(move |id| {
        let filter = mine.get().unwrap().clone();
        let search = Search::new(1).exact(true).filter(filter.clone());
        let searched = inside.search(&[1.0; DIM], &search);
        assert!(matches!(searched, Err(Error::FilterInItself)));
        let ranged = inside.range(&[1.0; DIM], &RangeSearch::new(5.0).filter(filter));
        assert!(matches!(ranged, Err(Error::FilterInItself)));
        error.get_or_init(|| searched.unwrap_err().to_string());
        id < 10
    });
    own.set(filter.clone()).unwrap();
    let search = Search::new(100).exact(true).filter(filter.clone());
    let hits = within_a_minute(move || index.search(&[1.0; DIM], &search).unwrap().hits);
    assert_eq!(hits.len(), 10);
    assert!(told.get().unwrap().contains("same filter"));
}

#[test]
fn a_predicate_may_search_with_another_filter() {
    let index = Arc::new(built());
    let inside = Arc::clone(&index);
    let even = Filter::predicate(|id| id % 2 == 0);
    let filter = Filter::predicate(move |id| {
        let search = Search::new(1).exact(true).filter(even.clone());
        let query = inside.get(id).unwrap();
        inside.search(&query, &search).unwrap().hits[0].id == id
    });
    let search = Search::new(100).exact(true).filter(filter);
    let hits = within_a_minute(move || index.search(&[1.0; DIM], &search).unwrap().hits);
    let mut ids: Vec<u64> = hits.iter().map(|hit| hit.id).collect();
    ids.sort_unstable();
    let expected: Vec<u64> = ids.iter().copied().filter(|id| id % 2 == 0).collect();
    assert_eq!(ids, expected);
    assert!(!ids.is_empty());
}

/// A predicate that panics leaves the filter usable.
#[test]
fn a_predicate_that_panicked_can_be_asked_again() {
    let index = Arc::new(built());
    let filter = Filter::predicate(|id| {
        assert!(
            id != 5 || thread::current().name() != Some("first"),
            "as planned"
        );
        true
    });
    let search = Search::new(3).exact(true).filter(filter);
    let (again, asked) = (Arc::clone(&index), search.clone());
    let first = thread::Builder::new().name("first".into());
    let first = first.spawn(move || again.search(&[1.0; DIM], &asked).map(|_| ()));
    assert!(first.unwrap().join().is_err());
    let hits = within_a_minute(move || index.search(&[1.0; DIM], &search).unwrap().hits);
    assert_eq!(hits.len(), 3);
}
