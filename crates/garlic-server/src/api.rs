//! What answers requests, one file for each kind of them.

pub(crate) mod explore;
pub(crate) mod indexes;
pub(crate) mod points;
pub(crate) mod search;
pub(crate) mod service;
pub(crate) mod snapshot;
pub(crate) mod trace;

use std::sync::Arc;

use crate::error::{ApiError, ApiResult};
use crate::metrics::panicked;
use crate::pool::CancelOnDrop;
use crate::registry::Entry;
use crate::server::App;

/// Runs a change or a build on a thread for such work, so that searches need not wait for it. It is cancelled if the
/// client goes away; a change that is cancelled has changed nothing.
pub(crate) async fn change<T: Send + 'static>(
    work: impl FnOnce() -> ApiResult<T> + Send + 'static,
) -> ApiResult<T> {
    let guard = CancelOnDrop::default();
    let cancel = guard.cancel();
    let done = tokio::task::spawn_blocking(move || cancel.scope(work)).await;
    done.unwrap_or_else(|_| {
        panicked("a change");
        Err(ApiError::internal())
    })
}

/// The index of a name, as addresses have it.
pub(crate) fn entry(app: &App, name: &str) -> ApiResult<Arc<Entry>> {
    app.registry.get(name)
}
