//! The stream of events, authenticated by the cookie instead of the token.

use axum::extract::RawQuery;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::form::Fields;
use crate::visitor::Visitor;

/// The events that the visitor may read, as `GET /api/v1/events` sends them.
///
/// Without a session the answer is 401: a login page is not a stream, and the script loads the page again.
pub(crate) async fn stream(
    visitor: Result<Visitor, Response>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let asked = Fields::of_query(query.as_deref()).only(|name| name == "events" || name == "since");
    let answer = match visitor {
        Ok(visitor) => visitor.file(None, &format!("/events?{}", asked.to_query()), &headers).await,
        Err(refused) => refused,
    };
    if answer.status().is_redirection() { StatusCode::UNAUTHORIZED.into_response() } else { answer }
}
