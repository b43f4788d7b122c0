//! Keys that a leg's party receives as telephone events (RFC 4733) although they arrived in another form. They are
//! written over audio that is sent to the party in any case.
//!
//! The packets keep their SSRC and sequence numbers, so that the peer's stream continues without a gap. A key needs a
//! running stream: keys that wait longer than [`WAIT_MAX_US`] for audio are dropped.

use crate::dtmf::KeyPress;
use crate::time::Micros;

/// The keys of one leg that wait or are being sent.
#[derive(Debug, Default)]
pub(super) struct KeyPresses {
    waiting: [Option<(KeyPress, Micros)>; WAITING_MAX],
    now: Option<Sending>,
}

/// The key that is being sent.
#[derive(Clone, Copy, Debug)]
struct Sending {
    key: KeyPress,
    /// The timestamp of its first packet, in units of the audio.
    begin: u32,
    has_begun: bool,
    /// Packets with the end bit so far, and audio packets of the pause after them.
    ends: u8,
}

impl KeyPresses {
    /// Queues a key; false when too many wait.
    pub(super) fn press(&mut self, key: KeyPress, now: Micros) -> bool {
        let slot = self.waiting.iter_mut().find(|slot| slot.is_none());
        match slot {
            Some(slot) => {
                *slot = Some((key, now));
                true
            }
            None => false,
        }
    }

    /// Whether no key is being sent and none waits.
    pub(super) fn is_idle(&self) -> bool {
        self.now.is_none() && self.waiting.iter().all(Option::is_none)
    }

    /// Writes an event over an RTP packet of `len` bytes that is about to be sent. Returns the new length; `None` when
    /// the packet stays as it is.
    pub(super) fn write_over(&mut self, buffer: &mut [u8], len: usize, now: Micros) -> Option<usize> {
        let header = 12 + usize::from(*buffer.first()? & 0x0f) * 4;
        let timestamp = u32::from_be_bytes(buffer.get(4..8)?.try_into().ok()?);
        if len <= header || self.begin(timestamp, now).is_none() {
            return None;
        }
        let sending = self.now.as_mut()?;
        if sending.ends >= ENDS {
            sending.ends += 1;
            if sending.ends >= ENDS + PAUSE {
                self.now = None;
            }
            return None;
        }
        let key = sending.key;
        if buffer.get(1)? & 0x7f == key.payload_type {
            return None; // The talking party sends its own events.
        }
        let event = sending.next(timestamp);
        let marker = u8::from(!std::mem::replace(&mut sending.has_begun, true)) << 7;
        let begin = sending.begin.to_be_bytes();
        let room = buffer.get_mut(..header + event.len())?;
        let (head, payload) = room.split_at_mut(header);
        payload.copy_from_slice(&event);
        // No padding and no extension; the contributing sources stay.
        *head.first_mut()? = 0x80 | (head.first()? & 0x0f);
        *head.get_mut(1)? = marker | (key.payload_type & 0x7f);
        head.get_mut(4..8)?.copy_from_slice(&begin);
        Some(header + event.len())
    }

    /// Begins the next key, unless one is being sent; `None` when there is none.
    fn begin(&mut self, timestamp: u32, now: Micros) -> Option<()> {
        if self.now.is_some() {
            return Some(());
        }
        while let Some((key, at)) = self.waiting.first().copied().flatten() {
            self.waiting.rotate_left(1);
            *self.waiting.last_mut()? = None;
            if now.since(at) <= WAIT_MAX_US {
                self.now = Some(Sending { key, begin: timestamp, has_begun: false, ends: 0 });
                return Some(());
            }
        }
        None
    }
}

impl Sending {
    /// The payload of the packet that replaces audio with this timestamp (RFC 4733 §2.3).
    fn next(&mut self, timestamp: u32) -> [u8; 4] {
        let KeyPress { code, duration_ms, clock_hz, audio_hz, .. } = self.key;
        let clock = u64::from(clock_hz);
        let whole = u64::from(duration_ms.clamp(DURATION_MIN_MS, DURATION_MAX_MS)) * clock / 1_000;
        // A timestamp of another stream is far away, which ends the key.
        let elapsed = u64::from(timestamp.wrapping_sub(self.begin)) * clock / u64::from(audio_hz.max(1));
        let duration = (elapsed + clock / 50).min(whole);
        let is_end = duration >= whole;
        self.ends += u8::from(is_end);
        let [high, low] = u16::try_from(duration).unwrap_or(u16::MAX).to_be_bytes();
        [code, u8::from(is_end) << 7 | VOLUME, high, low]
    }
}

/// Keys that wait for audio.
const WAITING_MAX: usize = 16;
/// Longest wait for audio.
const WAIT_MAX_US: i64 = 5_000_000;
/// The end is sent three times (RFC 4733 §2.5.1.4).
const ENDS: u8 = 3;
/// Audio packets between two keys.
const PAUSE: u8 = 3;
/// The shortest key that receivers must detect (ITU-T Q.24).
const DURATION_MIN_MS: u32 = 40;
/// The longest duration that fits into 16 bits at 8,000 Hz (RFC 4733 §2.3.5).
const DURATION_MAX_MS: u32 = 8_000;
/// -10 dBm0.
const VOLUME: u8 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtmf::DtmfReceiver;
    use crate::rtp::RtpPacket;

    const KEY: KeyPress =
        KeyPress { code: 5, duration_ms: 60, payload_type: 101, clock_hz: 8_000, audio_hz: 8_000 };

    /// Audio packet number `n` of 20 ms; with `csrc` contributing sources, an extension and padding.
    fn audio(n: u32, csrc: u8) -> Vec<u8> {
        let mut packet = vec![0xb0 | csrc, 0];
        packet.extend((100 + n as u16).to_be_bytes());
        packet.extend((1_000 + n * 160).to_be_bytes());
        packet.extend(7_u32.to_be_bytes());
        packet.extend(std::iter::repeat_n(1, usize::from(csrc) * 4));
        packet.extend([0xbe, 0xde, 0, 0]);
        packet.extend([0x55; 160]);
        packet.push(1);
        packet
    }

    /// The result for `count` packets of audio: payload type, marker, timestamp and payload of events, `-` for audio.
    fn sent(keys: &mut KeyPresses, count: u32, csrc: u8) -> Vec<String> {
        let packet = |n: u32| {
            let mut packet = audio(n, csrc);
            let len = packet.len();
            let Some(len) = keys.write_over(&mut packet, len, Micros(0)) else { return "-".to_owned() };
            packet.truncate(len);
            let read = RtpPacket::parse(&packet).unwrap();
            assert_eq!((read.header.ssrc, read.header.sequence), (7, 100 + n as u16));
            let marker = if read.header.marker { "M " } else { "" };
            format!("{marker}{} {} {:?}", read.header.payload_type, read.header.timestamp, read.payload)
        };
        (0..count).map(packet).collect()
    }

    #[test]
    fn a_key_is_written_over_audio_with_its_duration_and_three_ends() {
        for csrc in [0, 2] {
            let mut keys = KeyPresses::default();
            assert!(keys.is_idle());
            assert!(keys.press(KEY, Micros(0)));
            let wanted = [
                "M 101 1000 [5, 10, 0, 160]",
                "101 1000 [5, 10, 1, 64]",
                "101 1000 [5, 138, 1, 224]",
                "101 1000 [5, 138, 1, 224]",
                "101 1000 [5, 138, 1, 224]",
                "-",
                "-",
                "-",
                "-",
            ];
            assert_eq!(sent(&mut keys, 9, csrc), wanted);
            assert!(keys.is_idle());
        }
    }

    /// A receiver reads every key once, whichever of its packets is lost.
    #[test]
    fn keys_follow_each_other_and_survive_loss() {
        for lost in 0..24_u32 {
            let mut keys = KeyPresses::default();
            for code in [1, 1, 11] {
                keys.press(KeyPress { code, ..KEY }, Micros(0));
            }
            let (mut receiver, mut read) = (DtmfReceiver::new(), String::new());
            for n in 0..24 {
                let mut packet = audio(n, 0);
                let len = packet.len();
                if let Some(len) = keys.write_over(&mut packet, len, Micros(0))
                    && n != lost
                {
                    let packet = RtpPacket::parse(&packet[..len]).unwrap();
                    read.extend(receiver.push(Micros(i64::from(n) * 20_000), &packet, 8_000));
                }
            }
            assert_eq!(read, "11#", "packet {lost} is lost");
        }
    }

    #[test]
    fn keys_without_audio_are_dropped_and_their_number_is_bounded() {
        let mut keys = KeyPresses::default();
        let taken = (0..20).filter(|_| keys.press(KEY, Micros(0))).count();
        assert_eq!(taken, WAITING_MAX);
        let mut packet = audio(0, 0);
        let len = packet.len();
        assert_eq!(keys.write_over(&mut packet, len, Micros(WAIT_MAX_US + 1)), None);
        assert!(keys.is_idle());
        let mut short = audio(0, 0);
        short.truncate(10);
        keys.press(KEY, Micros(0));
        assert_eq!(keys.write_over(&mut short, 10, Micros(0)), None, "no RTP header");
    }

    #[test]
    fn the_clock_of_the_events_may_differ_from_that_of_the_audio() {
        let mut keys = KeyPresses::default();
        keys.press(KeyPress { audio_hz: 48_000, ..KEY }, Micros(0));
        let mut durations = Vec::new();
        for n in 0..3_u32 {
            let mut packet = audio(0, 0);
            packet[4..8].copy_from_slice(&(n * 960).to_be_bytes());
            let len = packet.len();
            let len = keys.write_over(&mut packet, len, Micros(0)).unwrap();
            durations.push(u16::from_be_bytes([packet[len - 2], packet[len - 1]]));
        }
        assert_eq!(durations, [160, 320, 480]);
    }
}
