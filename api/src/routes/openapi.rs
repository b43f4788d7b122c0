//! The API document.

use std::sync::OnceLock;

use axum::Extension;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use serde_json::Value;

use crate::docs;
use crate::error::ApiError;

/// The document as it is sent, and the page generated from it.
pub(crate) struct Reference {
    pub(crate) document: String,
    pub(crate) page: String,
}

/// Generates the reference on the first request for it: at the start it took more time than building the router.
#[derive(Clone, Copy)]
pub(crate) struct LazyReference {
    /// Shared by every engine of the process.
    pub(crate) generated: &'static OnceLock<Reference>,
    pub(crate) document: fn() -> Value,
}

impl LazyReference {
    pub(crate) async fn get(self) -> Result<&'static Reference, ApiError> {
        if let Some(reference) = self.generated.get() {
            return Ok(reference);
        }
        let generate = move || self.generated.get_or_init(|| Reference::from(&(self.document)()));
        tokio::task::spawn_blocking(generate).await.map_err(|_| ApiError::internal())
    }
}

impl From<&Value> for Reference {
    fn from(document: &Value) -> Self {
        Self { document: document.to_string(), page: docs::page(document) }
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
pub(crate) async fn document(
    Extension(reference): Extension<LazyReference>,
) -> Result<impl IntoResponse, ApiError> {
    let headers = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    Ok((headers, reference.get().await?.document.as_str()))
}
