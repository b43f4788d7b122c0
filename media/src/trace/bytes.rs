//! Encodes numbers and addresses of a trace compactly, and reads them with all checks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// Appends `value` seven bits at a time, the lowest first; the top bit means that more follow.
#[inline]
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a number that may be negative and is usually small.
#[inline]
pub(super) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Appends a text or a datagram with its length.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends an address with its port.
pub(super) fn put_address(out: &mut Vec<u8>, address: SocketAddr) {
    put_ip(out, address.ip());
    out.extend_from_slice(&address.port().to_be_bytes());
    if let SocketAddr::V6(address) = address {
        put_varint(out, address.flowinfo().into());
        put_varint(out, address.scope_id().into());
    }
}

/// Appends an address without a port.
pub(super) fn put_ip(out: &mut Vec<u8>, ip: IpAddr) {
    match ip {
        IpAddr::V4(ip) => {
            out.push(4);
            out.extend_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out.push(6);
            out.extend_from_slice(&ip.octets());
        }
    }
}

/// Reads appended values; `None` when the bytes end, or are not valid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Cursor { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*array)
    }

    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            value |= bits << shift;
            if byte & 0x80 == 0 {
                // The tenth byte has space for one bit.
                return (shift < 63 || bits <= 1).then_some(value);
            }
        }
        None
    }

    pub(super) fn small(&mut self) -> Option<u32> {
        u32::try_from(self.varint()?).ok()
    }

    pub(super) fn signed(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.varint()?).ok()?;
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(bytes)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    pub(super) fn ip(&mut self) -> Option<IpAddr> {
        match self.byte()? {
            4 => Some(Ipv4Addr::from(self.array::<4>()?).into()),
            6 => Some(Ipv6Addr::from(self.array::<16>()?).into()),
            _ => None,
        }
    }

    pub(super) fn address(&mut self) -> Option<SocketAddr> {
        let ip = self.ip()?;
        let port = u16::from_be_bytes(self.array()?);
        Some(match ip {
            IpAddr::V4(ip) => SocketAddr::new(ip.into(), port),
            IpAddr::V6(ip) => SocketAddrV6::new(ip, port, self.small()?, self.small()?).into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive() {
        for value in [0, 1, -1, 63, 64, -64, -65, 8_191, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            put_signed(&mut out, value);
            put_varint(&mut out, value as u64);
            let mut cursor = Cursor::new(&out);
            assert_eq!((cursor.signed(), cursor.varint()), (Some(value), Some(value as u64)));
            assert!(cursor.is_empty());
        }
    }

    #[test]
    fn a_number_has_an_end() {
        assert_eq!(Cursor::new(&[0xff; 9]).varint(), None);
        assert_eq!(Cursor::new(&[0xff; 11]).varint(), None);
        let top = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2];
        assert_eq!(Cursor::new(&top).varint(), None, "a 65th bit");
        assert_eq!(Cursor::new(&[5, 1, 2]).bytes(), None);
    }

    #[test]
    fn addresses_survive() {
        let scoped = SocketAddrV6::new("fe80::1".parse().unwrap(), 9, 7, 3).into();
        for address in ["192.0.2.1:4000".parse().unwrap(), "[2001:db8::1]:65535".parse().unwrap(), scoped] {
            let mut out = Vec::new();
            put_address(&mut out, address);
            assert_eq!(Cursor::new(&out).address(), Some(address));
        }
        assert_eq!(Cursor::new(&[5, 1, 2, 3, 4, 0, 0]).address(), None);
    }
}
