//! Errors as clients see them.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use garlic_core::Error;
use serde_json::json;

/// An error of a request: a status, a word for programs and a sentence for people.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
        }
    }

    /// A body or an address that cannot be read.
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed", message)
    }

    /// Values that do not fit.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", message)
    }

    /// More than the server does for one request.
    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "limit", message)
    }

    pub(crate) fn too_large(limit: u64) -> Self {
        let message = format!(
            "the body is larger than {limit} bytes; send fewer vectors at a time, or start the server with a higher \
             limit"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    }

    pub(crate) fn no_index(name: &str) -> Self {
        let message =
            format!("there is no index `{name}`; GET /v1/indexes lists those that there are");
        Self::new(StatusCode::NOT_FOUND, "no_index", message)
    }

    pub(crate) fn no_point(id: impl std::fmt::Display) -> Self {
        let message = format!("there is no point with the identifier {id}");
        Self::new(StatusCode::NOT_FOUND, "no_point", message)
    }

    pub(crate) fn read_only(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "read_only", message)
    }

    pub(crate) fn exists(name: &str) -> Self {
        let message =
            format!("there is an index `{name}` already; delete it first, or choose another name");
        Self::new(StatusCode::CONFLICT, "exists", message)
    }

    /// The server cannot do it now.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
    }

    pub(crate) fn timeout() -> Self {
        let message = "the request took longer than the server allows; ask for less at a time, or start the server \
                       with a higher limit";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", message)
    }

    /// A fault of the server, whose details are in its log.
    pub(crate) fn internal() -> Self {
        let message = "the server failed; its log says why";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let (status, code) = match &error {
            Error::UnknownId { .. } | Error::UnknownName { .. } => {
                (StatusCode::NOT_FOUND, "no_point")
            }
            Error::IdExists { .. } | Error::NameExists { .. } => {
                (StatusCode::CONFLICT, "point_exists")
            }
            Error::Unchanging
            | Error::LastPoints
            | Error::Spilled
            | Error::OnDisk
            | Error::ReadOnly { .. } => (StatusCode::CONFLICT, "read_only"),
            Error::Cancelled => return Self::timeout(),
            Error::Locked { .. } => (StatusCode::CONFLICT, "locked"),
            Error::Broken { .. } | Error::Moved { .. } | Error::Forked { .. } => {
                (StatusCode::SERVICE_UNAVAILABLE, "storage")
            }
            Error::Io { .. }
            | Error::Log { .. }
            | Error::Format { .. }
            | Error::Directory { .. }
            | Error::Damaged
            | Error::Threads { .. } => {
                // Paths of the server are nobody else's business.
                tracing::error!(%error, "storage failed");
                let message = "the storage of the server failed; its log says why";
                return Self::new(StatusCode::INTERNAL_SERVER_ERROR, "storage", message);
            }
            _ => (StatusCode::UNPROCESSABLE_ENTITY, "invalid"),
        };
        let message = match &error {
            Error::Broken { .. } | Error::Moved { .. } | Error::Forked { .. } => {
                tracing::error!(%error, "storage failed");
                "an earlier write of this index failed; searches go on, restart the server to write"
                    .into()
            }
            Error::ReadOnly { .. } => {
                "the server has opened this index for reading only; start it without --read-only"
                    .into()
            }
            other => other.to_string(),
        };
        Self::new(status, code, message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({ "error": { "code": self.code, "message": self.message } });
        let mut response = (self.status, axum::body::Body::from(body.to_string())).into_response();
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json);
        if matches!(self.status.as_u16(), 429 | 503) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            headers.insert(header::WWW_AUTHENTICATE, bearer);
        }
        response
    }
}
