//! The API document.

use std::sync::Arc;

use axum::Extension;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::docs;

/// The document as it is sent, and the page generated from it.
#[derive(Clone)]
pub(crate) struct Reference {
    pub(crate) document: Arc<str>,
    pub(crate) page: Arc<str>,
}

impl From<&Value> for Reference {
    fn from(document: &Value) -> Self {
        Self { document: document.to_string().into(), page: docs::page(document).into() }
    }
}

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
pub(crate) async fn document(Extension(reference): Extension<Reference>) -> Response {
    let headers = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (headers, reference.document.to_string()).into_response()
}
