//! The folder of data sets: where it is and what it holds.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::dataset::{Metric, metric, name_of};
use crate::error::{DataError, Result};
use crate::format::{self, Format};
use crate::hdf5::Hdf5;
use crate::vectors::Element;
use crate::vectors_shape;

/// What the headers of a data set say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetInfo {
    /// The file's name without its extension.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// How many vectors there are to search.
    pub rows: usize,
    /// How many queries.
    pub queries: usize,
    /// Coordinates of each vector.
    pub dim: usize,
    /// Type of a coordinate.
    pub element: Element,
    /// The distance it was made for, if it says so.
    pub metric: Option<Metric>,
    /// Whether the queries have true neighbours.
    pub has_truth: bool,
    /// Whether the searched vectors have classes.
    pub has_labels: bool,
    /// Size of the file.
    pub bytes: u64,
}

/// A file of the folder: what it holds, or why it cannot be used.
#[derive(Debug)]
pub struct DatasetEntry {
    /// The file's name without its extension.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// What it holds, or the error that opening it would give.
    pub info: Result<DatasetInfo>,
}

/// The folder of data sets: `$GARLIC_DATA`, else `.cache/garlic/datasets` in the home folder.
pub fn data_dir() -> PathBuf {
    match env::var_os("GARLIC_DATA") {
        Some(folder) if !folder.is_empty() => PathBuf::from(folder),
        _ => {
            let home = env::home_dir().unwrap_or_else(|| PathBuf::from("."));
            home.join(".cache").join("garlic").join("datasets")
        }
    }
}

/// What one data set holds, from its headers only.
pub fn dataset_info(path: impl AsRef<Path>) -> Result<DatasetInfo> {
    let path = path.as_ref();
    let failed = |cause| DataError::io("open", path, cause);
    let bytes = fs::metadata(path).map_err(failed)?.len();
    let info = |shape: crate::Shape| DatasetInfo {
        name: name_of(path),
        path: path.to_owned(),
        rows: shape.rows,
        queries: 0,
        dim: shape.dim,
        element: shape.element,
        metric: None,
        has_truth: false,
        has_labels: false,
        bytes,
    };
    if Format::from_path(path)? != Format::Hdf5 {
        return vectors_shape(path).map(info);
    }
    format::open(path, Format::Hdf5, |input| {
        let file = Hdf5::open(input)?;
        let metric = metric(&file, &input.origin())?;
        let mut info = info(file.vectors_shape("train")?);
        info.metric = metric;
        if file.has("test") {
            info.queries = file.vectors_shape("test")?.rows;
            info.has_truth = file.has("neighbors");
        }
        info.has_labels = file.has("train_labels");
        Ok(info)
    })
}

/// The data sets of a folder by name; files of other kinds and folders inside it are left out.
///
/// Only headers are read. A file that cannot be used is listed with its error.
pub fn list_datasets(folder: impl AsRef<Path>) -> Result<Vec<DatasetEntry>> {
    let folder = folder.as_ref();
    let failed = |cause| DataError::io("list", folder, cause);
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let known = Format::from_path(&path).is_ok_and(|f| f.holds_vectors() && f.has_header());
        if !known || path.is_dir() {
            continue;
        }
        entries.push(DatasetEntry {
            name: name_of(&path),
            info: dataset_info(&path),
            path,
        });
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}
