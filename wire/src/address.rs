//! Socket addresses as the kernel writes them.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use nix::libc;

/// Space for an address of either family; `sockaddr_in6` has 28 bytes.
pub(crate) const NAME_BYTES: usize = 32;

/// Reads a `sockaddr_in` or `sockaddr_in6`; `None` for anything else.
#[inline]
pub(crate) fn read(name: &[u8; NAME_BYTES]) -> Option<SocketAddr> {
    let [f0, f1, p0, p1, x0, x1, x2, x3, rest @ ..] = name;
    let port = u16::from_be_bytes([*p0, *p1]);
    match i32::from(u16::from_ne_bytes([*f0, *f1])) {
        libc::AF_INET => Some(SocketAddr::from((Ipv4Addr::new(*x0, *x1, *x2, *x3), port))),
        libc::AF_INET6 => {
            let (octets, rest) = rest.split_first_chunk::<16>()?;
            let scope = u32::from_ne_bytes(*rest.first_chunk()?);
            let flow = u32::from_ne_bytes([*x0, *x1, *x2, *x3]);
            Some(SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::from(*octets), port, flow, scope)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_are_read() {
        for text in ["192.0.2.7:16384", "[2001:db8::5]:7", "[fe80::1%3]:9"] {
            let address: SocketAddr = text.parse().unwrap();
            let mut name = [0; NAME_BYTES];
            match address {
                SocketAddr::V4(v4) => {
                    name[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
                    name[4..8].copy_from_slice(&v4.ip().octets());
                }
                SocketAddr::V6(v6) => {
                    name[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
                    name[8..24].copy_from_slice(&v6.ip().octets());
                    name[24..28].copy_from_slice(&v6.scope_id().to_ne_bytes());
                }
            }
            name[2..4].copy_from_slice(&address.port().to_be_bytes());
            assert_eq!(read(&name), Some(address), "{text}");
        }
        assert_eq!(read(&[0; NAME_BYTES]), None, "no address");
    }
}
