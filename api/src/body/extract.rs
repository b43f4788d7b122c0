//! The body as received, and the headers that describe it.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::IntoResponse;
use sidetone_model::json;
use sidetone_model::problem::FieldProblem;

use crate::body::fields::Fields;
use crate::error::ApiError;
use crate::state::ApiState;

/// The body of a request, not parsed yet.
#[derive(Debug)]
pub(crate) struct Body {
    /// The bytes, or the reason why they were not received.
    received: Result<Bytes, ApiError>,
    strict: bool,
}

impl Body {
    /// The bytes as received; empty if they were not.
    pub(crate) fn bytes(&self) -> Bytes {
        self.received.as_ref().cloned().unwrap_or_default()
    }

    /// Parses the body with a reader that reports all problems itself.
    ///
    /// # Errors
    /// 413 and 415 if the body is not JSON of an allowed size; `invalid_request` for all other problems.
    pub(crate) fn parse<T>(
        self,
        read: impl FnOnce(&[u8]) -> Result<T, Vec<FieldProblem>>,
    ) -> Result<T, ApiError> {
        read(&self.received?).map_err(ApiError::invalid)
    }

    /// Reads the body, a JSON object, with `take`.
    ///
    /// # Errors
    /// 413 and 415 if the body is not JSON of an allowed size; `invalid_request` with every other problem,
    /// including fields that `take` did not read.
    pub(crate) fn read<T>(self, take: impl FnOnce(&mut Fields) -> Option<T>) -> Result<T, ApiError> {
        let (fields, taken) = self.fields(take)?;
        fields.taken(taken)
    }

    /// Like [`Body::read`], but the problems are not reported yet, so that the caller can add others. Keeps the texts
    /// and numbers of `names`.
    ///
    /// # Errors
    /// The problem of the body itself: its size, media type or JSON.
    pub(crate) fn read_open<T, const N: usize>(
        self,
        names: [&'static str; N],
        take: impl FnOnce(&mut Fields) -> Option<T>,
    ) -> Result<OpenBody<T, N>, ApiError> {
        let mut texts = names.map(|name| (name, None));
        let (fields, taken) = self.fields(|fields| {
            texts = names.map(|name| (name, fields.given_text(name)));
            take(fields)
        })?;
        let texts = texts.map(|(name, text)| text.filter(|_| !fields.is_refused(name)));
        Ok(OpenBody { fields, taken, texts })
    }

    /// Reads the body with `take` and does not report its problems yet.
    pub(super) fn fields<T>(
        self,
        take: impl FnOnce(&mut Fields) -> Option<T>,
    ) -> Result<(Fields, Option<T>), ApiError> {
        let object = json::object(&self.received?).map_err(ApiError::invalid)?;
        let mut fields = Fields::new(object, self.strict);
        let taken = take(&mut fields);
        fields.refuse_unknown();
        Ok((fields, taken))
    }
}

/// A body that was read; further problems can be added.
#[derive(Debug)]
pub(crate) struct OpenBody<T, const N: usize> {
    fields: Fields,
    taken: Option<T>,
    texts: [Option<String>; N],
}

impl<T, const N: usize> OpenBody<T, N> {
    /// Whether a field is wrong.
    pub(crate) fn is_wrong(&self) -> bool {
        self.fields.is_wrong()
    }

    /// Whether the field is present.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.has(name)
    }

    /// The texts of the named fields that have no problem of their own.
    pub(crate) fn texts(&self) -> [Option<String>; N] {
        self.texts.clone()
    }

    /// Adds problems of fields.
    pub(crate) fn refuse(&mut self, problems: Vec<FieldProblem>) {
        for FieldProblem { field, message } in problems {
            self.fields.refuse::<()>(&field, message);
        }
    }

    /// Returns the value, unless `problems` or the body's own problems are to be reported. `problems` are those that
    /// only the stored data or the live calls show.
    ///
    /// # Errors
    /// `invalid_request` with every problem of the body; `unprocessable` if `problems` is not empty.
    pub(crate) fn refuse_beside(mut self, problems: Vec<FieldProblem>) -> Result<T, ApiError> {
        let has_more = !problems.is_empty();
        self.refuse(problems);
        self.finish().map_err(|error| if has_more { error.of_placement() } else { error })
    }

    /// Returns the value.
    ///
    /// # Errors
    /// `invalid_request` with every problem, in the order of the request.
    pub(crate) fn finish(self) -> Result<T, ApiError> {
        self.fields.taken(self.taken)
    }
}

impl FromRequest<ApiState> for Body {
    type Rejection = std::convert::Infallible;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, Self::Rejection> {
        let kind = kind(request.method(), request.headers());
        let received = Bytes::from_request(request, &()).await.map_err(unread);
        let received = received.and_then(|bytes| {
            if bytes.is_empty() {
                return Err(wrong("is missing, send a JSON object"));
            }
            kind.map(|()| bytes)
        });
        Ok(Body { received, strict: state.settings.current().strict_bodies })
    }
}

/// The body of a request that has no fields: empty, or an empty object.
#[derive(Debug)]
pub(crate) struct NoBody(Option<Body>);

impl NoBody {
    /// Refuses a body with any field.
    ///
    /// # Errors
    /// Like [`Body::read`] without known fields.
    pub(crate) fn require(self) -> Result<(), ApiError> {
        self.0.map_or(Ok(()), |body| body.read(|_| Some(())))
    }

    /// Returns the body, or an empty object if there is none.
    pub(crate) fn or_empty(self) -> Body {
        self.0.unwrap_or_else(|| Body { received: Ok(Bytes::from_static(b"{}")), strict: true })
    }
}

impl FromRequest<ApiState> for NoBody {
    type Rejection = std::convert::Infallible;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, Self::Rejection> {
        let kind = kind(request.method(), request.headers());
        let received = Bytes::from_request(request, &()).await;
        Ok(Self(match received {
            Ok(bytes) if bytes.is_empty() => None,
            Ok(bytes) => {
                Some(Body { received: kind.map(|()| bytes), strict: state.settings.current().strict_bodies })
            }
            Err(rejection) => Some(Body { received: Err(unread(rejection)), strict: true }),
        }))
    }
}

/// Converts a failure to receive the body.
fn unread(rejection: impl IntoResponse) -> ApiError {
    if rejection.into_response().status() == StatusCode::PAYLOAD_TOO_LARGE {
        ApiError::payload_too_large()
    } else {
        wrong("did not arrive whole, send it again")
    }
}

/// Checks that the headers declare JSON in UTF-8; a `PATCH` may declare a merge patch (RFC 7396 §4).
fn kind(method: &Method, headers: &HeaderMap) -> Result<(), ApiError> {
    let plain = |encoding: &[u8]| encoding.eq_ignore_ascii_case(b"identity");
    if headers.get_all(CONTENT_ENCODING).iter().any(|encoding| !plain(encoding.as_bytes())) {
        return Err(ApiError::unsupported_media_type());
    }
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let (Some(kind), None) = (types.next(), types.next()) else {
        return Err(ApiError::unsupported_media_type());
    };
    let kind = kind.to_str().map_err(|_| ApiError::unsupported_media_type())?;
    let mut parts = kind.split(';').map(str::trim);
    let is_json = parts.next().is_some_and(|essence| {
        essence.eq_ignore_ascii_case("application/json")
            || (method == Method::PATCH && essence.eq_ignore_ascii_case(MERGE_PATCH))
    });
    if !is_json {
        return Err(ApiError::unsupported_media_type());
    }
    for parameter in parts {
        let Some((name, value)) = parameter.split_once('=') else { continue };
        let value = value.trim_matches('"');
        let utf8 = ["utf-8", "utf8", "us-ascii"].iter().any(|known| value.eq_ignore_ascii_case(known));
        if name.eq_ignore_ascii_case("charset") && !utf8 {
            return Err(wrong("must be in UTF-8, the only charset of JSON"));
        }
    }
    Ok(())
}

/// The media type of a JSON merge patch.
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";

fn wrong(message: &str) -> ApiError {
    ApiError::invalid(vec![FieldProblem { field: "body".to_owned(), message: message.to_owned() }])
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn status(method: &Method, kinds: &[&str]) -> u16 {
        let mut headers = HeaderMap::new();
        for kind in kinds {
            headers.append(CONTENT_TYPE, HeaderValue::from_str(kind).unwrap());
        }
        super::kind(method, &headers).err().map_or(200, |error| error.into_response().status().as_u16())
    }

    #[test]
    fn only_json_in_utf8_is_taken() {
        let cases: &[(&[&str], u16)] = &[
            (&["application/json"], 200),
            (&["Application/JSON; charset=UTF-8"], 200),
            (&["application/json;charset=\"utf-8\""], 200),
            (&["application/json; x"], 200),
            (&["application/json; charset=utf-16"], 400),
            (&["application/json; charset=latin1"], 400),
            (&[], 415),
            (&["text/html"], 415),
            (&["application/jsonp"], 415),
            (&["application/x-www-form-urlencoded"], 415),
            (&["application/json", "text/plain"], 415),
        ];
        for (kinds, expected) in cases {
            assert_eq!(status(&Method::POST, kinds), *expected, "{kinds:?}");
        }
    }

    #[test]
    fn a_merge_patch_is_the_body_of_a_patch_alone() {
        let kinds = ["application/merge-patch+json; charset=utf-8"];
        assert_eq!(status(&Method::PATCH, &kinds), 200);
        assert_eq!(status(&Method::PATCH, &["application/json"]), 200);
        assert_eq!(status(&Method::PATCH, &["application/json-patch+json"]), 415);
        for method in [Method::POST, Method::PUT] {
            assert_eq!(status(&method, &kinds), 415, "{method}");
        }
    }

    #[test]
    fn a_compressed_body_is_refused() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        assert_eq!(kind(&Method::POST, &headers).unwrap_err().into_response().status(), 415);
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("identity"));
        assert!(kind(&Method::POST, &headers).is_ok());
    }
}
