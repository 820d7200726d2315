//! An index directory that is open for writing: checkpoint, log, and the transition between generations.
//!
//! Invariant: everything that `CURRENT` names is complete and synced before `CURRENT` names it. A file is removed
//! only after the change of `CURRENT` is synced.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::current::{self, CURRENT, LOCK, index_path, log_path};
use super::disk::{Disk, Lock, LockedDirectory, OnDisk, Opening};
use super::log::{self, Appender, Fault, LOG_HEADER, Replay};
use super::options::Options;
use super::record::Batch;
use crate::segment::Index;
use crate::store::save_to;
use garlic_core::file::atomic;
use garlic_core::{Error, Result};

/// Status of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Number of the checkpoint, starting at 1.
    pub generation: u64,
    /// Bytes of the checkpoint.
    pub checkpoint_bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Batches in the log.
    pub log_batches: u64,
    /// Why the last automatic checkpoint failed, if it did. The preceding batch is safe in the log.
    pub failed_checkpoint: Option<String>,
}

/// A directory that is locked for writing.
pub(super) struct Directory {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    options: Options,
    log: Appender,
    /// The fields `log_batches` and `log_bytes` are unused here. The log has its own.
    status: Status,
    /// Size of the log above which a checkpoint is due.
    due: u64,
    /// Why writing is no longer possible.
    broken: Option<String>,
    lock: Arc<dyn Lock>,
}

impl Directory {
    /// Creates a directory with `index` as its first checkpoint.
    pub(super) fn create(
        disk: Arc<dyn Disk>,
        path: &Path,
        index: &Index,
        options: &Options,
    ) -> Result<Self> {
        let failed = |source| io_error(path, source);
        disk.make_directory(path).map_err(failed)?;
        disk.sync_directory(atomic::directory_of(path))
            .map_err(failed)?;
        let LockedDirectory { lock, disk } = acquire_lock(&*disk, path)?;
        if disk
            .names(path)
            .map_err(failed)?
            .iter()
            .any(|n| n == CURRENT)
        {
            return Err(Error::Directory {
                path: path.to_owned(),
                message: "there is an index directory already; open it instead".into(),
            });
        }
        let (log, checkpoint) = write_generation(&*disk, path, 1, index)?;
        publish_generation(&*disk, path, 1)
            .map_err(|failure| io_error(&path.join(CURRENT), failure.into_source()))?;
        Ok(Self::new(disk, path, options, lock, 1, log, checkpoint))
    }

    /// Opens a directory for writing and replays its log.
    ///
    /// The visible content may not be on the device, because the last writer may have failed to sync or never synced.
    /// Opening therefore rewrites and syncs the log and `CURRENT` first. This also removes a torn tail.
    pub(super) fn open(
        disk: Arc<dyn Disk>,
        path: &Path,
        options: &Options,
    ) -> Result<(Self, Index)> {
        // Report a path that is not an index directory before trying to lock it.
        current::read(&*disk, path)?;
        let LockedDirectory { lock, disk } = acquire_lock(&*disk, path)?;
        let generation = current::read(&*disk, path)?;
        let (index, found, length) = load(&*disk, path, generation, Opening::ToWrite)?;
        // The checkpoint was read by its path, which may lead elsewhere now.
        check(&*lock, path)?;
        let log_file = log_path(path, generation);
        let failed = |source| io_error(&log_file, source);
        if length > LOG_HEADER as u64 {
            let (input, _) = disk.read(&log_file).map_err(failed)?;
            atomic::replace(&OnDisk(&*disk), &log_file, |out| {
                let copied = io::copy(&mut input.take(found.end), out)?;
                if copied == found.end {
                    Ok(())
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                }
            })
            .map_err(failed)?;
        }
        publish_generation(&*disk, path, generation)
            .map_err(|failure| io_error(&path.join(CURRENT), failure.into_source()))?;
        remove_leftovers(&*disk, path, generation);
        let file = disk.append(&log_file).map_err(failed)?;
        let log = Appender::new(file, generation, found.end, found.records);
        let checkpoint = length_of(&*disk, &index_path(path, generation))?;
        let open = Self::new(disk, path, options, lock, generation, log, checkpoint);
        Ok((open, index))
    }

    fn new(
        disk: Arc<dyn Disk>,
        path: &Path,
        options: &Options,
        lock: Arc<dyn Lock>,
        generation: u64,
        log: Appender,
        checkpoint_bytes: u64,
    ) -> Self {
        Self {
            disk,
            path: path.to_owned(),
            options: options.clone(),
            log,
            status: Status {
                generation,
                checkpoint_bytes,
                log_bytes: 0,
                log_batches: 0,
                failed_checkpoint: None,
            },
            due: options.limit(checkpoint_bytes),
            broken: None,
            lock,
        }
    }

    /// The lock of the directory. It can be queried without waiting for a writer.
    pub(super) fn lock(&self) -> Arc<dyn Lock> {
        Arc::clone(&self.lock)
    }

    pub(super) fn status(&self) -> Status {
        Status {
            log_bytes: self.log.length,
            log_batches: self.log.records,
            ..self.status.clone()
        }
    }

    /// Fails if an earlier error left the files in an unknown state, or if the path leads to another directory now.
    pub(super) fn check(&self) -> Result<()> {
        match &self.broken {
            None => check(&*self.lock, &self.path),
            Some(message) => Err(Error::Broken {
                path: self.path.clone(),
                message: message.clone(),
            }),
        }
    }

    /// Appends an accepted batch. It is as durable as the options require when this returns.
    pub(super) fn append(&mut self, batch: &Batch<'_>) -> Result<()> {
        self.check()?;
        let mut written = self.log.append(batch);
        if written.is_ok() && self.options.sync_every_batch() {
            written = self.log.sync();
        }
        written.map_err(|source| self.fail(log_path(&self.path, self.status.generation), source))
    }

    /// Syncs every batch to the device.
    pub(super) fn sync(&mut self) -> Result<()> {
        self.check()?;
        self.log
            .sync()
            .map_err(|source| self.fail(log_path(&self.path, self.status.generation), source))
    }

    /// Writes `index` as the next checkpoint, with an empty log.
    ///
    /// `index` must have the content of the current checkpoint and log. After an error the directory continues with
    /// the old generation, unless it is unknown which generation is current.
    pub(super) fn checkpoint(&mut self, index: &Index) -> Result<()> {
        self.check()?;
        let next = self.status.generation + 1;
        let written = write_generation(&*self.disk, &self.path, next, index);
        let (log, checkpoint_bytes) = written.inspect_err(|_| {
            remove_leftovers(&*self.disk, &self.path, self.status.generation);
        })?;
        match publish_generation(&*self.disk, &self.path, next) {
            Ok(()) => {}
            Err(Failure::Before(source)) => {
                remove_leftovers(&*self.disk, &self.path, self.status.generation);
                return Err(io_error(&self.path.join(CURRENT), source));
            }
            Err(Failure::Unknown(source)) => return Err(self.fail(self.path.join(CURRENT), source)),
        }
        self.log = log;
        self.status = Status {
            generation: next,
            checkpoint_bytes,
            failed_checkpoint: None,
            ..self.status.clone()
        };
        self.due = self.options.limit(checkpoint_bytes);
        remove_leftovers(&*self.disk, &self.path, next);
        Ok(())
    }

    /// Whether the log has grown enough for a checkpoint.
    pub(super) fn checkpoint_is_due(&self) -> bool {
        self.broken.is_none() && self.log.length > self.due && self.log.records > 0
    }

    /// Writes a checkpoint of `index` and returns its compacted state. The preceding batch is safe in any case, so a
    /// failure is only recorded. The next attempt follows when the log has grown by as much again.
    pub(super) fn try_checkpoint(&mut self, index: &Index) -> Option<Index> {
        let mut next = index.clone();
        let made = next.compact().and_then(|()| self.checkpoint(&next));
        let Err(error) = made else {
            return Some(next);
        };
        self.status.failed_checkpoint = Some(error.to_string());
        let more = self.options.limit(self.status.checkpoint_bytes);
        self.due = self.log.length.saturating_add(more);
        None
    }

    fn fail(&mut self, path: PathBuf, source: io::Error) -> Error {
        let error = Error::Io { path, source };
        self.broken = Some(error.to_string());
        error
    }
}

/// Reads the current generation without a lock and without changes.
pub(super) fn open_read_only(disk: &dyn Disk, path: &Path) -> Result<Index> {
    let mut generation = current::read(disk, path)?;
    loop {
        match load(disk, path, generation, Opening::ToRead) {
            Ok((index, ..)) => return Ok(index),
            Err(error) => {
                // A writer may have written a checkpoint and removed the files meanwhile.
                let now = current::read(disk, path)?;
                if now == generation {
                    return Err(error);
                }
                generation = now;
            }
        }
    }
}

/// The index of a generation, the replayed part of its log, and the length of the log.
fn load(
    disk: &dyn Disk,
    path: &Path,
    generation: u64,
    how: Opening,
) -> Result<(Index, Replay, u64)> {
    let mut index = disk.open_index(&index_path(path, generation), how)?;
    let log_file = log_path(path, generation);
    let (mut input, length) = disk
        .read(&log_file)
        .map_err(|source| io_error(&log_file, source))?;
    let dim = index.dim();
    let found = log::read(&mut *input, length, generation, dim, |change| {
        change.apply(&mut index)
    });
    let found = found.map_err(|fault| match fault {
        Fault::Io(source) => io_error(&log_file, source),
        Fault::Damaged { offset, message } => Error::Log {
            path: log_file,
            offset,
            message,
        },
        // An I/O error says nothing about the record.
        Fault::Refused {
            error: error @ Error::Threads { .. },
            ..
        } => error,
        Fault::Refused { offset, error } => Error::Log {
            path: log_file,
            offset,
            message: format!("the checkpoint does not take this record: {error}"),
        },
    })?;
    Ok((index, found, length))
}

/// Writes the checkpoint and an empty log of a new generation.
fn write_generation(
    disk: &dyn Disk,
    path: &Path,
    generation: u64,
    index: &Index,
) -> Result<(Appender, u64)> {
    let place = OnDisk(disk);
    let index_file = index_path(path, generation);
    save_to(&place, index, &index_file)?;
    let log_file = log_path(path, generation);
    let header = log::header(generation, index.dim());
    let failed = |source| io_error(&log_file, source);
    atomic::replace(&place, &log_file, |out| out.write_all(&header)).map_err(failed)?;
    let file = disk.append(&log_file).map_err(failed)?;
    let log = Appender::new(file, generation, LOG_HEADER as u64, 0);
    Ok((log, length_of(disk, &index_file)?))
}

/// Why `CURRENT` was not replaced.
enum Failure {
    /// The old content is in place.
    Before(io::Error),
    /// Either content may be in place, now or after a power cut.
    Unknown(io::Error),
}

impl Failure {
    fn into_source(self) -> io::Error {
        match self {
            Self::Before(source) | Self::Unknown(source) => source,
        }
    }
}

/// Makes `CURRENT` name a generation.
fn publish_generation(disk: &dyn Disk, path: &Path, generation: u64) -> Result<(), Failure> {
    let place = OnDisk(disk);
    let target = path.join(CURRENT);
    let text = current::encode(generation);
    let ready = atomic::prepare(&place, &target, |out| out.write_all(text.as_bytes()))
        .map_err(Failure::Before)?;
    ready.commit().map_err(Failure::Unknown)
}

/// Removes the files of other generations and of killed writers. Files that cannot be removed are left for the next
/// time.
fn remove_leftovers(disk: &dyn Disk, path: &Path, generation: u64) {
    for name in disk.names(path).unwrap_or_default() {
        if current::is_leftover(&name, generation) {
            let _ = disk.remove(&path.join(name));
        }
    }
}

fn acquire_lock(disk: &dyn Disk, path: &Path) -> Result<LockedDirectory> {
    let held = disk.lock(path);
    let held = held.map_err(|source| io_error(&path.join(LOCK), source))?;
    held.ok_or_else(|| Error::Locked {
        path: path.to_owned(),
    })
}

fn check(lock: &dyn Lock, path: &Path) -> Result<()> {
    if lock.is_in_place() {
        return Ok(());
    }
    Err(Error::Moved {
        path: path.to_owned(),
    })
}

pub(super) fn length_of(disk: &dyn Disk, path: &Path) -> Result<u64> {
    let opened = disk.read(path).map_err(|source| io_error(path, source))?;
    Ok(opened.1)
}

fn io_error(path: &Path, source: io::Error) -> Error {
    let path = path.to_owned();
    Error::Io { path, source }
}
