//! DTMF in RTP: telephone events (RFC 4733), received and sent.
//!
//! One key press is many packets with one timestamp; the final packet is sent three times, and any packet may
//! be lost. Each press is reported once, with the first packet that arrives. Digits in SIP INFO belong to
//! signalling.

use std::collections::VecDeque;

use crate::rtp::RtpPacket;
use crate::time::Micros;

/// Detects key presses in the packets of one stream.
///
/// *Bounds*: constant memory for any input; at most 25 keys per second, after the first 16.
#[derive(Clone, Debug, Default)]
pub struct DtmfReceiver {
    key: Option<Pressed>,
    /// Budget of keys that may still be reported, in microseconds ([`KEY_US`] per key), and when it was last
    /// increased.
    credit_us: i64,
    counted: Option<Micros>,
}

/// The key reported last.
#[derive(Clone, Copy, Debug)]
struct Pressed {
    ssrc: u32,
    code: u8,
    /// The timestamp of its last packet, its highest duration, and whether its end has arrived.
    timestamp: u32,
    duration: u16,
    has_ended: bool,
}

impl DtmfReceiver {
    /// A receiver before the first key.
    pub fn new() -> Self {
        DtmfReceiver::default()
    }

    /// Processes one packet of telephone events with clock `clock_hz`. Returns the key when this packet is
    /// the first that reports it.
    pub fn push(&mut self, now: Micros, packet: &RtpPacket<'_>, clock_hz: u32) -> Option<char> {
        let event = Event::parse(packet.payload)?;
        let (ssrc, timestamp) = (packet.header.ssrc, packet.header.timestamp);
        if let Some(key) = self.key.as_mut().filter(|key| key.ssrc == ssrc) {
            let ahead = timestamp.wrapping_sub(key.timestamp);
            if ahead >= 1 << 31 {
                // A late packet of an earlier key.
                return None;
            }
            let is_same = ahead == 0 || key.goes_on(&event, packet.header.marker, ahead, clock_hz);
            if is_same {
                if ahead > 0 {
                    (key.timestamp, key.duration) = (timestamp, 0);
                }
                key.duration = key.duration.max(event.duration);
                key.has_ended |= event.is_end;
                return None;
            }
        }
        let (code, duration, has_ended) = (event.code, event.duration, event.is_end);
        self.key = Some(Pressed { ssrc, code, timestamp, duration, has_ended });
        self.afford(now).then(|| KEYS.get(usize::from(code)).copied().map(char::from))?
    }

    /// Whether another key may be reported. The limit is the fastest rate of a dialling machine; a higher
    /// rate is an attack or a fault.
    fn afford(&mut self, now: Micros) -> bool {
        let earned_us = self.counted.map_or(i64::MAX, |counted| now.since(counted).max(0));
        self.credit_us = self.credit_us.saturating_add(earned_us).min(CREDIT_MAX_US);
        self.counted = Some(now);
        let can = self.credit_us >= KEY_US;
        if can {
            self.credit_us -= KEY_US;
        }
        can
    }
}

impl Pressed {
    /// Whether a packet with a later timestamp belongs to the same press. A long press continues under a new
    /// timestamp where the first part ends (RFC 4733 §2.5.1.3), and some phones change the timestamp with
    /// every packet.
    fn goes_on(&self, event: &Event, marker: bool, ahead: u32, clock_hz: u32) -> bool {
        let tolerance = clock_hz / 50;
        let end = u32::from(self.duration).max(tolerance);
        let may_go_on = !self.has_ended || event.is_end;
        event.code == self.code && may_go_on && !marker && ahead <= end + tolerance
    }
}

/// One packet's payload (RFC 4733 §2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Event {
    code: u8,
    is_end: bool,
    duration: u16,
}

impl Event {
    /// The key in a payload; `None` for other events, such as a hook flash.
    fn parse(payload: &[u8]) -> Option<Event> {
        let [code, flags, high, low, ..] = *payload else { return None };
        let is_key = usize::from(code) < KEYS.len();
        is_key.then(|| Event { code, is_end: flags & 0x80 != 0, duration: u16::from_be_bytes([high, low]) })
    }
}

/// Sends key presses: one packet per tick of 20 ms, the end three times, and a pause between two keys.
///
/// *Bounds*: at most 32 keys wait.
#[derive(Clone, Debug)]
pub struct DtmfSender {
    clock_hz: u32,
    waiting: VecDeque<u8>,
    now: Option<Pressing>,
}

/// A key that is being sent.
#[derive(Clone, Copy, Debug)]
struct Pressing {
    code: u8,
    /// Packets sent so far, and ticks of the pause after them.
    ticks: u32,
}

/// One packet of telephone events to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DtmfPacket {
    /// Its payload.
    pub payload: [u8; 4],
    /// Whether it is the first packet of its key.
    pub marker: bool,
    /// For how many clock units the key has been pressed; the packet's timestamp is this much before that of
    /// audio sent now.
    pub pressed_ago: u32,
}

impl DtmfSender {
    /// A sender whose events have a clock of `clock_hz`.
    pub fn new(clock_hz: u32) -> Self {
        DtmfSender { clock_hz, waiting: VecDeque::with_capacity(WAITING_MAX), now: None }
    }

    /// Queues a key, `0` to `9`, `*`, `#`, `A` to `D`; returns false when it is another character or the
    /// queue is full.
    pub fn press(&mut self, key: char) -> bool {
        match event_code(key) {
            Some(code) if self.waiting.len() < WAITING_MAX => {
                self.waiting.push_back(code);
                true
            }
            _ => false,
        }
    }

    /// Whether a key is being sent or waits.
    pub fn is_busy(&self) -> bool {
        self.now.is_some() || !self.waiting.is_empty()
    }

    /// The packet for this tick of 20 ms, while a key is pressed; no audio is sent then.
    pub fn tick(&mut self) -> Option<DtmfPacket> {
        if self.now.is_none() {
            self.now = self.waiting.pop_front().map(|code| Pressing { code, ticks: 0 });
        }
        let now = self.now.as_mut()?;
        let tick = now.ticks;
        now.ticks += 1;
        let code = now.code;
        if now.ticks >= KEY_TICKS + END_PACKETS - 1 + PAUSE_TICKS {
            self.now = None;
        }
        if tick >= KEY_TICKS + END_PACKETS - 1 {
            return None;
        }
        let per_tick = self.clock_hz / 50;
        let duration = u16::try_from((tick + 1).min(KEY_TICKS) * per_tick).unwrap_or(u16::MAX).to_be_bytes();
        let end = if tick + 1 >= KEY_TICKS { 0x80 } else { 0 };
        let [high, low] = duration;
        Some(DtmfPacket {
            payload: [code, end | VOLUME, high, low],
            marker: tick == 0,
            pressed_ago: tick * per_tick,
        })
    }
}

/// One key to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPress {
    /// The event code of RFC 4733 §3.2, 0 to 15.
    pub code: u8,
    /// For how long it was pressed, 40 to 8,000 ms.
    pub duration_ms: u32,
    /// The payload type of the party's telephone events.
    pub payload_type: u8,
    /// Their clock in Hz.
    pub clock_hz: u32,
    /// The clock of the audio in Hz.
    pub audio_hz: u32,
}

/// One key to play as tones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyTone {
    /// The event code of RFC 4733 §3.2, 0 to 15.
    pub code: u8,
    /// For how long it was pressed, in milliseconds.
    pub duration_ms: u32,
}

/// Where the relay finds the keys of a party that it converts for the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// In its G.711 audio.
    Audio,
    /// In its telephone events.
    Events {
        /// Their payload type.
        payload_type: u8,
        /// Their clock in Hz.
        clock_hz: u32,
    },
}

/// The event code of a key, `0` to `9`, `*`, `#`, `A` to `D` (RFC 4733 §3.2).
pub fn event_code(key: char) -> Option<u8> {
    let place = KEYS.iter().position(|known| char::from(*known) == key.to_ascii_uppercase())?;
    u8::try_from(place).ok()
}

/// The keys by their event codes (RFC 4733 §3.2).
const KEYS: [u8; 16] = *b"0123456789*#ABCD";
/// A key and its pause are at least this long (ITU-T Q.24).
const KEY_US: i64 = 40_000;
/// Largest budget: keys that may arrive in one burst after a stall of the network.
const CREDIT_MAX_US: i64 = 16 * KEY_US;
/// Keys that wait to be sent.
const WAITING_MAX: usize = 32;
/// 100 ms of key press, the end three times (RFC 4733 §2.5.1.4), 60 ms of pause.
const KEY_TICKS: u32 = 5;
const END_PACKETS: u32 = 3;
const PAUSE_TICKS: u32 = 3;
/// -10 dBm0.
const VOLUME: u8 = 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rtp::Packet;

    /// Feeds packets `(ms, timestamp, marker, code, end, duration)`; returns the reported keys.
    fn told(packets: &[(i64, u32, bool, u8, bool, u16)]) -> String {
        let mut receiver = DtmfReceiver::new();
        let mut keys = String::new();
        for &(ms, timestamp, marker, code, end, duration) in packets {
            let [high, low] = duration.to_be_bytes();
            let payload = [code, u8::from(end) << 7 | 10, high, low];
            let header = Packet { timestamp, marker, ..Packet::default() };
            keys.extend(receiver.push(Micros(ms * 1_000), &RtpPacket { header, payload: &payload }, 8_000));
        }
        keys
    }

    #[test]
    fn one_key_is_told_once() {
        let whole = [
            (0, 100, true, 5, false, 160),
            (20, 100, false, 5, false, 320),
            (40, 100, false, 5, true, 480),
            (60, 100, false, 5, true, 480),
            (80, 100, false, 5, true, 480),
        ];
        assert_eq!(told(&whole), "5");
        assert_eq!(told(&whole[1..]), "5", "the first is lost");
        assert_eq!(told(&whole[..2]), "5", "the ends are lost");
        assert_eq!(told(&whole[4..]), "5", "one of them came");
        let again: Vec<_> = whole.iter().map(|p| (p.0 + 200, p.1 + 1_600, p.2, p.3, p.4, p.5)).collect();
        assert_eq!(told(&[&whole[..], &again].concat()), "55");
        assert_eq!(told(&[&whole[..2], &again[1..]].concat()), "55", "no end, no marker");
        assert_eq!(told(&[&again[..], &whole].concat()), "5", "overtaken by the next");
    }

    #[test]
    fn a_long_press_is_one_key() {
        let mut packets = Vec::new();
        for n in 0..1_000_u32 {
            // Every 8 s a new part begins where the last one ends.
            let (part, within) = (n / 400, n % 400);
            packets.push((i64::from(n) * 20, part * 64_000, n == 0, 9, false, (within + 1) as u16 * 160));
        }
        packets.push((20_000, 128_000, false, 9, true, 32_000));
        assert_eq!(told(&packets), "9");
        // A phone that changes the timestamp with every packet.
        let moving: Vec<_> =
            (0..20_u32).map(|n| (i64::from(n) * 20, n * 160, n == 0, 1, n > 17, 160)).collect();
        assert_eq!(told(&moving), "1");
    }

    #[test]
    fn every_key_has_its_code_and_the_rest_is_none() {
        for (code, key) in (0..).zip("0123456789*#ABCD".chars()) {
            assert_eq!(told(&[(0, 1, true, code, false, 160)]), key.to_string());
        }
        assert_eq!(told(&[(0, 1, true, 16, false, 160), (0, 2, true, 255, true, 0)]), "");
        let mut receiver = DtmfReceiver::new();
        let header = Packet::default();
        for short in [&[][..], &[1], &[1, 2, 3]] {
            assert_eq!(receiver.push(Micros(0), &RtpPacket { header, payload: short }, 8_000), None);
        }
    }

    #[test]
    fn a_storm_is_a_few_keys() {
        // A thousand packets per second for ten seconds, each a separate key.
        let storm: Vec<_> =
            (0..10_000_u32).map(|n| (i64::from(n), n * 8_000, true, (n % 10) as u8, true, 160)).collect();
        let told = told(&storm).len();
        assert!((250..=270).contains(&told), "{told}");
    }

    #[test]
    fn what_is_sent_is_received() {
        for clock_hz in [8_000, 16_000, 48_000] {
            let mut sender = DtmfSender::new(clock_hz);
            let mut receiver = DtmfReceiver::new();
            let keys = "0123456789*#abcd99";
            assert!(keys.chars().all(|key| sender.press(key)) && !sender.press('x'));
            let mut heard = String::new();
            let mut ticks = 0_u32;
            let mut ends = 0;
            while sender.is_busy() {
                if let Some(packet) = sender.tick() {
                    let timestamp =
                        77_u32.wrapping_add(ticks * clock_hz / 50).wrapping_sub(packet.pressed_ago);
                    let header = Packet { timestamp, marker: packet.marker, ..Packet::default() };
                    let now = Micros(i64::from(ticks) * 20_000);
                    heard.extend(receiver.push(
                        now,
                        &RtpPacket { header, payload: &packet.payload },
                        clock_hz,
                    ));
                    ends += usize::from(packet.payload[1] & 0x80 != 0);
                }
                ticks += 1;
            }
            assert_eq!((heard, ends), (keys.to_ascii_uppercase(), 3 * keys.len()), "{clock_hz}");
            assert_eq!(sender.tick(), None);
            assert!((0..40).filter(|_| sender.press('1')).count() == WAITING_MAX);
        }
    }

    proptest! {
        #[test]
        fn garbage_is_survived(packets in prop::collection::vec((any::<i64>(), any::<u32>(), any::<bool>(), prop::collection::vec(any::<u8>(), 0..8)), 0..200)) {
            let mut receiver = DtmfReceiver::new();
            for (now, timestamp, marker, payload) in packets {
                let header = Packet { timestamp, marker, ..Packet::default() };
                receiver.push(Micros(now), &RtpPacket { header, payload: &payload }, 8_000);
            }
        }
    }
}
