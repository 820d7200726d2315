//! A benchmark: vectors to search, queries, and their true neighbours.

use std::path::{Path, PathBuf};

use crate::error::{DataError, Origin, Result};
use crate::format::{self, Format};
use crate::hdf5::Hdf5;
use crate::ids::Ids;
use crate::reader::{ReadOptions, Reader};
use crate::vectors::Vectors;

/// The distance a data set was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metric {
    /// The square root of the summed squared differences.
    Euclidean,
    /// One less the cosine of the angle; benchmarks call it angular.
    Cosine,
    /// Minus the inner product: the largest inner products are the nearest.
    InnerProduct,
}

impl Metric {
    /// The metric that a file calls `name`, if it is one of these.
    fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().replace('-', "_").as_str() {
            "euclidean" | "l2" => Some(Self::Euclidean),
            "angular" | "cosine" => Some(Self::Cosine),
            "ip" | "inner_product" | "dot" | "dot_product" => Some(Self::InnerProduct),
            _ => None,
        }
    }
}

/// A row-major table of distances, a row for each query.
#[derive(Debug, Clone, PartialEq)]
pub struct Distances {
    /// The distances, row after row.
    pub data: Vec<f32>,
    /// Number of rows.
    pub rows: usize,
    /// Distances in each row.
    pub cols: usize,
}

impl Distances {
    /// The distances of row `i`.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }
}

/// Vectors to search with, where the file has them, queries and ground truth.
///
/// Its parts agree: dimensions, numbers of rows, and ids that exist.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// The file's name without its extension.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// The distance it was made for, if it says so.
    pub metric: Option<Metric>,
    /// The vectors that are searched.
    pub train: Vectors,
    /// The queries.
    pub test: Option<Vectors>,
    /// The true neighbours of each query, nearest first.
    pub neighbors: Option<Ids>,
    /// The distances to those neighbours.
    pub distances: Option<Distances>,
    /// A class for each searched vector.
    pub train_labels: Option<Vec<i64>>,
    /// A class for each query.
    pub test_labels: Option<Vec<i64>>,
}

/// The queries of a data set and their ground truth, without the vectors that are searched.
#[derive(Debug, Clone)]
pub struct Queries {
    /// The file's name without its extension.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// The distance it was made for, if it says so.
    pub metric: Option<Metric>,
    /// How many vectors the data set has to search.
    pub train_rows: usize,
    /// The queries.
    pub test: Vectors,
    /// The true neighbours of each query, nearest first.
    pub neighbors: Option<Ids>,
    /// The distances to those neighbours.
    pub distances: Option<Distances>,
    /// A class for each query.
    pub test_labels: Option<Vec<i64>>,
}

impl Dataset {
    /// Opens a data set: an ANN-Benchmarks HDF5 file with all its sets, or any other file of
    /// vectors, which gives a data set of `train` only.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &ReadOptions::default())
    }

    /// The same, with options that say what to read of a file that is no HDF5.
    pub fn open_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self> {
        let path = path.as_ref();
        let named = options.format.map_or_else(|| Format::from_path(path), Ok);
        if path.is_dir() || named? != Format::Hdf5 {
            return Ok(Self {
                name: name_of(path),
                path: path.to_owned(),
                metric: None,
                train: Reader::open(path, options)?.read()?.vectors,
                test: None,
                neighbors: None,
                distances: None,
                train_labels: None,
                test_labels: None,
            });
        }
        format::open(path, Format::Hdf5, |input| {
            let file = Hdf5::open(input)?;
            let metric = metric(&file, &input.origin())?;
            // The cheap checks come first, so that a bad file is refused before much is read.
            let shape = file.vectors_shape("train")?;
            let queries = queries(&file, path, shape.rows, shape.dim)?;
            let train_labels = labels(&file, path, "train_labels", shape.rows)?;
            let train = file.vectors("train")?;
            Ok(Self {
                name: name_of(path),
                path: path.to_owned(),
                metric,
                train,
                test: queries.test,
                neighbors: queries.neighbors,
                distances: queries.distances,
                train_labels,
                test_labels: queries.labels,
            })
        })
    }

    /// Opens only the queries and ground truth of an HDF5 data set; of the vectors that are
    /// searched nothing but the header is read.
    pub fn open_queries(path: impl AsRef<Path>) -> Result<Queries> {
        let path = path.as_ref();
        let format = Format::from_path(path)?;
        if format != Format::Hdf5 {
            return Err(DataError::WrongKind {
                origin: Origin::file(path),
                format: format.name(),
                wanted: "a data set with queries",
                instead: ".hdf5 or .h5",
            });
        }
        format::open(path, Format::Hdf5, |input| {
            let file = Hdf5::open(input)?;
            let metric = metric(&file, &input.origin())?;
            let shape = file.vectors_shape("train")?;
            let queries = queries(&file, path, shape.rows, shape.dim)?;
            let test = match queries.test {
                Some(test) => test,
                // Asking for the missing set gives the error that lists the present ones.
                None => file.vectors("test")?,
            };
            Ok(Queries {
                name: name_of(path),
                path: path.to_owned(),
                metric,
                train_rows: shape.rows,
                test,
                neighbors: queries.neighbors,
                distances: queries.distances,
                test_labels: queries.labels,
            })
        })
    }
}

/// The name of a data set: its file's, without the extension.
pub(crate) fn name_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// The distance a file was made for, if it says so.
pub(crate) fn metric(file: &Hdf5<'_>, origin: &Origin) -> Result<Option<Metric>> {
    let Some(name) = file.distance()? else {
        return Ok(None);
    };
    match Metric::named(&name) {
        Some(metric) => Ok(Some(metric)),
        None => Err(DataError::UnsupportedMetric {
            origin: origin.clone(),
            metric: name,
        }),
    }
}

struct Parts {
    test: Option<Vectors>,
    neighbors: Option<Ids>,
    distances: Option<Distances>,
    labels: Option<Vec<i64>>,
}

const RECOMPUTE: &str = "recompute the ground truth for these queries";

fn queries(file: &Hdf5<'_>, path: &Path, train_rows: usize, dim: usize) -> Result<Parts> {
    let mut parts = Parts {
        test: None,
        neighbors: None,
        distances: None,
        labels: None,
    };
    // Truth without queries means nothing, so without `test` the rest is left alone.
    if !file.has("test") {
        return Ok(parts);
    }
    let origin = |set| Origin::file(path).set(set);
    let shape = file.vectors_shape("test")?;
    if shape.dim != dim {
        return Err(DataError::DimensionMismatch {
            origin: origin("test"),
            expected: dim,
            found: shape.dim,
        });
    }
    let same = |set, what, expected: usize, found: usize| match found == expected {
        true => Ok(()),
        false => Err(DataError::CountMismatch {
            origin: origin(set),
            what,
            expected,
            found,
            fix: RECOMPUTE,
        }),
    };
    if file.has("neighbors") {
        let (rows, _) = file.table_shape("neighbors")?;
        same("neighbors", "rows", shape.rows, rows)?;
        let ids = file.ids("neighbors")?;
        ids.check_below(train_rows, &origin("neighbors"))?;
        parts.neighbors = Some(ids);
    }
    if file.has("distances") {
        let (rows, cols) = file.table_shape("distances")?;
        same("distances", "rows", shape.rows, rows)?;
        if let Some(ids) = &parts.neighbors {
            same("distances", "columns", ids.cols, cols)?;
        }
        let (data, rows, cols) = file.floats("distances")?;
        parts.distances = Some(Distances { data, rows, cols });
    }
    parts.labels = labels(file, path, "test_labels", shape.rows)?;
    parts.test = Some(file.vectors("test")?);
    Ok(parts)
}

fn labels(
    file: &Hdf5<'_>,
    path: &Path,
    set: &'static str,
    rows: usize,
) -> Result<Option<Vec<i64>>> {
    if !file.has(set) {
        return Ok(None);
    }
    let labels = file.labels(set)?;
    if labels.len() == rows {
        return Ok(Some(labels));
    }
    Err(DataError::CountMismatch {
        origin: Origin::file(path).set(set),
        what: "labels",
        expected: rows,
        found: labels.len(),
        fix: "there must be one label for each vector",
    })
}
