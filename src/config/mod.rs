//! `sidetone.toml`: every key, its default, and its allowed values.
//!
//! Every key is optional. Unknown keys are refused by name; an environment variable `SIDETONE_SECTION__KEY`
//! overrides the file; `SIDETONE_CONFIG` contains the path of the file.

mod changes;
mod cluster_section;
mod load;
mod log_level;
mod sections;
mod settings;
#[cfg(test)]
mod tests;
mod tls_section;

pub use load::{ConfigError, parse_toml};
pub use log_level::log_filter;
pub use settings::{Config, Http, Listener, LoadLimits, Log, Media, MediaIo, Node, Rooms, Sip, Transport};
