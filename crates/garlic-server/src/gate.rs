//! What every request passes: the checks before its handler, and the counting and logging after it.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body::Body as _;
use tokio::sync::OwnedSemaphorePermit;

use crate::error::{ApiError, ApiResult};
use crate::keys::Access;
use crate::metrics::panicked;
use crate::options::Limits;
use crate::routes::{Limit, Route};
use crate::server::{App, SharedApp};

/// Runs a request.
pub(crate) async fn pass(State(app): State<SharedApp>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>().cloned();
    let path = path.as_ref().map(MatchedPath::as_str);
    // What answers GET answers HEAD.
    let asked = if method == Method::HEAD {
        &Method::GET
    } else {
        &method
    };
    let is_route = |route: &Route| Some(route.path) == path && route.method == *asked;
    let found = app.routes.iter().position(is_route);
    let route = match (found, path) {
        (Some(at), _) => Ok(Some(&app.routes[at])),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(not_allowed()),
    };
    // Only a body that is read gives the request its turn later.
    let reads_body = matches!(method, Method::POST | Method::PUT);
    let (turn, has_body) = (Turn::default(), !request.body().is_end_stream());
    let mut response = match run(&app, route, &turn, reads_body && has_body, request, next).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    };
    let headers = response.headers_mut();
    // Without the rest of a body, the connection has no next request; clients must not try.
    if has_body && !(reads_body && turn.was_ready()) {
        let close = HeaderValue::from_static("close");
        headers.insert(header::CONNECTION, close);
    }
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    let no_store = HeaderValue::from_static("no-store");
    headers.entry(header::CACHE_CONTROL).or_insert(no_store);
    let (status, took) = (response.status().as_u16(), started.elapsed());
    app.metrics.answered(found, status, took);
    let (micros, route) = (took.as_micros() as u64, path.unwrap_or("none"));
    match status {
        500.. => tracing::warn!(%method, route, status, micros, "answered"),
        _ => tracing::debug!(%method, route, status, micros, "answered"),
    }
    response
}

/// A method that a path does not take.
fn not_allowed() -> ApiError {
    let message =
        "this address does not take this method; GET /openapi.json describes what it takes";
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method", message)
}

/// Checks a request and runs it. Nothing is run that is not in the table of routes, but the answer to unknown paths.
async fn run(
    app: &Arc<App>,
    route: ApiResult<Option<&Route>>,
    turn: &Turn,
    waits_for_body: bool,
    mut request: Request,
    next: Next,
) -> ApiResult<Response> {
    check_source(app, request.headers())?;
    let Some(route) = route? else {
        return Ok(next.run(request).await);
    };
    check_key(app, route, request.headers())?;
    if route.limit == Limit::None {
        return unpanicked(next.run(request)).await;
    }
    let _counted = InFlight::new(app);
    if !waits_for_body {
        turn.take(app)?;
    }
    request.extensions_mut().insert(turn.clone());
    let work = unpanicked(next.run(request));
    match route.limit {
        Limit::Time => {
            let Limits { time, idle, .. } = app.options.limits;
            // A body may take `idle`, and has an error of its own.
            let done = tokio::time::timeout(time + idle, work).await;
            done.unwrap_or_else(|_| Err(ApiError::timeout()))
        }
        _ => work.await,
    }
}

/// The place of a request among those that are worked on. A request has it from when its body is there until it is answered:
/// clients that send slowly take no place from others.
#[derive(Clone, Default)]
pub(crate) struct Turn(Arc<Wanted>);

#[derive(Default)]
struct Wanted {
    /// Whether the request was ready for its turn: its body is there.
    is_ready: AtomicBool,
    permit: OnceLock<OwnedSemaphorePermit>,
}

impl Turn {
    fn was_ready(&self) -> bool {
        self.0.is_ready.load(Relaxed)
    }

    pub(crate) fn take(&self, app: &App) -> ApiResult<()> {
        self.0.is_ready.store(true, Relaxed);
        if self.0.permit.get().is_some() {
            return Ok(());
        }
        let Ok(permit) = Arc::clone(&app.requests).try_acquire_owned() else {
            let message = "the server works on as many requests as it may; try again in a second, or send fewer at a time";
            return Err(ApiError::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_requests",
                message,
            ));
        };
        let _ = self.0.permit.set(permit);
        Ok(())
    }
}

/// Counts a request from its head to its answer.
struct InFlight<'a>(&'a AtomicU64);

impl<'a> InFlight<'a> {
    fn new(app: &'a App) -> Self {
        let count = &app.metrics.in_flight;
        count.fetch_add(1, Relaxed);
        Self(count)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Lets no panic of a handler end the connection without an answer.
async fn unpanicked(work: impl Future<Output = Response>) -> ApiResult<Response> {
    let mut work = pin!(work);
    std::future::poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(Poll::Ready(response)) => Poll::Ready(Ok(response)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(_) => {
                panicked("a request");
                Poll::Ready(Err(ApiError::internal()))
            }
        },
    )
    .await
}

fn check_key(app: &App, route: &Route, headers: &HeaderMap) -> ApiResult<()> {
    if route.access == Access::Open {
        return Ok(());
    }
    let text = |name: header::HeaderName| headers.get(name).and_then(|v| v.to_str().ok());
    let bearer = text(header::AUTHORIZATION).and_then(|v| v.split_once(' '));
    let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let bearer = bearer.map(|(_, key)| key);
    let key = bearer.or_else(|| text(header::HeaderName::from_static("x-api-key")));
    let allowed = app.options.keys.access(key.map(str::trim));
    if allowed >= route.access {
        return Ok(());
    }
    if allowed == Access::Read {
        let message = "this key only reads; send a key for writing";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "read_key", message));
    }
    let message = "send a key that the server knows, as `Authorization: Bearer KEY`";
    Err(ApiError::new(StatusCode::UNAUTHORIZED, "no_key", message))
}

/// Refuses requests that a page of another site makes in the browser of somebody who can reach the server: by its
/// `Origin`, and, where names lead to this machine by a trick of the name service, by the `Host` that it asks for.
fn check_source(app: &App, headers: &HeaderMap) -> ApiResult<()> {
    let text = |name: header::HeaderName| headers.get(name).and_then(|v| v.to_str().ok());
    let host = text(header::HOST).unwrap_or_default();
    let refused = |message: &str| Err(ApiError::new(StatusCode::FORBIDDEN, "source", message));
    if app.options.keys.is_empty() && !app.options.insecure && !is_own_host(app, host) {
        return refused(
            "the server is not called by this name; use its address, or start it with --host NAME",
        );
    }
    match text(header::ORIGIN) {
        Some(origin) if origin.split_once("://").map(|(_, from)| from) != Some(host) => {
            refused("pages of other sites cannot use this server")
        }
        _ => Ok(()),
    }
}

fn is_own_host(app: &App, host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_loopback = name
        .parse::<std::net::IpAddr>()
        .is_ok_and(|ip| ip.is_loopback());
    let is_bound = name == app.options.address.ip().to_string();
    name == "localhost" || is_loopback || is_bound || app.options.hosts.iter().any(|h| h == name)
}
