//! One handle for an index in memory, in a mapped file or in a directory.
//!
//! It is a [`Live`]: searches run on a snapshot with the interpreter let go, whatever other threads change.

use std::path::PathBuf;
use std::time::Duration;

use garlic_ann::live::Training;
use garlic_ann::{Answer, EXHAUSTIVE_POINTS, Error, Live, RangeSearch, Search, SearchStats};
use garlic_any::AnyIndex;
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::arrays::{Ids, Vectors};
use crate::describe;
use crate::errors::raise;
use crate::filter::Filter;
use crate::interrupt::{answers, interruptible};
use crate::output::{Lists, Table, lists, work};

/// How often it is looked whether a training has ended: often at first, since most are short.
const SHORTEST_LOOK: Duration = Duration::from_millis(1);
const LONGEST_LOOK: Duration = Duration::from_millis(50);

/// Recall target, probes, share of bins, candidates to re-rank, and whether the search is exact.
type Effort = (Option<f64>, Option<i64>, Option<f64>, Option<i64>, bool);

/// An index; `garlic_ann.Index` and `garlic_ann.Live` are made of it.
#[pyclass(frozen, module = "garlic_ann._garlic")]
pub(crate) struct Handle(Kept);

/// Where the index is.
enum Kept {
    /// It can be changed while it is searched.
    Live(Live),
    /// It stays as it was built.
    Fixed(Box<AnyIndex>),
}

impl Handle {
    /// An index in memory.
    pub(crate) fn new(index: AnyIndex) -> Self {
        Self(match index.updatable() {
            Ok(index) => Kept::Live(Live::new(index.clone())),
            Err(_) => Kept::Fixed(Box::new(index)),
        })
    }

    /// An index in a directory.
    pub(crate) fn over(live: Live) -> Self {
        Self(Kept::Live(live))
    }

    /// The index as it is now.
    pub(crate) fn snapshot(&self) -> AnyIndex {
        match &self.0 {
            Kept::Live(live) => (*live.snapshot()).clone().into(),
            Kept::Fixed(index) => AnyIndex::clone(index),
        }
    }

    /// The handle for changes.
    fn live(&self) -> garlic_ann::Result<&Live> {
        match &self.0 {
            Kept::Live(live) => Ok(live),
            Kept::Fixed(_) => Err(Error::Unchanging),
        }
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
        self.snapshot().dim()
    }

    #[getter]
    fn metric(&self) -> &'static str {
        self.snapshot().metric().name()
    }

    #[getter]
    fn next_id(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.snapshot().next_id())
    }

    fn __len__(&self) -> usize {
        self.snapshot().len()
    }

    fn contains(&self, id: u64) -> bool {
        self.snapshot().contains(id)
    }

    fn contains_all<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let ids = Ids::take(ids)?;
        let ids = ids.as_slice()?;
        let found: Vec<bool> = py.detach(|| {
            let index = self.snapshot();
            ids.iter().map(|id| index.contains(*id)).collect()
        });
        Ok(found.into_pyarray(py))
    }

    /// Vectors of identifiers, row after row.
    fn get<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let ids = Ids::take(ids)?;
        let ids = ids.as_slice()?;
        let (dim, found) = py.detach(|| {
            let index = self.snapshot();
            let mut rows = Vec::with_capacity(ids.len() * index.dim());
            for id in ids {
                match index.get(*id) {
                    Some(row) => rows.extend(row),
                    None => return (index.dim(), Err(*id)),
                }
            }
            (index.dim(), Ok(rows))
        });
        let rows = found.map_err(|id| {
            PyKeyError::new_err(format!("there is no point with the identifier {id}"))
        })?;
        let rows = numpy::ndarray::Array2::from_shape_vec((ids.len(), dim), rows)
            .map_err(|e| pyo3::exceptions::PyRuntimeError::new_err(e.to_string()))?;
        Ok(rows.into_pyarray(py))
    }

    /// Identifiers of all points, in ascending order.
    fn ids<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let ids: Vec<i64> = py.detach(|| {
            let mut ids = self.snapshot().ids();
            ids.sort_unstable();
            ids.into_iter().map(|id| id as i64).collect()
        });
        ids.into_pyarray(py)
    }

    /// Adds rows; without identifiers, under those from `next_id` on.
    #[pyo3(signature = (vectors, ids=None))]
    fn add<'py>(
        &self,
        py: Python<'py>,
        vectors: &Bound<'py, PyAny>,
        ids: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let vectors = Vectors::take(vectors, "vectors")?;
        let rows = vectors.rows()?;
        match ids {
            Some(ids) => {
                let ids = Ids::take(ids)?;
                let ids = ids.as_slice()?;
                change(py, rows.len(), || self.live()?.add(rows, ids))
            }
            None => change(py, rows.len(), || {
                // Another thread may take the same identifiers first; then those after them are tried.
                loop {
                    let first = self.snapshot().next_id();
                    let ids: Vec<u64> = (first..).take(rows.len()).collect();
                    match self.live()?.add(rows, &ids) {
                        Err(Error::IdExists { .. }) if self.snapshot().next_id() != first => {}
                        result => return result,
                    }
                }
            }),
        }
    }

    fn update(
        &self,
        py: Python<'_>,
        vectors: &Bound<'_, PyAny>,
        ids: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (vectors, ids) = (Vectors::take(vectors, "vectors")?, Ids::take(ids)?);
        let (rows, ids) = (vectors.rows()?, ids.as_slice()?);
        change(py, rows.len(), || self.live()?.update(rows, ids))
    }

    fn remove(&self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> PyResult<usize> {
        let ids = Ids::take(ids)?;
        let ids = ids.as_slice()?;
        change(py, ids.len(), || self.live()?.remove(ids))
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
            let index = self.snapshot();
            let fitted = index.updatable().is_ok_and(|index| index.drift().built > 0);
            fitted || index.next_id() > 0
        })
    }

    /// Whether there have been neither points nor a training.
    fn is_fresh(&self, py: Python<'_>) -> bool {
        py.detach(|| {
            let index = self.snapshot();
            let fitted = index.updatable().is_ok_and(|index| index.drift().built > 0);
            index.is_empty() && index.next_id() == 0 && !fitted
        })
    }

    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        interruptible(py, || self.live()?.compact())
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
            let mut about = describe::stats(&self.snapshot());
            describe::training(&mut about, &self.training_state());
            about.to_string()
        })
    }

    fn inspect(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let compacted = self.snapshot().compacted()?;
            let mut about = describe::inspect(&compacted);
            describe::training(&mut about, &self.training_state());
            Ok(about.to_string())
        })
        .map_err(raise)
    }

    /// Number of points of every cell.
    fn cell_sizes(&self, py: Python<'_>) -> Vec<usize> {
        py.detach(|| self.snapshot().cell_sizes())
    }

    /// Whether a search with this target reads all points, though there are more than every search reads.
    fn reads_everything(&self, k: usize, recall: f64) -> bool {
        let index = self.snapshot();
        index.len() > EXHAUSTIVE_POINTS
            && index
                .updatable()
                .is_ok_and(|index| index.reads_everything(k, recall))
    }

    fn drift(&self, py: Python<'_>) -> PyResult<String> {
        let drift = py.detach(|| self.snapshot().updatable().map(|index| index.drift()));
        let drift = drift.map_err(raise)?;
        serde_json::to_string(&drift)
            .map_err(|e| pyo3::exceptions::PyRuntimeError::new_err(e.to_string()))
    }

    /// Nearest neighbours: distances and identifiers, and what they cost if `counted`. `effort` says how to search.
    #[pyo3(signature = (queries, k, effort, filter, threads, counted))]
    fn search<'py>(
        slf: &Bound<'py, Self>,
        queries: &Bound<'py, PyAny>,
        k: i64,
        effort: Effort,
        filter: Option<&Bound<'py, PyAny>>,
        threads: Option<i64>,
        counted: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let (recall, probes, bins, rerank, exact) = effort;
        let py = slf.py();
        let queries = Vectors::take(queries, "queries")?;
        let rows = queries.rows()?;
        let k = at_least_one("k", Some(k))?.unwrap_or(1);
        let index = slf.get().snapshot();
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
        let filter = Filter::take(py, filter, slf)?;
        if let Some(filter) = &filter {
            search = search.filter(filter.get().inner());
        }
        let mut table = Table::new(rows.len(), k)?;
        let mut done = SearchStats::default();
        let mut put = |answer: &Answer| {
            table.push(answer);
            done += answer.stats;
        };
        match rows.len() {
            1 => {
                let answer = py.detach(|| index.search(rows.row(0), &search));
                put(&answer.map_err(raise)?);
            }
            _ => {
                let found = answers(py, rows, |rows| index.search_batch(rows, &search))?;
                py.detach(|| found.iter().for_each(put));
            }
        }
        if let Some(filter) = &filter {
            filter.get().check(py)?;
        }
        let (distances, ids) = match queries.is_one() {
            true => table.one(py),
            false => table.many(py, rows.len())?,
        };
        if counted {
            let work = work(py, &done, index.dim())?;
            return (distances, ids, work).into_pyobject(py);
        }
        (distances, ids).into_pyobject(py)
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
        let index = slf.get().snapshot();
        let mut range = RangeSearch::new(radius);
        if let Some(recall) = recall {
            range = range.recall(recall);
        }
        if let Some(threads) = at_least_one("threads", threads)? {
            range = range.threads(threads);
        }
        let filter = Filter::take(py, filter, slf)?;
        if let Some(filter) = &filter {
            range = range.filter(filter.get().inner());
        }
        let answers = answers(py, rows, |rows| index.range_batch(rows, &range))?;
        if let Some(filter) = &filter {
            filter.get().check(py)?;
        }
        Ok(lists(py, &answers))
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.snapshot().save(&path)).map_err(raise)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.snapshot().to_bytes()).map_err(raise)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The index as it is now, in memory, for changes of its own.
    fn copy(&self) -> Self {
        Self::new(self.snapshot())
    }
}
