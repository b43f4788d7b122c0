//! Writes UDP datagrams to a classic capture file, with valid checksums.

use std::io;
use std::net::{IpAddr, SocketAddr};

use super::link_type::LinkType;
use crate::time::Micros;

/// A capture file under construction: little-endian, microseconds.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    link: LinkType,
    frame: Vec<u8>,
    identification: u16,
}

impl<W: io::Write> Writer<W> {
    /// Begins a file on `out` with link type [`LinkType::ETHERNET`] or [`LinkType::RAW`].
    ///
    /// *Errors*: errors of `out`, or an unsupported link type.
    pub fn new(mut out: W, link: LinkType) -> io::Result<Self> {
        if !matches!(link, LinkType::ETHERNET | LinkType::RAW) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "only Ethernet and raw IP are written"));
        }
        out.write_all(&file_header(link))?;
        Ok(Writer { out, link, frame: Vec::with_capacity(2_048), identification: 0 })
    }

    /// Appends one datagram, captured at `at` microseconds since the Unix epoch.
    ///
    /// *Errors*: errors of the output; a payload above 65,000 bytes; addresses of two families; a time that
    /// the format cannot hold (before 1970 or after 2105).
    pub fn write_udp(
        &mut self,
        at: Micros,
        source: SocketAddr,
        destination: SocketAddr,
        payload: &[u8],
    ) -> io::Result<()> {
        let invalid = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
        let Ok(udp_len) = u16::try_from(payload.len() + 8)
            .map_err(|_| ())
            .and_then(|len| if len > 65_008 { Err(()) } else { Ok(len) })
        else {
            return Err(invalid("the payload is too long for a datagram"));
        };
        self.frame.clear();
        if self.link == LinkType::ETHERNET {
            // Locally administered addresses, which no network card has.
            self.frame.extend([0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1]);
            self.frame.extend(if source.is_ipv4() { [0x08, 0x00] } else { [0x86, 0xdd] });
        }
        match (source.ip(), destination.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                self.identification = self.identification.wrapping_add(1);
                let mut header = [0_u8; 20];
                header[0] = 0x45;
                header[2..4].copy_from_slice(&(udp_len + 20).to_be_bytes());
                header[4..6].copy_from_slice(&self.identification.to_be_bytes());
                header[6] = 0x40;
                header[8] = 64;
                header[9] = 17;
                header[12..16].copy_from_slice(&from.octets());
                header[16..20].copy_from_slice(&to.octets());
                let sum = !fold(sum16(0, &header));
                header[10..12].copy_from_slice(&sum.to_be_bytes());
                self.frame.extend(header);
                let pseudo = sum16(sum16(0, &from.octets()), &to.octets());
                self.push_udp(source.port(), destination.port(), udp_len, pseudo, payload);
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                self.frame.extend([0x60, 0, 0, 0]);
                self.frame.extend(udp_len.to_be_bytes());
                self.frame.extend([17, 64]);
                self.frame.extend(from.octets());
                self.frame.extend(to.octets());
                let pseudo = sum16(sum16(0, &from.octets()), &to.octets());
                self.push_udp(source.port(), destination.port(), udp_len, pseudo, payload);
            }
            _ => return Err(invalid("source and destination are of different families")),
        }
        let len = self.frame.len() as u32;
        let header = record_header(at, len, len).ok_or_else(|| invalid("the time does not fit"))?;
        self.out.write_all(&header)?;
        self.out.write_all(&self.frame)
    }

    /// Flushes and returns the output.
    ///
    /// *Errors*: errors of the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn push_udp(&mut self, from: u16, to: u16, udp_len: u16, pseudo: u64, payload: &[u8]) {
        let numbers = [from, to, udp_len];
        // The pseudo header adds protocol and length (RFC 768, RFC 8200 §8.1); the length is counted twice.
        let header = numbers.iter().fold(pseudo + 17 + u64::from(udp_len), |sum, n| sum + u64::from(*n));
        let checksum = match !fold(sum16(header, payload)) {
            0 => 0xffff,
            sum => sum,
        };
        for number in [from, to, udp_len, checksum] {
            self.frame.extend(number.to_be_bytes());
        }
        self.frame.extend_from_slice(payload);
    }
}

/// The header of a classic capture file: little-endian, microseconds, frames of one link type.
pub fn file_header(link: LinkType) -> [u8; 24] {
    let mut header = [0; 24];
    let parts: [&[u8]; 6] = [
        &0xa1b2_c3d4_u32.to_le_bytes(),
        &2_u16.to_le_bytes(),
        &4_u16.to_le_bytes(),
        &[0; 8],
        &SNAP_LEN.to_le_bytes(),
        &u32::from(link.0).to_le_bytes(),
    ];
    for (slot, byte) in header.iter_mut().zip(parts.into_iter().flatten()) {
        *slot = *byte;
    }
    header
}

/// The header of each frame in such a file: its capture time in microseconds since the Unix epoch, its
/// captured length, and its original length; `None` for a time before 1970 or after 2105.
pub fn record_header(at: Micros, len: u32, wire_len: u32) -> Option<[u8; 16]> {
    let seconds = u32::try_from(at.0.div_euclid(1_000_000)).ok()?;
    let micros = at.0.rem_euclid(1_000_000) as u32;
    let mut header = [0; 16];
    let numbers = [seconds, micros, len, wire_len].map(u32::to_le_bytes);
    for (slot, byte) in header.iter_mut().zip(numbers.as_flattened()) {
        *slot = *byte;
    }
    Some(header)
}

/// Adds `bytes` to an Internet checksum (RFC 1071).
fn sum16(start: u64, bytes: &[u8]) -> u64 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let sum = pairs.iter().fold(start, |sum, pair| sum + u64::from(u16::from_be_bytes(*pair)));
    rest.iter().fold(sum, |sum, last| sum + (u64::from(*last) << 8))
}

fn fold(mut sum: u64) -> u16 {
    // Four iterations fold 64 bits into 16.
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

const SNAP_LEN: u32 = 262_144;

#[cfg(test)]
mod tests {
    use super::super::{Content, Records, dissect};
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let cases = [
            ("IPv4", LinkType::ETHERNET, "192.0.2.1:4000", "192.0.2.2:5000"),
            ("IPv6", LinkType::ETHERNET, "[2001:db8::1]:4000", "[2001:db8::2]:5000"),
            ("raw IPv4", LinkType::RAW, "127.0.0.1:65535", "127.0.0.1:1"),
            ("raw IPv6", LinkType::RAW, "[::1]:6000", "[::1]:6002"),
        ];
        for (name, link, from, to) in cases {
            let (from, to): (SocketAddr, SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
            let mut file = Vec::new();
            let mut writer = Writer::new(&mut file, link).unwrap();
            for len in [0, 1, 172] {
                writer.write_udp(Micros(1_700_000_000_123_456), from, to, &vec![7; len]).unwrap();
            }
            writer.finish().unwrap();
            let records: Vec<_> = Records::new(&file).map(Result::unwrap).collect();
            assert_eq!(records.len(), 3, "{name}");
            for (record, len) in records.iter().zip([0, 1, 172]) {
                assert_eq!(record.at, Micros(1_700_000_000_123_456), "{name}");
                let Content::Udp(datagram) = dissect(record.link, record.frame) else { panic!("{name}") };
                assert_eq!((datagram.source, datagram.destination), (from, to), "{name}");
                assert_eq!(datagram.payload, vec![7; len], "{name}");
            }
        }
    }

    #[test]
    fn checksums_verify() {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, LinkType::RAW).unwrap();
        let (from, to) = ("192.0.2.1:4000".parse().unwrap(), "192.0.2.2:5000".parse().unwrap());
        writer.write_udp(Micros(0), from, to, b"abc").unwrap();
        let frame = &file[40..];
        assert_eq!(fold(sum16(0, &frame[..20])), 0xffff, "the IPv4 header");
        let pseudo = sum16(17 + 11, &frame[12..20]);
        assert_eq!(fold(sum16(pseudo, &frame[20..])), 0xffff, "the UDP datagram");
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        let v4: SocketAddr = "192.0.2.1:4000".parse().unwrap();
        let v6: SocketAddr = "[::1]:4000".parse().unwrap();
        assert!(Writer::new(Vec::new(), LinkType::LINUX_SLL).is_err());
        let mut writer = Writer::new(Vec::new(), LinkType::RAW).unwrap();
        assert!(writer.write_udp(Micros(0), v4, v6, b"").is_err());
        assert!(writer.write_udp(Micros(-1), v4, v4, b"").is_err());
        assert!(writer.write_udp(Micros(0), v4, v4, &vec![0; 66_000]).is_err());
    }
}
