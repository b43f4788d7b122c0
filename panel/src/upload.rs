//! Forms with a file, as browsers send them (`multipart/form-data`, RFC 7578).

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use memchr::memmem;
use sidetone_model::prompt::Prompt;

use crate::failure::Failure;
use crate::session::is_same;
use crate::state::Panel;
use crate::visitor::{Visitor, is_own, not_own};

/// A form with a WAV file that the user sent, and may store.
pub(crate) struct Upload {
    pub(crate) visitor: Visitor,
    /// The name of the prompt; empty when it was not entered.
    pub(crate) name: String,
    /// The file; empty when none was chosen.
    pub(crate) wav: Vec<u8>,
}

impl FromRequest<Panel> for Upload {
    type Rejection = Response;

    async fn from_request(request: Request, panel: &Panel) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, panel).await?;
        // Before the body: without the permission, a visitor makes this process keep no file.
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

/// What the form contains.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    csrf: String,
    name: String,
    wav: Vec<u8>,
}

/// Reads the body of the form.
///
/// # Errors
/// 415 for another kind of body, 413 when it is too long, 408 when it does not arrive in time, 400 when it is not whole.
async fn read(headers: &HeaderMap, body: Body) -> Result<Read, Failure> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let Some(boundary) = boundary(kind) else {
        return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send the form of the page"));
    };
    let too_long = || {
        let message = "the file is too long: choose a WAV file of at most 4 MiB";
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if declared.is_some_and(|len: usize| len > BODY_LEN_MAX) {
        return Err(too_long());
    }
    match tokio::time::timeout(BODY_TIME, to_bytes(body, BODY_LEN_MAX)).await {
        Ok(Ok(bytes)) => fields(boundary, &bytes).ok_or_else(|| {
            Failure::new(StatusCode::BAD_REQUEST, "the form did not arrive whole, send it again")
        }),
        Ok(Err(_)) => Err(too_long()),
        Err(_) => Err(Failure::new(
            StatusCode::REQUEST_TIMEOUT,
            "the file took too long to arrive, send it again or choose a shorter one",
        )),
    }
}

/// The boundary of a `multipart/form-data` (RFC 2046 §5.1.1); `None` for another kind, or without a valid one.
fn boundary(kind: &str) -> Option<&str> {
    let (essence, parameters) = kind.split_once(';')?;
    if !essence.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let found = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.trim().split_once('=')?;
        name.eq_ignore_ascii_case("boundary").then_some(value)
    })?;
    let boundary = found.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(found);
    (1..=BOUNDARY_LEN_MAX).contains(&boundary.len()).then_some(boundary)
}

/// The fields of the form; `None` when it has no end, or more parts than any form of the panel.
fn fields(boundary: &str, body: &[u8]) -> Option<Read> {
    let (first, delimiter) = (format!("--{boundary}"), format!("\r\n--{boundary}"));
    let finder = memmem::Finder::new(delimiter.as_bytes());
    let mut rest = body.strip_prefix(first.as_bytes())?;
    let mut read = Read::default();
    for _ in 0..PARTS_MAX {
        if rest.starts_with(b"--") {
            return Some(read);
        }
        let part = rest.strip_prefix(b"\r\n")?;
        let end = finder.find(part)?;
        let (content, after) = part.split_at_checked(end)?;
        let head_len = memmem::find(content, b"\r\n\r\n")?;
        let (head, content) = content.split_at_checked(head_len)?;
        let content = content.get(4..)?;
        match name_of(head)? {
            "body" => read.wav = content.to_vec(),
            "csrf" => read.csrf = String::from_utf8_lossy(content).into_owned(),
            "name" => read.name = String::from_utf8_lossy(content).trim().to_owned(),
            // A field that the form does not have.
            _ => {}
        }
        rest = after.get(delimiter.len()..)?;
    }
    None
}

/// The name in the `Content-Disposition` of a part. Browsers write it before the name of the file, in quotes.
fn name_of(head: &[u8]) -> Option<&str> {
    let head = std::str::from_utf8(head).ok()?;
    let line = head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-disposition").then_some(value)
    })?;
    let (_, rest) = line.split_once("; name=\"")?;
    Some(rest.split_once('"')?.0)
}

/// Storing prompts needs a permission that the user does not have.
pub(crate) fn not_permitted() -> Failure {
    Failure::new(StatusCode::FORBIDDEN, format!("changing prompts needs the permission {PERMISSION}"))
}

/// The permission to store a sound.
pub(crate) const PERMISSION: &str = "conferences:write";
/// The longest form: the longest file, and the other fields.
const BODY_LEN_MAX: usize = Prompt::WAV_BYTES_MAX + 16 * 1024;
/// How long a form may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(60);
/// RFC 2046 §5.1.1.
const BOUNDARY_LEN_MAX: usize = 70;
/// Parts of a form; the panel's have three.
const PARTS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    const FORM: &str = "--X\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\ntoken\r\n\
                        --X\r\ncontent-disposition: form-data; name=\"name\"\r\n\r\n own-a \r\n\
                        --X\r\nContent-Disposition: form-data; name=\"body\"; filename=\"a; name=b.wav\"\r\n\
                        Content-Type: audio/wav\r\n\r\nRIFF\r\n\r\n--\r\n--X--\r\n";

    fn headers(kind: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))])
    }

    #[test]
    fn a_form_of_a_browser_is_read() {
        let expected =
            Read { csrf: "token".to_owned(), name: "own-a".to_owned(), wav: b"RIFF\r\n\r\n--".to_vec() };
        assert_eq!(fields("X", FORM.as_bytes()), Some(expected));
    }

    #[test]
    fn a_form_that_is_not_whole_is_refused() {
        let whole = FORM.strip_suffix("--\r\n").unwrap();
        for len in 0..whole.len() {
            assert_eq!(fields("X", &FORM.as_bytes()[..len]), None, "{len}");
        }
        let part = "--X\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n";
        assert_eq!(fields("X", format!("{}--X--", part.repeat(PARTS_MAX)).as_bytes()), None);
        assert!(fields("X", format!("{}--X--", part.repeat(PARTS_MAX - 1)).as_bytes()).is_some());
    }

    #[test]
    fn the_boundary_is_in_the_kind() {
        for (kind, expected) in [
            ("multipart/form-data; boundary=----WebKit1", Some("----WebKit1")),
            ("Multipart/Form-Data; charset=utf-8; Boundary=\"a b\"", Some("a b")),
            ("multipart/form-data", None),
            ("multipart/form-data; boundary=", None),
            ("multipart/mixed; boundary=X", None),
            ("application/x-www-form-urlencoded", None),
        ] {
            assert_eq!(boundary(kind), expected, "{kind}");
        }
        assert_eq!(boundary(&format!("multipart/form-data; boundary={}", "x".repeat(71))), None);
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
        assert_eq!(status(read(&form, Body::from(vec![0; BODY_LEN_MAX + 1])).await), 413);
        assert_eq!(status(read(&form, Body::new(crate::form::tests::Never)).await), 408);
    }

    proptest! {
        #[test]
        fn fuzz_any_file_is_read_back(file in proptest::collection::vec(any::<u8>(), 0..300)) {
            // The boundary is none that the file contains.
            prop_assume!(memmem::find(&file, b"\r\n--X").is_none());
            let mut form = b"--X\r\nContent-Disposition: form-data; name=\"body\"\r\n\r\n".to_vec();
            form.extend_from_slice(&file);
            form.extend_from_slice(b"\r\n--X--");
            let read = fields("X", &form);
            prop_assert!(read.is_some_and(|read| read.wav == file));
        }

        #[test]
        fn fuzz_any_bytes_are_survived(text in "(--X|\r\n|--|: |; name=\"|\"|body|content-disposition){0,40}") {
            let _ = fields("X", format!("--X{text}").as_bytes());
        }
    }
}
