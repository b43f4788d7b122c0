//! The inputs of a layer from its driver, and its outputs for its user and its driver.

use bytes::Bytes;
use thiserror::Error;

use crate::flow::Flow;
use crate::message::{InvalidValue, Message, Rejection, Request, Response};
use crate::transaction::{ClientKey, ServerKey, Timer};

/// Inputs of a layer from its driver.
#[derive(Debug)]
pub enum Input {
    /// A datagram arrived.
    Datagram {
        /// Its flow.
        flow: Flow,
        /// One datagram.
        bytes: Bytes,
    },
    /// A connection has closed. Requests that wait on it are sent again, once, if we can reopen such a connection;
    /// others get no more responses.
    FlowClosed {
        /// The connection.
        flow: Flow,
    },
    /// A connection could not be opened: requests sent on it get no response.
    FlowUnopened {
        /// The connection.
        flow: Flow,
    },
    /// A parsed message arrived, for example from a stream.
    Message {
        /// Its flow.
        flow: Flow,
        /// The message.
        message: Message,
    },
    /// The host of a destination refused a datagram.
    Refused {
        /// Its flow.
        flow: Flow,
        /// Its first bytes.
        bytes: Bytes,
    },
    /// The time of [`Layer::next_timeout`](super::Layer::next_timeout) has been reached.
    Timeout,
    /// An [`Output::Transmit`] with this key could not be sent.
    TransportError {
        /// Its key.
        key: ClientKey,
    },
}

/// An action or an event.
#[expect(clippy::large_enum_variant, reason = "drained at once, never stored")]
#[derive(Debug)]
pub enum Output {
    /// For the transaction user.
    Event(Event),
    /// A table is full; the message for which there was no space was answered 503 (an ACK was dropped).
    Overload {
        /// The flow of the message.
        flow: Flow,
    },
    /// The bytes were not a valid message; they were answered if possible.
    Rejected {
        /// Its flow.
        flow: Flow,
        /// The rule it broke.
        reason: Rejection,
    },
    /// Send these bytes.
    Transmit {
        /// The destination.
        flow: Flow,
        /// One complete message.
        bytes: Bytes,
        /// The transaction for [`Input::TransportError`](super::Input::TransportError) if sending fails.
        key: Option<ClientKey>,
    },
    /// A response to an unauthenticated sender was not sent: its shortest form is more than one and a half
    /// times as long as the request.
    Withheld {
        /// The flow of the request.
        flow: Flow,
    },
}

/// An event for the transaction user (RFC 3261 §17).
#[derive(Debug)]
pub enum Event {
    /// An ACK that does not end a failed INVITE: for a 2xx, or a stray one.
    Ack {
        /// Its flow.
        flow: Flow,
        /// The ACK.
        request: Request,
    },
    /// A failure response to an INVITE was never acknowledged (timer H).
    AckTimeout {
        /// The INVITE.
        key: ServerKey,
    },
    /// A CANCEL arrived in time; it was answered 200, and the user must now answer the INVITE with 487
    /// (§9.2).
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
        /// Its flow.
        flow: Flow,
        /// The request, its top Via completed with `received` and `rport`.
        request: Request,
    },
    /// A response to one of our requests.
    Response {
        /// Its transaction.
        key: ClientKey,
        /// Its flow.
        flow: Flow,
        /// The response.
        response: Response,
        /// Our request, returned with the first final response.
        request: Option<Request>,
    },
    /// A 2xx to an INVITE whose transaction has ended: its ACK was lost and must be sent again (§13.2.2.4).
    StraySuccess {
        /// Its flow.
        flow: Flow,
        /// The response.
        response: Response,
    },
    /// No final response arrived; treat it as a 408 (§8.1.3.1).
    Timeout {
        /// The transaction.
        key: ClientKey,
        /// The timer that ended it.
        timer: Timer,
        /// Our request.
        request: Option<Request>,
    },
    /// The request could not be sent; treat it as a 503 (§8.1.3.1).
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
    /// The transaction or leg has ended, or its state does not allow this.
    #[error("the leg is not in a state for it")]
    WrongState,
}

/// Messages that a layer absorbed without an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Retransmitted requests.
    pub retransmitted_requests: u64,
    /// Requests answered 482 because they arrived by two paths (§8.2.2.2).
    pub merged_requests: u64,
    /// Responses that belong to no transaction.
    pub stray_responses: u64,
    /// Responses dropped because of more than one Via (§8.1.3.3).
    pub misrouted_responses: u64,
}
