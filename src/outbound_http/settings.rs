//! `[outbound_http]`.

use std::path::PathBuf;

use sidetone_model::directory::Network;

/// `[outbound_http]`: destinations that are allowed in addition to public addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboundHttp {
    /// Addresses that are allowed although they are not public, for laboratories and tests.
    pub allow_addresses: Vec<Network>,
    /// A PEM file with authorities that are trusted in addition to those of the system.
    pub extra_ca: Option<PathBuf>,
    /// The ports that URLs may contain.
    pub ports: Vec<u16>,
}

impl OutboundHttp {
    /// Ports that can be allowed.
    pub const PORTS_MAX: usize = 64;
}

impl Default for OutboundHttp {
    fn default() -> Self {
        Self { allow_addresses: Vec::new(), extra_ca: None, ports: vec![443, 8443] }
    }
}
