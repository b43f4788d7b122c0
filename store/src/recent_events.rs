//! The most recent events that this process stored: readers that keep up need not read them back from the database.
//!
//! *Bounds*: [`EVENTS_MAX`] events with [`BYTES_MAX`]; the oldest are dropped. A reader that is slower reads the
//! log, and delays neither the writer nor other readers.

use std::collections::VecDeque;
use std::sync::Arc;

use sidetone_model::event::{Position, RecentEvents, StreamedEvent};

/// Events with consecutive positions, in the order of their commits.
#[derive(Debug, Default)]
pub(super) struct Recent {
    events: VecDeque<Arc<StreamedEvent>>,
    bytes: usize,
}

impl Recent {
    /// Adds committed events, which have consecutive positions.
    pub(super) fn add(&mut self, placed: Vec<StreamedEvent>) {
        for event in placed {
            let follows = self.events.back().is_none_or(|last| is_next(last.position, event.position));
            if !follows {
                // Another process stored events in between, which are only in the log.
                self.events.clear();
                self.bytes = 0;
            }
            self.bytes += event.envelope.len();
            self.events.push_back(Arc::new(event));
            while self.events.len() > EVENTS_MAX || self.bytes > BYTES_MAX {
                let Some(oldest) = self.events.pop_front() else { break };
                self.bytes -= oldest.envelope.len();
            }
        }
    }

    /// The events after `after`, at most `limit`; `None` if there are none, or none that follow without a gap.
    pub(super) fn after(&self, after: Position, limit: usize) -> Option<RecentEvents> {
        let first = self.events.front()?.position;
        let skipped = usize::try_from(after.0.checked_add(1)?.checked_sub(first.0)?).ok()?;
        let events: Vec<_> = self.events.iter().skip(skipped).take(limit).cloned().collect();
        let next = events.last()?.position;
        let is_last = skipped + events.len() == self.events.len();
        Some(RecentEvents { events, next, is_last })
    }
}

fn is_next(before: Position, position: Position) -> bool {
    before.0.checked_add(1) == Some(position.0)
}

/// The events of a few seconds at a thousand calls each second.
const EVENTS_MAX: usize = 8_192;
const BYTES_MAX: usize = 8 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use sidetone_model::event::EventKind;
    use sidetone_model::ids::{EventId, OrganisationId};
    use uuid::Uuid;

    use super::*;

    fn events(positions: impl IntoIterator<Item = i64>, bytes: usize) -> Vec<StreamedEvent> {
        let event = |position| StreamedEvent {
            position: Position(position),
            id: EventId(Uuid::from_u128(1)),
            kind: EventKind::CallEnded,
            organisation_id: OrganisationId(Uuid::from_u128(2)),
            team_id: None,
            viewers: None,
            envelope: "x".repeat(bytes),
        };
        positions.into_iter().map(event).collect()
    }

    /// The positions after `after`, and whether they are all.
    fn read(recent: &Recent, after: i64, limit: usize) -> Option<(Vec<i64>, bool)> {
        let read = recent.after(Position(after), limit)?;
        assert_eq!(Some(read.next), read.events.last().map(|event| event.position));
        Some((read.events.iter().map(|event| event.position.0).collect(), read.is_last))
    }

    #[test]
    fn a_reader_gets_what_follows_its_place() {
        let mut recent = Recent::default();
        assert_eq!(read(&recent, 0, 10), None);
        recent.add(events(5..8, 1));
        recent.add(events(8..10, 1));
        assert_eq!(read(&recent, 3, 10), None, "4 is in the log alone");
        assert_eq!(read(&recent, 4, 10), Some((vec![5, 6, 7, 8, 9], true)));
        assert_eq!(read(&recent, 4, 2), Some((vec![5, 6], false)));
        assert_eq!(read(&recent, 7, 2), Some((vec![8, 9], true)));
        assert_eq!(read(&recent, 9, 10), None, "nothing new");
        assert_eq!(read(&recent, 99, 10), None);
        assert_eq!(read(&recent, i64::MAX, 10), None);
        assert_eq!(read(&recent, i64::MIN, 10), None);
    }

    #[test]
    fn what_another_process_stored_in_between_is_no_gap_that_is_missed() {
        let mut recent = Recent::default();
        recent.add(events(1..4, 1));
        recent.add(events(6..8, 1));
        assert_eq!(read(&recent, 3, 10), None, "4 and 5 are in the log alone");
        assert_eq!(read(&recent, 0, 10), None);
        assert_eq!(read(&recent, 5, 10), Some((vec![6, 7], true)));
    }

    #[test]
    fn the_oldest_are_dropped() {
        let mut recent = Recent::default();
        recent.add(events(1..=EVENTS_MAX as i64 + 3, 1));
        assert_eq!((recent.events.len(), recent.bytes), (EVENTS_MAX, EVENTS_MAX));
        assert_eq!(read(&recent, 2, 1), None);
        assert_eq!(read(&recent, 3, 1), Some((vec![4], false)));
        let mut recent = Recent::default();
        recent.add(events(1..=40, BYTES_MAX / 10));
        assert_eq!((recent.events.len(), recent.bytes), (10, BYTES_MAX / 10 * 10));
    }
}
