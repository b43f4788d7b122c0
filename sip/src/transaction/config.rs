//! What a layer is told once: its timers, its bounds and its own name.

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
    /// How many client transactions may live at once.
    pub client_len_max: usize,
    /// How many server transactions may live at once.
    pub server_len_max: usize,
    /// Our own address towards the peer of a flow, as Via and Contact are to name it.
    pub local: Local,
}

/// Tells our own address towards a peer.
#[derive(Clone)]
pub struct Local(Arc<dyn Fn(&Flow) -> HostPort + Send + Sync>);

/// A host and an optional port: sent-by of a Via, the address of a Contact (RFC 3261 §25.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// A name or an address.
    pub host: Host,
    /// Absent where the default port of the transport is meant.
    pub port: Option<u16>,
}

impl LayerConfig {
    /// RFC timers, room for [`TRANSACTIONS_MAX`] of each kind.
    pub fn new(local: Local) -> Self {
        Self {
            timers: Timers::default(),
            client_len_max: TRANSACTIONS_MAX,
            server_len_max: TRANSACTIONS_MAX,
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
            .finish_non_exhaustive()
    }
}

impl Local {
    /// Asks `address` for every flow; the same flow must get the same answer.
    pub fn new(address: impl Fn(&Flow) -> HostPort + Send + Sync + 'static) -> Self {
        Self(Arc::new(address))
    }

    /// One address for all.
    pub fn fixed(host: Host, port: Option<u16>) -> Self {
        let address = HostPort { host, port };
        Self::new(move |_| address.clone())
    }

    /// Our address towards the peer of `flow`.
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

/// Default bound of each table: 50 calls a second with every transaction lingering 32 s need 3,200.
pub const TRANSACTIONS_MAX: usize = 20_000;
