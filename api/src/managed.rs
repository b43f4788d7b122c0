//! What the routes of managed resources have in common: access checks, and the answer for a new resource.

use axum::Json;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::error::ApiError;

/// Returns the resource if the caller may see it: 404 if it does not exist, 403 if it belongs to another
/// organisation. Ids are random, so the difference reveals nothing useful.
pub(crate) fn seen<T>(found: Option<T>, what: &str, may_see: impl FnOnce(&T) -> bool) -> Result<T, ApiError> {
    match found {
        None => Err(ApiError::not_found(format!("there is no such {what}"))),
        Some(found) if may_see(&found) => Ok(found),
        Some(_) => Err(ApiError::forbidden(format!("the {what} is outside the caller's scope"))),
    }
}

/// 201 with the complete new resource and its location.
pub(crate) fn created(collection: &str, id: impl std::fmt::Display, body: impl Serialize) -> Response {
    let mut response = (StatusCode::CREATED, Json(body)).into_response();
    // An id consists of hexadecimal digits and hyphens.
    if let Ok(location) = HeaderValue::from_str(&format!("/api/v1/{collection}/{id}")) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}
