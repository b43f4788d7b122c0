//! The HTTP API of Sidetone: authentication, authorisation, and one JSON structure for every answer.
//!
//! [`router`] lists the routes, [`ApiState`] contains the ports that they use. There is no SQL, no SIP and no
//! clock here: they come with the state.

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
