//! SIP for a switch: messages, transactions, dialogs, SDP, digest authentication, a registrar.
//!
//! Everything but `transport` is a sans-I/O core: fed with bytes and time, free of sockets and clocks.
//! Nothing here knows RTP, records or HTTP.

pub mod admission;
pub mod auth;
pub mod dialog;
pub mod flow;
pub mod message;
pub mod registrar;
pub mod sdp;
pub mod transaction;
#[cfg(feature = "transport")]
pub mod transport;
pub mod ua;
