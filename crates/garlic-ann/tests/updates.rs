//! What docs/guide/updates.md and docs/guide/filters.md promise of filters, drift and recalibration, on data small enough for brute force.

use std::collections::BTreeMap;

use garlic_ann::{Filter, Index, Rows, Search};
use garlic_linalg::{random_stream, uniform_unit};

const DIM: usize = 16;

/// Points near a curved sheet of four dimensions, all of them shifted by `offset`.
fn sheet(n: usize, seed: u64, offset: f32) -> Vec<f32> {
    let mut rng = random_stream(seed, 3);
    let mut mix = random_stream(11, 3);
    let waves: Vec<[f32; 4]> = (0..DIM)
        .map(|_| std::array::from_fn(|_| 2.0 * uniform_unit(&mut mix) as f32 - 1.0))
        .collect();
    let mut values = Vec::with_capacity(n * DIM);
    for _ in 0..n {
        let t: [f32; 4] = std::array::from_fn(|_| uniform_unit(&mut rng) as f32 * 3.0);
        for wave in &waves {
            let phase: f32 = wave.iter().zip(&t).map(|(a, b)| a * b).sum();
            values.push(20.0 * phase.sin() + uniform_unit(&mut rng) as f32 + offset);
        }
    }
    values
}

fn rows(values: &[f32]) -> Rows<'_> {
    Rows::new(values, DIM).unwrap()
}

/// The truth: vectors by identifier.
type Model = BTreeMap<u64, Vec<f32>>;

fn model(first: u64, rows: Rows<'_>) -> Model {
    (first..).zip(rows.iter().map(<[f32]>::to_vec)).collect()
}

/// Distance and identifier of the nearest points that are allowed.
fn nearest(
    model: &Model,
    query: &[f32],
    k: usize,
    allows: impl Fn(u64) -> bool,
) -> Vec<(f32, u64)> {
    let allowed = model.iter().filter(|(id, _)| allows(**id));
    let mut all: Vec<(f32, u64)> = allowed
        .map(|(id, v)| (garlic_simd::l2_squared(query, v).sqrt(), *id))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all.truncate(k);
    all
}

fn found(index: &Index, query: &[f32], search: &Search) -> Vec<(f32, u64)> {
    let hits = index.search(query, search).unwrap().hits;
    hits.iter().map(|h| (h.distance, h.id)).collect()
}

/// Share of the k nearest points that are found, and how many answers were exact.
fn recall(
    index: &Index,
    model: &Model,
    queries: Rows<'_>,
    search: &Search,
    k: usize,
    allows: impl Fn(u64) -> bool,
) -> (f64, usize) {
    let (mut hits, mut exact) = (0, 0);
    for query in queries.iter() {
        let radius = nearest(model, query, k, &allows)[k - 1].0 * (1.0 + 1e-6);
        let answer = index.search(query, search).unwrap();
        assert!(answer.hits.iter().all(|h| allows(h.id)));
        hits += answer.hits.iter().filter(|h| h.distance <= radius).count();
        exact += usize::from(answer.exact);
    }
    (hits as f64 / (queries.len() * k) as f64, exact)
}

/// A filter keeps its translation to positions; it must notice every change, and every other index.
#[test]
fn one_filter_is_right_before_and_after_every_change() {
    let data = sheet(1500, 1, 0.0);
    let data = rows(&data);
    let asked = sheet(10, 2, 0.0);
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

    let ids: Vec<u64> = (1000..1500).collect();
    index.add(data.slice(1000..1500), &ids).unwrap();
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
    let data = sheet(N, 3, 0.0);
    let data = rows(&data);
    let index = Index::builder().seed(1).build(data).unwrap();
    let truth = model(0, data);
    let mut order: Vec<u64> = (0..N as u64).collect();
    order.sort_by(|a, b| truth[b][0].total_cmp(&truth[a][0]));
    let new = sheet(200, 4, 0.0);
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
            let (got, exact) = recall(&index, &truth, asked, &search, k, allows);
            assert!(got >= 0.92, "one of {share}, k {k}: {got}");
            likely += asked.len() - exact;
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
fn drift_advises_a_rebuild_when_the_data_have_moved_and_not_before() {
    let (data, more, far) = (
        sheet(6000, 5, 0.0),
        sheet(1500, 6, 0.0),
        sheet(1000, 7, 60.0),
    );
    let mut index = Index::builder().seed(2).build(rows(&data)).unwrap();
    let drift = index.drift();
    assert_eq!((drift.built, drift.added, drift.removed), (6000, 0, 0));
    assert_eq!((drift.spread, drift.rebuild), (1.0, false));
    assert_eq!(drift.cells, drift.cells_of_a_build);

    let ids = |first: u64, count: u64| (first..first + count).collect::<Vec<u64>>();
    for (batch, ids) in rows(&more)
        .data()
        .chunks(100 * DIM)
        .zip(ids(6000, 1500).chunks(100))
    {
        index.add(rows(batch), ids).unwrap();
    }
    let same = index.drift();
    assert!((same.spread - 1.0).abs() < 0.2, "{same:?}");
    assert!(!same.rebuild, "{same:?}");

    let mut strange = index.clone();
    strange.add(rows(&far), &ids(7500, 1000)).unwrap();
    let moved = strange.drift();
    assert_eq!((moved.added, moved.trainings), (2500, 0));
    assert!(moved.rebuild && moved.spread > 2.0, "{moved:?}");
    // The ledger survives a new layout and a file, and the index that was copied knows nothing of it.
    strange.compact().unwrap();
    assert!(strange.drift().rebuild);
    assert!(
        Index::from_bytes(&strange.to_bytes())
            .unwrap()
            .drift()
            .rebuild
    );
    assert!(!index.drift().rebuild);
    // A training begins a new count.
    strange.retrain().unwrap();
    let trained = strange.drift();
    assert_eq!((trained.built, trained.added), (8500, 0));
    assert_eq!((trained.trainings, trained.rebuild), (1, false));

    // A few strangers among many points are no reason.
    let few: Vec<u64> = (7500..7502).collect();
    index.add(rows(&far).slice(0..2), &few).unwrap();
    assert!(!index.drift().rebuild, "{:?}", index.drift());
}

/// Points that fill a box: more dimensions, and so harder to find than those of a sheet.
fn cloud(n: usize, seed: u64) -> Vec<f32> {
    let mut rng = random_stream(seed, 4);
    let coordinate = |_| 30.0 * uniform_unit(&mut rng) as f32 - 15.0;
    (0..n * DIM).map(coordinate).collect()
}

/// The targets were measured on points of a sheet; what comes later needs more. An index notices that and makes up for it;
/// what it takes is known when it is measured again.
#[test]
fn targets_are_met_before_and_after_a_recalibration() {
    const BUILT: usize = 5000;
    const ALL: usize = 7000;
    let data = [sheet(BUILT, 8, 0.0), cloud(ALL - BUILT, 9)].concat();
    // In the proportion of the points.
    let asked = [sheet(250, 10, 0.0), cloud(100, 11)].concat();
    let (data, asked) = (rows(&data), rows(&asked));
    let mut index = Index::builder()
        .seed(3)
        .build(data.slice(0..BUILT))
        .unwrap();
    let table = index.tempered().unwrap().calibration().clone();
    for from in (BUILT..ALL).step_by(500) {
        let ids: Vec<u64> = (from as u64..from as u64 + 500).collect();
        index.add(data.slice(from..from + 500), &ids).unwrap();
    }
    let drift = index.drift();
    assert_eq!(drift.trainings, 0, "nothing but the recalibration helps");
    assert!(
        drift.reads_everything || drift.correction > 1.0,
        "{drift:?}"
    );
    assert_eq!(
        index.tempered().unwrap().calibration().settings,
        table.settings
    );
    let truth = model(0, data);
    let mut again = index.clone();
    again.recalibrate().unwrap();
    assert_eq!(again.len(), ALL);
    let drift = again.drift();
    assert!(
        !drift.reads_everything && drift.correction == 1.0,
        "{drift:?}"
    );
    assert_eq!(again.tempered().unwrap().calibration().points, ALL);
    for k in [1, 10] {
        for target in [0.8, 0.9, 0.95, 0.99] {
            let search = Search::new(k).recall(target);
            for (index, when) in [(&index, "before"), (&again, "after")] {
                let (got, _) = recall(index, &truth, asked, &search, k, |_| true);
                assert!(
                    got >= target - 0.03,
                    "k {k} {when}: asked for {target}, got {got}"
                );
            }
        }
    }
}

/// More points than the build had, of the same kind: neighbours lie closer together than when targets were measured. A search
/// makes up for it, and targets are checked as soon as there are a quarter more.
#[test]
fn targets_are_met_as_an_index_grows() {
    const BUILT: usize = 5000;
    const ALL: usize = 8000;
    for (short, data, asked) in [
        (0.02, sheet(ALL, 21, 0.0), sheet(300, 22, 0.0)),
        // Noise in all dimensions is the worst that codes of a few can meet.
        (0.06, cloud(ALL, 21), cloud(300, 22)),
    ] {
        let (data, asked) = (rows(&data), rows(&asked));
        let first = data.slice(0..BUILT);
        let mut index = Index::builder().seed(5).build(first).unwrap();
        let table = |index: &Index| {
            let table = index.tempered().unwrap().calibration();
            (table.points, table.checked)
        };
        for from in (BUILT..ALL).step_by(500) {
            let ids: Vec<u64> = (from as u64..from as u64 + 500).collect();
            index.add(data.slice(from..from + 500), &ids).unwrap();
            // The first number of points that is more than a quarter above the last.
            let checked = if from + 500 < 6500 { 0 } else { 6500 };
            assert_eq!(table(&index), (BUILT, checked));
        }
        let truth = model(0, data);
        let mut raised = 0;
        for target in [0.8, 0.9, 0.95, 0.99] {
            let search = Search::new(10).recall(target);
            let (got, _) = recall(&index, &truth, asked, &search, 10, |_| true);
            assert!(got >= target - short, "asked for {target}, got {got}");
            // More is done than the setting that was measured with fewer points says.
            let table = &index.tempered().unwrap().calibration().settings;
            let measured = table.iter().find(|s| s.k == 10 && s.recall >= target);
            let Some(measured) = measured else { continue };
            let work = index.search(asked.row(0), &search).unwrap().work;
            let more = work.cells_projected > measured.probes as u64
                || work.candidates > measured.rerank as u64;
            raised += usize::from(more);
        }
        assert!(raised > 0, "nothing had to be made up for");
        index = Index::from_bytes(&index.to_bytes()).unwrap();
        assert_eq!(table(&index), (BUILT, 6500));
        index.recalibrate().unwrap();
        assert_eq!(table(&index), (ALL, 0));
    }
}
