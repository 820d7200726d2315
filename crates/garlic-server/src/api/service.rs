//! About the server itself.

use std::sync::atomic::Ordering::Relaxed;

use axum::extract::State;
use axum::response::Response;

use crate::body::{json, typed};
use crate::error::{ApiError, ApiResult};
use crate::openapi as description;
use crate::server::SharedApp;

pub(crate) async fn healthz() -> Response {
    typed("text/plain", "alive\n")
}

pub(crate) async fn readyz(State(app): State<SharedApp>) -> ApiResult<Response> {
    match app.is_stopping.load(Relaxed) {
        false => Ok(typed("text/plain", "ready\n")),
        true => Err(ApiError::busy(
            "the server is shutting down; ask another one",
        )),
    }
}

pub(crate) async fn metrics(State(app): State<SharedApp>) -> Response {
    let text = crate::metrics::text(&app, &app.routes);
    typed("text/plain; version=0.0.4", text)
}

pub(crate) async fn openapi(State(app): State<SharedApp>) -> ApiResult<Response> {
    json(&description::document(&app.routes))
}
