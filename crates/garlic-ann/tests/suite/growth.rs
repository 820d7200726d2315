//! An index that begins empty and trains itself as it grows, on data small enough for brute force.

use crate::testdata::truth::{Model, Recall, distance, model};
use crate::testdata::{clumps, ids};
use garlic_ann::{
    Config, Configuration as _, EXHAUSTIVE_POINTS, Error, Filter, Index, Metric,
    NeighborIndex as _, RangeSearch, Rows, Search,
};

const DIM: usize = 8;
const METRICS: [Metric; 3] = [Metric::Euclidean, Metric::Cosine, Metric::InnerProduct];

/// Points around a few hundred centres, none of them zero.
fn cloud(count: usize, seed: u64) -> Vec<f32> {
    let values = clumps(count, DIM, 300, 0.25, seed).into_iter();
    values.map(|v| 2.0 * v).collect()
}

fn rows(values: &[f32]) -> Rows<'_> {
    crate::testdata::rows(values, DIM)
}

fn config(metric: Metric) -> Config {
    Config {
        metric,
        seed: 5,
        ..Config::default()
    }
}

fn nearest(model: &Model, metric: Metric, query: &[f32], k: usize) -> Vec<f64> {
    let mut all: Vec<f64> = (model.values().map(|v| distance(metric, query, v))).collect();
    all.sort_by(f64::total_cmp);
    all.truncate(k);
    all
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-4 * (1.0 + b.abs())
}

/// Fails unless the index holds what the model does, and finds the true neighbours when it searches exactly.
#[track_caller]
fn assert_holds(index: &Index, model: &Model, when: &str) {
    assert_eq!(index.len(), model.len(), "{when}");
    let mut there = index.ids();
    there.sort_unstable();
    assert!(there.iter().eq(model.keys()), "{when}");
    let metric = index.config().metric;
    for (id, vector) in model.iter().step_by(model.len().div_ceil(200).max(1)) {
        let stored = index.get(*id).unwrap();
        match metric {
            Metric::Cosine => assert!(close(distance(metric, &stored, vector), 0.0), "{when} {id}"),
            _ => assert_eq!(&stored, vector, "{when} {id}"),
        }
    }
    let queries = cloud(5, 1000);
    for query in rows(&queries).iter() {
        let truth = nearest(model, metric, query, 10);
        let answer = index.search(query, &Search::new(10).exact(true)).unwrap();
        assert_eq!(answer.hits.len(), truth.len(), "{when}");
        for (hit, truth) in answer.hits.iter().zip(truth) {
            assert!(
                close(f64::from(hit.distance), truth),
                "{when} {hit:?} {truth}"
            );
        }
    }
}

/// Fails unless a search finds as many of the ten nearest points as it is asked for.
#[track_caller]
fn assert_meets(index: &Index, model: &Model, queries: Rows<'_>, target: f64, when: &str) {
    let metric = index.config().metric;
    let search = Search::new(10).recall(target);
    let farthest = |query: &[f32]| {
        let radius = nearest(model, metric, query, 10)[9];
        radius + 1e-5 * (1.0 + radius.abs())
    };
    let recall = Recall::of(index, queries, &search, farthest);
    recall.assert_meets(target, when);
}

/// Every way of asking, all of which find nothing.
#[track_caller]
fn assert_answers_nothing(index: &Index) {
    let query = cloud(2, 9);
    let queries = rows(&query);
    let plain = Search::new(3);
    for search in [
        plain.clone(),
        plain.clone().recall(0.99),
        plain.clone().exact(true),
        plain.clone().probes(2).bins(0.5).rerank(7),
        plain.clone().filter(Filter::ids(vec![1, 2])),
        plain
            .clone()
            .filter(Filter::predicate(|_| true))
            .exact(true),
        plain
            .clone()
            .filter(Filter::predicate(|id| id % 2 == 0))
            .recall(0.9),
    ] {
        let answer = index.search(queries.row(0), &search).unwrap();
        assert_eq!(answer.hits, [], "{search:?}");
        for answer in index.search_batch(queries, &search).unwrap() {
            assert_eq!(answer.hits, [], "{search:?}");
        }
    }
    for range in [
        RangeSearch::new(1e6),
        RangeSearch::new(1e6).recall(0.9),
        RangeSearch::new(1e6).filter(Filter::predicate(|_| true)),
    ] {
        assert_eq!(index.range(queries.row(0), &range).unwrap().hits, []);
        for answer in index.range_batch(queries, &range).unwrap() {
            assert_eq!(answer.hits, []);
        }
    }
}

/// Everything that can be asked of an index without points.
#[track_caller]
fn assert_is_empty(index: &Index) {
    assert_eq!((index.len(), index.dim()), (0, DIM));
    assert!(index.is_empty() && index.ids().is_empty() && index.cells() > 0);
    assert!(!index.contains(0) && index.get(0).is_none() && index.id_at(0).is_none());
    assert_answers_nothing(index);
    assert!(index.cell_sizes().iter().all(|size| *size == 0));
    assert!(index.memory().total > 0 && index.memory().vectors == 0);
    let drift = index.drift();
    assert_eq!((drift.added, drift.trainings), (0, 0));
    assert!(!drift.reads_everything && drift.spread == 1.0);
}

/// An index that was never given a point, and one whose cells were trained on a sample.
fn empty_indexes(metric: Metric) -> [Index; 2] {
    let sample = cloud(6000, 3);
    let builder = Index::builder().config(config(metric));
    [
        Index::empty(DIM, config(metric)).unwrap(),
        builder.train(rows(&sample)).unwrap(),
    ]
}

#[test]
fn an_index_without_points_answers_everything_with_nothing() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("empty.garlic");
    for metric in METRICS {
        for index in empty_indexes(metric) {
            assert_is_empty(&index);
            assert_eq!(index.next_id(), 0);
            index.save(&path).unwrap();
            assert_eq!(Index::verify(&path).unwrap().points, 0);
            for opened in [Index::open(&path).unwrap(), Index::load(&path).unwrap()] {
                assert!(opened == index);
                assert_is_empty(&opened);
            }
            let mut changed = Index::from_bytes(&index.to_bytes().unwrap()).unwrap();
            changed.compact().unwrap();
            changed.recalibrate().unwrap();
            assert_eq!(changed.remove(&[0, 1]).unwrap(), 0);
            let point = cloud(1, 1);
            let updated = changed.update(rows(&point), &[4]);
            assert!(matches!(updated, Err(Error::UnknownId { id: 4 })));
            assert!(matches!(changed.retrain(), Err(Error::NoVectors)));
            changed.add(rows(&[]), &[]).unwrap();
            assert!(changed == index, "{metric:?}");
        }
    }
}

#[test]
fn the_first_point_is_found_in_every_way() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("one.garlic");
    let point = cloud(1, 1);
    for metric in METRICS {
        for mut index in empty_indexes(metric) {
            let cells = index.cells();
            index.add(rows(&point), &[77]).unwrap();
            let model = Model::from([(77, point.clone())]);
            index.save(&path).unwrap();
            Index::verify(&path).unwrap();
            let opened = Index::open(&path).unwrap();
            for index in [&index, &opened] {
                assert_holds(index, &model, "one point");
                assert_eq!(index.next_id(), 78);
                assert_eq!(index.cells(), cells);
                let expected = distance(metric, &point, &point);
                for search in [
                    Search::new(2),
                    Search::new(2).recall(0.6),
                    Search::new(2).filter(Filter::ids(vec![77])),
                    Search::new(2).probes(cells).bins(1.0).rerank(1),
                ] {
                    let hits = index.search(&point, &search).unwrap().hits;
                    assert_eq!(hits.len(), 1, "{search:?}");
                    assert!(hits[0].id == 77 && close(f64::from(hits[0].distance), expected));
                }
                let radius = expected as f32 + 0.01;
                assert_eq!(
                    index
                        .range(&point, &RangeSearch::new(radius))
                        .unwrap()
                        .hits
                        .len(),
                    1
                );
                let other = Search::new(2).filter(Filter::ids(vec![78]));
                assert_eq!(index.search(&point, &other).unwrap().hits, []);
            }
            assert_eq!(index.remove(&[77]).unwrap(), 1);
            assert_answers_nothing(&index);
            index.compact().unwrap();
            assert!(
                index.cells() > 0 && index.cells() + 1 >= cells,
                "but for its own"
            );
            index.add(rows(&point), &[77]).unwrap();
            assert_holds(&index, &model, "again");
        }
    }
}

#[test]
fn trained_cells_wait_for_their_points() {
    let sample = cloud(6000, 3);
    let builder = Index::builder().config(config(Metric::Euclidean));
    let built = builder.build(rows(&sample)).unwrap();
    let mut index = builder.train(rows(&sample)).unwrap();
    assert_eq!(index.cells(), built.cells());
    assert!(index.cells() > 10);
    let table = |index: &Index| index.calibration().clone();
    assert_eq!(table(&index), table(&built));
    // All points of the first batches go to a few cells; the others stay for those to come.
    let mut sorted: Vec<&[f32]> = rows(&sample).iter().collect();
    sorted.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let sorted = sorted.concat();
    index.add(rows(&sorted[..300 * DIM]), &ids(0..300)).unwrap();
    index.compact().unwrap();
    assert!(index.cells() >= built.cells(), "{}", index.cells());
    let with_points = index.drift().cells;
    assert!(with_points < built.cells(), "{with_points}");
    index
        .add(rows(&sorted[300 * DIM..]), &ids(300..6000))
        .unwrap();
    assert_eq!(index.drift().trainings, 0, "it was trained on so many");
    assert_holds(&index, &model(0, rows(&sorted)), "all");
    // Cells fitted to the sample do for it without reading everything.
    let search = Search::new(10).recall(0.9);
    let stats = index.search(&sorted[..DIM], &search).unwrap().stats;
    assert!(stats.codes > 0 && stats.candidates < 2000, "{stats:?}");
}

#[test]
fn an_index_that_does_not_change_does_not_begin_empty() {
    let mut spilled = Config::default();
    spilled.set("spill", "1.2").unwrap();
    assert!(matches!(Index::empty(DIM, spilled), Err(Error::Spilled)));
    assert!(matches!(
        Index::empty(0, Config::default()),
        Err(Error::Shape(_))
    ));
    let mut wrong = Config::default();
    wrong.bins.bin_size = 0;
    assert!(matches!(
        Index::empty(DIM, wrong),
        Err(Error::Config { .. })
    ));
}

/// From nothing past the first training and past a doubling, with points that go and points that change.
#[test]
fn a_growing_index_keeps_its_points_and_its_targets() {
    let queries = cloud(100, 1001);
    for metric in METRICS {
        let data = cloud(10_300, 2);
        let data = rows(&data);
        let mut index = Index::empty(DIM, config(metric)).unwrap();
        let mut model = Model::new();
        let mut trainings = 0;
        for (number, end) in [1, 2000, 4000, 5000, 7000, 10_300].into_iter().enumerate() {
            let first = model.len();
            let start = index.next_id();
            let new = data.slice(first.min(end)..end);
            let new_ids = ids(start..start + new.len() as u64);
            index.add(new, &new_ids).unwrap();
            model.extend(new_ids.iter().copied().zip(new.iter().map(<[f32]>::to_vec)));
            // The newest point goes: its identifier is not given again, whatever happens to the index.
            if model.len() > 1 {
                let gone = new_ids[new_ids.len() - 1];
                assert_eq!(index.remove(&[gone]).unwrap(), 1);
                model.remove(&gone);
            }
            let changed = cloud(40, 50 + number as u64);
            let some: Vec<u64> = model
                .keys()
                .copied()
                .step_by(model.len().div_ceil(40))
                .collect();
            let changed = rows(&changed).slice(0..some.len());
            index.update(changed, &some).unwrap();
            model.extend(some.into_iter().zip(changed.iter().map(<[f32]>::to_vec)));
            assert!(
                index.next_id() >= start + new.len() as u64,
                "{metric:?} {end}"
            );
            assert_holds(&index, &model, &format!("{metric:?} {end}"));
            if model.len() > 10 {
                for target in [0.9, 0.99] {
                    let when = format!("{metric:?} {end}");
                    assert_meets(&index, &model, rows(&queries), target, &when);
                }
            }
            assert!(index.drift().trainings >= trainings);
            trainings = index.drift().trainings;
            assert_eq!(
                trainings > 0,
                model.len() > EXHAUSTIVE_POINTS,
                "{metric:?} {end}"
            );
        }
        assert!(trainings >= 2, "{metric:?}: {trainings}");
        let again = Index::from_bytes(&index.to_bytes().unwrap()).unwrap();
        assert!(again.next_id() == index.next_id() && again.drift().trainings == trainings);
        assert_holds(&again, &model, "saved");
    }
}

#[test]
fn identifiers_do_not_go_back_with_a_training() {
    let data = cloud(5000, 2);
    let mut index = Index::empty(DIM, config(Metric::Euclidean)).unwrap();
    index.add(rows(&data[..1000 * DIM]), &ids(0..1000)).unwrap();
    index.add(rows(&data[..DIM]), &[70_000]).unwrap();
    index.remove(&[70_000]).unwrap();
    assert_eq!(index.next_id(), 70_001);
    index
        .add(rows(&data[1000 * DIM..]), &ids(1000..5000))
        .unwrap();
    assert_eq!(index.drift().trainings, 1);
    assert_eq!(index.next_id(), 70_001);
    index.compact().unwrap();
    assert_eq!(index.next_id(), 70_001);
    index.retrain().unwrap();
    assert_eq!(index.next_id(), 70_001);
    let again = Index::from_bytes(&index.to_bytes().unwrap()).unwrap();
    assert_eq!(again.next_id(), 70_001);
}

/// A change that fails when a training would have been due leaves the index as it was.
#[test]
fn a_change_that_fails_trains_nothing() {
    for metric in METRICS {
        let data = cloud(4400, 2);
        let mut index = Index::empty(DIM, config(metric)).unwrap();
        index.add(rows(&data[..4000 * DIM]), &ids(0..4000)).unwrap();
        index.remove(&[3]).unwrap();
        let (before, drift) = (index.to_bytes().unwrap(), index.drift());
        let many = &data[4000 * DIM..];
        let with = |last: u64| {
            let mut ids = ids(4000..4400);
            ids[399] = last;
            ids
        };
        for (wrong, name) in [
            (with(17), "is there"),
            (with(4000), "comes twice"),
            (with(1 << 63), "is too large"),
            (ids(4000..4399), "one less than vectors"),
        ] {
            assert!(index.add(rows(many), &wrong).is_err(), "{name}");
            assert!(
                index.to_bytes().unwrap() == before && index.drift() == drift,
                "{name}"
            );
        }
        for value in [f32::NAN, f32::INFINITY, 1e30] {
            let mut wrong = many.to_vec();
            wrong[399 * DIM + 2] = value;
            assert!(index.add(rows(&wrong), &ids(4000..4400)).is_err());
            assert!(index.update(rows(&wrong), &ids(0..400)).is_err());
            assert!(
                index.to_bytes().unwrap() == before && index.drift() == drift,
                "{value}"
            );
        }
        // Longer than all before, which inner products make room for first.
        let longer: Vec<f32> = many.iter().map(|v| 10.0 * v).collect();
        assert!(index.add(rows(&longer), &with(17)).is_err());
        assert!(index.update(rows(&longer), &with(17)).is_err(), "3 is gone");
        assert!(index.to_bytes().unwrap() == before && index.drift() == drift);
        if metric == Metric::Cosine {
            let mut zero = many.to_vec();
            zero[..DIM].fill(0.0);
            let added = index.add(rows(&zero), &ids(4000..4400));
            assert!(matches!(added, Err(Error::ZeroVector { row: 0 })));
            assert!(index.to_bytes().unwrap() == before && index.drift() == drift);
        }
        index.add(rows(many), &ids(4000..4400)).unwrap();
        assert_eq!((index.len(), index.drift().trainings), (4399, 1));
    }
}

/// Nothing but removals, down to nothing: targets are kept on the way.
#[test]
fn an_index_that_only_shrinks_keeps_its_targets() {
    let data = cloud(9000, 2);
    let builder = Index::builder().config(config(Metric::Euclidean));
    let mut index = builder.build(rows(&data)).unwrap();
    let mut model = model(0, rows(&data));
    // Whole regions go first.
    let mut order: Vec<u64> = ids(0..9000);
    order.sort_by(|a, b| model[a][0].total_cmp(&model[b][0]));
    let asked = cloud(400, 1001);
    for (number, gone) in order.chunks(1250).enumerate() {
        assert_eq!(index.remove(gone).unwrap(), gone.len());
        assert_eq!(index.remove(gone).unwrap(), 0, "they are gone");
        model.retain(|id, _| index.contains(*id));
        assert_holds(&index, &model, &format!("{number}"));
        if model.is_empty() {
            break;
        }
        // Queries like the points that are left.
        let least = model.values().map(|v| v[0]).fold(f32::INFINITY, f32::min);
        let like = rows(&asked).iter().filter(|query| query[0] >= least);
        let like = like.take(150).collect::<Vec<_>>().concat();
        for target in [0.9, 0.99] {
            assert_meets(&index, &model, rows(&like), target, &format!("{number}"));
        }
        let drift = index.drift();
        assert_eq!((drift.trainings, drift.built), (0, 9000));
    }
    assert!(index.is_empty());
    assert_eq!(index.next_id(), 9000);
    assert_answers_nothing(&index);
    index.compact().unwrap();
    assert_answers_nothing(&index);
    index.add(rows(&data[..DIM]), &[4]).unwrap();
    assert_holds(&index, &Model::from([(4, data[..DIM].to_vec())]), "again");
}

/// Vectors that were replaced before a training, and after it, are the new ones.
#[test]
fn updates_survive_a_training() {
    let (data, others) = (cloud(6000, 2), cloud(6000, 3));
    let (data, others) = (rows(&data), rows(&others));
    let mut index = Index::empty(DIM, config(Metric::Euclidean)).unwrap();
    let mut model = model(0, data);
    index.add(data.slice(0..4000), &ids(0..4000)).unwrap();
    let mut update = |index: &mut Index, from: usize, to: usize| {
        let ids = ids(from as u64..to as u64);
        let new = others.slice(from..to);
        index.update(new, &ids).unwrap();
        model.extend(ids.into_iter().zip(new.iter().map(<[f32]>::to_vec)));
        model.clone()
    };
    update(&mut index, 100, 700);
    index.add(data.slice(4000..6000), &ids(4000..6000)).unwrap();
    assert_eq!(index.drift().trainings, 1);
    update(&mut index, 500, 1000);
    let now = update(&mut index, 5500, 6000);
    assert_holds(&index, &now, "after the training");
    for (id, vector) in &now {
        assert_eq!(index.get(*id).as_ref(), Some(vector), "{id}");
    }
    index.retrain().unwrap();
    assert_eq!(index.drift().trainings, 2);
    assert_holds(&index, &now, "and another");
}
