//! Builds an index.
//!
//! In: vectors and a [`Config`]. Out: an [`Index`]. The steps are: choose the stored type, fit the transform, train
//! cells, encode bins, calibrate recall targets.

use crate::bins::{EncodedBins, Encoding};
use crate::config::Config;
use crate::config::{Store, UseGraph};
use crate::graph::{GraphBuilder, MAX_POINTS};
use crate::partition::fit;
use crate::partition::{AnisotropicCells, SCORED_CELLS, code_bits};
use crate::plan::Calibration;
use crate::segment::{BuildStats, Index, Segment};
use crate::streams;
use crate::transform::residuals_squared;
use crate::tune::{GraphToMeasure, Measurements, calibrate, calibrate_for};
use crate::{transform, tune};
use storage::{first_value, rounded, stored_type};

mod storage;
mod stream;

pub(crate) use storage::check_type;
pub use stream::{StreamedBuild, StreamedIndex};

use std::sync::Arc;
use std::time::Instant;

use garlic_core::buffer::Buffer;
use garlic_core::config::Configuration as _;
use garlic_core::metric::{Embedded, Embedding};
use garlic_core::pool::thread_pool;
use garlic_core::validate::{check_count, check_finite, check_ids_of, check_scale};
use garlic_core::vectors::StoredVectors;
use garlic_core::{
    BuildReport, Cancel, Error, Metric, Progress, Result, Seconds, Stage, Transform,
};
use garlic_linalg::{Matrix, Rows};
use rayon::prelude::*;

/// Receives the progress of a build.
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
    queries_like: Option<Matrix>,
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
    /// Sets all parameters.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Sets one parameter by name. See [`Config`] for the names.
    pub fn set(mut self, key: &str, value: &str) -> Result<Self> {
        self.config.set(key, value)?;
        Ok(self)
    }

    /// The metric. The default is Euclidean.
    #[must_use]
    pub fn metric(mut self, metric: Metric) -> Self {
        self.config.metric = metric;
        self
    }

    /// The seed of all random choices.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = seed;
        self
    }

    /// Number of cells. By default it is chosen from the number of points.
    #[must_use]
    pub fn cells(mut self, cells: usize) -> Self {
        self.config.partition.cells = cells;
        self
    }

    /// Mean number of points per bin.
    #[must_use]
    pub fn bin_size(mut self, points: usize) -> Self {
        self.config.bins.bin_size = points;
        self
    }

    /// Bits per coordinate in a code, 8 or 4. By default they are chosen from the number of points.
    #[must_use]
    pub fn code_bits(mut self, bits: usize) -> Self {
        self.config.storage.code_bits = bits;
        self
    }

    /// Type of the stored vectors. The default is bytes if every value is one, otherwise 32-bit floats.
    #[must_use]
    pub fn store(mut self, store: Store) -> Self {
        self.config.storage.store = store;
        self
    }

    /// Default recall target of searches.
    #[must_use]
    pub fn recall(mut self, target: f64) -> Self {
        self.config.tuning.recall = target;
        self
    }

    /// Identifiers of the vectors, one per row. The default is the row number.
    #[must_use]
    pub fn ids(mut self, ids: impl Into<Vec<u64>>) -> Self {
        self.ids = Some(ids.into());
        self
    }

    /// Cells that were found elsewhere, as one number per row. Points with the same number share a cell. Frames, bins
    /// and codes are fitted to these cells, and `cells` and `rounds` are ignored. Points that are held out for
    /// calibration are assigned like points that are added later.
    ///
    /// Later updates may change these cells: a cell that grows passes points on to nearer cells, and a cell that is
    /// much larger than the others is split.
    #[must_use]
    pub fn partition(mut self, cells: impl Into<Vec<u32>>) -> Self {
        self.partition = Some(cells.into());
        self
    }

    /// A sample of the queries that will be asked. Recall targets are measured with it instead of held-out points, as
    /// [`Index::tune`] does. The sample is copied.
    #[must_use]
    pub fn queries_like(mut self, queries: Rows<'_>) -> Self {
        let all: Vec<u32> = (0..queries.len() as u32).collect();
        self.queries_like = Some(Matrix::gather(queries, &all));
        self
    }

    /// Number of worker threads. The default is the number of cores. The index does not depend on it.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// A callback for progress. Any worker thread may call it.
    #[must_use]
    pub fn progress(mut self, callback: impl Fn(&Progress<'_>) + Send + Sync + 'a) -> Self {
        self.progress = Some(Box::new(callback));
        self
    }

    /// Lets `cancel` stop the build, which then fails with [`Error::Cancelled`].
    #[must_use]
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Trains cells, bins and calibration on a sample and returns an index without points. Points like those of the
    /// sample can then be added in any order. The index retrains itself when it has twice as many points as the
    /// sample.
    ///
    /// # Errors
    /// Fails as [`Builder::build`] does, and for a configuration whose index is read-only.
    pub fn train(&self, sample: Rows<'_>) -> Result<Index> {
        self.build(sample)?.without_points()
    }

    /// Builds an index from embedded vectors in the current rayon pool.
    pub(super) fn build_embedded(&self, vectors: Matrix, embedding: Embedding) -> Result<Index> {
        check_count(vectors.as_rows())?;
        self.build_stages(Embedded::Made(vectors), embedding)
            .map(|(index, _)| index)
    }

    /// Builds the index. It copies the vectors.
    pub fn build(&self, vectors: Rows<'_>) -> Result<Index> {
        self.build_reported(vectors).map(|(index, _)| index)
    }

    /// Builds the index and reports the time of each stage.
    pub fn build_reported(&self, vectors: Rows<'_>) -> Result<(Index, BuildReport)> {
        self.pool_for(vectors)?.install(|| {
            let embedding = self.embedding_of(vectors)?;
            self.build_stages(embedding.vectors(vectors)?, embedding)
        })
    }

    /// Builds the index of vectors of `dim` coordinates that nobody else needs, and reports the time of each stage.
    ///
    /// The index is that of [`Builder::build`]. The build scales and rounds the vectors where they are, which saves a
    /// copy of all of them with the metric cosine and if `store` is f16 or int8.
    ///
    /// # Errors
    /// Fails as [`Builder::build`] does, and for values that do not form whole vectors.
    pub fn build_owned(&self, vectors: Vec<f32>, dim: usize) -> Result<(Index, BuildReport)> {
        let vectors = Matrix::from_vec(vectors, dim)?;
        self.pool_for(vectors.as_rows())?.install(|| {
            let embedding = self.embedding_of(vectors.as_rows())?;
            self.build_stages(embedding.own_vectors(vectors)?, embedding)
        })
    }

    /// Checks the parameters, and returns the worker threads for a build of these vectors.
    fn pool_for(&self, vectors: Rows<'_>) -> Result<rayon::ThreadPool> {
        self.config.validate()?;
        check_count(vectors)?;
        check_ids_of(self.ids.as_deref(), vectors.len())?;
        self.check_partition(vectors.len())?;
        self.pool()
    }

    /// The worker threads.
    fn pool(&self) -> Result<rayon::ThreadPool> {
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
        thread_pool(threads)
    }

    /// Fails unless the given cells belong to `points` points.
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

    /// Checks the vectors and fits the embedding to them.
    fn embedding_of(&self, vectors: Rows<'_>) -> Result<Embedding> {
        self.report_progress(Stage::Prepare, 0, 1);
        check_finite(vectors)?;
        check_scale(vectors, self.config.metric)?;
        let embedding = Embedding::fit(self.config.metric, vectors);
        if let Some(queries) = &self.queries_like {
            tune::check_sample(queries.as_rows(), vectors.dim(), &embedding)?;
        }
        Ok(embedding)
    }

    /// All stages of a build from embedded vectors.
    fn build_stages(
        &self,
        embedded: Embedded<'_>,
        embedding: Embedding,
    ) -> Result<(Index, BuildReport)> {
        let (config, cancel) = (&self.config, &self.cancel);
        let mut seconds = Seconds::default();
        let start = Instant::now();
        let element = stored_type(
            embedded.rows().dim(),
            config.metric,
            config.storage.store,
            |is_wanted| Ok(first_value(embedded.rows(), is_wanted)),
        )?;
        // Distances and bounds refer to the stored values, so everything is fitted to these.
        let embedded = rounded(embedded, element)?;
        let vectors = embedded.rows();
        let transform = transform::fit(vectors, &config.transform, config.seed, cancel)?;
        let points = transform.apply_all(vectors, cancel)?;
        seconds.prepare = seconds_since(start);
        self.report_progress(Stage::Prepare, 1, 1);

        let stage_start = Instant::now();
        let held = tune::held_out(vectors.len(), vectors.dim(), config);
        let given = self.partition.as_deref();
        let step = |done, total| self.report_progress(Stage::Train, done, total);
        let (cells, labels) = fit(points.as_rows(), &held, given, config, cancel, &step)?;
        seconds.train = seconds_since(stage_start);

        let stage_start = Instant::now();
        let cell_count = cells.len();
        let (encoded, order) = self.encode(
            vectors,
            &transform,
            points.as_rows(),
            &cells,
            &labels,
            &held,
        )?;
        drop(points);
        let held = positions_of(&held, &order);
        let build_stats = BuildStats {
            built: vectors.len() as u64,
            radius: encoded.mean_norm(),
            longest: embedding.longest_stored(vectors.iter()),
            ..BuildStats::default()
        };
        let stored = StoredVectors::gather(vectors, &order, element);
        drop(embedded);
        let segment = Segment::new(&transform, cells, encoded, stored, self.ids_of(order));
        let mut stored_config = config.clone();
        if self.partition.is_some() {
            // Splits and drift compare with the number of cells that the caller chose.
            stored_config.partition.cells = cell_count;
        }
        let table = Calibration::default();
        let mut index = Index::new(
            stored_config,
            embedding,
            transform,
            segment,
            table,
            build_stats,
        );
        seconds.bins = seconds_since(stage_start);
        let (mut table, measurements) = self.calibrate(&index, &held, &mut seconds)?;
        self.link(&mut index, &mut table, &measurements, &mut seconds)?;
        index.calibration = Arc::new(table);
        seconds.total = seconds_since(start);
        Ok((index, seconds.into()))
    }

    /// Measures recall targets with the points at the positions `held`, or with the sample of queries.
    fn calibrate(
        &self,
        index: &Index,
        held: &[u32],
        seconds: &mut Seconds,
    ) -> Result<(Calibration, Measurements)> {
        let start = Instant::now();
        let step = |done, total| self.report_progress(Stage::Calibrate, done, total);
        let measured = match &self.queries_like {
            Some(queries) => calibrate_for(index, queries.as_rows(), &self.cancel, &step)?,
            None => calibrate(index, held, &self.cancel, &step)?,
        };
        self.report_progress(Stage::Calibrate, 1, 1);
        seconds.calibrate = seconds_since(start);
        Ok(measured)
    }

    /// Builds the neighbour graph if it is asked for, or if searches then cost less.
    fn link(
        &self,
        index: &mut Index,
        table: &mut Calibration,
        measurements: &Measurements,
        seconds: &mut Seconds,
    ) -> Result<()> {
        let start = Instant::now();
        let wanted = self.wants_graph(index, table, measurements)?;
        seconds.graph = seconds_since(start);
        match wanted {
            true => self.add_graph(index, table, measurements, seconds),
            false => Ok(()),
        }
    }

    /// Whether the neighbour graph is asked for, or promises to pay.
    fn wants_graph(
        &self,
        index: &Index,
        table: &mut Calibration,
        measurements: &Measurements,
    ) -> Result<bool> {
        let wanted = match self.config.graph.graph {
            // Searches with recall targets need its settings.
            UseGraph::On => !measurements.is_empty(),
            UseGraph::Auto => tune::wants_graph(index, table, measurements, &self.cancel)?,
            UseGraph::Off => false,
        };
        Ok(wanted && index.segment.ids.len() < MAX_POINTS)
    }

    /// Builds the neighbour graph, and keeps it if it is asked for or if searches cost less with it.
    fn add_graph(
        &self,
        index: &mut Index,
        table: &mut Calibration,
        measurements: &Measurements,
        seconds: &mut Seconds,
    ) -> Result<()> {
        let cancel = &self.cancel;
        let start = Instant::now();
        let always = self.config.graph.graph == UseGraph::On;
        let segment = &index.segment;
        let cell_of = segment.cells_of((0..segment.ids.len() as u32).into_par_iter());
        let nodes = index.nodes(&segment.vectors, &cell_of);
        let step = |done, total| self.report_progress(Stage::Graph, done, total);
        // Queries that are points would find their neighbours by their own edges, and their edges take the place of others.
        let missing = tune::graph_queries(index, measurements);
        let builder = GraphBuilder::new(&nodes, &missing, cancel, &step)?;
        seconds.graph += seconds_since(start);
        let start = Instant::now();
        let measured = GraphToMeasure {
            graph: Arc::new(builder.graph()),
            missing: &missing,
        };
        let pays = tune::measure_graph(index, table, measured, measurements, always, cancel)?;
        seconds.calibrate += seconds_since(start);
        if pays {
            let start = Instant::now();
            let graph = builder.finish(cancel)?;
            *index = index.with_graph(Arc::new(graph));
            seconds.graph += seconds_since(start);
        }
        Ok(())
    }

    /// Encodes bins and points. Also returns the stored order of the rows. Rows that are stored in two cells occur
    /// twice.
    fn encode(
        &self,
        vectors: Rows<'_>,
        transform: &Transform,
        points: Rows<'_>,
        cells: &AnisotropicCells,
        labels: &[u32],
        held: &[u32],
    ) -> Result<(EncodedBins, Vec<u32>)> {
        let (config, cancel) = (&self.config, &self.cancel);
        let second_cells = match config.partition.spill {
            0.0 => Vec::new(),
            times => cells.second_cells(points, labels, times, SCORED_CELLS, cancel)?,
        };
        let encoding = Encoding {
            points,
            residual_squared: &residuals_squared(vectors, transform, points),
            cells,
            labels,
            second_cells: &second_cells,
            held,
            bin_size: config.bins.bin_size,
            bits: code_bits(config, points.len()),
            seed: config.seed ^ streams::BINS,
        };
        let done = |done: usize| self.report_progress(Stage::Bins, done, cells.len());
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

    fn report_progress(&self, stage: Stage, done: usize, total: usize) {
        if let Some(callback) = &self.progress {
            callback(&Progress::new(stage, done, total));
        }
    }
}

/// Positions of the rows `held`, which is sorted, if rows are stored in the order `order`. Each row occurs once.
fn positions_of(held: &[u32], order: &[u32]) -> Vec<u32> {
    let mut seen = vec![false; held.len()];
    (0..)
        .zip(order)
        .filter_map(|(position, row)| {
            let number = held.binary_search(row).ok()?;
            // A row that is stored in two cells has two positions. Take the first.
            (!std::mem::replace(&mut seen[number], true)).then_some(position)
        })
        .collect()
}

fn seconds_since(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}
