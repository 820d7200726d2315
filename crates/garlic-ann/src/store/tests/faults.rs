//! A device that fails at every step of saving, one after the other.

use std::cell::Cell as Counter;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;

use garlic_core::file::atomic::{Disk, FileOps, replace};
use garlic_core::file::{self, Decode, Fault, Reader};

use super::super::{Encoded, save_to};
use super::*;
use crate::Error;

/// `ENOSPC`, no space left on device.
const NO_SPACE: i32 = 28;
/// `EIO`, input/output error.
const IO_ERROR: i32 = 5;

/// A step of saving.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Create,
    Write,
    Flush,
    Sync,
    Rename,
    SyncDirectory,
}

/// A disk whose operation number `fail_at` fails, as do all writes after it.
struct Faulty {
    fail_at: usize,
    code: i32,
    /// Upper limit of the bytes per write, to test short writes.
    short: usize,
    state: Rc<State>,
}

#[derive(Default)]
struct State {
    count: Counter<usize>,
    failed: Counter<Option<Step>>,
}

impl Faulty {
    fn new(fail_at: usize, code: i32, short: usize) -> Self {
        Self {
            fail_at,
            code,
            short,
            state: Rc::default(),
        }
    }
}

fn step(state: &State, fail_at: usize, code: i32, step: Step) -> io::Result<()> {
    let count = state.count.replace(state.count.get() + 1);
    if count == fail_at || (count > fail_at && step == Step::Write) {
        state.failed.set(state.failed.get().or(Some(step)));
        return Err(io::Error::from_raw_os_error(code));
    }
    Ok(())
}

struct FaultyFile {
    file: File,
    fail_at: usize,
    code: i32,
    short: usize,
    state: Rc<State>,
}

impl Write for FaultyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        step(&self.state, self.fail_at, self.code, Step::Write)?;
        self.file.write(&bytes[..bytes.len().min(self.short)])
    }

    fn flush(&mut self) -> io::Result<()> {
        step(&self.state, self.fail_at, self.code, Step::Flush)?;
        self.file.flush()
    }
}

impl FileOps for Faulty {
    type File = FaultyFile;

    fn create(&self, temporary: &Path) -> io::Result<FaultyFile> {
        step(&self.state, self.fail_at, self.code, Step::Create)?;
        Ok(FaultyFile {
            file: Disk.create(temporary)?,
            fail_at: self.fail_at,
            code: self.code,
            short: self.short,
            state: self.state.clone(),
        })
    }

    fn sync(&self, file: &mut FaultyFile) -> io::Result<()> {
        step(&self.state, self.fail_at, self.code, Step::Sync)?;
        Disk.sync(&mut file.file)
    }

    fn rename(&self, temporary: &Path, target: &Path) -> io::Result<()> {
        step(&self.state, self.fail_at, self.code, Step::Rename)?;
        Disk.rename(temporary, target)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        step(&self.state, self.fail_at, self.code, Step::SyncDirectory)?;
        Disk.sync_directory(directory)
    }
}

/// Names of everything in a directory.
fn names(directory: &Path) -> Vec<String> {
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    fs::read_dir(directory).unwrap().map(name).collect()
}

/// Fails a save at every step in turn and returns the steps that failed, until one save succeeds.
fn fail_everywhere(old: Option<&Index>, new: &Index, code: i32, short: usize) -> Vec<Step> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("an.index");
    let mut failed = Vec::new();
    for fail_at in 0.. {
        let _ = fs::remove_file(&path);
        if let Some(old) = old {
            old.save(&path).unwrap();
        }
        let place = Faulty::new(fail_at, code, short);
        let result = save_to(&place, new, &path);
        let Some(step) = place.state.failed.get() else {
            result.unwrap();
            assert_eq!(Index::open(&path).unwrap(), *new);
            assert_eq!(names(directory.path()), ["an.index"]);
            return failed;
        };
        match result.unwrap_err() {
            Error::Io {
                path: named,
                source,
            } => {
                assert_eq!(named, path);
                assert_eq!(source.raw_os_error(), Some(code));
            }
            other => panic!("{other:?}"),
        }
        if step == Step::SyncDirectory {
            assert_eq!(Index::open(&path).unwrap(), *new);
        } else if let Some(old) = old {
            assert_eq!(names(directory.path()), ["an.index"], "{step:?}");
            assert_eq!(Index::open(&path).unwrap(), *old);
        } else {
            assert!(names(directory.path()).is_empty(), "{step:?}");
        }
        failed.push(step);
    }
    unreachable!()
}

#[test]
fn a_failing_device_leaves_everything_as_it_was() {
    let old = sample(10, 8, Store::F32, 1);
    for new in indexes() {
        for code in [NO_SPACE, IO_ERROR] {
            for old in [None, Some(&old)] {
                let failed = fail_everywhere(old, &new, code, usize::MAX);
                use Step::*;
                assert_eq!(failed, [Create, Write, Flush, Sync, Rename, SyncDirectory]);
            }
        }
    }
}

#[test]
fn a_failure_at_any_of_many_short_writes_is_reported() {
    let old = sample(10, 8, Store::F32, 1);
    for new in &indexes()[..2] {
        let failed = fail_everywhere(Some(&old), new, NO_SPACE, 61);
        let writes = failed.iter().filter(|step| **step == Step::Write).count();
        assert_eq!(writes, new.to_bytes().unwrap().len().div_ceil(61));
    }
}

#[test]
fn a_full_device_is_an_error() {
    let Ok(mut full) = fs::OpenOptions::new().write(true).open("/dev/full") else {
        return;
    };
    let index = sample(20, 8, Store::F32, 2);
    let encoded = Encoded::new(&index).unwrap();
    let layout = file::measure(&encoded).unwrap();
    let error = file::write(&encoded, &layout, &mut full).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(NO_SPACE));
}

#[test]
fn a_panic_leaves_no_temporary_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    let write = || replace(&Disk, &path, |_| panic!("in the middle"));
    let result = std::panic::catch_unwind(write);
    assert!(result.is_err());
    assert!(names(directory.path()).is_empty());
}

#[test]
fn a_stale_temporary_file_is_no_obstacle_and_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let stale = format!(".an.index.{}-0.tmp", std::process::id());
    fs::write(directory.path().join(&stale), "of another").unwrap();
    let index = sample(20, 8, Store::F32, 2);
    index.save(directory.path().join("an.index")).unwrap();
    let mut found = names(directory.path());
    found.sort();
    assert_eq!(found, [stale.clone(), "an.index".into()]);
    assert_eq!(
        fs::read(directory.path().join(stale)).unwrap(),
        b"of another"
    );
}

#[test]
fn a_name_as_long_as_allowed_can_be_saved() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("n".repeat(255));
    let index = sample(20, 8, Store::F32, 2);
    index.save(&path).unwrap();
    assert_eq!(Index::open(&path).unwrap(), index);
}

/// A device that fails while it is read.
struct FailingRead<'a> {
    bytes: &'a [u8],
    left: usize,
}

impl io::Read for FailingRead<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::from_raw_os_error(IO_ERROR));
        }
        let take = out.len().min(self.left).min(self.bytes.len());
        out[..take].copy_from_slice(&self.bytes[..take]);
        self.bytes = &self.bytes[take..];
        self.left -= take;
        Ok(take)
    }
}

#[test]
fn a_read_error_is_not_taken_for_damage() {
    for index in indexes() {
        let bytes = index.to_bytes().unwrap();
        for left in (0..bytes.len()).step_by(37) {
            let device = FailingRead {
                bytes: &bytes,
                left,
            };
            let read = Reader::open(device, bytes.len() as u64);
            match read.and_then(|mut reader| Index::decode(&mut reader)) {
                Err(Fault::Io(error)) => assert_eq!(error.raw_os_error(), Some(IO_ERROR)),
                other => panic!("{left}: {other:?}"),
            }
        }
    }
}
