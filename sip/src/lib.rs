//! SIP for a switch: messages, transactions, dialogs, SDP, digest authentication, a registrar.
//!
//! Everything except `transport` is a sans-I/O core: bytes and time go in, and there are no sockets or
//! clocks. This crate does not depend on RTP, records or HTTP.

pub mod admission;
pub mod auth;
pub mod dialog;
pub mod edge;
pub mod flow;
pub mod message;
mod reach;
pub mod registrar;
pub mod sdp;
pub mod text;
pub mod transaction;
#[cfg(feature = "transport")]
pub mod transport;
pub mod ua;
