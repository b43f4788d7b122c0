//! What the switch tells at once, on its way into the outbox: `call.ringing`, `call.answered`, `call.media_warning` and
//! `security.guessing`.
//!
//! The end of a call is not among them: its event is written in the transaction that stores its record. The
//! events here are stored separately, many calls in one transaction, and never delay a call. An unavailable
//! database delays them, a crash loses what is not stored yet, and beyond [`QUEUE_LEN_MAX`] they are dropped
//! and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sidetone_model::live_call::{CallNews, LiveCall};
use sidetone_model::news::News;
use sidetone_model::ports::{NewsSink, PortFuture};
use tokio::sync::mpsc;

use crate::dead_letters::{DeadLetters, Letter, Storing, event_to_json, store_all};

/// The end that is told; it never waits. The writer ends with it.
pub struct NewsTeller {
    queue: mpsc::Sender<News>,
    answered: Option<Answered>,
    counts: Arc<NewsCounts>,
}

/// Called at once for every answered call; it must not wait.
type Answered = Box<dyn Fn(&LiveCall) + Send>;

/// Counters, readable at any time.
#[derive(Debug, Default)]
pub struct NewsCounts {
    dropped: AtomicU64,
    stored: AtomicU64,
    waiting: AtomicU64,
}

/// The task that stores the events.
pub struct NewsWriter {
    queue: mpsc::Receiver<News>,
    /// Taken from the queue and not stored yet; it survives a panic of the task.
    in_hand: Vec<News>,
    counts: Arc<NewsCounts>,
    pause: Duration,
    letters: DeadLetters,
}

/// Returns both ends of a queue of [`QUEUE_LEN_MAX`] changes.
pub fn call_news() -> (NewsTeller, NewsWriter) {
    let (sender, queue) = mpsc::channel(QUEUE_LEN_MAX);
    let counts = Arc::new(NewsCounts::default());
    let teller = NewsTeller { queue: sender, answered: None, counts: Arc::clone(&counts) };
    let letters = DeadLetters::default();
    (teller, NewsWriter { queue, in_hand: Vec::new(), counts, pause: RETRY_AFTER, letters })
}

impl NewsTeller {
    /// Returns the sender with `answered`, which is called at once for every answered call, whatever the
    /// database does.
    #[must_use]
    pub fn telling(mut self, answered: impl Fn(&LiveCall) + Send + 'static) -> Self {
        self.answered = Some(Box::new(answered));
        self
    }

    /// Passes it on.
    pub fn tell(&self, news: impl Into<News>) {
        let news = news.into();
        if let (News::Call(CallNews::Answered(call)), Some(answered)) = (&news, &self.answered) {
            answered(call);
        }
        self.counts.waiting.fetch_add(1, Ordering::Relaxed);
        if self.queue.try_send(news).is_ok() {
            return;
        }
        self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
        let dropped = self.counts.dropped.fetch_add(1, Ordering::Relaxed) + 1;
        // Logs each time the number has doubled, so that a full queue does not fill the log as well.
        if dropped.is_power_of_two() {
            tracing::error!(
                dropped,
                "the database takes no events: those of live calls and of guessed passwords are lost"
            );
        }
    }
}

impl NewsCounts {
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

impl NewsWriter {
    /// Returns the writer with another pause after a failure.
    #[must_use]
    pub fn with_pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Returns the writer with `letters` for what the database refuses permanently.
    #[must_use]
    pub fn with_letters(mut self, letters: DeadLetters) -> Self {
        self.letters = letters;
        self
    }

    /// Returns its counters.
    pub fn counts(&self) -> Arc<NewsCounts> {
        Arc::clone(&self.counts)
    }

    /// Stores events until the other end is dropped and nothing waits. It may be run again after a panic.
    pub async fn run(&mut self, sink: &dyn NewsSink) {
        loop {
            if self.in_hand.is_empty() && self.queue.recv_many(&mut self.in_hand, BATCH_LEN_MAX).await == 0 {
                return;
            }
            store_all(&Sink(sink), &self.in_hand, self.pause, &self.letters, "news of calls").await;
            let stored = self.in_hand.len() as u64;
            self.in_hand.clear();
            self.counts.stored.fetch_add(stored, Ordering::Relaxed);
            self.counts.waiting.fetch_sub(stored, Ordering::Relaxed);
        }
    }
}

struct Sink<'s>(&'s dyn NewsSink);

impl Storing<News, ()> for Sink<'_> {
    fn store<'a>(&'a self, news: &'a [News]) -> PortFuture<'a, ()> {
        self.0.store(news)
    }
}

impl Letter for News {
    fn kind(&self) -> &'static str {
        "event"
    }

    fn content(&self) -> Result<serde_json::Value, serde_json::Error> {
        event_to_json(&self.event())
    }
}

/// Events in one transaction.
const BATCH_LEN_MAX: usize = 500;
/// Changes that wait for the database; about 10 MB.
pub const QUEUE_LEN_MAX: usize = 10_000;
/// The pause before the database is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use parking_lot::Mutex;
    use sidetone_model::call::Direction;
    use sidetone_model::ids::{CallId, OrganisationId};
    use sidetone_model::live_call::CallState;
    use sidetone_model::problem::Problem;
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
            legs: Vec::new(),
        }
    }

    /// A database that fails the first few times.
    #[derive(Default)]
    struct Sink {
        away: AtomicUsize,
        batches: Mutex<Vec<usize>>,
    }

    impl NewsSink for Sink {
        fn store<'a>(&'a self, news: &'a [News]) -> PortFuture<'a, ()> {
            Box::pin(async move {
                if self
                    .away
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                    .is_ok()
                {
                    return Err(Problem::Unavailable { reason: "away".to_owned(), retry_after_s: 1 });
                }
                self.batches.lock().push(news.len());
                Ok(())
            })
        }
    }

    #[tokio::test]
    async fn a_database_that_comes_back_gets_everything_in_few_transactions() {
        let (teller, writer) = call_news();
        let counts = writer.counts();
        for number in 0..1_200 {
            teller.tell(CallNews::Ringing(call(number)));
        }
        drop(teller);
        assert_eq!(counts.waiting(), 1_200);
        let sink = Sink { away: AtomicUsize::new(3), ..Sink::default() };
        writer.with_pause(Duration::ZERO).run(&sink).await;
        assert_eq!(*sink.batches.lock(), [500, 500, 200]);
        assert_eq!((counts.stored(), counts.waiting(), counts.dropped()), (1_200, 0, 0));
    }

    #[tokio::test]
    async fn what_is_too_much_is_dropped_and_counted_and_answers_are_told_all_the_same() {
        let told = Arc::new(AtomicUsize::new(0));
        let (teller, writer) = call_news();
        let counter = Arc::clone(&told);
        let teller = teller.telling(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        for number in 0..QUEUE_LEN_MAX as u128 {
            teller.tell(CallNews::Ringing(call(number)));
        }
        teller.tell(CallNews::Answered(call(0)));
        teller.tell(CallNews::Answered(call(1)));
        let counts = writer.counts();
        assert_eq!((counts.waiting(), counts.dropped()), (QUEUE_LEN_MAX as u64, 2));
        assert_eq!(told.load(Ordering::Relaxed), 2);
    }
}
