//! Arrays on their way in: C-contiguous float32 is read where it lies, everything else goes through Python's
//! `garlic_ann._arrays`, which makes one copy or says what is wrong. Another thread of Python can change an array that is
//! read where it lies; what is added to an index comes from `own_vectors` there, which is a copy.

use garlic_ann::{Error, Rows};
use garlic_table::Ids;
use numpy::{
    PyArrayDyn, PyArrayMethods, PyReadonlyArray1, PyReadonlyArrayDyn, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyTuple};

use crate::errors::raise;

/// Vectors that stay where they are while this lives.
pub(crate) struct Vectors<'py> {
    array: PyReadonlyArrayDyn<'py, f32>,
}

impl<'py> Vectors<'py> {
    /// Reads an array of one vector or of rows; `what` names it in errors.
    pub(crate) fn take(array: &Bound<'py, PyAny>, what: &str) -> PyResult<Self> {
        // A subclass may mean something by its values: masked ones are none.
        if array.is_exact_instance_of::<PyUntypedArray>()
            && let Some(vectors) = Self::in_place(array)?
        {
            return Ok(vectors);
        }
        let made = helper(array.py(), &VECTORS, "vectors")?.call1((array, what))?;
        match Self::in_place(&made)? {
            Some(vectors) => Ok(vectors),
            None => Err(pyo3::exceptions::PyTypeError::new_err(format!(
                "{what}: cannot be read as an array of float32"
            ))),
        }
    }

    fn in_place(array: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let Ok(array) = array.cast::<PyArrayDyn<f32>>() else {
            return Ok(None);
        };
        let aligned = (array.data() as usize).is_multiple_of(align_of::<f32>());
        if !(1..=2).contains(&array.ndim()) || !array.is_c_contiguous() || !aligned {
            return Ok(None);
        }
        Ok(Some(Self {
            array: array.try_readonly()?,
        }))
    }

    /// Whether it is one vector, not rows.
    pub(crate) fn is_one(&self) -> bool {
        self.array.ndim() == 1
    }

    /// The rows; one vector is one row.
    pub(crate) fn rows(&self) -> PyResult<Rows<'_>> {
        let dim = self.array.shape().last().copied().unwrap_or(0);
        let rows = Rows::new(self.array.as_slice()?, dim);
        rows.map_err(|error| raise(Error::Shape(error)))
    }
}

/// A copy of vectors as floats, and their dimension; `None` if `element` is none that is read where it lies.
///
/// The 16-bit types come as the bits of their numbers. They are converted here, so that there is one copy of all vectors
/// as 32-bit floats, which the build may work on.
pub(crate) fn own_values(
    array: &Bound<'_, PyAny>,
    element: &str,
) -> PyResult<Option<(Vec<f32>, usize)>> {
    let bits = || -> PyResult<PyReadonlyArrayDyn<'_, u16>> { Ok(array.extract()?) };
    let (values, dim): (Vec<f32>, _) = match element {
        "float16" => {
            let bits = bits()?;
            let mut values = vec![0.0; bits.len()];
            garlic_simd::widen_f16(bits.as_slice()?, &mut values);
            (values, bits.shape().last().copied())
        }
        "bfloat16" => {
            let bits = bits()?;
            let widened = bits.as_slice()?.iter().map(|b| u32::from(*b) << 16);
            let values = widened.map(f32::from_bits).collect();
            (values, bits.shape().last().copied())
        }
        "float32" => {
            let floats: PyReadonlyArrayDyn<'_, f32> = array.extract()?;
            (floats.as_slice()?.to_vec(), floats.shape().last().copied())
        }
        "float64" => {
            let doubles: PyReadonlyArrayDyn<'_, f64> = array.extract()?;
            // Values beyond float32 become infinity, which the library refuses by name.
            let values = doubles.as_slice()?.iter().map(|v| *v as f32).collect();
            (values, doubles.shape().last().copied())
        }
        _ => return Ok(None),
    };
    Ok(Some((values, dim.unwrap_or(0))))
}

/// Identifiers: whole numbers from 0 to 2^64 - 1, or text.
pub(crate) fn take_ids(ids: &Bound<'_, PyAny>) -> PyResult<Ids> {
    // An array of numbers, or a list of text.
    let made = helper(ids.py(), &IDENTIFIERS, "identifiers")?.call1((ids,))?;
    match made.extract::<PyReadonlyArray1<'_, u64>>() {
        Ok(numbers) => Ok(Ids::Numbers(numbers.as_slice()?.to_vec())),
        Err(_) => Ok(Ids::Names(made.extract::<Vec<String>>()?)),
    }
}

/// [`take_ids`] of what may be missing.
pub(crate) fn take_optional_ids(ids: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Ids>> {
    ids.filter(|ids| !ids.is_none()).map(take_ids).transpose()
}

/// Number of vectors in an array.
pub(crate) fn count(vectors: &Bound<'_, PyAny>) -> PyResult<usize> {
    let array = vectors.cast::<PyUntypedArray>()?;
    Ok(match array.shape() {
        [rows, _, ..] => *rows,
        _ => 1,
    })
}

/// Names as an array of objects with this shape; none where there is no point.
pub(crate) fn names_array<'py>(
    py: Python<'py>,
    names: Vec<Option<&str>>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    let names = PyList::new(py, names)?;
    helper(py, &OBJECTS, "objects")?.call1((names, PyTuple::new(py, shape)?))
}

static VECTORS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static IDENTIFIERS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static OBJECTS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static COLUMNS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static FILTER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// `garlic_ann._arrays.filter_of`, which makes a filter of what users give.
pub(crate) fn filter_maker(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    helper(py, &FILTER, "filter_of")
}

/// `garlic_ann._arrays.columns_of`, which makes columns of what users give.
pub(crate) fn columns_maker(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    helper(py, &COLUMNS, "columns_of")
}

fn helper<'py>(
    py: Python<'py>,
    known: &'static PyOnceLock<Py<PyAny>>,
    name: &str,
) -> PyResult<&'py Bound<'py, PyAny>> {
    let found = known.get_or_try_init(py, || {
        let module = py.import("garlic_ann._arrays")?;
        Ok::<_, PyErr>(module.getattr(name)?.unbind())
    })?;
    Ok(found.bind(py))
}
