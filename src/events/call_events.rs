//! Events that the switch reports immediately, queued for the outbox: `call.ringing`, `call.answered`,
//! `call.media_warning` and `security.guessing`.
//!
//! The end of a call is not included: its event is created when its record is stored. The events here are stored with
//! the records of other calls (`cdr/writer.rs`), and never delay a call. An unavailable database delays them, a crash
//! loses those that are not stored yet, and beyond [`QUEUE_LEN_MAX`] they are dropped and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sidetone_model::live_call::{CallEvent, LiveCall};
use sidetone_model::switch_event::SwitchEvent;
use tokio::sync::mpsc;

/// The end that the switch writes to; it never blocks. The writer ends after it.
pub struct CallEventSender {
    queue: mpsc::Sender<SwitchEvent>,
    answered: Option<Answered>,
    counts: Arc<CallEventCounters>,
}

/// Called immediately for every answered call; it must not block.
type Answered = Box<dyn Fn(&LiveCall) + Send>;

/// Counters, readable at any time.
#[derive(Debug, Default)]
pub struct CallEventCounters {
    dropped: AtomicU64,
    stored: AtomicU64,
    waiting: AtomicU64,
}

/// The end that the writer reads.
#[derive(Debug)]
pub struct CallEventQueue {
    queue: mpsc::Receiver<SwitchEvent>,
    /// An event that [`CallEventQueue::changed`] has received.
    taken: Option<SwitchEvent>,
    is_open: bool,
    counts: Arc<CallEventCounters>,
}

/// Returns both ends of a queue of [`QUEUE_LEN_MAX`] changes.
pub fn call_events() -> (CallEventSender, CallEventQueue) {
    let (sender, queue) = mpsc::channel(QUEUE_LEN_MAX);
    let counts = Arc::new(CallEventCounters::default());
    let sender = CallEventSender { queue: sender, answered: None, counts: Arc::clone(&counts) };
    (sender, CallEventQueue { queue, taken: None, is_open: true, counts })
}

impl CallEventSender {
    /// Returns the sender with `answered`, which is called immediately for every answered call, independent of the
    /// state of the database.
    #[must_use]
    pub fn telling(mut self, answered: impl Fn(&LiveCall) + Send + 'static) -> Self {
        self.answered = Some(Box::new(answered));
        self
    }

    /// Queues an event.
    pub fn send(&self, event: impl Into<SwitchEvent>) {
        let event = event.into();
        if let (SwitchEvent::Call(CallEvent::Answered(call)), Some(answered)) = (&event, &self.answered) {
            answered(call);
        }
        self.counts.waiting.fetch_add(1, Ordering::Relaxed);
        if self.queue.try_send(event).is_ok() {
            return;
        }
        self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
        let dropped = self.counts.dropped.fetch_add(1, Ordering::Relaxed) + 1;
        // Logs whenever the number has doubled, so that a full queue does not fill the log as well.
        if dropped.is_power_of_two() {
            tracing::error!(
                dropped,
                "the database takes no events: those of live calls and of guessed passwords are lost"
            );
        }
    }
}

impl CallEventCounters {
    /// Changes that were lost because too many waited.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Stored events.
    pub fn stored(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    /// Changes that wait to be stored.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }
}

impl CallEventQueue {
    /// A queue without a sender.
    pub fn closed() -> Self {
        Self { is_open: false, ..call_events().1 }
    }

    /// Returns its counters.
    pub fn counts(&self) -> Arc<CallEventCounters> {
        Arc::clone(&self.counts)
    }

    /// Whether changes may still arrive.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Waits for a change, or until the sender is dropped; may be dropped and called again.
    pub async fn changed(&mut self) {
        if self.taken.is_none() && self.is_open {
            self.taken = self.queue.recv().await;
            self.is_open = self.taken.is_some();
        }
    }

    /// Takes the waiting changes, at most `len_max`.
    pub fn take(&mut self, into: &mut Vec<SwitchEvent>, len_max: usize) {
        let queue = &mut self.queue;
        let waiting = std::iter::from_fn(|| queue.try_recv().ok());
        into.extend(self.taken.take().into_iter().chain(waiting).take(len_max));
    }

    /// Counts changes that were taken and are stored now.
    pub fn stored(&self, count: u64) {
        self.counts.stored.fetch_add(count, Ordering::Relaxed);
        self.counts.waiting.fetch_sub(count, Ordering::Relaxed);
    }
}

/// Changes that wait for the database; about 10 MB.
pub const QUEUE_LEN_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicUsize;

    use sidetone_model::call::Direction;
    use sidetone_model::ids::{CallId, OrganisationId};
    use sidetone_model::live_call::CallState;
    use sidetone_model::time::Timestamp;
    use uuid::Uuid;

    use super::*;

    fn call(number: u128) -> LiveCall {
        LiveCall {
            uuid: CallId(Uuid::from_u128(number)),
            organisation_id: OrganisationId(Uuid::from_u128(1)),
            direction: Direction::Internal,
            caller: None,
            destination: None,
            state: CallState::Ringing,
            started_at: Timestamp::from_micros(0),
            ringing_at: None,
            answered_at: None,
            extension_id: None,
            agent_id: None,
            team_id: None,
            trunk_id: None,
            reference: None,
            variables: BTreeMap::new(),
            held_by: None,
            parked: None,
            playing: None,
            recording: None,
            legs: Vec::new(),
        }
    }

    #[tokio::test]
    async fn changes_are_taken_in_order_until_the_sender_is_gone() {
        let (sender, mut queue) = call_events();
        let counts = queue.counts();
        for number in 0..12 {
            sender.send(CallEvent::Ringing(call(number)));
        }
        assert_eq!(counts.waiting(), 12);
        queue.changed().await;
        queue.changed().await;
        let mut taken = Vec::new();
        queue.take(&mut taken, 5);
        queue.take(&mut taken, 100);
        let expected: Vec<SwitchEvent> =
            (0..12).map(|number| CallEvent::Ringing(call(number)).into()).collect();
        assert_eq!(taken, expected);
        queue.stored(12);
        assert_eq!((counts.stored(), counts.waiting(), counts.dropped()), (12, 0, 0));
        drop(sender);
        assert!(queue.is_open());
        queue.changed().await;
        assert!(!queue.is_open());
    }

    #[tokio::test]
    async fn what_is_too_much_is_dropped_and_counted_and_answers_are_told_all_the_same() {
        let told = Arc::new(AtomicUsize::new(0));
        let (sender, queue) = call_events();
        let counter = Arc::clone(&told);
        let sender = sender.telling(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        for number in 0..QUEUE_LEN_MAX as u128 {
            sender.send(CallEvent::Ringing(call(number)));
        }
        sender.send(CallEvent::Answered(call(0)));
        sender.send(CallEvent::Answered(call(1)));
        let counts = queue.counts();
        assert_eq!((counts.waiting(), counts.dropped()), (QUEUE_LEN_MAX as u64, 2));
        assert_eq!(told.load(Ordering::Relaxed), 2);
    }
}
