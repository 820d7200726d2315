//! A build on a thread of its own, so that the calling one can hear Ctrl-C and tell how far it is.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use garlic_ann::{Cancel, Error, Index, Metric, Rows, Stage};
use garlic_any::{AnyBuilder, AnyConfig, AnyIndex, Preset};
use garlic_table::FirstRows;
use pyo3::prelude::*;

use crate::arrays::{Vectors, count, own_values, take_optional_ids};
use crate::columns;
use crate::errors::raise;
use crate::handle::Handle;
use crate::interrupt::watched;

/// How far a build is: stage, steps done, steps of the stage.
type State = Arc<Mutex<Option<(Stage, usize, usize)>>>;

/// Identifiers and columns of the vectors.
type RowsBeside<'py> = (Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>);

fn first_rows(vectors: &Bound<'_, PyAny>, rows: RowsBeside<'_>) -> PyResult<FirstRows> {
    let (ids, columns) = rows;
    let ids = take_optional_ids(ids.as_ref())?;
    let columns = columns::take(columns.as_ref())?;
    FirstRows::new(count(vectors)?, ids, columns.as_ref()).map_err(raise)
}

/// The name of a preset, and pairs of a parameter and its value as text.
type Settings = (String, Vec<(String, String)>);

/// What a build uses instead of finding it: the cell of each row, and a sample of the queries that recall targets are
/// measured with.
type Found<'py> = (Option<Vec<u32>>, Option<Bound<'py, PyAny>>);

/// Builds an index. `vectors` and `element` are what `garlic_ann._arrays.source` makes. `progress` is called with a
/// stage, steps done and steps in all.
#[pyfunction]
#[pyo3(signature = (vectors, element, rows, settings, threads, progress, found))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn build(
    py: Python<'_>,
    vectors: &Bound<'_, PyAny>,
    element: &str,
    rows: RowsBeside<'_>,
    settings: Settings,
    threads: Option<i64>,
    progress: Option<Py<PyAny>>,
    found: Found<'_>,
) -> PyResult<Handle> {
    let (partition, queries_like) = found;
    let (preset, settings) = settings;
    let mut builder = AnyBuilder::new(config(&preset, settings).map_err(raise)?);
    let beside = first_rows(vectors, rows)?;
    if let Some(numbers) = beside.numbers() {
        builder = builder.ids(numbers);
    }
    if let Some(partition) = partition {
        builder = builder.partition(partition);
    }
    if let Some(queries) = queries_like {
        let queries = Vectors::take(&queries, "queries_like")?;
        builder = builder.queries_like(queries.rows()?);
    }
    match own_values(vectors, element)? {
        Some((values, dim)) => work(py, builder, threads, progress, move |builder| {
            let (index, _) = builder.build_owned(values, dim)?;
            Ok(beside.attach(index))
        }),
        None => work_on(py, builder, vectors, threads, progress, |builder, rows| {
            Ok(beside.attach(builder.build(rows)?.0))
        }),
    }
}

/// Builds an index with the parameters of another one.
#[pyfunction]
#[pyo3(signature = (like, vectors, rows, threads, progress))]
pub(crate) fn build_like(
    py: Python<'_>,
    like: &Bound<'_, Handle>,
    vectors: &Bound<'_, PyAny>,
    rows: RowsBeside<'_>,
    threads: Option<i64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Handle> {
    let mut builder = AnyBuilder::new(like.get().index().config());
    let beside = first_rows(vectors, rows)?;
    if let Some(numbers) = beside.numbers() {
        builder = builder.ids(numbers);
    }
    work_on(py, builder, vectors, threads, progress, |builder, rows| {
        Ok(beside.attach(builder.build(rows)?.0))
    })
}

/// Trains an index without points on a sample, with the parameters of another one.
#[pyfunction]
#[pyo3(signature = (like, sample, threads, progress))]
pub(crate) fn train_like(
    py: Python<'_>,
    like: &Bound<'_, Handle>,
    sample: &Bound<'_, PyAny>,
    threads: Option<i64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Handle> {
    let builder = AnyBuilder::new(like.get().index().config());
    work_on(py, builder, sample, threads, progress, AnyBuilder::train)
}

/// An index without points; none where the parameters are those of an index that does not change.
#[pyfunction]
pub(crate) fn empty(
    py: Python<'_>,
    dim: usize,
    preset: &str,
    settings: Vec<(String, String)>,
) -> PyResult<Option<Handle>> {
    let config = config(preset, settings).map_err(raise)?;
    let empty = || Index::empty(dim, config.updatable()?.clone());
    match py.detach(empty) {
        Ok(index) => Ok(Some(Handle::new(index.into()))),
        Err(Error::Unchanging | Error::Spilled) => Ok(None),
        Err(error) => Err(raise(error)),
    }
}

/// [`work`] on vectors that stay where they are.
fn work_on(
    py: Python<'_>,
    builder: AnyBuilder<'static>,
    vectors: &Bound<'_, PyAny>,
    threads: Option<i64>,
    progress: Option<Py<PyAny>>,
    make: impl FnOnce(&AnyBuilder<'static>, Rows<'_>) -> garlic_ann::Result<AnyIndex> + Send,
) -> PyResult<Handle> {
    let vectors = Vectors::take(vectors, "vectors")?;
    let rows = vectors.rows()?;
    work(py, builder, threads, progress, |builder| {
        make(builder, rows)
    })
}

/// Lets `make` build on a thread of its own, with progress and Ctrl-C.
fn work(
    py: Python<'_>,
    builder: AnyBuilder<'static>,
    threads: Option<i64>,
    progress: Option<Py<PyAny>>,
    make: impl FnOnce(&AnyBuilder<'static>) -> garlic_ann::Result<AnyIndex> + Send,
) -> PyResult<Handle> {
    let cancel = Arc::new(AtomicBool::new(false));
    let state = State::default();
    let told = Arc::clone(&state);
    let mut builder = builder
        .cancel(Cancel::new(Arc::clone(&cancel)))
        .progress(move |p| {
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some((p.stage, p.done, p.total));
        });
    if let Some(threads) = threads {
        // The library has words for none at all; fewer are no more.
        builder = builder.threads(threads.max(0) as usize);
    }
    let build = || make(&builder);
    let look = |py: Python<'_>| look(py, &state, progress.as_ref());
    let index = py.detach(|| watched(&cancel, build, look))?;
    Ok(Handle::new(index))
}

/// The parameters of a preset as JSON: name, group, default value, meaning and allowed values.
#[pyfunction]
pub(crate) fn parameters(preset: &str) -> PyResult<String> {
    let config = config(preset, Vec::new()).map_err(raise)?;
    let table = config.table().into_iter().zip(config.values());
    let all: Vec<_> = table
        .map(|(parameter, (name, default))| {
            serde_json::json!({
                "name": name,
                "group": parameter.group,
                "default": default,
                "about": parameter.about.trim(),
                "rule": parameter.rule,
            })
        })
        .collect();
    Ok(serde_json::Value::from(all).to_string())
}

/// Fails as a build with these settings would. Gives the name of the metric.
#[pyfunction]
pub(crate) fn check_settings(
    preset: &str,
    settings: Vec<(String, String)>,
) -> PyResult<&'static str> {
    let config = config(preset, settings).map_err(raise)?;
    Ok(config.metric().name())
}

fn config(preset: &str, settings: Vec<(String, String)>) -> garlic_ann::Result<AnyConfig> {
    let mut config = AnyConfig::new(preset.parse::<Preset>()?);
    for (key, value) in settings {
        match key.as_str() {
            // Its own list of names says more than that of the configuration.
            "metric" => config.set_metric(value.parse::<Metric>()?),
            _ => config.set(&key, &value)?,
        }
    }
    config.validate()?;
    Ok(config)
}

/// Handles signals and reports; an error of either ends the build.
fn look(py: Python<'_>, state: &State, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    py.check_signals()?;
    let Some(progress) = progress else {
        return Ok(());
    };
    let latest = state.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((stage, done, total)) = latest {
        let name = stage.name();
        progress.call1(py, (name, done, total))?;
    }
    Ok(())
}
