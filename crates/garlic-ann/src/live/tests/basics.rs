//! The handle without failures, and the errors of wrong use.

use std::fs;

use garlic_linalg::Rows;

use super::super::record::{Batch, Kind};
use super::super::{Live, Options};
use super::script::{DIM, Script, Step, create, directory, first, look, open, state, vector};
use super::sim::SimDisk;
use crate::Search;
use garlic_core::Error;
use garlic_core::pool::without_threads;

#[test]
fn a_directory_is_what_was_done_to_it() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("live");
    let script = Script::standard();
    let mut live = Live::create(&path, first()).unwrap();
    for number in 0..script.steps.len() {
        script.run(&live, number).unwrap();
        assert_eq!(state(&live.snapshot()), script.states[number + 1]);
        if number % 2 == 0 {
            drop(live);
            live = Live::open(&path).unwrap();
            assert_eq!(state(&live.snapshot()), script.states[number + 1]);
        }
        let reader = Live::open_read_only(&path).unwrap();
        assert_eq!(state(&reader.snapshot()), script.states[number + 1]);
    }
    let status = live.status().unwrap();
    assert_eq!((status.generation, status.log_batches), (3, 4));
    let log = fs::metadata(path.join("log-3")).unwrap().len();
    assert_eq!(status.log_bytes, log);
    let index = fs::metadata(path.join("index-3.garlic")).unwrap().len();
    assert_eq!(status.checkpoint_bytes, index);
    let mut names: Vec<_> = (fs::read_dir(&path).unwrap())
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["CURRENT", "LOCK", "index-3.garlic", "log-3"]);
}

#[test]
fn replaying_gives_the_very_index_that_was_there() {
    let script = Script::standard();
    let disk = SimDisk::new();
    let live = create(&disk, &Options::new()).unwrap();
    for number in 0..script.steps.len() {
        script.run(&live, number).unwrap();
        let again = Live::open_read_only_on(&disk, &directory()).unwrap();
        assert!(
            again.snapshot().to_bytes().unwrap() == live.snapshot().to_bytes().unwrap(),
            "{number}"
        );
    }
}

#[test]
fn one_writer_and_any_number_of_readers() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("live");
    let live = Live::create(&path, first()).unwrap();
    let error = Live::open(&path).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    assert!(error.to_string().contains("read-only"), "{error}");
    let error = Live::create(&path, first()).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    let reader = Live::open_read_only(&path).unwrap();
    for result in [
        reader.remove(&[1]).map(|_| ()),
        reader.add(Rows::new(&vector(50, 0), DIM).unwrap(), &[50]),
        reader.checkpoint(),
        reader.compact(),
        reader.sync(),
    ] {
        assert!(matches!(result, Err(Error::ReadOnly { .. })));
    }
    drop(live);
    let error = Live::create(&path, first()).unwrap_err();
    assert!(error.to_string().contains("open it instead"), "{error}");
    Live::open(&path).unwrap();
}

#[test]
fn a_place_without_a_directory_is_told_and_left_alone() {
    let place = tempfile::tempdir().unwrap();
    for path in [place.path().join("missing"), place.path().to_owned()] {
        for result in [Live::open(&path), Live::open_read_only(&path)] {
            let error = result.unwrap_err();
            assert!(error.to_string().contains("no index directory"), "{error}");
        }
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    let error = Live::create(place.path().join("a/b"), first()).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
}

#[test]
fn what_the_index_refuses_is_not_logged_and_changes_nothing() {
    let disk = SimDisk::new();
    let live = create(&disk, &Options::new()).unwrap();
    let before = live.status().unwrap();
    let two = [vector(50, 0), vector(51, 0)].concat();
    let rows = Rows::new(&two, DIM).unwrap();
    let nan = [f32::NAN, 0.0, 0.0];
    assert!(live.add(rows, &[50, 1]).is_err(), "1 is there");
    assert!(live.add(rows, &[50, 50]).is_err());
    assert!(live.add(rows, &[50, 1 << 63]).is_err());
    assert!(live.add(rows, &[50]).is_err());
    assert!(live.update(rows, &[1, 50]).is_err(), "50 is not there");
    assert!(live.add(Rows::new(&nan, DIM).unwrap(), &[50]).is_err());
    assert!(live.add(Rows::new(&two[..2], 2).unwrap(), &[50]).is_err());
    assert_eq!(live.remove(&[60, 61]).unwrap(), 0);
    live.add(Rows::new(&[], DIM).unwrap(), &[]).unwrap();
    assert_eq!(live.status().unwrap(), before);
    assert_eq!(Some(state(&live.snapshot())), look(&disk));
    live.add(rows, &[50, 51]).unwrap();
    assert_eq!(live.status().unwrap().log_batches, 1);
}

#[test]
fn a_snapshot_stays_what_it_was() {
    let live = Live::new(first());
    let script = Script::standard();
    let before = live.snapshot();
    for number in 0..script.steps.len() {
        script.run(&live, number).unwrap();
    }
    assert_eq!(state(&before), script.states[0]);
    assert_eq!(state(&live.snapshot()), *script.states.last().unwrap());
    let query = vector(32, 8);
    let hits = live
        .search(&query, &Search::new(1).exact(true))
        .unwrap()
        .hits;
    assert_eq!((hits[0].id, hits[0].distance), (32, 0.0));
    let rows = Rows::new(&query, DIM).unwrap();
    let answers = live
        .search_batch(rows, &Search::new(1).exact(true))
        .unwrap();
    assert_eq!(answers[0].hits, hits);
    assert_eq!(live.status(), None);
    live.sync().unwrap();
}

#[test]
fn a_long_log_becomes_a_checkpoint() {
    let disk = SimDisk::new();
    let live = create(&disk, &Options::new().log_limit(500)).unwrap();
    let mut generations = Vec::new();
    for id in 20..50 {
        live.add(Rows::new(&vector(id, 0), DIM).unwrap(), &[id])
            .unwrap();
        let status = live.status().unwrap();
        assert!(status.log_bytes <= 500 + 72, "{status:?}");
        assert_eq!(status.failed_checkpoint, None);
        generations.push(status.generation);
    }
    assert!(generations.is_sorted());
    assert!(*generations.last().unwrap() >= 4, "{generations:?}");
    assert_eq!(Some(state(&live.snapshot())), look(&disk));
}

#[test]
fn a_torn_tail_is_cut_by_a_writer_and_overlooked_by_a_reader() {
    let script = Script::new(vec![Step::Add(vec![20]), Step::Add(vec![21, 22])]);
    let disk = SimDisk::new();
    let live = create(&disk, &Options::new()).unwrap();
    script.run(&live, 0).unwrap();
    let whole = live.status().unwrap().log_bytes;
    script.run(&live, 1).unwrap();
    drop(live);
    let log = directory().join("log-1");
    disk.edit(&log, |bytes| bytes.truncate(bytes.len() - 1));
    assert_eq!(look(&disk).as_ref(), Some(&script.states[1]));
    let live = open(&disk, &Options::new()).unwrap();
    assert_eq!(live.status().unwrap().log_bytes, whole);
    script.run(&live, 1).unwrap();
    drop(live);
    assert_eq!(look(&disk).as_ref(), Some(&script.states[2]));
}

#[test]
fn damage_is_an_error_that_says_where() {
    let script = Script::new(vec![Step::Add(vec![20]), Step::Add(vec![21, 22])]);
    let disk = SimDisk::new();
    let live = create(&disk, &Options::new()).unwrap();
    script.run(&live, 0).unwrap();
    script.run(&live, 1).unwrap();
    drop(live);
    let whole = disk.copy();
    disk.edit(&directory().join("log-1"), |bytes| bytes[32 + 50] ^= 1);
    let before = disk.fingerprint();
    for result in [
        open(&disk, &Options::new()),
        Live::open_read_only_on(&disk, &directory()),
    ] {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Log { offset: 32, .. }), "{error}");
        assert!(error.to_string().contains("byte 32"), "{error}");
    }
    assert_eq!(disk.fingerprint(), before, "nothing is changed");

    for (file, part) in [
        ("CURRENT", "checksum is wrong"),
        ("index-1.garlic", "damaged"),
        ("log-1", "header is damaged"),
    ] {
        let disk = whole.copy();
        disk.edit(&directory().join(file), |bytes| bytes[29] ^= 1);
        let error = open(&disk, &Options::new()).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains(file), "{error}");
    }

    // A valid record that does not fit this checkpoint.
    let disk = whole.copy();
    let batch = Batch {
        kind: Kind::Update,
        ids: &[60],
        vectors: &vector(60, 0),
        block: None,
    };
    let (head, vectors, padding) = batch.encode(1, 0, 0);
    disk.edit(&directory().join("log-1"), |bytes| {
        bytes.truncate(32);
        bytes.extend([&head, &*vectors, &padding].into_iter().flatten());
    });
    let error = open(&disk, &Options::new()).unwrap_err();
    assert!(matches!(error, Error::Log { offset: 32, .. }), "{error}");
    assert!(error.to_string().contains("does not take"), "{error}");
}

/// A checkpoint that is opened for writing is checked completely, because the next one would give damage new
/// checksums.
#[test]
fn a_damaged_checkpoint_is_not_written_on() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("live");
    drop(Live::create(&path, first()).unwrap());
    let files = fs::read_dir(&path)
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut files = files.filter(|file| file.extension().is_some_and(|e| e == "garlic"));
    let checkpoint = files.next().unwrap();
    let mut bytes = fs::read(&checkpoint).unwrap();
    // The last byte belongs to an identifier.
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    fs::write(&checkpoint, bytes).unwrap();
    let error = Live::open(&path).unwrap_err();
    assert!(matches!(error, Error::Format { .. }), "{error}");
}

/// A directory created from a changed index behaves like a reopened one.
#[test]
fn a_changed_index_makes_the_same_directory() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("live");
    let mut index = first();
    let new = |ids: std::ops::Range<u64>| ids.flat_map(|id| vector(id, 3)).collect::<Vec<f32>>();
    let ids: Vec<u64> = (1000..1300).collect();
    index
        .add(Rows::new(&new(1000..1300), DIM).unwrap(), &ids)
        .unwrap();
    index.remove(&ids[..40]).unwrap();
    let live = Live::create(&path, index).unwrap();
    let ids: Vec<u64> = (2000..2600).collect();
    for ids in ids.chunks(150) {
        let rows = new(ids[0]..ids[0] + 150);
        live.add(Rows::new(&rows, DIM).unwrap(), ids).unwrap();
    }
    let bytes = live.snapshot().to_bytes().unwrap();
    drop(live);
    assert!(Live::open(&path).unwrap().snapshot().to_bytes().unwrap() == bytes);
}

/// A batch is acknowledged before its checkpoint. It is kept even if no threads can be started.
#[test]
fn a_checkpoint_needs_no_threads() {
    let disk = SimDisk::new();
    let live = create(&disk, &Options::new()).unwrap();
    live.add(Rows::new(&vector(20, 0), DIM).unwrap(), &[20])
        .unwrap();
    without_threads(|| {
        let added = live.add(Rows::new(&vector(21, 0), DIM).unwrap(), &[21]);
        assert!(matches!(added, Err(Error::Threads { .. })));
        live.checkpoint().unwrap();
        live.compact().unwrap();
    });
    assert_eq!(live.status().unwrap().generation, 3);
    assert_eq!(Some(state(&live.snapshot())), look(&disk));
}

/// A log that cannot be replayed without threads is not damaged.
#[test]
fn a_log_that_no_thread_can_replay_is_not_damaged() {
    let disk = SimDisk::new();
    let live = create(&disk, &Options::new()).unwrap();
    live.add(Rows::new(&vector(20, 0), DIM).unwrap(), &[20])
        .unwrap();
    drop(live);
    let before = disk.fingerprint();
    without_threads(|| {
        for result in [
            open(&disk, &Options::new()),
            Live::open_read_only_on(&disk, &directory()),
        ] {
            let error = result.unwrap_err();
            assert!(matches!(error, Error::Threads { .. }), "{error}");
        }
    });
    assert_eq!(disk.fingerprint(), before, "nothing is changed");
    open(&disk, &Options::new()).unwrap();
}
