//! One handle for an index in memory, in a mapped file or in a directory.
//!
//! It is a [`Live`]: searches run on a snapshot with the interpreter let go, whatever other threads change.

use std::path::PathBuf;
use std::time::Duration;

use garlic_ann::live::Training;
use garlic_ann::{Answer, EXHAUSTIVE_POINTS, Error, Live, RangeSearch, Search, SearchStats};
use garlic_any::AnyIndex;
use garlic_table::{Collection, Ids, Snapshot};
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::arrays::{Vectors, take_ids, take_optional_ids};
use crate::columns;
use crate::describe;
use crate::errors::raise;
use crate::filter::Filter;
use crate::interrupt::{FIRST, LONG, answers, interruptible};
use crate::output::{Lists, Table, identifiers, lists, work};

/// How often it is looked whether a training has ended: often at first, since most are short.
const SHORTEST_LOOK: Duration = Duration::from_millis(1);
const LONGEST_LOOK: Duration = Duration::from_millis(50);

/// Recall target, probes, share of bins, candidates to re-rank, and whether the search is exact.
type Effort = (Option<f64>, Option<i64>, Option<f64>, Option<i64>, bool);

/// An index; `garlic_ann.Index` and `garlic_ann.Live` are made of it.
#[pyclass(frozen, module = "garlic_ann._garlic")]
pub(crate) struct Handle(Collection);

impl From<Collection> for Handle {
    fn from(collection: Collection) -> Self {
        Self(collection)
    }
}

impl Handle {
    /// An index in memory.
    pub(crate) fn new(index: AnyIndex) -> Self {
        Self(index.into())
    }

    /// The index as it is now.
    pub(crate) fn index(&self) -> AnyIndex {
        self.0.index()
    }

    /// The index and its table as they are now.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        py.detach(|| self.0.snapshot()).map_err(raise)
    }

    /// The handle for changes.
    fn live(&self) -> garlic_ann::Result<&Live> {
        self.0.live()
    }

    /// What is known about a training.
    fn training_state(&self) -> Training {
        self.live().map(Live::training).unwrap_or_default()
    }
}

/// Rows that are changed at once, from which on Ctrl-C ends the change. Fewer take less time than a thread is worth.
const MANY_ROWS: usize = 1000;

/// Does a change of this many rows, with the interpreter let go.
fn change<T: Send>(
    py: Python<'_>,
    rows: usize,
    work: impl FnOnce() -> garlic_ann::Result<T> + Send,
) -> PyResult<T> {
    match rows < MANY_ROWS {
        true => py.detach(work).map_err(raise),
        false => interruptible(py, work),
    }
}

/// A count that must not be zero or below; the library's words where it is.
pub(crate) fn at_least_one(name: &'static str, value: Option<i64>) -> PyResult<Option<usize>> {
    match value {
        Some(value) if value < 1 => Err(raise(Error::SearchParameter {
            name,
            value: value.to_string(),
            rule: "must be at least 1",
        })),
        value => Ok(value.map(|value| value as usize)),
    }
}

#[pymethods]
impl Handle {
    #[getter]
    fn dim(&self) -> usize {
        self.index().dim()
    }

    #[getter]
    fn metric(&self) -> &'static str {
        self.index().metric().name()
    }

    #[getter]
    fn next_id(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.index().next_id())
    }

    fn __len__(&self) -> usize {
        self.index().len()
    }

    /// Whether points have names.
    #[getter]
    fn is_named(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.snapshot(py)?.is_named())
    }

    /// For each identifier, whether there is such a point; of the other kind there is none.
    fn contains_all<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let ids = take_ids(ids)?;
        let snapshot = self.snapshot(py)?;
        let found: Vec<bool> = py.detach(|| match snapshot.numbers(&ids) {
            Ok(numbers) => numbers.iter().map(Option::is_some).collect(),
            Err(_) => vec![false; ids.len()],
        });
        Ok(found.into_pyarray(py))
    }

    /// Vectors of identifiers, row after row.
    fn get<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let ids = take_ids(ids)?;
        let snapshot = self.snapshot(py)?;
        let numbers = existing(&snapshot, &ids)?;
        let dim = snapshot.index().dim();
        let rows = py.detach(|| {
            let mut rows = Vec::with_capacity(ids.len() * dim);
            for id in numbers.into_iter().flatten() {
                rows.extend(snapshot.index().get(id).unwrap_or_else(|| vec![0.0; dim]));
            }
            rows
        });
        let rows = numpy::ndarray::Array2::from_shape_vec((ids.len(), dim), rows)
            .map_err(|e| pyo3::exceptions::PyRuntimeError::new_err(e.to_string()))?;
        Ok(rows.into_pyarray(py))
    }

    /// Some columns of identifiers; all of them without names.
    #[pyo3(signature = (ids, names=None))]
    fn rows<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        names: Option<Vec<String>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let ids = take_ids(ids)?;
        let snapshot = self.snapshot(py)?;
        let numbers = existing(&snapshot, &ids)?;
        let names = names.unwrap_or_else(|| all_columns(&snapshot));
        let rows = py.detach(|| snapshot.columns(&numbers, &names));
        columns::put(py, &rows.map_err(raise)?)
    }

    /// Identifiers and columns of all points.
    fn table(&self, py: Python<'_>) -> PyResult<columns::Table> {
        let snapshot = self.snapshot(py)?;
        let made = py.detach(|| snapshot.to_batches());
        let (schema, batches) = made.map_err(raise)?;
        Ok(columns::Table::new(schema, batches))
    }

    /// The names of the columns.
    fn column_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(all_columns(&self.snapshot(py)?))
    }

    /// Identifiers of all points: numbers in ascending order, names in the order in which they were given.
    /// With an expression only those of the points for which it is true.
    #[pyo3(signature = (expression=None))]
    fn ids<'py>(&self, py: Python<'py>, expression: Option<String>) -> PyResult<Bound<'py, PyAny>> {
        let snapshot = self.snapshot(py)?;
        let ids = py.detach(|| match expression {
            Some(expression) => snapshot.ids_where(&expression),
            None => Ok(snapshot.ids()),
        });
        identifiers(py, &ids.map_err(raise)?)
    }

    /// Adds rows; without identifiers, under those from `next_id` on. Returns the identifiers.
    #[pyo3(signature = (vectors, ids=None, columns=None))]
    fn add<'py>(
        &self,
        py: Python<'py>,
        vectors: &Bound<'py, PyAny>,
        ids: Option<&Bound<'py, PyAny>>,
        columns: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let vectors = Vectors::take(vectors, "vectors")?;
        let rows = vectors.rows()?;
        let (ids, columns) = (take_optional_ids(ids)?, columns::take(columns)?);
        let added = change(py, rows.len(), || self.0.add(rows, ids, columns.as_ref()))?;
        identifiers(py, &added)
    }

    /// Adds rows, and replaces those that exist.
    #[pyo3(signature = (vectors, ids, columns=None))]
    fn upsert(
        &self,
        py: Python<'_>,
        vectors: &Bound<'_, PyAny>,
        ids: &Bound<'_, PyAny>,
        columns: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let vectors = Vectors::take(vectors, "vectors")?;
        let rows = vectors.rows()?;
        let (ids, columns) = (take_ids(ids)?, columns::take(columns)?);
        change(py, rows.len(), || {
            self.0.upsert(rows, &ids, columns.as_ref())
        })
    }

    fn update(
        &self,
        py: Python<'_>,
        vectors: &Bound<'_, PyAny>,
        ids: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (vectors, ids) = (Vectors::take(vectors, "vectors")?, take_ids(ids)?);
        let rows = vectors.rows()?;
        change(py, rows.len(), || self.0.update(rows, &ids))
    }

    fn remove(&self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> PyResult<usize> {
        let ids = take_ids(ids)?;
        change(py, ids.len(), || self.0.remove(&ids))
    }

    fn recalibrate(&self, py: Python<'_>) -> PyResult<()> {
        interruptible(py, || self.live()?.recalibrate())
    }

    fn tune(&self, py: Python<'_>, queries: &Bound<'_, PyAny>) -> PyResult<()> {
        let queries = Vectors::take(queries, "queries")?;
        let rows = queries.rows()?;
        interruptible(py, || self.live()?.tune(rows))
    }

    fn retrain(&self, py: Python<'_>) -> PyResult<()> {
        interruptible(py, || self.live()?.retrain())
    }

    /// Returns when no training is going on. Ctrl-C ends the waiting, not the training.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let mut pause = SHORTEST_LOOK;
        while py.detach(|| self.training_state().running) {
            py.check_signals()?;
            py.detach(|| std::thread::sleep(pause));
            pause = (2 * pause).min(LONGEST_LOOK);
        }
        Ok(())
    }

    /// Whether a training is going on, and why the last one failed if it did.
    fn training(&self, py: Python<'_>) -> (bool, Option<String>) {
        let training = py.detach(|| self.training_state());
        (training.running, training.failed)
    }

    /// Whether cells have been fitted to data, by a build, to a sample, or by the index itself; or there have been points.
    fn is_trained(&self, py: Python<'_>) -> bool {
        py.detach(|| {
            let index = self.index();
            let fitted = index.updatable().is_ok_and(|index| index.drift().built > 0);
            fitted || index.next_id() > 0
        })
    }

    /// Whether there have been neither points nor a training.
    fn is_fresh(&self, py: Python<'_>) -> bool {
        py.detach(|| {
            let index = self.index();
            let fitted = index.updatable().is_ok_and(|index| index.drift().built > 0);
            index.is_empty() && index.next_id() == 0 && !fitted
        })
    }

    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        interruptible(py, || self.0.compact())
    }

    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        interruptible(py, || self.live()?.checkpoint())
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.live()?.sync()).map_err(raise)
    }

    /// For a forked process: lets go of its copy of a directory's lock.
    fn after_fork(&self) {
        if let Ok(live) = self.live() {
            live.after_fork();
        }
    }

    fn status(&self, py: Python<'_>) -> Option<String> {
        let status = py.detach(|| self.live().ok()?.status());
        status.map(|status| describe::status(&status).to_string())
    }

    fn stats(&self, py: Python<'_>) -> String {
        py.detach(|| {
            let mut about = describe::stats(&self.index());
            describe::training(&mut about, &self.training_state());
            about.to_string()
        })
    }

    fn inspect(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let compacted = self.index().compacted()?;
            let mut about = describe::inspect(&compacted);
            describe::training(&mut about, &self.training_state());
            Ok(about.to_string())
        })
        .map_err(raise)
    }

    /// Number of points of every cell.
    fn cell_sizes(&self, py: Python<'_>) -> Vec<usize> {
        py.detach(|| self.index().cell_sizes())
    }

    /// Whether a search with this target reads all points, though there are more than every search reads.
    fn reads_everything(&self, k: usize, recall: f64) -> bool {
        let index = self.index();
        index.len() > EXHAUSTIVE_POINTS
            && index
                .updatable()
                .is_ok_and(|index| index.reads_everything(k, recall))
    }

    fn drift(&self, py: Python<'_>) -> PyResult<String> {
        let drift = py.detach(|| self.index().updatable().map(|index| index.drift()));
        let drift = drift.map_err(raise)?;
        serde_json::to_string(&drift)
            .map_err(|e| pyo3::exceptions::PyRuntimeError::new_err(e.to_string()))
    }

    /// Nearest neighbours: distances and identifiers, and what they cost if `counted`. `effort` says how to search.
    /// `columns` are those that come with each neighbour.
    #[pyo3(signature = (queries, k, effort, filter, threads, counted, columns))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn search<'py>(
        slf: &Bound<'py, Self>,
        queries: &Bound<'py, PyAny>,
        k: i64,
        effort: Effort,
        filter: Option<&Bound<'py, PyAny>>,
        threads: Option<i64>,
        counted: bool,
        columns: Option<Vec<String>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let queries = Vectors::take(queries, "queries")?;
        let rows = queries.rows()?;
        let k = at_least_one("k", Some(k))?.unwrap_or(1);
        let snapshot = slf.get().snapshot(py)?;
        let index = snapshot.index();
        let mut search = wanted_search(k, effort, threads, index)?;
        let filter = Filter::take(py, filter)?;
        if let Some(filter) = &filter {
            search = search.filter(filter.get().of(py, &snapshot)?);
        }
        let mut table = Table::new(rows.len(), k)?;
        let mut done = SearchStats::default();
        let mut put = |answer: &Answer| {
            table.push(answer);
            done += answer.stats;
        };
        let numbers = most_numbers(index, search.is_exact(), k, effort.0);
        match rows.len() {
            1 if numbers < LONG => {
                let answer = py.detach(|| index.search(rows.row(0), &search));
                put(&answer.map_err(raise)?);
            }
            _ => {
                let found = answers(py, rows, numbers, |rows| index.search_batch(rows, &search))?;
                py.detach(|| found.iter().for_each(put));
            }
        }
        if let Some(filter) = &filter {
            filter.get().check(py)?;
        }
        let mut found = Vec::with_capacity(4);
        let joined = match &columns {
            Some(names) => {
                let numbers = table.numbers();
                let rows = py.detach(|| snapshot.columns(&numbers, names));
                Some(columns::put(py, &rows.map_err(raise)?)?.into_any())
            }
            None => None,
        };
        let names = match snapshot.is_named() {
            true => Some(table.names(py, &snapshot, queries.is_one(), rows.len())?),
            false => None,
        };
        let (distances, ids) = match queries.is_one() {
            true => table.one(py),
            false => table.many(py, rows.len())?,
        };
        found.extend([distances, names.unwrap_or(ids)]);
        found.extend(joined);
        if counted {
            found.push(work(py, &done, index.dim())?.into_any());
        }
        PyTuple::new(py, found)
    }

    /// All points within a radius: limits, distances and identifiers.
    #[pyo3(signature = (queries, radius, recall, filter, threads))]
    fn range<'py>(
        slf: &Bound<'py, Self>,
        queries: &Bound<'py, PyAny>,
        radius: f32,
        recall: Option<f64>,
        filter: Option<&Bound<'py, PyAny>>,
        threads: Option<i64>,
    ) -> PyResult<Lists<'py>> {
        let py = slf.py();
        let queries = Vectors::take(queries, "queries")?;
        let rows = queries.rows()?;
        let snapshot = slf.get().snapshot(py)?;
        let index = snapshot.index();
        let mut range = RangeSearch::new(radius);
        if let Some(recall) = recall {
            range = range.recall(recall);
        }
        if let Some(threads) = at_least_one("threads", threads)? {
            range = range.threads(threads);
        }
        let filter = Filter::take(py, filter)?;
        if let Some(filter) = &filter {
            range = range.filter(filter.get().of(py, &snapshot)?);
        }
        let numbers = index.len().saturating_mul(index.dim());
        let answers = answers(py, rows, numbers, |rows| index.range_batch(rows, &range))?;
        if let Some(filter) = &filter {
            filter.get().check(py)?;
        }
        lists(py, &answers, &snapshot)
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.index().save(&path)).map_err(raise)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.index().to_bytes()).map_err(raise)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The index as it is now, in memory, for changes of its own.
    fn copy(&self) -> Self {
        Self::new(self.index())
    }
}

/// The search that the arguments of a call stand for, but for its filter.
fn wanted_search(
    k: usize,
    effort: Effort,
    threads: Option<i64>,
    index: &AnyIndex,
) -> PyResult<Search> {
    let (recall, probes, bins, rerank, exact) = effort;
    // More neighbours than there are points take no more work.
    let mut search = Search::new(k.min(index.len().max(1))).exact(exact);
    if let Some(recall) = recall {
        search = search.recall(recall);
    }
    if let Some(probes) = at_least_one("probes", probes)? {
        search = search.probes(probes);
    }
    if let Some(bins) = bins {
        search = search.bins(bins);
    }
    if let Some(rerank) = at_least_one("rerank", rerank)? {
        search = search.rerank(rerank);
    }
    if let Some(threads) = at_least_one("threads", threads)? {
        search = search.threads(threads);
    }
    Ok(search)
}

/// The numbers that a query reads at most, for [`answers`]: none where it does not read everything, or there are few.
fn most_numbers(index: &AnyIndex, exact: bool, k: usize, recall: Option<f64>) -> usize {
    let all = index.len().saturating_mul(index.dim());
    let reads_all = || {
        let Ok(index) = index.updatable() else {
            return false;
        };
        index.reads_everything(k, recall.unwrap_or(index.config().tuning.recall))
    };
    match all >= LONG / FIRST && (exact || reads_all()) {
        true => all,
        false => 0,
    }
}

/// The numbers of identifiers that must all be there.
fn existing(snapshot: &Snapshot, ids: &Ids) -> PyResult<Vec<Option<u64>>> {
    let numbers = snapshot.numbers(ids).map_err(raise)?;
    match numbers.iter().position(Option::is_none) {
        Some(at) => Err(PyKeyError::new_err(format!(
            "there is no point with the identifier {}",
            ids.get(at)
        ))),
        None => Ok(numbers),
    }
}

/// The names of all columns but the identifiers.
fn all_columns(snapshot: &Snapshot) -> Vec<String> {
    let Some(table) = snapshot.table() else {
        return Vec::new();
    };
    let fields = table.schema().fields().iter();
    fields.map(|field| field.name().clone()).collect()
}
