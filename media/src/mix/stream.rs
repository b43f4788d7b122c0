//! One encoding: PCM in ticks of 20 ms, payloads in packets of 10 to 60 ms.
//!
//! All encodings of the same packet length are in step, whenever they started, so that a seat can change from
//! one to another between two packets.

use super::rate::Rate;
use super::sender::UNIT_MS;
use super::words::SeatError;
use crate::codec::{Codec, Encoder};

/// The audio that a seat hears when no clip plays for this seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// All other parties.
    Mix,
    /// One of the mix's tunes.
    Music(usize),
    /// Silence: under a clip, or for a party that is to hear nothing.
    Silence,
}

/// Codec and packet length of an encoding. Seats with the same audio and the same coding can share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coding {
    pub(super) codec: Codec,
    pub(super) rate: Rate,
    /// The length of a packet in [`UNIT_MS`].
    pub(super) units: u64,
}

impl Coding {
    /// The coding for packets of about `ptime_ms`: a length that the codec has and that fits into one
    /// datagram without fragmentation.
    ///
    /// # Errors
    /// Fails when no mix has the codec's rate.
    pub(super) fn new(codec: Codec, ptime_ms: u32) -> Result<Coding, SeatError> {
        let hz = codec.sample_rate_hz();
        let rate = Rate::of(hz).ok_or(SeatError::Rate(hz))?;
        let asked = u64::from((ptime_ms / UNIT_MS).clamp(1, UNITS_MAX));
        let units = match codec {
            Codec::Pcmu | Codec::Pcma | Codec::G722 => asked,
            Codec::L16 { rate_hz, channels } => {
                let unit_bytes = u64::from(rate_hz / 1_000 * UNIT_MS) * 2 * u64::from(channels.max(1));
                asked.min((DATAGRAM_BYTES / unit_bytes).max(1))
            }
            // RFC 6716 §3.1 has packets of 10, 20, 40 and 60 ms.
            Codec::Opus => match asked {
                1 | 6 => asked,
                4 | 5 => 4,
                _ => 2,
            },
        };
        Ok(Coding { codec, rate, units })
    }

    /// Whether decoding depends on earlier packets. Then a listener must not change to an encoder with
    /// another past.
    pub(super) fn has_memory(self) -> bool {
        !matches!(self.codec, Codec::Pcmu | Codec::Pcma | Codec::L16 { .. })
    }

    fn unit_samples(self) -> usize {
        self.rate.samples() / UNITS_PER_TICK
    }

    fn packet_samples(self) -> usize {
        self.unit_samples() * usize::try_from(self.units).unwrap_or(1)
    }

    /// Room for the packets of a tick.
    fn packets(self) -> [Payload; UNITS_PER_TICK] {
        let per_tick = if self.units == 1 { UNITS_PER_TICK } else { 1 };
        std::array::from_fn(|n| Payload {
            bytes: vec![0; if n < per_tick { PAYLOAD_BYTES } else { 0 }],
            len: 0,
        })
    }
}

/// An encoder, the PCM that waits for its packet to be full, and the packets of this tick.
#[derive(Debug)]
pub(super) struct Stream {
    coding: Coding,
    encoder: Encoder,
    pcm: Vec<i16>,
    /// Units that waited at the start of this tick.
    begun: u64,
    packets: [Payload; UNITS_PER_TICK],
    count: usize,
    /// The PCM of the previous packet, where a branch needs it.
    past: Vec<i16>,
}

#[derive(Debug)]
struct Payload {
    bytes: Vec<u8>,
    len: usize,
}

impl Stream {
    /// An encoding that starts with the tick at `phase`.
    ///
    /// # Errors
    /// Fails when the codec refuses its parameters.
    pub(super) fn new(coding: Coding, phase: u64) -> Result<Stream, SeatError> {
        let begun = coding.unit_samples() * usize::try_from(phase % coding.units).unwrap_or(0);
        let mut pcm = Vec::with_capacity(coding.packet_samples() + coding.rate.samples());
        pcm.resize(begun, 0);
        let past = Vec::with_capacity(if coding.codec == Codec::Opus { coding.packet_samples() } else { 0 });
        let (encoder, packets) = (Encoder::new(coding.codec)?, coding.packets());
        Ok(Stream { coding, encoder, pcm, begun: 0, packets, count: 0, past })
    }

    /// An encoding that continues this one: the same waiting PCM, and an encoder that this one's listeners
    /// can follow.
    ///
    /// # Errors
    /// Fails when the codec refuses its parameters.
    pub(super) fn branch(&self) -> Result<Stream, SeatError> {
        let mut pcm = Vec::with_capacity(self.pcm.capacity());
        pcm.extend_from_slice(&self.pcm);
        let mut past = Vec::with_capacity(self.past.capacity());
        past.extend_from_slice(&self.past);
        let (encoder, packets) = (self.encoder.branch(&self.past)?, self.coding.packets());
        Ok(Stream { coding: self.coding, encoder, pcm, begun: 0, packets, count: 0, past })
    }

    pub(super) fn coding(&self) -> Coding {
        self.coding
    }

    /// Whether the next tick begins a packet.
    pub(super) fn is_between_packets(&self) -> bool {
        self.pcm.is_empty()
    }

    /// Takes a tick's PCM and returns the number of packets completed. Audio that the codec cannot encode is
    /// dropped.
    pub(super) fn feed(&mut self, frame: &[i16]) -> usize {
        self.begun = u64::try_from(self.pcm.len() / self.coding.unit_samples()).unwrap_or(0);
        self.count = 0;
        self.pcm.extend_from_slice(frame);
        let mut taken = 0;
        for payload in &mut self.packets {
            let Some(pcm) = self.pcm.get(taken..taken + self.coding.packet_samples()) else { break };
            taken += pcm.len();
            if self.past.capacity() > 0 {
                self.past.clear();
                self.past.extend_from_slice(pcm);
            }
            payload.len = self.encoder.encode(pcm, &mut payload.bytes).unwrap_or(0);
            self.count += 1;
        }
        self.pcm.drain(..taken);
        self.count
    }

    /// The `n`th packet of this tick, which began at `position`: where the packet begins, and its payload.
    pub(super) fn packet(&self, n: usize, position: u64) -> Option<(u64, &[u8])> {
        let payload = self.packets.get(..self.count)?.get(n)?;
        let begins = (position + self.coding.units * n as u64).saturating_sub(self.begun);
        Some((begins, payload.bytes.get(..payload.len)?))
    }
}

/// One encoding for all seats with the same audio and coding.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) source: Source,
    pub(super) stream: Stream,
    /// Whether it has a listener in this tick.
    pub(super) is_heard: bool,
    /// The last tick in which it had a listener.
    pub(super) fed: u64,
}

/// The units of a tick.
const UNITS_PER_TICK: usize = 2;
/// 60 ms.
const UNITS_MAX: u32 = 6;
/// Payload space of a datagram after the headers of IPv6, UDP and RTP, and of a tunnel on the path.
const DATAGRAM_BYTES: u64 = 1_380;
/// The largest payload: 10 ms of L16 at 48 kHz on two channels.
const PAYLOAD_BYTES: usize = 1_920;
