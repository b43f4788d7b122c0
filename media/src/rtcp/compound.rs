//! One RTCP datagram: validated as a whole (RFC 3550 appendix A.2), then read packet by packet.
//!
//! The lengths must add up to the datagram before anything in it is used: encrypted RTCP has a clear header
//! followed by ciphertext, and figures read from ciphertext would be wrong. Reduced-size RTCP (RFC 5506) is
//! accepted, so any packet may come first.

use rtcp_types::prelude::*;
use rtcp_types::{Bye, ReceiverReport, ReportBlock, SenderReport};

use super::extended::Extended;

/// Whether `datagram` begins with an RTCP packet of version 2 whose length does not exceed it; the minimum
/// condition for relaying it.
pub fn is_plausible(datagram: &[u8]) -> bool {
    match *datagram {
        [128..=191, 192..=223, high, low, _, _, _, _, ..] => {
            let words = usize::from(u16::from_be_bytes([high, low]));
            (words + 1) * 4 <= datagram.len()
        }
        _ => false,
    }
}

/// A datagram of RTCP packets whose lengths add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compound<'a> {
    datagram: &'a [u8],
}

/// Why a datagram is not used at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// SRTCP with the E flag set (RFC 3711 §3.4): all but the first header is ciphertext.
    #[error("read RTCP: it is encrypted")]
    Encrypted,
    /// An invalid version, type, length or padding.
    #[error("read RTCP: the packets' lengths do not add up")]
    Malformed,
}

/// One packet of a compound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element<'a> {
    /// An extended report (RFC 3611).
    Extended(Extended<'a>),
    /// Sources that leave (RFC 3550 §6.6).
    Goodbye(Bye<'a>),
    /// A type without quality information, or a body that is too short for its type.
    Other,
    /// A receiver report (RFC 3550 §6.4.2).
    Receiver(ReceiverReport<'a>),
    /// A sender report (RFC 3550 §6.4.1).
    Sender(SenderReport<'a>),
}

/// One report block about one source (RFC 3550 §6.4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The source that the block is about.
    pub ssrc: u32,
    /// Packets lost since the previous report, in 256ths of the expected.
    pub fraction_lost: u8,
    /// Packets lost since the beginning, a signed 24-bit number: duplicates can make it negative.
    pub cumulative_lost: i32,
    /// The highest sequence number received, with its cycles in the upper half.
    pub highest: u32,
    /// Interarrival jitter in units of the payload's clock.
    pub jitter_ticks: u32,
    /// The middle 32 bits of the NTP time of the last sender report received; 0 for none.
    pub last_report: u32,
    /// Time since that report arrived, in 65,536ths of a second.
    pub delay: u32,
}

/// The sender info of a sender report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderInfo {
    /// The sender's SSRC.
    pub ssrc: u32,
    /// Its wall clock as an NTP time.
    pub ntp: u64,
    /// The same moment on the RTP clock.
    pub timestamp: u32,
    /// RTP packets sent so far, modulo 2³².
    pub packets: u32,
    /// Their payload octets, modulo 2³².
    pub octets: u32,
}

impl<'a> Compound<'a> {
    /// Validates `datagram` as a whole.
    ///
    /// # Errors
    /// When its packets do not fill it exactly, or when it is encrypted.
    pub fn read(datagram: &'a [u8]) -> Result<Compound<'a>, Unreadable> {
        if let Some(clear) = authenticated(datagram) {
            return Ok(Compound { datagram: clear });
        }
        if adds_up(datagram) {
            return Ok(Compound { datagram });
        }
        Err(if is_encrypted(datagram) { Unreadable::Encrypted } else { Unreadable::Malformed })
    }

    /// Its packets, in order.
    pub fn elements(self) -> impl Iterator<Item = Element<'a>> {
        let mut rest = self.datagram;
        std::iter::from_fn(move || {
            let (packet, after) = split_packet(rest)?;
            rest = after;
            Some(Element::read(packet))
        })
    }
}

impl<'a> Element<'a> {
    fn read(packet: &'a [u8]) -> Element<'a> {
        match packet.get(1) {
            Some(200) => SenderReport::parse(packet).map_or(Element::Other, Element::Sender),
            Some(201) => ReceiverReport::parse(packet).map_or(Element::Other, Element::Receiver),
            Some(203) => Bye::parse(packet).map_or(Element::Other, Element::Goodbye),
            Some(207) => Extended::read(packet).map_or(Element::Other, Element::Extended),
            _ => Element::Other,
        }
    }
}

impl Block {
    /// Converts a block of rtcp-types.
    pub fn of(block: &ReportBlock<'_>) -> Block {
        Block {
            ssrc: block.ssrc(),
            fraction_lost: block.fraction_lost(),
            // The crate returns the 24 bits unsigned; shifting up and down restores the sign.
            cumulative_lost: ((block.cumulative_lost() << 8) as i32) >> 8,
            highest: block.extended_sequence_number(),
            jitter_ticks: block.interarrival_jitter(),
            last_report: block.last_sender_report_timestamp(),
            delay: block.delay_since_last_sender_report_timestamp(),
        }
    }
}

impl SenderInfo {
    /// Converts the sender info of a sender report.
    pub fn of(report: &SenderReport<'_>) -> SenderInfo {
        SenderInfo {
            ssrc: report.ssrc(),
            ntp: report.ntp_timestamp(),
            timestamp: report.rtp_timestamp(),
            packets: report.packet_count(),
            octets: report.octet_count(),
        }
    }
}

/// The middle 32 bits of an NTP time, which reports repeat.
pub(super) fn middle(ntp: u64) -> u32 {
    (ntp >> 16) as u32
}

/// The first packet and the rest; `None` at the end, and when there is no valid packet.
fn split_packet(datagram: &[u8]) -> Option<(&[u8], &[u8])> {
    match *datagram {
        [128..=191, 192..=223, high, low, ..] => {
            let words = usize::from(u16::from_be_bytes([high, low]));
            datagram.split_at_checked((words + 1) * 4)
        }
        _ => None,
    }
}

/// Whether the packets fill the datagram, with padding only in the last one.
///
/// Up to three octets after the last packet are ignored, contrary to appendix A.2, because some gateways leave two.
/// They are too few for a packet, and for the bytes that encryption appends.
fn adds_up(datagram: &[u8]) -> bool {
    let mut rest = datagram;
    let mut padded = false;
    while let Some((packet, after)) = split_packet(rest) {
        if padded {
            return false;
        }
        padded = packet.first().is_some_and(|first| first & 0x20 != 0);
        if padded {
            let padding = packet.last().map_or(0, |last| usize::from(*last));
            if padding == 0 || padding % 4 != 0 || padding + 4 > packet.len() {
                return false;
            }
        }
        rest = after;
    }
    rest.len() < 4 && rest.len() < datagram.len()
}

/// Whether the datagram ends like SRTCP with the E flag set.
fn is_encrypted(datagram: &[u8]) -> bool {
    if !is_plausible(datagram) {
        return false;
    }
    // In RFC 3711 the tag follows the index, in RFC 7714 §17 the index follows the tag.
    [TAG_BYTES + INDEX_BYTES, INDEX_BYTES].into_iter().any(|behind| {
        let flag = datagram.len().checked_sub(behind).filter(|at| *at >= HEADER_BYTES);
        flag.and_then(|at| datagram.get(at)).is_some_and(|first| first & 0x80 != 0)
    })
}

/// The packets of authenticated but unencrypted SRTCP: the E flag is clear, the tag has 80 bits.
fn authenticated(datagram: &[u8]) -> Option<&[u8]> {
    let clear = datagram.get(..datagram.len().checked_sub(TAG_BYTES + INDEX_BYTES)?)?;
    let flag = datagram.get(clear.len())?;
    (flag & 0x80 == 0 && adds_up(clear) && !adds_up(datagram)).then_some(clear)
}

/// An RTCP header with its SSRC.
const HEADER_BYTES: usize = 8;
/// The E flag and the index of SRTCP.
const INDEX_BYTES: usize = 4;
/// The authentication tag of SRTCP, which is always the long one (RFC 3711 §5.2, RFC 4568 §6.2).
const TAG_BYTES: usize = 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RECEIVER: [u8; 8] = [0x80, 201, 0, 1, 0, 0, 0, 1];
    const GOODBYE: [u8; 8] = [0x81, 203, 0, 1, 0, 0, 0, 1];

    #[test]
    fn datagrams_are_checked_before_they_are_relayed() {
        let cases: &[(&str, &[u8], bool)] = &[
            ("nothing", &[], false),
            ("an empty receiver report", &RECEIVER, true),
            ("too short", &RECEIVER[..7], false),
            ("a length beyond the end", &[0x80, 201, 0, 2, 0, 0, 0, 1], false),
            ("version 1", &[0x40, 201, 0, 1, 0, 0, 0, 1], false),
            ("an RTP packet", &[0x80, 0, 0, 1, 0, 0, 0, 1], false),
        ];
        for (name, datagram, expected) in cases {
            assert_eq!(is_plausible(datagram), *expected, "{name}");
        }
    }

    #[test]
    fn lengths_add_up_or_nothing_counts() {
        let tag = [0x55; TAG_BYTES];
        let encrypted = [&RECEIVER[..], &[0xee; 24], &[0x80, 0, 0, 7], &tag].concat();
        let gcm = [&RECEIVER[..], &[0xee; 40], &[0x80, 0, 0, 7]].concat();
        let authentic = [&RECEIVER[..], &GOODBYE, &[0, 0, 0, 7], &tag].concat();
        let padded = [0xa0, 201, 0, 2, 0, 0, 0, 1, 0, 0, 0, 4];
        let cases: Vec<(&str, Vec<u8>, Result<usize, Unreadable>)> = vec![
            ("one packet", RECEIVER.to_vec(), Ok(1)),
            ("two packets", [RECEIVER, GOODBYE].concat(), Ok(2)),
            ("reduced size (RFC 5506)", GOODBYE.to_vec(), Ok(1)),
            ("nothing", vec![], Err(Unreadable::Malformed)),
            ("two octets behind", [&RECEIVER[..], &[0; 2]].concat(), Ok(1)),
            ("five octets behind", [&RECEIVER[..], &[0; 5]].concat(), Err(Unreadable::Malformed)),
            ("two octets", vec![0x80, 201], Err(Unreadable::Malformed)),
            ("four octets", vec![0x80, 201, 0, 0], Ok(1)),
            ("padded at the end", [&RECEIVER[..], &padded].concat(), Ok(2)),
            ("padded before the end", [&padded[..], &RECEIVER].concat(), Err(Unreadable::Malformed)),
            ("padding of zero", [&padded[..11], &[0]].concat(), Err(Unreadable::Malformed)),
            ("padding beyond", [&padded[..11], &[16]].concat(), Err(Unreadable::Malformed)),
            ("encrypted", encrypted, Err(Unreadable::Encrypted)),
            ("encrypted with GCM", gcm, Err(Unreadable::Encrypted)),
            ("authenticated only", authentic, Ok(2)),
        ];
        for (name, datagram, expected) in cases {
            let read = Compound::read(&datagram).map(|compound| compound.elements().count());
            assert_eq!(read, expected, "{name}");
        }
    }

    #[test]
    fn a_negative_loss_is_negative() {
        let mut report = vec![0x81, 201, 0, 7, 0, 0, 0, 1];
        report.extend([0, 0, 0, 2, 3, 0xff, 0xff, 0xfe]);
        report.extend([0; 16]);
        let Some(Element::Receiver(read)) = Compound::read(&report).unwrap().elements().next() else {
            panic!("no receiver report");
        };
        let block = Block::of(&read.report_blocks().next().unwrap());
        assert_eq!((block.ssrc, block.fraction_lost, block.cumulative_lost), (2, 3, -2));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(
            first in prop::sample::select(vec![0x80_u8, 0x81, 0xa0, 0x9f]),
            kind in 198_u8..=208,
            rest in prop::collection::vec(any::<u8>(), 0..120),
            words in 0_u8..40,
        ) {
            let datagram = [vec![first, kind, 0, words], rest].concat();
            if let Ok(compound) = Compound::read(&datagram) {
                for element in compound.elements() {
                    match element {
                        Element::Sender(report) => prop_assert!(report.report_blocks().count() < 32),
                        Element::Receiver(report) => prop_assert!(report.report_blocks().count() < 32),
                        Element::Goodbye(bye) => prop_assert!(bye.ssrcs().count() < 32),
                        Element::Extended(extended) => prop_assert!(extended.blocks().count() < 64),
                        Element::Other => {}
                    }
                }
            }
        }
    }
}
