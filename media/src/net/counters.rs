//! The relay's own counters: one set per worker, updated once per batch, summed when read.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::mix::MixFigures;
use crate::session::Reason;

/// Totals since the relay was started, over all legs.
///
/// Every received datagram is in exactly one of `discarded`, `held`, `mixed`, `oversize`, `relayed`,
/// `send_errors` or `unmapped`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Commands that were refused because a worker's queue was full.
    pub commands_refused: u64,
    /// Datagrams that a session did not accept, by reason; reasons that never occurred are not listed.
    pub discarded: Vec<DiscardCount>,
    /// Datagrams sent to a source that later lost its leg to the party, see
    /// [`Foreign`](crate::session::Foreign).
    pub foreign_sent: u64,
    /// Accepted datagrams without a destination: no bridge, a party on hold, or a target that is never sent
    /// to.
    pub held: u64,
    /// Datagrams the kernel dropped because a worker did not read in time (`SO_RXQ_OVFL`).
    pub local_drops: u64,
    /// Current mixes.
    pub mixes: usize,
    /// Totals of all mixes, those that have ended included.
    pub mixing: MixingCounts,
    /// Accepted datagrams of legs in a mix or with transcoding: RTP was played out, RTCP was not forwarded.
    pub mixed: u64,
    /// Notices dropped because the switch did not read them in time; never a [`Notice::Closed`](super::Notice::Closed).
    pub notices_dropped: u64,
    /// Datagrams generated here that the system refused to send.
    pub originate_errors: u64,
    /// Datagrams generated here (by mixes, transcodings, reports) and sent, RTP and RTCP.
    pub originated: u64,
    /// Octets of the RTP among `originated`.
    pub originated_bytes: u64,
    /// Datagrams longer than any RTP packet.
    pub oversize: u64,
    /// Panics that a worker survived; each ended one leg, or one mix with its legs. Anything but 0 is a bug.
    pub panics: u64,
    /// Datagrams received, RTP and RTCP.
    pub received: u64,
    /// Octets of the datagrams received.
    pub received_bytes: u64,
    /// Datagrams sent to a peer, RTP and RTCP.
    pub relayed: u64,
    /// Octets of the datagrams sent to a peer.
    pub relayed_bytes: u64,
    /// Legs that are in mixes now.
    pub seats: usize,
    /// Datagrams the system refused to send.
    pub send_errors: u64,
    /// System calls of the workers that wait, receive or send.
    pub system_calls: u64,
    /// How late the ticks of mixes were.
    pub ticks: TickCounts,
    /// Datagrams whose payload type has no number at the peer.
    pub unmapped: u64,
    /// ICMP "unreachable" errors for RTP that was sent to a party.
    pub unreachable: u64,
    /// Datagrams without a kernel receive time; they get the time of their batch.
    pub unstamped: u64,
    /// Datagrams of batches whose first one waited for its worker for 5 ms or longer.
    pub waited: u64,
}

/// Totals of all mixes since the relay was started; at most a tenth of a second old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MixingCounts {
    /// Seats that were heard in the last tick of their mix.
    pub speakers: u64,
    /// Frames of 20 ms that were decoded.
    pub decoded_frames: u64,
    /// Packets that were encoded.
    pub encoded_packets: u64,
    /// Ticks that were skipped because a worker was late.
    pub skipped_ticks: u64,
    /// Packets of parties that arrived too late to be played.
    pub late_packets: u64,
    /// Packets dropped unplayed because too many waited.
    pub early_packets: u64,
    /// Milliseconds of audio that concealed missing packets.
    pub concealed_ms: u64,
}

impl MixingCounts {
    /// These totals plus the figures of one more mix.
    pub(super) fn with(self, figures: &MixFigures) -> MixingCounts {
        MixingCounts {
            speakers: self.speakers + figures.speakers as u64,
            decoded_frames: self.decoded_frames + figures.decoded_frames,
            encoded_packets: self.encoded_packets + figures.encoded_packets,
            skipped_ticks: self.skipped_ticks + figures.skipped_ticks,
            late_packets: self.late_packets + figures.late_packets,
            early_packets: self.early_packets + figures.early_packets,
            concealed_ms: self.concealed_ms + figures.concealed_ms,
        }
    }

    fn as_array(self) -> [u64; MIXING] {
        [
            self.speakers,
            self.decoded_frames,
            self.encoded_packets,
            self.skipped_ticks,
            self.late_packets,
            self.early_packets,
            self.concealed_ms,
        ]
    }
}

/// How late the ticks of mixes began, since the relay was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickCounts {
    /// For each bound in microseconds, the ticks that were later than the previous bound and not later than this one.
    pub late: [(u64, u64); LATE_BOUNDS_US.len()],
    /// Ticks that were later than the last bound.
    pub later: u64,
    /// Sum of the lateness of all ticks, in microseconds.
    pub late_us: u64,
}

impl TickCounts {
    /// All ticks.
    pub fn total(&self) -> u64 {
        self.late.iter().map(|(_, ticks)| ticks).sum::<u64>() + self.later
    }
}

/// How many datagrams were discarded for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscardCount {
    /// Why the session did not accept them.
    pub reason: Reason,
    /// How many.
    pub packets: u64,
}

impl Counters {
    /// Datagrams discarded for any reason.
    pub fn discarded_total(&self) -> u64 {
        self.discarded.iter().map(|count| count.packets).sum()
    }

    /// Datagrams discarded for this reason.
    pub fn discarded_for(&self, reason: Reason) -> u64 {
        self.discarded.iter().filter(|count| count.reason == reason).map(|count| count.packets).sum()
    }
}

/// Identifies one counter of [`Counters`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Count {
    CommandsRefused,
    ForeignSent,
    Held,
    LocalDrops,
    Mixed,
    NoticesDropped,
    OriginateErrors,
    Originated,
    OriginatedBytes,
    Oversize,
    Panics,
    Received,
    ReceivedBytes,
    Relayed,
    RelayedBytes,
    SendErrors,
    SystemCalls,
    Unmapped,
    Unreachable,
    Unstamped,
    Waited,
}

const COUNTS: usize = 21;

/// Number of fields of [`MixingCounts`].
const MIXING: usize = 7;
/// Upper bounds of the lateness classes of ticks, in microseconds.
pub(super) const LATE_BOUNDS_US: [u64; 6] = [1_000, 2_000, 5_000, 10_000, 20_000, 50_000];
/// One counter per bound, one for later ticks, and one for the sum.
const LATES: usize = LATE_BOUNDS_US.len() + 2;

/// Every reason, each at its own position; `place` and the test ensure that none is missing.
const REASONS: [Reason; 10] = [
    Reason::Closed,
    Reason::Empty,
    Reason::Foreign,
    Reason::Malformed,
    Reason::PayloadType,
    Reason::Probation,
    Reason::Replayed,
    Reason::Rtcp,
    Reason::Source,
    Reason::Unauthenticated,
];

/// The position of a reason in [`REASONS`].
const fn place(reason: Reason) -> usize {
    match reason {
        Reason::Closed => 0,
        Reason::Empty => 1,
        Reason::Foreign => 2,
        Reason::Malformed => 3,
        Reason::PayloadType => 4,
        Reason::Probation => 5,
        Reason::Replayed => 6,
        Reason::Rtcp => 7,
        Reason::Source => 8,
        Reason::Unauthenticated => 9,
    }
}

/// Counts of one batch that are not published yet.
#[derive(Debug)]
pub(super) struct Batch {
    counts: [u64; COUNTS],
    reasons: [u64; REASONS.len()],
    discarded: bool,
    lates: [u64; LATES],
    ticked: bool,
}

impl Batch {
    pub(super) fn new() -> Batch {
        Batch {
            counts: [0; COUNTS],
            reasons: [0; REASONS.len()],
            discarded: false,
            lates: [0; LATES],
            ticked: false,
        }
    }

    pub(super) fn add(&mut self, count: Count, amount: u32) {
        if let Some(slot) = self.counts.get_mut(count as usize) {
            *slot += u64::from(amount);
        }
    }

    /// Counts a tick that began `late_us` after its due time.
    pub(super) fn tick(&mut self, late_us: i64) {
        self.ticked = true;
        let late_us = u64::try_from(late_us).unwrap_or(0);
        let place = LATE_BOUNDS_US.iter().position(|bound| late_us <= *bound).unwrap_or(LATE_BOUNDS_US.len());
        if let Some(slot) = self.lates.get_mut(place) {
            *slot += 1;
        }
        if let Some(sum) = self.lates.last_mut() {
            *sum += late_us;
        }
    }

    pub(super) fn discard(&mut self, reason: Reason) {
        self.discarded = true;
        if let Some(slot) = self.reasons.get_mut(place(reason)) {
            *slot += 1;
        }
    }
}

/// The published counts of one worker.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: [AtomicU64; COUNTS],
    reasons: [AtomicU64; REASONS.len()],
    lates: [AtomicU64; LATES],
    mixes: AtomicUsize,
    seats: AtomicUsize,
    mixing: [AtomicU64; MIXING],
}

impl Tally {
    /// Publishes a batch and clears it.
    pub(super) fn publish(&self, batch: &mut Batch) {
        for (total, amount) in self.counts.iter().zip(&mut batch.counts) {
            if *amount > 0 {
                total.fetch_add(std::mem::take(amount), Ordering::Relaxed);
            }
        }
        if std::mem::take(&mut batch.ticked) {
            for (total, amount) in self.lates.iter().zip(&mut batch.lates) {
                if *amount > 0 {
                    total.fetch_add(std::mem::take(amount), Ordering::Relaxed);
                }
            }
        }
        if !std::mem::take(&mut batch.discarded) {
            return;
        }
        for (total, amount) in self.reasons.iter().zip(&mut batch.reasons) {
            if *amount > 0 {
                total.fetch_add(std::mem::take(amount), Ordering::Relaxed);
            }
        }
    }

    /// Sets the worker's current number of mixes and of their seats.
    pub(super) fn set_mixes(&self, mixes: usize, seats: usize) {
        self.mixes.store(mixes, Ordering::Relaxed);
        self.seats.store(seats, Ordering::Relaxed);
    }

    /// Sets the totals of the worker's mixes.
    pub(super) fn set_mixing(&self, counts: MixingCounts) {
        for (total, count) in self.mixing.iter().zip(counts.as_array()) {
            total.store(count, Ordering::Relaxed);
        }
    }

    /// Counts one event outside of any batch.
    pub(super) fn add(&self, count: Count) {
        if let Some(total) = self.counts.get(count as usize) {
            total.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The sum over all workers.
pub(super) fn sum(tallies: &[Tally]) -> Counters {
    let total = |count: Count| -> u64 {
        tallies
            .iter()
            .filter_map(|tally| tally.counts.get(count as usize))
            .map(|n| n.load(Ordering::Relaxed))
            .sum()
    };
    let discarded = REASONS
        .iter()
        .map(|&reason| DiscardCount {
            reason,
            packets: tallies
                .iter()
                .filter_map(|tally| tally.reasons.get(place(reason)))
                .map(|n| n.load(Ordering::Relaxed))
                .sum(),
        })
        .filter(|count| count.packets > 0)
        .collect();
    Counters {
        commands_refused: total(Count::CommandsRefused),
        discarded,
        foreign_sent: total(Count::ForeignSent),
        held: total(Count::Held),
        local_drops: total(Count::LocalDrops),
        mixed: total(Count::Mixed),
        mixes: tallies.iter().map(|tally| tally.mixes.load(Ordering::Relaxed)).sum(),
        mixing: mixing(tallies),
        notices_dropped: total(Count::NoticesDropped),
        originate_errors: total(Count::OriginateErrors),
        originated: total(Count::Originated),
        originated_bytes: total(Count::OriginatedBytes),
        oversize: total(Count::Oversize),
        panics: total(Count::Panics),
        received: total(Count::Received),
        received_bytes: total(Count::ReceivedBytes),
        relayed: total(Count::Relayed),
        relayed_bytes: total(Count::RelayedBytes),
        seats: tallies.iter().map(|tally| tally.seats.load(Ordering::Relaxed)).sum(),
        send_errors: total(Count::SendErrors),
        system_calls: total(Count::SystemCalls),
        ticks: ticks(tallies),
        unmapped: total(Count::Unmapped),
        unreachable: total(Count::Unreachable),
        unstamped: total(Count::Unstamped),
        waited: total(Count::Waited),
    }
}

fn mixing(tallies: &[Tally]) -> MixingCounts {
    let mut sums = [0; MIXING];
    for tally in tallies {
        for (sum, count) in sums.iter_mut().zip(&tally.mixing) {
            *sum += count.load(Ordering::Relaxed);
        }
    }
    let [speakers, decoded_frames, encoded_packets, skipped_ticks, late_packets, early_packets, concealed_ms] =
        sums;
    MixingCounts {
        speakers,
        decoded_frames,
        encoded_packets,
        skipped_ticks,
        late_packets,
        early_packets,
        concealed_ms,
    }
}

fn ticks(tallies: &[Tally]) -> TickCounts {
    let total = |place: usize| -> u64 {
        let lates = tallies.iter().filter_map(|tally| tally.lates.get(place));
        lates.map(|ticks| ticks.load(Ordering::Relaxed)).sum()
    };
    let mut counts = TickCounts::default();
    for (place, (slot, bound)) in counts.late.iter_mut().zip(LATE_BOUNDS_US).enumerate() {
        *slot = (bound, total(place));
    }
    counts.later = total(LATE_BOUNDS_US.len());
    counts.late_us = total(LATES - 1);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_place() {
        let tallies = [Tally::default(), Tally::default()];
        let mut batch = Batch::new();
        for (index, &reason) in REASONS.iter().enumerate() {
            assert!(place(reason) == index, "{reason:?} is not counted");
            for _ in 0..=index {
                batch.discard(reason);
            }
        }
        batch.add(Count::Unstamped, 3);
        tallies[0].publish(&mut batch);
        tallies[0].publish(&mut batch);
        batch.add(Count::Unstamped, 4);
        tallies[1].publish(&mut batch);
        tallies[1].add(Count::CommandsRefused);
        let counters = sum(&tallies);
        assert_eq!((counters.unstamped, counters.commands_refused, counters.received), (7, 1, 0));
        for (index, &reason) in REASONS.iter().enumerate() {
            assert_eq!(counters.discarded_for(reason), index as u64 + 1, "{reason:?}");
        }
        let reasons = REASONS.len() as u64;
        assert_eq!(counters.discarded_total(), reasons * (reasons + 1) / 2);
    }
}
