//! Forms and queries, as browsers send them (`application/x-www-form-urlencoded`).

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, StatusCode, header::CONTENT_TYPE};

use crate::failure::Failure;

/// The fields of a form or a query, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// The fields of a query.
    pub(crate) fn of_query(query: Option<&str>) -> Self {
        Self(form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    /// Reads the body of a form.
    ///
    /// # Errors
    /// 415 for another kind of body, 413 when it is too long, 408 when it does not arrive in time.
    pub(crate) async fn of_body(headers: &HeaderMap, body: Body) -> Result<Self, Failure> {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.split(';').next().unwrap_or_default().trim() != "application/x-www-form-urlencoded" {
            return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send the form of the page"));
        }
        match tokio::time::timeout(BODY_TIME, to_bytes(body, BODY_LEN_MAX)).await {
            Ok(Ok(bytes)) => Ok(Self(form_urlencoded::parse(&bytes).into_owned().collect())),
            Ok(Err(_)) => Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "the form is too long")),
            Err(_) => Err(Failure::new(
                StatusCode::REQUEST_TIMEOUT,
                "the form took too long to arrive, send it again",
            )),
        }
    }

    /// The first value of a field; empty when it was not sent.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value.as_str())
    }

    /// Sets a field to one value.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.remove(name);
        self.0.push((name.to_owned(), value.to_owned()));
    }

    /// Removes a field.
    pub(crate) fn remove(&mut self, name: &str) {
        self.0.retain(|(found, _)| found != name);
    }

    /// The fields as a query; empty ones are left out.
    pub(crate) fn to_query(&self) -> String {
        let filled = self.0.iter().filter(|(_, value)| !value.is_empty());
        form_urlencoded::Serializer::new(String::new()).extend_pairs(filled).finish()
    }

    /// Only the fields with these names.
    #[must_use]
    pub(crate) fn only(&self, names: impl Fn(&str) -> bool) -> Self {
        Self(self.0.iter().filter(|(name, _)| names(name)).cloned().collect())
    }
}

/// A text as a value of a query.
pub(crate) fn query_value(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// A text as one segment of a path (RFC 3986 §3.3).
pub(crate) fn segment(text: &str) -> String {
    let mut path = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => path.push(char::from(byte)),
            // `.` and `..` would be removed from the path.
            b'.' if text.bytes().any(|byte| byte != b'.') => path.push('.'),
            byte => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path
}

/// The longest form; no resource comes near it.
const BODY_LEN_MAX: usize = 64 * 1024;
/// How long a form may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);

#[cfg(test)]
pub(crate) mod tests {
    use axum::http::HeaderValue;
    use hyper::body::Frame;

    use super::*;

    #[test]
    fn fields_are_read_and_written() {
        let mut fields = Fields::of_query(Some("q=a+b%26&empty=&more=1"));
        assert_eq!((fields.get("q"), fields.get("empty"), fields.get("none")), ("a b&", "", ""));
        fields.set("q", "ü");
        fields.remove("more");
        assert_eq!(fields.to_query(), "q=%C3%BC");
        assert_eq!(Fields::of_query(None).to_query(), "");
    }

    #[test]
    fn a_segment_stays_one() {
        for (text, expected) in
            [("a-1", "a-1"), ("a/../b?c#d", "a%2F..%2Fb%3Fc%23d"), ("..", "%2E%2E"), ("ü", "%C3%BC")]
        {
            assert_eq!(segment(text), expected);
        }
    }

    fn form() -> HeaderMap {
        HeaderMap::from_iter([(
            CONTENT_TYPE,
            HeaderValue::from_static("application/x-www-form-urlencoded; charset=utf-8"),
        )])
    }

    #[tokio::test(start_paused = true)]
    async fn a_form_is_bounded_in_kind_length_and_time() {
        let read = Fields::of_body(&form(), Body::from("a=1")).await.unwrap();
        assert_eq!(read.get("a"), "1");
        let status = |read: Result<Fields, Failure>| read.unwrap_err().status.as_u16();
        assert_eq!(status(Fields::of_body(&HeaderMap::new(), Body::from("a=1")).await), 415);
        assert_eq!(status(Fields::of_body(&form(), Body::from("a".repeat(65 * 1024))).await), 413);
        // A body that never arrives; time is simulated.
        let never = Body::new(Never);
        assert_eq!(status(Fields::of_body(&form(), never).await), 408);
    }

    /// A body from a client that stops sending.
    pub(crate) struct Never;

    impl axum::body::HttpBody for Never {
        type Data = bytes::Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _context: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<Frame<bytes::Bytes>, Self::Error>>> {
            std::task::Poll::Pending
        }
    }
}
