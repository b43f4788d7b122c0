//! Errors of sockets, in terms that a person can act on.

use std::io;
use std::net::SocketAddr;

use crate::flow::Protocol;

/// The reason why a listener could not be opened; it names the address, so that a person can act on it.
#[derive(Debug, thiserror::Error)]
#[error("listen on {}://{address}", .protocol.as_str().to_ascii_lowercase())]
pub struct BindError {
    /// The requested transport.
    pub protocol: Protocol,
    /// The requested address.
    pub address: SocketAddr,
    /// The system's error.
    #[source]
    pub source: io::Error,
}

/// Why a message was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The connection of the flow is closed, or no further one can be opened.
    #[error("send a message: its connection is closed")]
    Closed,
    /// The buffer is full and the message is lost. For a datagram this is like loss on a link: a retransmission may
    /// arrive. A connection is closed in this case, because its peer does not read.
    #[error("send a message: the buffer is full")]
    Full,
    /// The system refused it: no route, too long, forbidden. This is a transport error for its transaction (RFC 3261
    /// §18.4).
    #[error("send a message")]
    Refused(#[source] io::Error),
    /// The flow belongs to no listener here, or to another transport.
    #[error("send a message by an unknown listener")]
    UnknownListener,
}
