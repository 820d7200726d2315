//! Training while writers continue. Tests hold the gate of a handle to delay its training.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use garlic_linalg::Rows;

use super::super::record::{Batch, Kind};
use super::super::training::Training;
use super::super::{Live, Options, Writer, WriterState};
use super::sim::{NO_SPACE, Plan, SimDisk};
use crate::Search;
use crate::config::Config;
use crate::segment::Index;
use crate::testdata::{assert_meets, ids, uniform};

const DIM: usize = 8;
/// Number of points that most tests begin with: a few less than make a training due.
const FIRST: u64 = 4000;

type Model = BTreeMap<u64, Vec<f32>>;

fn cloud(count: usize, seed: u64) -> Vec<f32> {
    uniform(count, DIM, seed)
}

fn rows(values: &[f32]) -> Rows<'_> {
    crate::testdata::rows(values, DIM)
}

/// An index that has grown from nothing and is about to be trained for the first time.
fn first() -> (Index, Model) {
    static FIRST_INDEX: OnceLock<Index> = OnceLock::new();
    let data = cloud(FIRST as usize, 1);
    let grow = || {
        let mut index = Index::empty(DIM, Config::default()).unwrap();
        index.add(rows(&data), &ids(0..FIRST)).unwrap();
        index
    };
    let index = FIRST_INDEX.get_or_init(grow).clone();
    let model = (0..).zip(rows(&data).iter().map(<[f32]>::to_vec)).collect();
    (index, model)
}

/// Changes to a handle and to the model of what it should hold.
struct Changes<'a> {
    live: &'a Live,
    model: &'a mut Model,
}

impl Changes<'_> {
    fn put(&mut self, ids: &[u64], vectors: Rows<'_>) {
        let pairs = ids.iter().copied().zip(vectors.iter().map(<[f32]>::to_vec));
        self.model.extend(pairs);
    }

    fn add(&mut self, new: std::ops::Range<u64>) {
        let (ids, data) = (
            ids(new.clone()),
            cloud((new.end - new.start) as usize, new.start),
        );
        self.live.add(rows(&data), &ids).unwrap();
        self.put(&ids, rows(&data));
    }

    fn update(&mut self, old: std::ops::Range<u64>) {
        let (ids, data) = (ids(old.clone()), cloud((old.end - old.start) as usize, 7));
        self.live.update(rows(&data), &ids).unwrap();
        self.put(&ids, rows(&data));
    }

    fn remove(&mut self, old: std::ops::Range<u64>) {
        let ids = ids(old);
        assert_eq!(self.live.remove(&ids).unwrap(), ids.len());
        self.model.retain(|id, _| !ids.contains(id));
    }
}

#[track_caller]
fn assert_holds(live: &Live, model: &Model) {
    let index = live.snapshot();
    assert_eq!(index.len(), model.len());
    for (id, vector) in model {
        assert_eq!(index.get(*id).as_ref(), Some(vector), "{id}");
    }
}

fn is_idle(live: &Live) -> bool {
    live.training() == Training::default()
}

/// Adds, updates and removes while the index is being trained, then lets the training end.
fn change_during_a_training(live: &Live, model: &mut Model) {
    let held = live.shared.gate.lock().unwrap();
    assert!(is_idle(live));
    let mut changes = Changes { live, model };
    changes.add(FIRST..FIRST + 200);
    assert!(live.training().running);
    changes.add(5000..5100);
    changes.update(10..60);
    changes.update(4100..4150);
    changes.update(5010..5020);
    changes.remove(0..30);
    changes.remove(4190..4200);
    changes.remove(5090..5100);
    changes.add(20..25);
    assert_holds(live, model);
    assert_eq!(
        live.snapshot().drift().trainings,
        0,
        "nothing is trained yet"
    );
    drop(held);
    live.wait();
    assert!(is_idle(live));
    assert_eq!(live.snapshot().drift().trainings, 1);
    assert_holds(live, model);
}

#[test]
fn changes_during_a_training_are_there_afterwards() {
    let (index, mut model) = first();
    let live = Live::new(index);
    change_during_a_training(&live, &mut model);
    let next = live.snapshot().next_id();
    assert_eq!(next, 5100, "those that were removed count");
    // They are found by searches, too.
    for (id, vector) in model.iter().step_by(97) {
        let answer = live.search(vector, &Search::new(1).exact(true)).unwrap();
        assert_eq!(answer.hits[0].id, *id);
    }
}

#[test]
fn changes_during_a_training_are_there_after_reopening() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("live");
    let (index, mut model) = first();
    let live = Live::create(&path, index).unwrap();
    change_during_a_training(&live, &mut model);
    let status = live.status().unwrap();
    assert_eq!(
        (status.generation, status.log_batches),
        (2, 0),
        "a checkpoint"
    );
    let bytes = live.snapshot().to_bytes().unwrap();
    drop(live);
    let live = Live::open(&path).unwrap();
    assert!(live.snapshot().to_bytes().unwrap() == bytes && is_idle(&live));
    Changes {
        live: &live,
        model: &mut model,
    }
    .add(6000..6010);
    drop(live);
    assert_holds(&Live::open(&path).unwrap(), &model);
    assert_holds(&Live::open_read_only(&path).unwrap(), &model);
}

/// A cancelled training is due again when the directory is opened.
#[test]
fn a_handle_dropped_during_a_training_loses_nothing() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("live");
    let (index, mut model) = first();
    let live = Live::create(&path, index).unwrap();
    let (shared, cancel) = (Arc::clone(&live.shared), Arc::clone(&live.trainer.cancel));
    let held = shared.gate.lock().unwrap();
    let mut changes = Changes {
        live: &live,
        model: &mut model,
    };
    changes.add(FIRST..FIRST + 200);
    changes.remove(0..30);
    changes.update(100..130);
    assert!(live.training().running);
    thread::scope(|scope| {
        let dropping = scope.spawn(move || drop(live));
        while !cancel.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        assert!(!dropping.is_finished(), "it waits for the thread");
        drop(held);
    });
    // The lock is its handle's.
    drop(shared);
    let reader = Live::open_read_only(&path).unwrap();
    assert_holds(&reader, &model);
    assert_eq!(reader.snapshot().drift().trainings, 0, "it was given up");
    let live = Live::open(&path).unwrap();
    assert_holds(&live, &model);
    live.wait();
    assert_eq!(live.snapshot().drift().trainings, 1);
    assert_holds(&live, &model);
    assert_eq!(live.status().unwrap().generation, 2);
}

/// Fails unless searches for the ten nearest points meet their targets.
#[track_caller]
fn assert_meets_targets(index: &Index, model: &Model, queries: Rows<'_>) {
    for target in [0.9, 0.99] {
        let search = Search::new(10).recall(target);
        let shares: Vec<f64> = queries
            .iter()
            .map(|query| share(index, model, query, &search))
            .collect();
        assert_meets(&shares, target, "while it grows");
    }
}

/// Share of the ten nearest points that a search finds.
fn share(index: &Index, model: &Model, query: &[f32], search: &Search) -> f64 {
    let distance = |v: &Vec<f32>| garlic_simd::l2_squared(query, v).sqrt();
    let mut all: Vec<f32> = model.values().map(distance).collect();
    all.sort_by(f32::total_cmp);
    let hits = index.search(query, search).unwrap().hits;
    assert_eq!(hits.len(), 10);
    let near = hits.iter().filter(|h| h.distance <= all[9] * (1.0 + 1e-6));
    near.count() as f64 / 10.0
}

/// A read-only handle, or one whose training was cancelled, does more work to meet its targets.
#[test]
fn a_reader_of_a_grown_directory_meets_its_targets() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("live");
    // Axes and cells are fitted to points on a plane. The added points lie in a ball around it.
    let mut flat = cloud(5000, 2);
    flat.chunks_exact_mut(DIM)
        .for_each(|row| row[2..].iter_mut().for_each(|v| *v *= 0.001));
    let index = Index::builder().build(rows(&flat)).unwrap();
    let mut model: Model = (0..).zip(rows(&flat).iter().map(<[f32]>::to_vec)).collect();
    let live = Live::create(&path, index).unwrap();
    let shared = Arc::clone(&live.shared);
    let held = shared.gate.lock().unwrap();
    let before = live.snapshot();
    Changes {
        live: &live,
        model: &mut model,
    }
    .add(5000..8000);
    let reader = Live::open_read_only(&path).unwrap();
    // Queries like the points.
    let mut queries = cloud(200, 3);
    queries[..125 * DIM]
        .chunks_exact_mut(DIM)
        .for_each(|row| row[2..].iter_mut().for_each(|v| *v *= 0.001));
    assert_meets_targets(&reader.snapshot(), &model, rows(&queries));
    assert_eq!(before.len(), 5000);
    drop(held);
    live.wait();
    assert_meets_targets(&live.snapshot(), &model, rows(&queries));
}

/// Writers that are far ahead of a training wait for it.
#[test]
fn writers_far_ahead_of_a_training_wait_for_it() {
    let (index, _) = first();
    let live = Live::new(index);
    let held = live.shared.gate.lock().unwrap();
    let add = |new: std::ops::Range<u64>| {
        let data = cloud((new.end - new.start) as usize, new.start);
        live.add(rows(&data), &ids(new)).unwrap();
    };
    add(4000..4100);
    add(4100..6000);
    assert!(
        live.training().running,
        "less than half ahead: nobody waits"
    );
    thread::scope(|scope| {
        let writers = [6000..6200, 6200..6400, 6400..6600].map(|new| scope.spawn(move || add(new)));
        while live.snapshot().len() < 6600 {
            thread::yield_now();
        }
        let waiting = scope.spawn(|| live.wait());
        thread::sleep(Duration::from_millis(100));
        assert!(writers.iter().all(|writer| !writer.is_finished()));
        assert!(!waiting.is_finished());
        drop(held);
    });
    assert!(is_idle(&live));
    assert_eq!(live.snapshot().len(), 6600);
    assert!(live.snapshot().drift().trainings >= 1);
}

#[test]
fn a_journal_notes_what_comes_while_one_job_is_done() {
    let (mut index, _) = first();
    let mut state = WriterState::from(Writer::Memory);
    let data = cloud(2100, 5);
    let batch = |count: usize| Batch {
        kind: Kind::Add,
        ids: &[9; 2100][..count],
        vectors: &data[..count * DIM],
        block: None,
    };
    assert!(state.job(&index).is_none(), "nothing is due");
    state.record(&batch(2100));
    assert!(!state.is_ahead(), "and nothing is noted");
    let some = rows(&data).slice(0..200);
    index.add_only(some, &ids(FIRST..FIRST + 200)).unwrap();
    assert!(state.job(&index).is_some());
    assert!(state.job(&index).is_none(), "one at a time");
    assert!(state.training().running);
    state.record(&batch(2100));
    assert!(!state.is_ahead(), "half as many as there were");
    state.record(&batch(1));
    assert!(state.is_ahead());

    let mut reader = WriterState::from(Writer::ReadOnly);
    assert!(reader.job(&index).is_none(), "nobody trains for a reader");
}

/// A training whose checkpoint cannot be written changes nothing, reports the failure and is retried later.
#[test]
fn a_training_that_fails_leaves_everything_and_is_tried_again() {
    let disk = SimDisk::new();
    let path = super::script::directory();
    let (index, mut model) = first();
    let live = Live::create_on(Arc::new(disk.clone()), &path, index, &Options::new()).unwrap();
    let held = live.shared.gate.lock().unwrap();
    let mut changes = Changes {
        live: &live,
        model: &mut model,
    };
    changes.add(FIRST..FIRST + 200);
    disk.plan(Plan::Fail {
        at: 0,
        code: NO_SPACE,
        forever: true,
        half: false,
    });
    drop(held);
    live.wait();
    disk.plan(Plan::Sound);
    let training = live.training();
    assert!(!training.running);
    assert!(training.failed.unwrap().contains("os error 28"));
    changes.add(4200..4300);
    live.wait();
    assert_eq!(live.snapshot().drift().trainings, 0, "too early");
    changes.add(4300..4630);
    live.wait();
    assert!(is_idle(&live));
    assert_eq!(live.snapshot().drift().trainings, 1);
    assert_holds(&live, &model);
    drop(live);
    let again = Live::open_read_only_on(&disk, &path).unwrap();
    assert_holds(&again, &model);
}
