//! The error envelope `{"error": {"code", "message"}}`, and the only place that maps errors to a status.

use axum::Json;
use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, RETRY_AFTER, TRANSFER_ENCODING, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sidetone_model::problem::{FieldProblem, Problem};
use utoipa::ToSchema;

/// A failure as the caller sees it.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    fields: Vec<FieldProblem>,
    retry_after_s: Option<u64>,
}

impl ApiError {
    /// The token is missing or wrong.
    pub(crate) fn unauthenticated(message: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", message)
    }

    /// The address or the password of a login is wrong.
    pub(crate) fn invalid_credentials() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "invalid_credentials",
            "the email address or the password is wrong",
        )
    }

    /// The key is correct, but not allowed from this address.
    pub(crate) fn ip_not_allowed() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "ip_not_allowed",
            "the key may not be used from this address, add it to the key's allowlist",
        )
    }

    /// The key has no allowlist: it was created before allowlists were mandatory.
    pub(crate) fn ip_allowlist_required() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "ip_allowlist_required",
            "the key has no address allowlist, give it one before it is used",
        )
    }

    /// Outside the caller's scope or rights.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// The current state does not allow the request.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message)
    }

    /// The resource was changed after the caller read it.
    pub(crate) fn precondition_failed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PRECONDITION_FAILED, "precondition_failed", message)
    }

    /// The resource does not exist.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// The request is wrong; every wrong field is named, in the order of the request.
    pub(crate) fn invalid(fields: Vec<FieldProblem>) -> Self {
        let texts: Vec<String> =
            fields.iter().map(|field| format!("{}: {}", field.field, field.message)).collect();
        Self { fields, ..Self::new(StatusCode::BAD_REQUEST, "invalid_request", texts.join("; ")) }
    }

    /// Several values of the request belong to other resources; every one is reported.
    pub(crate) fn taken(fields: Vec<FieldProblem>) -> Self {
        Self { status: StatusCode::CONFLICT, code: "conflict", ..Self::invalid(fields) }
    }

    /// The request cannot be carried out as it is; every wrong field is named.
    pub(crate) fn unprocessable(fields: Vec<FieldProblem>) -> Self {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Self { status, code: "unprocessable", ..Self::invalid(fields) }
    }

    /// The same failure as [`ApiError::unprocessable`], if it names wrong fields.
    pub(crate) fn of_placement(self) -> Self {
        match self.fields.is_empty() {
            true => self,
            false => Self::unprocessable(self.fields),
        }
    }

    /// Too many requests; the same one may be sent again after `retry_after_s` seconds.
    pub(crate) fn rate_limited(retry_after_s: u64) -> Self {
        Self {
            retry_after_s: Some(retry_after_s),
            ..Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "rate_limited",
                format!("too many requests, try again in {retry_after_s} s"),
            )
        }
    }

    /// The caller has the largest number of open streams.
    pub(crate) fn too_many_streams(streams_max: usize) -> Self {
        let message = format!("{streams_max} streams are open for this key or user, end one of them first");
        Self {
            retry_after_s: Some(STREAM_RETRY_S),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message)
        }
    }

    /// The body is longer than allowed.
    pub(crate) fn payload_too_large() -> Self {
        Self::of_status(StatusCode::PAYLOAD_TOO_LARGE)
    }

    /// The body is not announced as JSON.
    pub(crate) fn unsupported_media_type() -> Self {
        Self::of_status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
    }

    /// The body is not announced as a WAV file.
    pub(crate) fn no_wav() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            "send the body as audio/wav, a WAV file as it is",
        )
    }

    /// The file does not have the requested range.
    pub(crate) fn range_not_satisfiable(bytes: u64) -> Self {
        Self::new(
            StatusCode::RANGE_NOT_SATISFIABLE,
            "range_not_satisfiable",
            format!("ask for one range within the {bytes} bytes that there are"),
        )
    }

    /// The `Idempotency-Key` was used for another request before.
    pub(crate) fn idempotency_key_reused() -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "idempotency_key_reused",
            "the Idempotency-Key was sent with another request before, use a new one for this one",
        )
    }

    /// A request with the same `Idempotency-Key` is being executed.
    pub(crate) fn still_running() -> Self {
        Self {
            retry_after_s: Some(1),
            ..Self::new(
                StatusCode::CONFLICT,
                "conflict",
                "the same request is being carried out now, send it again for its answer",
            )
        }
    }

    /// Overload; the same request may be sent again after `retry_after_s` seconds.
    pub(crate) fn busy(retry_after_s: u64) -> Self {
        Self {
            retry_after_s: Some(retry_after_s),
            ..Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "node_busy",
                format!("the node is overloaded, try again in {retry_after_s} s"),
            )
        }
    }

    /// The node drains; the same request may be sent again after `retry_after_s` seconds.
    fn draining(retry_after_s: u64) -> Self {
        let message = format!(
            "the node is draining and accepts no new calls: send the request to another node, or again in \
             {retry_after_s} s"
        );
        Self { message, ..Self::busy(retry_after_s) }
    }

    /// The answer of another node exceeds the limit for answers between nodes.
    pub(crate) fn too_long_for_peers() -> Self {
        Self::new(
            StatusCode::BAD_GATEWAY,
            "other_node",
            "the answer is too long to pass between nodes: ask the node that has it, whose URL is in GET /nodes".to_owned(),
        )
    }

    /// The limit of connections is reached, in total or for the address.
    pub(crate) fn too_many_connections() -> Self {
        Self {
            retry_after_s: Some(1),
            ..Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "node_busy",
                "too many connections, try again shortly",
            )
        }
    }

    /// The database is unavailable; the same request may be sent again after `retry_after_s` seconds.
    pub(crate) fn unavailable(retry_after_s: u64) -> Self {
        Self {
            retry_after_s: Some(retry_after_s),
            ..Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "node_busy",
                format!("the database does not answer in time, try again in {retry_after_s} s"),
            )
        }
    }

    /// The stored answer was sealed with a secret that is no longer known, such as by an older version of the engine.
    pub(crate) fn answer_unreadable() -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "conflict",
            "the request was carried out, but its answer cannot be read again: look up what it changed",
        )
    }

    /// The body cannot be read from the connection.
    pub(crate) fn broken_body() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", "the body ended before it was whole")
    }

    /// The path is longer than any existing one.
    pub(crate) fn uri_too_long() -> Self {
        Self::of_status(StatusCode::URI_TOO_LONG)
    }

    /// The engine is not ready, or no longer.
    pub(crate) fn not_ready(unready: &[String]) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", unready.join("; "))
    }

    /// An internal failure; its cause is only logged.
    pub(crate) fn internal() -> Self {
        Self::of_status(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Whether the caller is authenticated but not permitted.
    pub(crate) fn is_forbidden(&self) -> bool {
        self.status == StatusCode::FORBIDDEN
    }

    /// Whether the failure is on the server's side (5xx).
    pub(crate) fn is_internal(&self) -> bool {
        self.status.is_server_error()
    }

    /// The error for a bare status of an answer from a lower layer.
    pub(crate) fn of_status(status: StatusCode) -> Self {
        let (code, message) = match status {
            StatusCode::NOT_FOUND => ("not_found", "there is nothing at this path"),
            StatusCode::METHOD_NOT_ALLOWED => {
                ("method_not_allowed", "this path does not know that method, see Allow")
            }
            StatusCode::REQUEST_TIMEOUT => ("request_timeout", "the request took too long to arrive"),
            StatusCode::PAYLOAD_TOO_LARGE => ("payload_too_large", "the body is too large"),
            StatusCode::URI_TOO_LONG => ("uri_too_long", "the address is too long"),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                ("unsupported_media_type", "send the body as application/json")
            }
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => (
                "headers_too_large",
                "the headers are too large or too many, send at most 100 lines and 64 KiB",
            ),
            status if status.is_client_error() => ("invalid_request", "the request is not valid"),
            _ => ("internal", "something failed here; the request id finds it in the log"),
        };
        Self::new(status, code, message)
    }

    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), fields: Vec::new(), retry_after_s: None }
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Busy { retry_after_s } => Self::busy(retry_after_s),
            Problem::Conflict(message) => Self::conflict(message),
            Problem::Draining { retry_after_s } => Self::draining(retry_after_s),
            Problem::Forbidden(message) => Self::forbidden(message),
            Problem::Internal(text) | Problem::Refused(text) => {
                tracing::error!(error = text, "a request failed");
                Self::internal()
            }
            Problem::InvalidRequest(fields) => Self::invalid(fields),
            Problem::NotFound(message) => Self::not_found(message),
            Problem::PreconditionFailed(message) => Self::precondition_failed(message),
            Problem::Unprocessable(fields) => Self::unprocessable(fields),
            // The store has logged it, once for all affected requests.
            Problem::Unavailable { retry_after_s, .. } => Self::unavailable(retry_after_s),
        }
    }
}

/// The envelope, for answers that an operation declares explicitly: `body = ErrorBody`.
pub(crate) type ErrorBody = Envelope<'static>;

/// The body of every failure.
#[derive(Serialize, ToSchema)]
#[schema(as = ErrorBody)]
pub(crate) struct Envelope<'a> {
    error: Detail<'a>,
}

/// The failure.
#[derive(Serialize, ToSchema)]
#[schema(as = ErrorDetail)]
struct Detail<'a> {
    /// An error code for programs; more codes may follow.
    #[schema(example = "invalid_request")]
    code: &'a str,
    /// A message for people; names every wrong field.
    #[schema(example = "limit: must be between 1 and 500")]
    message: &'a str,
    /// The wrong fields one by one, in the order of the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<Field<'a>>,
}

/// A wrong field of a request.
#[derive(Serialize, ToSchema)]
#[schema(as = ErrorField)]
struct Field<'a> {
    /// The name as it was written.
    field: &'a str,
    /// The problem.
    message: &'a str,
}

/// When a caller with too many streams may retry: a broken stream is detected by then.
const STREAM_RETRY_S: u64 = 15;

/// Marks an answer whose body already is the envelope.
#[derive(Debug, Clone, Copy)]
struct Enveloped;

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let fields =
            self.fields.iter().map(|field| Field { field: &field.field, message: &field.message }).collect();
        let body = Envelope { error: Detail { code: self.code, message: &self.message, fields } };
        let mut response = (self.status, Json(body)).into_response();
        response.extensions_mut().insert(Enveloped);
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Marks an answer that is sent unchanged: it was made earlier, or by another node.
pub(crate) fn already_enveloped(mut response: Response) -> Response {
    response.extensions_mut().insert(Enveloped);
    response
}

/// Whether the body of an answer is final.
pub(crate) fn is_enveloped(response: &Response) -> bool {
    response.extensions().get::<Enveloped>().is_some()
}

/// Puts a failure from a lower layer into the envelope; its headers stay.
pub(crate) fn enveloped(response: Response) -> Response {
    let status = response.status();
    let failed = status.is_client_error() || status.is_server_error();
    if !failed || is_enveloped(&response) {
        return response;
    }
    let (mut kept, _) = response.into_parts();
    let (made, body) = ApiError::of_status(status).into_response().into_parts();
    kept.headers.remove(CONTENT_LENGTH);
    kept.headers.remove(TRANSFER_ENCODING);
    kept.headers.extend(made.headers);
    kept.extensions.insert(Enveloped);
    Response::from_parts(kept, Body::new(body))
}
