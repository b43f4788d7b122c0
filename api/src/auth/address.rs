//! The client's address: the socket's, unless a proxy that is trusted says otherwise.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;

/// The address a request comes from.
///
/// `X-Forwarded-For` counts only when the peer itself is a trusted proxy; then the right-most
/// hop that is not one is the client. IPv4-mapped IPv6 addresses become IPv4.
pub(crate) fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: &IpAddr| trusted.iter().any(|network| network.contains(address));
    let mut client = peer.to_canonical();
    if !is_trusted(&client) {
        return client;
    }
    let hops: Vec<&str> = headers
        .get_all("x-forwarded-for")
        .iter()
        .flat_map(|value| value.to_str().unwrap_or_default().split(','))
        .collect();
    for hop in hops.into_iter().rev() {
        // A hop that is no address hides who stands behind it: the last one known is taken.
        let Some(address) = parse_hop(hop.trim()) else { break };
        client = address;
        if !is_trusted(&client) {
            break;
        }
    }
    client
}

/// `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1` or `[2001:db8::1]:4711`.
fn parse_hop(text: &str) -> Option<IpAddr> {
    let plain = text.parse::<IpAddr>().ok();
    let address = plain.or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trusted_proxies_are_believed_and_from_the_right() {
        let cases = [
            ("no header", "192.0.2.1", None, "192.0.2.1"),
            ("spoofed by a stranger", "192.0.2.1", Some("127.0.0.1"), "192.0.2.1"),
            ("one proxy", "10.0.0.1", Some("198.51.100.7"), "198.51.100.7"),
            ("spoofed behind a proxy", "10.0.0.1", Some("127.0.0.1, 198.51.100.7"), "198.51.100.7"),
            ("two proxies", "10.0.0.1", Some("127.0.0.1, 198.51.100.7, 10.0.0.2"), "198.51.100.7"),
            ("only proxies", "10.0.0.1", Some("10.0.0.3, 10.0.0.2"), "10.0.0.3"),
            ("with a port", "10.0.0.1", Some("198.51.100.7:4711"), "198.51.100.7"),
            ("IPv6 with a port", "10.0.0.1", Some("[2001:db8::1]:4711"), "2001:db8::1"),
            ("mapped", "::ffff:10.0.0.1", Some("::ffff:198.51.100.7"), "198.51.100.7"),
            ("no address", "10.0.0.1", Some("198.51.100.7, unknown"), "10.0.0.1"),
            ("no address behind a proxy", "10.0.0.1", Some("unknown, 10.0.0.2"), "10.0.0.2"),
            ("empty", "10.0.0.1", Some(""), "10.0.0.1"),
        ];
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        for (name, peer, header, expected) in cases {
            let mut headers = HeaderMap::new();
            if let Some(value) = header {
                headers.insert("x-forwarded-for", value.parse().unwrap());
            }
            let client = client_address(peer.parse().unwrap(), &headers, &trusted);
            assert_eq!(client, expected.parse::<IpAddr>().unwrap(), "{name}");
        }
    }
}
