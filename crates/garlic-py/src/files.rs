//! Files, bytes and directories.

use std::path::PathBuf;

use garlic_ann::live::{Options, SyncPolicy};
use garlic_any::AnyIndex;
use garlic_table::Collection;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::errors::{raise, raise_format};
use crate::handle::Handle;

/// Opens a file: `mapped`, with vectors on the `disk`, or else read into memory and checked.
#[pyfunction]
pub(crate) fn open(py: Python<'_>, path: PathBuf, vectors: &str) -> PyResult<Handle> {
    let index = py.detach(|| match vectors {
        "mapped" => AnyIndex::open(path),
        "disk" => AnyIndex::open_on_disk(path),
        _ => AnyIndex::load(path),
    });
    index.map(Handle::new).map_err(raise)
}

/// The index whose bytes these are.
#[pyfunction]
pub(crate) fn from_bytes(py: Python<'_>, bytes: PyBackedBytes) -> PyResult<Handle> {
    let index = py.detach(|| AnyIndex::from_bytes(&bytes));
    index.map(Handle::new).map_err(|e| raise_format(&e))
}

/// Checks all of a file and says what is in it, as JSON.
#[pyfunction]
pub(crate) fn verify(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let summary = py.detach(|| garlic_table::verify(&path)).map_err(raise)?;
    serde_json::to_string(&summary).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}

fn options(sync: bool) -> Options {
    Options::new().sync(match sync {
        true => SyncPolicy::EveryBatch,
        false => SyncPolicy::Never,
    })
}

/// Makes an index directory.
#[pyfunction]
pub(crate) fn live_create(
    py: Python<'_>,
    path: PathBuf,
    index: &Bound<'_, Handle>,
    sync: bool,
) -> PyResult<Handle> {
    let index = index.get().index();
    let live = py.detach(|| Collection::create(&path, &index, &options(sync)));
    live.map(Handle::from).map_err(raise)
}

/// Opens an index directory.
#[pyfunction]
pub(crate) fn live_open(
    py: Python<'_>,
    path: PathBuf,
    read_only: bool,
    sync: bool,
) -> PyResult<Handle> {
    let live = py.detach(|| match read_only {
        true => Collection::open_read_only(&path),
        false => Collection::open(&path, &options(sync)),
    });
    live.map(Handle::from).map_err(raise)
}
