//! Which addresses are public Internet addresses (IANA's registries of special-purpose addresses, RFC 6890).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is a public Internet address, which an organisation may name as a remote host.
///
/// An IPv4-mapped IPv6 address counts as the IPv4 address. No other form with an embedded IPv4 address
/// (compatible, NAT64, 6to4, Teredo) is public, because a translator on the path would forward to any
/// embedded address.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

/// Whether an address is reserved for documentation (RFC 5737, RFC 3849, RFC 9637).
pub fn is_documentation(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => matches!(v4.octets(), [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _]),
        IpAddr::V6(v6) => {
            let [first, second, ..] = v6.segments();
            (first == 0x2001 && second == 0xdb8) || (first == 0x3fff && second < 0x1000)
        }
    }
}

fn is_public_v4(v4: Ipv4Addr) -> bool {
    let [a, b, c, _] = v4.octets();
    !(a == 0
        || a >= 240
        || v4.is_loopback()
        || v4.is_private()
        || v4.is_link_local()
        || v4.is_multicast()
        // Shared address space of a carrier's NAT (RFC 6598).
        || (a == 100 && (b & 0xc0) == 64)
        // Protocol assignments (RFC 6890), and the relays of 6to4 (RFC 7526).
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        // Benchmarks (RFC 2544).
        || (a == 198 && (b & 0xfe) == 18)
        || is_documentation(IpAddr::V4(v4)))
}

/// Only the global unicast space assigned by IANA: an unknown range is not public.
fn is_public_v6(v6: Ipv6Addr) -> bool {
    let [first, second, ..] = v6.segments();
    let global_unicast = (first & 0xe000) == 0x2000;
    // 2001::/23 is for protocols: Teredo, benchmarks, ORCHIDs.
    let for_protocols = first == 0x2001 && second < 0x200;
    let six_to_four = first == 0x2002;
    global_unicast && !for_protocols && !six_to_four && !is_documentation(IpAddr::V6(v6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_aside_is_not_public() {
        let inside = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.0.1",
            "169.254.169.254",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.7",
            "192.88.99.1",
            "192.168.0.0",
            "192.168.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::8.8.8.8",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:80ff:fffe",
            "2001:2::1",
            "2001:20::1",
            "2001:1ff::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:808:808::1",
            "3fff::1",
            "3fff:fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
        ];
        for address in inside {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn what_anybody_may_have_is_public() {
        let outside = [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.1",
            "192.88.98.1",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "203.0.114.7",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "2000::1",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2003::1",
            "2606:4700::1111",
            "2a00:1450::1",
            "3fff:1000::1",
        ];
        for address in outside {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
