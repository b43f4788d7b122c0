//! The facts about a failed request.

use serde::Serialize;

use crate::call::words as named;

named! {
    /// How an attempt failed.
    FailureKind {
        /// The caller hung up before the answer.
        Cancelled = "cancelled",
        /// Credentials were requested, and none were accepted.
        Challenged = "challenged",
        /// A provisional response was seen, and no final one.
        NoFinalResponse = "no_final_response",
        /// No response was seen at all.
        NoResponse = "no_response",
        /// The request was to be sent elsewhere (3xx).
        Redirected = "redirected",
        /// It was refused (4xx, 5xx, 6xx).
        Refused = "refused",
    }
}

/// Why a call was not answered, or a registration not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// The final response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Its phrase, as sent; for a record, the standard's phrase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phrase: Option<String>,
    /// The source of the final response, or the destination that did not answer; `None` in a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_by: Option<String>,
    /// The Server or User-Agent header of the final response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Whether the called side sent 180 or 183 before.
    pub rang: bool,
    /// Requests with distinct CSeq numbers: a request repeated with credentials counts again.
    pub tries: u32,
    /// All copies of requests, including retransmissions.
    pub sent: u32,
    /// The number of consecutive requests that got the final response.
    #[serde(skip_serializing_if = "is_one")]
    pub repeated: u32,
    /// Responses that requested credentials.
    #[serde(skip_serializing_if = "is_zero")]
    pub challenges: u32,
    /// Requests that carried credentials.
    #[serde(skip_serializing_if = "is_zero")]
    pub credentials: u32,
    /// From the first request to the last message, in milliseconds.
    pub lasted_ms: i64,
    /// Reason headers (RFC 3326).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// Warning headers (RFC 3261 §20.43), as received.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Other details from the messages, in complete sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

/// A Reason header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// `SIP`, `Q.850` or another.
    pub protocol: String,
    /// The code of the protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<u16>,
    /// Its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Failure {
    /// A failure of which only the kind is known.
    pub const fn of(kind: FailureKind) -> Self {
        Failure {
            kind,
            status: None,
            phrase: None,
            refused_by: None,
            server: None,
            rang: false,
            tries: 1,
            sent: 1,
            repeated: 1,
            challenges: 0,
            credentials: 0,
            lasted_ms: 0,
            reasons: Vec::new(),
            warnings: Vec::new(),
            details: Vec::new(),
        }
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_one(number: &u32) -> bool {
    *number == 1
}
