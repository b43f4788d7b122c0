//! Transcodes one direction of a bridge whose sides have no common codec.
//!
//! Packets are played out in ticks of 20 ms, because a decoder needs every packet in order and in time. The frames are
//! encoded again and sent with our own SSRC, sequence numbers and timestamps. Telephone events (RFC 4733) are not
//! decoded: their packets are passed on immediately with the receiver's payload type and clock. Sides with a common
//! codec are relayed and not transcoded.

use crate::codec::{Codec, CodecError, Encoder};
use crate::playout::{Playout, PlayoutFigures, PlayoutFormats, Pulled};
use crate::rtp::RtpPacket;
use crate::time::Micros;

/// The SDP results of both sides for one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscodePlan {
    /// The payload types of the audio that is transcoded.
    pub audio: Vec<(u8, Codec)>,
    /// The payload types of the sender's comfort noise.
    pub noise: Vec<u8>,
    /// The telephone events of both sides.
    pub events: Option<EventPlan>,
    /// The codec sent to the receiver, with its payload type.
    pub send: (u8, Codec),
    /// Audio per packet: 10 to 60 ms in steps of ten.
    pub ptime_ms: u32,
}

/// Payload types and clocks of telephone events on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventPlan {
    /// Payload type and clock in Hz of the received events.
    pub from: (u8, u32),
    /// Payload type and clock in Hz of the sent events.
    pub to: (u8, u32),
}

/// Transcodes one direction.
///
/// *Bounds*: nothing is allocated after the first packets, except inside an encoder; after a second without
/// packets it requests no more ticks.
#[derive(Debug)]
pub struct Transcoder {
    plan: TranscodePlan,
    playout: Playout,
    encoder: Encoder,
    /// The time of tick 0, and the number of the next tick.
    epoch: Option<Micros>,
    next: i64,
    is_running: bool,
    /// Ticks without audio.
    idle: u32,
    /// Samples that wait for a full packet, and the time of the first one, in samples since tick 0.
    pcm: Vec<i16>,
    pcm_at: i64,
    /// The first packet after silence gets the marker (RFC 3551 §4.1).
    has_paused: bool,
    key: Option<Key>,
    /// Remaining samples of the beep.
    beep: usize,
    out: Outgoing,
}

/// The key press that is passed on: its original timestamp, and ours.
#[derive(Clone, Copy, Debug)]
struct Key {
    received: u32,
    sent: u32,
}

impl Transcoder {
    /// A transcoder before the first packet; `seed` determines its SSRC and its first numbers.
    ///
    /// # Errors
    /// When a codec refuses its parameters.
    pub fn new(plan: TranscodePlan, seed: u64) -> Result<Transcoder, CodecError> {
        let rate_hz = plan.send.1.sample_rate_hz();
        let formats =
            PlayoutFormats { audio: plan.audio.clone(), noise: plan.noise.clone(), rate_hz: Some(rate_hz) };
        let encoder = Encoder::new(plan.send.1)?;
        Ok(Transcoder {
            playout: Playout::new(&formats, seed),
            encoder,
            epoch: None,
            next: 0,
            is_running: false,
            idle: 0,
            pcm: Vec::with_capacity(samples(rate_hz, PTIME_MAX_MS + TICK_MS)),
            pcm_at: 0,
            has_paused: true,
            key: None,
            beep: 0,
            out: Outgoing::new(seed),
            plan,
        })
    }

    /// The plan it was created with.
    pub fn plan(&self) -> &TranscodePlan {
        &self.plan
    }

    /// The figures of the playout.
    pub fn figures(&self) -> PlayoutFigures {
        self.playout.figures()
    }

    /// Processes one packet, which arrived at `now`; drain [`Transcoder::poll_packet`] afterwards.
    pub fn receive(&mut self, now: Micros, packet: &RtpPacket<'_>) {
        let epoch = *self.epoch.get_or_insert(now + WAIT_US);
        if !self.is_running {
            // The first tick is due when the first packet has waited long enough.
            self.next = (now.since(epoch) + WAIT_US).div_euclid(TICK_US);
            (self.is_running, self.idle) = (true, 0);
        }
        match self.plan.events.filter(|events| events.from.0 == packet.header.payload_type) {
            Some(events) => self.pass_key(now, events, packet),
            None => drop(self.playout.push(now, packet)),
        }
    }

    /// When the next tick is due; `None` while there is nothing to do.
    pub fn next_tick(&self) -> Option<Micros> {
        self.epoch.filter(|_| self.is_running).map(|epoch| epoch + self.next * TICK_US)
    }

    /// Plays and encodes 20 ms; drain [`Transcoder::poll_packet`] afterwards.
    pub fn tick(&mut self, now: Micros) {
        let Some(due) = self.next_tick().filter(|due| *due <= now) else { return };
        if now.since(due) > BEHIND_MAX_US {
            // The driver stopped for a while: missed ticks are skipped.
            self.next += now.since(due) / TICK_US;
        }
        let mut frame = [0; FRAME_MAX];
        let count = samples(self.plan.send.1.sample_rate_hz(), TICK_MS);
        let Some(frame) = frame.get_mut(..count) else { return };
        let pulled = self.playout.pull(now, frame);
        let begin = self.next * count as i64;
        self.next += 1;
        if pulled == Pulled::Nothing {
            self.pause();
        } else {
            self.idle = 0;
            self.write_beep(frame);
            if self.pcm.is_empty() {
                self.pcm_at = begin;
            }
            self.pcm.extend_from_slice(frame);
            self.encode();
        }
    }

    /// The next datagram for the receiver.
    pub fn poll_packet(&mut self) -> Option<&[u8]> {
        self.out.take()
    }

    /// Plays the receiver a beep of 600 ms in the audio that is sent to it in any case.
    pub fn beep(&mut self) {
        self.beep = samples(self.plan.send.1.sample_rate_hz(), BEEP_MS);
    }

    /// A tick without audio: sends the waiting samples, padded to a packet.
    fn pause(&mut self) {
        self.idle += 1;
        if self.idle > IDLE_TICKS_MAX {
            self.is_running = false;
        }
        if !self.pcm.is_empty() {
            self.pcm.resize(self.packet_samples(), 0);
            self.encode();
        }
        self.has_paused = true;
    }

    /// Encodes the waiting samples into full packets.
    fn encode(&mut self) {
        let size = self.packet_samples();
        while self.pcm.len() >= size {
            let timestamp = self.rtp_units(self.pcm_at);
            let marker = std::mem::take(&mut self.has_paused);
            let Transcoder { pcm, encoder, out, plan, .. } = self;
            let pcm = pcm.get(..size).unwrap_or_default();
            out.put(plan.send.0, marker, timestamp, |payload| encoder.encode(pcm, payload).unwrap_or(0));
            self.pcm.drain(..size);
            self.pcm_at += size as i64;
        }
    }

    /// Passes on a packet of a key press with the receiver's payload type and clock, and our timestamp.
    fn pass_key(&mut self, now: Micros, events: EventPlan, packet: &RtpPacket<'_>) {
        self.playout.event();
        let Some((&[code, flags, high, low], _)) = packet.payload.split_first_chunk::<4>() else { return };
        let (from_hz, to_hz) = (u64::from(events.from.1.max(1)), u64::from(events.to.1));
        let received = packet.header.timestamp;
        let sent = match self.key.filter(|key| key.received == received) {
            Some(key) => key.sent,
            None => {
                // Some phones change the timestamp within one key press; ours then changes too.
                let since_us = self.epoch.map_or(0, |epoch| now.since(epoch));
                (since_us * i64::from(events.to.1) / 1_000_000) as u32
            }
        };
        self.key = Some(Key { received, sent });
        let duration = u64::from(u16::from_be_bytes([high, low])) * to_hz / from_hz;
        let [high, low] = u16::try_from(duration).unwrap_or(u16::MAX).to_be_bytes();
        self.out.put(events.to.0, packet.header.marker, sent, |payload| {
            payload.get_mut(..4).map_or(0, |room| {
                room.copy_from_slice(&[code, flags, high, low]);
                4
            })
        });
        self.has_paused = true;
    }

    /// Writes the rest of the beep over a frame.
    fn write_beep(&mut self, frame: &mut [i16]) {
        let rate_hz = self.plan.send.1.sample_rate_hz();
        let total = samples(rate_hz, BEEP_MS);
        for sample in frame.iter_mut().take(self.beep) {
            let at = (total - self.beep) as f32 / rate_hz as f32;
            *sample = (BEEP_PEAK * (std::f32::consts::TAU * BEEP_HZ * at).sin()) as i16;
            self.beep -= 1;
        }
    }

    fn packet_samples(&self) -> usize {
        let codec = self.plan.send.1;
        let ptime_ms = match self.plan.ptime_ms.clamp(10, PTIME_MAX_MS) / 10 * 10 {
            // Opus has no single frames of 30 and 50 ms (RFC 6716 §2).
            ptime_ms @ (30 | 50) if codec == Codec::Opus => ptime_ms - 10,
            ptime_ms => ptime_ms,
        };
        samples(codec.sample_rate_hz(), ptime_ms)
    }

    /// The RTP timestamp of a sample, relative to tick 0.
    fn rtp_units(&self, sample: i64) -> u32 {
        let codec = self.plan.send.1;
        (sample * i64::from(codec.rtp_clock().hz()) / i64::from(codec.sample_rate_hz().max(1))) as u32
    }
}

/// Packets that wait to be taken, in reused buffers.
#[derive(Debug)]
struct Outgoing {
    ssrc: u32,
    sequence: u16,
    timestamp: u32,
    packets: Vec<Vec<u8>>,
    ready: usize,
    taken: usize,
}

impl Outgoing {
    fn new(seed: u64) -> Self {
        let [a, b, c, d, e, f, g, h] = seed.to_be_bytes();
        Outgoing {
            ssrc: u32::from_be_bytes([a, b, c, d]),
            // In the first half of the range, so that the number does not wrap soon (RFC 3711 §3.3.1).
            sequence: u16::from_be_bytes([e & 0x7f, f]),
            timestamp: u32::from_be_bytes([g, h, e, f]),
            packets: (0..PACKETS_MAX).map(|_| Vec::with_capacity(64)).collect(),
            ready: 0,
            taken: 0,
        }
    }

    /// Adds a packet whose payload `write` produces; none when it is empty, or when the packets are not
    /// taken.
    fn put(
        &mut self,
        payload_type: u8,
        marker: bool,
        timestamp: u32,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) {
        let mut payload = [0; PAYLOAD_MAX];
        let size = write(&mut payload);
        let Some(payload) = payload.get(..size).filter(|payload| !payload.is_empty()) else { return };
        let Some(packet) = self.packets.get_mut(self.ready) else { return };
        packet.clear();
        packet.extend_from_slice(&[0x80, u8::from(marker) << 7 | (payload_type & 0x7f)]);
        packet.extend_from_slice(&self.sequence.to_be_bytes());
        packet.extend_from_slice(&self.timestamp.wrapping_add(timestamp).to_be_bytes());
        packet.extend_from_slice(&self.ssrc.to_be_bytes());
        packet.extend_from_slice(payload);
        self.sequence = self.sequence.wrapping_add(1);
        self.ready += 1;
    }

    fn take(&mut self) -> Option<&[u8]> {
        if self.taken >= self.ready {
            (self.taken, self.ready) = (0, 0);
            return None;
        }
        self.taken += 1;
        self.packets.get(self.taken - 1).map(Vec::as_slice)
    }
}

fn samples(rate_hz: u32, ms: u32) -> usize {
    (rate_hz / 1_000 * ms) as usize
}

/// How long a tick is.
const TICK_MS: u32 = 20;
const TICK_US: i64 = 20_000;
/// 20 ms at 48 kHz.
const FRAME_MAX: usize = 960;
/// Time from the first packet to the first tick: the playout delay of a network without jitter.
const WAIT_US: i64 = 10_000;
/// When a tick is later than this, missed ticks are skipped.
const BEHIND_MAX_US: i64 = 100_000;
/// After a second without audio no tick is requested.
const IDLE_TICKS_MAX: u32 = 50;
/// The longest packet that is sent.
const PTIME_MAX_MS: u32 = 60;
/// Payload that fits into one datagram on every network.
const PAYLOAD_MAX: usize = 1_400;
/// Packets between two polls: two of 10 ms per tick, and telephone events.
const PACKETS_MAX: usize = 8;
/// The beep of the relay, see `net::beep`: 600 ms of 1,400 Hz at -12 dBm0.
const BEEP_MS: u32 = 600;
const BEEP_HZ: f32 = 1_400.0;
const BEEP_PEAK: f32 = 8_000.0;

#[cfg(test)]
#[path = "transcode_tests.rs"]
mod tests;
