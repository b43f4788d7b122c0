//! Random streams for laws and for the reference model, reproducible by seed.

use sidetone_media::rtp::{Packet, PayloadKind};
use sidetone_media::time::Micros;

/// One arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) at: Micros,
    pub(crate) kind: PayloadKind,
    pub(crate) packet: Packet,
}

/// A small generator of pseudo-random numbers (SplitMix64, Steele et al. 2014).
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// The next 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `end - 1`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.bits() % end.max(1)
    }

    /// True with a probability of `per_mille` in a thousand.
    pub(crate) fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}

/// The impairments of a random stream, in chances per mille and microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Roughness {
    loss: u64,
    burst: u64,
    duplicate: u64,
    reorder: u64,
    jitter_us: u64,
    clump: u64,
    silence: u64,
    timestamp_reset: u64,
    sequence_jump: u64,
    ssrc_change: u64,
    stray: u64,
    other_kind: u64,
    stall: u64,
    ptime_switch: bool,
}

impl Roughness {
    /// A random selection of impairments, so that each also occurs alone.
    fn random(random: &mut Random) -> Self {
        let mut some = |most: u64| if random.chance(350) { random.below(most + 1) } else { 0 };
        Roughness {
            loss: some(150),
            burst: some(10),
            duplicate: some(200),
            reorder: some(100),
            jitter_us: some(80_000),
            clump: some(6),
            silence: some(10),
            timestamp_reset: some(4),
            sequence_jump: some(4),
            ssrc_change: some(4),
            stray: some(10),
            other_kind: some(20),
            stall: some(10),
            ptime_switch: some(1) == 1,
        }
    }
}

/// A stream of about `packets` packets; the clock is 8,000 Hz.
pub(crate) fn stream(seed: u64, packets: u32) -> Vec<Arrived> {
    let mut random = Random(seed);
    let rough = Roughness::random(&mut random);
    let mut sent = Packet {
        ssrc: 0x1000,
        timestamp: random.bits() as u32,
        payload_len: 160,
        sequence: random.bits() as u16,
        payload_type: 0,
        marker: false,
    };
    let mut step = 160;
    let mut sent_us = 1_000_000_i64;
    let mut arrivals = Vec::new();
    for n in 0..packets {
        if rough.ptime_switch && n == packets / 2 {
            step = 240;
        }
        let extra_us = disturb(&mut random, &rough, &mut sent);
        sent_us += i64::from(step) * 125 + extra_us;
        sent.sequence = sent.sequence.wrapping_add(1);
        sent.timestamp = sent.timestamp.wrapping_add(step);
        sent.payload_len = step;
        if random.chance(rough.burst) {
            let run = random.below(400) as u16;
            sent.sequence = sent.sequence.wrapping_add(run);
            sent.timestamp = sent.timestamp.wrapping_add(step.wrapping_mul(run.into()));
            sent_us += i64::from(run) * i64::from(step) * 125;
        }
        let kind = kind(&mut random, &rough, &mut sent);
        deliver(&mut random, &rough, &mut arrivals, Arrived { at: Micros(sent_us), kind, packet: sent });
    }
    clump(&mut arrivals, rough.clump as usize);
    arrivals.sort_by_key(|arrived| arrived.at);
    arrivals
}

/// Silences, stalls, jumps and changes of SSRC before the next packet; the time they take.
fn disturb(random: &mut Random, rough: &Roughness, sent: &mut Packet) -> i64 {
    sent.marker = false;
    if random.chance(rough.silence) {
        let ms = random.below(4_000);
        // The clock advances, or stands still; the marker is set, or not.
        if random.chance(500) {
            sent.timestamp = sent.timestamp.wrapping_add(ms as u32 * 8);
        }
        sent.marker = random.chance(500);
        return ms as i64 * 1000;
    }
    if random.chance(rough.timestamp_reset) {
        sent.timestamp = random.bits() as u32;
        sent.marker = random.chance(300);
    }
    if random.chance(rough.sequence_jump) {
        sent.sequence = random.bits() as u16;
    }
    if random.chance(rough.ssrc_change) {
        sent.ssrc += 1;
        sent.timestamp = random.bits() as u32;
        sent.sequence = random.bits() as u16;
    }
    if random.chance(rough.stall) { random.below(2_500_000) as i64 } else { 0 }
}

fn kind(random: &mut Random, rough: &Roughness, sent: &mut Packet) -> PayloadKind {
    let (number, kind) = match random.below(1000) {
        roll if roll < rough.other_kind / 2 => (13, PayloadKind::ComfortNoise),
        roll if roll < rough.other_kind => (101, PayloadKind::Event),
        _ => (0, PayloadKind::Audio),
    };
    sent.payload_type = number;
    kind
}

/// The effect of the network on one packet.
fn deliver(random: &mut Random, rough: &Roughness, arrivals: &mut Vec<Arrived>, arrived: Arrived) {
    if random.chance(rough.stray) {
        let packet = Packet { ssrc: 7, sequence: random.bits() as u16, ..arrived.packet };
        arrivals.push(Arrived { packet, ..arrived });
    }
    if random.chance(rough.loss) {
        return;
    }
    let mut at = arrived.at + random.below(rough.jitter_us + 1) as i64;
    if random.chance(rough.reorder) {
        at = at + random.below(400_000) as i64;
    }
    arrivals.push(Arrived { at, ..arrived });
    if random.chance(rough.duplicate) {
        arrivals.push(Arrived { at: at + random.below(60_000) as i64, ..arrived });
    }
}

/// Delivers packets `size` at a time.
fn clump(arrivals: &mut [Arrived], size: usize) {
    if size > 1 {
        for group in arrivals.chunks_mut(size) {
            let last = group.iter().map(|arrived| arrived.at).max().unwrap_or_default();
            for (n, arrived) in group.iter_mut().enumerate() {
                arrived.at = last + n as i64 * 90;
            }
        }
    }
}
