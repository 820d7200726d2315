//! An index as a file: download and restore.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use garlic_any::AnyIndex;
use garlic_table::{Snapshot, check_table};
use http_body::Frame;
use tokio::sync::mpsc;

use super::{change, entry};
use crate::address::Path;
use crate::body::{self, next_piece};
use crate::error::{ApiError, ApiResult};
use crate::gate::Turn;
use crate::registry::RESTORING;
use crate::server::SharedApp;
use crate::types::DoneAnswer;

/// Bytes that are read and sent at a time, and pieces that wait to be sent.
const PIECE_BYTES: usize = 256 << 10;
const PIECES: usize = 4;

fn failed(error: &io::Error) -> ApiError {
    tracing::error!(%error, "a snapshot failed");
    let message = "the server cannot keep the snapshot; its log says why";
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "storage", message)
}

/// A body whose pieces come from another thread.
struct Pieces(mpsc::Receiver<io::Result<Bytes>>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0
            .poll_recv(cx)
            .map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

/// The next piece of a file; none at its end.
fn next_of(mut file: File) -> (File, io::Result<Option<Bytes>>) {
    let mut piece = vec![0; PIECE_BYTES];
    let read = file.read(&mut piece).map(|length| {
        piece.truncate(length);
        (length > 0).then(|| Bytes::from(piece))
    });
    (file, read)
}

pub(crate) async fn download(
    State(app): State<SharedApp>,
    Path(name): Path<String>,
) -> ApiResult<Response> {
    let entry = entry(&app, &name)?;
    let Ok(permit) = Arc::clone(&app.downloads).try_acquire_owned() else {
        let message =
            "the server sends as many snapshots as it may; try again when one of them is done";
        return Err(ApiError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_requests",
            message,
        ));
    };
    let (mut file, length) = change(move || {
        let snapshot = entry.snapshot()?;
        let folder = tempfile::tempdir().map_err(|error| failed(&error))?;
        let path = folder.path().join("snapshot");
        snapshot.index().clone().compacted()?.save(&path)?;
        let open = || -> io::Result<_> {
            let file = File::open(&path)?;
            let length = file.metadata()?.len();
            Ok((file, length))
        };
        // The file stays as long as it is open.
        open().map_err(|error| failed(&error))
    })
    .await?;
    let (send, pieces) = mpsc::channel(PIECES);
    tokio::spawn(async move {
        let _permit = permit;
        // A thread has the file while it reads, not while a slow client is waited for.
        while let Ok((back, read)) = tokio::task::spawn_blocking(move || next_of(file)).await {
            let has_more = read.is_ok();
            // A client that has left takes nothing.
            let Some(read) = read.transpose() else { break };
            if send.send(read).await.is_err() || !has_more {
                break;
            }
            file = back;
        }
    });
    let mut response = body::typed("application/octet-stream", Body::new(Pieces(pieces)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, length.into());
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}.garlic\"")) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

pub(crate) async fn restore(
    State(app): State<SharedApp>,
    Path(name): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    let place = app.registry.reserve(&name)?;
    let limit = app.options.limits.snapshot;
    let turn = request.extensions().get::<Turn>().cloned();
    let mut body = request.into_body();
    // Beside the index that it becomes, where there is room for it.
    let beside = place
        .path
        .parent()
        .map(std::path::Path::to_owned)
        .unwrap_or_default();
    let mut file = change(move || {
        let named = tempfile::Builder::new()
            .prefix(".")
            .suffix(RESTORING)
            .tempfile_in(beside);
        named.map_err(|error| failed(&error))
    })
    .await?;
    let mut received = 0;
    loop {
        let piece = tokio::time::timeout(app.options.limits.idle, next_piece(&mut body)).await;
        let Ok(piece) = piece else {
            let message = "the snapshot did not go on arriving; send it again";
            return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "slow", message));
        };
        let Some(piece) = piece? else {
            break;
        };
        received += piece.len() as u64;
        if received > limit {
            return Err(ApiError::too_large(limit));
        }
        file = change(move || {
            file.write_all(&piece).map_err(|error| failed(&error))?;
            Ok(file)
        })
        .await?;
    }
    if let Some(turn) = turn {
        turn.take(&app)?;
    }
    change(move || {
        file.flush().map_err(|error| failed(&error))?;
        let wrong = |error: garlic_core::Error| match error {
            garlic_core::Error::Format { source, .. } => ApiError::invalid(format!(
                "the body is no index that can be restored: {source}"
            )),
            other => other.into(),
        };
        let index = AnyIndex::load(file.path()).map_err(wrong)?;
        check_table(&Snapshot::new(index.clone())?)?;
        place.create(&index)?;
        Ok(())
    })
    .await?;
    body::json(&DoneAnswer { done: true })
}
