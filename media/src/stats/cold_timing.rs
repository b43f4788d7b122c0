//! What a packet in the middle of talk does not change, kept apart from what it does.

use crate::rtp::{Packet, PayloadKind};
use crate::stats::modal::Followers;
use crate::stats::playout::PlayoutTotals;
use crate::stats::skew::Skew;
use crate::stats::stream_config::StreamConfig;
use crate::time::Micros;

/// The rare part of a stream's timing.
///
/// Sums wrap rather than saturate: to get there, gaps must add up to 292,000 years.
#[derive(Clone, Debug, Default)]
pub(crate) struct ColdTiming {
    pub(crate) playout: PlayoutTotals,
    pub(crate) short_gap_count: u32,
    pub(crate) jitter_high_count: u32,
    pub(crate) clump_start: Micros,
    /// Samples that began a clump after none.
    pub(crate) first_clumps: u32,
    /// Audio packets that were no samples.
    pub(crate) audio: u32,
    pub(crate) comfort_noise: u32,
    /// Packets of telephone events and of other kinds.
    pub(crate) events: u32,
    /// Those of them that are of other kinds.
    pub(crate) others: u32,
    /// Those of them whose payload type was not negotiated.
    pub(crate) refused: u32,
    pub(crate) first: Option<Micros>,
    pub(crate) max_gap_us: i64,
    // The parts of the sums that the 32 bits of a packet's own do not hold.
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
    pub(crate) other_payload_lens: Followers,
    /// Pairs before the steps were counted anew.
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
    /// A packet of known transit: when it came, its timestamp, and its transit in microseconds.
    transit: Option<(Micros, u32, i64)>,
}

impl ColdTiming {
    pub(crate) fn new(config: &StreamConfig) -> Self {
        ColdTiming { short_pct: config.short_gap_pct, pace_pct: config.pace_pct, ..ColdTiming::default() }
    }

    /// The RTP clock is `hz` from now on.
    pub(crate) fn set_clock(&mut self, hz: i64) {
        self.hz = hz;
        self.break_transit();
    }

    /// The sender's clock against ours, in parts per million.
    pub(crate) fn skew_ppm(&self) -> Option<i64> {
        self.skew.ppm()
    }

    /// Counts a packet that makes no pair with the one before it.
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

    /// Notes the gap between two arrivals.
    pub(crate) fn note_gap(&mut self, gap_us: i64) {
        self.max_gap_us = self.max_gap_us.max(gap_us);
    }

    /// The transit of the packet that came `at` with `timestamp`, less `below_us`, goes into the skew.
    ///
    /// It is counted from one known packet to the next in whole clock units, since the packets' own steps are
    /// rounded to microseconds.
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

    /// Timestamps begin anew, or stood still: the transit before is no measure of that after.
    #[cold]
    pub(crate) fn break_transit(&mut self) {
        self.transit = None;
        self.skew.restart();
    }

    /// An interval between clumps that 32 bits do not square.
    #[cold]
    pub(crate) fn add_clump(&mut self, interval_us: i64) {
        let scaled = interval_us >> 5;
        self.clump_sum_us = self.clump_sum_us.wrapping_add(interval_us);
        self.clump_square_sum = self.clump_square_sum.wrapping_add(scaled.wrapping_mul(scaled));
    }

    /// The sum of the intervals, or that of their squares, began at zero again.
    #[cold]
    pub(crate) fn carry_clumps(&mut self, is_sum_full: bool, is_square_sum_full: bool) {
        let full = |is_full: bool| if is_full { 1 << 32 } else { 0 };
        self.clump_sum_us = self.clump_sum_us.wrapping_add(full(is_sum_full));
        self.clump_square_sum = self.clump_square_sum.wrapping_add(full(is_square_sum_full));
    }

    /// A packet of a telephone event: of another one when its timestamp says so (RFC 4733 §2.2.1).
    ///
    /// Some senders let the timestamp run on within an event, without a marker.
    fn count_event(&mut self, packet: &Packet) {
        let apart = self.event_timestamp.map(|before| packet.timestamp.wrapping_sub(before).cast_signed());
        self.event_timestamp = Some(packet.timestamp);
        let another = apart.is_none_or(|ticks| {
            (packet.marker && ticks != 0) || i64::from(ticks) * 1000 >= EVENT_MS * self.hz
        });
        self.digits += u64::from(another);
    }
}

/// Two events begin at least this far apart, in milliseconds: the shortest digit and the shortest pause
/// (ITU-T Q.24) are together longer.
const EVENT_MS: i64 = 50;
