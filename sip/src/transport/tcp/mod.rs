//! TCP: accepted and opened connections, split into messages by Content-Length (RFC 3261 §18.3).
//!
//! A connection is its own task. Received messages go through a bounded channel to the single driver;
//! messages to send wait in a bounded queue. A peer that does not read, sends nothing, never completes a
//! message or never authenticates loses its connection, without an effect on others.

mod connection;
mod limits;
mod table;
mod task;
#[cfg(test)]
mod tests;
mod transport;

pub use limits::TcpLimits;
pub use table::TcpCounters;
pub use transport::{TcpSender, TcpTransport};
