//! Requests to hosts that organisations configure: the call-info request and webhooks.
//!
//! Without checks, a URL could make the engine connect to hosts that only it can reach: itself, its database, the
//! metadata service of a cloud. So there is one client for all such requests, which connects only with `https` to
//! public addresses. A URL is checked when it is saved and again when it is used ([`Policy::check_url`]). The result
//! of the name lookup is checked before a connection is made, and the connection is made to exactly the address that
//! was checked. No redirect is followed, no proxy of the environment is used, no response is decompressed, and
//! everything is limited: the bytes that are read of a response, and the total time, including name lookup and TLS.

mod bounded;
mod client;
mod error;
mod network;
mod policy;
mod roots;
mod settings;

pub use client::{Answer, Budget, Client, End};
pub use error::{PostError, Stage};
pub use network::{LookupError, Network, Stream, System, Waiting};
pub use policy::{Policy, Refusal, URL_LEN_MAX};
pub use roots::{Roots, RootsError};
pub use settings::OutboundHttp;
