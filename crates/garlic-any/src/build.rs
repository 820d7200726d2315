//! Building an index of either kind.

use garlic_ann::{BuildReport, Cancel, Error, Index, Matrix, Progress, Result, Rows};
use garlic_paper::GaussianIndex;

use crate::{AnyConfig, AnyIndex};

/// Told how far a build is.
type Callback<'a> = Box<dyn Fn(&Progress<'_>) + Send + Sync + 'a>;

/// Options of a build.
pub struct AnyBuilder<'a> {
    config: AnyConfig,
    threads: Option<usize>,
    progress: Callback<'a>,
    cancel: Cancel,
    ids: Option<Vec<u64>>,
    partition: Option<Vec<u32>>,
    queries_like: Option<Matrix>,
}

impl std::fmt::Debug for AnyBuilder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AnyBuilder({})", self.config.preset().name())
    }
}

/// Sets the options that both builders have.
macro_rules! configured {
    ($builder:expr, $options:expr) => {{
        let options = $options;
        let mut builder = $builder
            .progress(|p| (options.progress)(p))
            .cancel(options.cancel.clone());
        if let Some(threads) = options.threads {
            builder = builder.threads(threads);
        }
        if let Some(ids) = &options.ids {
            builder = builder.ids(ids.clone());
        }
        if let Some(cells) = &options.partition {
            builder = builder.partition(cells.clone());
        }
        builder
    }};
}

impl<'a> AnyBuilder<'a> {
    /// A build with these parameters.
    pub fn new(config: AnyConfig) -> Self {
        Self {
            config,
            threads: None,
            progress: Box::new(|_| ()),
            cancel: Cancel::default(),
            ids: None,
            partition: None,
            queries_like: None,
        }
    }

    /// Worker threads; all cores unless set.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Called from time to time, from any worker thread.
    #[must_use]
    pub fn progress(mut self, callback: impl Fn(&Progress<'_>) + Send + Sync + 'a) -> Self {
        self.progress = Box::new(callback);
        self
    }

    /// The build ends soon after `cancel` is raised.
    #[must_use]
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Identifiers of the vectors, one for each row; row numbers unless set.
    #[must_use]
    pub fn ids(mut self, ids: impl Into<Vec<u64>>) -> Self {
        self.ids = Some(ids.into());
        self
    }

    /// Cells that were found elsewhere, a number for each row.
    #[must_use]
    pub fn partition(mut self, cells: impl Into<Vec<u32>>) -> Self {
        self.partition = Some(cells.into());
        self
    }

    /// A sample of the queries that will be asked, which recall targets are measured with. It is copied.
    #[must_use]
    pub fn queries_like(mut self, queries: Rows<'_>) -> Self {
        let all: Vec<u32> = (0..queries.len() as u32).collect();
        self.queries_like = Some(Matrix::gather(queries, &all));
        self
    }

    /// Builds the index and tells where the time went.
    ///
    /// # Errors
    /// Those of [`garlic_ann::Builder::build`].
    pub fn build(&self, vectors: Rows<'_>) -> Result<(AnyIndex, BuildReport)> {
        match &self.config {
            AnyConfig::Cells(config) => {
                let mut builder = configured!(Index::builder().config(config.clone()), self);
                if let Some(queries) = &self.queries_like {
                    builder = builder.queries_like(queries.as_rows());
                }
                let (index, report) = builder.build_reported(vectors)?;
                Ok((index.into(), report))
            }
            AnyConfig::Gaussians(_) if self.queries_like.is_some() => Err(Error::Config {
                key: "queries_like".into(),
                message: "belongs to preset default: preset paper has no recall targets".into(),
            }),
            AnyConfig::Gaussians(config) => {
                let config = (**config).clone();
                let builder = configured!(GaussianIndex::builder().config(config), self);
                let (index, report) = builder.build_reported(vectors)?;
                Ok((index.into(), report))
            }
        }
    }

    /// [`AnyBuilder::build`] from vectors of `dim` coordinates that nobody else needs, with one copy of them less where
    /// the index can work in place.
    ///
    /// # Errors
    /// Those of [`garlic_ann::Builder::build_owned`].
    pub fn build_owned(&self, vectors: Vec<f32>, dim: usize) -> Result<(AnyIndex, BuildReport)> {
        match &self.config {
            AnyConfig::Cells(config) => {
                let builder = configured!(Index::builder().config(config.clone()), self);
                let (index, report) = builder.build_owned(vectors, dim)?;
                Ok((index.into(), report))
            }
            AnyConfig::Gaussians(_) => self.build(Rows::new(&vectors, dim)?),
        }
    }

    /// Trains an index without points on a sample.
    ///
    /// # Errors
    /// Those of [`garlic_ann::Builder::train`]; [`garlic_ann::Error::Unchanging`] for preset `paper`.
    pub fn train(&self, sample: Rows<'_>) -> Result<AnyIndex> {
        let config = self.config.updatable()?.clone();
        let builder = configured!(Index::builder().config(config), self);
        builder.train(sample).map(AnyIndex::from)
    }
}
