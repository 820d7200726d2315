//! An index that changes while it is searched, and a directory that keeps every change.
//!
//! [`Live`] is one handle for many threads. Searches run on a snapshot and never wait for a writer; writers take
//! turns. Opened on a directory, a batch that was acknowledged survives the end of the process and a power cut:
//! it stands in a log before anybody sees it. `docs/reference/directory-format.md` draws the files and states what this relies on.
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
mod held;
mod log;
mod options;
mod record;
mod swap;
mod training;

#[cfg(test)]
mod tests;

/// What [`swap`] is made of; its tests put `shuttle` in this place.
mod sync {
    pub(super) use std::sync::{Arc, Mutex, PoisonError, RwLock};
}

pub use directory::Status;
pub use files::{Files, files, is_index_directory};
pub use options::{Options, SyncPolicy};
pub use training::Training;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use garlic_linalg::Rows;

use crate::segment::Index;
use directory::Directory;
use disk::{Disk, Lock, Real};
use garlic_core::Cancel;
use garlic_core::{Answer, RangeSearch, Search};
use garlic_core::{Error, Result};
use record::{Batch, Kind};
use swap::{Panicked, Swap};
use training::{Failed, Journal, Trainer};

/// A handle to an index that changes while it is searched.
///
/// All methods take `&self`: share it by reference or in an [`Arc`]. See the [module](self) for an example.
///
/// An error of a writing method leaves what readers see as it was. After an error of the file system the outcome
/// of that one batch is unknown until the directory is opened again, where it is there as a whole or not at all;
/// until then further writes are refused with [`Error::Broken`], and searches go on. Writes are also refused while the
/// path of the directory leads elsewhere ([`Error::Moved`]) and in a forked process ([`Error::Forked`]).
///
/// An index that has grown is trained anew beside all this, in a thread of its own, while the old one serves; see
/// [`Live::training`] and [`Live::wait`]. Dropping the handle gives a training up that is going on.
pub struct Live {
    shared: Arc<Shared>,
    trainer: Trainer,
}

/// What a handle shares with the thread that trains.
struct Shared {
    swap: Swap<Index, Turn>,
    directory: Option<PathBuf>,
    /// The lock of a directory that is open for writing.
    lock: Option<Arc<dyn Lock>>,
    /// Trainings wait while a test holds this.
    #[cfg(test)]
    gate: std::sync::Mutex<()>,
}

/// What belongs to whoever's turn it is to write.
struct Turn {
    writer: Writer,
    /// What has changed since a training began that is going on.
    journal: Option<Journal>,
    failed: Option<Failed>,
}

impl From<Writer> for Turn {
    fn from(writer: Writer) -> Self {
        Self {
            writer,
            journal: None,
            failed: None,
        }
    }
}

/// What a writer does besides changing the index.
enum Writer {
    /// Nothing.
    Memory,
    /// It writes to a directory.
    Directory(Box<Directory>),
    /// It refuses.
    ReadOnly,
}

impl Live {
    /// An index in memory only.
    pub fn new(index: Index) -> Self {
        Self::of(index, Writer::Memory, None, None)
    }

    fn of(
        index: Index,
        writer: Writer,
        directory: Option<PathBuf>,
        lock: Option<Arc<dyn Lock>>,
    ) -> Self {
        let live = Self {
            shared: Arc::new(Shared {
                swap: Swap::new(index, Turn::from(writer)),
                directory,
                lock,
                #[cfg(test)]
                gate: Default::default(),
            }),
            trainer: Trainer::default(),
        };
        // An index that was opened may have grown since it was trained.
        let job = live
            .shared
            .write(|current, turn| Ok((None, turn.job(current))));
        live.start(job.ok().flatten());
        live
    }

    /// Makes an index directory, with `index` as its first content, and opens it for writing.
    ///
    /// The directory is made unless it is there; the one above it must exist.
    ///
    /// # Errors
    /// [`Error::Directory`] if there is an index directory already, [`Error::Locked`] if somebody is making one,
    /// [`Error::Io`] when a step of the file system fails.
    pub fn create(directory: impl AsRef<Path>, index: Index) -> Result<Self> {
        Options::new().create(directory, index)
    }

    /// Opens an index directory for writing: reads its checkpoint and does again what its log says.
    ///
    /// One writer at a time. What an interrupted writer left at the end of the log, and promised nobody, is cut.
    ///
    /// # Errors
    /// [`Error::Directory`] if there is none, [`Error::Locked`] if another handle has it open for writing,
    /// [`Error::Log`] or [`Error::Format`] if a file is damaged, [`Error::Io`] when the file system fails.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Options::new().open(directory)
    }

    /// Reads an index directory as it is now. Takes no lock and changes no file; a writer may go on meanwhile,
    /// and this handle does not see what it does.
    ///
    /// # Errors
    /// Those of [`Live::open`], except for [`Error::Locked`].
    pub fn open_read_only(directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_read_only_on(&Real, directory.as_ref())
    }

    fn create_on(
        disk: Arc<dyn Disk>,
        path: &Path,
        index: Index,
        options: &Options,
    ) -> Result<Self> {
        // What opening would find: the same batches then give the same index.
        let mut index = index;
        index.compact()?;
        let directory = Directory::create(disk, path, &index, options)?;
        Ok(Self::over(directory, path, index))
    }

    fn open_on(disk: Arc<dyn Disk>, path: &Path, options: &Options) -> Result<Self> {
        let (directory, index) = Directory::open(disk, path, options)?;
        Ok(Self::over(directory, path, index))
    }

    fn open_read_only_on(disk: &dyn Disk, path: &Path) -> Result<Self> {
        let mut index = directory::open_read_only(disk, path)?;
        // Nobody will train it here, so searches are told at once what targets take now.
        if index.due().is_some() {
            index.check_targets(&Cancel::default())?;
        }
        Ok(Self::of(
            index,
            Writer::ReadOnly,
            Some(path.to_owned()),
            None,
        ))
    }

    fn over(directory: Directory, path: &Path, index: Index) -> Self {
        let lock = Some(directory.lock());
        let writer = Writer::Directory(Box::new(directory));
        Self::of(index, writer, Some(path.to_owned()), lock)
    }

    /// The index as it is now. It stays as it is while the handle goes on, and costs no copy.
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
        let batch = Batch {
            kind: Kind::Add,
            ids,
            vectors: vectors.data(),
        };
        self.change(&batch, |index| {
            index.add_only(vectors, ids)?;
            Ok(((), !ids.is_empty()))
        })
    }

    /// Removes points; returns how many of them were there.
    ///
    /// # Errors
    /// Those of [`Index::remove`], and those of writing to the directory.
    pub fn remove(&self, ids: &[u64]) -> Result<usize> {
        let batch = Batch {
            kind: Kind::Remove,
            ids,
            vectors: &[],
        };
        self.change(&batch, |index| {
            let removed = index.remove_only(ids)?;
            Ok((removed, removed > 0))
        })
    }

    /// Gives points that are there new vectors, all or none.
    ///
    /// # Errors
    /// Those of [`Index::update`], and those of writing to the directory.
    pub fn update(&self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        let batch = Batch {
            kind: Kind::Update,
            ids,
            vectors: vectors.data(),
        };
        self.change(&batch, |index| {
            index.update_only(vectors, ids)?;
            Ok(((), !ids.is_empty()))
        })
    }

    /// Drops removed points and lays the index out anew; in a directory, this makes a checkpoint.
    ///
    /// # Errors
    /// Those of [`Index::compact`] and of [`Live::checkpoint`].
    pub fn compact(&self) -> Result<()> {
        self.lay_out(Index::compact)
    }

    /// Measures again what recall targets take; in a directory, this makes a checkpoint.
    ///
    /// # Errors
    /// Those of [`Index::recalibrate`] and of [`Live::checkpoint`].
    pub fn recalibrate(&self) -> Result<()> {
        self.lay_out(Index::recalibrate)
    }

    /// Trains axes, cells, bins and calibration anew; in a directory, this makes a checkpoint. A training that is going on
    /// is waited for first.
    ///
    /// # Errors
    /// Those of [`Index::retrain`] and of [`Live::checkpoint`].
    pub fn retrain(&self) -> Result<()> {
        self.wait();
        self.lay_out(Index::retrain)
    }

    fn lay_out(&self, change: impl FnOnce(&mut Index) -> Result<()>) -> Result<()> {
        self.shared.write(|before, Turn { writer, .. }| {
            writer.check(&self.shared)?;
            let mut next = before.clone();
            change(&mut next)?;
            if let Writer::Directory(directory) = writer {
                directory.checkpoint(&next)?;
            }
            Ok((Some(next), ()))
        })
    }

    /// Writes the index as a new checkpoint and begins an empty log, so that opening has nothing to replay. The index
    /// goes on as opening would find it: laid out anew, without removed points.
    ///
    /// Happens by itself when the log has grown long ([`Options::log_limit`]). In memory it does nothing.
    ///
    /// # Errors
    /// [`Error::Io`] when a step of the file system fails; the old checkpoint and its log stay.
    pub fn checkpoint(&self) -> Result<()> {
        self.shared.write(|current, Turn { writer, .. }| {
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

    /// Forces all batches to the device; only [`SyncPolicy::Never`] leaves something to do.
    ///
    /// # Errors
    /// [`Error::Io`] when the device fails.
    pub fn sync(&self) -> Result<()> {
        self.shared.write(|_, Turn { writer, .. }| {
            writer.check(&self.shared)?;
            if let Writer::Directory(directory) = writer {
                directory.sync()?;
            }
            Ok((None, ()))
        })
    }

    /// For a forked process: lets go of its copy of the lock that its parent has on the directory.
    ///
    /// A child cannot write through what it has inherited, but as long as it has the copy, the directory stays locked
    /// when its parent ends without closing it. Searches go on. In the process that opened the directory this does nothing.
    pub fn after_fork(&self) {
        if let Some(lock) = &self.shared.lock {
            lock.leave_inherited();
        }
    }

    /// What is known about the directory, once no writer is at work; `None` unless it is open for writing, by this process.
    pub fn status(&self) -> Option<Status> {
        if self.shared.is_inherited() {
            return None;
        }
        let status = self.shared.swap.with_writer(|turn| match &turn.writer {
            Writer::Directory(directory) => Some(directory.status()),
            Writer::Memory | Writer::ReadOnly => None,
        });
        status.ok().flatten()
    }

    /// Changes a copy of the index, logs the batch, publishes the copy, in this order: what the index refuses is
    /// never logged, and what is not logged is never seen.
    fn change<R>(
        &self,
        batch: &Batch<'_>,
        apply: impl FnOnce(&mut Index) -> Result<(R, bool)>,
    ) -> Result<R> {
        let result = self.shared.write(|before, turn| {
            turn.writer.check(&self.shared)?;
            let mut next = before.clone();
            let (result, changed) = apply(&mut next)?;
            if !changed {
                return Ok((None, result));
            }
            if let Writer::Directory(directory) = &mut turn.writer {
                directory.append(batch)?;
            }
            turn.note(batch);
            Ok((Some(next), result))
        })?;
        // A turn of its own, so that nobody waits for a checkpoint to see the batch. It is acknowledged whatever
        // becomes of the checkpoint.
        let after = self.shared.write(|current, turn| {
            let next = match &mut turn.writer {
                Writer::Directory(directory) if directory.checkpoint_is_due() => {
                    directory.try_checkpoint(current)
                }
                _ => None,
            };
            let job = turn.job(next.as_ref().unwrap_or(current));
            Ok((next, (job, turn.is_ahead())))
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
        change: impl FnOnce(&Index, &mut Turn) -> Result<(Option<Index>, R)>,
    ) -> Result<R> {
        // Before anything is waited for: a writer of the parent has no thread here that would ever end.
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
