//! TCP: connections that come or that we open, cut into messages by Content-Length (RFC 3261 §18.3).
//!
//! A connection is a task of its own; what it reads goes by a bounded channel to the one driver, what is to be sent
//! waits in a bounded queue. A peer that reads nothing, says nothing, never ends a message or never proves who it is
//! loses its connection, and costs nobody else anything.

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
