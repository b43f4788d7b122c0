//! The client's address: that of the socket, unless a trusted proxy names another.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;

/// Whether the address that [`client_address`] returns is certainly that of the client itself.
///
/// A proxy on this host hides the client: its address is this host's. If a request has any header that
/// proxies add, the client is known only when the peer is a trusted proxy and `X-Forwarded-For` contains
/// addresses.
pub(crate) fn is_client_known(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> bool {
    let peer = peer.to_canonical();
    if !PROXY_MARKS.iter().any(|mark| headers.contains_key(*mark)) {
        return true;
    }
    let mut hops = headers
        .get_all("x-forwarded-for")
        .iter()
        .flat_map(|value| value.to_str().unwrap_or_default().split(','))
        .peekable();
    // A hop that is not an address may hide any client.
    trusted.iter().any(|network| network.contains(&peer))
        && hops.peek().is_some()
        && hops.all(|hop| parse_hop(hop.trim()).is_some())
}

/// Headers that proxies add.
const PROXY_MARKS: [&str; 8] = [
    "forwarded",
    "via",
    "x-client-ip",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-server",
    "x-real-ip",
];

/// The address of the client.
///
/// `X-Forwarded-For` is used only when the peer itself is a trusted proxy; then the right-most hop that is
/// not one is the client. IPv4-mapped IPv6 addresses become IPv4.
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
        // A hop that is not an address hides the client after it: the last known address is used.
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
    fn behind_a_proxy_the_client_is_known_by_the_word_of_a_trusted_one_alone() {
        type Lines = &'static [(&'static str, &'static str)];
        let cases: [(&str, &str, Lines, bool); 11] = [
            ("direct", "127.0.0.1", &[], true),
            ("an unnamed proxy", "127.0.0.1", &[("x-forwarded-for", "198.51.100.7")], false),
            ("an unnamed proxy by its RFC", "127.0.0.1", &[("forwarded", "for=127.0.0.1")], false),
            ("an unnamed proxy of another kind", "127.0.0.1", &[("x-real-ip", "127.0.0.1")], false),
            ("a proxy that says so", "127.0.0.1", &[("via", "1.1 proxy")], false),
            ("a trusted proxy", "10.0.0.1", &[("x-forwarded-for", "198.51.100.7")], true),
            ("the host of a trusted proxy itself", "10.0.0.1", &[], true),
            ("a trusted proxy that hides it", "10.0.0.1", &[("x-forwarded-for", "unknown")], false),
            ("a hidden hop", "10.0.0.1", &[("x-forwarded-for", "_hidden, 10.0.0.2")], false),
            ("an empty word", "10.0.0.1", &[("x-forwarded-for", "")], false),
            ("another header", "10.0.0.1", &[("forwarded", "for=127.0.0.1")], false),
        ];
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        for (name, peer, lines, expected) in cases {
            let mut headers = HeaderMap::new();
            for (header, value) in lines {
                headers.append(axum::http::HeaderName::from_static(header), value.parse().unwrap());
            }
            assert_eq!(is_client_known(peer.parse().unwrap(), &headers, &trusted), expected, "{name}");
        }
    }

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
