//! SIP on sockets: UDP, TCP, TLS (RFC 3261 §18) and WebSocket (RFC 7118).
//!
//! The only part of this crate that does I/O. It moves datagrams without parsing them; in a stream it finds the end of
//! each message. It never waits for a peer: a message that cannot be sent now is refused or queued within bounds.

mod arrival;
mod error;
mod links;
#[cfg(test)]
mod links_tests;
mod refused;
mod routes;
mod sockets;
mod tcp;
mod udp;

pub use arrival::Arrival;
pub use error::{BindError, SendError};
pub use links::{NodeLinkCounters, NodeLinkSender, NodeLinkTask, NodePeers, NodeTls};
pub use routes::{Routes, local_address_towards};
pub use sockets::{Sender, Sockets};
pub use tcp::{TcpConfig, TcpCounters, TcpLimits, TcpSender, TcpTransport, TlsSettings};
pub use udp::{Counters, DATAGRAM_BYTES_MAX, UdpSender, UdpTransport};
