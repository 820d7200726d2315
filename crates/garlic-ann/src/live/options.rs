//! Options of an index directory.

use std::path::Path;
use std::sync::Arc;

use super::Live;
use super::disk::RealDisk;
use crate::segment::Index;
use garlic_core::Result;

/// When a batch is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncPolicy {
    /// After it has reached the device. It survives a power cut.
    #[default]
    EveryBatch,
    /// After the operating system has it. It survives a crash of the process. After a power cut, batches since the
    /// last [`Live::sync`] or checkpoint may be missing, latest first.
    Never,
}

/// Size of the log below which no automatic checkpoint is written.
const LOG_LIMIT: u64 = 64 << 20;

/// How an index directory is written.
///
/// ```no_run
/// # fn main() -> Result<(), garlic_ann::Error> {
/// use garlic_ann::live::{Options, SyncPolicy};
/// let live = Options::new().sync(SyncPolicy::Never).open("an-index")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    sync: SyncPolicy,
    limit: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// The defaults: every batch is synced, and a checkpoint is written when the log exceeds both 64 MiB and half of
    /// the last checkpoint.
    pub fn new() -> Self {
        Self {
            sync: SyncPolicy::EveryBatch,
            limit: None,
        }
    }

    /// Sets when a batch is acknowledged.
    pub fn sync(mut self, policy: SyncPolicy) -> Self {
        self.sync = policy;
        self
    }

    /// Sets the size of the log in bytes above which a checkpoint is written automatically. `u64::MAX` disables it.
    pub fn log_limit(mut self, bytes: u64) -> Self {
        self.limit = Some(bytes);
        self
    }

    /// [`Live::create`] with these options.
    ///
    /// # Errors
    /// Those of [`Live::create`].
    pub fn create(&self, directory: impl AsRef<Path>, index: Index) -> Result<Live> {
        Live::create_on(Arc::new(RealDisk), directory.as_ref(), index, self)
    }

    /// [`Live::open`] with these options.
    ///
    /// # Errors
    /// Those of [`Live::open`].
    pub fn open(&self, directory: impl AsRef<Path>) -> Result<Live> {
        Live::open_on(Arc::new(RealDisk), directory.as_ref(), self)
    }

    pub(super) fn sync_every_batch(&self) -> bool {
        self.sync == SyncPolicy::EveryBatch
    }

    /// Size of the log above which the next checkpoint is due, given the size of the last checkpoint.
    pub(super) fn limit(&self, checkpoint: u64) -> u64 {
        self.limit.unwrap_or(LOG_LIMIT.max(checkpoint / 2))
    }
}
