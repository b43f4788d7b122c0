//! ETags of stored rooms, and the `If-Match` of requests that change one (RFC 9110 §13.1.1).
//!
//! The tag identifies the last change of the room's settings. `live_members` is not a setting and does not
//! affect it.

use axum::http::header::{ETAG, IF_MATCH};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use sidetone_model::problem::FieldProblem;
use sidetone_model::room::ExpectedRoom;
use sidetone_model::time::Timestamp;

use crate::error::ApiError;

/// Adds the tag of a room whose last change was at `updated_at`.
pub(crate) fn tagged(mut response: Response, updated_at: Timestamp) -> Response {
    // Digits and quotes are valid header values.
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", updated_at.as_micros())) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// The room states that `If-Match` accepts. A weak tag never matches, because `If-Match` uses strong comparison.
///
/// # Errors
/// `invalid_request` when `If-Match` is neither `*` nor a list of tags.
pub(crate) fn expected(headers: &HeaderMap) -> Result<ExpectedRoom, ApiError> {
    let mut states = None;
    for value in headers.get_all(IF_MATCH) {
        let text = value.to_str().map_err(|_| malformed())?;
        if text.trim() == "*" {
            return Ok(None);
        }
        for tag in text.split(',') {
            let tag = tag.trim();
            let opaque = tag.strip_prefix("W/").unwrap_or(tag);
            let content =
                opaque.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).ok_or_else(malformed)?;
            let states = states.get_or_insert_with(Vec::new);
            if let (true, Ok(micros)) = (opaque == tag, content.parse()) {
                states.push(Timestamp::from_micros(micros));
            }
        }
    }
    Ok(states)
}

fn malformed() -> ApiError {
    ApiError::invalid(vec![FieldProblem {
        field: "If-Match".to_owned(),
        message: "must be * or the ETag of an earlier answer, with its quotes".to_owned(),
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Option<ExpectedRoom> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(IF_MATCH, HeaderValue::from_str(value).unwrap());
        }
        expected(&headers).ok()
    }

    #[test]
    fn tags_are_compared_strongly() {
        let at = |micros: &[i64]| Some(Some(micros.iter().map(|us| Timestamp::from_micros(*us)).collect()));
        let cases: &[(&[&str], Option<ExpectedRoom>)] = &[
            (&[], Some(None)),
            (&["*"], Some(None)),
            (&["\"7\""], at(&[7])),
            (&["\"7\", \"8\"", "\"9\""], at(&[7, 8, 9])),
            (&["W/\"7\""], at(&[])),
            (&["\"other\""], at(&[])),
            (&["7"], None),
            (&[""], None),
            (&["\"7\", x"], None),
        ];
        for (values, expected) in cases {
            assert_eq!(read(values), *expected, "{values:?}");
        }
    }
}
