//! The place of the payload in an RTP packet, and the payload types of G.711, for code that reads or overwrites audio.

use std::ops::Range;

/// The range of an RTP packet's payload, without its padding (RFC 3550 §5.1).
pub(super) fn payload(datagram: &[u8]) -> Option<Range<usize>> {
    let first = *datagram.first()?;
    let mut begin = 12 + usize::from(first & 0x0f) * 4;
    if first & 0x10 != 0 {
        let length = datagram.get(begin + 2..begin + 4)?;
        begin += 4 + usize::from(u16::from_be_bytes(length.try_into().ok()?)) * 4;
    }
    let padding = if first & 0x20 != 0 { usize::from(*datagram.last()?) } else { 0 };
    let end = datagram.len().checked_sub(padding)?;
    (begin <= end).then_some(begin..end)
}

/// The static payload types of G.711 (RFC 3551 §6), which every party understands.
pub(super) const PCMU: u8 = 0;
pub(super) const PCMA: u8 = 8;
