//! What goes wrong with sockets, in words that a person can act on.

use std::io;
use std::net::SocketAddr;

use crate::flow::Protocol;

/// Failed to open a listener; names the address, so that a person can act on it.
#[derive(Debug, thiserror::Error)]
#[error("listen on {}://{address}", .protocol.as_str().to_ascii_lowercase())]
pub struct BindError {
    /// The transport asked for.
    pub protocol: Protocol,
    /// The address asked for.
    pub address: SocketAddr,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

/// Failed to send a message.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The connection that the flow stands for is closed, or no further one may be opened.
    #[error("send a message: its connection is closed")]
    Closed,
    /// The buffer is full and the message is lost. Of a datagram as on any link: a retransmission may get through. Of a
    /// connection for good: its peer reads nothing, and it is being closed.
    #[error("send a message: the buffer is full")]
    Full,
    /// The system refuses: no route, too long, forbidden. A transport error to its transaction (RFC 3261 §18.4).
    #[error("send a message")]
    Refused(#[source] io::Error),
    /// The flow is of no listener here, or of another transport.
    #[error("send a message by an unknown listener")]
    UnknownListener,
}
