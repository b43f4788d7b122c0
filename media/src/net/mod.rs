//! RTP on the wire: ports, sockets, kernel receive times, and the relay between the two legs of a call.
//!
//! [`Relay`] is the whole face. Behind it, worker threads own their sockets and the sessions of their
//! legs; a packet is received into a worker's buffer, measured by the leg's
//! [`Session`](crate::session::Session) and sent to the other leg from that same buffer: no lock, no
//! channel, no allocation and no copy in between. Commands enter by a bounded queue per worker, reports
//! leave by one bounded channel.
//!
//! What a packet *means* is decided by the session; here are only bytes, addresses and clocks. SRTP and
//! mixing are not here.

mod alarm;
mod beep;
mod clock;
mod counters;
mod endpoint;
mod guard;
mod leg;
mod message;
mod ports;
mod relay;
mod wire;
mod worker;

pub use counters::{Counters, DiscardCount};
pub use message::{Command, CommandError, Notice, OpenError, Port, PortId, RelayConfig, RelayError};
pub use relay::Relay;
