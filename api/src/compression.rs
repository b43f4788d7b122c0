//! gzip for answers that become smaller: texts of some length, for clients that accept it.
//!
//! Event streams are sent as they arrive, and recordings and traces keep their ranges.

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_TYPE};
use axum::http::{Method, Response, StatusCode};
use axum::middleware::Next;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::Predicate;

/// The layer that compresses.
pub(crate) fn layer() -> CompressionLayer<Texts> {
    CompressionLayer::new().gzip(true).compress_when(Texts)
}

/// Answers `HEAD` as for a client that accepts no gzip. The length of a compressed answer is known only once it is
/// compressed, and the answer to `HEAD` would have the length 0 instead (RFC 9110 §8.6).
pub(crate) async fn plain_head(mut request: Request, next: Next) -> axum::response::Response {
    if request.method() == Method::HEAD {
        request.headers_mut().remove(ACCEPT_ENCODING);
    }
    next.run(request).await
}

/// Selects the answers that are compressed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Texts;

impl Predicate for Texts {
    fn should_compress<B: HttpBody>(&self, response: &Response<B>) -> bool {
        let headers = response.headers();
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        // An export has no known length, and is long.
        let is_long = response.body().size_hint().exact().is_none_or(|len| len >= LEN_MIN);
        // Only a complete answer: a range refers to the uncompressed file.
        response.status() == StatusCode::OK && is_long && KINDS.contains(&kind)
    }
}

const KINDS: [&str; 5] = ["application/json", "application/x-ndjson", "text/css", "text/csv", "text/html"];
/// A shorter answer fits into one packet, compressed or not.
const LEN_MIN: u64 = 1_024;
