//! One value that many read while one changes it: the current snapshot, and whose turn it is to write.
//!
//! A reader holds a lock only while it copies a pointer. A writer prepares the next value with no lock that a
//! reader ever takes, and holds the readers' lock only while it exchanges the pointer. The tests compile this
//! very file a second time against `shuttle`, through the module `sync` beside it.

use super::sync::{Arc, Mutex, PoisonError, RwLock};

/// A value that is replaced as a whole, and the state of whoever replaces it.
pub(super) struct Swap<T, W> {
    current: RwLock<Arc<T>>,
    writer: Mutex<W>,
}

/// An earlier writer panicked, so that its state is unknown.
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

    /// The current value. It stays what it is, whatever is published later.
    pub(super) fn snapshot(&self) -> Arc<T> {
        // Nothing that runs under this lock can panic, so that a poisoned one still holds a whole pointer.
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current)
    }

    /// Waits for earlier writers, then gives `change` the current value and the writer's state.
    ///
    /// A new value that `change` returns is published before this returns; after an error nothing is.
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
        // Unlocked first: freeing the old value can take long, and readers need not wait for it.
        drop(current);
        drop(before);
    }

    /// What the writer's state says, once it is this caller's turn.
    pub(super) fn with_writer<R>(&self, look: impl FnOnce(&W) -> R) -> Result<R, Panicked> {
        let writer = self.writer.lock().map_err(|_| Panicked)?;
        Ok(look(&writer))
    }
}
