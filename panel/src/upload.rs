//! Forms with a file, as browsers send them (`multipart/form-data`, RFC 7578).

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use multer::{Constraints, Multipart, SizeLimit};
use sidetone_model::prompt::Prompt;

use crate::failure::Failure;
use crate::session::is_same;
use crate::state::Panel;
use crate::visitor::{Visitor, is_own, not_own};

/// A form with a WAV file, sent by a user who may store it.
pub(crate) struct Upload {
    pub(crate) visitor: Visitor,
    /// The name of the prompt; empty when it was not entered.
    pub(crate) name: String,
    /// The file; empty if none was selected.
    pub(crate) wav: Vec<u8>,
}

impl FromRequest<Panel> for Upload {
    type Rejection = Response;

    async fn from_request(request: Request, panel: &Panel) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, panel).await?;
        // Checked before the body is read: no memory is used for the file of a visitor without the
        // permission.
        if !is_own(&parts.headers) {
            return Err(visitor.failed(None, &not_own()));
        }
        if !visitor.me.may(PERMISSION) {
            return Err(visitor.failed(None, &not_permitted()));
        }
        let read = match read(&parts.headers, body).await {
            Ok(read) => read,
            Err(failure) => return Err(visitor.failed(None, &failure)),
        };
        if !is_same(&read.csrf, &visitor.me.form_token) {
            return Err(visitor.failed(None, &not_own()));
        }
        Ok(Self { visitor, name: read.name, wav: read.wav })
    }
}

/// The contents of the form.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    csrf: String,
    name: String,
    wav: Vec<u8>,
}

/// Reads the body of the form.
///
/// # Errors
/// 415 for another kind of body, 413 if it is too long, 408 if it does not arrive in time, 400 if it is incomplete.
async fn read(headers: &HeaderMap, body: Body) -> Result<Read, Failure> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let Ok(boundary) = multer::parse_boundary(kind) else {
        return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send the form of the page"));
    };
    let too_long = || {
        let message = "the file is too long: choose a WAV file of at most 4 MiB";
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if declared.is_some_and(|len: u64| len > BODY_LEN_MAX) {
        return Err(too_long());
    }
    let bounded = Constraints::new().size_limit(SizeLimit::new().whole_stream(BODY_LEN_MAX));
    let form = Multipart::with_constraints(body.into_data_stream(), boundary, bounded);
    match tokio::time::timeout(BODY_TIME, fields(form)).await {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(multer::Error::StreamSizeExceeded { .. })) => Err(too_long()),
        Ok(Err(_)) => {
            Err(Failure::new(StatusCode::BAD_REQUEST, "the form did not arrive whole, send it again"))
        }
        Err(_) => Err(Failure::new(
            StatusCode::REQUEST_TIMEOUT,
            "the file took too long to arrive, send it again or choose a shorter one",
        )),
    }
}

/// Reads the fields of the form; other fields are ignored.
async fn fields(mut form: Multipart<'_>) -> Result<Read, multer::Error> {
    let mut read = Read::default();
    while let Some(field) = form.next_field().await? {
        match field.name() {
            Some("body") => read.wav = field.bytes().await?.into(),
            Some("csrf") => read.csrf = field.text().await?,
            Some("name") => read.name = field.text().await?.trim().to_owned(),
            _ => {}
        }
    }
    Ok(read)
}

/// Storing prompts needs a permission that the user does not have.
pub(crate) fn not_permitted() -> Failure {
    Failure::new(StatusCode::FORBIDDEN, format!("changing prompts needs the permission {PERMISSION}"))
}

/// The permission to store a sound.
pub(crate) const PERMISSION: &str = "conferences:write";
/// The longest form: the longest file plus the other fields.
const BODY_LEN_MAX: u64 = Prompt::WAV_BYTES_MAX as u64 + 16 * 1024;
/// How long a form may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const FORM: &str = "--X\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\ntoken\r\n\
                        --X\r\ncontent-disposition: form-data; name=\"name\"\r\n\r\n own-a \r\n\
                        --X\r\nContent-Disposition: form-data; name=\"body\"; filename=\"a; name=b.wav\"\r\n\
                        Content-Type: audio/wav\r\n\r\nRIFF\r\n\r\n--\r\n--X--\r\n";

    fn headers(kind: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))])
    }

    async fn read_of(form: impl Into<Body>) -> Result<Read, u16> {
        let read = read(&headers("multipart/form-data; boundary=X"), form.into()).await;
        read.map_err(|failure| failure.status.as_u16())
    }

    #[tokio::test]
    async fn a_form_of_a_browser_is_read() {
        let expected =
            Read { csrf: "token".to_owned(), name: "own-a".to_owned(), wav: b"RIFF\r\n\r\n--".to_vec() };
        assert_eq!(read_of(FORM).await, Ok(expected));
    }

    #[tokio::test]
    async fn a_form_that_is_not_whole_is_refused() {
        let whole = FORM.strip_suffix("--\r\n").unwrap();
        for len in 0..whole.len() {
            assert_eq!(read_of(&FORM[..len]).await, Err(400), "{len}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_form_is_bounded_in_kind_length_and_time() {
        let form = headers("multipart/form-data; boundary=X");
        assert_eq!(read(&form, Body::from(FORM)).await.unwrap().csrf, "token");
        let status = |read: Result<Read, Failure>| read.unwrap_err().status.as_u16();
        assert_eq!(status(read(&headers("text/plain"), Body::from(FORM)).await), 415);
        assert_eq!(status(read(&form, Body::from("--X")).await), 400);
        let mut declared = form.clone();
        declared.insert(CONTENT_LENGTH, HeaderValue::from(BODY_LEN_MAX + 1));
        assert_eq!(status(read(&declared, Body::from("")).await), 413);
        assert_eq!(status(read(&form, Body::from(vec![0; BODY_LEN_MAX as usize + 1])).await), 413);
        assert_eq!(status(read(&form, Body::new(crate::form::tests::Never)).await), 408);
    }
}
