//! `sidetone.toml`: every key, its default, and its allowed values.
//!
//! Every key is optional. Unknown keys are refused by name; an environment variable `SIDETONE_SECTION__KEY`
//! overrides the file; `SIDETONE_CONFIG` contains the path of the file. Features of later versions (TLS
//! listeners, a cluster) are refused with a message and not ignored.

mod changes;
mod load;
mod sections;
mod settings;
#[cfg(test)]
mod tests;

pub use load::{ConfigError, parse_toml};
pub use settings::{Config, Http, Listener, Log, Media, Node, Rooms, Sip, Transport};
