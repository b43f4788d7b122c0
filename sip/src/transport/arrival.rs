//! What any socket brings.

use bytes::Bytes;

use crate::flow::Flow;
use crate::message::{Message, Rejection};

/// An arrival from the network.
#[derive(Debug)]
pub enum Arrival {
    /// A connection ended that was trusted or that we opened; unanswered messages on it will not be answered.
    Closed(Flow),
    /// A datagram.
    Datagram {
        /// Its flow.
        flow: Flow,
        /// Its bytes.
        bytes: Bytes,
    },
    /// A message of a stream.
    Message {
        /// Its flow.
        flow: Flow,
        /// The message, which the guard accepted.
        message: Message,
    },
    /// The stream contained an invalid message; it was answered if possible.
    Rejected {
        /// Its flow.
        flow: Flow,
        /// The rule it broke.
        reason: Rejection,
    },
}
