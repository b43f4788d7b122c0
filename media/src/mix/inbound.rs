//! What one party sends: its packets on their way to frames of 20 ms, and the keys that it presses.

use std::collections::VecDeque;

use super::rate::Rate;
use super::talk::Level;
use super::words::{Formats, SeatError};
use crate::audio::level;
use crate::codec::{Codec, Decoder};
use crate::rtp::RtpPacket;
use crate::time::Micros;

/// The receiving side of one seat.
#[derive(Debug)]
pub(super) struct Inbound {
    decoders: Vec<(u8, Codec, Decoder)>,
    rate: Rate,
    pcm: VecDeque<i16>,
}

impl Inbound {
    /// A party that has sent nothing.
    ///
    /// # Errors
    /// When a codec refuses its parameters, or has a rate that no mix has.
    pub(super) fn new(formats: &Formats) -> Result<Self, SeatError> {
        let decoder = |&(number, codec): &(u8, Codec)| Ok((number, codec, Decoder::new(codec)?));
        let decoders = formats.receive.iter().map(decoder).collect::<Result<Vec<_>, SeatError>>()?;
        Ok(Inbound { decoders, rate: Rate::Narrow, pcm: VecDeque::with_capacity(FIFO_MAX) })
    }

    /// Takes one packet; the key that it tells of first.
    pub(super) fn receive(&mut self, _now: Micros, packet: &RtpPacket<'_>) -> Option<char> {
        let found = self.decoders.iter_mut().find(|decoder| decoder.0 == packet.header.payload_type);
        let (_, codec, decoder) = found?;
        let mut pcm = [0; 5_760];
        let rate = Rate::of(codec.sample_rate_hz())?;
        if rate != self.rate {
            self.rate = rate;
            self.pcm.clear();
        }
        let count = decoder.decode(packet.payload, &mut pcm).unwrap_or(0);
        if self.pcm.len() + count <= FIFO_MAX {
            self.pcm.extend(pcm.iter().take(count));
        }
        None
    }

    /// How loud the frame of this tick is; `None` when there is none.
    pub(super) fn level(&mut self, _now: Micros) -> Option<Level> {
        let (head, tail) = self.pcm.as_slices();
        let frame = head.get(..self.rate.samples()).or((!tail.is_empty()).then_some(head))?;
        Some(Level::of_power(level::power(frame)))
    }

    /// The rate of the frame of this tick.
    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// Decodes the frame of this tick.
    pub(super) fn pull(&mut self, _now: Micros, pcm: &mut [i16]) {
        for sample in pcm {
            *sample = self.pcm.pop_front().unwrap_or(0);
        }
    }

    /// Leaves the frame of this tick out.
    pub(super) fn skip(&mut self, _now: Micros) {
        let count = self.rate.samples().min(self.pcm.len());
        self.pcm.drain(..count);
    }
}

/// 100 ms at 48 kHz.
const FIFO_MAX: usize = 4_800;
