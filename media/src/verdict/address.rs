//! Which addresses a packet can reach, as far as their address classes show.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Whether a host at `from` cannot reach `address` with its packets.
///
/// Addresses of the same special class, as on a test bench or a LAN, can reach each other. `own` are
/// addresses of this host, which no other party can have.
pub(crate) fn is_unreachable(address: IpAddr, from: IpAddr, own: &[IpAddr]) -> bool {
    let (address, from) = (address.to_canonical(), from.to_canonical());
    if address == from {
        return false;
    }
    let (class, class_from) = (Class::of(address), Class::of(from));
    match class {
        Class::Multicast | Class::Unspecified => true,
        Class::Documentation | Class::LinkLocal | Class::Loopback if class != class_from => true,
        Class::Loopback => false,
        Class::Private if class_from.is_global() => true,
        _ => own.iter().any(|mine| mine.to_canonical() == address),
    }
}

/// Whether media may be sent to `address` at all, for a party whose signalling comes from `signalling`.
///
/// Loopback is allowed only for parties on loopback, because SDP must not direct packets to our own services.
/// Link-local is excluded because metadata services of clouds are there (169.254.169.254).
pub(crate) fn is_permitted(address: IpAddr, signalling: Option<IpAddr>) -> bool {
    match Class::of(address.to_canonical()) {
        Class::LinkLocal | Class::Multicast | Class::Unspecified => false,
        Class::Loopback => signalling.is_some_and(|from| from.to_canonical().is_loopback()),
        Class::Documentation | Class::Global | Class::Private => true,
    }
}

/// The text of an address and a port, equal to its `Display`, which takes several times as long; every report
/// has a few of them.
pub fn socket_text(address: SocketAddr) -> String {
    let SocketAddr::V4(v4) = address else { return address.to_string() };
    let mut text = ip_text(IpAddr::V4(*v4.ip()));
    text.push(':');
    push_number(&mut text, v4.port());
    text
}

/// The text of an address without a port.
pub(crate) fn ip_text(address: IpAddr) -> String {
    let IpAddr::V4(v4) = address else { return address.to_string() };
    let mut text = String::with_capacity(V4_TEXT_LEN_MAX);
    for (place, octet) in v4.octets().into_iter().enumerate() {
        if place > 0 {
            text.push('.');
        }
        push_number(&mut text, octet.into());
    }
    text
}

fn push_number(text: &mut String, number: u16) {
    for unit in [10_000, 1_000, 100, 10, 1] {
        if number >= unit || unit == 1 {
            // A digit is less than ten.
            text.push(char::from(b'0' + (number / unit % 10) as u8));
        }
    }
}

/// `255.255.255.255:65535`.
const V4_TEXT_LEN_MAX: usize = 21;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// For use in documents only (RFC 5737, RFC 3849).
    Documentation,
    Global,
    /// Valid on one link only (RFC 3927, RFC 4291 §2.5.6).
    LinkLocal,
    Loopback,
    /// Multicast, and the broadcast address.
    Multicast,
    /// Private use, unique local, or behind a carrier's NAT (RFC 1918, RFC 4193, RFC 6598).
    Private,
    Unspecified,
}

impl Class {
    fn of(address: IpAddr) -> Class {
        match address {
            IpAddr::V4(address) => Class::of_v4(address),
            IpAddr::V6(address) => Class::of_v6(address),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Class {
        let [first, second, ..] = address.octets();
        if first == 0 {
            // The whole of 0/8 is "this network" (RFC 1122 §3.2.1.3).
            Class::Unspecified
        } else if address.is_loopback() {
            Class::Loopback
        } else if address.is_multicast() || address.is_broadcast() {
            Class::Multicast
        } else if address.is_link_local() {
            Class::LinkLocal
        } else if address.is_private() || (first == 100 && second & 0xc0 == 64) {
            Class::Private
        } else if address.is_documentation() {
            Class::Documentation
        } else {
            Class::Global
        }
    }

    fn of_v6(address: Ipv6Addr) -> Class {
        let [first, second, ..] = address.segments();
        if address.is_unspecified() {
            Class::Unspecified
        } else if address.is_loopback() {
            Class::Loopback
        } else if address.is_multicast() {
            Class::Multicast
        } else if first & 0xffc0 == 0xfe80 {
            Class::LinkLocal
        } else if first & 0xfe00 == 0xfc00 {
            Class::Private
        } else if first == 0x2001 && second == 0x0db8 {
            Class::Documentation
        } else {
            Class::Global
        }
    }

    /// Reachable from the Internet; documentation addresses count, because examples and tests use them as
    /// such.
    fn is_global(self) -> bool {
        matches!(self, Class::Documentation | Class::Global)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn texts_are_those_of_display() {
        for text in
            ["0.0.0.0:0", "192.0.2.10:4000", "255.255.255.255:65535", "10.100.0.9:10", "[2001:db8::1]:5"]
        {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(socket_text(address), text);
            assert_eq!(ip_text(address.ip()), address.ip().to_string());
        }
    }

    #[test]
    fn dead_ends_are_known() {
        let cases = [
            ("private to global", "10.1.1.9", "8.8.8.8", true),
            ("private to a documentation address", "10.1.1.9", "203.0.113.7", true),
            ("carrier NAT to global", "100.64.0.1", "8.8.8.8", true),
            ("unique local to global", "fd00::1", "2a00::1", true),
            ("private to private", "10.1.1.9", "192.168.1.2", false),
            ("the same private", "10.1.1.9", "10.1.1.9", false),
            ("global to global", "1.1.1.1", "8.8.8.8", false),
            ("global to private", "1.1.1.1", "10.0.0.1", false),
            ("loopback to global", "127.0.0.1", "8.8.8.8", true),
            ("loopback to private", "127.0.0.1", "10.0.0.1", true),
            ("loopback to loopback", "127.0.0.2", "127.0.0.1", false),
            ("link-local to private", "169.254.1.1", "10.0.0.1", true),
            ("link-local to link-local", "169.254.1.1", "169.254.1.2", false),
            ("multicast", "224.0.0.1", "10.0.0.1", true),
            ("broadcast", "255.255.255.255", "10.0.0.1", true),
            ("unspecified", "0.0.0.0", "10.0.0.1", true),
            ("documentation to global", "192.0.2.1", "8.8.8.8", true),
            ("documentation to documentation", "192.0.2.1", "203.0.113.7", false),
            ("one of ours", "198.18.0.1", "8.8.8.8", true),
            ("mapped private to global", "::ffff:10.0.0.1", "8.8.8.8", true),
            ("mapped and plain", "::ffff:10.0.0.1", "10.0.0.1", false),
            ("IPv6 link-local", "fe80::1", "2a00::1", true),
        ];
        for (name, address, from, expected) in cases {
            assert_eq!(is_unreachable(ip(address), ip(from), &[ip("198.18.0.1")]), expected, "{name}");
        }
    }

    #[test]
    fn forbidden_targets_are_known() {
        let cases = [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "10.0.0.1", false),
            ("::1", "::1", true),
            ("::ffff:127.0.0.1", "8.8.8.8", false),
            ("169.254.169.254", "8.8.8.8", false),
            ("169.254.169.254", "169.254.169.1", false),
            ("224.0.0.5", "8.8.8.8", false),
            ("255.255.255.255", "8.8.8.8", false),
            ("0.0.0.0", "127.0.0.1", false),
            ("0.1.2.3", "127.0.0.1", false),
            ("::", "::1", false),
            ("fe80::1", "fe80::2", false),
            ("ff02::1", "fe80::2", false),
            ("10.0.0.1", "8.8.8.8", true),
            ("8.8.8.8", "10.0.0.1", true),
        ];
        for (address, from, expected) in cases {
            assert_eq!(is_permitted(ip(address), Some(ip(from))), expected, "{address} for {from}");
        }
        assert!(!is_permitted(ip("127.0.0.1"), None));
    }
}
