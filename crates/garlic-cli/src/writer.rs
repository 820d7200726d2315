//! Changing an index: a directory batch by batch, a file as a whole.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use garlic_ann::live::Kind;
use garlic_ann::{Drift, Error, Live, Rows};
use garlic_any::AnyIndex;
use garlic_table::{Change, Collection, Ids, RecordBatch, Snapshot};

use crate::exit::Fault;
use crate::interrupt::Watch;
use crate::output;
use crate::place;

/// How often it is looked whether a training has ended.
const LOOK: Duration = Duration::from_millis(20);

/// What to do with the vectors of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// None of the points exists.
    Add,
    /// All of them exist, and their columns stay.
    Update,
    /// Some may exist; their vectors and columns are replaced.
    Upsert,
}

/// An index that is open for changes.
pub(crate) struct Writer {
    path: PathBuf,
    kept: Kept,
}

enum Kept {
    /// Changed in memory, written at the end.
    File(Box<AnyIndex>),
    /// Every change is acknowledged by itself.
    Directory(Collection),
}

impl Writer {
    /// Opens an index for changes; `inputs` are files that are read meanwhile.
    pub(crate) fn open(path: &Path, inputs: &[&Path]) -> anyhow::Result<Self> {
        if place::is_directory(path) {
            return Ok(Self {
                kept: Kept::Directory(Live::open(path)?.into()),
                path: path.to_owned(),
            });
        }
        let index = place::load_sound(path)?;
        // Saving replaces what the name is, and a link should stay one.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        output::check_regular(&path, inputs)?;
        Ok(Self {
            kept: Kept::File(Box::new(index)),
            path,
        })
    }

    /// Whether a change stays even if a later one fails.
    pub(crate) fn is_directory(&self) -> bool {
        matches!(self.kept, Kept::Directory(_))
    }

    /// The index as it is now.
    pub(crate) fn snapshot(&self) -> AnyIndex {
        match &self.kept {
            Kept::File(index) => AnyIndex::clone(index),
            Kept::Directory(collection) => collection.index(),
        }
    }

    /// Whether points have names.
    pub(crate) fn is_named(&self) -> anyhow::Result<bool> {
        Ok(Snapshot::new(self.snapshot())?.is_named())
    }

    /// Adds or replaces vectors.
    pub(crate) fn put(
        &mut self,
        how: Put,
        vectors: Rows<'_>,
        ids: &Ids,
        columns: Option<&RecordBatch>,
    ) -> garlic_ann::Result<()> {
        match (&mut self.kept, how) {
            (Kept::File(index), Put::Update) => {
                let change = Change::update(index, vectors.len(), ids)?;
                change.apply(index, Kind::Update, vectors).map(|_| ())
            }
            (Kept::File(index), Put::Add | Put::Upsert) => {
                let (replace, kind) = match how {
                    Put::Upsert => (true, Kind::Upsert),
                    Put::Add | Put::Update => (false, Kind::Add),
                };
                let change = Change::put(index, vectors.len(), Some(ids), columns, replace)?;
                change.apply(index, kind, vectors).map(|_| ())
            }
            (Kept::Directory(collection), Put::Add) => collection
                .add(vectors, Some(ids.clone()), columns)
                .map(|_| ()),
            (Kept::Directory(collection), Put::Update) => collection.update(vectors, ids),
            (Kept::Directory(collection), Put::Upsert) => collection.upsert(vectors, ids, columns),
        }
    }

    /// Removes points; returns how many were there.
    pub(crate) fn remove(&mut self, ids: &Ids) -> garlic_ann::Result<usize> {
        match &mut self.kept {
            Kept::File(index) => {
                let none = Rows::new(&[], index.dim())?;
                Change::remove(index, ids)?.apply(index, Kind::Remove, none)
            }
            Kept::Directory(collection) => collection.remove(ids),
        }
    }

    /// The handle of a directory.
    fn live(&self) -> Option<&Live> {
        match &self.kept {
            Kept::File(_) => None,
            Kept::Directory(collection) => collection.live().ok(),
        }
    }

    /// Before `more` points are added: the points that the index will be trained on then, before the call returns.
    pub(crate) fn trains_with(&self, more: usize) -> Option<usize> {
        match &self.kept {
            Kept::File(index) => {
                let points = index.len() + more;
                let trains_at = index.updatable().ok()?.trains_at();
                trains_at.filter(|at| points >= *at).map(|_| points)
            }
            // It is trained beside the changes.
            Kept::Directory(_) => None,
        }
    }

    /// Whether a directory is being trained beside its changes.
    pub(crate) fn is_training(&self) -> bool {
        self.live().is_some_and(|live| live.training().running)
    }

    /// Waits for a training of a directory; false if Ctrl-C came first.
    pub(crate) fn wait(&self, watch: &Watch) -> bool {
        while self.is_training() {
            if watch.check().is_err() {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }

    /// The error of a change, with the name of the index and the right exit code.
    pub(crate) fn failed(&self, error: Error) -> anyhow::Error {
        explain(&self.path, error)
    }

    /// Makes the changes last: replaces the file; a directory has them already.
    pub(crate) fn finish(self) -> anyhow::Result<AnyIndex> {
        match self.kept {
            Kept::File(index) => {
                index
                    .save(&self.path)
                    .map_err(|e| output::save_error(&self.path, e))?;
                Ok(*index)
            }
            Kept::Directory(collection) => {
                let live = collection.live()?;
                let status = live.status();
                if let Some(reason) = status.and_then(|s| s.failed_checkpoint) {
                    eprintln!(
                        "garlic: all changes are in the log, but no checkpoint could be made ({reason}); `garlic \
                         compact` tries again"
                    );
                }
                if let Some(reason) = live.training().failed {
                    eprintln!(
                        "garlic: all changes are in the index, but it could not be trained anew ({reason}); it is tried \
                         again when it has grown"
                    );
                }
                Ok(collection.index())
            }
        }
    }
}

/// The error of a change of the index at `path`. The library's `Io` says that a file could not be written here.
pub(crate) fn explain(path: &Path, error: Error) -> anyhow::Error {
    match error {
        Error::Io { .. } => Fault::failed(format!(
            "{error}; every batch is there as a whole or not at all: free some space and try again"
        )),
        error => Err::<(), _>(error)
            .with_context(|| path.display().to_string())
            .unwrap_err(),
    }
}

/// One line of advice when the data have moved away from what the index was fitted to.
pub(crate) fn advice(drift: &Drift) -> Option<String> {
    drift.rebuild.then(|| {
        if drift.reads_everything {
            return "a rebuild would pay (`garlic compact --retrain`): targets were missed since the index changed, and it \
                    reads everything until the next training"
                .to_owned();
        }
        format!(
            "a rebuild would pay (`garlic compact --retrain`): added points lie {:.2} times as far (squared) from their cells, and {} cells hold \
             what a build would give {}",
            drift.spread, drift.cells, drift.cells_of_a_build
        )
    })
}
