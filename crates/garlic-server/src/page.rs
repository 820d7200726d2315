//! The page to look at indexes: one document, one style and a few scripts, all in the program.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};

use crate::address::Path;
use crate::body::typed;

/// The page loads nothing from elsewhere, and nobody frames it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The scripts by name.
const SCRIPTS: [(&str, &str); 10] = [
    ("main.js", include_str!("explorer/main.js")),
    ("api.js", include_str!("explorer/api.js")),
    ("map.js", include_str!("explorer/map.js")),
    ("camera.js", include_str!("explorer/camera.js")),
    ("cells.js", include_str!("explorer/cells.js")),
    ("points.js", include_str!("explorer/points.js")),
    ("details.js", include_str!("explorer/details.js")),
    ("lab.js", include_str!("explorer/lab.js")),
    ("health.js", include_str!("explorer/health.js")),
    ("charts.js", include_str!("explorer/charts.js")),
];

fn asset(kind: &'static str, text: &'static str) -> Response {
    let mut response = typed(kind, text);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(POLICY),
    );
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

pub(crate) async fn html() -> Response {
    asset(
        "text/html; charset=utf-8",
        include_str!("explorer/index.html"),
    )
}

pub(crate) async fn style() -> Response {
    asset(
        "text/css; charset=utf-8",
        include_str!("explorer/style.css"),
    )
}

pub(crate) async fn script(Path(file): Path<String>) -> Response {
    let found = SCRIPTS.iter().find(|(name, _)| *name == file);
    match found {
        Some((_, text)) => asset("text/javascript; charset=utf-8", text),
        None => axum::http::StatusCode::NOT_FOUND.into_response(),
    }
}
