//! Building an index: a vector's way from data to cells.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use garlic_linalg::{Matrix, Rows, permutation};
use serde::Serialize;

use super::overlay::check_ids;
use super::published::{Coverage, Published};
use super::stored::{Stored, StoredType};
use super::tune::calibrate;
use super::{Body, Index, Ledger, Progress, Stage, tempered};
use crate::buffer::Buffer;
use crate::cancel::Cancel;
use crate::cell;
use crate::config::{Config, Model, Preset, Store};
use crate::error::{Error, Result};
use crate::metric::{Embedding, Metric};
use crate::model::{self, Gaussians};
use crate::search::Router;
use crate::space::Space;
use crate::train::{self, Cpu, History, streams};

/// Largest magnitude of a value: squares of differences, summed over many coordinates, must stay finite.
pub(crate) const LARGEST_VALUE: f32 = 1e15;

/// Where all values are smaller, squared distances lose their digits in 32 bits.
const SMALLEST_VALUE: f32 = 1e-18;

/// Told how far a build is.
type Callback<'a> = Box<dyn Fn(&Progress<'_>) + Send + Sync + 'a>;

/// Options of a build.
///
/// `'a` is how long the progress callback lives.
#[derive(Default)]
pub struct Builder<'a> {
    config: Config,
    threads: Option<usize>,
    progress: Option<Callback<'a>>,
    cancel: Cancel,
    ids: Option<Vec<u64>>,
    partition: Option<Vec<u32>>,
}

/// Where the time of a build went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct BuildReport {
    /// Wall-clock seconds.
    pub seconds: Seconds,
}

/// Wall-clock seconds of the parts of a build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Seconds {
    /// Checking, normalising and rotating the data.
    pub prepare: f64,
    /// Training the Gaussians.
    pub train: f64,
    /// Assigning every point to its cells.
    pub assign: f64,
    /// Fitting frames and bins and laying out the vectors.
    pub bins: f64,
    /// Measuring what recall targets take.
    pub calibrate: f64,
    /// Everything.
    pub total: f64,
}

impl<'a> Builder<'a> {
    /// Starts from the parameters of `preset`; the seed is kept, other settings are not.
    pub fn preset(mut self, preset: Preset) -> Self {
        let seed = self.config.seed;
        self.config = Config {
            seed,
            ..Config::preset(preset)
        };
        self
    }

    /// Takes all parameters.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Sets one parameter by name; see [`Config`] for the names.
    pub fn set(mut self, key: &str, value: &str) -> Result<Self> {
        self.config.set(key, value)?;
        Ok(self)
    }

    /// What "near" means; Euclidean unless set.
    pub fn metric(mut self, metric: Metric) -> Self {
        self.config.metric = metric;
        self
    }

    /// Seed of every random choice.
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = seed;
        self
    }

    /// Share of the points that training sees, in (0, 1].
    pub fn train_fraction(mut self, share: f64) -> Self {
        self.config.train_fraction = share;
        self
    }

    /// Identifiers of the vectors, one for each row; row numbers unless set.
    pub fn ids(mut self, ids: impl Into<Vec<u64>>) -> Self {
        self.ids = Some(ids.into());
        self
    }

    /// Cells that were found elsewhere, a number for each row: points of the same number share a cell. Frames, bins and
    /// codes are fitted to them, and nothing is learned (`cells`, `rounds` and `gradient_epochs` are not used). Points that
    /// are held out for the calibration join these cells as points do that are added later.
    ///
    /// When points are added later, a cell that has grown lets go of points that are nearer to others, and one of more
    /// than 1.4 times the mean number of points is split: these cells are where an index starts, not a promise.
    ///
    /// With preset `paper` each cell is a Gaussian fitted to its points, with hyperspherical bins; every point is in its own
    /// cell alone. With isotropic covariances cells are visited in the order of the distances of their means.
    pub fn partition(mut self, cells: impl Into<Vec<u32>>) -> Self {
        self.partition = Some(cells.into());
        self
    }

    /// Worker threads; all cores unless set. The index does not depend on it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Called from time to time, from any worker thread.
    pub fn progress(mut self, callback: impl Fn(&Progress<'_>) + Send + Sync + 'a) -> Self {
        self.progress = Some(Box::new(callback));
        self
    }

    /// The build ends with [`Error::Cancelled`] soon after `flag` becomes true.
    pub fn cancel(mut self, flag: Arc<AtomicBool>) -> Self {
        self.cancel = Cancel::new(flag);
        self
    }

    pub(super) fn cancelled_by(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Trains cells, bins and what recall targets take on a sample, and returns an index without points. Points like those
    /// of the sample can then be added in any order; the index trains itself anew when it has twice the points of the
    /// sample.
    ///
    /// # Errors
    /// Those of [`Builder::build`], and a configuration whose index does not change.
    pub fn train(&self, sample: Rows<'_>) -> Result<Index> {
        self.build(sample)?.without_points()
    }

    /// Builds an index from vectors that are embedded already, in rayon's current pool.
    pub(super) fn build_embedded(&self, vectors: Rows<'_>, embedding: Embedding) -> Result<Index> {
        check_vectors(vectors)?;
        self.run_tempered(vectors, embedding)
            .map(|(index, _)| index)
    }

    /// Builds the index. The vectors are copied into it.
    pub fn build(&self, vectors: Rows<'_>) -> Result<Index> {
        self.build_reported(vectors).map(|(index, _)| index)
    }

    /// Builds the index and tells where the time went.
    pub fn build_reported(&self, vectors: Rows<'_>) -> Result<(Index, BuildReport)> {
        self.config.validate()?;
        check_vectors(vectors)?;
        if let Some(ids) = &self.ids {
            if ids.len() != vectors.len() {
                return Err(Error::IdCount {
                    vectors: vectors.len(),
                    ids: ids.len(),
                });
            }
            check_ids(ids)?;
        }
        self.check_partition(vectors.len())?;
        let threads = match self.threads {
            Some(0) => {
                return Err(Error::Config {
                    key: "threads".into(),
                    message: "must be at least 1".into(),
                });
            }
            Some(threads) => threads,
            None => std::thread::available_parallelism().map_or(1, usize::from),
        };
        let pool = thread_pool(threads)?;
        pool.install(|| self.run(vectors))
    }

    /// Fails for cells that are not those of `points` points.
    fn check_partition(&self, points: usize) -> Result<()> {
        let message = match &self.partition {
            Some(cells) if cells.len() != points => format!(
                "names the cells of {} points, but there are {points} vectors; name one for each",
                cells.len()
            ),
            _ => return Ok(()),
        };
        let key = "partition".into();
        Err(Error::Config { key, message })
    }

    fn run(&self, vectors: Rows<'_>) -> Result<(Index, BuildReport)> {
        self.tell(Stage::Prepare, 0, 1, None);
        check_finite(vectors)?;
        check_scale(vectors, self.config.metric)?;
        let embedding = Embedding::fit(self.config.metric, vectors);
        let embedded = embedding.vectors(vectors)?;
        match self.config.model {
            Model::Gaussians => self.run_published(embedded.rows(), embedding),
            Model::Tempered => self.run_tempered(embedded.rows(), embedding),
        }
    }

    fn run_published(
        &self,
        vectors: Rows<'_>,
        embedding: Embedding,
    ) -> Result<(Index, BuildReport)> {
        let config = &self.config;
        let cancel = &self.cancel;
        let mut seconds = Seconds::default();
        let start = Instant::now();
        config.check_fits(vectors.dim())?;
        let space = Space::fit(
            vectors,
            config.normalize,
            config.rotates(),
            config.seed,
            cancel,
        )?;
        let points = space.apply_all(vectors, cancel)?;
        seconds.prepare = lap(start);
        self.tell(Stage::Prepare, 1, 1, None);

        let (model, history) = match &self.partition {
            None => self.train_published(points.as_rows(), &mut seconds)?,
            Some(cells) => {
                let mark = Instant::now();
                self.tell(Stage::Train, 0, 1, None);
                let model = train::given(points.as_rows(), cells, config, cancel)?;
                seconds.train = lap(mark);
                (model, History::default())
            }
        };
        let mark = Instant::now();
        self.tell(Stage::Assign, 0, 1, None);
        let mut assignment = model::assign(points.as_rows(), &model, config.tau as f32, cancel)?;
        let coverage = Coverage::of(&assignment);
        if let Some(cells) = &self.partition {
            assignment = train::given_assignment(cells);
        }
        seconds.assign = lap(mark);
        self.tell(Stage::Assign, 1, 1, None);

        let mark = Instant::now();
        let report = |done: usize| self.tell(Stage::Bins, done, model.len(), None);
        let (cells, order) = cell::build::cells(
            points.as_rows(),
            &assignment,
            model.len(),
            config,
            cancel,
            &report,
        )?;
        drop(points);
        let vectors = Stored::gather(vectors, &order, StoredType::F32);
        let router = Router::new(&model);
        seconds.bins = lap(mark);
        seconds.total = lap(start);
        let published = Published {
            model,
            cells,
            coverage,
            history,
            router,
        };
        let ledger = Ledger {
            built: order.len() as u64,
            ..Ledger::default()
        };
        let body = Body::Published(Arc::new(published));
        let ids = self.ids_of(order);
        let index = Index::new(config.clone(), embedding, space, body, vectors, ids, ledger);
        Ok((index, BuildReport { seconds }))
    }

    /// The published training.
    fn train_published(
        &self,
        points: Rows<'_>,
        seconds: &mut Seconds,
    ) -> Result<(Gaussians, History)> {
        let (config, cancel) = (&self.config, &self.cancel);
        let mark = Instant::now();
        let sample = training_rows(points, config);
        let rows = sample.as_ref().map_or(points, Matrix::as_rows);
        let backend = Cpu::new(cancel.clone());
        self.tell(Stage::Train, 0, config.epochs, None);
        let (model, history) = train::train(rows, config, &backend, cancel, &mut |epoch| {
            self.tell(Stage::Train, epoch.epoch, config.epochs, Some(epoch));
        })?;
        drop(sample);
        seconds.train = lap(mark);
        Ok((model, history))
    }

    fn run_tempered(
        &self,
        vectors: Rows<'_>,
        embedding: Embedding,
    ) -> Result<(Index, BuildReport)> {
        let config = &self.config;
        let cancel = &self.cancel;
        let mut seconds = Seconds::default();
        let start = Instant::now();
        let store = match (config.metric, config.store) {
            // Whole numbers by chance: vectors that join later are none.
            (Metric::Cosine | Metric::InnerProduct, Store::Auto) => Store::F32,
            (_, store) => store,
        };
        let element = tempered::stored_type(vectors, store)?;
        // Distances are taken from what is stored, and so is everything that is proved about them.
        let rounded = element.round(vectors);
        let vectors = Rows::new(&rounded, vectors.dim())?;
        let space = Space::fit_truncated(
            vectors,
            config.keep_variance,
            config.max_dim,
            config.seed,
            cancel,
        )?;
        let points = space.apply_all(vectors, cancel)?;
        seconds.prepare = lap(start);
        self.tell(Stage::Prepare, 1, 1, None);

        let mark = Instant::now();
        let held = tempered::held_out(vectors, config);
        let (model, labels) = train::tempered::fit(
            points.as_rows(),
            &held,
            self.partition.as_deref(),
            config,
            cancel,
            &|done, total| self.tell(Stage::Train, done, total, None),
        )?;
        seconds.train = lap(mark);

        let mark = Instant::now();
        let cells = model.len();
        let report = |done: usize| self.tell(Stage::Bins, done, cells, None);
        let (fast, order) = tempered::build(
            vectors,
            &space,
            points.as_rows(),
            model,
            &labels,
            &held,
            config,
            cancel,
            &report,
        )?;
        drop(points);
        let mut asked = vec![false; held.len()];
        let held: Vec<u32> = (0..)
            .zip(&order)
            .filter_map(|(position, row)| {
                let number = held.binary_search(row).ok()?;
                // Once, if it lies in two cells.
                (!std::mem::replace(&mut asked[number], true)).then_some(position)
            })
            .collect();
        let ledger = Ledger {
            built: vectors.len() as u64,
            radius: fast.learned.mean_norm(),
            longest: embedding.longest_stored(vectors.iter()),
            ..Ledger::default()
        };
        let body = Body::Tempered(Arc::new(fast));
        let stored = Stored::gather(vectors, &order, element);
        let ids = self.ids_of(order);
        let mut kept = config.clone();
        if self.partition.is_some() {
            // As many as somebody wanted: what splits and drift compare with.
            kept.cells = cells;
        }
        let mut index = Index::new(kept, embedding, space, body, stored, ids, ledger);
        seconds.bins = lap(mark);

        let mark = Instant::now();
        let calibration = calibrate(&index, &held, cancel, &|done, total| {
            self.tell(Stage::Calibrate, done, total, None);
        })?;
        if let Body::Tempered(body) = &mut index.body {
            Arc::make_mut(body).calibration = calibration;
        }
        self.tell(Stage::Calibrate, 1, 1, None);
        seconds.calibrate = lap(mark);
        seconds.total = lap(start);
        Ok((index, BuildReport { seconds }))
    }

    /// Identifiers of rows.
    fn ids_of(&self, rows: Vec<u32>) -> Buffer<u64> {
        let rows = rows.into_iter();
        let ids: Vec<u64> = match &self.ids {
            Some(ids) => rows.map(|row| ids[row as usize]).collect(),
            None => rows.map(u64::from).collect(),
        };
        ids.into()
    }

    fn tell(&self, stage: Stage, done: usize, total: usize, epoch: Option<&train::Epoch>) {
        if let Some(callback) = &self.progress {
            callback(&Progress {
                stage,
                done,
                total,
                epoch,
            });
        }
    }
}

impl Coverage {
    fn of(assignment: &model::Assignment) -> Self {
        let points = assignment.nearest.len().max(1) as f64;
        let covered = (0..assignment.nearest.len())
            .filter(|p| !assignment.covering(*p).is_empty())
            .count();
        Self {
            share: covered as f64 / points,
            mean: assignment.memberships().count() as f64 / points,
        }
    }
}

fn lap(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}

/// A pool of our own: the global one belongs to the program.
pub(crate) fn thread_pool(threads: usize) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|i| format!("garlic-{i}"))
        .build()
        .map_err(|e| Error::Threads {
            threads,
            message: e.to_string(),
        })
}

/// The points that training sees; `None` means all.
fn training_rows(points: Rows<'_>, config: &Config) -> Option<Matrix> {
    let count =
        ((points.len() as f64 * config.train_fraction).round() as usize).clamp(1, points.len());
    if count == points.len() {
        return None;
    }
    let mut ids = permutation(points.len(), config.seed, streams::TRAIN_SAMPLE);
    ids.truncate(count);
    ids.sort_unstable();
    Some(Matrix::gather(points, &ids))
}

pub(crate) fn check_vectors(vectors: Rows<'_>) -> Result<()> {
    if vectors.is_empty() {
        return Err(Error::NoVectors);
    }
    // Positions are 32-bit numbers, and the largest one marks "none".
    let limit = (u32::MAX - 1) as usize;
    if vectors.len() > limit {
        return Err(Error::TooManyVectors {
            rows: vectors.len(),
            limit,
        });
    }
    Ok(())
}

/// Fails for vectors whose squared distances, in 32 bits, would be nothing but zeros. Cosines do not depend on lengths.
fn check_scale(vectors: Rows<'_>, metric: Metric) -> Result<()> {
    use rayon::prelude::*;
    if metric == Metric::Cosine {
        return Ok(());
    }
    let magnitudes = vectors.data().par_iter().map(|v| v.abs());
    let largest = magnitudes.reduce(|| 0.0, f32::max);
    match largest > 0.0 && largest < SMALLEST_VALUE {
        true => Err(Error::TooSmall {
            largest,
            limit: SMALLEST_VALUE,
        }),
        false => Ok(()),
    }
}

pub(crate) fn check_finite(vectors: Rows<'_>) -> Result<()> {
    use rayon::prelude::*;
    let dim = vectors.dim();
    let bad = vectors
        .data()
        .par_iter()
        .position_first(|v| v.is_nan() || v.abs() > LARGEST_VALUE);
    match bad {
        None => Ok(()),
        Some(at) => {
            let (row, column, value) = (at / dim, at % dim, vectors.data()[at]);
            if value.is_finite() {
                return Err(Error::TooLarge {
                    row,
                    column,
                    value,
                    limit: LARGEST_VALUE,
                });
            }
            Err(Error::NotFinite { row, column, value })
        }
    }
}
