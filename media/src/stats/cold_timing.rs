//! State of a stream's timing that in-step audio packets do not change, kept apart from the state that they
//! do.

use crate::rtp::{Packet, PayloadKind};
use crate::stats::modal::Followers;
use crate::stats::playout::PlayoutTotals;
use crate::stats::skew::Skew;
use crate::stats::stream_config::StreamConfig;
use crate::time::Micros;

/// The rarely used part of a stream's timing.
///
/// Sums wrap instead of saturating: they would need gaps of 292,000 years in total.
#[derive(Clone, Debug, Default)]
pub(crate) struct ColdTiming {
    pub(crate) playout: PlayoutTotals,
    pub(crate) short_gap_count: u32,
    pub(crate) jitter_high_count: u32,
    pub(crate) clump_start: Micros,
    /// Samples that started a clump without a clump before them.
    pub(crate) first_clumps: u32,
    /// Audio packets that were not samples.
    pub(crate) audio: u32,
    pub(crate) comfort_noise: u32,
    /// Packets of telephone events and of other kinds.
    pub(crate) events: u32,
    /// Packets of other kinds, which `events` includes.
    pub(crate) others: u32,
    /// Packets of payload types that were not negotiated, which `others` includes.
    pub(crate) refused: u32,
    pub(crate) first: Option<Micros>,
    pub(crate) max_gap_us: i64,
    // The overflow of the 32-bit sums in `Timing`.
    pub(crate) jitter_sum_us: i64,
    pub(crate) gap_sum_us: i64,
    pub(crate) media_sum_us: i64,
    pub(crate) clump_sum_us: i64,
    pub(crate) clump_square_sum: i64,
    pub(crate) pace_windows: u64,
    pub(crate) pace_windows_off: u64,
    pub(crate) short_pct: u32,
    pub(crate) pace_pct: u32,
    pub(crate) other_steps: Followers,
    /// The latest step that was not the most frequent one at that time, and the number of pairs with it.
    pub(crate) other_step: Option<(i32, u32)>,
    pub(crate) other_payload_lens: Followers,
    /// Pairs before the counting of steps was restarted.
    pub(crate) pairs_before: u32,
    pub(crate) silence_us: i64,
    pub(crate) interruption_us: i64,
    pub(crate) pauses: u64,
    pub(crate) interruptions: u64,
    pub(crate) timestamp_resets: u64,
    /// Timestamp discontinuities that no marker announced.
    pub(crate) flaws: u64,
    /// Telephone events.
    pub(crate) digits: u64,
    event_timestamp: Option<u32>,
    hz: i64,
    skew: Skew,
    /// A packet of known transit: its arrival, its timestamp, and its transit in microseconds.
    transit: Option<(Micros, u32, i64)>,
}

impl ColdTiming {
    pub(crate) fn new(config: &StreamConfig) -> Self {
        ColdTiming { short_pct: config.short_gap_pct, pace_pct: config.pace_pct, ..ColdTiming::default() }
    }

    /// Sets the RTP clock to `hz`.
    pub(crate) fn set_clock(&mut self, hz: i64) {
        self.hz = hz;
        self.break_transit();
    }

    /// Drift of the sender's clock against ours, in parts per million.
    pub(crate) fn skew_ppm(&self) -> Option<i64> {
        self.skew.ppm()
    }

    /// Counts a packet that forms no pair with the one before it.
    pub(crate) fn count(&mut self, kind: PayloadKind, packet: &Packet) {
        let count = match kind {
            PayloadKind::Audio => &mut self.audio,
            PayloadKind::ComfortNoise => &mut self.comfort_noise,
            PayloadKind::Event | PayloadKind::Other => &mut self.events,
        };
        *count = count.wrapping_add(1);
        self.others = self.others.wrapping_add(u32::from(kind == PayloadKind::Other));
        if kind == PayloadKind::Event {
            self.count_event(packet);
        }
    }

    /// Counts a packet of a payload type that was not negotiated.
    pub(crate) fn count_refused(&mut self) {
        for count in [&mut self.events, &mut self.others, &mut self.refused] {
            *count = count.wrapping_add(1);
        }
    }

    /// Records the gap between two arrivals.
    pub(crate) fn note_gap(&mut self, gap_us: i64) {
        self.max_gap_us = self.max_gap_us.max(gap_us);
    }

    /// Adds a transit to the skew: that of the packet that arrived `at` with `timestamp`, plus `below_us`,
    /// which is negative or zero.
    ///
    /// Transit is computed from one such packet to the next in whole clock units, because the steps between
    /// packets are rounded to microseconds.
    #[cold]
    pub(crate) fn mark_transit(&mut self, at: Micros, timestamp: u32, below_us: i64) {
        let transit_us = self.transit.map_or(0, |(before, since, transit_us)| {
            let ticks = i64::from(timestamp.wrapping_sub(since).cast_signed());
            let media_us = ticks * 1_000_000 / self.hz.max(1);
            transit_us.saturating_add(at.since(before)).saturating_sub(media_us)
        });
        self.transit = Some((at, timestamp, transit_us));
        self.skew.fold(at, transit_us.saturating_add(below_us));
    }

    /// Ends the comparison of transits, after timestamps restarted or stood still.
    #[cold]
    pub(crate) fn break_transit(&mut self) {
        self.transit = None;
        self.skew.restart();
    }

    /// Adds an interval between clumps whose square does not fit into 32 bits.
    #[cold]
    pub(crate) fn add_clump(&mut self, interval_us: i64) {
        let scaled = interval_us >> 5;
        self.clump_sum_us = self.clump_sum_us.wrapping_add(interval_us);
        self.clump_square_sum = self.clump_square_sum.wrapping_add(scaled.wrapping_mul(scaled));
    }

    /// Adds the overflow of the interval sum or of its square sum.
    #[cold]
    pub(crate) fn carry_clumps(&mut self, is_sum_full: bool, is_square_sum_full: bool) {
        let full = |is_full: bool| if is_full { 1 << 32 } else { 0 };
        self.clump_sum_us = self.clump_sum_us.wrapping_add(full(is_sum_full));
        self.clump_square_sum = self.clump_square_sum.wrapping_add(full(is_square_sum_full));
    }

    /// Counts a packet of a telephone event; a new event starts when its timestamp differs (RFC 4733 §2.2.1).
    ///
    /// Some senders advance the timestamp within an event, without a marker.
    fn count_event(&mut self, packet: &Packet) {
        let apart = self.event_timestamp.map(|before| packet.timestamp.wrapping_sub(before).cast_signed());
        self.event_timestamp = Some(packet.timestamp);
        let another = apart.is_none_or(|ticks| {
            (packet.marker && ticks != 0) || i64::from(ticks) * 1000 >= EVENT_MS * self.hz
        });
        self.digits += u64::from(another);
    }
}

/// Two events start at least this far apart, in milliseconds: the shortest digit plus the shortest pause
/// (ITU-T Q.24) are longer.
const EVENT_MS: i64 = 50;
