//! Serves the routes on a socket, with limits on everything that a client controls.
//!
//! `accept` takes connections and counts them, `connection` runs HTTP on one, `watch` is the state machine
//! that detects timeouts, `wire` reports the socket's events to it. `framing` finds the answers that hyper
//! makes by itself, `refusal` makes the answer written instead. `axum::serve` has none of these limits: with
//! it, a head that never ends keeps its connection open forever.

mod accept;
mod connection;
mod counters;
mod framing;
mod places;
mod refusal;
#[cfg(test)]
mod tests;
mod watch;
mod wire;

pub use accept::{HttpServer, HttpTls, Pages};
pub(crate) use counters::ServerCounters;
