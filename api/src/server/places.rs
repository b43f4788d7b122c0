//! Limits the connections, in total and per address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::server::counters::Refusal;
use crate::settings::HttpSettings;

/// The open connections; clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Places(Arc<Mutex<Taken>>);

/// *Bounds*: an address has an entry only while it has a connection, so there are no more entries than
/// connections.
#[derive(Debug, Default)]
struct Taken {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// The place of one connection; released when dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    address: IpAddr,
}

impl Places {
    /// Returns a place for a connection of `peer`.
    ///
    /// A trusted proxy connects on behalf of many clients: only the total limits it.
    ///
    /// # Errors
    /// The limit that is reached.
    pub(super) fn take(&self, peer: IpAddr, settings: &HttpSettings) -> Result<Place, Refusal> {
        let address = household(peer);
        let mut taken = self.0.lock();
        if taken.total >= settings.connections_max {
            return Err(Refusal::Total);
        }
        let own = taken.by_address.get(&address).copied().unwrap_or(0);
        if own >= settings.connections_per_address_max && !settings.trusts(peer) {
            return Err(Refusal::Address);
        }
        taken.total += 1;
        taken.by_address.insert(address, own + 1);
        Ok(Place { places: self.clone(), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.0.lock();
        taken.total = taken.total.saturating_sub(1);
        let left = taken.by_address.get_mut(&self.address).map(|own| {
            *own = own.saturating_sub(1);
            *own
        });
        if left == Some(0) {
            taken.by_address.remove(&self.address);
        }
    }
}

/// The address for counting connections: an IPv4-mapped one as IPv4, an IPv6 one by its /64, because a
/// household has one.
fn household(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(places: &Places, peer: &str, settings: &HttpSettings) -> Result<Place, Refusal> {
        places.take(peer.parse().unwrap(), settings)
    }

    #[test]
    fn an_address_has_its_share_and_a_proxy_any() {
        let settings = HttpSettings {
            connections_max: 6,
            connections_per_address_max: 2,
            trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
            ..HttpSettings::default()
        };
        let places = Places::default();
        let mut held = vec![
            take(&places, "192.0.2.1", &settings).unwrap(),
            take(&places, "::ffff:192.0.2.1", &settings).unwrap(),
        ];
        assert_eq!(take(&places, "192.0.2.1", &settings).unwrap_err(), Refusal::Address);
        held.push(take(&places, "2001:db8::1", &settings).unwrap());
        held.push(take(&places, "2001:db8::2", &settings).unwrap());
        assert_eq!(take(&places, "2001:db8::3", &settings).unwrap_err(), Refusal::Address);
        held.clear();
        held.extend((0..6).map(|_| take(&places, "10.0.0.1", &settings).unwrap()));
        assert_eq!(take(&places, "192.0.2.1", &settings).unwrap_err(), Refusal::Total);
        held.clear();
        assert_eq!(places.0.lock().by_address.len(), 0);
        assert!(take(&places, "192.0.2.1", &settings).is_ok());
    }
}
