//! A server from its start to its end.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::body::PERMIT_BYTES;
use crate::error::ApiError;
use crate::gate;
use crate::listen;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::pool::Pool;
use crate::registry::Registry;
use crate::routes::{self, Route};
use crate::tls;

/// How many bodies of the largest size fit into the memory for all bodies.
const BODIES: usize = 4;

/// Everything that requests share.
pub(crate) struct App {
    pub(crate) options: Options,
    pub(crate) registry: Arc<Registry>,
    pub(crate) pool: Pool,
    pub(crate) metrics: Metrics,
    pub(crate) routes: Vec<Route>,
    /// Requests that may be worked on at a time.
    pub(crate) requests: Arc<Semaphore>,
    /// Snapshots that may be downloaded at a time.
    pub(crate) downloads: Arc<Semaphore>,
    /// Memory for bodies, in permits of [`PERMIT_BYTES`].
    pub(crate) body_room: Arc<Semaphore>,
    /// Whether the server is shutting down.
    pub(crate) is_stopping: AtomicBool,
}

pub(crate) type SharedApp = Arc<App>;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An index cannot be opened.
    #[error(transparent)]
    Index(#[from] garlic_core::Error),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// The reason given by the system.
        source: std::io::Error,
    },
    /// An address that others can reach, without keys.
    #[error(
        "{address} can be reached from other machines, and there are no keys: give them with --keys FILE or in \
         GARLIC_READ_KEY and GARLIC_WRITE_KEY, or say --insecure if the network protects the server"
    )]
    Unprotected {
        /// The address.
        address: SocketAddr,
    },
    /// A certificate or its key cannot be used.
    #[error("{path}: {message}", path = path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// The fault.
        message: String,
    },
    /// Threads cannot be started, or signals not be handled.
    #[error("cannot start the server: {0}")]
    System(std::io::Error),
}

/// Stops a server that runs in another thread.
#[derive(Clone, Debug)]
pub struct Handle(Arc<watch::Sender<bool>>);

impl Handle {
    /// Lets the server finish its requests, sync its indexes and return.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

/// A server that listens and has opened its indexes.
pub struct Server {
    app: SharedApp,
    runtime: Runtime,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    address: SocketAddr,
    stop: Handle,
    /// Taken over before anybody knows that the server runs.
    signals: [Signal; 2],
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({})", self.address)
    }
}

impl Server {
    /// Opens the indexes and listens. Requests are answered by [`Server::run`].
    ///
    /// # Errors
    /// [`StartError`].
    pub fn bind(mut options: Options) -> Result<Self, StartError> {
        let address = options.address;
        if !address.ip().is_loopback() && options.keys.is_empty() && !options.insecure {
            return Err(StartError::Unprotected { address });
        }
        let tls = options.tls.as_ref().map(tls::acceptor).transpose()?;
        let failed = |source| StartError::Address { address, source };
        let listener = StdListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        options.address = listener.local_addr().map_err(failed)?;
        raise_open_files();

        let registry = Arc::new(Registry::open(&options)?);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("garlic-http")
            .enable_all()
            .build()
            .map_err(StartError::System)?;
        let (listener, signals) = {
            let _inside = runtime.enter();
            let on = |kind| signal(kind).map_err(StartError::System);
            let signals = [on(SignalKind::terminate())?, on(SignalKind::interrupt())?];
            (TcpListener::from_std(listener).map_err(failed)?, signals)
        };
        let (_, routes) = routes::router();
        let app = App {
            pool: Pool::start(options.threads).map_err(StartError::System)?,
            metrics: Metrics::new(routes.len()),
            requests: Arc::new(Semaphore::new(options.limits.requests)),
            downloads: Arc::new(Semaphore::new(options.limits.downloads)),
            body_room: Arc::new(Semaphore::new(
                BODIES * (options.limits.body / PERMIT_BYTES + 64),
            )),
            is_stopping: AtomicBool::new(false),
            registry,
            routes,
            options,
        };
        Ok(Self {
            address: app.options.address,
            app: Arc::new(app),
            runtime,
            listener,
            tls,
            stop: Handle(Arc::new(watch::Sender::new(false))),
            signals,
        })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether clients need TLS.
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// What stops it.
    pub fn handle(&self) -> Handle {
        self.stop.clone()
    }

    /// Answers requests until SIGTERM or SIGINT comes, or [`Handle::stop`] is called. Then it finishes the requests that
    /// have begun and syncs the indexes.
    ///
    pub fn run(self) {
        let Self {
            app,
            runtime,
            listener,
            tls,
            address,
            stop,
            signals,
        } = self;
        for mut signal in signals {
            let (stop, app) = (stop.clone(), Arc::clone(&app));
            runtime.spawn(async move {
                signal.recv().await;
                app.is_stopping.store(true, Relaxed);
                stop.stop();
            });
        }
        let (router, _) = routes::router();
        let router = router
            .fallback(not_found)
            .layer(axum::middleware::from_fn_with_state(
                Arc::clone(&app),
                gate::pass,
            ))
            .with_state(Arc::clone(&app));
        tracing::info!(%address, tls = tls.is_some(), "listening");
        let receiver = stop.0.subscribe();
        runtime.block_on(listen::serve(
            Arc::clone(&app),
            router,
            listener,
            tls,
            receiver,
        ));
        // Connections that did not end in time end here.
        drop(runtime);
        app.registry.sync();
        tracing::info!("stopped");
    }
}

async fn not_found() -> axum::response::Response {
    let message = "there is nothing at this address; GET /openapi.json describes what there is";
    ApiError::new(StatusCode::NOT_FOUND, "not_found", message).into_response()
}

/// Lets the process open as many files, and so connections, as its user may.
fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}
