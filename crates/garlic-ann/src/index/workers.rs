//! Threads for changes of an index: a pool of our own, started when first needed.

use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::build::thread_pool;
use crate::error::Result;

/// Worker threads that all copies of an index share; as many as there are cores.
#[derive(Clone, Default)]
pub(crate) struct Workers(Arc<Mutex<Option<Arc<Pool>>>>);

impl Workers {
    /// So many threads, for tests of what must not depend on their number.
    #[cfg(test)]
    pub(crate) fn of(threads: usize) -> Self {
        let pool = Pool {
            threads: thread_pool(threads).ok(),
            process: process::id(),
        };
        Self(Arc::new(Mutex::new(Some(Arc::new(pool)))))
    }

    /// The threads; started now if they have not been, by this process.
    pub(crate) fn get(&self) -> Result<Arc<Pool>> {
        #[cfg(test)]
        tests::check()?;
        if let Some(pool) = of_this_process(&self.known()) {
            return Ok(pool);
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        // One is enough; the result does not depend on their number.
        let started = thread_pool(threads).or_else(|error| thread_pool(1).map_err(|_| error))?;
        let started = Arc::new(Pool {
            threads: Some(started),
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
pub(crate) mod tests {
    use std::cell::Cell;

    use garlic_linalg::Rows;

    use super::*;
    use crate::error::Error;
    use crate::index::Index;

    thread_local! {
        static REFUSED: Cell<bool> = const { Cell::new(false) };
    }

    /// Fails within [`without_threads`].
    pub(super) fn check() -> Result<()> {
        if REFUSED.get() {
            return Err(Error::Threads {
                threads: 1,
                message: "the test wants none".into(),
            });
        }
        Ok(())
    }

    /// Does `work` as if no thread could be started.
    pub(crate) fn without_threads<R>(work: impl FnOnce() -> R) -> R {
        REFUSED.set(true);
        let done = work();
        REFUSED.set(false);
        done
    }

    #[test]
    fn a_changed_index_is_laid_out_without_threads_too() {
        let data: Vec<f32> = (0..800).map(|i| (i * 37 % 101) as f32).collect();
        let builder = Index::builder().threads(1);
        let mut index = builder.build(Rows::new(&data, 4).unwrap()).unwrap();
        let ids: Vec<u64> = (1000..1100).collect();
        index
            .add(Rows::new(&data[..400], 4).unwrap(), &ids)
            .unwrap();
        index.remove(&[3, 1002]).unwrap();
        let bytes = index.to_bytes();
        assert_eq!(Index::from_bytes(&bytes).unwrap().len(), 298);
        let file = tempfile::NamedTempFile::new().unwrap();
        without_threads(|| {
            assert!(index.to_bytes() == bytes, "the changes are in it");
            index.save(file.path()).unwrap();
            index.compact().unwrap();
            let added = index.add(Rows::new(&data[..4], 4).unwrap(), &[2000]);
            assert!(matches!(added, Err(Error::Threads { .. })));
        });
        assert!(std::fs::read(file.path()).unwrap() == bytes);
        assert!(index.to_bytes() == bytes);
    }

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
