//! The RTP headers of what one seat is sent: one RTP stream per seat, also when the encoding is shared.

use crate::codec::Codec;
use crate::simulate::Random;

/// Header state of one stream (RFC 3550 §5.1).
///
/// A timestamp follows from the packet's position in the mix. So it counts skipped ticks, and packets that
/// are not sent need no work.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    ssrc: u32,
    sequence: u16,
    /// The timestamp at the mix's start.
    base: u32,
    /// Timestamp units of [`UNIT_MS`].
    unit: u32,
    payload_type: u8,
    /// Position after the last packet.
    ended: Option<u64>,
}

impl Sender {
    /// A stream that has not started.
    pub(super) fn new(seed: u64, (payload_type, codec): (u8, Codec)) -> Self {
        let mut random = Random::for_purpose(seed, "mix sender");
        let [ssrc, base, sequence] = std::array::from_fn(|_| (random.bits() >> 32) as u32);
        Sender { ssrc, sequence: sequence as u16, base, unit: unit(codec), payload_type, ended: None }
    }

    /// Changes the codec at `position`; the timestamps continue without a jump.
    pub(super) fn format(&mut self, (payload_type, codec): (u8, Codec), position: u64) {
        let at = self.timestamp(position);
        (self.payload_type, self.unit) = (payload_type, unit(codec));
        self.base = self.base.wrapping_add(at.wrapping_sub(self.timestamp(position)));
    }

    /// The header of the packet that begins at `position` and lasts `units`, both counted in [`UNIT_MS`]. The marker is
    /// set when no packet was sent just before (RFC 3551 §4.1).
    pub(super) fn header(&mut self, position: u64, units: u64) -> [u8; 12] {
        let marker = self.ended != Some(position);
        self.ended = Some(position + units);
        let [s0, s1] = self.sequence.to_be_bytes();
        let [t0, t1, t2, t3] = self.timestamp(position).to_be_bytes();
        let [r0, r1, r2, r3] = self.ssrc.to_be_bytes();
        self.sequence = self.sequence.wrapping_add(1);
        [0x80, u8::from(marker) << 7 | self.payload_type, s0, s1, t0, t1, t2, t3, r0, r1, r2, r3]
    }

    fn timestamp(&self, position: u64) -> u32 {
        // Timestamps count modulo 2³².
        self.base.wrapping_add((position as u32).wrapping_mul(self.unit))
    }
}

fn unit(codec: Codec) -> u32 {
    codec.rtp_clock().hz() / 1_000 * UNIT_MS
}

/// The unit of positions: the shortest packet.
pub(super) const UNIT_MS: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtp::Packet;

    fn read(header: [u8; 12]) -> Packet {
        Packet::parse(&header).unwrap()
    }

    #[test]
    fn numbers_follow_each_other_and_times_follow_the_mix() {
        let mut sender = Sender::new(1, (0, Codec::Pcmu));
        let first = read(sender.header(1_000, 2));
        let second = read(sender.header(1_002, 2));
        let later = read(sender.header(1_104, 2));
        assert_eq!((first.marker, second.marker, later.marker), (true, false, true));
        assert_eq!((first.ssrc, first.payload_type), (later.ssrc, 0));
        let sequence = first.sequence;
        assert_eq!(second.sequence, sequence.wrapping_add(1));
        assert_eq!(later.sequence, sequence.wrapping_add(2));
        assert_eq!(second.timestamp.wrapping_sub(first.timestamp), 160);
        assert_eq!(later.timestamp.wrapping_sub(first.timestamp), 104 * 80);
        let other = read(Sender::new(2, (0, Codec::Pcmu)).header(1_000, 2));
        assert!(other.ssrc != first.ssrc && other.timestamp != first.timestamp);
    }

    #[test]
    fn another_clock_goes_on_from_the_same_time() {
        let mut sender = Sender::new(1, (0, Codec::Pcmu));
        let first = read(sender.header(500, 2));
        sender.format((96, Codec::L16 { rate_hz: 48_000, channels: 1 }), 502);
        let second = read(sender.header(502, 2));
        let third = read(sender.header(504, 2));
        assert_eq!((second.payload_type, second.timestamp.wrapping_sub(first.timestamp)), (96, 160));
        assert_eq!(third.timestamp.wrapping_sub(second.timestamp), 960);
    }
}
