//! Background training: an index that has grown is retrained in a thread of its own while the old one serves.
//!
//! Batches that arrive meanwhile are kept in a journal and applied to the new index before it replaces the old one.
//! If writers are far ahead of the training, they wait for it, because recall targets must hold and the journal is in
//! memory.

use std::panic::{self, AssertUnwindSafe};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::record::{Batch, Change};
use super::{Live, Shared, Writer, WriterState};
use crate::segment::Index;
use crate::update::Due;
use garlic_core::Cancel;
use garlic_core::{Error, Result};

/// Writers wait if the journal has more than this share of the points that the training started with.
const MAX_JOURNAL_SHARE: f64 = 0.5;
/// After a failure, training is tried again when the index has grown by this factor.
const RETRY_GROWTH: f64 = 1.1;

/// Status of the background training.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Training {
    /// Whether the index is being trained, or its targets checked.
    pub running: bool,
    /// Why the last training failed, if it did. The index is unchanged, and searches do more work to meet their
    /// targets. Training is tried again when the index has grown.
    pub failed: Option<String>,
}

/// Changes since the start of a training.
pub(super) struct Journal {
    changes: Vec<Change>,
    points: usize,
    /// Number of points at the start of the training.
    points_at_start: usize,
    /// The process of the training thread. A forked process has no such thread.
    process: u32,
}

/// Why a training failed, and the number of points at which it is tried again.
pub(super) struct Failed {
    message: String,
    retry_at: usize,
}

/// The training thread, with a flag to cancel it.
#[derive(Default)]
pub(super) struct Trainer {
    thread: Mutex<Option<(JoinHandle<()>, u32)>>,
    jobs: Arc<Jobs>,
    pub(super) cancel: Arc<AtomicBool>,
}

/// How often a waiting thread looks whether it was cancelled.
const CANCEL_LOOK: Duration = Duration::from_millis(20);

/// Number of active jobs, and their process. A forked process has no thread to finish them.
#[derive(Default)]
struct Jobs {
    active: Mutex<(usize, u32)>,
    ended: Condvar,
}

impl Jobs {
    fn active(&self) -> MutexGuard<'_, (usize, u32)> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there are no active jobs; false if it was cancelled before.
    fn wait(&self, cancel: &Cancel) -> bool {
        let own = process::id();
        let is_active = |active: &mut (usize, u32)| active.0 > 0 && active.1 == own;
        let mut active = self.active();
        while is_active(&mut active) {
            if cancel.is_cancelled() {
                return false;
            }
            let waited = self.ended.wait_timeout(active, CANCEL_LOOK);
            active = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// An active job, until this is dropped.
struct ActiveJob(Arc<Jobs>);

impl ActiveJob {
    fn new(jobs: &Arc<Jobs>) -> Self {
        let own = process::id();
        let mut active = jobs.active();
        *active = match *active {
            (count, process) if process == own => (count + 1, own),
            _ => (1, own),
        };
        drop(active);
        Self(Arc::clone(jobs))
    }
}

impl Drop for ActiveJob {
    fn drop(&mut self) {
        self.0.active().0 -= 1;
        self.0.ended.notify_all();
    }
}

/// A maintenance job for an index.
pub(super) struct Job {
    due: Due,
    index: Index,
}

impl WriterState {
    /// Records a batch in the journal of a training in progress.
    pub(super) fn record(&mut self, batch: &Batch<'_>) {
        if let Some(journal) = self.journal.as_mut() {
            journal.points += batch.ids.len();
            journal.changes.push(batch.to_change());
        }
    }

    /// The job that the current index is due for, unless one is active. Starts a journal.
    pub(super) fn job(&mut self, index: &Index) -> Option<Job> {
        let is_writable = !matches!(self.writer, Writer::ReadOnly);
        if !is_writable || self.journal.as_ref().is_some_and(is_of_this_process) {
            return None;
        }
        let is_early = |failed: &Failed| index.len() < failed.retry_at;
        let due = index
            .due()
            .filter(|_| !self.failed.as_ref().is_some_and(is_early))?;
        self.journal = Some(Journal {
            changes: Vec::new(),
            points: 0,
            points_at_start: index.len(),
            process: process::id(),
        });
        Some(Job {
            due,
            index: index.clone(),
        })
    }

    /// Whether writers are so far ahead of the training that they should wait.
    pub(super) fn is_ahead(&self) -> bool {
        let ahead = |j: &Journal| j.points as f64 > MAX_JOURNAL_SHARE * j.points_at_start as f64;
        self.journal.as_ref().is_some_and(ahead)
    }

    pub(super) fn training(&self) -> Training {
        Training {
            running: self.journal.as_ref().is_some_and(is_of_this_process),
            failed: self.failed.as_ref().map(|failed| failed.message.clone()),
        }
    }
}

/// Whether the thread of this journal exists. A forked process does not have it.
fn is_of_this_process(journal: &Journal) -> bool {
    journal.process == process::id()
}

impl Shared {
    /// Runs a job and its follow-up jobs, and publishes the results.
    fn run_jobs(&self, mut job: Job, cancel: &Cancel) {
        loop {
            #[cfg(test)]
            drop(self.gate.lock());
            // A panic would leave the journal open and prevent all later trainings.
            let attempt = AssertUnwindSafe(|| job.index.maintained(job.due, cancel));
            let done = panic::catch_unwind(attempt).unwrap_or_else(|_| {
                Err(Error::Broken {
                    path: self.directory.clone().unwrap_or_default(),
                    message: "the training panicked".into(),
                })
            });
            let next = self.write(|current, state| {
                let journal = state.journal.take();
                let changes = journal.map(|journal| journal.changes).unwrap_or_default();
                match finish_job(&job, done, changes, current, state) {
                    Ok(next) => {
                        state.failed = None;
                        let more = state.job(next.as_ref().unwrap_or(current));
                        Ok((next, more))
                    }
                    Err(error) => {
                        state.failed = Some(Failed {
                            message: error.to_string(),
                            retry_at: (current.len() as f64 * RETRY_GROWTH) as usize,
                        });
                        Ok((None, None))
                    }
                }
            });
            match next {
                Ok(Some(more)) if !cancel.is_cancelled() => job = more,
                _ => return,
            }
        }
    }
}

/// The result of a finished job, applied to the current index, or `None` if it no longer applies.
fn finish_job(
    job: &Job,
    done: Result<Index>,
    changes: Vec<Change>,
    current: &Index,
    state: &mut WriterState,
) -> Result<Option<Index>> {
    let mut next = done?;
    if job.due == Due::Check {
        // A check changes only the calibration, which may have been measured again meanwhile.
        let before = &job.index;
        let is_same = current.calibration() == before.calibration();
        return Ok(is_same.then(|| current.with_check(before, &next)));
    }
    for change in changes {
        change.apply(&mut next)?;
    }
    next.attachment = current.attachment.clone();
    if let Writer::Directory(directory) = &mut state.writer {
        next.compact()?;
        directory.checkpoint(&next)?;
    }
    Ok(Some(next))
}

impl Live {
    /// Starts a job in a thread of its own, or runs it here if no thread can be started.
    pub(super) fn start(&self, job: Option<Job>) {
        let Some(job) = job else {
            return;
        };
        let (shared, cancel) = (
            Arc::clone(&self.shared),
            Cancel::new(Arc::clone(&self.trainer.cancel)),
        );
        // A copy for this thread if no other can be started.
        let spare = Job {
            due: job.due,
            index: job.index.clone(),
        };
        let mut thread = self.thread();
        // The previous thread has published its result and is about to end.
        finish(thread.take());
        let named = thread::Builder::new().name("garlic-training".into());
        let active = ActiveJob::new(&self.trainer.jobs);
        let work = move || {
            let _active = active;
            shared.run_jobs(job, &cancel);
        };
        match named.spawn(work) {
            Ok(started) => *thread = Some((started, process::id())),
            Err(_) => {
                drop(thread);
                self.shared.run_jobs(spare, &Cancel::default());
            }
        }
    }

    /// Waits until all maintenance that is due for the current state is done. In a [`Cancel::scope`] the waiting ends, not
    /// the maintenance, when its flag is set.
    pub fn wait(&self) {
        // Others may be waiting as well, and only one of them can take the thread.
        if self.trainer.jobs.wait(&Cancel::current()) {
            let thread = self.thread().take();
            finish(thread);
        }
    }

    /// Status of the background training.
    pub fn training(&self) -> Training {
        let known = self.shared.swap.with_writer(WriterState::training);
        known.unwrap_or_default()
    }

    fn thread(&self) -> MutexGuard<'_, Option<(JoinHandle<()>, u32)>> {
        let thread = self.trainer.thread.lock();
        thread.unwrap_or_else(PoisonError::into_inner)
    }
}

fn finish(thread: Option<(JoinHandle<()>, u32)>) {
    match thread {
        Some((thread, process)) if process == process::id() => {
            // The state of the writer holds the result or the error.
            let _ = thread.join();
        }
        // The thread of the parent, which cannot be joined here.
        Some((thread, _)) => std::mem::forget(thread),
        None => {}
    }
}

/// Cancels a training in progress. It is due again when the directory is opened.
impl Drop for Live {
    fn drop(&mut self) {
        self.trainer.cancel.store(true, Ordering::Relaxed);
        let thread = self.thread().take();
        finish(thread);
    }
}
