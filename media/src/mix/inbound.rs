//! The receive side of one party: its packets become frames of 20 ms, and its DTMF events become digits.

use super::rate::{FRAME_MAX, Frame, Rate};
use super::talk::Level;
use super::words::{Formats, SeatError};
use crate::audio::level;
use crate::dtmf::DtmfReceiver;
use crate::dtmf_audio::DtmfDetector;
use crate::playout::{Peek, Playout, PlayoutFigures, PlayoutFormats, Pulled};
use crate::rtp::RtpPacket;
use crate::time::Micros;

/// The receiving side of one seat.
#[derive(Debug)]
pub(super) struct Inbound {
    playout: Playout,
    keys: DtmfReceiver,
    /// The payload type of its telephone events, and their clock.
    event: Option<(u8, u32)>,
    /// Finds the digits in the audio of a party that has no telephone events.
    tones: Option<Box<DtmfDetector>>,
    /// The party's audio is a DTMF tone until this time.
    pressed_until: Option<Micros>,
    /// The frame of this tick, when it had to be decoded to measure its level.
    decoded: Box<Frame>,
    ready: Ready,
    doze: Doze,
}

/// Selects the frames of a silent party that are decoded to measure their level, for codecs where only
/// decoding gives it: every fifth frame, and the next six frames after a packet that is a quarter larger than
/// the average silent packet.
///
/// Voice takes more bytes than room noise, so the first syllable is complete. When all packets of a party
/// have the same size, at most 80 ms of it are lost. Without this, a thousand listeners with Opus keep two
/// cores busy.
#[derive(Clone, Copy, Debug, Default)]
struct Doze {
    /// Average size of a silent packet, in sixteenths of a byte.
    quiet: usize,
    /// Frames still to be decoded in any case.
    awake: u8,
    number: u8,
}

impl Doze {
    /// Counts a packet of this size.
    fn see(&mut self, bytes: usize, is_voiced: bool) {
        let size = 16 * bytes;
        if 4 * size > 5 * self.quiet {
            self.awake = AWAKE_FRAMES;
        }
        if !is_voiced {
            self.quiet = if self.quiet == 0 { size } else { (15 * self.quiet + size) / 16 };
        }
    }

    /// Whether the next frame is to be decoded.
    fn looks(&mut self) -> bool {
        self.number = (self.number + 1) % LOOKS_EVERY;
        self.awake = self.awake.saturating_sub(1);
        self.awake > 0 || self.number == 0
    }
}

/// Where the frame of this tick is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ready {
    /// Still in the playout.
    Waits,
    /// In [`Inbound::decoded`], at this rate.
    Decoded(Rate),
}

impl Inbound {
    /// A party that has not sent anything yet.
    ///
    /// # Errors
    /// Fails when a codec has a rate that no mix has.
    pub(super) fn new(formats: &Formats, seed: u64) -> Result<Self, SeatError> {
        let playout = Playout::new(&playout_formats(formats)?, seed);
        Ok(Inbound {
            playout,
            keys: DtmfReceiver::new(),
            event: event(formats),
            tones: event(formats).is_none().then(Box::default),
            pressed_until: None,
            decoded: Box::new([0; FRAME_MAX]),
            ready: Ready::Waits,
            doze: Doze { number: (seed % u64::from(LOOKS_EVERY)) as u8, ..Doze::default() },
        })
    }

    /// Continues with a new SDP answer.
    ///
    /// # Errors
    /// Fails when a codec has a rate that no mix has; then nothing has changed.
    pub(super) fn format(&mut self, formats: &Formats) -> Result<(), SeatError> {
        self.playout.set_formats(&playout_formats(formats)?);
        self.event = event(formats);
        if self.event.is_some() {
            self.tones = None;
        } else if self.tones.is_none() {
            self.tones = Some(Box::default());
        }
        Ok(())
    }

    /// Figures of the playout so far.
    pub(super) fn figures(&self) -> PlayoutFigures {
        self.playout.figures()
    }

    /// Takes one packet. Returns the digit when this packet is the first that reports it.
    pub(super) fn receive(&mut self, now: Micros, packet: &RtpPacket<'_>, is_voiced: bool) -> Option<char> {
        match self.event {
            Some((number, clock_hz)) if number == packet.header.payload_type => {
                self.playout.event();
                self.pressed_until = Some(now + PRESSED_US);
                self.keys.push(now, packet, clock_hz)
            }
            _ => {
                self.doze.see(packet.payload.len(), is_voiced);
                self.playout.push(now, packet);
                None
            }
        }
    }

    /// Finds a key press in the audio of this tick, for a party without telephone events. A frame that is loud enough
    /// for a digit is decoded here and kept.
    pub(super) fn tone(&mut self, now: Micros) -> Option<char> {
        let tones = self.tones.as_mut()?;
        let is_quiet = match self.playout.peek(now) {
            Peek::Level(power) => power < TONES_POWER_MIN,
            Peek::Nothing => true,
            Peek::Unknown => false,
        };
        if is_quiet {
            tones.silence();
            return None;
        }
        self.decoded_level(now);
        let Ready::Decoded(rate) = self.ready else { return None };
        let (tones, pcm) = (self.tones.as_mut()?, self.decoded.get(..rate.samples())?);
        let digit = tones.push(pcm);
        if tones.is_pressed() {
            self.pressed_until = Some(now + PRESSED_US);
        }
        digit
    }

    /// Level of this tick's frame; a DTMF tone counts as silence. When the codec does not give the level
    /// without decoding, the frame is decoded here and kept. For a party that is not `voiced` only some of
    /// these frames are decoded, and the result is `None` for the others. The second value is false when frames before
    /// this one were left out, so that a codec with memory decodes it louder than it is.
    pub(super) fn level(&mut self, now: Micros, is_voiced: bool) -> Option<(Level, bool)> {
        if self.is_pressing(now) {
            return Some((Level::SILENCE, true));
        }
        if let Ready::Decoded(rate) = self.ready {
            let power = self.decoded.get(..rate.samples()).map(level::power);
            return Some((Level::of_power(power.unwrap_or_default()), true));
        }
        match self.playout.peek(now) {
            Peek::Level(power) => Some((Level::of_power(power), true)),
            Peek::Nothing => Some((Level::SILENCE, true)),
            Peek::Unknown if !is_voiced && !self.doze.looks() => None,
            Peek::Unknown => Some((self.decoded_level(now), is_voiced)),
        }
    }

    fn decoded_level(&mut self, now: Micros) -> Level {
        let Some(rate) = Rate::of(self.playout.rate_hz()) else { return Level::SILENCE };
        let Some(pcm) = self.decoded.get_mut(..rate.samples()) else { return Level::SILENCE };
        let pulled = self.playout.pull(now, pcm);
        self.ready = Ready::Decoded(rate);
        match pulled {
            Pulled::Voice | Pulled::Concealed => Level::of_power(level::power(pcm)),
            Pulled::Noise | Pulled::Nothing => {
                pcm.fill(0);
                Level::SILENCE
            }
        }
    }

    /// Whether a key is pressed. The party is not heard then: neither the tone that some phones send besides their
    /// events, nor concealment for a lost part of it.
    pub(super) fn is_pressing(&self, now: Micros) -> bool {
        self.pressed_until.is_some_and(|until| now < until)
    }

    /// The rate of the frame of this tick.
    pub(super) fn rate(&self) -> Rate {
        match self.ready {
            Ready::Decoded(rate) => rate,
            Ready::Waits => Rate::of(self.playout.rate_hz()).unwrap_or(Rate::Narrow),
        }
    }

    /// Writes the frame of this tick at [`Inbound::rate`]. Comfort noise becomes silence, because the noise
    /// of many parties adds up.
    pub(super) fn pull(&mut self, now: Micros, pcm: &mut [i16]) {
        match self.ready {
            Ready::Decoded(_) => {
                pcm.iter_mut().zip(self.decoded.iter()).for_each(|(sample, decoded)| *sample = *decoded);
            }
            Ready::Waits => {
                if matches!(self.playout.pull(now, pcm), Pulled::Noise | Pulled::Nothing) {
                    pcm.fill(0);
                }
            }
        }
        self.ready = Ready::Waits;
    }

    /// Drops the frame of this tick.
    pub(super) fn skip(&mut self, now: Micros) {
        if self.ready == Ready::Waits {
            self.playout.skip(now);
        }
        self.ready = Ready::Waits;
    }
}

/// The payload type of telephone events; their clock is that of the audio stream (RFC 4733 §2.4.1).
fn event(formats: &Formats) -> Option<(u8, u32)> {
    let codec = formats.receive.first().map_or(formats.send.1, |(_, codec)| *codec);
    Some((formats.event_receive?, codec.rtp_clock().hz()))
}

/// Every frame at the rate of its codec; the mix resamples where it needs another rate.
fn playout_formats(formats: &Formats) -> Result<PlayoutFormats, SeatError> {
    for (_, codec) in &formats.receive {
        let hz = codec.sample_rate_hz();
        Rate::of(hz).ok_or(SeatError::Rate(hz))?;
    }
    Ok(PlayoutFormats { audio: formats.receive.clone(), noise: formats.noise_receive.clone(), rate_hz: None })
}

/// Quieter audio, below -42 dBov, has no digits.
const TONES_POWER_MIN: u64 = 67_748;
/// Packets of a key arrive every 20 to 50 ms.
const PRESSED_US: i64 = 60_000;
/// 100 ms.
const LOOKS_EVERY: u8 = 5;
/// 120 ms: the packet is played one or two ticks after it arrived, or later on a path with jitter.
const AWAKE_FRAMES: u8 = 6;
