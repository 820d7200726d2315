//! Live indexes: searches run while the index changes, and a directory keeps every change.
//!
//! In: batches of changes and searches from many threads. Out: answers from consistent snapshots. [`Live`] is the
//! handle. Searches run on a snapshot and never wait for a writer. Writers take turns. In a directory, every batch is
//! written to a log before it becomes visible, so an acknowledged batch survives a crash of the process and a power
//! cut. `docs/reference/directory-format.md` describes the files and the assumptions about the file system.
//!
//! ```
//! use garlic_ann::{Index, Live, Rows, Search};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let place = tempfile::tempdir()?;
//! # let directory = place.path().join("an-index");
//! let data: Vec<f32> = (0..400).map(|i| ((i * 37) % 101) as f32).collect();
//! let index = Index::builder().build(Rows::new(&data, 4)?)?;
//!
//! let live = Live::create(&directory, index)?;
//! live.add(Rows::new(&[0.5, 0.5, 0.5, 0.5], 4)?, &[1000])?;
//! live.remove(&[3])?;
//! drop(live);
//!
//! let live = Live::open(&directory)?;
//! let answer = live.search(&[0.5, 0.5, 0.5, 0.5], &Search::new(1).exact(true))?;
//! assert_eq!(answer.hits[0].id, 1000);
//! assert!(!live.snapshot().contains(3));
//! # Ok(())
//! # }
//! ```

mod current;
mod directory;
mod disk;
mod files;
mod lock;
mod log;
mod options;
mod record;
mod swap;
mod training;

#[cfg(test)]
mod tests;

/// The primitives that [`swap`] uses. Its tests replace them by those of `shuttle`.
mod sync {
    pub(super) use std::sync::{Arc, Mutex, PoisonError, RwLock};
}

pub use directory::Status;
pub use files::{Files, files, is_index_directory};
pub use options::{Options, SyncPolicy};
pub use record::Kind;
pub use training::Training;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use garlic_linalg::Rows;

use crate::segment::Index;
use directory::Directory;
use disk::{Disk, Lock, RealDisk};
use garlic_core::{Answer, RangeSearch, Search};
use garlic_core::{Attachment, Cancel};
use garlic_core::{Error, Result};
use record::Batch;
use swap::{Panicked, Swap};
use training::{Failed, Journal, Trainer};

/// What a batch changes in the attachment of the index.
#[derive(Clone, Debug)]
pub struct AttachmentChange<'a> {
    /// The block that the log keeps with the batch. Replaying the log adds it to those of the checkpoint.
    pub block: Option<&'a [u8]>,
    /// The attachment after the batch.
    pub after: Attachment,
}

/// A handle to an index that changes while it is searched.
///
/// All methods take `&self`, so share it by reference or in an [`Arc`]. See the [module](self) for an example.
///
/// If a writing method fails, readers see no change. After a file system error, it is unknown whether that batch was
/// written until the directory is opened again. Then it is present as a whole or not at all. Until then, further
/// writes fail with [`Error::Broken`], and searches continue. Writes also fail if the path of the directory leads
/// elsewhere ([`Error::Moved`]) and in a forked process ([`Error::Forked`]).
///
/// An index that has grown is retrained in a background thread while the old one serves. See [`Live::training`] and
/// [`Live::wait`]. Dropping the handle cancels a training.
pub struct Live {
    shared: Arc<Shared>,
    trainer: Trainer,
}

/// The state that a handle shares with the training thread.
struct Shared {
    swap: Swap<Index, WriterState>,
    directory: Option<PathBuf>,
    /// The lock of a directory that is open for writing.
    lock: Option<Arc<dyn Lock>>,
    /// Trainings wait while a test holds this.
    #[cfg(test)]
    gate: std::sync::Mutex<()>,
}

/// The state of the current writer.
struct WriterState {
    writer: Writer,
    /// The changes since the start of a training that is in progress.
    journal: Option<Journal>,
    failed: Option<Failed>,
}

impl From<Writer> for WriterState {
    fn from(writer: Writer) -> Self {
        Self {
            writer,
            journal: None,
            failed: None,
        }
    }
}

/// Where changes are written.
enum Writer {
    /// Memory only.
    Memory,
    /// A directory.
    Directory(Box<Directory>),
    /// Nowhere: changes are rejected.
    ReadOnly,
}

impl Live {
    /// Creates a live index in memory.
    pub fn new(index: Index) -> Self {
        Self::from_parts(index, Writer::Memory, None, None)
    }

    fn from_parts(
        index: Index,
        writer: Writer,
        directory: Option<PathBuf>,
        lock: Option<Arc<dyn Lock>>,
    ) -> Self {
        let live = Self {
            shared: Arc::new(Shared {
                swap: Swap::new(index, WriterState::from(writer)),
                directory,
                lock,
                #[cfg(test)]
                gate: Default::default(),
            }),
            trainer: Trainer::default(),
        };
        // An opened index may have grown since it was trained.
        let job = live
            .shared
            .write(|current, state| Ok((None, state.job(current))));
        live.start(job.ok().flatten());
        live
    }

    /// Creates an index directory with `index` as its first checkpoint and opens it for writing.
    ///
    /// The directory is created if it does not exist. Its parent must exist.
    ///
    /// # Errors
    /// [`Error::Directory`] if it is an index directory already, [`Error::Locked`] if another process is creating
    /// one, [`Error::Io`] if a file system operation fails.
    pub fn create(directory: impl AsRef<Path>, index: Index) -> Result<Self> {
        Options::new().create(directory, index)
    }

    /// Opens an index directory for writing: loads its checkpoint and replays its log.
    ///
    /// A directory has one writer at a time. An incomplete batch at the end of the log, which was never acknowledged,
    /// is dropped.
    ///
    /// # Errors
    /// [`Error::Directory`] if it is not an index directory, [`Error::Locked`] if another handle has it open for
    /// writing, [`Error::Log`] or [`Error::Format`] if a file is damaged, [`Error::Io`] if a file system operation
    /// fails.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Options::new().open(directory)
    }

    /// Opens the current state of an index directory for reading. It takes no lock and changes no file. A writer may
    /// continue, but this handle does not see its changes.
    ///
    /// # Errors
    /// Those of [`Live::open`], except for [`Error::Locked`].
    pub fn open_read_only(directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_read_only_on(&RealDisk, directory.as_ref())
    }

    fn create_on(
        disk: Arc<dyn Disk>,
        path: &Path,
        index: Index,
        options: &Options,
    ) -> Result<Self> {
        // The same state as after opening, so that the same batches give the same index.
        let mut index = index;
        index.compact()?;
        let directory = Directory::create(disk, path, &index, options)?;
        Ok(Self::from_directory(directory, path, index))
    }

    fn open_on(disk: Arc<dyn Disk>, path: &Path, options: &Options) -> Result<Self> {
        let (directory, index) = Directory::open(disk, path, options)?;
        Ok(Self::from_directory(directory, path, index))
    }

    fn open_read_only_on(disk: &dyn Disk, path: &Path) -> Result<Self> {
        let mut index = directory::open_read_only(disk, path)?;
        // A read-only index is never trained, so the targets are checked at once.
        if index.due().is_some() {
            index.check_targets(&Cancel::default())?;
        }
        Ok(Self::from_parts(
            index,
            Writer::ReadOnly,
            Some(path.to_owned()),
            None,
        ))
    }

    fn from_directory(directory: Directory, path: &Path, index: Index) -> Self {
        let lock = Some(directory.lock());
        let writer = Writer::Directory(Box::new(directory));
        Self::from_parts(index, writer, Some(path.to_owned()), lock)
    }

    /// The current state of the index. It does not change, and it is not a copy.
    pub fn snapshot(&self) -> Arc<Index> {
        self.shared.swap.snapshot()
    }

    /// [`Index::search`] on the current snapshot.
    ///
    /// # Errors
    /// Those of [`Index::search`].
    pub fn search(&self, query: &[f32], search: &Search) -> Result<Answer> {
        self.snapshot().search(query, search)
    }

    /// [`Index::search_batch`] on the current snapshot, the same one for all queries.
    ///
    /// # Errors
    /// Those of [`Index::search_batch`].
    pub fn search_batch(&self, queries: Rows<'_>, search: &Search) -> Result<Vec<Answer>> {
        self.snapshot().search_batch(queries, search)
    }

    /// [`Index::range`] on the current snapshot.
    ///
    /// # Errors
    /// Those of [`Index::range`].
    pub fn range(&self, query: &[f32], range: &RangeSearch) -> Result<Answer> {
        self.snapshot().range(query, range)
    }

    /// [`Index::range_batch`] on the current snapshot, the same one for all queries.
    ///
    /// # Errors
    /// Those of [`Index::range_batch`].
    pub fn range_batch(&self, queries: Rows<'_>, range: &RangeSearch) -> Result<Vec<Answer>> {
        self.snapshot().range_batch(queries, range)
    }

    /// Adds points under new identifiers, all or none.
    ///
    /// # Errors
    /// Those of [`Index::add`], and those of writing to the directory.
    pub fn add(&self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        self.apply(Kind::Add, vectors, ids, None).map(|_| ())
    }

    /// Removes points and returns how many there were.
    ///
    /// # Errors
    /// Those of [`Index::remove`], and those of writing to the directory.
    pub fn remove(&self, ids: &[u64]) -> Result<usize> {
        let none = Rows::new(&[], self.snapshot().dim())?;
        self.apply(Kind::Remove, none, ids, None)
    }

    /// Replaces the vectors of existing points, all or none.
    ///
    /// # Errors
    /// Those of [`Index::update`], and those of writing to the directory.
    pub fn update(&self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        self.apply(Kind::Update, vectors, ids, None).map(|_| ())
    }

    /// Replaces the vectors of the points that exist and adds the others, all or none.
    ///
    /// # Errors
    /// Those of [`Index::upsert`], and those of writing to the directory.
    pub fn upsert(&self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        self.apply(Kind::Upsert, vectors, ids, None).map(|_| ())
    }

    /// One batch of changes, all or none, which may change the attachment of the index, too. Vectors are given for
    /// all kinds but removals. Returns the number of points that were removed, or given.
    ///
    /// # Errors
    /// Those of the change, and those of writing to the directory.
    pub fn apply(
        &self,
        kind: Kind,
        vectors: Rows<'_>,
        ids: &[u64],
        attached: Option<AttachmentChange<'_>>,
    ) -> Result<usize> {
        let batch = Batch {
            kind,
            ids,
            vectors: vectors.data(),
            block: attached.as_ref().and_then(|change| change.block),
        };
        self.change(&batch, |index| {
            let changed = match kind {
                Kind::Add => index.add_only(vectors, ids).map(|()| ids.len()),
                Kind::Remove => index.remove_only(ids),
                Kind::Update => index.update_only(vectors, ids).map(|()| ids.len()),
                Kind::Upsert => index.upsert_only(vectors, ids).map(|()| ids.len()),
            }?;
            if let Some(change) = attached {
                index.attachment = change.after;
            }
            Ok((changed, changed > 0))
        })
    }

    /// Compacts the index. In a directory, this writes a checkpoint.
    ///
    /// # Errors
    /// Those of [`Index::compact`] and of [`Live::checkpoint`].
    pub fn compact(&self) -> Result<()> {
        self.change_and_checkpoint(Index::compact)
    }

    /// Measures the recall targets again. In a directory, this writes a checkpoint.
    ///
    /// # Errors
    /// Those of [`Index::recalibrate`] and of [`Live::checkpoint`].
    pub fn recalibrate(&self) -> Result<()> {
        self.change_and_checkpoint(Index::recalibrate)
    }

    /// Measures the recall targets for queries like those of a sample. In a directory, this writes a checkpoint.
    ///
    /// # Errors
    /// Those of [`Index::tune`] and of [`Live::checkpoint`].
    pub fn tune(&self, queries: Rows<'_>) -> Result<()> {
        self.change_and_checkpoint(|index| index.tune(queries))
    }

    /// Retrains axes, cells, bins and calibration. In a directory, this writes a checkpoint. It waits for a training
    /// that is in progress first.
    ///
    /// # Errors
    /// Those of [`Index::retrain`] and of [`Live::checkpoint`].
    pub fn retrain(&self) -> Result<()> {
        self.wait();
        self.change_and_checkpoint(Index::retrain)
    }

    fn change_and_checkpoint(&self, change: impl FnOnce(&mut Index) -> Result<()>) -> Result<()> {
        self.shared.write(|before, WriterState { writer, .. }| {
            writer.check(&self.shared)?;
            let mut next = before.clone();
            change(&mut next)?;
            if let Writer::Directory(directory) = writer {
                directory.checkpoint(&next)?;
            }
            Ok((Some(next), ()))
        })
    }

    /// Compacts the index, writes it as a new checkpoint and starts an empty log, so that opening has nothing to
    /// replay.
    ///
    /// This also happens automatically when the log exceeds a limit ([`Options::log_limit`]). In memory it does
    /// nothing.
    ///
    /// # Errors
    /// [`Error::Io`] if a file system operation fails. The old checkpoint and its log stay valid.
    pub fn checkpoint(&self) -> Result<()> {
        self.shared.write(|current, WriterState { writer, .. }| {
            writer.check(&self.shared)?;
            let Writer::Directory(directory) = writer else {
                return Ok((None, ()));
            };
            let mut next = current.clone();
            next.compact()?;
            directory.checkpoint(&next)?;
            Ok((Some(next), ()))
        })
    }

    /// Syncs all batches to the device. Only [`SyncPolicy::Never`] leaves something to do.
    ///
    /// # Errors
    /// [`Error::Io`] if the device fails.
    pub fn sync(&self) -> Result<()> {
        self.shared.write(|_, WriterState { writer, .. }| {
            writer.check(&self.shared)?;
            if let Writer::Directory(directory) = writer {
                directory.sync()?;
            }
            Ok((None, ()))
        })
    }

    /// For a forked process: releases its copy of the parent's lock on the directory.
    ///
    /// A child cannot write through the inherited handle. But while it holds the copy, the directory stays locked if
    /// the parent ends without closing it. Searches continue. In the process that opened the directory, this does
    /// nothing.
    pub fn after_fork(&self) {
        if let Some(lock) = &self.shared.lock {
            lock.release_inherited();
        }
    }

    /// The status of the directory, after waiting for the current writer. `None` unless this process opened it for
    /// writing.
    pub fn status(&self) -> Option<Status> {
        if self.shared.is_inherited() {
            return None;
        }
        let status = self.shared.swap.with_writer(|state| match &state.writer {
            Writer::Directory(directory) => Some(directory.status()),
            Writer::Memory | Writer::ReadOnly => None,
        });
        status.ok().flatten()
    }

    /// Changes a copy of the index, logs the batch and publishes the copy, in this order. A rejected batch is never
    /// logged, and a batch is never visible before it is logged.
    fn change<R>(
        &self,
        batch: &Batch<'_>,
        apply: impl FnOnce(&mut Index) -> Result<(R, bool)>,
    ) -> Result<R> {
        let result = self.shared.write(|before, state| {
            state.writer.check(&self.shared)?;
            let mut next = before.clone();
            let (result, changed) = apply(&mut next)?;
            if !changed {
                return Ok((None, result));
            }
            if let Writer::Directory(directory) = &mut state.writer {
                directory.append(batch)?;
            }
            state.record(batch);
            Ok((Some(next), result))
        })?;
        // A separate write, so that readers see the batch before the checkpoint. The batch is acknowledged even if
        // the checkpoint fails.
        let after = self.shared.write(|current, state| {
            let next = match &mut state.writer {
                Writer::Directory(directory) if directory.checkpoint_is_due() => {
                    directory.try_checkpoint(current)
                }
                _ => None,
            };
            let job = state.job(next.as_ref().unwrap_or(current));
            Ok((next, (job, state.is_ahead())))
        });
        if let Ok((job, is_ahead)) = after {
            self.start(job);
            if is_ahead {
                self.wait();
            }
        }
        Ok(result)
    }
}

impl Shared {
    fn is_inherited(&self) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.is_inherited())
    }

    fn write<R>(
        &self,
        change: impl FnOnce(&Index, &mut WriterState) -> Result<(Option<Index>, R)>,
    ) -> Result<R> {
        // Check before waiting: a writer of the parent has no thread in this process.
        if self.is_inherited() {
            return Err(Error::Forked {
                path: self.directory.clone().unwrap_or_default(),
            });
        }
        self.swap.write(change).unwrap_or_else(|Panicked| {
            Err(Error::Broken {
                path: (self.directory.clone()).unwrap_or_else(|| "the index in memory".into()),
                message: "it panicked".into(),
            })
        })
    }
}

impl Writer {
    /// Fails if nothing can be written, before any work is done.
    fn check(&self, shared: &Shared) -> Result<()> {
        match self {
            Self::Memory => Ok(()),
            Self::Directory(directory) => directory.check(),
            Self::ReadOnly => Err(Error::ReadOnly {
                path: shared.directory.clone().unwrap_or_default(),
            }),
        }
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live")
            .field("directory", &self.shared.directory)
            .field("points", &self.snapshot().len())
            .finish_non_exhaustive()
    }
}
