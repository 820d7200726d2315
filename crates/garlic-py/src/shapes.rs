//! The cells themselves: which a query visits, and their shapes for pictures.

use garlic_ann::{Error, Index};
use numpy::ndarray::{Array1, Array2, Array3, ShapeError};
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::Vectors;
use crate::errors::raise;
use crate::handle::Handle;

/// The best cells of every query, best first; -1 where there are fewer.
#[pyfunction]
pub(crate) fn route<'py>(
    py: Python<'py>,
    handle: &Bound<'py, Handle>,
    queries: &Bound<'py, PyAny>,
    count: usize,
) -> PyResult<Bound<'py, PyArray2<i64>>> {
    let queries = Vectors::take(queries, "queries")?;
    let rows = queries.rows()?;
    let index = handle.get().index();
    let count = count.min(index.cells());
    let cells = py.detach(|| {
        let mut cells = Vec::with_capacity(rows.len() * count);
        for (i, query) in rows.iter().enumerate() {
            cells.extend(index.route(query, count)?.into_iter().map(i64::from));
            cells.resize((i + 1) * count, -1);
        }
        Ok(cells)
    });
    let cells = cells.map_err(raise)?;
    let cells = Array2::from_shape_vec((rows.len(), count), cells).map_err(misshapen)?;
    Ok(cells.into_pyarray(py))
}

/// The cells of vectors, and their squared distances from the means of these.
type CellsAndRadii<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f32>>);

/// The cell that every vector would join, and its squared distance from the mean of that cell.
#[pyfunction]
pub(crate) fn assign<'py>(
    py: Python<'py>,
    handle: &Bound<'py, Handle>,
    vectors: &Bound<'py, PyAny>,
) -> PyResult<CellsAndRadii<'py>> {
    let vectors = Vectors::take(vectors, "vectors")?;
    let rows = vectors.rows()?;
    let index = handle.get().index();
    let assigned = py.detach(|| index.updatable()?.assign(rows));
    let (cells, radii) = assigned.map_err(raise)?;
    Ok((cells.into_pyarray(py), radii.into_pyarray(py)))
}

/// Means, axes and variances of all cells in the rotated space: arrays by name.
#[pyfunction]
pub(crate) fn shapes<'py>(
    py: Python<'py>,
    handle: &Bound<'py, Handle>,
) -> PyResult<Bound<'py, PyDict>> {
    let index = compacted(py, handle)?;
    let (mut means, mut axes) = (Vec::new(), Vec::new());
    let (mut variances, mut residuals) = (Vec::new(), Vec::new());
    let (mut rank, mut dim) = (0, 0);
    let cells = index.cells();
    for shape in (0..cells).filter_map(|cell| index.cell_shape(cell)) {
        means.extend_from_slice(shape.mean);
        axes.extend_from_slice(shape.axes);
        variances.extend_from_slice(shape.variances);
        residuals.push(shape.residual_variance);
        (rank, dim) = (shape.variances.len(), shape.mean.len());
    }
    let all = PyDict::new(py);
    let means = Array2::from_shape_vec((cells, dim), means).map_err(misshapen)?;
    let axes = Array3::from_shape_vec((cells, rank, dim), axes).map_err(misshapen)?;
    let variances = Array2::from_shape_vec((cells, rank), variances).map_err(misshapen)?;
    all.set_item("means", means.into_pyarray(py))?;
    all.set_item("axes", axes.into_pyarray(py))?;
    all.set_item("variances", variances.into_pyarray(py))?;
    all.set_item("residuals", Array1::from_vec(residuals).into_pyarray(py))?;
    Ok(all)
}

/// Vectors in the rotated space, where the first coordinates vary most. Not of inner products, whose vectors have
/// a coordinate that users do not see.
#[pyfunction]
pub(crate) fn project<'py>(
    py: Python<'py>,
    handle: &Bound<'py, Handle>,
    vectors: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let vectors = Vectors::take(vectors, "vectors")?;
    let rows = vectors.rows()?;
    let index = handle.get().index();
    let space = index.transform();
    if rows.dim() != index.dim() || space.dim() != index.dim() {
        return Err(raise(Error::VectorDimension {
            expected: space.dim(),
            found: rows.dim(),
        }));
    }
    let mut out = Array2::zeros((rows.len(), space.out_dim()));
    py.detach(|| {
        for (row, mut out) in rows.iter().zip(out.rows_mut()) {
            if let Some(out) = out.as_slice_mut() {
                space.apply(row, out);
            }
        }
    });
    Ok(out.into_pyarray(py))
}

/// The index without pending changes: its cells are then those that it was encoded with.
fn compacted(py: Python<'_>, handle: &Bound<'_, Handle>) -> PyResult<Index> {
    let snapshot = handle.get().index();
    py.detach(|| {
        let mut index = snapshot.updatable()?.clone();
        index.compact()?;
        Ok(index)
    })
    .map_err(raise)
}

fn misshapen(error: ShapeError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
