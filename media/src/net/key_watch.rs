//! Keys that a leg's party presses as telephone events (RFC 4733) and that its peer can only receive by signalling.
//! Each is reported once, with its duration, when it has ended.

use crate::dtmf::DtmfReceiver;
use crate::rtp::RtpPacket;
use crate::time::Micros;

/// Collects the keys of one leg.
#[derive(Debug)]
pub(super) struct KeyWatch {
    payload_type: u8,
    clock_hz: u32,
    receiver: DtmfReceiver,
    pressed: Option<Pressed>,
    ended: [Option<(char, u32)>; ENDED_MAX],
}

/// The key that is pressed.
#[derive(Clone, Copy, Debug)]
struct Pressed {
    digit: char,
    begin: u32,
    /// Its duration so far, in units of the clock.
    units: u32,
    heard_at: Micros,
}

impl KeyWatch {
    /// Watches events with this payload type and clock.
    pub(super) fn new(payload_type: u8, clock_hz: u32) -> KeyWatch {
        let receiver = DtmfReceiver::new();
        KeyWatch { payload_type, clock_hz, receiver, pressed: None, ended: [None; ENDED_MAX] }
    }

    /// Processes an accepted RTP packet of the party.
    pub(super) fn hear(&mut self, at: Micros, datagram: &[u8]) {
        if datagram.get(1).is_none_or(|octet| octet & 0x7f != self.payload_type) {
            // All packets with the end of the key were lost.
            if self.pressed.is_some_and(|key| at.since(key.heard_at) > LOST_AFTER_US) {
                self.end();
            }
            return;
        }
        let Ok(packet) = RtpPacket::parse(datagram) else { return };
        if let Some(digit) = self.receiver.push(at, &packet, self.clock_hz) {
            self.end();
            self.pressed = Some(Pressed { digit, begin: packet.header.timestamp, units: 0, heard_at: at });
        }
        let Some(key) = &mut self.pressed else { return };
        let Some(&[_, flags, high, low]) = packet.payload.first_chunk::<4>() else { return };
        let units = packet.header.timestamp.wrapping_sub(key.begin);
        // A late packet of the previous key is far behind.
        if units < 1 << 31 {
            key.units = key.units.max(units.saturating_add(u32::from(u16::from_be_bytes([high, low]))));
            key.heard_at = at;
            if flags & 0x80 != 0 {
                self.end();
            }
        }
    }

    /// The next key that has ended, and its duration in milliseconds.
    pub(super) fn take(&mut self) -> Option<(char, u32)> {
        let first = self.ended.first_mut()?.take();
        if first.is_some() {
            self.ended.rotate_left(1);
        }
        first
    }

    fn end(&mut self) {
        let Some(key) = self.pressed.take() else { return };
        let duration_ms = u64::from(key.units) * 1_000 / u64::from(self.clock_hz.max(1));
        let duration_ms = u32::try_from(duration_ms).unwrap_or(u32::MAX);
        // The receiver reports no more keys than fit between two calls of `take`, which follows each batch.
        if let Some(slot) = self.ended.iter_mut().find(|slot| slot.is_none()) {
            *slot = Some((key.digit, duration_ms));
        }
    }
}

/// Keys between two calls of [`KeyWatch::take`].
const ENDED_MAX: usize = 32;
/// A key ends when audio arrives again and no event has arrived for this long.
const LOST_AFTER_US: i64 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// An event of a key, or audio with payload type 0, at a time in milliseconds.
    fn packet(payload_type: u8, timestamp: u32, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x80, payload_type, 0, 1];
        packet.extend(timestamp.to_be_bytes());
        packet.extend(9_u32.to_be_bytes());
        packet.extend(payload);
        packet
    }

    fn keys(packets: &[(i64, Vec<u8>)]) -> Vec<(char, u32)> {
        let mut watch = KeyWatch::new(101, 8_000);
        packets.iter().for_each(|(ms, packet)| watch.hear(Micros::from_millis(*ms), packet));
        std::iter::from_fn(|| watch.take()).collect()
    }

    fn event(ms: i64, timestamp: u32, code: u8, is_end: bool, duration: u16) -> (i64, Vec<u8>) {
        let [high, low] = duration.to_be_bytes();
        (ms, packet(101, timestamp, &[code, u8::from(is_end) << 7 | 10, high, low]))
    }

    #[test]
    fn a_key_is_reported_once_with_its_duration() {
        let press = [
            event(0, 800, 5, false, 160),
            event(20, 800, 5, false, 320),
            event(40, 800, 5, true, 480),
            event(60, 800, 5, true, 480),
            event(80, 800, 5, true, 480),
            event(200, 2_400, 11, true, 800),
        ];
        assert_eq!(keys(&press), [('5', 60), ('#', 100)]);
        for lost in 0..press.len() - 1 {
            let mut some = press.to_vec();
            some.remove(lost);
            assert_eq!(keys(&some), [('5', 60), ('#', 100)], "packet {lost} is lost");
        }
    }

    #[test]
    fn a_key_whose_end_is_lost_ends_with_the_audio_after_it_or_the_next_key() {
        let audio = |ms| (ms, packet(0, 9_000, &[0x55; 160]));
        let begun = || event(0, 800, 5, false, 320);
        assert_eq!(keys(&[begun(), audio(50)]), []);
        assert_eq!(keys(&[begun(), audio(150), audio(170)]), [('5', 40)]);
        assert_eq!(keys(&[begun(), event(90, 2_400, 6, true, 160)]), [('5', 40), ('6', 20)]);
        // A long press continues with a new timestamp where its first part ends (RFC 4733 §2.5.1.3).
        let long = [event(0, 800, 5, false, 0xffff), event(20, 66_335, 5, true, 1_600)];
        assert_eq!(keys(&long), [('5', 8_391)]);
        assert_eq!(keys(&[(0, packet(101, 0, &[5]))]), [], "too short for an event");
    }
}
