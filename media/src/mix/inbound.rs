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
    pub(super) fn receive(&mut self, now: Micros, packet: &RtpPacket<'_>) -> Option<char> {
        match self.event {
            Some((number, clock_hz)) if number == packet.header.payload_type => {
                self.playout.event();
                self.pressed_until = Some(now + PRESSED_US);
                self.keys.push(now, packet, clock_hz)
            }
            _ => {
                self.playout.push(now, packet);
                None
            }
        }
    }

    /// How loud the frame of this tick is; the tone of a key is silence. What its codec does not tell undecoded is decoded
    /// here and kept.
    pub(super) fn level(&mut self, now: Micros) -> Level {
        self.ready = Ready::Waits;
        if self.is_pressing(now) {
            return Level::SILENCE;
        }
        match self.playout.peek(now) {
            Peek::Level(power) => Level::of_power(power),
            Peek::Nothing => Level::SILENCE,
            Peek::Unknown => {
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
