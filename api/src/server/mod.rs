//! Serving the routes on a socket, with bounds on everything that a client decides.
//!
//! `accept` takes connections and counts them, `connection` speaks HTTP on one, `watch` is the machine that
//! says when one has taken too long, `wire` tells it what happens on the socket. `framing` finds the answers that hyper
//! makes by itself, `refusal` is what is written in their place. `axum::serve` has none of
//! these bounds: a head that never ends keeps its connection for ever.

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

pub use accept::HttpServer;
pub(crate) use counters::ServerCounters;
