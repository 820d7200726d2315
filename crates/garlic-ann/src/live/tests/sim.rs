//! A disk in memory that can fail, and that forgets on a power cut what was not synced.

use std::collections::{BTreeMap, hash_map::DefaultHasher};
use std::hash::{Hash, Hasher};
use std::io::{self, Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use garlic_linalg::{random_stream, uniform_unit};

use super::super::current::LOCK;
use super::super::disk::{Disk, Input, Lock, LockedDirectory, Opening, Output};
use super::device::{Change, DIRECTORY, Inode, Keep};
use crate::segment::Index;
use garlic_core::{Error, Result};

/// `ENOSPC`, no space left on device.
pub(super) const NO_SPACE: i32 = 28;
/// `EIO`, input/output error.
pub(super) const IO_ERROR: i32 = 5;

/// When the disk fails. Operations are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Plan {
    Sound,
    /// The power is cut during this operation.
    Cut(usize),
    /// This operation fails. With `forever`, all later changes fail as well. With `half`, a failing write writes half
    /// of its bytes first.
    Fail {
        at: usize,
        code: i32,
        forever: bool,
        half: bool,
    },
}

struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    synced: BTreeMap<PathBuf, usize>,
    pending: Vec<Change>,
    locked: bool,
    plan: Plan,
    /// Operations so far.
    count: usize,
    off: bool,
}

/// The disk. Clones are the same disk.
#[derive(Clone)]
pub(super) struct SimDisk(Arc<Mutex<State>>);

/// The outcome of an operation.
enum Outcome {
    Proceed,
    /// The operation takes effect in the cache, but the caller does not learn of it.
    Cut,
    Fail {
        code: i32,
        half: bool,
    },
}

impl State {
    fn outcome(&mut self, changes: bool) -> io::Result<Outcome> {
        if self.off {
            return Err(io::Error::other("the power is off"));
        }
        let count = self.count;
        self.count += 1;
        Ok(match self.plan {
            Plan::Cut(at) if count == at => {
                self.off = true;
                Outcome::Cut
            }
            Plan::Fail {
                at,
                code,
                forever,
                half,
            } if count == at || (count > at && forever && changes) => Outcome::Fail { code, half },
            _ => Outcome::Proceed,
        })
    }

    /// Runs `work`, or fails as planned.
    fn act<R>(
        &mut self,
        changes: bool,
        work: impl FnOnce(&mut Self) -> io::Result<R>,
    ) -> io::Result<R> {
        match self.outcome(changes)? {
            Outcome::Proceed => work(self),
            Outcome::Cut => {
                work(self)?;
                Err(io::Error::other("the power is cut"))
            }
            Outcome::Fail { code, .. } => Err(io::Error::from_raw_os_error(code)),
        }
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.pending.push(change);
    }

    fn inode(&self, path: &Path) -> io::Result<usize> {
        match self.names.get(path) {
            Some(inode) if *inode != DIRECTORY => Ok(*inode),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl SimDisk {
    pub(super) fn new() -> Self {
        Self::with(Vec::new(), BTreeMap::new())
    }

    fn with(inodes: Vec<Inode>, names: BTreeMap<PathBuf, usize>) -> Self {
        Self(Arc::new(Mutex::new(State {
            inodes,
            synced: names.clone(),
            names,
            pending: Vec::new(),
            locked: false,
            plan: Plan::Sound,
            count: 0,
            off: false,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Counts operations from 0 again, for a new plan.
    pub(super) fn plan(&self, plan: Plan) {
        let mut state = self.state();
        state.plan = plan;
        state.count = 0;
    }

    /// Operations since the plan was made.
    pub(super) fn count(&self) -> usize {
        self.state().count
    }

    /// Whether the power was cut.
    pub(super) fn is_off(&self) -> bool {
        self.state().off
    }

    /// The most bytes that a file has written and not synced.
    pub(super) fn unsynced(&self) -> usize {
        let dirty = |inode: &Inode| inode.dirty.iter().map(|range| range.len()).sum();
        self.state().inodes.iter().map(dirty).max().unwrap_or(0)
    }

    /// The disk after a power cut, in use again.
    pub(super) fn after_cut(&self, keep: Keep) -> Self {
        let state = self.state();
        let mut rng = random_stream(
            match keep {
                Keep::Random(seed) => seed,
                _ => 0,
            },
            0,
        );
        let mut names = state.synced.clone();
        for change in &state.pending {
            let kept = match keep {
                Keep::Nothing | Keep::Contents => false,
                Keep::Everything | Keep::Torn(_) => true,
                Keep::Random(_) => uniform_unit(&mut rng) < 0.5,
            };
            if kept {
                change.apply(&mut names);
            }
        }
        let directories = names.clone();
        names.retain(|path, inode| {
            *inode == DIRECTORY
                || path
                    .parent()
                    .is_some_and(|parent| directories.contains_key(parent))
        });
        let mut inodes = state.inodes.clone();
        for inode in &mut inodes {
            inode.cut(keep, &mut || uniform_unit(&mut rng));
        }
        Self::with(inodes, names)
    }

    /// The disk after a kill: nothing is lost, and nothing more is synced.
    pub(super) fn after_kill(&self) -> Self {
        let state = self.state();
        let disk = Self::with(state.inodes.clone(), state.names.clone());
        disk.state().synced = state.synced.clone();
        disk.state().pending = state.pending.clone();
        disk
    }

    /// A hash of everything that can be read: names and contents, except those of temporary files.
    pub(super) fn fingerprint(&self) -> u64 {
        let state = self.state();
        let mut hasher = DefaultHasher::new();
        for (path, inode) in &state.names {
            path.hash(&mut hasher);
            let temporary = path.extension().is_some_and(|end| end == "tmp");
            if *inode != DIRECTORY && !temporary {
                state.inodes[*inode].seen.hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    /// The names of all files.
    pub(super) fn files(&self) -> Vec<String> {
        let state = self.state();
        let files = state.names.iter().filter(|(_, inode)| **inode != DIRECTORY);
        files
            .map(|(path, _)| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect()
    }

    /// An independent disk with the same files, all synced.
    pub(super) fn copy(&self) -> Self {
        self.after_cut(Keep::Everything)
    }

    /// Changes a file without an operation.
    pub(super) fn edit(&self, path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        let inode = state.inode(path).unwrap();
        edit(&mut state.inodes[inode].seen);
        state.inodes[inode].synced = state.inodes[inode].seen.clone();
    }
}

struct SimFile {
    disk: SimDisk,
    inode: usize,
}

impl Write for SimFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.disk.state();
        match state.outcome(true)? {
            Outcome::Proceed => {
                // Writes may be short.
                let taken = bytes.len().min(900);
                state.inodes[self.inode].write(&bytes[..taken]);
                Ok(taken)
            }
            Outcome::Cut => {
                state.inodes[self.inode].write(bytes);
                Err(io::Error::other("the power is cut"))
            }
            Outcome::Fail { code, half } => {
                if half {
                    state.inodes[self.inode].write(&bytes[..bytes.len() / 2]);
                }
                Err(io::Error::from_raw_os_error(code))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for SimFile {
    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.disk.state();
        match state.outcome(true)? {
            Outcome::Proceed => {
                state.inodes[self.inode].sync();
                Ok(())
            }
            Outcome::Cut => Err(io::Error::other("the power is cut")),
            Outcome::Fail { code, .. } => {
                // After `EIO` the system treats the data as written: a later sync succeeds without effect.
                if code == IO_ERROR {
                    state.inodes[self.inode].dirty.clear();
                }
                Err(io::Error::from_raw_os_error(code))
            }
        }
    }
}

struct SimLock(SimDisk);

impl Lock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.0.state().locked = false;
    }
}

impl Disk for SimDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        let inode = self.state().act(true, |state| {
            if state.names.contains_key(path) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            state.inodes.push(Inode::default());
            let inode = state.inodes.len() - 1;
            state.change(Change::Link(path.to_owned(), inode));
            Ok(inode)
        })?;
        let disk = self.clone();
        Ok(Box::new(SimFile { disk, inode }))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        let inode = self.state().act(false, |state| state.inode(path))?;
        let disk = self.clone();
        Ok(Box::new(SimFile { disk, inode }))
    }

    fn read(&self, path: &Path) -> io::Result<(Box<dyn Input>, u64)> {
        let bytes = self.state().act(false, |state| {
            let inode = state.inode(path)?;
            Ok(state.inodes[inode].seen.clone())
        })?;
        let length = bytes.len() as u64;
        Ok((Box::new(Cursor::new(bytes)), length))
    }

    fn open_index(&self, path: &Path, _: Opening) -> Result<Index> {
        let (mut input, _) = self.read(path).map_err(|source| Error::Io {
            path: path.to_owned(),
            source,
        })?;
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes).unwrap();
        Index::from_bytes(&bytes).map_err(|source| Error::Format {
            path: path.to_owned(),
            source,
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.state().act(true, |state| {
            let inode = state.inode(from)?;
            state.change(Change::Rename(from.to_owned(), to.to_owned(), inode));
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.state().act(true, |state| {
            state.inode(path)?;
            state.change(Change::Unlink(path.to_owned()));
            Ok(())
        })
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        self.state().act(true, |state| {
            if !state.names.contains_key(path) {
                state.change(Change::Link(path.to_owned(), DIRECTORY));
            }
            Ok(())
        })
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let inside = |change: &Change| change.path().parent() == Some(path);
        match state.outcome(true)? {
            Outcome::Cut => Err(io::Error::other("the power is cut")),
            Outcome::Proceed => {
                let pending = std::mem::take(&mut state.pending);
                let (now, later) = pending.into_iter().partition(inside);
                state.pending = later;
                for change in &now as &Vec<Change> {
                    change.apply(&mut state.synced);
                }
                Ok(())
            }
            Outcome::Fail { code, .. } => {
                // As with files.
                if code == IO_ERROR {
                    let made = |change: &Change| matches!(change, Change::Link(_, DIRECTORY));
                    state.pending.retain(|c| !inside(c) || made(c));
                }
                Err(io::Error::from_raw_os_error(code))
            }
        }
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.state().act(false, |state| {
            let inside = state
                .names
                .keys()
                .filter(|path| path.parent() == Some(directory));
            Ok(inside
                .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
                .collect())
        })
    }

    fn lock(&self, directory: &Path) -> io::Result<Option<LockedDirectory>> {
        let path = directory.join(LOCK);
        let taken = self.state().act(true, |state| {
            if !state.names.contains_key(&path) {
                state.inodes.push(Inode::default());
                let inode = state.inodes.len() - 1;
                state.change(Change::Link(path, inode));
            }
            Ok(!std::mem::replace(&mut state.locked, true))
        })?;
        Ok(taken.then(|| LockedDirectory {
            lock: Arc::new(SimLock(self.clone())),
            disk: Arc::new(self.clone()),
        }))
    }
}
