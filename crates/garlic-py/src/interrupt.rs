//! Long work on a thread of its own, so that the calling one, which alone can, hears Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use garlic_ann::{Answer, Cancel, Error, Rows};
use pyo3::prelude::*;

use crate::errors::raise;

/// How often the calling thread looks for signals.
const LOOK: Duration = Duration::from_millis(50);
/// Queries whose time tells whether all of them take long enough for a thread.
pub(crate) const FIRST: usize = 32;
/// Numbers that searches may read before they are taken to be long: some tenths of a second from memory.
pub(crate) const LONG: usize = 1 << 28;

/// Runs `work` on a thread of its own, and on this one now and then `look`, with the interpreter. An error of `look` sets
/// `cancel`, and it is raised when the work has ended. If no thread can be started, the work is done here.
pub(crate) fn watched<T: Send>(
    cancel: &AtomicBool,
    work: impl FnOnce() -> garlic_ann::Result<T> + Send,
    mut look: impl FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<T> {
    let (done, wait) = mpsc::channel();
    let waiting = Mutex::new(Some(work));
    let begin = &|| {
        let work = waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        work.map(|work| work())
    };
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().spawn_scoped(scope, move || {
            // Nobody is waiting only if the other side panicked.
            let _ = done.send(begin());
        });
        let Ok(worker) = worker else {
            return begin().unwrap_or(Err(Error::Cancelled)).map_err(raise);
        };
        let mut raised = None;
        let result = loop {
            match wait.recv_timeout(LOOK) {
                Ok(result) => break result,
                Err(RecvTimeoutError::Disconnected) => break None,
                Err(RecvTimeoutError::Timeout) if raised.is_none() => {
                    if let Err(error) = Python::attach(&mut look) {
                        cancel.store(true, Ordering::Relaxed);
                        raised = Some(error);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        if let Err(panic) = worker.join() {
            std::panic::resume_unwind(panic);
        }
        match raised {
            Some(error) => Err(error),
            None => result.unwrap_or(Err(Error::Cancelled)).map_err(raise),
        }
    })
}

/// Does work that Ctrl-C ends, with the interpreter let go.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> garlic_ann::Result<T> + Send,
) -> PyResult<T> {
    let flag = Arc::new(AtomicBool::new(false));
    let cancel = Cancel::new(Arc::clone(&flag));
    py.detach(|| watched(&flag, || cancel.scope(work), |py| py.check_signals()))
}

/// The answers that `ask` gives for rows of queries, each of which may read `numbers`. Ctrl-C ends it if these are many, or
/// if the first rows show that all of them take long; a thread for short work would take longer than the work.
pub(crate) fn answers(
    py: Python<'_>,
    rows: Rows<'_>,
    numbers: usize,
    ask: impl Fn(Rows<'_>) -> garlic_ann::Result<Vec<Answer>> + Sync,
) -> PyResult<Vec<Answer>> {
    let first = rows.len().min(FIRST);
    if numbers.saturating_mul(first) >= LONG {
        return interruptible(py, || ask(rows));
    }
    let start = Instant::now();
    let mut answers = py.detach(|| ask(rows.slice(0..first))).map_err(raise)?;
    let rest = rows.slice(first..rows.len());
    if rest.is_empty() {
        return Ok(answers);
    }
    let expected = start.elapsed().as_secs_f64() * rest.len() as f64 / first as f64;
    let ask_rest = || ask(rest).map_err(|error| counted_from(error, first));
    let others = match expected < LOOK.as_secs_f64() {
        true => py.detach(ask_rest).map_err(raise)?,
        false => interruptible(py, ask_rest)?,
    };
    answers.extend(others);
    Ok(answers)
}

/// The library counts queries from the beginning of a call, the user from that of an array.
fn counted_from(mut error: Error, before: usize) -> Error {
    match &mut error {
        Error::QueryNotFinite { row, .. }
        | Error::QueryTooLarge { row, .. }
        | Error::ZeroQuery { row }
        | Error::TooClose { row, .. } => *row += before,
        _ => {}
    }
    error
}
