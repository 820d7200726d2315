//! A flag that cancels long-running work.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

thread_local! {
    /// The flag of the innermost [`Cancel::scope`].
    static CURRENT: RefCell<Cancel> = const { RefCell::new(Cancel(None)) };
}

/// A cancel flag. Long loops check it often, another thread sets it.
///
/// A build takes it as a parameter. Searches and changes of an index, which have many forms, find it in the scope that
/// they are called in:
///
/// ```
/// # use std::sync::{Arc, atomic::AtomicBool};
/// use garlic_core::{Cancel, Error};
///
/// let flag = Arc::new(AtomicBool::new(true));
/// let work = || Cancel::current().check();
/// let done = Cancel::new(flag).scope(work);
/// assert!(matches!(done, Err(Error::Cancelled)));
/// assert!(work().is_ok());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Option<Arc<AtomicBool>>);

impl Cancel {
    /// Wraps `flag`. Work stops when it becomes true.
    pub fn new(flag: Arc<AtomicBool>) -> Self {
        Self(Some(flag))
    }

    /// Runs `work`. Batches of searches and changes of an index that it calls on this thread fail with
    /// [`Error::Cancelled`] soon after the flag was set. A change that fails so has changed nothing.
    pub fn scope<T>(&self, work: impl FnOnce() -> T) -> T {
        let _outer = Outer(CURRENT.replace(self.clone()));
        work()
    }

    /// The flag of the innermost [`Cancel::scope`] of this thread; one that is never set if there is none.
    pub fn current() -> Self {
        CURRENT.with_borrow(Self::clone)
    }

    /// Whether the flag is set.
    pub fn is_cancelled(&self) -> bool {
        self.check().is_err()
    }

    /// Fails if the flag is set.
    pub fn check(&self) -> Result<()> {
        match &self.0 {
            Some(flag) if flag.load(Ordering::Relaxed) => Err(Error::Cancelled),
            _ => Ok(()),
        }
    }
}

/// The flag of the scope around a scope, which comes back at the end, also after a panic.
struct Outer(Cancel);

impl Drop for Outer {
    fn drop(&mut self) {
        CURRENT.set(std::mem::take(&mut self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_nest_and_end() {
        let set = || Cancel::new(Arc::new(AtomicBool::new(true)));
        let is_set = || Cancel::current().is_cancelled();
        assert!(!is_set());
        set().scope(|| {
            assert!(is_set());
            assert!(!Cancel::default().scope(is_set));
            assert!(is_set());
            assert!(!std::thread::spawn(is_set).join().unwrap());
        });
        assert!(!is_set());
        let panicked = std::panic::catch_unwind(|| set().scope(|| panic!("as planned")));
        assert!(panicked.is_err() && !is_set());
    }
}
