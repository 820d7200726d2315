//! Threads for changes and batch searches of an index: pools of our own, started when first needed and then kept.

use std::any::Any;
use std::cell::Cell;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};

/// Pools that are kept: one for changes, and those of the latest batch searches.
const MOST_POOLS: usize = 3;

/// Worker threads that all copies of an index share.
#[derive(Clone, Default)]
pub struct Workers {
    pools: Arc<Mutex<Vec<Arc<Pool>>>>,
    /// How many threads [`Workers::get`] gives; as many as there are cores unless set.
    threads: Option<usize>,
}

impl Workers {
    /// Workers of a given number, for tests of what must not depend on it.
    pub fn of(threads: usize) -> Self {
        Self {
            threads: Some(threads),
            ..Self::default()
        }
    }

    /// As many threads as there are cores, or one where the system gives no more; the result of work does not depend on
    /// their number.
    ///
    /// # Errors
    /// [`Error::Threads`] when the system gives none.
    pub fn get(&self) -> Result<Arc<Pool>> {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads.unwrap_or_else(cores);
        self.with(threads)
            .or_else(|error| self.with(1).map_err(|_| error))
    }

    /// So many threads; started now if this process has not started them before.
    ///
    /// # Errors
    /// [`Error::Threads`] when the system does not give them.
    pub fn with(&self, threads: usize) -> Result<Arc<Pool>> {
        if REFUSED.get() {
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
        // Another thread may have been faster; its pool serves as well.
        if let Some(pool) = find(&known, threads) {
            return Ok(pool);
        }
        known.retain(|pool| pool.process == process::id());
        if known.len() == MOST_POOLS {
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
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Does `work` as if no thread could be started, for tests.
pub fn without_threads<R>(work: impl FnOnce() -> R) -> R {
    REFUSED.set(true);
    let done = work();
    REFUSED.set(false);
    done
}

/// A pool of our own: the global one belongs to the program.
///
/// # Errors
/// [`Error::Threads`] when the system gives none.
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

/// A pool, and the process that has its threads. A forked process has a copy of the pool without them: what it gave
/// that pool to do would never be done.
pub struct Pool {
    /// Taken out when the pool is dropped.
    pool: Option<rayon::ThreadPool>,
    threads: usize,
    process: u32,
}

impl Pool {
    /// Does `work` on the threads and waits for it.
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
            // Ending threads takes locks that one of them may have held when the process was forked.
            std::mem::forget(pool);
        }
    }
}

/// Objects that are borrowed and given back, so that they need not be made anew; copies share them.
#[derive(Clone, Default)]
pub struct ObjectPool(Arc<Mutex<Vec<Box<dyn Any + Send>>>>);

impl ObjectPool {
    /// An object that was given back, or a new one. A pool holds objects of one type.
    pub fn take<T: Any + Send + Default>(&self) -> Box<T> {
        // Objects hold no invariant that a panic elsewhere could break.
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let kept = kept.and_then(|object| object.downcast().ok());
        kept.unwrap_or_default()
    }

    /// Takes an object back.
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
        assert_eq!(workers.known().len(), MOST_POOLS, "the oldest is let go");
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
