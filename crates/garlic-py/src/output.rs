//! Answers on their way out: arrays of distances and identifiers.

use garlic_ann::{Answer, SearchStats};
use garlic_table::{Ids, Snapshot};
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::names_array;
use crate::errors::no_memory;

/// Distances and identifiers of some queries, `k` each; places that stay empty hold infinity and -1.
pub(crate) struct Table {
    k: usize,
    distances: Vec<f32>,
    ids: Vec<i64>,
}

impl Table {
    /// Empty places for the answers of `queries` queries.
    pub(crate) fn new(queries: usize, k: usize) -> PyResult<Self> {
        let places = queries.saturating_mul(k);
        let (mut distances, mut ids) = (Vec::new(), Vec::new());
        distances
            .try_reserve_exact(places)
            .and_then(|()| ids.try_reserve_exact(places))
            .map_err(|_| no_memory(places))?;
        Ok(Self { k, distances, ids })
    }

    /// Puts the next query's answer behind the others.
    pub(crate) fn push(&mut self, answer: &Answer) {
        let hits = answer.hits.iter().take(self.k);
        let missing = self.k - hits.len();
        for hit in hits {
            self.distances.push(hit.distance);
            // Identifiers are below 2^63.
            self.ids.push(hit.id as i64);
        }
        let end = self.distances.len() + missing;
        self.distances.resize(end, f32::INFINITY);
        self.ids.resize(end, -1);
    }

    /// The numbers that the index knows the points by; none for empty places.
    pub(crate) fn numbers(&self) -> Vec<Option<u64>> {
        let number = |id: &i64| u64::try_from(*id).ok();
        self.ids.iter().map(number).collect()
    }

    /// The names of the points.
    pub(crate) fn names<'py>(
        &self,
        py: Python<'py>,
        snapshot: &Snapshot,
        is_one: bool,
        queries: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let shape = [queries, self.k];
        let shape = if is_one { &shape[1..] } else { &shape[..] };
        named(py, snapshot, &self.numbers(), shape)
    }

    /// Two arrays of one axis, for one query.
    pub(crate) fn one(self, py: Python<'_>) -> (Bound<'_, PyAny>, Bound<'_, PyAny>) {
        (
            self.distances.into_pyarray(py).into_any(),
            self.ids.into_pyarray(py).into_any(),
        )
    }

    /// Two arrays with a row for every query.
    pub(crate) fn many(
        self,
        py: Python<'_>,
        queries: usize,
    ) -> PyResult<(Bound<'_, PyAny>, Bound<'_, PyAny>)> {
        let shape = (queries, self.k);
        let wrong = |e: numpy::ndarray::ShapeError| {
            pyo3::exceptions::PyRuntimeError::new_err(e.to_string())
        };
        let distances: Bound<'_, PyArray2<f32>> = Array2::from_shape_vec(shape, self.distances)
            .map_err(wrong)?
            .into_pyarray(py);
        let ids: Bound<'_, PyArray2<i64>> = Array2::from_shape_vec(shape, self.ids)
            .map_err(wrong)?
            .into_pyarray(py);
        Ok((distances.into_any(), ids.into_any()))
    }
}

/// Where each query's answers begin, and all answers one behind the other.
pub(crate) type Lists<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyAny>,
);

/// The names of points, as an array of this shape.
fn named<'py>(
    py: Python<'py>,
    snapshot: &Snapshot,
    numbers: &[Option<u64>],
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    let table = snapshot.table();
    let name = |number: &Option<u64>| table.and_then(|table| table.name((*number)?));
    names_array(py, numbers.iter().map(name).collect(), shape)
}

/// Identifiers as an array of int64, or of text.
pub(crate) fn identifiers<'py>(py: Python<'py>, ids: &Ids) -> PyResult<Bound<'py, PyAny>> {
    match ids {
        Ids::Numbers(numbers) => {
            let numbers: Vec<i64> = numbers.iter().map(|id| *id as i64).collect();
            Ok(numbers.into_pyarray(py).into_any())
        }
        Ids::Names(names) => {
            let some = names.iter().map(|name| Some(name.as_str()));
            names_array(py, some.collect(), &[names.len()])
        }
    }
}

/// Answers of different lengths.
pub(crate) fn lists<'py>(
    py: Python<'py>,
    answers: &[Answer],
    snapshot: &Snapshot,
) -> PyResult<Lists<'py>> {
    let mut limits = vec![0];
    let (mut distances, mut ids) = (Vec::new(), Vec::new());
    for answer in answers {
        distances.extend(answer.hits.iter().map(|hit| hit.distance));
        ids.extend(answer.hits.iter().map(|hit| hit.id as i64));
        limits.push(ids.len() as i64);
    }
    let ids = match snapshot.is_named() {
        true => {
            let numbers: Vec<Option<u64>> = ids.iter().map(|id: &i64| Some(*id as u64)).collect();
            named(py, snapshot, &numbers, &[ids.len()])?
        }
        false => ids.into_pyarray(py).into_any(),
    };
    Ok((limits.into_pyarray(py), distances.into_pyarray(py), ids))
}

/// What some queries cost together.
pub(crate) fn work<'py>(
    py: Python<'py>,
    work: &SearchStats,
    dim: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for (name, count) in [
        ("rotation_madds", work.rotation_madds),
        ("cells_scored", work.cells_scored),
        ("routing_madds", work.routing_madds),
        ("cells_projected", work.cells_projected),
        ("projection_madds", work.projection_madds),
        ("bins_ordered", work.bins_ordered),
        ("ordering_madds", work.ordering_madds),
        ("codes", work.codes),
        ("code_madds", work.code_madds),
        ("hops", work.hops),
        ("edges", work.edges),
        ("candidates", work.candidates),
        ("exact_madds", work.exact_madds),
        ("total_madds", work.total_madds()),
    ] {
        all.set_item(name, count)?;
    }
    all.set_item("distance_equivalents", work.distance_equivalents(dim))?;
    Ok(all)
}
