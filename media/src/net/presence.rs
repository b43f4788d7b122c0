//! Whether packets of a party arrive, RTP or RTCP. A phone that has disconnected sends neither.

use crate::time::Micros;

/// When a party was last heard, and whether it counts as silent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Presence {
    /// When the party's last packet was accepted; initially when the leg was opened.
    heard_at: Micros,
    /// Whether the last change was [`Change::Silent`].
    is_silent: bool,
}

/// A change to report to the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Packets of the party arrive again.
    Heard,
    /// No packet arrived for this many microseconds.
    Silent(i64),
}

impl Presence {
    /// The state of a new leg.
    pub(super) fn new(now: Micros) -> Self {
        Self { heard_at: now, is_silent: false }
    }

    /// Records that a packet of the party was accepted.
    pub(super) fn heard(&mut self, at: Micros) {
        if at.since(self.heard_at) > 0 {
            self.heard_at = at;
        }
    }

    /// Checks for a change; call it after packets and about once a second.
    pub(super) fn look(&mut self, now: Micros) -> Option<Change> {
        let silent_us = now.since(self.heard_at);
        let is_silent = silent_us >= SILENT_AFTER_US;
        let was_silent = std::mem::replace(&mut self.is_silent, is_silent);
        match (was_silent, is_silent) {
            (false, true) => Some(Change::Silent(silent_us)),
            (true, false) => Some(Change::Heard),
            (false, false) | (true, true) => None,
        }
    }
}

/// Longer than a packet of any payload type; a party that sends only comfort noise or RTCP is silent in
/// between.
const SILENT_AFTER_US: i64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_and_its_end_are_told_once() {
        let at = |millis: i64| Micros(millis * 1_000);
        let mut presence = Presence::new(at(0));
        assert_eq!(presence.look(at(999)), None);
        assert_eq!(
            presence.look(at(1_000)),
            Some(Change::Silent(1_000_000)),
            "nothing came since it was opened"
        );
        assert_eq!(presence.look(at(2_000)), None);
        presence.heard(at(2_500));
        assert_eq!(presence.look(at(2_600)), Some(Change::Heard));
        // A packet that is read late does not set the time back.
        presence.heard(at(2_400));
        assert_eq!(presence.look(at(3_400)), None);
        assert_eq!(presence.look(at(3_700)), Some(Change::Silent(1_200_000)));
        presence.heard(at(3_800));
        assert_eq!(presence.look(at(4_900)), None, "heard in between, and silent again");
        presence.heard(at(5_000));
        assert_eq!(presence.look(at(5_100)), Some(Change::Heard));
    }
}
