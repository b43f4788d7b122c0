//! What a layer tells its user and its driver.

use bytes::Bytes;
use thiserror::Error;

use crate::flow::Flow;
use crate::message::{InvalidValue, Rejection, Request, Response};
use crate::transaction::{ClientKey, ServerKey, Timer};

/// Something to do, or to know.
#[expect(clippy::large_enum_variant, reason = "drained at once, never stored")]
#[derive(Debug)]
pub enum Output {
    /// For the transaction user.
    Event(Event),
    /// A table is full; the message it had no room for was answered 503 (an ACK: dropped).
    Overload {
        /// Where the message came from.
        flow: Flow,
    },
    /// What came was no message; it was answered where that is possible.
    Rejected {
        /// Where it came from.
        flow: Flow,
        /// The rule it broke.
        reason: Rejection,
    },
    /// Send these bytes.
    Transmit {
        /// To where.
        flow: Flow,
        /// One whole message.
        bytes: Bytes,
        /// The transaction to name in [`Input::TransportError`](super::Input::TransportError) if sending fails.
        key: Option<ClientKey>,
    },
    /// An answer to a stranger was not sent: its shortest form is more than one and a half times what came.
    Withheld {
        /// Where the request came from.
        flow: Flow,
    },
}

/// What happened, in the terms of a transaction user (RFC 3261 §17).
#[derive(Debug)]
pub enum Event {
    /// An ACK that is not the end of a failed INVITE: for a 2xx, or a stray.
    Ack {
        /// Where it came from.
        flow: Flow,
        /// The ACK.
        request: Request,
    },
    /// A failure response to an INVITE was never acknowledged (timer H).
    AckTimeout {
        /// The INVITE.
        key: ServerKey,
    },
    /// A CANCEL came in time; it has been answered 200, and the INVITE now wants its 487 (§9.2).
    Cancelled {
        /// The INVITE.
        key: ServerKey,
        /// The CANCEL.
        request: Request,
    },
    /// A new request.
    Request {
        /// Its transaction.
        key: ServerKey,
        /// Where it came from.
        flow: Flow,
        /// The request, its top Via completed with `received` and `rport`.
        request: Request,
    },
    /// A response to one of our requests.
    Response {
        /// Its transaction.
        key: ClientKey,
        /// Where it came from.
        flow: Flow,
        /// The response.
        response: Response,
        /// Our request, handed back with the first final response.
        request: Option<Request>,
    },
    /// A 2xx to an INVITE whose transaction is over: its ACK was lost and is to be sent again (§13.2.2.4).
    StraySuccess {
        /// Where it came from.
        flow: Flow,
        /// The response.
        response: Response,
    },
    /// No final response came; to be treated as a 408 (§8.1.3.1).
    Timeout {
        /// The transaction.
        key: ClientKey,
        /// Which timer ended it.
        timer: Timer,
        /// Our request.
        request: Option<Request>,
    },
    /// The request could not be sent; to be treated as a 503 (§8.1.3.1).
    TransportError {
        /// The transaction.
        key: ClientKey,
        /// Our request.
        request: Option<Request>,
    },
}

/// Why a request was not sent. Completes "failed to send the request: …".
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// A header value or the URI cannot be written.
    #[error(transparent)]
    InvalidValue(#[from] InvalidValue),
    /// The table of client transactions or of legs is full.
    #[error("too many transactions or legs are open")]
    Overload,
    /// What the call names is over, or its state does not allow it.
    #[error("the leg is not in a state for it")]
    WrongState,
}

/// What a layer absorbed without telling anybody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests seen again.
    pub retransmitted_requests: u64,
    /// Requests answered 482 because they came by two paths (§8.2.2.2).
    pub merged_requests: u64,
    /// Responses that belong to no transaction.
    pub stray_responses: u64,
    /// Responses dropped for more than one Via (§8.1.3.3).
    pub misrouted_responses: u64,
}
