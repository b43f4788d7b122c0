//! The parts of a message that the user writes; the user agent adds the rest.

use bytes::Bytes;

use crate::flow::Flow;
use crate::message::{Headers, InvalidValue, Method, Name, Request, StatusCode};

/// Headers and a body that the user adds to a message.
///
/// A header given here replaces one that the user agent would write, for example the Contact in the 200 to a
/// REGISTER.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extra {
    /// A name may occur more than once. Boxed, so that a reply stays small.
    headers: Option<Box<Headers>>,
    /// The first header that cannot be written; sending fails with it.
    invalid: Option<InvalidValue>,
    /// The body.
    pub content: Option<Content>,
}

/// A body and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Content-Type.
    pub content_type: String,
    /// The bytes.
    pub body: Bytes,
}

/// A request outside dialogs: REGISTER, OPTIONS, MESSAGE. Call-ID, CSeq, From tag, Via and Max-Forwards are added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    pub(super) method: Method,
    pub(super) uri: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) call_id: Option<String>,
    pub(super) cseq: u32,
    pub(super) extra: Extra,
    pub(super) wide: Option<Flow>,
}

/// An INVITE that begins a leg. A body is treated as an offer, and the ACK of the answer is then sent
/// automatically; without a body the user must send the ACK with its answer ([`Ua::ack`](super::Ua::ack)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invite(pub(super) Draft);

/// A response; Via, From, To, Call-ID, CSeq, Contact and Record-Route are added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub(super) status: StatusCode,
    pub(super) reason: Option<String>,
    pub(super) extra: Extra,
}

impl Reply {
    /// Whether it has a body.
    pub(super) fn has_content(&self) -> bool {
        self.extra.content.is_some()
    }
}

impl Extra {
    /// No headers and no body.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        let headers = self.headers.get_or_insert_default();
        if let Err(error) = headers.push(Name::from(name.as_ref()), value.as_ref()) {
            self.invalid.get_or_insert(error);
        }
        self
    }

    /// Adds headers.
    #[must_use]
    pub fn headers(mut self, headers: Headers) -> Self {
        match &mut self.headers {
            None => self.headers = Some(Box::new(headers)),
            Some(earlier) => {
                if let Err(error) = earlier.append(&headers) {
                    self.invalid.get_or_insert(error);
                }
            }
        }
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn content(mut self, content_type: impl Into<String>, body: impl Into<Bytes>) -> Self {
        self.content = Some(Content { content_type: content_type.into(), body: body.into() });
        self
    }

    pub(super) fn with_content(self, content: Content) -> Self {
        Self { content: Some(content), ..self }
    }

    /// Writes the headers and the body into a request.
    pub(super) fn write_to(&self, request: &mut Request) -> Result<(), InvalidValue> {
        self.write_headers(request.headers_mut())?;
        match &self.content {
            Some(content) => request.set_body(&content.content_type, content.body.clone()),
            None => Ok(()),
        }
    }

    /// Writes the headers over existing ones: the first of a name replaces, the others are added.
    pub(super) fn write_headers(&self, headers: &mut Headers) -> Result<(), InvalidValue> {
        match (self.invalid, &self.headers) {
            (Some(error), _) => Err(error),
            (None, Some(own)) => headers.overlay(own),
            (None, None) => Ok(()),
        }
    }
}

impl Content {
    /// A body of this type.
    pub fn new(content_type: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self { content_type: content_type.into(), body: body.into() }
    }
}

impl Draft {
    /// A request to `uri`; `from` and `to` are header values, without tags.
    pub fn new(
        method: Method,
        uri: impl Into<String>,
        from: impl Into<String>,
        to: impl Into<String>,
    ) -> Self {
        Self {
            method,
            uri: uri.into(),
            from: from.into(),
            to: to.into(),
            call_id: None,
            cseq: 1,
            extra: Extra::new(),
            wide: None,
        }
    }

    /// A MESSAGE (RFC 3428); its result is [`MessageAnswered`](super::Event::MessageAnswered). The proxies in
    /// the path of a binding are added as Route headers.
    pub fn message(
        uri: impl Into<String>,
        from: impl Into<String>,
        to: impl Into<String>,
        content: Content,
    ) -> Self {
        let draft = Self::new(Method::Message, uri, from, to);
        Self { extra: draft.extra.with_content(content), ..draft }
    }

    /// Sets a connection of the same peer for a request that is too long for a datagram.
    #[must_use]
    pub fn wide(mut self, connection: Option<Flow>) -> Self {
        self.wide = connection;
        self
    }

    /// Sets Call-ID and CSeq number: all REGISTERs of one phone have the same Call-ID and increasing numbers
    /// (§10.2).
    #[must_use]
    pub fn sequence(mut self, call_id: impl Into<String>, cseq: u32) -> Self {
        (self.call_id, self.cseq) = (Some(call_id.into()), cseq);
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.extra = self.extra.header(name, value);
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn content(mut self, content_type: impl Into<String>, body: impl Into<Bytes>) -> Self {
        self.extra = self.extra.content(content_type, body);
        self
    }
}

impl Invite {
    /// An INVITE to `uri`; `from` and `to` are header values, without tags.
    pub fn new(uri: impl Into<String>, from: impl Into<String>, to: impl Into<String>) -> Self {
        Self(Draft::new(Method::Invite, uri, from, to))
    }

    /// Sets the Call-ID, which is random otherwise.
    #[must_use]
    pub fn call_id(mut self, call_id: impl Into<String>) -> Self {
        self.0.call_id = Some(call_id.into());
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        Self(self.0.header(name, value))
    }

    /// Sets the offer.
    #[must_use]
    pub fn content(self, content_type: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self(self.0.content(content_type, body))
    }
}

impl Reply {
    /// A response with the usual phrase.
    pub fn new(status: StatusCode) -> Self {
        Self { status, reason: None, extra: Extra::new() }
    }

    /// Sets the phrase.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.extra = self.extra.header(name, value);
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn content(mut self, content_type: impl Into<String>, body: impl Into<Bytes>) -> Self {
        self.extra = self.extra.content(content_type, body);
        self
    }

    /// Adds headers.
    #[must_use]
    pub fn headers(mut self, headers: Headers) -> Self {
        self.extra = self.extra.headers(headers);
        self
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }
}
