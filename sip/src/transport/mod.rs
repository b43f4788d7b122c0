//! SIP on sockets: UDP listeners (RFC 3261 §18), and the budget that a stranger's address has.
//!
//! The only part of this crate that does I/O. It moves datagrams and understands none of them; which budget applies
//! to whom is the driver's to say.

mod budget;
mod udp;

pub use budget::{BURST, RATE_PER_SECOND, SOURCES_MAX, SourceBudget};
pub use udp::{
    BindError, Counters, DATAGRAM_BYTES_MAX, SendError, UdpSender, UdpTransport, local_address_towards,
};
