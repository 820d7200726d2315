//! Building an index: a vector's way from data to cells.

use crate::bins::{EncodedBins, Encoding};
use crate::config::Config;
use crate::config::Store;
use crate::partition::fit;
use crate::partition::{AnisotropicCells, SHORTLIST, code_bits};
use crate::plan::Calibration;
use crate::segment::{BuildStats, Index, Segment};
use crate::streams;
use crate::transform::outside;
use crate::tune::calibrate;
use crate::{transform, tune};
use storage::stored_type;

mod storage;

pub(crate) use storage::check_type;

use std::sync::Arc;
use std::time::Instant;

use garlic_core::buffer::Buffer;
use garlic_core::config::Configuration as _;
use garlic_core::metric::Embedding;
use garlic_core::pool::thread_pool;
use garlic_core::validate::{check_count, check_finite, check_ids_of, check_scale};
use garlic_core::vectors::StoredVectors;
use garlic_core::{
    BuildReport, Cancel, Error, Metric, Progress, Result, Seconds, Stage, Transform,
};
use garlic_linalg::Rows;

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

impl std::fmt::Debug for Builder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("config", &self.config)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl Index {
    /// Starts building an index.
    pub fn builder<'a>() -> Builder<'a> {
        Builder::default()
    }
}

impl<'a> Builder<'a> {
    /// Takes all parameters.
    #[must_use]
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

    /// Number of cells; chosen from the number of points unless set.
    #[must_use]
    pub fn cells(mut self, cells: usize) -> Self {
        self.config.partition.cells = cells;
        self
    }

    /// Points of a bin on average.
    #[must_use]
    pub fn bin_size(mut self, points: usize) -> Self {
        self.config.bins.bin_size = points;
        self
    }

    /// Bits of a coordinate in a point's code, 8 or 4; chosen from the number of points unless set.
    #[must_use]
    pub fn code_bits(mut self, bits: usize) -> Self {
        self.config.storage.code_bits = bits;
        self
    }

    /// Type of the stored vectors; bytes where every value is one, else 32-bit floats, unless set.
    #[must_use]
    pub fn store(mut self, store: Store) -> Self {
        self.config.storage.store = store;
        self
    }

    /// Recall that a search aims at unless it says otherwise.
    #[must_use]
    pub fn recall(mut self, target: f64) -> Self {
        self.config.tuning.recall = target;
        self
    }

    /// Identifiers of the vectors, one for each row; row numbers unless set.
    #[must_use]
    pub fn ids(mut self, ids: impl Into<Vec<u64>>) -> Self {
        self.ids = Some(ids.into());
        self
    }

    /// Cells that were found elsewhere, a number for each row: points of the same number share a cell. Frames, bins and
    /// codes are fitted to them, and nothing is encoded (`cells` and `rounds` are not used). Points that
    /// are held out for the calibration join these cells as points do that are added later.
    ///
    /// When points are added later, a cell that has grown lets go of points that are nearer to others, and one of more
    /// than 1.4 times the mean number of points is split: these cells are where an index starts, not a promise.
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

    /// The build ends with [`Error::Cancelled`] soon after `cancel` is raised.
    #[must_use]
    pub fn cancel(mut self, cancel: Cancel) -> Self {
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
        check_count(vectors)?;
        self.run_embedded(vectors, embedding)
            .map(|(index, _)| index)
    }

    /// Builds the index. The vectors are copied into it.
    pub fn build(&self, vectors: Rows<'_>) -> Result<Index> {
        self.build_reported(vectors).map(|(index, _)| index)
    }

    /// Builds the index and tells where the time went.
    pub fn build_reported(&self, vectors: Rows<'_>) -> Result<(Index, BuildReport)> {
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
        self.tell(Stage::Prepare, 0, 1);
        check_finite(vectors)?;
        check_scale(vectors, self.config.metric)?;
        let embedding = Embedding::fit(self.config.metric, vectors);
        let embedded = embedding.vectors(vectors)?;
        self.run_embedded(embedded.rows(), embedding)
    }

    /// The whole way of the vectors, on one page.
    fn run_embedded(
        &self,
        vectors: Rows<'_>,
        embedding: Embedding,
    ) -> Result<(Index, BuildReport)> {
        let (config, cancel) = (&self.config, &self.cancel);
        let mut seconds = Seconds::default();
        let start = Instant::now();
        let element = stored_type(vectors, config.metric, config.storage.store)?;
        // Distances are taken from what is stored, and so is everything that is proved about them.
        let rounded = element.round(vectors);
        let vectors = Rows::new(&rounded, vectors.dim())?;
        let transform = transform::fit(vectors, &config.transform, config.seed, cancel)?;
        let points = transform.apply_all(vectors, cancel)?;
        seconds.prepare = lap(start);
        self.tell(Stage::Prepare, 1, 1);

        let mark = Instant::now();
        let held = tune::held_out(vectors, config);
        let given = self.partition.as_deref();
        let step = |done, total| self.tell(Stage::Train, done, total);
        let (model, labels) = fit(points.as_rows(), &held, given, config, cancel, &step)?;
        seconds.train = lap(mark);

        let mark = Instant::now();
        let cells = model.len();
        let (encoded, order) = self.encode(
            vectors,
            &transform,
            points.as_rows(),
            &model,
            &labels,
            &held,
        )?;
        drop(points);
        let held = positions_of(&held, &order);
        let ledger = BuildStats {
            built: vectors.len() as u64,
            radius: encoded.mean_norm(),
            longest: embedding.longest_stored(vectors.iter()),
            ..BuildStats::default()
        };
        let stored = StoredVectors::gather(vectors, &order, element);
        let segment = Segment::new(&transform, model, encoded, stored, self.ids_of(order));
        let mut kept = config.clone();
        if self.partition.is_some() {
            // As many as somebody wanted: what splits and drift compare with.
            kept.partition.cells = cells;
        }
        let table = Calibration::default();
        let mut index = Index::new(kept, embedding, transform, segment, table, ledger);
        seconds.bins = lap(mark);

        let mark = Instant::now();
        let step = |done, total| self.tell(Stage::Calibrate, done, total);
        index.calibration = Arc::new(calibrate(&index, &held, cancel, &step)?);
        self.tell(Stage::Calibrate, 1, 1);
        seconds.calibrate = lap(mark);
        seconds.total = lap(start);
        Ok((index, seconds.into()))
    }

    /// Cuts the cells into bins and encodes their points; also returns the stored order of the rows, in which those that
    /// lie in two cells come twice.
    fn encode(
        &self,
        vectors: Rows<'_>,
        transform: &Transform,
        points: Rows<'_>,
        model: &AnisotropicCells,
        labels: &[u32],
        held: &[u32],
    ) -> Result<(EncodedBins, Vec<u32>)> {
        let (config, cancel) = (&self.config, &self.cancel);
        let seconds = match config.partition.spill {
            0.0 => Vec::new(),
            times => model.seconds(points, labels, times, SHORTLIST, cancel)?,
        };
        let encoding = Encoding {
            points,
            residual: &outside(vectors, transform, points),
            model,
            labels,
            seconds: &seconds,
            held,
            bin_size: config.bins.bin_size,
            bits: code_bits(config, points.len()),
            seed: config.seed ^ streams::BINS,
        };
        let done = |done: usize| self.tell(Stage::Bins, done, model.len());
        EncodedBins::build(&encoding, cancel, &done)
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

    fn tell(&self, stage: Stage, done: usize, total: usize) {
        if let Some(callback) = &self.progress {
            callback(&Progress::new(stage, done, total));
        }
    }
}

/// Positions of the rows `held` (in order) when rows are stored in the order `order`; each once.
fn positions_of(held: &[u32], order: &[u32]) -> Vec<u32> {
    let mut asked = vec![false; held.len()];
    (0..)
        .zip(order)
        .filter_map(|(position, row)| {
            let number = held.binary_search(row).ok()?;
            // Once, if it lies in two cells.
            (!std::mem::replace(&mut asked[number], true)).then_some(position)
        })
        .collect()
}

fn lap(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}
