//! One simulated RTP packet and its bytes (RFC 3550 §5.1).

use std::sync::LazyLock;

use super::scenario::Codec;
use super::tone::Tone;
use crate::time::Micros;

/// An RTP packet when it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its arrival, counted from the start of the simulation.
    pub at: Micros,
    /// Sequence number.
    pub sequence: u16,
    /// RTP timestamp.
    pub timestamp: u32,
    /// Synchronisation source.
    pub ssrc: u32,
    /// Payload type.
    pub payload_type: u8,
    /// Marker bit: the start of a talk spurt or a digit.
    pub marker: bool,
    /// Length of the payload in bytes.
    pub payload_len: u16,
    /// Content of the payload.
    pub content: Content,
}

/// The content of a simulated packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Encoded audio that begins at this sample of the tone.
    Audio {
        /// Its codec.
        codec: Codec,
        /// First sample.
        position: u32,
    },
    /// Comfort noise (RFC 3389).
    ComfortNoise,
    /// A part of a digit (RFC 4733 §2.3).
    Event {
        /// 0 to 9, 10 for `*`, 11 for `#`.
        digit: u8,
        /// Whether the digit has ended.
        end: bool,
        /// Its duration so far in timestamp units.
        duration: u16,
    },
}

/// Payload type of comfort noise at 8 kHz (RFC 3551 table 4).
pub(super) const COMFORT_NOISE: u8 = 13;
/// The payload type of telephone-event that simulated parties use.
pub(super) const TELEPHONE_EVENT: u8 = 101;

impl Packet {
    /// Writes header and payload into `out`, and replaces its content.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend([0x80, self.payload_type & 0x7f | if self.marker { 0x80 } else { 0 }]);
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.timestamp.to_be_bytes());
        out.extend(self.ssrc.to_be_bytes());
        match self.content {
            Content::Audio { codec, position } => {
                TONE.write(codec, position, usize::from(self.payload_len), out);
            }
            // -70 dBov (RFC 3389 §3.1).
            Content::ComfortNoise => out.push(70),
            Content::Event { digit, end, duration } => {
                out.extend([digit, if end { 0x8a } else { 0x0a }]);
                out.extend(duration.to_be_bytes());
            }
        }
    }
}

/// Two tables of 200 bytes that never change.
static TONE: LazyLock<Tone> = LazyLock::new(Tone::new);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_each_content() {
        let base = Packet {
            at: Micros(0),
            sequence: 0x0102,
            timestamp: 0x0304_0506,
            ssrc: 0x0708_090a,
            payload_type: 0,
            marker: true,
            payload_len: 4,
            content: Content::Audio { codec: Codec::G722, position: 0 },
        };
        let cases = [
            ("audio", base, vec![0x80, 0x80], vec![0xfa; 4]),
            (
                "comfort noise",
                Packet { payload_type: COMFORT_NOISE, marker: false, content: Content::ComfortNoise, ..base },
                vec![0x80, 13],
                vec![70],
            ),
            (
                "digit",
                Packet {
                    payload_type: TELEPHONE_EVENT,
                    content: Content::Event { digit: 5, end: true, duration: 800 },
                    ..base
                },
                vec![0x80, 0x80 | 101],
                vec![5, 0x8a, 0x03, 0x20],
            ),
        ];
        for (name, packet, begin, payload) in cases {
            let mut out = vec![9; 99];
            packet.write(&mut out);
            let header = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
            assert_eq!(out, [&begin[..], &header, &payload].concat(), "{name}");
        }
    }
}
