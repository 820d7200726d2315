//! Building an index: a vector's way from data to cells.
//!
//! In: vectors and options. Out: a [`GaussianIndex`]. The steps are those of the paper, one function each:
//! normalise, train (or take given cells), assign, bin.

use std::fmt;
use std::time::Instant;

use garlic_core::buffer::Buffer;
use garlic_core::config::Configuration as _;
use garlic_core::metric::Embedding;
use garlic_core::pool::thread_pool;
use garlic_core::validate::{check_count, check_finite, check_ids_of, check_scale};
use garlic_core::vectors::{StoredType, StoredVectors};
use garlic_core::{BuildReport, Cancel, Error, Metric, Progress, Result, Seconds, Stage};
use garlic_linalg::{Matrix, Rows, permutation};

use crate::config::Config;
use crate::gaussians::{Gaussians, Projected, assign_projected};
use crate::index::{Coverage, GaussianIndex, Parts, Trained};
use crate::route::Router;
use crate::training::{self, History};
use crate::{bins, normalize, partition, streams};

/// Told how far a build is.
type Callback<'a> = Box<dyn Fn(&Progress<'_>) + Send + Sync + 'a>;

/// Options of a build.
///
/// `'a` is how long the progress callback lives.
#[derive(Default)]
pub struct GaussianBuilder<'a> {
    config: Config,
    threads: Option<usize>,
    progress: Option<Callback<'a>>,
    cancel: Cancel,
    ids: Option<Vec<u64>>,
    partition: Option<Vec<u32>>,
}

impl fmt::Debug for GaussianBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = "GaussianBuilder";
        let mut parts = f.debug_struct(name);
        parts.field("config", &self.config);
        parts.field("threads", &self.threads);
        parts.finish_non_exhaustive()
    }
}

impl<'a> GaussianBuilder<'a> {
    /// Takes all parameters.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Sets one parameter by name; see [`config`](crate::config) for the names.
    ///
    /// # Errors
    /// A key that does not exist, a value of the wrong type.
    pub fn set(mut self, key: &str, value: &str) -> Result<Self> {
        self.config.set(key, value)?;
        Ok(self)
    }

    /// What "near" means; Euclidean unless set.
    #[must_use]
    pub fn metric(mut self, metric: Metric) -> Self {
        self.config.metric = metric;
        self
    }

    /// Seed of every random choice.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = seed;
        self
    }

    /// Share of the points that training sees, in (0, 1].
    #[must_use]
    pub fn train_fraction(mut self, share: f64) -> Self {
        self.config.data.train_fraction = share;
        self
    }

    /// Identifiers of the vectors, one for each row; row numbers unless set.
    #[must_use]
    pub fn ids(mut self, ids: impl Into<Vec<u64>>) -> Self {
        self.ids = Some(ids.into());
        self
    }

    /// Cells that were found elsewhere, a number for each row: points of the same number share a cell.
    ///
    /// Nothing is trained. Each cell is a Gaussian fitted to its points, with hyperspherical bins; every point is in its own
    /// cell alone. With isotropic covariances cells are visited in the order of the distances of their means.
    #[must_use]
    pub fn partition(mut self, cells: impl Into<Vec<u32>>) -> Self {
        self.partition = Some(cells.into());
        self
    }

    /// Worker threads; all cores unless set. The index does not depend on it.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Called from time to time, from any worker thread.
    #[must_use]
    pub fn progress(mut self, callback: impl Fn(&Progress<'_>) + Send + Sync + 'a) -> Self {
        self.progress = Some(Box::new(callback));
        self
    }

    /// The build ends with [`Error::Cancelled`] soon after the flag is raised.
    #[must_use]
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Builds the index. The vectors are copied into it.
    ///
    /// # Errors
    /// Vectors, identifiers or parameters that are not allowed; [`Error::Cancelled`].
    pub fn build(&self, vectors: Rows<'_>) -> Result<GaussianIndex> {
        self.build_reported(vectors).map(|(index, _)| index)
    }

    /// Builds the index and tells where the time went.
    ///
    /// # Errors
    /// Those of [`GaussianBuilder::build`].
    pub fn build_reported(&self, vectors: Rows<'_>) -> Result<(GaussianIndex, BuildReport)> {
        self.config.validate()?;
        check_count(vectors)?;
        check_ids_of(self.ids.as_deref(), vectors.len())?;
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
        thread_pool(threads)?.install(|| self.run(vectors))
    }

    /// Fails for cells that are not those of `points` points.
    fn check_partition(&self, points: usize) -> Result<()> {
        match &self.partition {
            Some(cells) if cells.len() != points => Err(Error::Config {
                key: "partition".into(),
                message: format!(
                    "names the cells of {} points, but there are {points} vectors; name one for each",
                    cells.len()
                ),
            }),
            _ => Ok(()),
        }
    }

    fn run(&self, vectors: Rows<'_>) -> Result<(GaussianIndex, BuildReport)> {
        self.tell(Progress::new(Stage::Prepare, 0, 1));
        check_finite(vectors)?;
        check_scale(vectors, self.config.metric)?;
        let embedding = Embedding::fit(self.config.metric, vectors);
        let embedded = embedding.vectors(vectors)?;
        self.run_embedded(embedded.rows(), embedding)
    }

    /// Builds from vectors in the metric's embedding.
    fn run_embedded(
        &self,
        vectors: Rows<'_>,
        embedding: Embedding,
    ) -> Result<(GaussianIndex, BuildReport)> {
        let (config, cancel) = (&self.config, &self.cancel);
        let mut seconds = Seconds::default();
        let start = Instant::now();
        config.check_fits(vectors.dim())?;
        let transform = normalize::fit(vectors, config, cancel)?;
        let mapped = transform.apply_all(vectors, cancel)?;
        let points = mapped.as_rows();
        seconds.prepare = lap(start);
        self.tell(Progress::new(Stage::Prepare, 1, 1));

        let mark = Instant::now();
        let (model, history) = self.train(points)?;
        seconds.train = lap(mark);

        let mark = Instant::now();
        self.tell(Progress::new(Stage::Assign, 0, 1));
        let projected = Projected::of(points, config);
        let tau = config.loss.tau as f32;
        let mut assignment = assign_projected(points, projected.as_ref(), &model, tau, cancel)?;
        let coverage = Coverage::of(&assignment);
        if let Some(cells) = &self.partition {
            assignment = partition::assignment(cells);
        }
        seconds.assign = lap(mark);
        self.tell(Progress::new(Stage::Assign, 1, 1));

        let mark = Instant::now();
        let report = |done: usize| self.tell(Progress::new(Stage::Bins, done, model.len()));
        let (cells, order) =
            bins::build::cells(points, &assignment, model.len(), config, cancel, &report)?;
        drop(mapped);
        let stored = StoredVectors::gather(vectors, &order, StoredType::F32);
        let router = Router::new(&model);
        seconds.bins = lap(mark);
        seconds.total = lap(start);
        let trained = Trained {
            model,
            cells,
            coverage,
            history,
            router,
        };
        let index = GaussianIndex::from(Parts {
            config: config.clone(),
            embedding,
            transform,
            trained,
            vectors: stored,
            ids: self.ids_of(order),
        });
        Ok((index, BuildReport::from(seconds)))
    }

    /// The trained Gaussians, or those of given cells.
    fn train(&self, points: Rows<'_>) -> Result<(Gaussians, History)> {
        let (config, cancel) = (&self.config, &self.cancel);
        if let Some(cells) = &self.partition {
            self.tell(Progress::new(Stage::Train, 0, 1));
            let model = partition::gaussians(points, cells, config, cancel)?;
            return Ok((model, History::default()));
        }
        let sample = training_rows(points, config);
        let rows = sample.as_ref().map_or(points, Matrix::as_rows);
        let epochs = config.training.epochs;
        self.tell(Progress::new(Stage::Train, 0, epochs));
        training::train(rows, config, cancel, &mut |epoch| {
            self.tell(Progress::new(Stage::Train, epoch.epoch, epochs).detail(epoch));
        })
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

    fn tell(&self, progress: Progress<'_>) {
        if let Some(callback) = &self.progress {
            callback(&progress);
        }
    }
}

fn lap(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}

/// The points that training sees; `None` means all.
fn training_rows(points: Rows<'_>, config: &Config) -> Option<Matrix> {
    let share = config.data.train_fraction;
    let count = ((points.len() as f64 * share).round() as usize).clamp(1, points.len());
    if count == points.len() {
        return None;
    }
    let mut ids = permutation(points.len(), config.seed, streams::TRAIN_SAMPLE);
    ids.truncate(count);
    ids.sort_unstable();
    Some(Matrix::gather(points, &ids))
}
