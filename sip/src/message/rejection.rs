//! Why a message or a header was refused.

use crate::message::StatusCode;

/// The rule of the guard that a message broke, in the guard's order; each is a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
#[repr(u8)]
pub enum Rejection {
    /// The datagram or the stream message is longer than its limit.
    #[error("message too large")]
    TooLarge,
    /// The message starts with neither a request line nor a status line.
    #[error("not SIP")]
    NotSip,
    /// The head has no empty line at its end.
    #[error("head without end")]
    NoHeadEnd,
    /// The head is longer than its limit.
    #[error("head too large")]
    HeadTooLarge,
    /// More header lines than the limit.
    #[error("too many header lines")]
    TooManyHeaders,
    /// A header value is longer than the limit.
    #[error("header value too long")]
    ValueTooLong,
    /// A CR without LF in the head.
    #[error("bare CR")]
    BareCr,
    /// An LF without CR in the head.
    #[error("bare LF")]
    BareLf,
    /// A NUL byte in the head.
    #[error("NUL byte")]
    Nul,
    /// A header line without a colon, or a continuation before the first header.
    #[error("header line without colon")]
    NoColon,
    /// A header whose name is not a token.
    #[error("header name is not a token")]
    HeaderName,
    /// Content-Length is not a number that fits.
    #[error("malformed Content-Length")]
    ContentLength,
    /// Two Content-Length lines differ.
    #[error("Content-Length lines disagree")]
    ContentLengthConflict,
    /// Content-Length is larger than the datagram's body.
    #[error("Content-Length beyond the datagram")]
    ContentLengthBeyond,
    /// A stream message without Content-Length.
    #[error("stream message without Content-Length")]
    ContentLengthMissing,
    /// The start line does not have three parts separated by single spaces.
    #[error("malformed start line")]
    StartLine,
    /// A SIP version other than 2.0.
    #[error("SIP version is not 2.0")]
    Version,
    /// A response code outside 100 to 699.
    #[error("response code out of range")]
    StatusCode,
    /// The Request-URI is malformed.
    #[error("malformed Request-URI")]
    RequestUri,
    /// The scheme of the Request-URI is not sip, sips or tel.
    #[error("unknown scheme of the Request-URI")]
    Scheme,
    /// No Via.
    #[error("no Via")]
    ViaMissing,
    /// More Via hops than the limit.
    #[error("too many Via hops")]
    TooManyVias,
    /// A Via that cannot be parsed.
    #[error("malformed Via")]
    Via,
    /// No From.
    #[error("no From")]
    FromMissing,
    /// No To.
    #[error("no To")]
    ToMissing,
    /// No Call-ID.
    #[error("no Call-ID")]
    CallIdMissing,
    /// No CSeq.
    #[error("no CSeq")]
    CSeqMissing,
    /// A header that may occur once occurs twice.
    #[error("second value of a single header")]
    Duplicate,
    /// A From that cannot be parsed.
    #[error("malformed From")]
    From,
    /// A To that cannot be parsed.
    #[error("malformed To")]
    To,
    /// A Call-ID that is empty or contains white space.
    #[error("malformed Call-ID")]
    CallId,
    /// A CSeq that cannot be parsed or whose number is 2³¹ or more.
    #[error("malformed CSeq")]
    CSeq,
    /// The method in CSeq differs from the start line.
    #[error("CSeq and start line name different methods")]
    CSeqMethod,
    /// Max-Forwards is not 0 to 255.
    #[error("malformed Max-Forwards")]
    MaxForwards,
    /// A Contact that cannot be parsed.
    #[error("malformed Contact")]
    Contact,
    /// A quote that is not closed.
    #[error("unbalanced quotes")]
    Quotes,
    /// A structured header that is not UTF-8.
    #[error("structured header is not UTF-8")]
    Utf8,
}

impl Rejection {
    /// The number of reasons: the length of an array of counters.
    pub const COUNT: usize = Self::Utf8 as usize + 1;

    /// The index of this reason in an array of counters.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The status of the response to a request refused for this reason.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::HeadTooLarge | Self::TooLarge => StatusCode::ENTITY_TOO_LARGE,
            Self::Version => StatusCode::VERSION_NOT_SUPPORTED,
            Self::Scheme => StatusCode::UNSUPPORTED_URI_SCHEME,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

/// Text that a view cannot parse; the field names what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {0}")]
pub struct Malformed(pub &'static str);

/// Why a typed view of a header is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The header exists but cannot be parsed.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// The header does not exist.
    #[error("missing {0}")]
    Missing(&'static str),
}
