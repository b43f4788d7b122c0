//! SIP on sockets: UDP listeners (RFC 3261 §18).
//!
//! The only part of this crate that does I/O. It moves datagrams and understands none of them.

mod udp;

pub use udp::{
    BindError, Counters, DATAGRAM_BYTES_MAX, SendError, UdpSender, UdpTransport, local_address_towards,
};
