//! Files of vectors that other programs write, and tables for them.

use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use garlic_data::{Columns, DataError, Identifiers, ReadOptions, Reader, write_parquet};
use garlic_table::Ids;
use numpy::IntoPyArray;
use numpy::ndarray::Array2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{Vectors, take_optional_ids};
use crate::columns::{self, Table};
use crate::errors::os_error;
use crate::output::identifiers;

/// The exception of an error of the readers and writers.
fn failed(error: DataError) -> PyErr {
    let text = error.to_string();
    match error {
        DataError::Io { cause, .. } => os_error(&cause, text),
        _ => PyValueError::new_err(text),
    }
}

/// Vectors as float32, identifiers if a column is named for them, and the other columns.
type Read<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>, Option<Table>);

/// Reads a file or a folder; without names of columns all other columns.
#[pyfunction]
pub(crate) fn read<'py>(
    py: Python<'py>,
    path: PathBuf,
    vectors: Option<String>,
    ids: Option<String>,
    columns: Option<Vec<String>>,
) -> PyResult<Read<'py>> {
    let read = py.detach(|| {
        let mut options = ReadOptions::default();
        (options.vectors, options.ids) = (vectors, ids);
        options.columns = match columns {
            None => Columns::All,
            Some(names) if names.is_empty() => Columns::None,
            Some(names) => Columns::Named(names),
        };
        Reader::open(path, &options)?.read()
    });
    let read = read.map_err(failed)?;
    let (rows, dim) = (read.vectors.rows(), read.vectors.dim());
    let values = py.detach(|| read.vectors.to_f32().into_owned());
    let vectors = Array2::from_shape_vec((rows, dim), values);
    let vectors = vectors.map_err(|e| PyValueError::new_err(e.to_string()))?;
    let ids = read.ids.map(|ids| match ids {
        Identifiers::Numbers(numbers) => identifiers(py, &Ids::Numbers(numbers)),
        Identifiers::Strings(names) => identifiers(py, &Ids::Names(names)),
    });
    let table = read.columns.first().map(RecordBatch::schema);
    let table = table.filter(|schema| **schema != Schema::empty());
    Ok((
        vectors.into_pyarray(py).into_any(),
        ids.transpose()?,
        table.map(|schema| Table::new(schema, read.columns)),
    ))
}

/// Writes a table of Parquet.
#[pyfunction]
pub(crate) fn write(
    py: Python<'_>,
    path: PathBuf,
    vectors: &Bound<'_, PyAny>,
    ids: Option<&Bound<'_, PyAny>>,
    columns: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let vectors = Vectors::take(vectors, "vectors")?;
    let rows = vectors.rows()?;
    let columns = columns::take(columns)?;
    let ids = take_optional_ids(ids)?.map(|ids| match ids {
        Ids::Numbers(numbers) => Identifiers::Numbers(numbers),
        Ids::Names(names) => Identifiers::Strings(names),
    });
    let (values, dim) = (rows.data(), rows.dim());
    py.detach(|| write_parquet(path, values, dim, ids.as_ref(), columns.as_ref()))
        .map_err(failed)
}
