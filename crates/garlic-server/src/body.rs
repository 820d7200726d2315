//! Bodies of requests and answers: JSON, the binary format, and `.npy`.
//!
//! The binary format is four bytes `GVC1`, three little-endian 32-bit numbers (bytes of JSON, rows, columns), the JSON,
//! and the rows as little-endian 32-bit floats. Answers to searches have identifiers behind that, 64 bits each, unless
//! points have names, and the vectors of the neighbours if they were asked for.

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use garlic_data::{Format, ReadOptions, Reader};
use http_body::Body as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::pin::Pin;
use tokio::sync::OwnedSemaphorePermit;

use crate::error::{ApiError, ApiResult};
use crate::gate::Turn;
use crate::server::App;
use crate::types::{CreateRequest, Matrix, SearchRequest, TuneRequest, WriteRequest};

/// The content type of the binary format.
pub(crate) const BINARY: &str = "application/x-garlic";
const NPY: &str = "application/x-npy";
const JSON: &str = "application/json";
const MAGIC: &[u8; 4] = b"GVC1";
const HEAD: usize = 16;

/// What takes vectors from behind its JSON.
pub(crate) trait WithVectors {
    fn set_vectors(&mut self, vectors: Matrix);
}

impl WithVectors for SearchRequest {
    fn set_vectors(&mut self, vectors: Matrix) {
        self.vectors = vectors;
    }
}

impl WithVectors for WriteRequest {
    fn set_vectors(&mut self, vectors: Matrix) {
        self.vectors = vectors;
    }
}

impl WithVectors for TuneRequest {
    fn set_vectors(&mut self, vectors: Matrix) {
        self.vectors = vectors;
    }
}

impl WithVectors for CreateRequest {
    fn set_vectors(&mut self, vectors: Matrix) {
        self.vectors = Some(vectors);
    }
}

/// A body, and the room that it takes in the memory for all bodies.
pub(crate) struct Received {
    headers: HeaderMap,
    query: String,
    bytes: Vec<u8>,
    _room: Vec<OwnedSemaphorePermit>,
}

/// Bytes that a permit for the memory of bodies stands for.
pub(crate) const PERMIT_BYTES: usize = 4096;

/// The next piece of a body.
pub(crate) async fn next_piece(body: &mut Body) -> ApiResult<Option<Bytes>> {
    loop {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        match frame {
            None => return Ok(None),
            Some(Err(_)) => return Err(ApiError::malformed("the body ended before its end")),
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    return Ok(Some(bytes));
                }
            }
        }
    }
}

impl Received {
    /// Reads the body of a request, within the limits of size, time and memory. The request then has its turn.
    pub(crate) async fn read(app: &App, request: Request) -> ApiResult<Self> {
        let limit = app.options.limits.body;
        let (parts, mut body) = request.into_parts();
        if !matches!(parts.method, Method::POST | Method::PUT) && !body.is_end_stream() {
            let message = "GET takes its parameters from the address; send a body with POST";
            return Err(ApiError::malformed(message));
        }
        if body.size_hint().lower() > limit as u64 {
            return Err(ApiError::too_large(limit as u64));
        }
        let mut bytes = Vec::new();
        let mut room = Vec::new();
        let read = async {
            while let Some(piece) = next_piece(&mut body).await? {
                if bytes.len() + piece.len() > limit {
                    return Err(ApiError::too_large(limit as u64));
                }
                if bytes.len() + piece.len() > FREE_BYTES + room.len() * PERMIT_BYTES * ROOM {
                    let permits = app.body_room.clone().try_acquire_many_owned(ROOM as u32);
                    room.push(permits.map_err(|_| {
                        ApiError::busy(
                            "the bodies of other requests fill the memory for them; try again",
                        )
                    })?);
                }
                bytes.extend_from_slice(&piece);
            }
            Ok(())
        };
        match tokio::time::timeout(app.options.limits.idle, read).await {
            Ok(done) => done?,
            Err(_) => {
                let message =
                    "the body did not arrive in time; send it faster, or in smaller requests";
                return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "slow", message));
            }
        }
        if let Some(turn) = parts.extensions.get::<Turn>() {
            turn.take(app)?;
        }
        Ok(Self {
            headers: parts.headers,
            query: parts.uri.query().unwrap_or_default().to_owned(),
            bytes,
            _room: room,
        })
    }

    fn kind(&self) -> &str {
        let kind = self
            .headers
            .get(header::CONTENT_TYPE)
            .and_then(|v| v.to_str().ok());
        kind.unwrap_or_default()
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
    }

    /// Whether the client wants the binary format.
    pub(crate) fn wants_binary(&self) -> bool {
        let accept = self
            .headers
            .get(header::ACCEPT)
            .and_then(|v| v.to_str().ok());
        accept.is_some_and(|accept| accept.contains(BINARY))
    }

    /// The request without vectors: a JSON body, or the parameters of the address.
    pub(crate) fn request<T: DeserializeOwned>(&self) -> ApiResult<T> {
        match self.kind() {
            _ if self.bytes.is_empty() => from_query(&self.query),
            JSON => from_json(&self.bytes),
            other => Err(unsupported(other)),
        }
    }

    /// The request with vectors, in any format.
    pub(crate) fn request_with_vectors<T: DeserializeOwned + WithVectors>(&self) -> ApiResult<T> {
        match self.kind() {
            BINARY => {
                let (json, vectors) = from_binary(&self.bytes)?;
                let mut request: T = from_json(if json.is_empty() { b"{}" } else { json })?;
                request.set_vectors(vectors);
                Ok(request)
            }
            NPY => {
                let mut request: T = from_query(&self.query)?;
                request.set_vectors(from_npy(&self.bytes)?);
                Ok(request)
            }
            _ => self.request(),
        }
    }
}

/// Permits that are taken at a time.
const ROOM: usize = 64;
/// Bytes of a body that need none: small requests are read however many large ones arrive.
const FREE_BYTES: usize = 16 << 10;

fn unsupported(kind: &str) -> ApiError {
    let message = format!("the content type is `{kind}`; send {JSON}, {BINARY} or {NPY}");
    ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_type", message)
}

fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> ApiResult<T> {
    serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => {
            ApiError::invalid(format!("the request does not fit: {error}"))
        }
        _ => ApiError::malformed(format!("the body is no JSON: {error}")),
    })
}

/// Parameters of an address as the JSON that they stand for: what reads as JSON is that, everything else is text.
fn from_query<T: DeserializeOwned>(query: &str) -> ApiResult<T> {
    let mut object = Map::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, "true"));
        let (name, value) = (decoded(name)?, decoded(value)?);
        let value = match name.as_str() {
            "filter" => Value::String(value),
            _ => serde_json::from_str(&value).unwrap_or(Value::String(value)),
        };
        object.insert(name, value);
    }
    serde_json::from_value(Value::Object(object)).map_err(|error| {
        ApiError::invalid(format!("the parameters of the address do not fit: {error}"))
    })
}

/// Text of an address: `%XX` stands for a byte, and `+` for a space.
pub(crate) fn decoded(text: &str) -> ApiResult<String> {
    let wrong = || {
        ApiError::malformed(
            "the address has a `%` that no two digits follow, or bytes that are no UTF-8",
        )
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |d: Option<u8>| (d? as char).to_digit(16);
                let high = digit(rest.next()).ok_or_else(wrong)?;
                let low = digit(rest.next()).ok_or_else(wrong)?;
                (16 * high + low) as u8
            }
            other => other,
        });
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

/// The JSON and the vectors of a binary body.
fn from_binary(bytes: &[u8]) -> ApiResult<(&[u8], Matrix)> {
    let wrong = |what: &str| {
        ApiError::malformed(format!(
            "the binary body is wrong: {what}; it is `GVC1`, three 32-bit numbers (bytes of JSON, rows, dimension), the \
             JSON, and the rows as 32-bit floats, all little-endian"
        ))
    };
    let Some((head, rest)) = bytes.split_at_checked(HEAD) else {
        return Err(wrong("it has fewer than 16 bytes"));
    };
    if &head[..4] != MAGIC {
        return Err(wrong("it does not begin with GVC1"));
    }
    let number = |at: usize| {
        let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
        u32::from_le_bytes(bytes) as usize
    };
    let (json, rows, dim) = (number(4), number(8), number(12));
    let Some((json, rest)) = rest.split_at_checked(json) else {
        return Err(wrong("it ends within its JSON"));
    };
    let expected = rows.checked_mul(dim).and_then(|n| n.checked_mul(4));
    if expected != Some(rest.len()) {
        return Err(wrong(&format!(
            "{} bytes follow the JSON, which are not {rows} rows of {dim} numbers",
            rest.len()
        )));
    }
    let (values, _) = rest.as_chunks::<4>();
    let data = values
        .iter()
        .map(|value| f32::from_le_bytes(*value))
        .collect();
    Ok((json, Matrix { data, dim }))
}

fn from_npy(mut bytes: &[u8]) -> ApiResult<Matrix> {
    let mut options = ReadOptions::default();
    options.format = Some(Format::Npy);
    let read =
        Reader::from_stream(&mut bytes, "the body", &options).and_then(|reader| reader.read());
    let vectors = read
        .map_err(|error| ApiError::malformed(error.to_string()))?
        .vectors;
    Ok(Matrix {
        dim: vectors.dim(),
        data: vectors.into_f32(),
    })
}

/// An answer as JSON.
pub(crate) fn json(value: &impl Serialize) -> ApiResult<Response> {
    Ok(typed(JSON, to_json(value)?))
}

fn to_json(value: &impl Serialize) -> ApiResult<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| {
        tracing::error!(%error, "an answer is no JSON");
        ApiError::internal()
    })
}

/// An answer of some type.
pub(crate) fn typed(kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = body.into().into_response();
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An answer in the binary format: JSON, rows of floats, and perhaps identifiers and vectors behind them.
#[derive(Default)]
pub(crate) struct Binary {
    pub(crate) about: Map<String, Value>,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) floats: Vec<f32>,
    pub(crate) ids: Vec<u64>,
    pub(crate) vectors: Vec<f32>,
}

impl Binary {
    pub(crate) fn into_response(self) -> ApiResult<Response> {
        let json = to_json(&self.about)?;
        let size =
            HEAD + json.len() + 4 * (self.floats.len() + self.vectors.len()) + 8 * self.ids.len();
        let mut bytes = Vec::with_capacity(size);
        bytes.extend_from_slice(MAGIC);
        for number in [json.len(), self.rows, self.columns] {
            bytes.extend_from_slice(&(number as u32).to_le_bytes());
        }
        bytes.extend_from_slice(&json);
        let floats = |bytes: &mut Vec<u8>, floats: &[f32]| {
            bytes.extend(floats.iter().flat_map(|value| value.to_le_bytes()));
        };
        floats(&mut bytes, &self.floats);
        bytes.extend(self.ids.iter().flat_map(|id| id.to_le_bytes()));
        floats(&mut bytes, &self.vectors);
        Ok(typed(BINARY, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_bodies_are_read_and_wrong_ones_refused() {
        let mut body = b"GVC1".to_vec();
        for number in [2_u32, 2, 1] {
            body.extend(number.to_le_bytes());
        }
        body.extend(b"{}");
        body.extend(1.5_f32.to_le_bytes());
        body.extend((-2.0_f32).to_le_bytes());
        let (json, vectors) = from_binary(&body).unwrap();
        assert_eq!(
            (json, vectors.dim, vectors.data),
            (&b"{}"[..], 1, vec![1.5, -2.0])
        );
        for cut in 0..body.len() {
            assert!(from_binary(&body[..cut]).is_err(), "{cut} bytes");
        }
        let mut huge = body.clone();
        huge[8..16].fill(255);
        assert!(from_binary(&huge).is_err());
        body[0] = b'X';
        assert!(from_binary(&body).is_err());
    }

    #[test]
    fn parameters_of_an_address_are_those_of_the_body() {
        let request: SearchRequest =
            from_query("k=3&filter=year%20%3E+1990&columns=%5B%22a%22%5D&exact&recall=0.9")
                .unwrap();
        assert_eq!(
            (request.k, request.exact, request.recall),
            (Some(3), true, Some(0.9))
        );
        assert_eq!(request.filter.as_deref(), Some("year > 1990"));
        assert_eq!(request.columns, Some(vec!["a".to_owned()]));
        for wrong in ["k=x", "nonsense=1", "k=%zz", "k=%f", "filter=%ff"] {
            assert!(from_query::<SearchRequest>(wrong).is_err(), "{wrong}");
        }
    }
}
