//! CORS: browsers on the origins of `[http] cors_origins` may call the API.
//!
//! No cookie authenticates here, so credentials are never allowed. `tower_http::cors` answers every `OPTIONS` itself;
//! here a request without `Origin`, or from another origin, is answered as if there were no CORS.

use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::state::ApiState;

/// Answers preflights from allowed origins, and allows these origins to read the answers to their requests.
pub(crate) async fn share(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let settings = state.settings.current();
    if settings.cors_origins.is_empty() {
        return next.run(request).await;
    }
    let origin = request
        .headers()
        .get(ORIGIN)
        .filter(|origin| settings.cors_origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()));
    let origin = origin.cloned();
    let asks =
        request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match origin {
        Some(_) if asks => preflight(),
        _ => next.run(request).await,
    };
    let headers = response.headers_mut();
    // The answer depends on the origin even if that is not allowed.
    headers.append(VARY, HeaderValue::from_name(ORIGIN));
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    }
    response
}

fn preflight() -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(REQUEST_HEADERS));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE_S));
    (StatusCode::NO_CONTENT, headers).into_response()
}

const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
const REQUEST_HEADERS: &str = "authorization, content-type, idempotency-key, if-match, if-none-match, \
                               if-range, last-event-id, range, x-request-id";
const EXPOSED: &str = "accept-ranges, content-disposition, content-range, deprecation, etag, \
                       idempotency-replayed, link, location, retry-after, sunset, x-ratelimit-limit, \
                       x-ratelimit-remaining, x-ratelimit-reset, x-request-id, x-sidetone-missing";
/// How long a browser may keep the answer to a preflight: a change of the origins takes effect within ten
/// minutes.
const MAX_AGE_S: &str = "600";
