//! Fax on a leg: UDPTL datagrams (ITU-T T.38 clause 9.1) in place of RTP. They are admitted by the rules for sources of
//! RTP, counted and relayed. They have neither timestamps nor an SSRC, and their pace is that of a modem, so no figure
//! of audio and no rule of the verdict includes them.

use crate::rtp::Packet;
use crate::session::numbers::Numbers;

/// Counts of a leg's UDPTL datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaxCounters {
    /// Datagrams of the party that were relayed or could have been.
    pub received: u64,
    /// Datagrams sent to the party.
    pub sent: u64,
    /// Sequence numbers of the party that did not arrive. A later datagram usually repeats their content (T.38 clause
    /// 9.1.4).
    pub missing: u64,
}

/// The counts, and the newest sequence number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fax {
    pub(super) counters: FaxCounters,
    numbers: Numbers,
}

impl Fax {
    /// Begins a fax: its sequence numbers restart.
    pub(super) fn begin(&mut self) {
        self.numbers = Numbers::default();
    }

    /// Counts an accepted datagram.
    pub(super) fn received(&mut self, sequence: u16) {
        self.counters.received = self.counters.received.saturating_add(1);
        let missing = self.numbers.note(sequence);
        self.counters.missing = self.counters.missing.saturating_add_signed(missing);
    }
}

/// The sequence number of a datagram; `None` when it cannot be UDPTL: a number of two octets, the length of the primary
/// packet, that packet, and at least two octets for error recovery.
pub(crate) fn sequence(datagram: &[u8]) -> Option<u16> {
    let [high, low, length, rest @ ..] = datagram else { return None };
    let (primary, rest) = match length {
        // A length of 128 and above takes two octets (X.691 clause 11.9).
        0x80.. => (usize::from(length & 0x3f) << 8 | usize::from(*rest.first()?), rest.get(1..)?),
        short => (usize::from(*short), rest),
    };
    (primary > 0 && rest.len() >= primary + RECOVERY_BYTES_MIN).then(|| u16::from_be_bytes([*high, *low]))
}

/// A datagram with this sequence number; a session processes it like the original datagram.
pub(crate) fn stand_in(sequence: u16) -> [u8; 6] {
    let [high, low] = sequence.to_be_bytes();
    [high, low, 1, 0, 0, 0]
}

/// The fields of a datagram that the rules for sources need: consecutive numbers prove a source.
pub(super) fn as_packet(sequence: u16, len: usize) -> Packet {
    Packet { sequence, payload_len: u32::try_from(len).unwrap_or(u32::MAX), ..Packet::default() }
}

/// Error recovery without content takes two octets.
const RECOVERY_BYTES_MIN: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_from_what_can_be_udptl_alone() {
        let mut long = vec![0, 9, 0x80, 200];
        long.extend([0; 202]);
        let table: [(&str, &[u8], Option<u16>); 8] = [
            ("no signal, no redundancy", &[0, 7, 1, 2, 0, 0], Some(7)),
            ("the stand-in", &stand_in(0xfffe), Some(0xfffe)),
            ("a primary packet of 200 octets", &long, Some(9)),
            ("cut in the primary packet", &long[..150], None),
            ("no error recovery", &[0, 7, 1, 2, 0], None),
            ("an empty primary packet", &[0, 7, 0, 0, 0, 0], None),
            ("too short", &[0, 7], None),
            ("a keepalive", &[], None),
        ];
        for (name, datagram, expected) in table {
            assert_eq!(sequence(datagram), expected, "{name}");
        }
    }
}
