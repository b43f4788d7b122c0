//! Ranks of datagrams, which a quick scan decides before they cost any work.
//!
//! A datagram of a live call is read first and has its own queue. A datagram that belongs to no call yet is
//! ranked by its sender: an authenticated phone, a trunk, a source that answers one of our challenges, or an
//! unknown source.

use std::collections::{BTreeMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use sidetone_sip::admission::Grant;

use crate::routing::Directory;

/// When an admitted datagram is read. Each rank has its own queue, so that a lower rank takes no space of a
/// higher one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// It belongs to a live call.
    Urgent,
    /// It belongs to no call yet; ranked by its sender.
    New(Grant),
}

/// The addresses that calls of trunks come from, indexed for a check per datagram.
#[derive(Default)]
pub(super) struct TrunkAddresses {
    /// The first addresses of the networks, by prefix length.
    v4: BTreeMap<u8, HashSet<Ipv4Addr>>,
    v6: BTreeMap<u8, HashSet<Ipv6Addr>>,
    /// The servers of our registrations, as of `looked_at`.
    registered: HashSet<IpAddr>,
    looked_at: Option<Instant>,
}

impl TrunkAddresses {
    /// Collects the networks of all trunks.
    pub(super) fn of(directory: &Directory) -> Self {
        let mut addresses = TrunkAddresses::default();
        for network in directory.trunks().iter().flat_map(|trunk| &trunk.accept_from) {
            match network.address {
                IpAddr::V4(v4) => {
                    let bits = network.prefix_len.min(32);
                    addresses.v4.entry(bits).or_default().insert(first_v4(v4, bits));
                }
                IpAddr::V6(v6) => {
                    let bits = network.prefix_len.min(128);
                    addresses.v6.entry(bits).or_default().insert(first_v6(v6, bits));
                }
            }
        }
        addresses
    }

    pub(super) fn is_old(&self, now: Instant) -> bool {
        self.looked_at.is_none_or(|at| now.saturating_duration_since(at) >= LOOK_EVERY)
    }

    /// Stores the servers that we are registered with now.
    pub(super) fn registered(&mut self, now: Instant, servers: impl Iterator<Item = IpAddr>) {
        self.looked_at = Some(now);
        self.registered.clear();
        self.registered.extend(servers.map(|server| server.to_canonical()));
    }

    /// Whether an address belongs to a trunk.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let is_within = match address {
            IpAddr::V4(v4) => self.v4.iter().any(|(bits, blocks)| blocks.contains(&first_v4(v4, *bits))),
            IpAddr::V6(v6) => self.v6.iter().any(|(bits, blocks)| blocks.contains(&first_v6(v6, *bits))),
        };
        is_within || self.registered.contains(&address)
    }
}

fn first_v4(address: Ipv4Addr, bits: u8) -> Ipv4Addr {
    let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
    Ipv4Addr::from_bits(address.to_bits() & mask)
}

fn first_v6(address: Ipv6Addr, bits: u8) -> Ipv6Addr {
    let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
    Ipv6Addr::from_bits(address.to_bits() & mask)
}

/// Refresh interval of the registered servers: a query for each datagram would cost too much.
const LOOK_EVERY: Duration = Duration::from_secs(1);
