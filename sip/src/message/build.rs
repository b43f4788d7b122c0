//! Builders that add headers one by one; the first invalid value is reported at the end.

use std::fmt::Display;

use bytes::Bytes;

use crate::message::{InvalidValue, Method, Name, Request, Response, StatusCode};

impl Request {
    /// Starts a request that is built header by header.
    pub fn builder(method: Method, uri: impl Display) -> RequestBuilder {
        RequestBuilder::new(method, uri)
    }
}

impl Response {
    /// Starts a response that is built header by header; an empty phrase is the usual one of the status.
    pub fn builder(status: StatusCode, reason: &str) -> ResponseBuilder {
        ResponseBuilder::new(status, reason)
    }
}

/// Builds a [`Request`].
#[derive(Clone, Debug)]
pub struct RequestBuilder(Result<Request, InvalidValue>);

impl RequestBuilder {
    pub(crate) fn new(method: Method, uri: impl Display) -> Self {
        Self(Request::new(method, uri))
    }

    /// Appends a header line.
    #[must_use]
    pub fn header<'a>(self, name: impl Into<Name<'a>>, value: impl Display) -> Self {
        Self(self.0.and_then(|mut request| request.push(name, value).map(|()| request)))
    }

    /// Sets the body with its Content-Type.
    #[must_use]
    pub fn body(self, content_type: &str, body: impl Into<Bytes>) -> Self {
        Self(self.0.and_then(|mut request| request.set_body(content_type, body).map(|()| request)))
    }

    /// The request.
    ///
    /// # Errors
    ///
    /// The first invalid value.
    pub fn build(self) -> Result<Request, InvalidValue> {
        self.0
    }
}

/// Builds a [`Response`].
#[derive(Clone, Debug)]
pub struct ResponseBuilder(Result<Response, InvalidValue>);

impl ResponseBuilder {
    pub(crate) fn new(status: StatusCode, reason: &str) -> Self {
        let mut response = Response::new(status);
        if reason.is_empty() {
            return Self(Ok(response));
        }
        Self(response.set_reason(reason).map(|()| response))
    }

    /// Appends a header line.
    #[must_use]
    pub fn header<'a>(self, name: impl Into<Name<'a>>, value: impl Display) -> Self {
        Self(self.0.and_then(|mut response| response.push(name, value).map(|()| response)))
    }

    /// Sets the body with its Content-Type.
    #[must_use]
    pub fn body(self, content_type: &str, body: impl Into<Bytes>) -> Self {
        Self(self.0.and_then(|mut response| response.set_body(content_type, body).map(|()| response)))
    }

    /// The response.
    ///
    /// # Errors
    ///
    /// The first invalid value.
    pub fn build(self) -> Result<Response, InvalidValue> {
        self.0
    }
}
