//! The figures of a leg or of one stream, which the record, `analyze` and the verdict use.

use crate::stats::{Bursts, Hundredths, Lateness, Percentiles};
use crate::time::Micros;

/// Counts and measurements of the packets of one leg or of one stream.
///
/// A figure that cannot be computed is `None`, never zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Unique packets of accepted segments, of every kind.
    pub received: u64,
    /// Packets that were sent according to the sequence numbers; `received + lost + local_drop`.
    pub expected: u64,
    /// Packets that never arrived, without those our own host dropped.
    pub lost: u64,
    /// Missing packets that our own receive queue dropped; not a fault of the network, and not in `lost`.
    pub local_drop: u64,
    /// Packets whose sequence number had already arrived.
    pub duplicates: u64,
    /// Packets that arrived after a later one; not lost.
    pub reordered: u64,
    /// Packets numbered before the first packet of their segment; not counted anywhere else.
    pub before_segment: u64,
    /// Received audio packets.
    pub audio: u64,
    /// Received comfort-noise packets.
    pub comfort_noise: u64,
    /// Received telephone-event packets and packets of other kinds.
    pub events: u64,
    /// The part of `events` that is not known to be audio, comfort noise or telephone events: video, types
    /// that no SDP announced, types that were not negotiated.
    pub others: u64,
    /// Runs of continuous numbering.
    pub segments: u64,
    /// Confirmed jumps of the sequence number within one SSRC.
    pub sequence_jumps: u64,
    /// Confirmed changes of SSRC.
    pub ssrc_changes: u64,
    /// Packets of an SSRC that was never confirmed.
    pub stray_ssrc: u64,
    /// Unexplained discontinuities of the timestamp.
    pub timestamp_resets: u64,
    /// Silences that the sender announced, by comfort noise or by timestamps that advanced with the time.
    pub pauses: u64,
    /// Gaps over a second within contiguous packets.
    pub interruptions: u64,
    /// Announced silence, in milliseconds.
    pub silence_ms: i64,
    /// Total duration of interruptions, in milliseconds.
    pub interruption_ms: i64,
    /// Flawed packets: lost packets, half of the packets that the two phones of `late_80` and `late_200`
    /// concealed together, and unexplained timestamps.
    pub flaws: u64,
    /// Whether there was enough audio to judge loss and quality.
    pub enough: bool,
    /// Lost packets in percent of the expected.
    pub loss_pct: Option<Hundredths>,
    /// Peak of the smoothed interarrival jitter (RFC 3550 §6.4.1) in milliseconds.
    pub jitter_ms: Option<Hundredths>,
    /// Mean of the smoothed interarrival jitter in milliseconds.
    pub jitter_mean_ms: Option<Hundredths>,
    /// Mean gap between arriving audio packets in milliseconds, without pauses.
    pub mean_interval_ms: Option<Hundredths>,
    /// Packets without a flaw, in percent of the received.
    pub quality_pct: Option<Hundredths>,
    /// Mean opinion score derived from `quality_pct` alone, 1.00 to 4.50.
    pub mos: Option<Hundredths>,
    /// Longest gap between two arrivals in milliseconds.
    pub max_gap_ms: Option<Hundredths>,
    /// Most frequent packet duration according to the timestamps, in milliseconds.
    pub ptime_ms: Option<Hundredths>,
    /// Most frequent packet duration according to the payload length of a constant-bit-rate codec, in
    /// milliseconds.
    pub payload_ptime_ms: Option<Hundredths>,
    /// Arrival of the first packet.
    pub first: Option<Micros>,
    /// Arrival of the last packet.
    pub last: Option<Micros>,
    /// Loss runs by length: 1, 2, … 9, and 10 or more packets.
    pub loss_runs: [u32; 10],
    /// Packets by lateness: under 10, 20, 40, 60, 100, 200, 500 milliseconds, and later.
    pub lateness: [u32; 8],
    /// Packets in the longest run of missing packets.
    pub longest_loss_packets: u32,
    /// Duration of that run according to the packet duration, in milliseconds.
    pub longest_loss_ms: i64,
    /// Late packets that a phone with a buffer of 80 ms had to conceal.
    pub late_80: u64,
    /// Late packets that a phone with a buffer of 200 ms had to conceal.
    pub late_200: u64,
    /// Media time in percent of the time in which it arrived: below 100 the sender is slow.
    pub pace_ratio: Option<Hundredths>,
    /// Missing packets inside bursts (RFC 3611 §4.7.2), in percent of all missing.
    pub burst_share: Option<Hundredths>,
    /// Density and duration of bursts and gaps; `None` when no packet is missing.
    pub bursts: Option<Bursts>,
    /// Parts per million by which the sender's clock is faster than ours; `None` under 30 seconds, and when
    /// the path changed too often.
    pub clock_skew_ppm: Option<i64>,
    /// The ten seconds with the largest share of lost and late packets.
    pub worst_10s: Option<Worst>,
    /// Mean opinion score by the E-model, with its assumptions in `e_model`; only for sessions whose codec
    /// has published values.
    pub mos_e_model: Option<Hundredths>,
    /// The inputs of `mos_e_model`.
    pub e_model: Option<EModel>,
    /// Percentiles of the lateness.
    pub lateness_percentiles: Option<Percentiles>,
    /// Packets by lateness in fine steps, from which the percentiles of many streams are computed.
    pub lateness_counts: Lateness,
    /// Telephone events, each counted once for all its packets.
    pub dtmf_events: u64,
    /// The exact sums from which the figures are computed; the verdict's rules compare them.
    pub sums: Sums,
}

impl Figures {
    /// The counts among them, for packets whose arrival times are unknown or wrong.
    #[must_use]
    pub fn counts(&self) -> Figures {
        Figures {
            received: self.received,
            expected: self.expected,
            lost: self.lost,
            local_drop: self.local_drop,
            duplicates: self.duplicates,
            reordered: self.reordered,
            before_segment: self.before_segment,
            audio: self.audio,
            comfort_noise: self.comfort_noise,
            events: self.events,
            others: self.others,
            segments: self.segments,
            sequence_jumps: self.sequence_jumps,
            ssrc_changes: self.ssrc_changes,
            stray_ssrc: self.stray_ssrc,
            loss_pct: self.loss_pct,
            ptime_ms: self.ptime_ms,
            payload_ptime_ms: self.payload_ptime_ms,
            first: self.first,
            last: self.last,
            loss_runs: self.loss_runs,
            longest_loss_packets: self.longest_loss_packets,
            dtmf_events: self.dtmf_events,
            ..Figures::default()
        }
    }

    /// Whether most packets are not known to be audio; then timing and quality are not judged.
    pub fn is_mostly_other(&self) -> bool {
        self.others.saturating_mul(2) > self.received
    }
}

/// The exact sums and counts of [`Figures`], for comparisons without rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Jitter samples.
    pub jitter_count: u64,
    /// Jitter samples at or above the jitter threshold.
    pub jitter_high_count: u64,
    /// Sum of the smoothed jitter over all samples, in microseconds.
    pub jitter_sum_us: i64,
    /// Peak of the smoothed jitter in microseconds.
    pub jitter_peak_us: i64,
    /// Measured gaps between audio packets.
    pub gap_count: u64,
    /// Sum of these gaps, in microseconds.
    pub gap_sum_us: i64,
    /// Media time over the same gaps, in microseconds.
    pub media_sum_us: i64,
    /// Gaps shorter than a quarter of the packet duration.
    pub short_gap_count: u64,
    /// Intervals between the starts of clumps.
    pub clump_count: u64,
    /// Sum of these intervals, in microseconds.
    pub clump_sum_us: i64,
    /// Sum of the squares of these intervals, in units of (32 µs)².
    pub clump_square_sum: i64,
    /// Windows of five seconds whose pace was measured.
    pub pace_windows: u64,
    /// Windows whose pace was off.
    pub pace_windows_off: u64,
    /// Packets later than the lateness threshold.
    pub late_count: u64,
    /// Contiguous pairs whose timestamp step was counted.
    pub pair_count: u64,
    /// The most frequent step in clock units; without any pair, the advertised one.
    pub step_ticks: i64,
    /// Pairs with that step.
    pub step_count: u64,
    /// The most frequent step in microseconds.
    pub step_us: i64,
    /// The most frequent payload length in bytes, 0 without any pair.
    pub payload_len: u64,
    /// Pairs with that length.
    pub payload_len_count: u64,
    /// Runs of the packets in `late_80`.
    pub late_80_runs: u64,
    /// Runs of the packets in `late_200`.
    pub late_200_runs: u64,
    /// Whether the last packet was audio.
    pub ends_in_audio: bool,
}

/// The ten seconds with the largest share of lost or late packets; among equals, the first.
///
/// When no packet was lost or late, those with the highest jitter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Worst {
    /// Their start, in seconds after the first packet.
    pub at_s: u32,
    /// Packets lost in them, in percent of the expected.
    pub loss_pct: Hundredths,
    /// Peak of the smoothed jitter in them, in milliseconds.
    pub jitter_ms: Hundredths,
    /// Packets in them that were neither lost nor late, in percent of the expected.
    pub quality_pct: Hundredths,
}

/// A score by the E-model and its inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EModel {
    /// The score, 1.00 to 4.50.
    pub mos: Hundredths,
    /// The codec whose values were used, as G.113 names it.
    pub codec: &'static str,
    /// Its equipment impairment factor Ie.
    pub impairment: u32,
    /// Its robustness against packet loss Bpl.
    pub robustness: Hundredths,
    /// Whether the network delay was measured by RTCP; otherwise 30 ms are assumed.
    pub is_delay_measured: bool,
    /// The result for a phone with a buffer of 80 ms, and for one of 200 ms.
    pub phones: [PhoneRating; 2],
}

/// The result for one phone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhoneRating {
    /// The phone's buffer in milliseconds.
    pub buffer_ms: u32,
    /// The transmission rating R, 0.00 to 93.20.
    pub rating: Hundredths,
    /// Packets that did not arrive, or arrived too late for the buffer, in percent of the expected.
    pub effective_loss_pct: Hundredths,
    /// The burst ratio BurstR: mean run of such packets relative to that of random loss; 1.00 to 8.00.
    pub burst_ratio: Hundredths,
    /// Delay from mouth to ear in milliseconds.
    pub delay_ms: Hundredths,
}
