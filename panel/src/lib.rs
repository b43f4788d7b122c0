//! The web panel: server-rendered pages over the HTTP API.
//!
//! The panel uses no port of the model. Every page reads and changes data through requests to the routes of the API,
//! which it calls within the process with the session of the visitor. So permissions, scopes, limits and error
//! messages are those of the API, and no rule is implemented twice. [`router`] lists the pages.
#![expect(
    clippy::indexing_slicing,
    reason = "a JSON value by a name is null when it is absent; nothing else is indexed"
)]

mod assets;
mod client;
mod clock;
mod failure;
mod form;
mod layout;
mod me;
mod pages;
mod router;
mod session;
mod show;
mod state;
mod upload;
mod visitor;

pub use router::router;
pub use state::PanelSettings;
