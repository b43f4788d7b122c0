//! The answer to a head that never became a request, with the envelope and the headers of every other answer.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::IntoResponse;
use futures_util::FutureExt;
use http_body_util::BodyExt;

use crate::auth;
use crate::error::ApiError;
use crate::state::ApiState;

/// Makes the complete answer to a client at this address.
pub(super) type Refusals = Arc<dyn Fn(StatusCode, IpAddr) -> Vec<u8> + Send + Sync>;

/// The refusals of these routes: each counts against the rate of its address, like a request without a token.
pub(super) fn refusals(state: &ApiState) -> Refusals {
    let state = state.clone();
    Arc::new(move |status, peer| {
        let error = match status {
            StatusCode::SERVICE_UNAVAILABLE => ApiError::too_many_connections(),
            status => ApiError::of_status(status),
        };
        let mut response = error.into_response();
        auth::charge(&state, peer, response.headers_mut());
        crate::router::common_headers(response.headers_mut(), crate::router::new_request_id());
        state.http.refused(status);
        written(response)
    })
}

/// The answer in HTTP/1 form, after which the connection ends.
fn written(response: axum::response::Response) -> Vec<u8> {
    let (parts, body) = response.into_parts();
    // The body is in memory and so immediately available.
    let body =
        body.collect().now_or_never().and_then(Result::ok).map(|body| body.to_bytes()).unwrap_or_default();
    let reason = parts.status.canonical_reason().unwrap_or_default();
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", parts.status.as_u16());
    for (name, value) in &parts.headers {
        // These headers are the server's own; writing to a string cannot fail.
        let _ = write!(head, "{name}: {}\r\n", value.to_str().unwrap_or_default());
    }
    let _ = write!(head, "content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(&body);
    bytes
}
