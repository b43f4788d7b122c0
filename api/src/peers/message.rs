//! Converts requests and answers between HTTP and the messages of nodes.

use std::net::IpAddr;

use axum::body::Body;
use axum::http::header::{
    AUTHORIZATION, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, LOCATION, RANGE,
    RETRY_AFTER,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use sidetone_model::cluster::{PeerAnswer, PeerRequest};

use crate::error::{ApiError, already_enveloped};

/// The request for another node.
pub(super) fn to_peer(parts: &Parts, target: String, client: IpAddr, body: Vec<u8>) -> PeerRequest {
    PeerRequest {
        method: parts.method.to_string(),
        target,
        headers: listed(&parts.headers, &PASSED_ON),
        client,
        body,
    }
}

/// Converts the answer of this node for another one.
pub(crate) fn to_answer(status: StatusCode, headers: &HeaderMap, body: Vec<u8>) -> PeerAnswer {
    PeerAnswer { status: status.as_u16(), headers: listed(headers, &PASSED_BACK), body }
}

/// Converts the answer of another node for the client.
pub(super) fn to_response(answer: PeerAnswer) -> Response {
    let Ok(status) = StatusCode::from_u16(answer.status) else {
        return ApiError::internal().into_response();
    };
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = status;
    let known = PASSED_BACK.iter().map(HeaderName::as_str);
    for (name, value) in answer.headers {
        let name = known.clone().find(|known| *known == name).map(HeaderName::from_static);
        if let (Some(name), Ok(value)) = (name, HeaderValue::from_str(&value)) {
            response.headers_mut().insert(name, value);
        }
    }
    already_enveloped(response)
}

/// The headers of these names; a header that is not visible ASCII is left out.
fn listed(headers: &HeaderMap, names: &[HeaderName]) -> Vec<(String, String)> {
    let found = names.iter().filter_map(|name| {
        let value = headers.get(name)?.to_str().ok()?;
        Some((name.as_str().to_owned(), value.to_owned()))
    });
    found.collect()
}

/// The request headers on which an answer depends.
pub(crate) const PASSED_ON: [HeaderName; 5] = [AUTHORIZATION, CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH, RANGE];
/// The answer headers that a client needs.
const PASSED_BACK: [HeaderName; 5] = [CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, LOCATION, RETRY_AFTER];
