//! Data that move: what an index tells about it, and recall targets meanwhile. docs/guide/updates.md promises it.

use crate::testdata::truth::Recall;
use crate::testdata::{ids, sheet, uniform};
use garlic_ann::{Index, Rows, Search};

const DIM: usize = 16;

fn rows(values: &[f32]) -> Rows<'_> {
    crate::testdata::rows(values, DIM)
}

#[test]
fn drift_advises_a_rebuild_when_the_data_have_moved_and_not_before() {
    let [data, more, mut far] =
        [(6000, 5), (1500, 6), (1000, 7)].map(|(n, seed)| sheet(n, DIM, seed));
    far.iter_mut().for_each(|v| *v += 60.0);
    let mut index = Index::builder().seed(2).build(rows(&data)).unwrap();
    let drift = index.drift();
    assert_eq!((drift.built, drift.added, drift.removed), (6000, 0, 0));
    assert_eq!((drift.spread, drift.rebuild), (1.0, false));
    assert_eq!(drift.cells, drift.cells_of_a_build);

    let new = ids(6000..7500);
    for (batch, ids) in more.chunks(100 * DIM).zip(new.chunks(100)) {
        index.add(rows(batch), ids).unwrap();
    }
    let same = index.drift();
    assert!((same.spread - 1.0).abs() < 0.05, "{same:?}");
    assert!(!same.rebuild, "{same:?}");

    let mut strange = index.clone();
    strange.add(rows(&far), &ids(7500..8500)).unwrap();
    let moved = strange.drift();
    assert_eq!((moved.added, moved.trainings), (2500, 0));
    assert!(moved.rebuild && moved.spread > 2.0, "{moved:?}");
    // The count survives a new layout and a file, and the index that was copied knows nothing of it.
    strange.compact().unwrap();
    assert!(strange.drift().rebuild);
    let again = Index::from_bytes(&strange.to_bytes().unwrap()).unwrap();
    assert_eq!(again.drift(), strange.drift());
    assert!(!index.drift().rebuild);
    // A training begins a new count.
    strange.retrain().unwrap();
    let trained = strange.drift();
    assert_eq!((trained.built, trained.added), (8500, 0));
    assert_eq!((trained.trainings, trained.rebuild), (1, false));

    // A few points far from every cell are no reason.
    index.add(rows(&far).slice(0..2), &ids(7500..7502)).unwrap();
    assert!(!index.drift().rebuild, "{:?}", index.drift());
}

/// Points that fill a box: more dimensions, and so harder to find than those of a sheet.
fn cloud(n: usize, seed: u64) -> Vec<f32> {
    let values = uniform(n, DIM, seed).into_iter();
    values.map(|v| 30.0 * v - 15.0).collect()
}

/// The targets were measured on points of a sheet; what comes later needs more. An index notices that and makes up for it;
/// what it takes is known when it is measured again.
#[test]
fn targets_are_met_before_and_after_a_recalibration() {
    const BUILT: usize = 5000;
    const ALL: usize = 7000;
    let data = [sheet(BUILT, DIM, 8), cloud(ALL - BUILT, 9)].concat();
    // In the proportion of the points.
    let asked = [sheet(250, DIM, 10), cloud(100, 11)].concat();
    let (data, asked) = (rows(&data), rows(&asked));
    let mut index = Index::builder()
        .seed(3)
        .build(data.slice(0..BUILT))
        .unwrap();
    let table = index.calibration().clone();
    for from in (BUILT..ALL).step_by(500) {
        let new = ids(from as u64..from as u64 + 500);
        index.add(data.slice(from..from + 500), &new).unwrap();
    }
    let drift = index.drift();
    assert_eq!(drift.trainings, 0, "nothing but the recalibration helps");
    assert!(
        drift.reads_everything || drift.correction > 1.0,
        "{drift:?}"
    );
    assert_eq!(index.calibration().settings, table.settings);
    let mut again = index.clone();
    again.recalibrate().unwrap();
    assert_eq!(again.len(), ALL);
    let drift = again.drift();
    assert!(
        !drift.reads_everything && drift.correction == 1.0,
        "{drift:?}"
    );
    assert_eq!(again.calibration().points, ALL);
    for k in [1, 10] {
        for target in [0.8, 0.9, 0.95, 0.99] {
            let search = Search::new(k).recall(target);
            for (index, when) in [(&index, "before"), (&again, "after")] {
                let recall = Recall::of_rows(index, data, asked, &search);
                recall.assert_meets(target, &format!("k {k} {when}"));
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
    for (kind, data, asked) in [
        ("sheet", sheet(ALL, DIM, 21), sheet(300, DIM, 22)),
        // Noise in all dimensions is the worst that codes of a few can meet.
        ("box", cloud(ALL, 21), cloud(300, 22)),
    ] {
        let (data, asked) = (rows(&data), rows(&asked));
        let first = data.slice(0..BUILT);
        let mut index = Index::builder().seed(5).build(first).unwrap();
        let table = |index: &Index| {
            let table = index.calibration();
            (table.points, table.checked)
        };
        for from in (BUILT..ALL).step_by(500) {
            let new = ids(from as u64..from as u64 + 500);
            index.add(data.slice(from..from + 500), &new).unwrap();
            // The first number of points that is more than a quarter above the last.
            let checked = if from + 500 < 6500 { 0 } else { 6500 };
            assert_eq!(table(&index), (BUILT, checked));
        }
        let mut raised = 0;
        for target in [0.8, 0.9, 0.95, 0.99] {
            let search = Search::new(10).recall(target);
            let recall = Recall::of_rows(&index, data, asked, &search);
            recall.assert_meets(target, kind);
            // More is done than the setting that was measured with fewer points says.
            let table = &index.calibration().settings;
            let measured = table.iter().find(|s| s.k == 10 && s.recall >= target);
            let Some(measured) = measured else { continue };
            let work = index.search(asked.row(0), &search).unwrap().stats;
            let more = work.cells_projected > measured.probes as u64
                || work.candidates > measured.rerank as u64;
            raised += usize::from(more);
        }
        assert!(raised > 0, "nothing had to be made up for");
        index = Index::from_bytes(&index.to_bytes().unwrap()).unwrap();
        assert_eq!(table(&index), (BUILT, 6500));
        index.recalibrate().unwrap();
        assert_eq!(table(&index), (ALL, 0));
    }
}
