//! A request: its method, its Request-URI, its headers and its body (RFC 3261 §7.1).

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};

use bytes::{Bytes, BytesMut};

use crate::message::scan::Cursor;
use crate::message::uri::{Kind, Parts};
use crate::message::via::Noted;
use crate::message::{FieldError, Headers, Hop, InvalidValue, Malformed, Method, Name, Uri};

/// A request. The methods of [`Headers`], to which it dereferences, read and change its headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    method: Method,
    /// UTF-8, checked where it is set.
    uri: Bytes,
    headers: Headers,
    body: Bytes,
}

impl Request {
    /// A request without headers and body.
    ///
    /// # Errors
    ///
    /// When the URI is not valid in a request line.
    pub fn new(method: Method, uri: impl Display) -> Result<Self, InvalidValue> {
        let uri = uri.to_string();
        check_uri(&uri).map_err(|_| InvalidValue::Uri)?;
        if !crate::message::scan::is_token(method.as_str().as_bytes()) {
            return Err(InvalidValue::Token);
        }
        Ok(Self { method, uri: Bytes::from(uri), headers: Headers::new(), body: Bytes::new() })
    }

    /// A received request; the guard has checked every part.
    pub(crate) const fn from_parts(method: Method, uri: Bytes, headers: Headers, body: Bytes) -> Self {
        Self { method, uri, headers, body }
    }

    /// Changes the Request-URI.
    ///
    /// # Errors
    ///
    /// When it is not valid in a request line.
    pub fn set_uri(&mut self, uri: impl Display) -> Result<(), InvalidValue> {
        let uri = uri.to_string();
        check_uri(&uri).map_err(|_| InvalidValue::Uri)?;
        self.uri = Bytes::from(uri);
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

    /// Removes the body and its Content-Type.
    pub fn clear_body(&mut self) {
        self.headers.remove(Name::ContentType);
        self.body = Bytes::new();
    }

    /// Adds the source of the request to the top Via (RFC 3261 §18.2.1, RFC 3581 §4); returns where its responses
    /// go over an unreliable transport.
    ///
    /// `maddr` is not used: it would let a sender direct our responses to another host.
    ///
    /// # Errors
    ///
    /// When there is no valid Via.
    pub fn note_source(&mut self, source: SocketAddr) -> Result<SocketAddr, FieldError> {
        let line = self.headers.header(Name::Via).ok_or(FieldError::Missing("Via"))?;
        let top = Hop::take(&mut Cursor::new(line)).map_err(|_| FieldError::Malformed("Via"))?;
        let response_to = top.response_to(source);
        if !top.is_noted(source) {
            let line = line.to_owned();
            let noted = Noted { line: &line, source };
            self.headers.set_first(Name::Via, noted).map_err(|_| FieldError::Malformed("Via"))?;
        }
        Ok(response_to)
    }

    /// The method.
    #[must_use]
    pub const fn method(&self) -> &Method {
        &self.method
    }

    /// The Request-URI as it was written.
    #[must_use]
    pub fn uri(&self) -> &str {
        std::str::from_utf8(&self.uri).unwrap_or_default()
    }

    /// Whether the Request-URI is a `sips:` URI: every hop must be secure (RFC 3261 §26.2.2).
    #[must_use]
    pub fn is_sips(&self) -> bool {
        self.uri().get(.."sips:".len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case("sips:"))
    }

    /// The Request-URI, parsed.
    ///
    /// # Errors
    ///
    /// Never for a received request: the guard has parsed it.
    pub fn parsed_uri(&self) -> Result<Uri, Malformed> {
        Uri::parse(self.uri())
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

    /// Length of [`Request::to_bytes`].
    pub(crate) fn wire_len(&self) -> usize {
        let start = self.method.as_str().len() + self.uri.len() + START_LEN;
        start + self.headers.wire_len() + self.headers.end_len(self.body.len()) + self.body.len()
    }

    /// The request as sent on the wire; Content-Length is that of the body.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(self.wire_len());
        out.extend_from_slice(self.method.as_str().as_bytes());
        out.extend_from_slice(b" ");
        out.extend_from_slice(&self.uri);
        out.extend_from_slice(b" SIP/2.0\r\n");
        self.headers.write(&mut out, self.body.len());
        out.extend_from_slice(&self.body);
        out.freeze()
    }
}

/// Length of the spaces, the version and the CRLF of a request line.
const START_LEN: usize = 11;

impl Deref for Request {
    type Target = Headers;

    fn deref(&self) -> &Headers {
        &self.headers
    }
}

impl DerefMut for Request {
    fn deref_mut(&mut self) -> &mut Headers {
        &mut self.headers
    }
}

/// Checks that a URI is valid in a request line: no headers part (RFC 3261 §19.1.1, table 1).
pub(crate) fn check_uri(uri: &str) -> Result<Kind, Malformed> {
    let parts = Parts::split(uri)?;
    if parts.kind != Kind::Other && parts.headers.is_some() {
        return Err(Malformed("Request-URI"));
    }
    Ok(parts.kind)
}
