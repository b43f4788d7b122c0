//! The reference page.

use axum::Extension;
use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::response::{IntoResponse, Response};

use crate::docs::STYLE;
use crate::error::ApiError;
use crate::routes::openapi::LazyReference;

/// Read the reference
///
/// This document as a web page. It works without scripts and without a network.
#[utoipa::path(
    get,
    path = "/docs",
    operation_id = "getReference",
    tag = "Reference",
    responses((status = 200, description = "The page.", body = String, content_type = "text/html")),
    security(()),
)]
pub(crate) async fn page(Extension(reference): Extension<LazyReference>) -> Result<Response, ApiError> {
    Ok(html(POLICY, reference.get().await?.page.as_str()))
}

/// A page with a content security policy; it sends no Referer to other sites.
pub(crate) fn html(policy: &'static str, page: impl Into<Body>) -> Response {
    let headers = [
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy)),
        (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    (headers, page.into()).into_response()
}

/// Read the reference's stylesheet
#[utoipa::path(
    get,
    path = "/docs/style.css",
    operation_id = "getReferenceStyle",
    tag = "Reference",
    responses((status = 200, description = "The stylesheet.", body = String, content_type = "text/css")),
    security(()),
)]
pub(crate) async fn style() -> Response {
    let headers = [
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (CONTENT_TYPE, HeaderValue::from_static("text/css; charset=utf-8")),
    ];
    (headers, STYLE).into_response()
}

/// Only the page's own stylesheet is loaded.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
