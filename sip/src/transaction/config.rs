//! The configuration of a layer: its timers, its bounds and its own address.

use std::fmt;
use std::sync::Arc;

use crate::flow::Flow;
use crate::message::Host;
use crate::transaction::Timers;

/// Settings of a [`Layer`](super::Layer).
#[derive(Clone)]
pub struct LayerConfig {
    /// The base values of every timer.
    pub timers: Timers,
    /// The largest number of client transactions.
    pub client_len_max: usize,
    /// The largest number of server transactions.
    pub server_len_max: usize,
    /// The largest number of them per source: an IPv4 address, or an IPv6 network of 64 bits. Requests inside
    /// dialogs do not count.
    pub server_len_per_source: usize,
    /// Additional transactions of each kind for requests inside dialogs, so that an existing call can always
    /// be changed and ended.
    pub reserve_len: usize,
    /// Whether the final response to an unauthenticated sender leaves no transaction (§8.2.7) and is at most
    /// one and a half times as long as the request. A switch needs that; a phone has no unauthenticated
    /// senders.
    pub forgets_strangers: bool,
    /// Our own address for the peer of a flow, for Via and Contact.
    pub local: Local,
}

/// Determines our own address for a peer.
#[derive(Clone)]
pub struct Local(Arc<dyn Fn(&Flow) -> HostPort + Send + Sync>);

/// A host and an optional port: sent-by of a Via, the address of a Contact (RFC 3261 §25.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// A name or an address.
    pub host: Host,
    /// `None` means the default port of the transport.
    pub port: Option<u16>,
}

impl LayerConfig {
    /// RFC timers, and space for [`TRANSACTIONS_MAX`] of each kind.
    pub fn new(local: Local) -> Self {
        Self {
            timers: Timers::default(),
            client_len_max: TRANSACTIONS_MAX,
            server_len_max: TRANSACTIONS_MAX,
            server_len_per_source: TRANSACTIONS_MAX / 2,
            reserve_len: TRANSACTIONS_RESERVE,
            forgets_strangers: false,
            local,
        }
    }
}

impl fmt::Debug for LayerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayerConfig")
            .field("timers", &self.timers)
            .field("client_len_max", &self.client_len_max)
            .field("server_len_max", &self.server_len_max)
            .field("server_len_per_source", &self.server_len_per_source)
            .field("reserve_len", &self.reserve_len)
            .field("forgets_strangers", &self.forgets_strangers)
            .finish_non_exhaustive()
    }
}

impl Local {
    /// Calls `address` for every flow; the same flow must give the same result.
    pub fn new(address: impl Fn(&Flow) -> HostPort + Send + Sync + 'static) -> Self {
        Self(Arc::new(address))
    }

    /// The same address for all peers.
    pub fn fixed(host: Host, port: Option<u16>) -> Self {
        let address = HostPort { host, port };
        Self::new(move |_| address.clone())
    }

    /// Our address for the peer of `flow`.
    pub fn address(&self, flow: &Flow) -> HostPort {
        (self.0)(flow)
    }
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Local")
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.host),
            None => self.host.fmt(f),
        }
    }
}

/// Default bound of each table: requests without a final response, and INVITEs whose final response is not
/// acknowledged. Transactions that only handle retransmissions are not in these tables.
pub const TRANSACTIONS_MAX: usize = 20_000;

/// Default space beyond that for requests inside dialogs.
const TRANSACTIONS_RESERVE: usize = 5_000;
