//! The parts of an SRTP or SRTCP packet that are not encrypted.

/// The fields of an RTP header that the transforms need (RFC 3550 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RtpHead {
    /// Bytes of the header with CSRCs and extension, which are authenticated and not encrypted.
    pub(super) bytes: usize,
    pub(super) ssrc: u32,
    pub(super) sequence: u16,
}

impl RtpHead {
    /// Reads the header; `None` when the datagram ends inside it, or is not RTP.
    #[inline]
    pub(super) fn read(datagram: &[u8]) -> Option<RtpHead> {
        let (head, rest) = datagram.split_first_chunk::<12>()?;
        let [first, _, s0, s1, _, _, _, _, r0, r1, r2, r3] = *head;
        if first >> 6 != 2 {
            return None;
        }
        let mut bytes = head.len() + usize::from(first & 0x0f) * 4;
        if first & EXTENDED != 0 {
            let [_, _, high, low] = *rest.get(bytes - head.len()..)?.first_chunk::<4>()?;
            bytes += 4 + usize::from(u16::from_be_bytes([high, low])) * 4;
        }
        (bytes <= datagram.len()).then_some(RtpHead {
            bytes,
            ssrc: u32::from_be_bytes([r0, r1, r2, r3]),
            sequence: u16::from_be_bytes([s0, s1]),
        })
    }
}

/// The SSRC of the sender of an RTCP packet; `None` when the datagram is shorter than its header.
pub(super) fn rtcp_ssrc(datagram: &[u8]) -> Option<u32> {
    let [_, _, _, _, ssrc @ ..] = *datagram.first_chunk::<RTCP_HEAD_BYTES>()?;
    Some(u32::from_be_bytes(ssrc))
}

/// Bytes of an RTCP packet that are not encrypted.
pub(super) const RTCP_HEAD_BYTES: usize = 8;
/// Bytes of the SRTCP index with its flag.
pub(super) const INDEX_BYTES: usize = 4;
/// The flag beside the SRTCP index: the packet is encrypted (RFC 3711 §3.4).
pub(super) const ENCRYPTED: u32 = 1 << 31;
/// The bit of the first byte of RTP that announces a header extension.
const EXTENDED: u8 = 0x10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_reaches_to_the_payload() {
        let head = |first: u8, rest: &[u8]| {
            let fixed = [first, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9];
            RtpHead::read(&[&fixed[..], rest].concat()).map(|head| head.bytes)
        };
        let table: [(&str, u8, &[u8], Option<usize>); 9] = [
            ("plain", 0x80, &[1], Some(12)),
            ("nothing behind", 0x80, &[], Some(12)),
            ("version 1", 0x40, &[1], None),
            ("two CSRCs", 0x82, &[0; 9], Some(20)),
            ("two CSRCs, one there", 0x82, &[0; 4], None),
            ("an extension", 0x90, &[0, 0, 0, 1, 0, 0, 0, 0, 5], Some(20)),
            ("an extension beyond the end", 0x90, &[0, 0, 0, 2, 0, 0, 0, 0, 5], None),
            ("half an extension", 0x90, &[0, 0, 0], None),
            ("CSRC and extension", 0x91, &[0, 0, 0, 0, 0, 0, 0, 0], Some(20)),
        ];
        for (name, first, rest, expected) in table {
            assert_eq!(head(first, rest), expected, "{name}");
        }
    }
}
