//! The stream of events, with the cookie in place of the token.

use axum::extract::RawQuery;
use axum::http::HeaderMap;
use axum::response::Response;

use crate::form::Fields;
use crate::visitor::Visitor;

/// The events that the visitor may read, as `GET /api/v1/events` sends them.
pub(crate) async fn stream(visitor: Visitor, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let asked = Fields::of_query(query.as_deref()).only(|name| name == "events");
    visitor.file(None, &format!("/events?{}", asked.to_query()), &headers).await
}
