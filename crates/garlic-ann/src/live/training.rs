//! Training beside the writers: an index that has grown is trained anew in a thread of its own, while the old one serves.
//!
//! The batches that come meanwhile are written down and applied to the new index before it takes the old one's place. A
//! writer that is far ahead of the training waits for it: a target is a promise, and the journal lies in memory.

use std::panic::{self, AssertUnwindSafe};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use super::record::{Batch, Change};
use super::{Live, Shared, Turn, Writer};
use crate::segment::Index;
use crate::update::Due;
use garlic_core::Cancel;
use garlic_core::{Error, Result};

/// Points in the journal, as a share of those that the training began with, above which writers wait.
const MOST_AHEAD: f64 = 0.5;
/// After a failure it is tried again when the index has grown by this factor.
const AGAIN: f64 = 1.1;

/// What a handle knows about the training that runs beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Training {
    /// Whether the index is being trained, or its targets checked, now.
    pub running: bool,
    /// Why the last training failed, if it did. The index is as it was; searches do more for their targets, and it is
    /// tried again when the index has grown.
    pub failed: Option<String>,
}

/// What has changed since a training began.
pub(super) struct Journal {
    changes: Vec<Change>,
    points: usize,
    /// Points that the training began with.
    from: usize,
    /// A forked process has no thread that would ever end this.
    process: u32,
}

/// Why a training failed, and the number of points that it is tried again with.
pub(super) struct Failed {
    message: String,
    again: usize,
}

/// The thread, and what ends it.
#[derive(Default)]
pub(super) struct Trainer {
    thread: Mutex<Option<(JoinHandle<()>, u32)>>,
    jobs: Arc<Jobs>,
    pub(super) cancel: Arc<AtomicBool>,
}

/// How many jobs are being done, and by which process: a forked one has no thread that would ever end them.
#[derive(Default)]
struct Jobs {
    doing: Mutex<(usize, u32)>,
    ended: Condvar,
}

impl Jobs {
    fn doing(&self) -> MutexGuard<'_, (usize, u32)> {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until none is being done.
    fn wait(&self) {
        let own = process::id();
        let is_doing = |doing: &mut (usize, u32)| doing.0 > 0 && doing.1 == own;
        let ended = self.ended.wait_while(self.doing(), is_doing);
        drop(ended);
    }
}

/// One job, until this is dropped.
struct Doing(Arc<Jobs>);

impl Doing {
    fn new(jobs: &Arc<Jobs>) -> Self {
        let own = process::id();
        let mut doing = jobs.doing();
        *doing = match *doing {
            (count, process) if process == own => (count + 1, own),
            _ => (1, own),
        };
        drop(doing);
        Self(Arc::clone(jobs))
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        self.0.doing().0 -= 1;
        self.0.ended.notify_all();
    }
}

/// What is to be done, to which index.
pub(super) struct Job {
    due: Due,
    index: Index,
}

impl Turn {
    /// Notes a batch for a training that is going on.
    pub(super) fn note(&mut self, batch: &Batch<'_>) {
        if let Some(journal) = self.journal.as_mut() {
            journal.points += batch.ids.len();
            journal.changes.push(batch.to_change());
        }
    }

    /// The job that an index, which is the current one, is due for, unless one is being done; from now on changes are noted.
    pub(super) fn job(&mut self, index: &Index) -> Option<Job> {
        let is_writable = !matches!(self.writer, Writer::ReadOnly);
        if !is_writable || self.journal.as_ref().is_some_and(is_of_this_process) {
            return None;
        }
        let is_early = |failed: &Failed| index.len() < failed.again;
        let due = index
            .due()
            .filter(|_| !self.failed.as_ref().is_some_and(is_early))?;
        self.journal = Some(Journal {
            changes: Vec::new(),
            points: 0,
            from: index.len(),
            process: process::id(),
        });
        Some(Job {
            due,
            index: index.clone(),
        })
    }

    /// Whether writers are so far ahead of the training that they should wait.
    pub(super) fn is_ahead(&self) -> bool {
        let ahead = |j: &Journal| j.points as f64 > MOST_AHEAD * j.from as f64;
        self.journal.as_ref().is_some_and(ahead)
    }

    pub(super) fn training(&self) -> Training {
        Training {
            running: self.journal.as_ref().is_some_and(is_of_this_process),
            failed: self.failed.as_ref().map(|failed| failed.message.clone()),
        }
    }
}

/// Whether the thread that this was noted for can still end it: a forked process has none.
fn is_of_this_process(journal: &Journal) -> bool {
    journal.process == process::id()
}

impl Shared {
    /// Does a job and what becomes due by it, publishing the results.
    fn work(&self, mut job: Job, cancel: &Cancel) {
        loop {
            #[cfg(test)]
            drop(self.gate.lock());
            // A panic would leave the journal open, and no training would ever follow.
            let attempt = AssertUnwindSafe(|| job.index.maintained(job.due, cancel));
            let done = panic::catch_unwind(attempt).unwrap_or_else(|_| {
                Err(Error::Broken {
                    path: self.directory.clone().unwrap_or_default(),
                    message: "the training panicked".into(),
                })
            });
            let next = self.write(|current, turn| {
                let journal = turn.journal.take();
                let changes = journal.map(|journal| journal.changes).unwrap_or_default();
                match put_in_place(&job, done, changes, current, turn) {
                    Ok(next) => {
                        turn.failed = None;
                        let more = turn.job(next.as_ref().unwrap_or(current));
                        Ok((next, more))
                    }
                    Err(error) => {
                        turn.failed = Some(Failed {
                            message: error.to_string(),
                            again: (current.len() as f64 * AGAIN) as usize,
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

/// The index that a finished job makes of the current one; none where it no longer fits.
fn put_in_place(
    job: &Job,
    done: Result<Index>,
    changes: Vec<Change>,
    current: &Index,
    turn: &mut Turn,
) -> Result<Option<Index>> {
    let mut next = done?;
    if job.due == Due::Check {
        // Only what targets take has changed; somebody may have measured that in the meantime.
        let before = &job.index;
        let is_same = current.calibration() == before.calibration();
        return Ok(is_same.then(|| current.with_check(before, &next)));
    }
    for change in changes {
        change.apply(&mut next)?;
    }
    if let Writer::Directory(directory) = &mut turn.writer {
        next.compact()?;
        directory.checkpoint(&next)?;
    }
    Ok(Some(next))
}

impl Live {
    /// Starts a job in a thread of its own; without threads it is done here.
    pub(super) fn start(&self, job: Option<Job>) {
        let Some(job) = job else {
            return;
        };
        let (shared, cancel) = (
            Arc::clone(&self.shared),
            Cancel::new(Arc::clone(&self.trainer.cancel)),
        );
        // A copy for this thread, should there be no other.
        let spare = Job {
            due: job.due,
            index: job.index.clone(),
        };
        let mut thread = self.thread();
        // The one before has published its result and is about to end, or ended.
        finish(thread.take());
        let named = thread::Builder::new().name("garlic-training".into());
        let doing = Doing::new(&self.trainer.jobs);
        let work = move || {
            let _doing = doing;
            shared.work(job, &cancel);
        };
        match named.spawn(work) {
            Ok(started) => *thread = Some((started, process::id())),
            Err(_) => {
                drop(thread);
                self.shared.work(spare, &Cancel::default());
            }
        }
    }

    /// Waits until the index has been trained, or its targets have been checked, as far as what has changed so far asks for it.
    pub fn wait(&self) {
        // Others may be waiting as well, and only one of them can take the thread.
        self.trainer.jobs.wait();
        let thread = self.thread().take();
        finish(thread);
    }

    /// What is known about the training that runs beside this handle.
    pub fn training(&self) -> Training {
        let known = self.shared.swap.with_writer(Turn::training);
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
            // What it did, and why it failed, stands in the turn.
            let _ = thread.join();
        }
        // The parent's thread, which nobody here can wait for.
        Some((thread, _)) => std::mem::forget(thread),
        None => {}
    }
}

/// A training that is going on is given up: it is due again when the directory is opened.
impl Drop for Live {
    fn drop(&mut self) {
        self.trainer.cancel.store(true, Ordering::Relaxed);
        let thread = self.thread().take();
        finish(thread);
    }
}
