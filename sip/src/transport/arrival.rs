//! What any socket brings.

use bytes::Bytes;

use crate::flow::Flow;
use crate::message::{Message, Rejection};

/// What the network brought.
#[derive(Debug)]
pub enum Arrival {
    /// A connection ended that somebody trusts or that we opened: what was sent by it and is not answered will not be.
    Closed(Flow),
    /// A datagram.
    Datagram {
        /// Where it came from.
        flow: Flow,
        /// Its bytes.
        bytes: Bytes,
    },
    /// A message of a stream.
    Message {
        /// Where it came from.
        flow: Flow,
        /// The message, as it passed the guard.
        message: Message,
    },
    /// What came in a stream was no message; it was answered where that is possible.
    Rejected {
        /// Where it came from.
        flow: Flow,
        /// The rule it broke.
        reason: Rejection,
    },
}
