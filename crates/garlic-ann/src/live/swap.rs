//! A value that many threads read while one replaces it: the current snapshot and the state of the writer.
//!
//! A reader holds a lock only while it copies a pointer. A writer prepares the next value without any lock that
//! readers take, and holds their lock only while it swaps the pointer. The tests compile this file a second time with
//! `shuttle` through the module `sync`.

use super::sync::{Arc, Mutex, PoisonError, RwLock};

/// A value that is replaced as a whole, and the state of its writer.
pub(super) struct Swap<T, W> {
    current: RwLock<Arc<T>>,
    writer: Mutex<W>,
}

/// An earlier writer panicked, so its state is unknown.
#[derive(Debug)]
pub(super) struct Panicked;

impl<T, W> Swap<T, W> {
    /// Publishes a first value.
    pub(super) fn new(value: T, writer: W) -> Self {
        Self {
            current: RwLock::new(Arc::new(value)),
            writer: Mutex::new(writer),
        }
    }

    /// The current value. It does not change when a new value is published.
    pub(super) fn snapshot(&self) -> Arc<T> {
        // Code under this lock cannot panic, so the pointer is valid even if the lock is poisoned.
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current)
    }

    /// Waits for earlier writers, then calls `change` with the current value and the state of the writer.
    ///
    /// If `change` returns a new value, it is published before this returns. After an error nothing is published.
    pub(super) fn write<R, E>(
        &self,
        change: impl FnOnce(&T, &mut W) -> Result<(Option<T>, R), E>,
    ) -> Result<Result<R, E>, Panicked> {
        let mut writer = self.writer.lock().map_err(|_| Panicked)?;
        let before = self.snapshot();
        let (next, result) = match change(&before, &mut writer) {
            Ok(done) => done,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(next) = next {
            self.publish(Arc::new(next));
        }
        Ok(Ok(result))
    }

    fn publish(&self, next: Arc<T>) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, next);
        // Unlock before freeing the old value, which may take long.
        drop(current);
        drop(before);
    }

    /// Reads the state of the writer after waiting for earlier writers.
    pub(super) fn with_writer<R>(&self, look: impl FnOnce(&W) -> R) -> Result<R, Panicked> {
        let writer = self.writer.lock().map_err(|_| Panicked)?;
        Ok(look(&writer))
    }
}
