//! Filters: what they let through, whatever happens to the index, and predicates that search themselves.

use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use crate::testdata::truth::{Model, Recall, model, nearest, pairs};
use crate::testdata::{ids, lattice, sheet};
use garlic_ann::{Error, Filter, Index, RangeSearch, Rows, Search};

const DIM: usize = 16;

fn rows(values: &[f32]) -> Rows<'_> {
    crate::testdata::rows(values, DIM)
}

fn found(index: &Index, query: &[f32], search: &Search) -> Vec<(f32, u64)> {
    pairs(&index.search(query, search).unwrap())
}

/// A filter keeps its translation to positions; it must notice every change, and every other index.
#[test]
fn one_filter_is_right_before_and_after_every_change() {
    let data = sheet(1500, DIM, 1);
    let data = rows(&data);
    let asked = sheet(10, DIM, 2);
    let builder = || Index::builder().threads(1).seed(5);
    let mut index = builder().build(data.slice(0..1000)).unwrap();
    let mut truth = model(0, data.slice(0..1000));
    let even = |id: u64| id.is_multiple_of(2);
    let filters = [
        Filter::predicate(even),
        Filter::ids((0..4000).step_by(2).collect::<Vec<u64>>()),
        Filter::bitmap((0..4000).step_by(2).collect()),
    ];
    let check = |index: &Index, truth: &Model, when: &str| {
        for filter in &filters {
            let search = Search::new(8).filter(filter.clone());
            for query in rows(&asked).iter() {
                let expected = nearest(truth, query, 8, even);
                let exactly = search.clone().exact(true);
                assert_eq!(found(index, query, &exactly), expected, "{when} {filter:?}");
                for (distance, id) in found(index, query, &search) {
                    assert!(even(id), "{when} {filter:?}");
                    let there = garlic_simd::l2_squared(query, &truth[&id]).sqrt();
                    assert_eq!(distance, there, "{when} {filter:?}");
                }
            }
        }
    };
    check(&index, &truth, "built");
    let (before, truth_before) = (index.clone(), truth.clone());

    index.add(data.slice(1000..1500), &ids(1000..1500)).unwrap();
    truth.extend(model(1000, data.slice(1000..1500)));
    check(&index, &truth, "added");
    // What was nearest to the queries goes, so that an old translation would find it.
    let mut gone: Vec<u64> = rows(&asked)
        .iter()
        .flat_map(|query| nearest(&truth, query, 3, even))
        .map(|(_, id)| id)
        .collect();
    gone.sort_unstable();
    gone.dedup();
    assert_eq!(index.remove(&gone).unwrap(), gone.len());
    gone.iter().for_each(|id| drop(truth.remove(id)));
    check(&index, &truth, "removed");
    let moved: Vec<u64> = truth
        .keys()
        .copied()
        .filter(|id| even(*id))
        .take(10)
        .collect();
    index.update(rows(&asked), &moved).unwrap();
    let here = rows(&asked);
    truth.extend(moved.into_iter().zip(here.iter().map(<[f32]>::to_vec)));
    check(&index, &truth, "updated");
    index.compact().unwrap();
    check(&index, &truth, "compacted");

    // A copy from before all that, and another index of as many points.
    check(&before, &truth_before, "the old copy");
    let other = builder().build(data.slice(500..1500)).unwrap();
    check(&other, &model(0, data.slice(500..1500)), "another index");
    check(&index, &truth, "compacted, once more");
}

/// All allowed points lie at one end, and half of the queries at the other: the cells that are nearest to those hold
/// nothing that counts.
#[test]
fn a_filter_of_one_end_of_the_data_keeps_its_recall() {
    const N: usize = 8000;
    let data = sheet(N, DIM, 3);
    let data = rows(&data);
    let index = Index::builder().seed(1).build(data).unwrap();
    let truth = model(0, data);
    let mut order: Vec<u64> = (0..N as u64).collect();
    order.sort_by(|a, b| truth[b][0].total_cmp(&truth[a][0]));
    let new = sheet(200, DIM, 4);
    let mut asked: Vec<&[f32]> = rows(&new).iter().collect();
    asked.sort_by(|a, b| b[0].total_cmp(&a[0]));
    let (here, there) = (asked[..100].concat(), asked[100..].concat());
    let mut likely = 0;
    for share in [2, 4, 7, 100] {
        let (some, _) = order.split_at(N / share);
        let mut allowed = vec![false; N];
        some.iter().for_each(|id| allowed[*id as usize] = true);
        let allows = |id: u64| allowed[id as usize];
        let filter = Filter::ids(some);
        for (asked, k) in [(&here, 1), (&there, 1), (&here, 10), (&there, 10)] {
            let asked = rows(asked);
            let search = Search::new(k).recall(0.95).filter(filter.clone());
            let farthest = |query: &[f32]| f64::from(nearest(&truth, query, k, allows)[k - 1].0);
            let recall = Recall::of(&index, asked, &search, farthest);
            recall.assert_meets(0.95, &format!("one of {share}, k {k}"));
            for answer in index.search_batch(asked, &search).unwrap() {
                assert!(answer.hits.iter().all(|h| allows(h.id)));
                likely += usize::from(!answer.exact);
            }
            let exactly = search.exact(true);
            for query in asked.iter() {
                let expected = nearest(&truth, query, k, allows);
                assert_eq!(found(&index, query, &exactly), expected, "one of {share}");
            }
        }
    }
    assert!(likely >= 400, "most answers came from brute force");
}

#[test]
fn a_filter_may_name_far_more_identifiers_than_there_are() {
    let values = sheet(600, DIM, 5);
    let index = Index::builder().build(rows(&values)).unwrap();
    let mut all = garlic_ann::RoaringTreemap::new();
    all.insert_range(0..1 << 40);
    all.remove(5);
    let (truth, query) = (model(0, rows(&values)), rows(&values).row(5));
    let search = Search::new(3).filter(Filter::bitmap(all)).exact(true);
    let expected = nearest(&truth, query, 3, |id| id != 5);
    assert_eq!(found(&index, query, &search), expected);
}

fn built() -> Index {
    let builder = Index::builder().threads(1);
    builder.build(rows(&lattice(100, DIM))).unwrap()
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
