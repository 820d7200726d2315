//! Growth: results do not depend on the number of threads, and maintenance is due on time.

use garlic_core::pool::Workers;
use garlic_core::{Metric, Rows, Search};

use super::Due;
use crate::config::Config;
use crate::segment::Index;
use crate::testdata::{ids, uniform};

const DIM: usize = 8;

fn cloud(count: usize, seed: u64) -> Vec<f32> {
    uniform(count, DIM, seed)
}

fn rows(values: &[f32]) -> Rows<'_> {
    crate::testdata::rows(values, DIM)
}

/// Grows an index past the first training and a doubling, with removals, updates and a check in between.
fn grown(threads: usize, metric: Metric) -> Vec<Vec<u8>> {
    let config = Config {
        metric,
        ..Config::default()
    };
    let mut index = Index::empty(DIM, config).unwrap();
    index.workers = Workers::of(threads);
    let data = cloud(9300, 1);
    let mut states = Vec::new();
    let mut first = 0;
    for end in [1, 1500, 4090, 4600, 6000, 9300] {
        let new = rows(&data).slice(first..end);
        index.add(new, &ids(first as u64..end as u64)).unwrap();
        index.remove(&ids(0..end as u64 / 100)).unwrap();
        let some = &data[..(end - first).min(50) * DIM];
        let last = first as u64 + some.len() as u64 / DIM as u64;
        let changed = ids(first as u64..last);
        if changed.iter().all(|id| index.contains(*id)) {
            index.update(rows(some), &changed).unwrap();
        }
        states.push(index.to_bytes().unwrap());
        first = end;
    }
    assert!(index.drift().trainings >= 2, "{:?}", index.drift());
    states
}

#[test]
fn the_same_changes_give_the_same_bytes_for_any_number_of_threads() {
    for metric in [Metric::Euclidean, Metric::InnerProduct] {
        let (one, two) = (grown(1, metric), grown(2, metric));
        for (number, (one, two)) in one.iter().zip(&two).enumerate() {
            assert!(one == two, "{metric:?} {number}");
        }
    }
}

#[test]
fn a_training_is_due_beyond_a_few_points_and_at_each_doubling() {
    let data = cloud(8300, 2);
    let mut index = Index::empty(DIM, Config::default()).unwrap();
    let mut first = 0;
    let mut add = |index: &mut Index, end: usize| {
        let new = rows(&data).slice(first..end);
        index.add_only(new, &ids(first as u64..end as u64)).unwrap();
        first = end;
        index.due()
    };
    assert_eq!(index.due(), None);
    assert_eq!(add(&mut index, 4096), None);
    assert_eq!(add(&mut index, 4097), Some(Due::Training));
    index.maintain().unwrap();
    assert_eq!(index.due(), None, "it is done");
    assert_eq!(index.build_stats.built, 4097);
    assert_eq!(add(&mut index, 5121), None, "not a quarter more");
    assert_eq!(add(&mut index, 5122), Some(Due::Check));
    index.maintain().unwrap();
    assert_eq!(index.due(), None);
    assert_eq!(index.calibration().checked, 5122);
    assert_eq!(add(&mut index, 8193), Some(Due::Check));
    assert_eq!(add(&mut index, 8194), Some(Due::Training));
    index.maintain().unwrap();
    assert_eq!(index.build_stats.trainings, 2);
    // A shrinking index is checked, too.
    index.remove_only(&ids(0..2048)).unwrap();
    assert_eq!(index.due(), None);
    index.remove_only(&ids(2048..2050)).unwrap();
    assert_eq!(index.due(), Some(Due::Check));
    index.remove_only(&ids(2050..4100)).unwrap();
    assert_eq!(index.due(), None, "few points are read all");
}

/// Uncovered points trigger a check long before the index has grown by a quarter.
#[test]
fn uncovered_points_make_a_check_due() {
    let data = cloud(5200, 3);
    let mut index = Index::builder().build(rows(&data[..5000 * DIM])).unwrap();
    let (like, far) = (&data[5000 * DIM..], &data[..400 * DIM]);
    index.add_only(rows(like), &ids(5000..5200)).unwrap();
    assert_eq!(index.due(), None);
    let far: Vec<f32> = far.iter().map(|v| v + 30.0).collect();
    let far = rows(&far);
    index.add_only(far.slice(0..200), &ids(6000..6200)).unwrap();
    assert_eq!((index.due(), index.build_stats.uncovered), (None, 200));
    // Searches find them until they are removed.
    let nearest = |index: &Index| {
        let search = Search::new(1).recall(0.6);
        index.search(far.row(7), &search).unwrap().hits[0]
    };
    assert_eq!((nearest(&index).id, nearest(&index).distance), (6007, 0.0));
    index.remove_only(&ids(6000..6100)).unwrap();
    assert_eq!((index.due(), index.build_stats.uncovered), (None, 100));
    assert!(nearest(&index).id > 6099);
    index
        .update_only(far.slice(0..100), &ids(6100..6200))
        .unwrap();
    assert_eq!((index.due(), index.build_stats.uncovered), (None, 100));
    index
        .add_only(far.slice(200..400), &ids(6200..6400))
        .unwrap();
    assert_eq!(index.due(), Some(Due::Check));
    index.maintain().unwrap();
    assert_eq!((index.due(), index.build_stats.uncovered), (None, 0));
    // A file keeps their number, so an opened index is checked with its next change.
    let elsewhere: Vec<f32> = data[..10 * DIM].iter().map(|v| v - 90.0).collect();
    index.add_only(rows(&elsewhere), &ids(7000..7010)).unwrap();
    assert_eq!((index.due(), index.build_stats.uncovered), (None, 10));
    let mut opened = Index::from_bytes(&index.to_bytes().unwrap()).unwrap();
    assert_eq!(opened.due(), Some(Due::Check));
    let known = rows(&data[..10 * DIM]);
    opened.add_only(known, &ids(8000..8010)).unwrap();
    assert_eq!(opened.due(), Some(Due::Check), "and not forgotten");
    opened.maintain().unwrap();
    assert_eq!((opened.due(), opened.build_stats.uncovered), (None, 0));
}

/// A small index reads everything and does not list uncovered points. It is checked once it is larger.
#[test]
fn small_indexes_only_count_uncovered_points() {
    let data = cloud(4100, 5);
    let mut index = Index::builder().build(rows(&data[..4000 * DIM])).unwrap();
    let far: Vec<f32> = data[..20 * DIM].iter().map(|v| v + 30.0).collect();
    index.add_only(rows(&far), &ids(5000..5020)).unwrap();
    assert_eq!(
        (index.build_stats.uncovered, index.uncovered.len()),
        (20, 0)
    );
    assert_eq!(index.due(), None);
    let rest = &data[4000 * DIM..];
    index.add_only(rows(rest), &ids(4000..4100)).unwrap();
    assert_eq!(index.due(), Some(Due::Check));
}

/// The initial length limit of an empty index does not restrict the vectors that are added.
#[test]
fn inner_products_make_room_for_the_vectors_that_come() {
    let config = Config {
        metric: Metric::InnerProduct,
        ..Config::default()
    };
    let data = cloud(300, 4);
    for scale in [1e-6f32, 1.0, 1e6] {
        let values: Vec<f32> = data.iter().map(|v| v * scale).collect();
        let mut index = Index::empty(DIM, config.clone()).unwrap();
        let mut longest = 0.0f32;
        for (number, vector) in rows(&values).iter().enumerate() {
            index.add(rows(vector), &[number as u64]).unwrap();
            longest = longest.max(garlic_simd::dot(vector, vector).sqrt());
        }
        let room = index.embedding.longest().unwrap();
        assert!(
            room >= longest * 0.999_999 && room <= 1.51 * longest,
            "{room} {longest}"
        );
    }
}
