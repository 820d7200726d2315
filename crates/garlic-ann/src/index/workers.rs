//! Threads for changes of an index: a pool of our own, started when first needed.

use std::sync::{Arc, OnceLock};

use super::build::thread_pool;
use crate::error::Result;

/// Worker threads that all copies of an index share; as many as there are cores.
#[derive(Clone, Default)]
pub(crate) struct Workers(Arc<OnceLock<rayon::ThreadPool>>);

impl Workers {
    /// The threads; started now if they have not been.
    pub(crate) fn get(&self) -> Result<&rayon::ThreadPool> {
        if let Some(pool) = self.0.get() {
            return Ok(pool);
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let pool = thread_pool(threads)?;
        // Another thread may have been faster; its pool serves as well.
        Ok(self.0.get_or_init(|| pool))
    }
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Workers")
    }
}
