//! The neighbour graph of an index: recall targets, files, and everything else that searches do.

use garlic_ann::{Filter, Index, Metric, RangeSearch, Rows, Search};

use crate::testdata::normal;

const DIM: usize = 32;
const COUNT: usize = 9000;

/// Points of local dimension 16, which cells cannot separate well.
fn points(count: usize, seed: u64) -> Vec<f32> {
    let latent = normal(count, 16, seed);
    let axes = normal(16, DIM, 3);
    let value = |at: usize| -> f32 {
        let (i, j) = (at / DIM, at % DIM);
        let along = latent[i * 16..][..16].iter().enumerate();
        along.map(|(k, v)| v * axes[k * DIM + j]).sum::<f64>() as f32
    };
    (0..count * DIM).map(value).collect()
}

fn build(values: &[f32], metric: Metric, threads: usize) -> Index {
    let builder = Index::builder().metric(metric).seed(3).threads(threads);
    let builder = builder.set("graph", "on").unwrap();
    let builder = builder.set("calibration_queries", "300").unwrap();
    builder.build(Rows::new(values, DIM).unwrap()).unwrap()
}

/// Distances of the true neighbours that an exact search finds, and of those that `search` finds.
fn recall(index: &Index, queries: &[f32], search: &Search) -> (f64, u64) {
    let (mut found, mut hops) = (0, 0);
    for query in queries.chunks(DIM) {
        let truth = index
            .search(query, &Search::new(search.k()).exact(true))
            .unwrap();
        let limit = truth.hits[truth.hits.len() - 1].distance;
        let answer = index.search(query, search).unwrap();
        assert!(
            answer
                .hits
                .windows(2)
                .all(|p| p[0].distance <= p[1].distance)
        );
        found += answer
            .hits
            .iter()
            .filter(|h| h.distance <= limit + limit.abs() * 1e-5)
            .count();
        hops += answer.stats.hops;
    }
    let slots = queries.len() / DIM * search.k();
    (found as f64 / slots as f64, hops)
}

#[test]
fn targets_are_met_and_searches_expand_the_graph() {
    let values = points(COUNT, 1);
    let queries = points(200, 2);
    for metric in [Metric::Euclidean, Metric::Cosine, Metric::InnerProduct] {
        let index = build(&values, metric, 2);
        assert!(!index.calibration().graph_settings.is_empty(), "{metric:?}");
        for (k, target) in [(10, 0.9), (10, 0.98), (1, 0.95), (50, 0.9)] {
            let search = Search::new(k).recall(target);
            let (recall, hops) = recall(&index, &queries, &search);
            assert!(recall > target - 0.03, "{metric:?} {k} {target}: {recall}");
            // Inner products are ordered otherwise than the estimates. High targets take bins.
            let may_not = metric == Metric::InnerProduct && target > 0.9;
            assert!(hops > 0 || may_not, "{metric:?} {k} {target}");
        }
    }
}

/// Queries of the calibration are points that the graph lacks when it is measured. They have each other as neighbours.
#[test]
fn points_that_calibration_holds_out_do_not_count_as_missed() {
    let index = build(&points(COUNT, 1), Metric::Euclidean, 2);
    let settings = &index.calibration().graph_settings;
    assert!(settings.iter().any(|s| s.k == 10 && s.recall >= 0.99));
}

#[test]
fn a_check_measures_the_graph_of_a_grown_index() {
    let values = points(COUNT, 1);
    let mut index = build(&values, Metric::Euclidean, 2);
    let before = index.calibration().clone();
    assert_eq!(before.graph_points, 0);
    add_all(&mut index, &points(COUNT / 2, 9), 1_000_000);
    let after = index.calibration();
    assert!(after.graph_points > COUNT && after.checked == after.graph_points);
    assert_ne!(after.graph_settings, before.graph_settings);
    let queries = points(200, 2);
    for target in [0.9, 0.98] {
        let (recall, hops) = recall(&index, &queries, &Search::new(10).recall(target));
        assert!(recall > target - 0.02 && hops > 0, "{target}: {recall}");
    }
}

#[test]
fn a_batch_gives_the_answers_of_single_queries() {
    let queries = points(300, 2);
    let search = Search::new(10).recall(0.9);
    let rows = Rows::new(&queries, DIM).unwrap();
    for metric in [Metric::Euclidean, Metric::Cosine, Metric::InnerProduct] {
        let index = build(&points(COUNT, 1), metric, 2);
        let batch = index.search_batch(rows, &search).unwrap();
        assert!(batch[0].stats.hops > 0);
        for (query, answer) in queries.chunks(DIM).zip(&batch) {
            let single = index.search(query, &search).unwrap();
            assert_eq!(single, *answer, "{metric:?}");
        }
        let two = search.clone().threads(2);
        assert_eq!(index.search_batch(rows, &two).unwrap(), batch);
    }
}

#[test]
fn the_same_bytes_for_any_number_of_threads_and_back_from_a_file() {
    let values = points(COUNT, 5);
    let index = build(&values, Metric::Cosine, 1);
    let bytes = index.to_bytes().unwrap();
    assert!(bytes == build(&values, Metric::Cosine, 3).to_bytes().unwrap());
    let back = Index::from_bytes(&bytes).unwrap();
    assert!(back == index);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("i.garlic");
    index.save(&path).unwrap();
    let mapped = Index::open(&path).unwrap();
    Index::verify(&path).unwrap();
    let search = Search::new(10).recall(0.95);
    for query in points(50, 6).chunks(DIM) {
        let answer = index.search(query, &search).unwrap();
        assert!(answer.stats.hops > 0);
        assert_eq!(mapped.search(query, &search).unwrap(), answer);
        assert_eq!(back.search(query, &search).unwrap(), answer);
    }
}

/// Recall under a filter.
fn filtered(index: &Index, queries: &[f32], allowed: &[u64], target: f64) -> f64 {
    let filter = Filter::ids(allowed.to_vec());
    let mut found = 0;
    for query in queries.chunks(DIM) {
        let exact = Search::new(10).exact(true).filter(filter.clone());
        let truth = index.search(query, &exact).unwrap();
        let search = Search::new(10).recall(target).filter(filter.clone());
        let answer = index.search(query, &search).unwrap();
        assert!(
            answer
                .hits
                .iter()
                .all(|hit| allowed.binary_search(&hit.id).is_ok())
        );
        assert_eq!(answer.hits.len(), truth.hits.len());
        let limit = truth.hits.last().map_or(0.0, |hit| hit.distance) * 1.00001;
        found += answer.hits.iter().filter(|h| h.distance <= limit).count();
    }
    found as f64 / (queries.len() / DIM * 10) as f64
}

#[test]
fn filters_keep_the_recall_from_half_of_the_points_to_few() {
    let values = points(3 * COUNT, 1);
    let index = build(&values, Metric::Euclidean, 2);
    let queries = points(100, 9);
    let ids = || 0..3 * COUNT as u64;
    for share in [2u64, 5, 10, 100, 1000] {
        let allowed: Vec<u64> = ids().filter(|id| id % share == 0).collect();
        let recall = filtered(&index, &queries, &allowed, 0.9);
        assert!(recall > 0.88, "1 in {share}: {recall}");
    }
    // A filter that allows one side only: far from half of the queries.
    let side = |id: &u64| values[*id as usize * DIM] > 4.0;
    let allowed: Vec<u64> = ids().filter(side).collect();
    assert!(allowed.len() > 100);
    let recall = filtered(&index, &queries, &allowed, 0.9);
    assert!(recall > 0.88, "one side: {recall}");
}

#[test]
fn ranges_and_explicit_parameters_do_not_need_the_graph() {
    let values = points(COUNT, 1);
    let index = build(&values, Metric::Euclidean, 2);
    for query in points(40, 9).chunks(DIM) {
        let exact = index.search(query, &Search::new(10).exact(true)).unwrap();
        let radius = exact.hits[9].distance;
        let within = index.range(query, &RangeSearch::new(radius)).unwrap();
        assert!(within.hits.len() >= 10);
        let probed = index.search(query, &Search::new(10).probes(3)).unwrap();
        assert_eq!((probed.stats.hops, probed.hits.len()), (0, 10));
    }
}

#[test]
fn added_and_removed_points_are_seen_at_once() {
    let values = points(COUNT, 1);
    let mut index = build(&values, Metric::Euclidean, 2);
    let queries = points(60, 2);
    let more = points(900, 11);
    let ids: Vec<u64> = (0..900).map(|i| 100_000 + i).collect();
    index.add(Rows::new(&more, DIM).unwrap(), &ids).unwrap();
    index.remove(&(0..2000).collect::<Vec<u64>>()).unwrap();
    let check = |index: &Index, what: &str| {
        let (recall, _) = recall(index, &queries, &Search::new(10).recall(0.9));
        assert!(recall > 0.87, "{what}: {recall}");
        for query in more.chunks(DIM).take(50) {
            let answer = index.search(query, &Search::new(1).recall(0.9)).unwrap();
            assert_eq!(answer.hits[0].distance, 0.0, "{what}");
        }
        for query in values.chunks(DIM).take(50) {
            let answer = index.search(query, &Search::new(5)).unwrap();
            assert!(answer.hits.iter().all(|hit| hit.id >= 2000), "{what}");
        }
    };
    check(&index, "changed");
    let (_, hops) = recall(&index, &queries, &Search::new(10).recall(0.9));
    assert!(
        hops > 0,
        "the graph serves the points that were there before"
    );
    let mut even: Vec<u64> = index.ids().into_iter().filter(|id| id % 2 == 0).collect();
    even.sort_unstable();
    let share = filtered(&index, &queries, &even, 0.9);
    assert!(share > 0.87, "{share}");
    index.compact().unwrap();
    check(&index, "compacted");
    let (_, hops) = recall(&index, &queries, &Search::new(10).recall(0.9));
    assert!(hops > 0, "the graph came along");
    let bytes = index.to_bytes().unwrap();
    check(&Index::from_bytes(&bytes).unwrap(), "saved");
    index.recalibrate().unwrap();
    check(&index, "recalibrated");
}

#[test]
fn added_points_are_found_with_every_metric() {
    let (values, more) = (points(COUNT, 1), points(900, 11));
    for metric in [Metric::Cosine, Metric::InnerProduct] {
        let mut index = build(&values, metric, 2);
        add_all(&mut index, &more, 100_000);
        index.remove(&(0..900).collect::<Vec<u64>>()).unwrap();
        let queries = [&more[..30 * DIM], &points(60, 2)].concat();
        let (recall, hops) = recall(&index, &queries, &Search::new(10).recall(0.85));
        assert!(recall > 0.83, "{metric:?}: {recall}");
        assert!(hops > 0, "{metric:?}");
        let answer = index
            .search(&more[..DIM], &Search::new(1).recall(0.9))
            .unwrap();
        assert!(metric == Metric::InnerProduct || answer.hits[0].id == 100_000);
    }
}

/// A third of the points goes, half as many come. The carried graph finds as much as a new one, with the same work.
#[test]
fn a_carried_graph_is_as_good_as_a_new_one() {
    let (values, more) = (points(COUNT, 1), points(COUNT / 2, 12));
    let mut index = build(&values, Metric::Euclidean, 2);
    let gone: Vec<u64> = (0..COUNT as u64).filter(|id| id % 3 == 0).collect();
    index.remove(&gone).unwrap();
    let ids: Vec<u64> = (0..COUNT as u64 / 2).map(|i| 100_000 + i).collect();
    index.add(Rows::new(&more, DIM).unwrap(), &ids).unwrap();
    index.compact().unwrap();
    let kept = values.chunks(DIM).enumerate().filter(|(i, _)| i % 3 != 0);
    let mut all: Vec<f32> = kept.flat_map(|(_, row)| row.to_vec()).collect();
    all.extend_from_slice(&more);
    let fresh = build(&all, Metric::Euclidean, 2);
    let queries = points(300, 2);
    let search = Search::new(10).recall(0.9);
    let [carried, new] = [&index, &fresh].map(|index| recall(index, &queries, &search));
    assert!(carried.0 > new.0 - 0.02, "{carried:?} {new:?}");
    assert!(
        carried.1 as f64 <= 1.3 * new.1 as f64,
        "{carried:?} {new:?}"
    );
}

/// Recall and mean hops for a sweep of targets.
fn curve(index: &Index, queries: &[f32]) -> Vec<(f64, f64)> {
    let count = (queries.len() / DIM) as f64;
    let one = |target: &f64| {
        let (recall, hops) = recall(index, queries, &Search::new(10).recall(*target));
        (hops as f64 / count, recall)
    };
    let targets = [0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95];
    targets.iter().map(one).collect()
}

/// The recall with so many hops, between the targets that were measured.
fn recall_at(hops: f64, curve: &[(f64, f64)]) -> f64 {
    let pairs = curve.windows(2).find(|pair| hops <= pair[1].0);
    let pair = pairs.unwrap_or(&curve[curve.len() - 2..]);
    let share = (hops - pair[0].0) / (pair[1].0 - pair[0].0).max(1e-9);
    pair[0].1 + share * (pair[1].1 - pair[0].1)
}

/// Adds points in batches of changing size.
fn add_all(index: &mut Index, values: &[f32], first: u64) {
    let (mut next, mut size) = (0, 1);
    while next < values.len() / DIM {
        let to = (next + size).min(values.len() / DIM);
        let ids: Vec<u64> = (next..to).map(|i| first + i as u64).collect();
        let batch = Rows::new(&values[next * DIM..to * DIM], DIM).unwrap();
        index.add(batch, &ids).unwrap();
        (next, size) = (to, size * 3 % 1000 + 1);
    }
}

/// Nearly as many points come as there were, in random order and from one end to the other, and then a quarter goes.
/// The compacted graph finds as much as a new one with as many hops. Before, lists that points joined one by one lead
/// to a little less.
#[test]
fn a_changed_graph_is_as_good_as_a_new_one() {
    let (values, more) = (points(COUNT, 1), points(COUNT - 500, 12));
    let queries = points(300, 2);
    let mut along: Vec<&[f32]> = more.chunks(DIM).collect();
    along.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let along = along.concat();
    let fresh = build(&[&values[..], &more].concat(), Metric::Euclidean, 2);
    let new = curve(&fresh, &queries);
    let base = build(&values, Metric::Euclidean, 2);
    for (order, name) in [(&more, "random"), (&along, "sorted")] {
        let mut index = base.clone();
        add_all(&mut index, order, 100_000);
        let grown = curve(&index, &queries);
        for (hops, recall) in &new[1..5] {
            let found = recall_at(*hops, &grown);
            assert!(
                *hops > 0.0 && found > recall - 0.03,
                "{name}: {found} {recall}"
            );
        }
        index.compact().unwrap();
        let compacted = curve(&index, &queries);
        for (hops, recall) in &new[1..5] {
            let found = recall_at(*hops, &compacted);
            assert!(
                found > recall - 0.015,
                "{name}, compacted: {found} {recall}"
            );
        }
    }
}

#[test]
fn changes_give_the_same_bytes_for_any_number_of_threads() {
    let (values, more) = (points(COUNT, 1), points(1500, 12));
    let changed = |threads: usize| {
        let mut index = build(&values, Metric::Cosine, threads);
        add_all(&mut index, &more, 100_000);
        index.remove(&(0..500).collect::<Vec<u64>>()).unwrap();
        let moved = Rows::new(&more[..300 * DIM], DIM).unwrap();
        index
            .update(moved, &(1000..1300).collect::<Vec<u64>>())
            .unwrap();
        index
    };
    let (one, three) = (changed(1), changed(3));
    let search = Search::new(10).recall(0.9);
    for query in points(50, 6).chunks(DIM) {
        let answer = one.search(query, &search).unwrap();
        assert!(answer.stats.hops > 0 && answer == three.search(query, &search).unwrap());
    }
    let bytes = one.to_bytes().unwrap();
    assert!(bytes == three.to_bytes().unwrap());
    // Saved and opened, the index goes on as one that was compacted.
    let mut compacted = one;
    compacted.compact().unwrap();
    let mut back = Index::from_bytes(&bytes).unwrap();
    for index in [&mut compacted, &mut back] {
        add_all(index, &more, 200_000);
    }
    assert!(compacted.to_bytes().unwrap() == back.to_bytes().unwrap());
}

#[test]
fn a_snapshot_keeps_its_answers_while_others_change() {
    let (values, more) = (points(COUNT, 1), points(1200, 12));
    let queries = points(60, 2);
    let search = Search::new(10).recall(0.9);
    let answers = |index: &Index| -> Vec<_> {
        let all = queries
            .chunks(DIM)
            .map(|q| index.search(q, &search).unwrap());
        all.collect()
    };
    let base = build(&values, Metric::Euclidean, 2);
    let mut index = base.clone();
    add_all(&mut index, &more[..600 * DIM], 100_000);
    let (before, kept) = (index.clone(), answers(&index));
    assert!(kept.iter().all(|answer| answer.stats.hops > 0));
    assert!(
        kept.iter()
            .any(|a| a.hits.iter().any(|hit| hit.id >= 100_000))
    );
    // Two copies change in different ways, in turns.
    let mut other = index.clone();
    for batch in 0..6 {
        let rows = &more[(600 + 100 * batch) * DIM..][..100 * DIM];
        let ids: Vec<u64> = (0..100).map(|i| 300_000 + 100 * batch as u64 + i).collect();
        index.add(Rows::new(rows, DIM).unwrap(), &ids).unwrap();
        other
            .remove(&(300 * batch as u64..300 * (batch as u64 + 1)).collect::<Vec<_>>())
            .unwrap();
        other
            .add(Rows::new(&rows[..40 * DIM], DIM).unwrap(), &ids[..40])
            .unwrap();
        assert!(answers(&before) == kept, "batch {batch}");
    }
    // A copy that changes by itself comes to the same.
    let mut alone = base;
    add_all(&mut alone, &more[..600 * DIM], 100_000);
    for batch in 0..6 {
        let rows = &more[(600 + 100 * batch) * DIM..][..100 * DIM];
        let ids: Vec<u64> = (0..100).map(|i| 300_000 + 100 * batch as u64 + i).collect();
        alone.add(Rows::new(rows, DIM).unwrap(), &ids).unwrap();
    }
    assert!(answers(&alone) == answers(&index));
    assert!(alone.to_bytes().unwrap() == index.to_bytes().unwrap());
    assert!(
        answers(&other)
            .iter()
            .flat_map(|a| &a.hits)
            .all(|hit| hit.id >= 1800)
    );
}

#[test]
fn removing_everything_leaves_an_index_that_grows_again() {
    let values = points(COUNT, 1);
    let mut index = build(&values, Metric::Euclidean, 2);
    index
        .remove(&(0..COUNT as u64).collect::<Vec<_>>())
        .unwrap();
    index.compact().unwrap();
    assert!(
        index
            .search(&values[..DIM], &Search::new(3))
            .unwrap()
            .hits
            .is_empty()
    );
    index
        .add(
            Rows::new(&values[..50 * DIM], DIM).unwrap(),
            &(0..50).collect::<Vec<_>>(),
        )
        .unwrap();
    index.compact().unwrap();
    let answer = index.search(&values[..DIM], &Search::new(3)).unwrap();
    assert_eq!(answer.hits[0].id, 0);
}

#[test]
fn small_and_low_dimensional_data_have_no_graph_by_themselves() {
    let flat: Vec<f32> = points(COUNT, 1)
        .chunks(DIM)
        .flat_map(|row| row[..2].to_vec())
        .collect();
    let index = Index::builder()
        .build(Rows::new(&flat, 2).unwrap())
        .unwrap();
    assert!(index.calibration().graph_settings.is_empty());
    assert_eq!(index.memory().graph, 0);
    let few = points(2000, 1);
    let index = Index::builder()
        .build(Rows::new(&few, DIM).unwrap())
        .unwrap();
    assert_eq!(index.memory().graph, 0);
    let off = Index::builder().set("graph", "off").unwrap();
    let index = off
        .build(Rows::new(&points(COUNT, 1), DIM).unwrap())
        .unwrap();
    assert_eq!(index.memory().graph, 0);
}

#[test]
fn a_damaged_graph_is_refused_when_read_and_harmless_when_mapped() {
    let index = build(&points(COUNT, 1), Metric::Euclidean, 2);
    let bytes = index.to_bytes().unwrap();
    // The graph is the last section: lists and codes of all points.
    let graph = index.memory().graph as usize;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.garlic");
    let queries = points(3, 2);
    for step in 0..60 {
        let at = bytes.len() - 1 - step * (graph / 64);
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (step % 8);
        assert!(Index::from_bytes(&damaged).is_err(), "byte {at}");
        // Many bytes at once, as from another file.
        let to = (at + 4096).min(damaged.len());
        damaged[at..to].fill((step * 37 % 256) as u8);
        std::fs::write(&path, &damaged).unwrap();
        let Ok(mapped) = Index::open(&path) else {
            continue;
        };
        for query in queries.chunks(DIM) {
            for search in [Search::new(10).recall(0.9), Search::new(1).recall(0.8)] {
                let answer = mapped.search(query, &search).unwrap();
                assert!(answer.hits.len() <= search.k());
            }
        }
        // Changes may fail, and may give any graph.
        if step % 20 == 0 {
            let mut changed = mapped;
            let ids: Vec<u64> = (100_000..100_003).collect();
            let _ = changed.add(Rows::new(&queries, DIM).unwrap(), &ids);
            let _ = changed.remove(&(0..2000).collect::<Vec<_>>());
            let search = Search::new(10).recall(0.9);
            let answer = changed.search(&queries[..DIM], &search).unwrap();
            assert!(answer.hits.len() <= 10);
            let _ = changed.compact();
        }
    }
}
