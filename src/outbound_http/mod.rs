//! Requests to machines that tenants name: the call-info callback and webhooks.
//!
//! Whoever may write a URL here could otherwise have the engine talk to what only it reaches: itself, its database, the
//! metadata service of a cloud. So there is one client for all of them, and it goes to `https` on public addresses
//! alone. A URL is checked when it is saved and again when it is used ([`Policy::check_url`]); what the name service
//! says is checked before a connection is made, and the connection goes to the very address that was checked. No
//! redirect is followed, no proxy of the environment is asked, no answer is unpacked, and everything is bounded: what
//! is read of an answer, and how long all of it takes, name service and TLS included.

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
