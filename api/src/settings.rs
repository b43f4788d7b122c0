//! The limits of the HTTP API: timeouts, counts, and trusted proxies. They can be replaced while it runs.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use parking_lot::RwLock;

/// The limits of the HTTP API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSettings {
    /// Peers whose `X-Forwarded-For` is used, and whose number of connections is not limited per address.
    pub trusted_proxies: Vec<IpNet>,
    /// Networks that may read `/metrics`, in addition to this host.
    pub metrics_allow: Vec<IpNet>,
    /// Origins whose pages may call the API from a browser, such as `https://panel.example.com`.
    pub cors_origins: Vec<String>,
    /// Open connections; a further one gets 503.
    pub connections_max: usize,
    /// Open connections per address; a further one gets 503.
    pub connections_per_address_max: usize,
    /// How long a request's head may take to arrive.
    pub header_time: Duration,
    /// How long a request's whole body may take to arrive.
    pub body_time: Duration,
    /// How long a connection may stay open between two requests.
    pub idle_time: Duration,
    /// How long an answer may wait for a client that does not read.
    pub stall_time: Duration,
    /// Whether an unknown field in a body is an error. If not, callers of a later version work while the
    /// nodes are replaced one by one.
    pub strict_bodies: bool,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            trusted_proxies: Vec::new(),
            metrics_allow: Vec::new(),
            cors_origins: Vec::new(),
            connections_max: 1_024,
            connections_per_address_max: 64,
            header_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            idle_time: Duration::from_secs(60),
            stall_time: Duration::from_secs(30),
            strict_bodies: true,
        }
    }
}

impl HttpSettings {
    /// Whether `X-Forwarded-For` of this peer is used.
    pub(crate) fn trusts(&self, peer: IpAddr) -> bool {
        contains(&self.trusted_proxies, peer)
    }

    /// Whether this address may read `/metrics`.
    pub(crate) fn may_read_metrics(&self, address: IpAddr) -> bool {
        address.to_canonical().is_loopback() || contains(&self.metrics_allow, address)
    }
}

fn contains(networks: &[IpNet], address: IpAddr) -> bool {
    let address = address.to_canonical();
    networks.iter().any(|network| network.contains(&address))
}

/// The settings in force; clones share them.
#[derive(Debug, Clone, Default)]
pub struct SharedSettings(Arc<RwLock<Arc<HttpSettings>>>);

impl SharedSettings {
    /// Returns the current settings.
    pub fn current(&self) -> Arc<HttpSettings> {
        Arc::clone(&self.0.read())
    }

    /// Replaces the settings, immediately, for new connections and new requests.
    pub fn replace(&self, settings: HttpSettings) {
        *self.0.write() = Arc::new(settings);
    }
}
