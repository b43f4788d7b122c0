//! The API document.

use axum::Extension;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

/// The document as it is sent, made once.
#[derive(Clone)]
pub(crate) struct Document(pub(crate) std::sync::Arc<str>);

/// Read this document
///
/// OpenAPI 3.1.
#[utoipa::path(
    get,
    path = "/openapi.json",
    operation_id = "getOpenApi",
    tag = "Reference",
    responses((status = 200, description = "The document.", body = Object)),
    security(()),
)]
pub(crate) async fn document(Extension(document): Extension<Document>) -> Response {
    let headers = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (headers, document.0.to_string()).into_response()
}
