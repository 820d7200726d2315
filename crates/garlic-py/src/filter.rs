//! Filters: identifiers, a mask, an expression, or a Python function that is asked about each point.

use std::sync::{Arc, Mutex, PoisonError};

use garlic_ann as ann;
use garlic_table::{Ids, Snapshot, Table};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::arrays::{filter_maker, take_ids};
use crate::errors::raise;

/// A filter that many searches can share; `garlic_ann.filter` makes it.
#[pyclass(frozen, module = "garlic_ann")]
pub(crate) struct Filter {
    what: What,
    /// The latest filter by numbers, and the table that it was made for.
    made: Mutex<Option<(Arc<Table>, ann::Filter)>>,
    /// What the function raised. It stays: the answers for the points after it are not known.
    raised: Raised,
}

type Raised = Arc<Mutex<Option<PyErr>>>;

enum What {
    /// Numbers, or a function of them: the same for every index.
    Numbers(ann::Filter),
    Names(Ids),
    Mask(Vec<bool>),
    Expression(String),
    /// The function, and the filter of an index that numbers its points.
    Function(Arc<Py<PyAny>>, ann::Filter),
}

impl Filter {
    fn new(what: What, raised: Raised) -> Self {
        Self {
            what,
            made: Mutex::default(),
            raised,
        }
    }
}

#[pymethods]
impl Filter {
    /// The points of these identifiers.
    #[staticmethod]
    fn of_ids(ids: &Bound<'_, PyAny>) -> PyResult<Self> {
        let what = match take_ids(ids)? {
            Ids::Numbers(numbers) if !numbers.is_empty() => {
                What::Numbers(ann::Filter::ids(numbers))
            }
            // An empty list says neither.
            names => What::Names(names),
        };
        Ok(Self::new(what, Raised::default()))
    }

    /// The rows for which an array of booleans is true.
    #[staticmethod]
    fn of_mask(mask: PyReadonlyArray1<'_, bool>) -> PyResult<Self> {
        let mask = What::Mask(mask.as_slice()?.to_vec());
        Ok(Self::new(mask, Raised::default()))
    }

    /// The points for which an expression over the columns is true.
    #[staticmethod]
    fn of_expression(expression: String) -> Self {
        Self::new(What::Expression(expression), Raised::default())
    }

    /// The points whose identifiers the function is true of.
    #[staticmethod]
    fn of_function(function: Py<PyAny>) -> Self {
        let (raised, function) = (Raised::default(), Arc::new(function));
        let (slot, asked) = (Arc::clone(&raised), Arc::clone(&function));
        let allows = move |id: u64| ask(&asked, &slot, |function| function.call1((id,)));
        let numbers = ann::Filter::predicate(allows);
        Self::new(What::Function(function, numbers), raised)
    }

    fn __repr__(&self) -> String {
        match &self.what {
            What::Numbers(filter) | What::Function(_, filter) => format!("{filter:?}"),
            What::Names(names) => format!("Filter(list of {} names)", names.len()),
            What::Mask(mask) => format!("Filter(mask of {})", mask.len()),
            What::Expression(expression) => format!("Filter({expression})"),
        }
    }
}

/// What a function says about a point; false after it has raised something.
fn ask(
    function: &Py<PyAny>,
    slot: &Raised,
    call: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
) -> bool {
    // Not locked while the function runs: it may search itself.
    let raised = || slot.lock().unwrap_or_else(PoisonError::into_inner);
    if raised().is_some() {
        return false;
    }
    let answer = Python::attach(|py| call(function.bind(py))?.is_truthy());
    answer.unwrap_or_else(|error| {
        *raised() = Some(error);
        false
    })
}

impl Filter {
    /// The filter that a user's argument stands for.
    pub(crate) fn take<'py>(
        py: Python<'py>,
        given: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, Self>>> {
        let Some(given) = given.filter(|given| !given.is_none()) else {
            return Ok(None);
        };
        if let Ok(filter) = given.cast::<Self>() {
            return Ok(Some(filter.clone()));
        }
        let made = filter_maker(py)?.call1((given,))?;
        Ok(Some(made.cast_into::<Self>()?))
    }

    /// The library's filter for an index and its table.
    pub(crate) fn of(&self, py: Python<'_>, snapshot: &Snapshot) -> PyResult<ann::Filter> {
        py.detach(|| self.made_for(snapshot)).map_err(raise)
    }

    fn made_for(&self, snapshot: &Snapshot) -> garlic_ann::Result<ann::Filter> {
        match &self.what {
            What::Numbers(filter) if !snapshot.is_named() => return Ok(filter.clone()),
            What::Function(_, filter) if !snapshot.is_named() => return Ok(filter.clone()),
            What::Expression(expression) => return snapshot.filter(expression),
            _ => {}
        }
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some((table, filter)), Some(own)) = (&*made, snapshot.table())
            && Arc::ptr_eq(table, own)
        {
            return Ok(filter.clone());
        }
        let filter = match &self.what {
            What::Names(names) => snapshot.filter_ids(names)?,
            What::Mask(mask) => snapshot.filter_mask(mask)?,
            What::Function(function, _) => self.by_name(function, snapshot),
            // Numbers for points with names: an error, unless there are none.
            What::Numbers(_) | What::Expression(_) => {
                snapshot.filter_ids(&Ids::Numbers(vec![0]))?
            }
        };
        if let Some(table) = snapshot.table() {
            *made = Some((Arc::clone(table), filter.clone()));
        }
        Ok(filter)
    }

    /// The filter of a function for points with names.
    fn by_name(&self, function: &Arc<Py<PyAny>>, snapshot: &Snapshot) -> ann::Filter {
        let (slot, function) = (Arc::clone(&self.raised), Arc::clone(function));
        let table = snapshot.table().cloned();
        ann::Filter::predicate(move |id: u64| {
            let name = table.as_ref().and_then(|table| table.name(id));
            ask(&function, &slot, |function| function.call1((name,)))
        })
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
