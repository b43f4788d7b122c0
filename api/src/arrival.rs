//! Reads the body of a request completely before the request is processed, with limits on length and time.

use std::collections::HashMap;

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use axum::extract::{MatchedPath, Path, Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sidetone_model::problem::FieldProblem;
use sidetone_model::prompt::Prompt;

use crate::auth;
use crate::error::{ApiError, is_enveloped};
use crate::state::ApiState;

/// Refuses a URL or headers that are longer than the limits. It runs inside the layer that counts requests,
/// so that the answer has the rate headers like every other.
pub(crate) async fn bound_address(request: Request, next: Next) -> Response {
    let too_long = request.uri().path_and_query().is_some_and(|text| text.as_str().len() > URI_LEN_MAX);
    if too_long {
        return ApiError::uri_too_long().into_response();
    }
    // Over HTTP/1 hyper refuses such a head before it becomes a request.
    let lines = request.headers().iter();
    let len: usize = lines.map(|(name, value)| name.as_str().len() + value.len() + LINE_OVERHEAD).sum();
    if request.headers().len() > HEADERS_MAX || len > HEADERS_LEN_MAX {
        return ApiError::of_status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE).into_response();
    }
    next.run(request).await
}

/// Names the part of a path that is no UTF-8. The routes refuse such a path without a field.
pub(crate) async fn name_undecodable(
    parts: Result<Path<HashMap<String, String>>, PathRejection>,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    let undecodable = parts.err().and_then(|rejection| undecodable(&rejection));
    match undecodable {
        Some(problem) if response.status() == StatusCode::BAD_REQUEST && !is_enveloped(&response) => {
            ApiError::invalid(vec![problem]).into_response()
        }
        _ => response,
    }
}

/// Returns the problem of a part of the path that is no UTF-8 when decoded.
fn undecodable(rejection: &PathRejection) -> Option<FieldProblem> {
    let PathRejection::FailedToDeserializePathParams(failed) = rejection else { return None };
    let ErrorKind::InvalidUtf8InPathParam { key } = failed.kind() else { return None };
    let is_id = key == "uuid" || key.ends_with("id");
    let message = if is_id { "must be a UUID" } else { "must be in UTF-8" };
    Some(FieldProblem { field: key.clone(), message: message.to_owned() })
}

/// Passes the body on in memory; 408 when it takes too long, 413 when it is too long.
///
/// For an unauthenticated client the limit is the length that a login needs.
pub(crate) async fn read_body(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let stranger = match auth::identity(request.extensions()) {
        Some(Err(error)) => Some(error.clone()),
        Some(Ok(_)) | None => None,
    };
    let len_max = if stranger.is_some() { STRANGERS_BODY_LEN_MAX } else { len_max(&request) };
    let too_large = || stranger.clone().unwrap_or_else(|| ApiError::of_status(StatusCode::PAYLOAD_TOO_LARGE));
    let declared = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if declared.is_some_and(|len: usize| len > len_max) {
        return too_large().into_response();
    }
    let (parts, body) = request.into_parts();
    let time = state.settings.current().body_time;
    match tokio::time::timeout(time, to_bytes(body, len_max)).await {
        Err(_) => ApiError::of_status(StatusCode::REQUEST_TIMEOUT).into_response(),
        Ok(Ok(bytes)) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Ok(Err(error)) if is_too_large(&error) => too_large().into_response(),
        // The client disconnected, or sent an invalid body: no better answer exists.
        Ok(Err(_)) => ApiError::broken_body().into_response(),
    }
}

/// A WAV file is longer than any other body.
fn len_max(request: &Request) -> usize {
    let path = request.extensions().get::<MatchedPath>();
    let sound = path.is_some_and(|path| path.as_str().ends_with(SOUND_PATH));
    if sound { Prompt::WAV_BYTES_MAX } else { BODY_LEN_MAX }
}

fn is_too_large(error: &axum::Error) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if error.is::<http_body_util::LengthLimitError>() {
            return true;
        }
        source = error.source();
    }
    false
}

/// The path to which WAV files are sent.
const SOUND_PATH: &str = "/organisations/{id}/prompts/{name}";
/// The longest body of the API except WAV files; no resource comes near it.
const BODY_LEN_MAX: usize = 1024 * 1024;
/// Header lines.
const HEADERS_MAX: usize = 100;
/// Total bytes of the headers; a complete head may have 64 KiB.
const HEADERS_LEN_MAX: usize = 64 * 1024;
/// `: ` and the line end.
const LINE_OVERHEAD: usize = 4;
/// Fits every filter of the call log at its maximum length.
const URI_LEN_MAX: usize = 8 * 1024;
/// The longest body of an unauthenticated client: an address and a password.
const STRANGERS_BODY_LEN_MAX: usize = 16 * 1024;
