//! The HTTP API of Sidetone: authentication, authorisation, and one JSON structure for every answer.
//!
//! [`router`] lists the routes, [`ApiState`] contains the ports that they use. There is no SQL, no SIP and no
//! clock here: the state provides them.

mod arrival;
mod auth;
mod body;
mod byte_range;
mod compression;
mod cors;
mod deprecation;
mod docs;
mod entity_tag;
mod error;
mod from_peer;
mod idempotency;
mod listing;
mod managed;
mod metrics;
mod openapi;
mod page;
mod params;
mod peer_service;
mod peers;
mod pieces;
mod ports;
mod router;
mod routes;
mod server;
mod settings;
mod state;
mod stream;

pub use auth::TokenKey;
pub use peer_service::PeerService;
pub use ports::{DirectoryPorts, Panel, Ports, RatePorts, RoomHistory};
pub use router::{openapi, router};
pub use server::{HttpServer, HttpTls, Pages};
pub use settings::{HttpSettings, SharedSettings};
pub use state::{ApiState, Clock};
