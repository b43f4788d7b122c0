//! The figures that RTCP gives for one leg, as a report contains them.

use crate::stats::Hundredths;

/// The party's reports, and the round trip to it.
///
/// A value that was never reported is `None`, never zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RtcpView {
    /// Datagrams of the party that were read.
    pub datagrams: u64,
    /// Datagrams whose packets do not add up: damaged, or not RTCP.
    pub unreadable: u64,
    /// Datagrams that are encrypted (SRTCP): counted, not read.
    pub encrypted: u64,
    /// Values that were implausible and ignored.
    pub implausible: u64,
    /// The round trip to the party.
    pub round_trip: Option<RoundTrip>,
    /// The party's report about the stream that it receives.
    pub far_end: Option<FarEnd>,
    /// The party's own count of the packets it sent, compared with those that arrived.
    pub sent_by_party: Option<SenderCount>,
    /// Whether the party's source has sent a goodbye (RFC 3550 §6.6).
    pub goodbye: bool,
}

/// The time from here to the party and back, without the party's own delay (RFC 3550 §6.4.1).
///
/// Sampled when a report of the party answers a sender report that passed here on its way to it, or a
/// reference time (RFC 3611 §4.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundTrip {
    /// Samples.
    pub samples: u64,
    /// The latest, in milliseconds.
    pub last_ms: Hundredths,
    /// The shortest, in milliseconds.
    pub min_ms: Hundredths,
    /// The longest, in milliseconds.
    pub max_ms: Hundredths,
    /// Their mean, in milliseconds.
    pub mean_ms: Hundredths,
}

/// The far end's reports about a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FarEnd {
    /// Report blocks about the stream that were plausible.
    pub reports: u64,
    /// Packets lost since the beginning, as last reported; duplicates can make it negative.
    pub lost: Option<i64>,
    /// Packets lost in percent of those expected, over the time that the reports cover.
    ///
    /// `None` while no highest sequence number rose: a receiver that gets nothing reports no loss.
    pub loss_pct: Option<Hundredths>,
    /// The worst share lost between two reports, in percent.
    pub fraction_lost_worst_pct: Option<Hundredths>,
    /// Interarrival jitter as last reported, in milliseconds.
    pub jitter_ms: Option<Hundredths>,
    /// The highest reported jitter, in milliseconds.
    pub jitter_max_ms: Option<Hundredths>,
    /// Whether its highest sequence number rose while packets were sent to it. If not, no packets arrive, regardless of
    /// the reported loss.
    pub highest_sequence_moves: bool,
    /// Packets sent to it since its highest sequence number last rose, up to its latest report; 0 while it
    /// rises.
    pub unheard: u64,
    /// The latest VoIP metrics (RFC 3611 §4.7).
    pub voip: Option<VoipMetrics>,
    /// The latest statistics summary (RFC 3611 §4.6).
    pub summary: Option<StatisticsSummary>,
}

/// The party's sender reports, compared with the packets that arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCount {
    /// Sender reports that were plausible.
    pub reports: u64,
    /// Packets that the party reports as sent, over all its sources.
    pub packets: u64,
    /// Their payload octets.
    pub octets: u64,
    /// Packets reported as sent that did not arrive, with or without a gap in the numbers (`sr_missing`).
    pub missing: u64,
    /// Those sent before the first that arrived; `None` when the stream may have begun before it could be
    /// seen.
    pub head_missing: Option<u64>,
    /// Those sent after the last that arrived.
    pub tail_missing: u64,
}

/// A VoIP metrics block (RFC 3611 §4.7); a value that the party had not measured is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VoipMetrics {
    /// Packets lost, in percent of the expected.
    pub loss_pct: Hundredths,
    /// Packets that arrived too late or too early for its jitter buffer, in percent of the expected.
    pub discard_pct: Hundredths,
    /// Packets lost or discarded within bursts, in percent.
    pub burst_density_pct: Hundredths,
    /// Packets lost or discarded outside bursts, in percent.
    pub gap_density_pct: Hundredths,
    /// Mean length of a burst in milliseconds.
    pub burst_duration_ms: u32,
    /// Mean length of a gap in milliseconds.
    pub gap_duration_ms: u32,
    /// Round trip between the RTP interfaces in milliseconds; 0 means not measured.
    pub round_trip_ms: Option<u32>,
    /// Delay of the party's own buffers and codecs in milliseconds; 0 means not measured.
    pub end_system_delay_ms: Option<u32>,
    /// Level of speech in dBm0.
    pub signal_level_dbm: Option<i8>,
    /// Level of silence in dBm0.
    pub noise_level_dbm: Option<i8>,
    /// Residual echo return loss in dB.
    pub echo_return_loss_db: Option<u8>,
    /// Received packets in a row that end a burst.
    pub gmin: u8,
    /// Transmission rating R of the voice, 0 to 100 (ITU-T G.107).
    pub r_factor: Option<u8>,
    /// Transmission rating of the part outside the RTP network.
    pub external_r_factor: Option<u8>,
    /// Listening quality, 1.00 to 5.00.
    pub mos_lq: Option<Hundredths>,
    /// Conversational quality, 1.00 to 5.00.
    pub mos_cq: Option<Hundredths>,
    /// Nominal delay of its jitter buffer in milliseconds.
    pub jitter_buffer_ms: u32,
    /// Its current maximum delay in milliseconds.
    pub jitter_buffer_max_ms: u32,
    /// The largest delay that it can reach in milliseconds.
    pub jitter_buffer_limit_ms: u32,
}

/// A statistics summary block (RFC 3611 §4.6); a value that it does not contain is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatisticsSummary {
    /// The first sequence number that it covers.
    pub begin_sequence: u16,
    /// The sequence number after the last.
    pub end_sequence: u16,
    /// Packets lost.
    pub lost: Option<u32>,
    /// Duplicates.
    pub duplicates: Option<u32>,
    /// The minimum, maximum, mean and deviation of the relative transit time, in units of the payload's
    /// clock.
    pub jitter_ticks: Option<[u32; 4]>,
    /// The minimum, maximum, mean and deviation of the TTL or hop limit.
    pub hops: Option<[u8; 4]>,
}
