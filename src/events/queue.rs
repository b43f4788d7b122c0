//! The events that one stream has not taken yet.
//!
//! *Bounds*: [`EVENTS_MAX`] events with [`BYTES_MAX`]. Further events are counted and not kept: a slow reader gets a
//! report of the missing events, and does not delay other streams.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use sidetone_model::event::{Gap, StreamedEvent};
use tokio::sync::Notify;

/// A queue with one reader.
#[derive(Debug, Default)]
pub(super) struct Queue {
    held: Mutex<Held>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Held {
    events: VecDeque<Arc<StreamedEvent>>,
    bytes: usize,
    missing: Option<Gap>,
    closed: bool,
}

/// The next item of the queue.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// The queue is closed.
    Closed,
    /// An event.
    Event(Arc<StreamedEvent>),
    /// The events that did not fit; nothing follows.
    Missing(Gap),
}

impl Queue {
    /// Adds an event, or counts it as missing; returns the gap for the first missing one.
    pub(super) fn push(&self, event: &Arc<StreamedEvent>) -> Option<Gap> {
        let mut held = self.held.lock();
        let begun = if let Some(Gap::SlowReader { last, events, .. }) = &mut held.missing {
            (*last, *events) = (event.id, *events + 1);
            None
        } else if held.has_room(event.envelope.len()) {
            held.bytes += event.envelope.len();
            held.events.push_back(Arc::clone(event));
            None
        } else {
            held.missing = Some(Gap::SlowReader { first: event.id, last: event.id, events: 1 });
            held.missing
        };
        drop(held);
        self.changed.notify_one();
        begun
    }

    /// Closes the queue; its content can still be taken.
    pub(super) fn close(&self) {
        self.held.lock().closed = true;
        self.changed.notify_one();
    }

    /// Returns the next item. May be dropped and called again.
    pub(super) async fn take(&self) -> Taken {
        loop {
            let taken = self.held.lock().take();
            if let Some(taken) = taken {
                return taken;
            }
            self.changed.notified().await;
        }
    }
}

impl Held {
    fn has_room(&self, bytes: usize) -> bool {
        self.events.is_empty() || (self.events.len() < EVENTS_MAX && self.bytes + bytes <= BYTES_MAX)
    }

    fn take(&mut self) -> Option<Taken> {
        if let Some(event) = self.events.pop_front() {
            self.bytes = self.bytes.saturating_sub(event.envelope.len());
            return Some(Taken::Event(event));
        }
        match self.missing {
            Some(gap) => Some(Taken::Missing(gap)),
            None => self.closed.then_some(Taken::Closed),
        }
    }
}

/// Events that may wait for one stream.
pub(super) const EVENTS_MAX: usize = 256;
/// Bytes that may wait for one stream.
const BYTES_MAX: usize = 1024 * 1024;

#[cfg(test)]
mod tests {
    use sidetone_model::event::{EventKind, Position};
    use sidetone_model::ids::{EventId, OrganisationId};
    use uuid::Uuid;

    use super::*;

    fn event(number: u128, bytes: usize) -> Arc<StreamedEvent> {
        Arc::new(StreamedEvent {
            position: Position(number as i64),
            id: EventId(Uuid::from_u128(number)),
            kind: EventKind::CallEnded,
            organisation_id: OrganisationId(Uuid::from_u128(9)),
            team_id: None,
            viewers: None,
            envelope: "x".repeat(bytes),
        })
    }

    /// How many of `events` the queue keeps, and the gap.
    fn fill(events: impl Iterator<Item = Arc<StreamedEvent>>) -> (usize, Option<Gap>) {
        let queue = Queue::default();
        let overflows = events.filter(|event| queue.push(event).is_some()).count();
        let mut held = queue.held.lock();
        let kept = std::iter::from_fn(|| match held.take() {
            Some(Taken::Event(event)) => Some(event),
            _ => None,
        });
        let kept = kept.count();
        assert_eq!(held.bytes, 0);
        assert_eq!(overflows, usize::from(held.missing.is_some()), "said once");
        (kept, held.missing)
    }

    #[test]
    fn a_queue_keeps_256_events_or_a_mebibyte() {
        let gap = |first, last, events| {
            let [first, last] = [first, last].map(|id| EventId(Uuid::from_u128(id)));
            Some(Gap::SlowReader { first, last, events })
        };
        assert_eq!(fill((1..=256).map(|number| event(number, 4096))), (256, None));
        assert_eq!(fill((1..=300).map(|number| event(number, 1))), (256, gap(257, 300, 44)));
        assert_eq!(fill((1..=20).map(|number| event(number, 100_000))), (10, gap(11, 20, 10)));
        // A single event larger than the limit passes if the queue is empty.
        assert_eq!(fill((1..=2).map(|number| event(number, 2 << 20))), (1, gap(2, 2, 1)));
    }

    #[tokio::test]
    async fn what_is_in_it_is_taken_before_it_is_over() {
        let queue = Queue::default();
        queue.push(&event(1, 1));
        queue.close();
        assert!(matches!(queue.take().await, Taken::Event(_)));
        assert_eq!(queue.take().await, Taken::Closed);
        assert_eq!(queue.take().await, Taken::Closed);
    }
}
