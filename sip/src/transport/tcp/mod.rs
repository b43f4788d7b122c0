//! TCP, and TLS and WebSocket over it: accepted and opened connections. A stream is split into messages by
//! Content-Length (RFC 3261 §18.3).
//!
//! A connection is its own task. Received messages go through a bounded channel to the single driver;
//! messages to send wait in a bounded queue. A peer that does not read, sends nothing, never completes a
//! message or never authenticates loses its connection, without an effect on others.

mod connection;
mod limits;
mod opening;
mod receiving;
mod table;
mod task;
#[cfg(test)]
mod tests;
mod tls;
#[cfg(test)]
mod tls_tests;
mod transport;
mod websocket;
#[cfg(test)]
mod websocket_tests;

pub use limits::TcpLimits;
pub use table::TcpCounters;
pub use tls::TlsSettings;
pub use transport::{TcpConfig, TcpSender, TcpTransport};
