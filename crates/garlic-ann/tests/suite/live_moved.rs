//! A directory that is moved, replaced or removed under its writer: the writer notices, and leaves what is at the old
//! path now alone.

use std::fs;
use std::path::Path;

use crate::testdata::lattice;
use garlic_ann::{Error, Index, Live, Rows};

const DIM: usize = 4;

fn vectors(count: usize) -> Vec<f32> {
    lattice(count, DIM)
}

fn built(points: usize) -> Index {
    let builder = Index::builder().threads(1);
    builder
        .build(Rows::new(&vectors(points), DIM).unwrap())
        .unwrap()
}

fn add(live: &Live, id: u64) -> garlic_ann::Result<()> {
    live.add(Rows::new(&vectors(1), DIM)?, &[id])
}

/// Every way to write fails with [`Error::Moved`] and names the path.
fn assert_moved(live: &Live, path: &Path) {
    for result in [
        add(live, 5000),
        live.remove(&[1]).map(|_| ()),
        live.update(Rows::new(&vectors(1), DIM).unwrap(), &[1]),
        live.compact(),
        live.recalibrate(),
        live.checkpoint(),
        live.sync(),
    ] {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Moved { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(path.to_str().unwrap()), "{text}");
        assert!(text.contains("moved, replaced or removed"), "{text}");
    }
}

#[test]
fn the_writer_of_a_renamed_directory_leaves_its_successor_alone() {
    let place = tempfile::tempdir().unwrap();
    let (path, aside) = (place.path().join("sw"), place.path().join("sw.old"));
    let old = Live::create(&path, built(500)).unwrap();
    add(&old, 1000).unwrap();
    fs::rename(&path, &aside).unwrap();
    let new = Live::create(&path, built(1000)).unwrap();
    for id in 1000..1020 {
        add(&new, id).unwrap();
    }
    assert_moved(&old, &path);
    drop(old);
    new.checkpoint().unwrap();
    add(&new, 1020).unwrap();
    drop(new);
    assert_eq!(Live::open(&path).unwrap().snapshot().len(), 1021);
    let old = Live::open(&aside).unwrap();
    assert_eq!(
        old.snapshot().len(),
        501,
        "what was acknowledged moved along"
    );
    old.compact().unwrap();
}

#[test]
fn a_directory_that_comes_back_is_written_again() {
    let place = tempfile::tempdir().unwrap();
    let (path, aside) = (place.path().join("live"), place.path().join("aside"));
    let live = Live::create(&path, built(60)).unwrap();
    fs::rename(&path, &aside).unwrap();
    assert_moved(&live, &path);
    assert_eq!(live.snapshot().len(), 60, "searches go on");
    fs::rename(&aside, &path).unwrap();
    add(&live, 1000).unwrap();
    live.compact().unwrap();
    drop(live);
    assert_eq!(Live::open(&path).unwrap().snapshot().len(), 61);
}

/// Batches in a file that has no name any more would be acknowledged and lost.
#[test]
fn nothing_is_acknowledged_in_a_directory_that_is_gone() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("live");
    let live = Live::create(&path, built(60)).unwrap();
    fs::remove_dir_all(&path).unwrap();
    assert_moved(&live, &path);
    assert!(!path.exists(), "it is not made again");
}

/// A second writer takes the lock on another file `LOCK`; there must not be two.
#[test]
fn a_writer_without_its_lock_file_stops() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("live");
    let first = Live::create(&path, built(60)).unwrap();
    fs::remove_file(path.join("LOCK")).unwrap();
    let second = Live::open(&path).unwrap();
    add(&second, 1000).unwrap();
    assert_moved(&first, &path);
    drop(first);
    second.checkpoint().unwrap();
    drop(second);
    assert_eq!(Live::open(&path).unwrap().snapshot().len(), 61);
}

#[cfg(unix)]
#[test]
fn a_link_that_names_another_directory_now_is_noticed() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    drop(Live::create(at("one"), built(60)).unwrap());
    drop(Live::create(at("two"), built(80)).unwrap());
    std::os::unix::fs::symlink(at("one"), at("now")).unwrap();
    let live = Live::open(at("now")).unwrap();
    add(&live, 1000).unwrap();
    fs::remove_file(at("now")).unwrap();
    std::os::unix::fs::symlink(at("two"), at("now")).unwrap();
    assert_moved(&live, &at("now"));
    drop(live);
    assert_eq!(Live::open(at("one")).unwrap().snapshot().len(), 61);
    assert_eq!(Live::open(at("two")).unwrap().snapshot().len(), 80);
}
