//! Builds an index of vectors that do not fit into memory.
//!
//! In: vectors batch by batch. Out: an [`Index`] whose vectors are in a file, to be saved. The bytes are those of the
//! build in memory: the same samples are drawn, and the same functions are called with the same rows.
//!
//! Parts of the build leave files in a temporary folder. `rows` holds the vectors as they came, `points` the transformed
//! ones. Points are then written by group of cells (`groups`), and one group after the other is fitted and encoded
//! (`encoded`). A journal says which parts are finished, so that a build that was stopped can go on. `memory` has the
//! formulas for what each part needs.

mod cells;
mod encoded;
mod folder;
mod groups;
mod journal;
mod memory;
mod points;
mod rows;
mod steps;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Instant;

use garlic_core::config::Configuration as _;
use garlic_core::validate::{check_count_of, check_ids_of};
use garlic_core::{BuildReport, Error, Result, Rows, Seconds, Stage};

use super::Builder;
use crate::segment::Index;
use folder::Folder;
use journal::Journal;
use rows::RowWriter;

/// A build of vectors that come batch by batch and need not fit into memory.
///
/// Give it all vectors with [`StreamedBuild::push`], unless [`StreamedBuild::finished_rows`] says that an earlier build
/// was stopped after that, then call [`StreamedBuild::build`], save the index and call [`StreamedBuild::remove`].
///
/// ```
/// # use garlic_ann::{Index, Rows};
/// # let folder = tempfile::tempdir()?;
/// # let place = folder.path();
/// let data: Vec<f32> = (0..4000).map(|i| ((i * 37) % 101) as f32).collect();
/// let builder = Index::builder().seed(7);
/// let mut build = builder.streamed(place.join("parts"), 256 << 20, "made of nothing", false)?;
/// for batch in data.chunks(400) {
///     build.push(Rows::new(batch, 4)?)?;
/// }
/// let built = build.build()?;
/// built.index.save(place.join("index.garlic"))?;
/// build.remove()?;
/// assert_eq!(Index::open(place.join("index.garlic"))?.len(), 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct StreamedBuild<'a> {
    builder: Builder<'a>,
    folder: Folder,
    memory: u64,
    /// Bytes that the caller keeps meanwhile.
    reserved: u64,
    pool: rayon::ThreadPool,
    threads: usize,
    journal: Journal,
    writer: Option<RowWriter>,
    seconds: Seconds,
    start: Instant,
}

impl std::fmt::Debug for StreamedBuild<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamedBuild")
            .field("builder", &self.builder)
            .field("folder", &self.folder)
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}

/// What a streamed build gives.
#[derive(Debug)]
#[non_exhaustive]
pub struct StreamedIndex {
    /// The index. Its vectors are in the temporary folder: save it before the folder is removed.
    pub index: Index,
    /// Where the time went.
    pub report: BuildReport,
    /// The memory in bytes that a neighbour graph would have needed, if calibration wanted one and it did not fit.
    pub graph_left_out: Option<u64>,
}

impl<'a> Builder<'a> {
    /// Begins a build of vectors that need not fit into memory.
    ///
    /// Its parts lie in `folder`, which must be on a disk with room for four times the vectors as 32-bit
    /// floats. Resident memory stays below `memory` bytes. `input` describes the vectors; with `resume`, a build goes on that was stopped, if
    /// `input` and the parameters are the same.
    ///
    /// # Errors
    /// Fails for a folder with the parts of another build, or without `resume` of any, for one that another build is
    /// using or that has other files, and for parameters that a streamed build does not support: `spill`, and cells
    /// that the caller chose.
    pub fn streamed(
        self,
        folder: impl Into<PathBuf>,
        memory: u64,
        input: &str,
        resume: bool,
    ) -> Result<StreamedBuild<'a>> {
        self.config.validate()?;
        let unsupported = match (self.config.partition.spill > 0.0, &self.partition) {
            (true, _) => Some("spill"),
            (_, Some(_)) => Some("partition"),
            _ => None,
        };
        if let Some(key) = unsupported {
            return Err(Error::Config {
                key: key.into(),
                message: "is not supported by a build with a memory limit; leave one of them out"
                    .into(),
            });
        }
        let folder = Folder::new(folder.into())?;
        let options = serde_json::to_string(&self.config).map_err(|error| Error::Config {
            key: "seed".into(),
            message: error.to_string(),
        })?;
        let fingerprint = format!("{}\n{options}\n{input}", env!("CARGO_PKG_VERSION"));
        let pool = self.pool()?;
        Ok(StreamedBuild {
            journal: Journal::open(&folder, fingerprint, resume)?,
            threads: pool.current_num_threads(),
            pool,
            builder: self,
            folder,
            memory,
            reserved: 0,
            writer: None,
            seconds: Seconds::default(),
            start: Instant::now(),
        })
    }
}

impl StreamedBuild<'_> {
    /// The number of vectors, if a build that was stopped has all of them already.
    pub fn finished_rows(&self) -> Option<usize> {
        self.journal.rows.as_ref().map(|rows| rows.rows)
    }

    /// The memory in bytes that a build of so many vectors of this dimension needs.
    pub fn needed_memory(&self, vectors: usize, dim: usize) -> u64 {
        self.expected(vectors, dim).needed() + self.given_bytes()
    }

    /// Fails if the limit is too small for so many vectors of this dimension.
    ///
    /// # Errors
    /// [`Error::Config`], which says how much is needed.
    pub fn check_memory(&self, vectors: usize, dim: usize) -> Result<()> {
        let sizes = self.expected(vectors, dim);
        sizes.check(self.memory, self.given_bytes())?;
        self.check_graph(&sizes)
    }

    /// Identifiers of the vectors, one per row. The default is the row number.
    pub fn set_ids(&mut self, ids: Vec<u64>) {
        self.builder.ids = Some(ids);
    }

    /// Sets aside memory in bytes that the caller needs until the index is built, such as for names and columns of the
    /// vectors. It counts towards the limit.
    pub fn reserve(&mut self, bytes: u64) {
        self.reserved = bytes;
    }

    /// Takes the next vectors.
    ///
    /// # Errors
    /// Fails for vectors that [`Builder::build`] refuses, and if the disk is full.
    pub fn push(&mut self, rows: Rows<'_>) -> Result<()> {
        self.builder.cancel.check()?;
        if self.journal.rows.is_some() {
            return Err(Error::Config {
                key: "resume".into(),
                message: "the build has all vectors already".into(),
            });
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => self
                .writer
                .insert(RowWriter::new(&self.folder, self.builder.config.metric)?),
        };
        self.pool.install(|| writer.push(rows))
    }

    /// Reports that `done` of `total` vectors were given.
    pub fn report_read(&self, done: usize, total: usize) {
        self.builder.report_progress(Stage::Prepare, done, total);
    }

    /// Builds the index of the given vectors.
    ///
    /// # Errors
    /// Fails as [`Builder::build`] does, and if the memory limit is too small or a file cannot be written.
    pub fn build(&mut self) -> Result<StreamedIndex> {
        if let Some(writer) = self.writer.take() {
            self.journal.rows = Some(writer.finish()?);
            self.journal.save(&self.folder)?;
        }
        let Some(rows) = self.journal.rows.clone() else {
            return Err(Error::NoVectors);
        };
        check_count_of(rows.rows)?;
        check_ids_of(self.builder.ids.as_deref(), rows.rows)?;
        self.check_memory(rows.rows, rows.dim)?;
        self.seconds.prepare = self.start.elapsed().as_secs_f64();
        // The pool is borrowed while the journal changes.
        let pool = std::mem::replace(&mut self.pool, garlic_core::pool::thread_pool(1)?);
        let built = pool.install(|| self.finish(&rows));
        self.pool = pool;
        built
    }

    /// Removes the temporary folder.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove(self) -> Result<()> {
        self.folder.remove()
    }

    /// Bytes of what the caller gave and keeps.
    pub(super) fn given_bytes(&self) -> u64 {
        let ids = self.builder.ids.as_ref().map_or(0, Vec::len);
        16 * ids as u64 + self.reserved
    }
}
