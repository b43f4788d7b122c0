//! A response: its status, its phrase, its headers and its body (RFC 3261 §7.2, §8.2.6).

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::{Deref, DerefMut};

use bytes::{Bytes, BytesMut};

use crate::message::scan::is_token;
use crate::message::{Headers, InvalidValue, Name, Request, StatusCode};

/// A response. The methods of [`Headers`], to which it dereferences, read and change its headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    status: StatusCode,
    reason: Bytes,
    headers: Headers,
    body: Bytes,
}

impl Response {
    /// A response without headers and body, with the usual phrase of its status.
    #[must_use]
    pub const fn new(status: StatusCode) -> Self {
        let reason = Bytes::from_static(status.default_reason().as_bytes());
        Self { status, reason, headers: Headers::new(), body: Bytes::new() }
    }

    /// The response to a request according to RFC 3261 §8.2.6: Via, From, To, Call-ID and CSeq copied byte
    /// for byte.
    ///
    /// The caller adds a To tag with [`Response::set_to_tag`]; a 100 has none and copies Timestamp.
    #[must_use]
    pub fn reply_to(request: &Request, status: StatusCode) -> Self {
        let mut response = Self::new(status);
        response.headers = Headers::with_capacity(REPLY_LINES, REPLY_BYTES);
        for name in [Name::Via, Name::From, Name::To, Name::CallId, Name::CSeq] {
            response.headers.copy_from(request.headers(), name);
        }
        if status == StatusCode::TRYING {
            response.headers.copy_from(request.headers(), Name::Timestamp);
        }
        response
    }

    /// Length of the response to a request without further headers and body, as it is sent.
    pub(crate) fn reply_len(request: &Request, status: StatusCode) -> usize {
        let copied = [Name::Via, Name::From, Name::To, Name::CallId, Name::CSeq];
        let lines: usize = copied.into_iter().map(|name| request.headers().lines_len(name)).sum();
        START_LEN + status.default_reason().len() + lines + Headers::new().end_len(0)
    }

    /// A received response; the guard has checked every part.
    pub(crate) const fn from_parts(status: StatusCode, reason: Bytes, headers: Headers, body: Bytes) -> Self {
        Self { status, reason, headers, body }
    }

    /// Adds a tag to To unless it has one.
    ///
    /// # Errors
    ///
    /// When the tag is not a token, or To is absent or malformed.
    pub fn set_to_tag(&mut self, tag: &str) -> Result<(), InvalidValue> {
        if !is_token(tag.as_bytes()) {
            return Err(InvalidValue::Token);
        }
        if !self.headers.to_tag().map_err(|_| InvalidValue::Token)?.is_empty() {
            return Ok(());
        }
        self.headers.extend_value(Name::To, &[b";tag=", tag.as_bytes()])
    }

    /// Changes the phrase.
    ///
    /// # Errors
    ///
    /// When it contains CR, LF or NUL.
    pub fn set_reason(&mut self, reason: &str) -> Result<(), InvalidValue> {
        if reason.bytes().any(|b| matches!(b, b'\r' | b'\n' | 0)) {
            return Err(InvalidValue::Control);
        }
        self.reason = Bytes::copy_from_slice(reason.as_bytes());
        Ok(())
    }

    /// Changes the body and its Content-Type.
    ///
    /// # Errors
    ///
    /// When the type contains CR, LF or NUL.
    pub fn set_body(&mut self, content_type: &str, body: impl Into<Bytes>) -> Result<(), InvalidValue> {
        self.headers.set(Name::ContentType, content_type)?;
        self.body = body.into();
        Ok(())
    }

    /// The status.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The phrase, converted to UTF-8 for display; it is written back unchanged.
    #[must_use]
    pub fn reason(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.reason)
    }

    /// The headers.
    #[must_use]
    pub const fn headers(&self) -> &Headers {
        &self.headers
    }

    /// The headers, mutable.
    pub const fn headers_mut(&mut self) -> &mut Headers {
        &mut self.headers
    }

    /// The body, bytes unchanged.
    #[must_use]
    pub const fn body(&self) -> &Bytes {
        &self.body
    }

    pub(crate) fn put_body(&mut self, body: Bytes) {
        self.body = body;
    }

    /// Length of [`Response::to_bytes`].
    pub(crate) fn wire_len(&self) -> usize {
        START_LEN
            + self.reason.len()
            + self.headers.wire_len()
            + self.headers.end_len(self.body.len())
            + self.body.len()
    }

    /// The response as sent on the wire; Content-Length is that of the body.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(self.wire_len());
        // Writing to a BytesMut cannot fail.
        let _ = write!(out, "SIP/2.0 {} ", self.status);
        out.extend_from_slice(&self.reason);
        out.extend_from_slice(b"\r\n");
        self.headers.write(&mut out, self.body.len());
        out.extend_from_slice(&self.body);
        out.freeze()
    }
}

/// Length of `SIP/2.0 200 ` and the CRLF after the phrase.
const START_LEN: usize = 14;
/// Space for the lines of most responses.
const REPLY_LINES: usize = 12;
/// Space for their bytes.
const REPLY_BYTES: usize = 640;

impl Deref for Response {
    type Target = Headers;

    fn deref(&self) -> &Headers {
        &self.headers
    }
}

impl DerefMut for Response {
    fn deref_mut(&mut self) -> &mut Headers {
        &mut self.headers
    }
}
