//! SIP on sockets: UDP and TCP (RFC 3261 §18).
//!
//! The only part of this crate that does I/O. It moves datagrams without parsing them; in a stream it finds
//! the end of each message. It never waits for a peer: what cannot be sent now is refused or queued within
//! bounds.

mod arrival;
mod error;
mod sockets;
mod tcp;
mod udp;

pub use arrival::Arrival;
pub use error::{BindError, SendError};
pub use sockets::{Sender, Sockets};
pub use tcp::{TcpCounters, TcpLimits, TcpSender, TcpTransport};
pub use udp::{Counters, DATAGRAM_BYTES_MAX, UdpSender, UdpTransport, local_address_towards};
