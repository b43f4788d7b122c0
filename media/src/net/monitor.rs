//! Our RTCP reports to the party of a relayed leg.
//!
//! The peer's reports are relayed unchanged. A party never receives both kinds: our own begin when the peer has sent
//! none for fifteen seconds, and end with a BYE when its reports arrive (RFC 3550 §6.6). They are receiver reports with
//! an SSRC of their own, because the stream that the party receives is the peer's.

use std::hash::{BuildHasher as _, RandomState};

use super::message::PortId;
use super::reports::Reports;
use crate::time::{ClockRate, Micros};

/// Our reports to the party of a relayed leg.
#[derive(Clone, Debug)]
pub(super) struct Monitor {
    pub(super) reports: Reports,
    /// When a report of the peer was last relayed to the party; initially the time of bridging.
    relayed_at: Micros,
}

impl Monitor {
    /// The state of a leg that is bridged at `now`.
    pub(super) fn new(id: PortId, now: Micros) -> Monitor {
        let seed = RandomState::new().hash_one(id);
        // The clock is for sender reports, and these are receiver reports.
        Monitor { reports: Reports::new(seed, ClockRate::HZ_8000, now), relayed_at: now }
    }

    /// Notes that a report of the peer was relayed.
    pub(super) fn relayed(&mut self, now: Micros) {
        self.relayed_at = now;
    }

    /// Whether the peer sends no reports.
    pub(super) fn is_quiet(&self, now: Micros) -> bool {
        now.since(self.relayed_at) >= QUIET_US
    }
}

/// A peer without a report for this long counts as sending none: two of the longest intervals of a call with two
/// parties (RFC 3550 §6.3.1).
const QUIET_US: i64 = 15_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_reports_begin_when_those_of_the_peer_have_ended() {
        let at = |seconds: i64| Micros(seconds * 1_000_000);
        let mut monitor = Monitor::new(PortId::of_seat(crate::mix::SeatKey(7)), at(100));
        let quiet = |monitor: &Monitor, seconds| monitor.is_quiet(at(seconds));
        assert!(!quiet(&monitor, 114) && quiet(&monitor, 115));
        monitor.relayed(at(120));
        assert!(!quiet(&monitor, 134) && quiet(&monitor, 135));
    }
}
