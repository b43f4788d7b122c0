//! What the relay counts about itself: one set per worker, added to once per batch, summed when read.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::session::Reason;

/// Totals since the relay was started, over all legs.
///
/// Every received datagram is in exactly one of `discarded`, `held`, `oversize`, `relayed`, `send_errors`
/// or `unmapped`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Commands that were refused because a worker's queue was full.
    pub commands_refused: u64,
    /// Datagrams that a session did not accept, by its reason; reasons that never occurred are not listed.
    pub discarded: Vec<DiscardCount>,
    /// Accepted datagrams with nowhere to go: no bridge, a party on hold, or a target that is never sent to.
    pub held: u64,
    /// Datagrams the kernel dropped because a worker did not read in time (`SO_RXQ_OVFL`).
    pub local_drops: u64,
    /// Notices that were dropped because nobody took them; never a [`Notice::Closed`](super::Notice::Closed).
    pub notices_dropped: u64,
    /// Datagrams longer than any RTP packet.
    pub oversize: u64,
    /// Times a worker survived a panic; it cost one leg. Anything but 0 is a bug.
    pub panics: u64,
    /// Datagrams received, RTP and RTCP.
    pub received: u64,
    /// Octets of the datagrams received.
    pub received_bytes: u64,
    /// Datagrams sent to a peer, RTP and RTCP.
    pub relayed: u64,
    /// Octets of the datagrams sent to a peer.
    pub relayed_bytes: u64,
    /// Datagrams the system refused to send.
    pub send_errors: u64,
    /// Datagrams of a payload type that the other side has no number for.
    pub unmapped: u64,
    /// ICMP errors "unreachable" about RTP that was sent to a party.
    pub unreachable: u64,
    /// Datagrams without a kernel receive time; they have the time of their batch.
    pub unstamped: u64,
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

/// Names one counter; the fields of [`Counters`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Count {
    CommandsRefused,
    Held,
    LocalDrops,
    NoticesDropped,
    Oversize,
    Panics,
    Received,
    ReceivedBytes,
    Relayed,
    RelayedBytes,
    SendErrors,
    Unmapped,
    Unreachable,
    Unstamped,
}

const COUNTS: usize = 14;

/// Every reason, each at its own position; `place` and the test hold it complete.
const REASONS: [Reason; 7] = [
    Reason::Closed,
    Reason::Empty,
    Reason::Foreign,
    Reason::Malformed,
    Reason::PayloadType,
    Reason::Rtcp,
    Reason::Source,
];

/// The position of a reason in [`REASONS`].
const fn place(reason: Reason) -> usize {
    match reason {
        Reason::Closed => 0,
        Reason::Empty => 1,
        Reason::Foreign => 2,
        Reason::Malformed => 3,
        Reason::PayloadType => 4,
        Reason::Rtcp => 5,
        Reason::Source => 6,
    }
}

/// Counts of one batch, not yet visible to others.
#[derive(Debug)]
pub(super) struct Batch {
    counts: [u64; COUNTS],
    reasons: [u64; REASONS.len()],
    discarded: bool,
}

impl Batch {
    pub(super) fn new() -> Batch {
        Batch { counts: [0; COUNTS], reasons: [0; REASONS.len()], discarded: false }
    }

    pub(super) fn add(&mut self, count: Count, amount: u32) {
        if let Some(slot) = self.counts.get_mut(count as usize) {
            *slot += u64::from(amount);
        }
    }

    pub(super) fn discard(&mut self, reason: Reason) {
        self.discarded = true;
        if let Some(slot) = self.reasons.get_mut(place(reason)) {
            *slot += 1;
        }
    }
}

/// The visible counts of one worker.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: [AtomicU64; COUNTS],
    reasons: [AtomicU64; REASONS.len()],
}

impl Tally {
    /// Makes a batch visible and empties it.
    pub(super) fn publish(&self, batch: &mut Batch) {
        for (total, amount) in self.counts.iter().zip(&mut batch.counts) {
            if *amount > 0 {
                total.fetch_add(std::mem::take(amount), Ordering::Relaxed);
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
        held: total(Count::Held),
        local_drops: total(Count::LocalDrops),
        notices_dropped: total(Count::NoticesDropped),
        oversize: total(Count::Oversize),
        panics: total(Count::Panics),
        received: total(Count::Received),
        received_bytes: total(Count::ReceivedBytes),
        relayed: total(Count::Relayed),
        relayed_bytes: total(Count::RelayedBytes),
        send_errors: total(Count::SendErrors),
        unmapped: total(Count::Unmapped),
        unreachable: total(Count::Unreachable),
        unstamped: total(Count::Unstamped),
    }
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
