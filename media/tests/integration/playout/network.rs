//! A sender, a network and a receiver: the samples of a packet identify it.

use sidetone_media::codec::Codec;
use sidetone_media::playout::{Playout, PlayoutFigures, PlayoutFormats, Pulled};
use sidetone_media::rtp::{Packet, RtpPacket};
use sidetone_media::simulate::Random;
use sidetone_media::time::Micros;

/// L16 at 8 kHz: all samples of packet n are equal, and higher than those of packet n - 1.
pub(crate) const LINEAR: Codec = Codec::L16 { rate_hz: 8_000, channels: 1 };

pub(crate) fn linear() -> PlayoutFormats {
    PlayoutFormats { audio: vec![(97, LINEAR)], noise: vec![13], rate_hz: None }
}

/// One packet in transit.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) arrival_us: i64,
    pub(crate) header: Packet,
    pub(crate) payload: Vec<u8>,
}

/// `count` packets of `ptime_ms`, numbered by their samples; packet n arrives `late_us(n)` after it was sent.
pub(crate) fn packets(count: i64, ptime_ms: i64, late_us: impl Fn(i64) -> i64) -> Vec<Sent> {
    let samples = ptime_ms * 8;
    let packet = |n: i64| {
        let header = Packet {
            ssrc: 7,
            timestamp: (u32::MAX - 4_000).wrapping_add((n * samples) as u32),
            sequence: 65_500_u16.wrapping_add(n as u16),
            payload_type: 97,
            payload_len: 0,
            marker: false,
        };
        let payload = (0..samples).flat_map(|_| (FIRST + n as i16).to_be_bytes()).collect();
        Sent { arrival_us: 1_000_000 + n * ptime_ms * 1_000 + late_us(n), header, payload }
    };
    let mut sent: Vec<Sent> = (0..count).map(packet).collect();
    sent.sort_by_key(|sent| sent.arrival_us);
    sent
}

/// Removes overtaking: a delayed packet also delays those after it.
pub(crate) fn in_order(sent: &mut [Sent]) {
    sent.sort_by_key(|sent| sent.header.timestamp.wrapping_add(1 << 20));
    let mut last = 0;
    for sent in sent {
        last = last.max(sent.arrival_us);
        sent.arrival_us = last;
    }
}

/// The output.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) frames: Vec<Pulled>,
    pub(crate) samples: Vec<i16>,
    /// The delay after each tick.
    pub(crate) delay_ms: Vec<u32>,
    pub(crate) figures: PlayoutFigures,
}

impl Heard {
    pub(crate) fn count(&self, pulled: Pulled) -> usize {
        self.frames.iter().filter(|frame| **frame == pulled).count()
    }

    /// The longest delay, without the end of the stream, where missing packets are treated as late.
    pub(crate) fn longest_ms(&self) -> u32 {
        let end = self.delay_ms.len() - 60;
        self.delay_ms[..end].iter().copied().max().unwrap_or(0)
    }

    /// The packets that were heard, in order; shorter runs are concealment.
    pub(crate) fn packets(&self) -> Vec<i16> {
        let mut packets = Vec::new();
        let mut run = 0;
        let mut before = i16::MIN;
        for sample in &self.samples {
            run = if *sample == before { run + 1 } else { 1 };
            before = *sample;
            if run == RUN && *sample >= FIRST && packets.last() != Some(sample) {
                packets.push(*sample);
            }
        }
        packets
    }
}

/// The value of the first packet's samples: so high that a fade never stays at one value.
const FIRST: i16 = 2_000;
/// 2 ms.
const RUN: usize = 16;

/// Plays `sent` at ticks of 20 ms, the first at `phase_us`, until a second after the last packet.
pub(crate) fn play(formats: &PlayoutFormats, sent: &[Sent], phase_us: i64) -> Heard {
    let mut playout = Playout::new(formats, 1);
    let mut heard = Heard::default();
    let mut sent = sent.iter().peekable();
    let mut now = 1_000_000 + phase_us;
    let mut rest = 50;
    while rest > 0 {
        while let Some(next) = sent.next_if(|next| next.arrival_us <= now) {
            let packet = RtpPacket { header: next.header, payload: &next.payload };
            playout.push(Micros(next.arrival_us), &packet);
        }
        rest -= i32::from(sent.peek().is_none());
        let mut frame = [0; 960];
        let samples = playout.frame_samples();
        let pulled = playout.pull(Micros(now), &mut frame);
        heard.frames.push(pulled);
        heard.samples.extend_from_slice(&frame[..samples]);
        heard.delay_ms.push(playout.figures().delay_ms);
        now += 20_000;
    }
    heard.figures = playout.figures();
    heard
}

/// Random numbers of a seeded network.
pub(crate) fn draws(seed: u64, count: i64) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..count).map(|_| (random.bits() >> 11) as f64 / (1_u64 << 53) as f64).collect()
}
