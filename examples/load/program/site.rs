//! Names, numbers and addresses that `provision` declares and the modes use.

use std::net::Ipv4Addr;

/// The SIP domain of the organisation.
pub(crate) const DOMAIN: &str = "load.test";
/// The password of every extension.
pub(crate) const PASSWORD: &str = "correct horse battery staple";
/// The number of the first extension; the others follow it.
pub(crate) const FIRST_EXTENSION: u32 = 100_000;
/// The prefix before an extension in its number of the public network.
pub(crate) const NUMBER_PREFIX: &str = "+44207";
/// The network of the trunk's addresses.
pub(crate) const CARRIER_NETWORK: &str = "127.80.0.0/16";
/// INVITEs per second from one address of the trunk; the engine accepts 500.
pub(crate) const CALLS_PER_CARRIER: f64 = 250.0;

/// Returns address `index` of the trunk.
pub(crate) fn carrier_address(index: usize) -> Ipv4Addr {
    loopback(80, index)
}

/// Returns address `index` of the phones.
pub(crate) fn phone_address(index: usize) -> Ipv4Addr {
    loopback(81, index)
}

/// Linux accepts all of 127.0.0.0/8 without any setup.
fn loopback(network: u8, index: usize) -> Ipv4Addr {
    let [low, high] = [index % HOSTS, index / HOSTS % HOSTS].map(|part| u8::try_from(part).unwrap_or(0));
    Ipv4Addr::new(127, network, high, low + 1)
}

const HOSTS: usize = 250;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_distinct_and_in_their_network() {
        let addresses: std::collections::BTreeSet<Ipv4Addr> = (0..1_000).map(carrier_address).collect();
        assert_eq!(addresses.len(), 1_000);
        let network: ipnet::Ipv4Net = CARRIER_NETWORK.parse().unwrap();
        assert!(addresses.iter().all(|address| network.contains(address)));
        assert_eq!(phone_address(250), Ipv4Addr::new(127, 81, 1, 1));
    }
}
