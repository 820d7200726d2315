//! A flag that cancels long-running work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// A cancel flag. Long loops check it often, another thread sets it.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Option<Arc<AtomicBool>>);

impl Cancel {
    /// Wraps `flag`. Work stops when it becomes true.
    pub fn new(flag: Arc<AtomicBool>) -> Self {
        Self(Some(flag))
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
