//! Which addresses are reachable from other networks.

use std::net::IpAddr;

/// Whether an address is reachable from other networks (RFC 1918, RFC 6598, RFC 4193, link-local and loopback
/// are not).
pub(crate) fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let shared = ip.octets()[0] == 100 && (64..128).contains(&ip.octets()[1]);
            !(ip.is_private() || ip.is_loopback() || ip.is_link_local() || shared)
        }
        IpAddr::V6(ip) => !(ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()),
    }
}
