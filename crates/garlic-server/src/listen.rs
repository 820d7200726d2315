//! Connections: taking them, their timeouts, and their end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::server::App;
use crate::stall::Impatient;

/// Bytes of the head of a request, and of what is read ahead of its body.
const BUFFER_BYTES: usize = 64 << 10;
/// Time that requests have to end when the server stops.
const GRACE: Duration = Duration::from_secs(30);

/// Counts a connection as long as it lives.
struct Counted(
    Arc<App>,
    #[expect(dead_code, reason = "held")] OwnedSemaphorePermit,
);

impl Counted {
    fn new(app: &Arc<App>, permit: OwnedSemaphorePermit) -> Self {
        app.metrics.connections.fetch_add(1, Relaxed);
        Self(Arc::clone(app), permit)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.metrics.connections.fetch_sub(1, Relaxed);
    }
}

/// Takes connections until `stop` says so, and waits for the requests that have begun.
pub(crate) async fn serve(
    app: Arc<App>,
    router: axum::Router,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    mut stop: watch::Receiver<bool>,
) {
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(app.options.limits.connections));
    loop {
        let stream = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            taken = listener.accept() => match taken {
                Ok((stream, _)) => stream,
                Err(error) => {
                    after_failed_accept(&error).await;
                    continue;
                }
            },
        };
        // More than there is room for are closed at once: a client that waits for nothing learns nothing.
        let Ok(permit) = Arc::clone(&room).try_acquire_owned() else {
            continue;
        };
        let counted = Counted::new(&app, permit);
        let (router, tls, watcher) = (router.clone(), tls.clone(), graceful.watcher());
        tokio::spawn(async move {
            let _ = connection(&counted.0, router, stream, tls, watcher).await;
        });
    }
    drop(listener);
    tracing::info!("finishing requests");
    if tokio::time::timeout(GRACE, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("requests did not end in time");
    }
}

/// A failed connection is that client's; without free handles, wait until some are.
async fn after_failed_accept(error: &io::Error) {
    let is_clients = matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    );
    if !is_clients {
        tracing::warn!(%error, "cannot take a connection");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn connection(
    app: &App,
    router: axum::Router,
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    watcher: Watcher,
) -> io::Result<()> {
    // An answer is one write: nothing to collect.
    stream.set_nodelay(true)?;
    let idle = app.options.limits.idle;
    let stream = Impatient::new(stream, idle);
    match tls {
        None => requests(idle, router, stream, watcher).await,
        Some(tls) => {
            let stream = tokio::time::timeout(idle, tls.accept(stream)).await??;
            requests(idle, router, stream, watcher).await;
        }
    }
    Ok(())
}

async fn requests<S>(idle: Duration, router: axum::Router, stream: S, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(idle)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // What goes wrong on a connection is its client's affair.
    let _ = watcher.watch(connection).await;
}
