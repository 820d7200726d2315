//! A build tells how far it is, where its time went, and ends soon after it is cancelled.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::testdata::{rows, sheet};
use garlic_ann::{Cancel, Error, Index, Stage};

const DIM: usize = 16;

#[test]
fn progress_names_every_stage_and_goes_to_its_end() {
    let values = sheet(3000, DIM, 1);
    let seen = Mutex::new(Vec::new());
    let builder = Index::builder().threads(1).progress(|p| {
        let done = p.done as f64 / p.total as f64;
        seen.lock().unwrap().push((p.stage, done));
    });
    let (_, report) = builder.build_reported(rows(&values, DIM)).unwrap();
    drop(builder);
    let seen = seen.into_inner().unwrap();
    let stages: Vec<Stage> = seen
        .chunk_by(|a, b| a.0 == b.0)
        .map(|told| told[0].0)
        .collect();
    assert_eq!(
        stages,
        [Stage::Prepare, Stage::Train, Stage::Bins, Stage::Calibrate],
        "one after the other"
    );
    for told in seen.chunk_by(|a, b| a.0 == b.0) {
        let stage = told[0].0;
        assert!(told.is_sorted_by(|a, b| a.1 <= b.1), "{told:?}");
        assert_eq!(told[told.len() - 1].1, 1.0, "{stage:?}");
        assert!(told.len() > 2 || stage == Stage::Prepare, "{told:?}");
    }
    let s = report.seconds;
    let parts = [s.prepare, s.train, s.bins, s.calibrate];
    assert!(parts.iter().all(|part| *part > 0.0), "{s:?}");
    let sum = parts.iter().sum::<f64>() + s.assign;
    assert!(sum <= s.total && sum > 0.9 * s.total, "{s:?}");
}

#[test]
fn a_raised_flag_cancels() {
    let values = sheet(3000, DIM, 1);
    let rows = rows(&values, DIM);
    let flag = Arc::new(AtomicBool::new(true));
    let cancel = Cancel::new(flag.clone());
    let result = Index::builder().cancel(cancel.clone()).build(rows);
    assert!(matches!(result, Err(Error::Cancelled)));

    for stage in [Stage::Prepare, Stage::Train, Stage::Bins, Stage::Calibrate] {
        flag.store(false, Ordering::Relaxed);
        let after = AtomicUsize::new(0);
        let builder = Index::builder().threads(1).cancel(cancel.clone());
        let builder = builder.progress(|p| {
            if flag.load(Ordering::Relaxed) {
                after.fetch_add(1, Ordering::Relaxed);
            }
            if p.stage == stage {
                flag.store(true, Ordering::Relaxed);
            }
        });
        assert!(
            matches!(builder.build(rows), Err(Error::Cancelled)),
            "{stage:?}"
        );
        drop(builder);
        let after = after.load(Ordering::Relaxed);
        assert!(after <= 1, "{stage:?} goes on for {after} steps");
    }
}
