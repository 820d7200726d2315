//! Threads for changes of an index: a pool of our own, started when first needed.

use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::build::thread_pool;
use crate::error::Result;

/// Worker threads that all copies of an index share; as many as there are cores.
#[derive(Clone, Default)]
pub(crate) struct Workers(Arc<Mutex<Option<Arc<Pool>>>>);

impl Workers {
    /// The threads; started now if they have not been, by this process.
    pub(crate) fn get(&self) -> Result<Arc<Pool>> {
        if let Some(pool) = of_this_process(&self.known()) {
            return Ok(pool);
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let started = Arc::new(Pool {
            threads: Some(thread_pool(threads)?),
            process: process::id(),
        });
        let mut known = self.known();
        // Another thread may have been faster; its pool serves as well.
        if let Some(pool) = of_this_process(&known) {
            return Ok(pool);
        }
        *known = Some(Arc::clone(&started));
        Ok(started)
    }

    fn known(&self) -> MutexGuard<'_, Option<Arc<Pool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn of_this_process(known: &Option<Arc<Pool>>) -> Option<Arc<Pool>> {
    let pool = known.as_ref().filter(|pool| pool.process == process::id());
    pool.cloned()
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Workers")
    }
}

/// A pool, and the process that has its threads. A forked process has a copy of the pool without them: what it gave
/// that pool to do would never be done.
pub(crate) struct Pool {
    /// Taken out when the pool is dropped.
    threads: Option<rayon::ThreadPool>,
    process: u32,
}

impl Pool {
    /// Does `work` on the threads and waits for it.
    pub(crate) fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.threads {
            Some(threads) => threads.install(work),
            None => work(),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let threads = self.threads.take();
        if self.process != process::id() {
            // Ending threads takes locks that one of them may have held when the process was forked.
            std::mem::forget(threads);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_the_threads_starts_its_own() {
        let workers = Workers::default();
        let copy = workers.clone();
        let first = workers.get().unwrap();
        assert!(
            Arc::ptr_eq(&first, &copy.get().unwrap()),
            "copies share them"
        );
        let inherited = Pool {
            threads: None,
            process: process::id() ^ 1,
        };
        *workers.known() = Some(Arc::new(inherited));
        let own = copy.get().unwrap();
        assert_eq!(own.process, process::id());
        assert!(own.install(|| rayon::current_thread_index().is_some()));
        assert!(Arc::ptr_eq(&own, &workers.get().unwrap()));
    }
}
