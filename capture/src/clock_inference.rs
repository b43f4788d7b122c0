//! Infers the RTP clock of a payload type that no SDP announced, from the timestamps and arrival times of its
//! packets.
//!
//! The timestamps of most senders advance with their clock, also during silence. Queues delay packets and
//! packets arrive in bursts, so the rate is the median over many pairs of packets that lie half of all
//! packets apart, and the usual timestamp step must be the packet duration of some codec. Some senders stop their clock
//! while they are muted: the packets before and after such a pause form no pair.

use sidetone_media::rtp::Packet;
use sidetone_media::time::{ClockRate, Micros};

/// An inferred clock, and the kind of media that its packets seem to carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inferred {
    pub(super) clock: ClockRate,
    /// Each packet has its own timestamp. Video and events use one timestamp for several packets, and 90 kHz
    /// is the clock of video (RFC 3551 §5).
    pub(super) is_audio: bool,
}

/// The number of packets to wait for: the more packets, the larger the accepted difference of their rate from a known
/// clock.
///
/// Each entry is a number of packets, and the tolerated difference of the rate in percent.
pub(super) const STAGES: [(usize, f64); 4] = [(64, 2.0), (128, 4.0), (256, 10.0), (512, LEAST_PCT)];
/// The tolerated difference when no more packets come: of the two nearest clocks one is three quarters of the
/// other.
pub(super) const LEAST_PCT: f64 = 14.0;

/// The clock of `packets`, all of one payload type and SSRC, when their rate is within `within_pct` percent
/// of a clock in use.
pub(super) fn infer(packets: &[(Micros, Packet)], within_pct: f64) -> Option<Inferred> {
    let ((first, _), (last, _)) = (packets.first()?, packets.last()?);
    if packets.len() < PACKETS_MIN || last.since(*first) < SPAN_MIN_US {
        return None;
    }
    let steps: Vec<i32> = packets.array_windows().filter_map(step).collect();
    let usual = usual(steps.clone());
    let rate = rate(packets, usual)?;
    let still = steps.iter().filter(|step| **step == 0).count();
    let apart = |hz: u32| (rate / f64::from(hz)).ln().abs() * 100.0;
    let nearest = |clocks: &mut dyn Iterator<Item = u32>| {
        let near = clocks.filter(|hz| apart(*hz) <= within_pct);
        near.min_by(|one, other| apart(*one).total_cmp(&apart(*other)))
    };
    if still * STILL_ONE_IN > steps.len() {
        let clock = nearest(&mut std::iter::once(VIDEO_HZ)).and_then(ClockRate::new)?;
        return Some(Inferred { clock, is_audio: false });
    }
    let usual = usual?;
    let hz = nearest(&mut AUDIO_HZ.into_iter().filter(|hz| is_a_duration(usual, *hz)));
    if let Some(clock) = hz.and_then(ClockRate::new) {
        return Some(Inferred { clock, is_audio: true });
    }
    let clock = nearest(&mut std::iter::once(VIDEO_HZ)).and_then(ClockRate::new)?;
    Some(Inferred { clock, is_audio: false })
}

/// Clock units per second.
fn rate(packets: &[(Micros, Packet)], usual: Option<u32>) -> Option<f64> {
    let stretches = packets.chunk_by(|before, packet| !is_frozen(before, packet, usual));
    let mut rates: Vec<f64> = stretches.flat_map(rates).collect();
    if rates.len() < PAIRS_MIN {
        rates = self::rates(packets).collect();
    }
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().filter(|rate| *rate > 0.0)
}

/// The clock units per second between packets that lie half of these packets apart.
fn rates(packets: &[(Micros, Packet)]) -> impl Iterator<Item = f64> {
    let later = packets.iter().skip(packets.len() / 2);
    packets.iter().zip(later).filter_map(|((before, one), (at, other))| {
        let us = at.since(*before);
        let ticks = other.timestamp.wrapping_sub(one.timestamp).cast_signed();
        (us >= APART_MIN_US).then(|| f64::from(ticks) * 1e6 / us as f64)
    })
}

/// Whether the sender's clock seems to have stopped between two packets: a pause, and only the usual step.
fn is_frozen(before: &(Micros, Packet), packet: &(Micros, Packet), usual: Option<u32>) -> bool {
    let ticks = step(&[*before, *packet]).and_then(|ticks| u32::try_from(ticks).ok());
    packet.0.since(before.0) >= FROZEN_US && ticks.is_some() && ticks == usual
}

/// How far the timestamp advances between two packets with consecutive sequence numbers.
fn step([(_, before), (_, packet)]: &[(Micros, Packet); 2]) -> Option<i32> {
    let is_next = before.sequence.wrapping_add(1) == packet.sequence;
    is_next.then(|| packet.timestamp.wrapping_sub(before.timestamp).cast_signed())
}

/// The most frequent step forward.
fn usual(mut steps: Vec<i32>) -> Option<u32> {
    steps.retain(|step| *step > 0);
    steps.sort_unstable();
    let runs = steps.chunk_by(|one, other| one == other);
    runs.max_by_key(|run| run.len())?.first().and_then(|step| u32::try_from(*step).ok())
}

/// Whether `ticks` of a clock are the duration of a packet in use.
fn is_a_duration(ticks: u32, hz: u32) -> bool {
    DURATIONS_TENTHS_MS.iter().any(|tenths| u64::from(ticks) * 10_000 == tenths * u64::from(hz))
}

/// The clocks of audio (RFC 3551 table 4, RFC 7587).
const AUDIO_HZ: [u32; 7] = [8_000, 12_000, 16_000, 24_000, 32_000, 44_100, 48_000];
/// The clock of video.
const VIDEO_HZ: u32 = 90_000;
/// Packet durations of audio, in tenths of a millisecond.
const DURATIONS_TENTHS_MS: [u64; 11] = [25, 50, 100, 150, 200, 300, 400, 600, 800, 1_000, 1_200];
/// Fewer packets, or packets of less than a second, give no rate.
const PACKETS_MIN: usize = 20;
const SPAN_MIN_US: i64 = 1_000_000;
/// Pairs of packets that are nearer in time give no rate.
const APART_MIN_US: i64 = 200_000;
/// Fewer pairs within the stretches of a sender that stops its clock give no rate.
const PAIRS_MIN: usize = 8;
/// A pause: longer than every packet in use.
const FROZEN_US: i64 = 200_000;
/// In audio more than four packets of five have a timestamp of their own.
const STILL_ONE_IN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets whose timestamps advance by `ticks`, each arriving `late_us` after it was sent.
    fn talk(ticks: u32, gap_us: i64, count: u16, late_us: impl Fn(i64) -> i64) -> Vec<(Micros, Packet)> {
        let packet = |n: u16| Packet { sequence: n, timestamp: u32::from(n) * ticks, ..Packet::default() };
        (0..count).map(|n| (Micros(i64::from(n) * gap_us + late_us(n.into())), packet(n))).collect()
    }

    fn told(packets: &[(Micros, Packet)], within_pct: f64) -> Option<(u32, bool)> {
        infer(packets, within_pct).map(|inferred| (inferred.clock.hz(), inferred.is_audio))
    }

    #[test]
    fn every_clock_is_told_by_a_stage() {
        for hz in AUDIO_HZ {
            for ms in [10, 20, 30, 40, 60] {
                let packets = talk(hz * ms / 1_000, i64::from(ms) * 1_000, 110, |n| n * 7_919 % 3_000);
                assert_eq!(told(&packets, 2.0), Some((hz, true)), "{hz} Hz, {ms} ms");
            }
        }
        let video = talk(3_600, 40_000, 100, |n| n * 7_919 % 9_000);
        assert_eq!(told(&video, 2.0), Some((90_000, false)));
    }

    #[test]
    fn delay_moves_the_rate_and_not_the_clock() {
        // The first two seconds of packets arrive in one burst, the rest with growing delay.
        let crowded = |n: i64| if n < 100 { (100 - n) * 15_000 } else { n * 1_500 };
        let packets = talk(960, 20_000, 512, crowded);
        assert_eq!(told(&packets, LEAST_PCT), Some((48_000, true)));
        assert_eq!(told(&packets, 2.0), None, "more packets are waited for");
    }

    #[test]
    fn a_clock_that_stops_is_told() {
        // (packets, the packet before which the sender pauses, the pause, clock)
        for (count, place, pause_us, hz) in [
            (63, 30, 1_000_000, 48_000),
            (63, 31, 1_300_000, 16_000),
            (100, 50, 2_000_000, 48_000),
            (60, 20, 400_000, 8_000),
        ] {
            let pause = |n: i64| if n < place { 0 } else { pause_us };
            let packets = talk(hz / 50, 20_000, count, pause);
            assert_eq!(told(&packets, LEAST_PCT), Some((hz, true)), "{count} packets, {hz} Hz");
        }
        // A network that holds the packets for a second and then delivers them at once stops no clock.
        let held = |n: i64| if (51..=100).contains(&n) { (100 - n) * 20_000 } else { 0 };
        let packets = talk(960, 20_000, 256, held);
        assert_eq!(told(&packets, 2.0), Some((48_000, true)));
    }

    #[test]
    fn what_cannot_be_told_is_not() {
        assert_eq!(told(&talk(960, 20_000, 19, |_| 0), LEAST_PCT), None, "too few");
        assert_eq!(told(&talk(960, 20_000, 40, |_| 0), LEAST_PCT), None, "too short");
        assert_eq!(told(&talk(0, 20_000, 200, |_| 0), LEAST_PCT), None, "one timestamp");
        assert_eq!(told(&talk(777, 20_000, 200, |_| 0), LEAST_PCT), None, "no packet lasts so long");
        assert_eq!(told(&[], LEAST_PCT), None);
        let mut random = talk(960, 20_000, 200, |_| 0);
        for (n, (_, packet)) in (1_u32..).zip(&mut random) {
            packet.timestamp = n.wrapping_mul(2_654_435_761);
        }
        assert_eq!(told(&random, LEAST_PCT), None, "timestamps at random");
    }
}
