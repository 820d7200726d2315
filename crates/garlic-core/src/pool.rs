//! Thread pools for updates and batch searches. They are started on first use and kept.

use std::any::Any;
use std::cell::Cell;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};

/// Number of pools that are kept: one for updates, and those of the latest batch searches.
const MAX_POOLS: usize = 3;

/// Worker threads that all clones of an index share.
#[derive(Clone, Default)]
pub struct Workers {
    pools: Arc<Mutex<Vec<Arc<Pool>>>>,
    /// Number of threads of [`Workers::get`]. The default is the number of cores.
    threads: Option<usize>,
}

impl Workers {
    /// Workers with this number of threads, for tests.
    pub fn of(threads: usize) -> Self {
        Self {
            threads: Some(threads),
            ..Self::default()
        }
    }

    /// A pool with one thread per core, or with one thread if the system provides no more. Results do not depend on
    /// the number of threads.
    ///
    /// # Errors
    /// [`Error::Threads`] if no thread can be started.
    pub fn get(&self) -> Result<Arc<Pool>> {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads.unwrap_or_else(cores);
        self.with(threads)
            .or_else(|error| self.with(1).map_err(|_| error))
    }

    /// A pool with this number of threads. It is started unless this process has one already.
    ///
    /// # Errors
    /// [`Error::Threads`] if the threads cannot be started.
    pub fn with(&self, threads: usize) -> Result<Arc<Pool>> {
        if THREADS_REFUSED.get() {
            return Err(Error::Threads {
                threads: 1,
                message: "a test asked for none".into(),
            });
        }
        if let Some(pool) = find(&self.known(), threads) {
            return Ok(pool);
        }
        let started = Arc::new(Pool {
            pool: Some(thread_pool(threads)?),
            threads,
            process: process::id(),
        });
        let mut known = self.known();
        // Another thread may have started a pool meanwhile. Use that one.
        if let Some(pool) = find(&known, threads) {
            return Ok(pool);
        }
        known.retain(|pool| pool.process == process::id());
        if known.len() == MAX_POOLS {
            known.remove(0);
        }
        known.push(Arc::clone(&started));
        Ok(started)
    }

    fn known(&self) -> MutexGuard<'_, Vec<Arc<Pool>>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find(known: &[Arc<Pool>], threads: usize) -> Option<Arc<Pool>> {
    let usable = |pool: &&Arc<Pool>| pool.threads == threads && pool.process == process::id();
    known.iter().find(usable).cloned()
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Workers")
    }
}

thread_local! {
    static THREADS_REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` as if no thread could be started, for tests.
#[doc(hidden)]
pub fn without_threads<R>(work: impl FnOnce() -> R) -> R {
    THREADS_REFUSED.set(true);
    let done = work();
    THREADS_REFUSED.set(false);
    done
}

/// Starts a separate pool. The global one belongs to the program.
///
/// # Errors
/// [`Error::Threads`] if the threads cannot be started.
pub fn thread_pool(threads: usize) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|i| format!("garlic-{i}"))
        .build()
        .map_err(|e| Error::Threads {
            threads,
            message: e.to_string(),
        })
}

/// A pool and the process that owns its threads. A forked process has a copy without threads, so its work would never
/// be done.
pub struct Pool {
    /// `None` only while the pool is dropped.
    pool: Option<rayon::ThreadPool>,
    threads: usize,
    process: u32,
}

impl Pool {
    /// Runs `work` on the pool and waits for it.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pool of {}", self.threads)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let pool = self.pool.take();
        if self.process != process::id() {
            // Joining threads takes locks that one of them may have held at the time of the fork.
            std::mem::forget(pool);
        }
    }
}

/// Reusable objects. Clones share them.
#[derive(Clone, Default)]
pub struct ObjectPool(Arc<Mutex<Vec<Box<dyn Any + Send>>>>);

impl ObjectPool {
    /// Takes an object out, or creates one. A pool holds objects of one type.
    pub fn take<T: Any + Send + Default>(&self) -> Box<T> {
        // Objects have no invariants that a panic could break.
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let kept = kept.and_then(|object| object.downcast().ok());
        kept.unwrap_or_default()
    }

    /// Puts an object back.
    pub fn give<T: Any + Send>(&self, object: Box<T>) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(object);
    }
}

impl std::fmt::Debug for ObjectPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ObjectPool")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_started_once_for_each_number_of_threads() {
        let workers = Workers::default();
        let two = workers.with(2).unwrap();
        assert_eq!(two.install(rayon::current_num_threads), 2);
        assert!(Arc::ptr_eq(&two, &workers.clone().with(2).unwrap()));
        let sizes = [3, 4, 5].map(|threads| workers.with(threads).unwrap());
        assert_eq!(sizes[2].install(rayon::current_num_threads), 5);
        assert_eq!(workers.known().len(), MAX_POOLS, "the oldest is let go");
        assert!(!Arc::ptr_eq(&two, &workers.with(2).unwrap()));
    }

    #[test]
    fn a_process_without_the_threads_starts_its_own() {
        let workers = Workers::default();
        let inherited = Pool {
            pool: None,
            threads: 2,
            process: process::id() ^ 1,
        };
        workers.known().push(Arc::new(inherited));
        let own = workers.with(2).unwrap();
        assert_eq!(own.process, process::id());
        assert!(own.install(|| rayon::current_thread_index().is_some()));
        assert_eq!(workers.known().len(), 1, "the inherited one is of no use");
    }
}
