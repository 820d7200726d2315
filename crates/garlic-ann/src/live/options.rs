//! How a directory is written.

use std::path::Path;
use std::sync::Arc;

use super::Live;
use super::disk::Real;
use crate::segment::Index;
use garlic_core::Result;

/// When a batch counts as written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncPolicy {
    /// When it has reached the device: it survives a power cut.
    #[default]
    EveryBatch,
    /// When the system has it: it survives the end of the process. After a power cut, batches since the last
    /// [`Live::sync`] or checkpoint may be missing, the latest ones first.
    Never,
}

/// Log bytes below which no checkpoint is made by itself.
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
    /// Every batch is synced; a checkpoint is made when the log exceeds 64 MiB and half of the last checkpoint.
    pub fn new() -> Self {
        Self {
            sync: SyncPolicy::EveryBatch,
            limit: None,
        }
    }

    /// When a batch counts as written.
    pub fn sync(mut self, policy: SyncPolicy) -> Self {
        self.sync = policy;
        self
    }

    /// Log bytes above which a checkpoint is made by itself; `u64::MAX` for never.
    pub fn log_limit(mut self, bytes: u64) -> Self {
        self.limit = Some(bytes);
        self
    }

    /// [`Live::create`] with these options.
    ///
    /// # Errors
    /// Those of [`Live::create`].
    pub fn create(&self, directory: impl AsRef<Path>, index: Index) -> Result<Live> {
        Live::create_on(Arc::new(Real), directory.as_ref(), index, self)
    }

    /// [`Live::open`] with these options.
    ///
    /// # Errors
    /// Those of [`Live::open`].
    pub fn open(&self, directory: impl AsRef<Path>) -> Result<Live> {
        Live::open_on(Arc::new(Real), directory.as_ref(), self)
    }

    pub(super) fn sync_every_batch(&self) -> bool {
        self.sync == SyncPolicy::EveryBatch
    }

    /// Log bytes above which the next checkpoint is due, after one of `checkpoint` bytes.
    pub(super) fn limit(&self, checkpoint: u64) -> u64 {
        self.limit.unwrap_or(LOG_LIMIT.max(checkpoint / 2))
    }
}
