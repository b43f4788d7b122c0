//! The audio of a phone: silence or an endless tone, and digits in between (RFC 4733).

use std::collections::VecDeque;

use sidetone_media::codec::{Codec, Encoder};
use sidetone_media::simulate::{self, Content, Packet};
use sidetone_media::time::Micros;

/// The audio of a phone while no digit is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Voice {
    /// Packets of digital silence.
    #[default]
    Silence,
    /// 440 Hz.
    Tone,
    /// A tone of this many Hz.
    Note(u32),
}

/// The payload types that the peer accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    /// The codec.
    pub(super) codec: Codec,
    /// The payload type of the audio.
    pub(super) audio: u8,
    /// The payload type of received audio.
    pub(super) heard: u8,
    /// The payload type of telephone-event; without it no digits are sent.
    pub(super) events: Option<u8>,
}

impl Voice {
    /// Fills `frame` with the audio of packet number `position`.
    fn say(self, position: u64, rate_hz: u32, frame: &mut [i16]) {
        let hz = match self {
            Voice::Silence => return frame.fill(0),
            Voice::Tone => 440.0,
            Voice::Note(hz) => f64::from(hz),
        };
        // A tone of whole Hz repeats every second.
        let begin = (position % u64::from(PACKETS_PER_SECOND)) as f64 / f64::from(PACKETS_PER_SECOND);
        let step = std::f64::consts::TAU * hz;
        for (n, sample) in (0_u32..).zip(frame) {
            let at = begin + f64::from(n) / f64::from(rate_hz);
            *sample = (AMPLITUDE * (step * at).sin()).round() as i16;
        }
    }
}

/// A stream of 20 ms packets. The driver takes the next one when it is due.
pub(super) struct Speaker {
    voice: Voice,
    sequence: u16,
    timestamp: u32,
    ssrc: u32,
    /// The number of packets so far.
    position: u64,
    begins: bool,
    digits: VecDeque<u8>,
    state: State,
    encoder: Option<Encoder>,
}

#[derive(Clone, Copy)]
enum State {
    Audio,
    /// A digit that began at this timestamp, and the number of its packets so far.
    Digit {
        event: u8,
        begun: u32,
        packets: u16,
    },
    /// Audio between two digits, and the number of its remaining packets.
    Pause(u16),
}

impl Speaker {
    /// A new stream; `seed` determines its random initial values (RFC 3550 §5.1).
    pub(super) fn new(voice: Voice, seed: u64) -> Self {
        let [s0, s1, t0, t1, t2, t3, r0, r1] = seed.to_be_bytes();
        Speaker {
            voice,
            sequence: u16::from_be_bytes([s0, s1]),
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            ssrc: u32::from_be_bytes([r0, r1, t0, s1]),
            position: 0,
            begins: true,
            digits: VecDeque::new(),
            state: State::Audio,
            encoder: None,
        }
    }

    /// Queues digits after the earlier ones; characters that are not on a keypad are ignored.
    pub(super) fn dial(&mut self, digits: &str) {
        let events = digits.chars().filter_map(event_of);
        let room = DIGITS_MAX.saturating_sub(self.digits.len());
        self.digits.extend(events.take(room));
    }

    /// Writes the next packet into `out`.
    pub(super) fn next(&mut self, format: Format, out: &mut Vec<u8>) {
        if let (State::Audio, Some(_)) = (self.state, format.events)
            && let Some(event) = self.digits.pop_front()
        {
            self.state = State::Digit { event, begun: self.timestamp, packets: 0 };
        }
        match (self.state, format.events) {
            (State::Digit { event, begun, packets }, Some(payload_type)) => {
                self.digit(event, begun, packets + 1, payload_type, out);
            }
            (State::Pause(left), _) => {
                self.state = if left > 1 { State::Pause(left - 1) } else { State::Audio };
                self.audio(format, out);
            }
            (State::Audio | State::Digit { .. }, _) => {
                self.state = State::Audio;
                self.audio(format, out);
            }
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.timestamp = self.timestamp.wrapping_add(format.codec.rtp_clock().hz() / PACKETS_PER_SECOND);
        self.position = self.position.wrapping_add(1);
    }

    /// RFC 4733 §2.5.1: one timestamp, a growing duration, and the last packet three times.
    fn digit(&mut self, event: u8, begun: u32, packets: u16, payload_type: u8, out: &mut Vec<u8>) {
        let content = Content::Event {
            digit: event,
            end: packets >= DIGIT_PACKETS,
            duration: packets.min(DIGIT_PACKETS) * SAMPLES as u16,
        };
        self.write(payload_type, begun, packets == 1, content, out);
        self.state = if packets < DIGIT_PACKETS + END_REPEATED {
            State::Digit { event, begun, packets }
        } else {
            self.begins = true;
            State::Pause(PAUSE_PACKETS)
        };
    }

    fn audio(&mut self, format: Format, out: &mut Vec<u8>) {
        let marker = std::mem::take(&mut self.begins);
        // The header is written as for any packet; the event then replaces the payload.
        let content = Content::Audio { codec: simulate::Codec::Pcmu, position: 0 };
        self.write(format.audio, self.timestamp, marker, content, out);
        out.truncate(HEADER_BYTES);
        if self.encoder.as_ref().is_none_or(|encoder| encoder.codec() != format.codec) {
            self.encoder = Encoder::new(format.codec).ok();
        }
        let (mut pcm, mut payload) = ([0; FRAME_MAX], [0; PAYLOAD_MAX]);
        let samples = (format.codec.sample_rate_hz() / PACKETS_PER_SECOND) as usize;
        let frame = pcm.get_mut(..samples).unwrap_or_default();
        self.voice.say(self.position, format.codec.sample_rate_hz(), frame);
        let encoded = self.encoder.as_mut().and_then(|encoder| encoder.encode(frame, &mut payload).ok());
        out.extend(payload.iter().take(encoded.unwrap_or(0)));
    }

    fn write(&self, payload_type: u8, timestamp: u32, marker: bool, content: Content, out: &mut Vec<u8>) {
        let payload_len = SAMPLES as u16;
        let (sequence, ssrc) = (self.sequence, self.ssrc);
        let packet =
            Packet { at: Micros(0), sequence, timestamp, ssrc, payload_type, marker, payload_len, content };
        packet.write(out);
    }
}

/// Whether a character is on a keypad.
pub fn is_digit(key: char) -> bool {
    event_of(key).is_some()
}

/// RFC 4733 §3.2, table 3.
fn event_of(key: char) -> Option<u8> {
    match key.to_ascii_uppercase() {
        '*' => Some(10),
        '#' => Some(11),
        key @ 'A'..='D' => u8::try_from(u32::from(key) - u32::from('A') + 12).ok(),
        key => key.to_digit(10).and_then(|digit| u8::try_from(digit).ok()),
    }
}

/// The level of a tone: -16 dBm0, like a talker.
const AMPLITUDE: f64 = 5_000.0;
const PACKETS_PER_SECOND: u32 = 50;
/// 20 ms at 48 kHz.
const FRAME_MAX: usize = 960;
/// Fits into one Ethernet frame, and is longer than 20 ms of any codec that a phone offers.
const PAYLOAD_MAX: usize = 1_460;
/// Timestamp units in 20 ms of a digit: its clock is 8,000 Hz.
const SAMPLES: u32 = 160;
const HEADER_BYTES: usize = 12;
/// A digit lasts 120 ms, with 80 ms between two.
const DIGIT_PACKETS: u16 = 6;
const END_REPEATED: u16 = 2;
const PAUSE_PACKETS: u16 = 4;
/// Digits that wait to be sent; further ones are dropped.
const DIGITS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use sidetone_media::rtp;

    use super::*;

    const FORMAT: Format = Format { codec: Codec::Pcmu, audio: 0, heard: 0, events: Some(101) };

    fn packets(speaker: &mut Speaker, count: usize, format: Format) -> Vec<(rtp::Packet, Vec<u8>)> {
        let mut out = Vec::new();
        let mut next = || {
            speaker.next(format, &mut out);
            (rtp::Packet::parse(&out).unwrap(), out.split_off(HEADER_BYTES))
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn silence_and_tone_are_one_stream_of_20_ms() {
        for (voice, is_silent) in [(Voice::Silence, true), (Voice::Tone, false)] {
            let packets = packets(&mut Speaker::new(voice, 0x0123_4567_89ab_cdef), 3, FORMAT);
            let first = packets[0].0;
            assert!(first.marker);
            for (at, (packet, payload)) in packets.iter().enumerate() {
                assert_eq!(packet.sequence, first.sequence.wrapping_add(at as u16));
                assert_eq!(packet.timestamp, first.timestamp.wrapping_add(at as u32 * 160));
                assert_eq!((payload.len(), payload.iter().all(|byte| *byte == 0xff)), (160, is_silent));
            }
        }
    }

    #[test]
    fn a_digit_grows_ends_three_times_and_leaves_a_pause() {
        let mut speaker = Speaker::new(Voice::Silence, 7);
        speaker.dial("5x#");
        let packets = packets(&mut speaker, 24, FORMAT);
        let events: Vec<(u32, u8, bool, u16)> = packets
            .iter()
            .filter(|(packet, _)| packet.payload_type == 101)
            .map(|(packet, p)| (packet.timestamp, p[0], p[1] & 0x80 != 0, u16::from_be_bytes([p[2], p[3]])))
            .collect();
        let begun = packets[0].0.timestamp;
        let five: Vec<_> = events.iter().filter(|event| event.1 == 5).copied().collect();
        assert!(five.iter().all(|event| event.0 == begun));
        assert_eq!(
            five.iter().map(|event| event.3).collect::<Vec<_>>(),
            [160, 320, 480, 640, 800, 960, 960, 960]
        );
        assert_eq!(five.iter().filter(|event| event.2).count(), 3);
        assert_eq!(
            events.iter().filter(|event| event.1 == 11).count(),
            8,
            "the one that no keypad has is left out"
        );
        // Eight packets of a digit, four of a pause, eight of the next digit.
        let kinds: String =
            packets.iter().map(|(p, _)| if p.payload_type == 0 { '.' } else { 'd' }).collect();
        assert_eq!(kinds, "dddddddd....dddddddd....");
        assert!(packets[0].0.marker && packets[8].0.marker);
    }

    #[test]
    fn without_telephone_event_digits_wait() {
        let mut speaker = Speaker::new(Voice::Silence, 7);
        speaker.dial("1");
        let silent = packets(&mut speaker, 5, Format { events: None, ..FORMAT });
        assert!(silent.iter().all(|(packet, _)| packet.payload_type == 0));
    }
}
