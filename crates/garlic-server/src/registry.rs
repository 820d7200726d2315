//! The indexes that are served, by name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use garlic_ann::live::{self, Options as LiveOptions, Status, Training};
use garlic_ann::{Index, Live};
use garlic_any::AnyIndex;
use garlic_core::{Error, Rows, Search};
use garlic_table::{Collection, Snapshot};

use crate::error::{ApiError, ApiResult};
use crate::explore::MapCache;
use crate::options::{FILE_END, Options, Served, is_name};
use axum::http::StatusCode;

/// How long an answer waits for the writer to tell its state.
const PATIENCE: Duration = Duration::from_millis(500);

/// A served index.
pub(crate) struct Entry {
    pub(crate) name: String,
    kept: Kept,
    path: PathBuf,
    /// Whether the server may delete it: it lies below the root.
    is_own: bool,
    /// The latest snapshot, and the state of the directory that it is of.
    latest: Mutex<Option<(Arc<Index>, Arc<Snapshot>)>>,
    /// What the page draws, once it was asked for.
    pub(crate) map: MapCache,
    /// What the writer told last.
    writer: Mutex<WriterState>,
    /// Held by the one thread that waits for the writer.
    asking: Arc<tokio::sync::Mutex<()>>,
}

/// What only the writer of a directory knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriterState {
    pub(crate) training: Training,
    pub(crate) status: Option<Status>,
}

enum Kept {
    /// A directory, for searches and changes.
    Directory(Collection),
    /// A file, or a directory that is only read.
    Fixed(Arc<Snapshot>),
}

impl Entry {
    fn new(name: String, kept: Kept, path: PathBuf, is_own: bool) -> Self {
        let entry = Self {
            name,
            kept,
            path,
            is_own,
            latest: Mutex::default(),
            map: MapCache::default(),
            writer: Mutex::default(),
            asking: Arc::default(),
        };
        entry.ask_writer();
        entry
    }

    /// Waits for the writer, for as long as its change takes.
    fn ask_writer(&self) {
        if let Some(live) = self.live() {
            let (training, status) = (live.training(), live.status());
            *locked(&self.writer) = WriterState { training, status };
        }
    }

    /// What the writer knows, or what it told last if it works on something long, such as a training.
    pub(crate) async fn writer(self: &Arc<Self>) -> WriterState {
        let entry = Arc::clone(self);
        let asked = async move {
            let turn = Arc::clone(&entry.asking).lock_owned().await;
            let ask = move || {
                let _turn = turn;
                entry.ask_writer();
            };
            tokio::task::spawn_blocking(ask).await
        };
        // The thread goes on waiting, and is the only one.
        let _ = tokio::time::timeout(PATIENCE, asked).await;
        locked(&self.writer).clone()
    }

    /// The index as it is now. The same snapshot is given until the index changes, so that searches can join.
    pub(crate) fn snapshot(&self) -> ApiResult<Arc<Snapshot>> {
        let collection = match &self.kept {
            Kept::Fixed(snapshot) => return Ok(Arc::clone(snapshot)),
            Kept::Directory(collection) => collection,
        };
        let now = collection.live()?.snapshot();
        let mut latest = locked(&self.latest);
        if let Some((of, snapshot)) = &*latest
            && Arc::ptr_eq(of, &now)
        {
            return Ok(Arc::clone(snapshot));
        }
        let snapshot = Arc::new(Snapshot::new(AnyIndex::from(Index::clone(&now)))?);
        *latest = Some((now, Arc::clone(&snapshot)));
        Ok(snapshot)
    }

    /// The index for changes.
    pub(crate) fn writable(&self) -> ApiResult<&Collection> {
        match &self.kept {
            Kept::Directory(collection) => Ok(collection),
            Kept::Fixed(_) => Err(ApiError::read_only(format!(
                "the index `{}` is read-only: it is a file, or the server was started with --read-only; serve an \
                 index directory (`garlic convert INDEX DIR --live` makes one)",
                self.name
            ))),
        }
    }

    pub(crate) fn is_writable(&self) -> bool {
        matches!(self.kept, Kept::Directory(_))
    }

    /// The handle of a directory.
    pub(crate) fn live(&self) -> Option<&Live> {
        match &self.kept {
            Kept::Directory(collection) => collection.live().ok(),
            Kept::Fixed(_) => None,
        }
    }
}

/// What a lock guards; a panic elsewhere cannot have left half a change.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All served indexes.
pub(crate) struct Registry {
    entries: RwLock<BTreeMap<String, Arc<Entry>>>,
    /// Names of indexes that are being created.
    creating: Mutex<BTreeSet<String>>,
    root: Option<PathBuf>,
}

impl Registry {
    /// Opens the indexes of the options and those below the root.
    pub(crate) fn open(options: &Options) -> Result<Self, Error> {
        let registry = Self {
            entries: RwLock::default(),
            creating: Mutex::default(),
            root: options.root.clone().filter(|_| !options.read_only),
        };
        let mut all: Vec<(Served, bool)> = options
            .indexes
            .iter()
            .map(|served| (served.clone(), false))
            .collect();
        if let Some(root) = &options.root {
            all.extend(
                below(root, options.read_only)?
                    .into_iter()
                    .map(|served| (served, !options.read_only)),
            );
        }
        for (Served { name, path }, is_own) in all {
            let kept = open(&path, options.read_only)?;
            let entry = Arc::new(Entry::new(name.clone(), kept, path.clone(), is_own));
            tracing::info!(index = name, path = %path.display(), writable = entry.is_writable(), "opened");
            if registry.write().insert(name.clone(), entry).is_some() {
                return Err(Error::Directory {
                    path,
                    message: format!("two indexes are called `{name}`; name one with NAME=PATH"),
                });
            }
        }
        Ok(registry)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<String, Arc<Entry>>> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// All indexes, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Entry>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.values().cloned().collect()
    }

    pub(crate) fn get(&self, name: &str) -> ApiResult<Arc<Entry>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries
            .get(name)
            .cloned()
            .ok_or_else(|| ApiError::no_index(name))
    }

    /// Whether indexes can be created.
    pub(crate) fn has_root(&self) -> bool {
        self.root.is_some()
    }

    /// A directory below the root for a new index of this name.
    pub(crate) fn reserve(self: &Arc<Self>, name: &str) -> ApiResult<Place> {
        let Some(root) = &self.root else {
            return Err(ApiError::read_only(
                "the server cannot create and delete indexes; start it with --root DIR",
            ));
        };
        // After a restart, an index that ends in `.garlic` would have its name without.
        if !is_name(name) || name.ends_with(FILE_END) {
            return Err(ApiError::invalid(
                "the name of an index has at most 100 letters, digits, `-`, `_` and `.`, no `.` first and no `.garlic` last",
            ));
        }
        let path = root.join(name);
        if !self.creating().insert(name.to_owned()) {
            return Err(ApiError::exists(name));
        }
        let place = Place {
            registry: Arc::clone(self),
            name: name.to_owned(),
            path,
        };
        let is_taken = place.path.exists() && !is_leftover(&place.path);
        match self.get(name).is_ok() || is_taken {
            true => Err(ApiError::exists(name)),
            false => Ok(place),
        }
    }

    fn creating(&self) -> MutexGuard<'_, BTreeSet<String>> {
        locked(&self.creating)
    }

    /// Removes an index and its directory.
    pub(crate) fn delete(&self, name: &str) -> ApiResult<()> {
        if !self.get(name)?.is_own {
            return Err(ApiError::read_only(format!(
                "the index `{name}` does not lie below the root of the server, which deletes nothing else"
            )));
        }
        // Whoever takes it out of the list deletes it; for others there is none.
        let taken = self.write().remove(name);
        let entry = taken.ok_or_else(|| ApiError::no_index(name))?;
        let failed = |error: std::io::Error| {
            tracing::error!(index = name, %error, "cannot delete");
            let message = "the server cannot delete the files of the index; its log says why";
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "storage", message)
        };
        // A hidden name first: what is half removed is not served after a restart.
        let hidden = entry.path.with_file_name(format!(".{name}{DELETED}"));
        // What an earlier deletion could not remove.
        let _ = remove(&hidden);
        if let Err(error) = fs::rename(&entry.path, &hidden) {
            self.write().insert(name.to_owned(), entry);
            return Err(failed(error));
        }
        remove(&hidden).map_err(failed)
    }

    /// Brings all changes to the device.
    pub(crate) fn sync(&self) {
        for entry in self.all() {
            if let Some(Err(error)) = entry.live().map(Live::sync) {
                tracing::error!(index = entry.name, %error, "cannot sync");
            }
        }
    }
}

/// The place of an index that is being created. Nobody else creates one of this name meanwhile.
pub(crate) struct Place {
    registry: Arc<Registry>,
    name: String,
    pub(crate) path: PathBuf,
}

impl Place {
    /// Writes the directory and serves it.
    pub(crate) fn create(self, index: &AnyIndex) -> ApiResult<Arc<Entry>> {
        let made = Collection::create(&self.path, index, &LiveOptions::new());
        let collection = made.inspect_err(|error| {
            // Nothing was there before, unless another process is creating an index there.
            if !matches!(error, Error::Locked { .. }) {
                let _ = fs::remove_dir_all(&self.path);
            }
        })?;
        let kept = Kept::Directory(collection);
        let entry = Arc::new(Entry::new(self.name.clone(), kept, self.path.clone(), true));
        self.registry
            .write()
            .insert(self.name.clone(), Arc::clone(&entry));
        tracing::info!(index = self.name, "created");
        Ok(entry)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.registry.creating().remove(&self.name);
    }
}

/// Opens an index where it lies, and checks that it can be searched.
fn open(path: &Path, read_only: bool) -> Result<Kept, Error> {
    if path.is_dir() && !read_only {
        return Ok(Kept::Directory(Collection::open(
            path,
            &LiveOptions::new(),
        )?));
    }
    let index = match path.is_dir() {
        true => Collection::open_read_only(path)?.index(),
        false => AnyIndex::open(path)?,
    };
    // What is mapped is checked at its first use.
    let nothing = Rows::new(&[], index.dim())?;
    index.search_batch(nothing, &Search::new(1))?;
    Ok(Kept::Fixed(Arc::new(Snapshot::new(index)?)))
}

/// The ends of hidden names: of an index that is being deleted, and of a snapshot that is being restored.
const DELETED: &str = ".deleted";
pub(crate) const RESTORING: &str = ".restoring";

fn remove(path: &Path) -> std::io::Result<()> {
    match path.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

/// Whether a path is what an interrupted creation leaves: a directory with a lock, without `CURRENT`, which is written last,
/// and with no files but those of a first checkpoint. A new index may take its place.
fn is_leftover(path: &Path) -> bool {
    let names = |path: &Path| -> std::io::Result<Vec<_>> {
        let names = fs::read_dir(path)?.map(|entry| Ok(entry?.file_name()));
        names.collect()
    };
    let is_first = |name: &str| {
        let is_temporary = name.starts_with('.') && name.ends_with(".tmp");
        is_temporary || ["LOCK", "index-1.garlic", "log-1"].contains(&name)
    };
    names(path).is_ok_and(|names| {
        let is_ours = |name: &std::ffi::OsString| name.to_str().is_some_and(is_first);
        names.iter().any(|name| name == "LOCK") && names.iter().all(is_ours)
    })
}

/// Index files and directories in a directory. What is left of interrupted deletions and restorations is removed, unless the
/// directory is only read.
fn below(root: &Path, read_only: bool) -> Result<Vec<Served>, Error> {
    let failed = |source| Error::Io {
        path: root.to_owned(),
        source,
    };
    fs::create_dir_all(root).map_err(failed)?;
    let mut found = Vec::new();
    for entry in fs::read_dir(root).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let last = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let is_hidden =
            last.starts_with('.') && (last.ends_with(DELETED) || last.ends_with(RESTORING));
        if is_hidden {
            if !read_only {
                remove(&path).map_err(failed)?;
            }
            continue;
        }
        let is_index = match path.is_dir() {
            true => live::is_index_directory(&path),
            false => last.ends_with(FILE_END),
        };
        match Served::at(&path) {
            Ok(served) if is_index => found.push(served),
            _ => tracing::warn!(path = %path.display(), "is no index that can be served"),
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that is busy for long holds up the one thread that waits for it, and no request.
    #[test]
    fn what_a_busy_writer_told_last_is_told_again() {
        let folder = tempfile::tempdir().unwrap();
        let index = Index::empty(2, garlic_ann::Config::default()).unwrap();
        let path = folder.path().join("a");
        let made = Collection::create(&path, &index.into(), &LiveOptions::new());
        let kept = Kept::Directory(made.unwrap());
        let entry = Arc::new(Entry::new("a".into(), kept, path, true));
        let rows = Rows::new(&[1.0, 2.0], 2).unwrap();
        entry.writable().unwrap().add(rows, None, None).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let batches = || runtime.block_on(entry.writer()).status.unwrap().log_batches;
        let waiting = entry.asking.try_lock().unwrap();
        assert_eq!(batches(), 0);
        drop(waiting);
        assert_eq!(batches(), 1);
    }
}
