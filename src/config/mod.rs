//! `sidetone.toml`: every key, its default, and what its value may be.
//!
//! Every key is optional. Unknown keys are refused by name; an environment variable
//! `SIDETONE_SECTION__KEY` overrides the file; `SIDETONE_CONFIG` names the file. What a later
//! version will understand (TLS listeners, a cluster) is refused in words
//! rather than ignored.

mod changes;
mod load;
mod sections;
mod settings;
#[cfg(test)]
mod tests;

pub use load::{ConfigError, parse_toml};
pub use settings::{Config, Http, Listener, Log, Media, Node, Rooms, Sip, Transport};
