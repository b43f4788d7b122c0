//! The engine's policy for outgoing URLs, under the same module path as in the engine.

#[path = "../../src/outbound_http/policy.rs"]
mod policy;
#[path = "../../src/outbound_http/settings.rs"]
pub(crate) mod settings;

pub(crate) use policy::{Policy, URL_LEN_MAX};
pub(crate) use settings::OutboundHttp;
