//! Source and destination of a flow as one key, and its hash.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Source and destination, packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    words: [u64; 4],
    /// The ports, and a bit for the IP version.
    ports: u64,
}

impl Key {
    /// A key from IPv4 addresses and ports, the source in the upper half of each.
    #[inline]
    pub(super) fn v4(addresses: u64, ports: u32) -> Self {
        Key { words: [addresses, 0, 0, 0], ports: u64::from(ports) }
    }

    /// A key from any addresses.
    pub(super) fn new(source: SocketAddr, destination: SocketAddr) -> Self {
        let ports = u32::from(source.port()) << 16 | u32::from(destination.port());
        match (source.ip(), destination.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                Key::v4(u64::from(from.to_bits()) << 32 | u64::from(to.to_bits()), ports)
            }
            (from, to) => {
                let (from, to) = (wide(from), wide(to));
                let words = [(from >> 64) as u64, from as u64, (to >> 64) as u64, to as u64];
                Key { words, ports: V6 | u64::from(ports) }
            }
        }
    }

    /// Source and destination.
    pub(super) fn ends(&self) -> (SocketAddr, SocketAddr) {
        let [first, second, third, fourth] = self.words;
        let (from, to): (IpAddr, IpAddr) = if self.ports & V6 == 0 {
            (Ipv4Addr::from_bits((first >> 32) as u32).into(), Ipv4Addr::from_bits(first as u32).into())
        } else {
            let join = |high, low| Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low));
            (join(first, second).into(), join(third, fourth).into())
        };
        (SocketAddr::new(from, (self.ports >> 16) as u16), SocketAddr::new(to, self.ports as u16))
    }

    /// Whether it has these addresses and ports in IPv4; see [`Key::v4`].
    #[inline]
    pub(super) fn is_v4(&self, addresses: u64, ports: u32) -> bool {
        // An IPv4 key has only these two words.
        self.words[0] == addresses && self.ports == u64::from(ports)
    }

    /// The hash of a key of IPv4.
    #[inline]
    pub(super) fn hash_v4(addresses: u64, ports: u32, seed: [u64; 2]) -> u64 {
        hash_first(addresses, u64::from(ports), seed)
    }

    #[inline]
    pub(super) fn hash(&self, seed: [u64; 2]) -> u64 {
        let [first, second, third, fourth] = self.words;
        let hash = hash_first(first, self.ports, seed);
        if self.ports & V6 == 0 {
            return hash;
        }
        fold(fold(hash ^ second, third ^ seed[1]), fourth ^ seed[0])
    }
}

/// The first step of every hash, and the whole hash of an IPv4 key.
#[inline]
fn hash_first(word: u64, ports: u64, seed: [u64; 2]) -> u64 {
    fold(word ^ seed[0], ports ^ seed[1])
}

/// Multiplies to 128 bits and combines both halves with XOR.
#[inline]
fn fold(one: u64, other: u64) -> u64 {
    let wide = u128::from(one) * u128::from(other);
    (wide >> 64) as u64 ^ wide as u64
}

fn wide(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// Set in the ports of an IPv6 key.
const V6: u64 = 1 << 32;
