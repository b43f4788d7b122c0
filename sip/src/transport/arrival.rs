//! The events that any socket reports.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use crate::flow::Flow;
use crate::message::{Message, Rejection};

/// An arrival from the network.
#[derive(Debug)]
pub enum Arrival {
    /// A connection ended that was trusted or that we opened; its pending requests get no more responses.
    Closed(Flow),
    /// A datagram.
    Datagram {
        /// Its flow.
        flow: Flow,
        /// Its bytes.
        bytes: Bytes,
    },
    /// The peer of a connection proved these host names by its certificate; before its first message.
    Identified {
        /// Its flow.
        flow: Flow,
        /// The names, in lower case.
        names: Vec<String>,
    },
    /// A message of a stream.
    Message {
        /// Its flow.
        flow: Flow,
        /// The message, which the guard accepted.
        message: Message,
    },
    /// A connection that we tried to open was not opened: the peer refused it, or a timeout passed.
    Unopened(Flow),
    /// A connection could not be secured, or its WebSocket could not be opened. For a connection that we opened,
    /// [`Arrival::Unopened`] follows.
    Unsecured {
        /// Its flow.
        flow: Flow,
        /// The name that the server's certificate had to be for, if we opened the connection.
        server: Option<Arc<str>>,
        /// The reason.
        error: io::Error,
    },
    /// The host of a destination refused one of our datagrams: no socket listens on its port.
    Refused {
        /// The flow of the datagram.
        flow: Flow,
        /// Its first bytes, as the host quoted them.
        bytes: Bytes,
    },
    /// The stream contained an invalid message; it was answered if possible.
    Rejected {
        /// Its flow.
        flow: Flow,
        /// The rule it broke.
        reason: Rejection,
    },
}
