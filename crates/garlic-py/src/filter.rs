//! Filters: identifiers, or a Python function that is asked about each.

use std::sync::{Arc, Mutex, PoisonError};

use garlic_ann as ann;
use pyo3::prelude::*;

use crate::arrays::{Ids, filter_maker};

/// A filter that many searches can share; `garlic_ann.filter` makes it.
#[pyclass(frozen, module = "garlic_ann")]
pub(crate) struct Filter {
    filter: ann::Filter,
    /// What the function raised. It stays: the answers for the points after it are not known.
    raised: Arc<Mutex<Option<PyErr>>>,
}

#[pymethods]
impl Filter {
    /// The points of these identifiers.
    #[staticmethod]
    fn of_ids(ids: &Bound<'_, PyAny>) -> PyResult<Self> {
        let ids = Ids::take(ids)?.as_slice()?.to_vec();
        Ok(Self {
            filter: ann::Filter::ids(ids),
            raised: Arc::default(),
        })
    }

    /// The points whose identifiers the function is true of.
    #[staticmethod]
    fn of_function(function: Py<PyAny>) -> Self {
        let raised = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&raised);
        let allows = move |id: u64| {
            // Not locked while the function runs: it may search itself.
            let raised = || slot.lock().unwrap_or_else(PoisonError::into_inner);
            if raised().is_some() {
                return false;
            }
            let answer = Python::attach(|py| function.bind(py).call1((id,))?.is_truthy());
            answer.unwrap_or_else(|error| {
                *raised() = Some(error);
                false
            })
        };
        Self {
            filter: ann::Filter::predicate(allows),
            raised,
        }
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.filter)
    }
}

impl Filter {
    /// The filter that a user's argument stands for.
    pub(crate) fn take<'py>(
        py: Python<'py>,
        given: Option<&Bound<'py, PyAny>>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, Self>>> {
        let Some(given) = given.filter(|given| !given.is_none()) else {
            return Ok(None);
        };
        if let Ok(filter) = given.cast::<Self>() {
            return Ok(Some(filter.clone()));
        }
        let made = filter_maker(py)?.call1((given, index))?;
        Ok(Some(made.cast_into::<Self>()?))
    }

    /// The library's filter.
    pub(crate) fn inner(&self) -> ann::Filter {
        self.filter.clone()
    }

    /// Raises what the function raised.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        let raised = py.detach(|| {
            let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
            raised
                .as_ref()
                .map(|error| Python::attach(|py| error.clone_ref(py)))
        });
        raised.map_or(Ok(()), Err)
    }
}
