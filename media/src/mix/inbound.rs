//! What one party sends: its packets on their way to frames of 20 ms, and the keys that it presses.

use super::rate::{FRAME_MAX, Frame, Rate};
use super::talk::Level;
use super::words::{Formats, SeatError};
use crate::audio::level;
use crate::dtmf::DtmfReceiver;
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
    /// Until when what it says is the tone of a key.
    pressed_until: Option<Micros>,
    /// The frame of this tick, where it had to be decoded to know how loud it is.
    decoded: Box<Frame>,
    ready: Ready,
    doze: Doze,
}

/// Which frames of a party that is silent are decoded to know how loud they are, where only decoding tells: every
/// fifth, and each of the next six when a packet comes that is a quarter larger than what its silence takes.
///
/// A voice takes more bytes than the noise of a room, so its first syllable is whole; of a party whose packets are all
/// as large, at most 80 ms of it are lost. A thousand who listen in Opus would otherwise keep two cores busy.
#[derive(Clone, Copy, Debug, Default)]
struct Doze {
    /// The size of a silent packet in sixteenths of a byte, as it was on average.
    quiet: usize,
    /// Frames that are decoded whatever their number.
    awake: u8,
    number: u8,
}

impl Doze {
    /// A packet of so many bytes came.
    fn see(&mut self, bytes: usize, is_voiced: bool) {
        let size = 16 * bytes;
        if 4 * size > 5 * self.quiet {
            self.awake = AWAKE_FRAMES;
        }
        if !is_voiced {
            self.quiet = if self.quiet == 0 { size } else { (15 * self.quiet + size) / 16 };
        }
    }

    /// Whether the next frame is to be looked at.
    fn looks(&mut self) -> bool {
        self.number = (self.number + 1) % LOOKS_EVERY;
        self.awake = self.awake.saturating_sub(1);
        self.awake > 0 || self.number == 0
    }
}

/// What became of the frame of this tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ready {
    /// It waits in the playout.
    Waits,
    /// It stands in [`Inbound::decoded`], of this rate.
    Decoded(Rate),
}

impl Inbound {
    /// A party that has sent nothing.
    ///
    /// # Errors
    /// When a codec has a rate that no mix has.
    pub(super) fn new(formats: &Formats, seed: u64) -> Result<Self, SeatError> {
        let playout = Playout::new(&playout_formats(formats)?, seed);
        Ok(Inbound {
            playout,
            keys: DtmfReceiver::new(),
            event: event(formats),
            pressed_until: None,
            decoded: Box::new([0; FRAME_MAX]),
            ready: Ready::Waits,
            doze: Doze { number: (seed % u64::from(LOOKS_EVERY)) as u8, ..Doze::default() },
        })
    }

    /// Goes on with what SDP settled anew.
    ///
    /// # Errors
    /// When a codec has a rate that no mix has; then nothing has changed.
    pub(super) fn format(&mut self, formats: &Formats) -> Result<(), SeatError> {
        self.playout.set_formats(&playout_formats(formats)?);
        self.event = event(formats);
        Ok(())
    }

    /// What became of the packets so far.
    pub(super) fn figures(&self) -> PlayoutFigures {
        self.playout.figures()
    }

    /// Takes one packet; the key that it is the first to tell of.
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

    /// How loud the frame of this tick is; the tone of a key is silence. What its codec does not tell undecoded is
    /// decoded here and kept; of a party that is not `voiced` not every such frame, and `None` is said of the others.
    pub(super) fn level(&mut self, now: Micros, is_voiced: bool) -> Option<Level> {
        self.ready = Ready::Waits;
        if self.is_pressing(now) {
            return Some(Level::SILENCE);
        }
        match self.playout.peek(now) {
            Peek::Level(power) => Some(Level::of_power(power)),
            Peek::Nothing => Some(Level::SILENCE),
            Peek::Unknown if !is_voiced && !self.doze.looks() => None,
            Peek::Unknown => Some(self.decoded_level(now)),
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

    /// Whether a key is pressed: nothing of it is heard, neither the tone that some phones send beside their events nor
    /// what a lost part of it might be taken for.
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

    /// Writes the frame of this tick, of [`Inbound::rate`]. Comfort noise is silence here: many parties' noise adds up.
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

    /// Leaves the frame of this tick out.
    pub(super) fn skip(&mut self, now: Micros) {
        if self.ready == Ready::Waits {
            self.playout.skip(now);
        }
        self.ready = Ready::Waits;
    }
}

/// The payload type of telephone events; their clock is that of the audio beside them (RFC 4733 §2.4.1).
fn event(formats: &Formats) -> Option<(u8, u32)> {
    let codec = formats.receive.first().map_or(formats.send.1, |(_, codec)| *codec);
    Some((formats.event_receive?, codec.rtp_clock().hz()))
}

/// Every frame at the rate of its codec: the mix resamples what it needs at another.
fn playout_formats(formats: &Formats) -> Result<PlayoutFormats, SeatError> {
    for (_, codec) in &formats.receive {
        let hz = codec.sample_rate_hz();
        Rate::of(hz).ok_or(SeatError::Rate(hz))?;
    }
    Ok(PlayoutFormats { audio: formats.receive.clone(), noise: formats.noise_receive.clone(), rate_hz: None })
}

/// Packets of a key come every 20 to 50 ms.
const PRESSED_US: i64 = 60_000;
/// 100 ms.
const LOOKS_EVERY: u8 = 5;
/// 120 ms: the packet is played one or two ticks after it came, or more on a jittery way.
const AWAKE_FRAMES: u8 = 6;
