//! The HTTP face of Sidetone: who asks, what they may see, and one JSON shape for every answer.
//!
//! [`router`] is the table of contents, [`ApiState`] the ports behind it. No SQL, no SIP, no
//! clock: all of them come in through the state.

mod arrival;
mod auth;
mod body;
mod byte_range;
mod deprecation;
mod docs;
mod error;
mod idempotency;
mod listing;
mod managed;
mod metrics;
mod openapi;
mod page;
mod pieces;
mod router;
mod routes;
mod server;
mod settings;
mod state;
mod stream;

pub use auth::TokenKey;
pub use router::{openapi, router};
pub use server::HttpServer;
pub use settings::{HttpSettings, SharedSettings};
pub use state::{ApiState, Clock, DirectoryPorts, Panel, RatePorts, RoomHistory};
