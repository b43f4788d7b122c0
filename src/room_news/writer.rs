//! The task that stores the changes that the switch reports of rooms.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sidetone_model::ids::NodeId;
use sidetone_model::room::news::RoomNews;
use sidetone_model::room::rows::{Rows, SessionLog};
use sidetone_model::time::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::dead_letters::{DeadLetters, Fault};
use crate::room_news::ledger::Ledger;
use crate::room_news::talk::Talk;
use crate::room_news::teller::{RoomNewsCounts, RoomTeller};

/// Returns the current time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Stores the sessions of a node and the events of its rooms: everything that waits, of all rooms, in one
/// transaction.
///
/// While the database is unavailable, up to [`WAITING_MAX`] changes wait. Beyond that the oldest lose their
/// events; the stored sessions still include them. Who talks waits as a state, whatever the number of
/// changes.
pub struct RoomNewsWriter {
    told: mpsc::Receiver<RoomNews>,
    log: Arc<dyn SessionLog>,
    node: NodeId,
    clock: Clock,
    counts: Arc<RoomNewsCounts>,
    waiting: VecDeque<RoomNews>,
    ledger: Ledger,
    talk: Talk,
    /// Taken from the ledger and not stored yet; it survives a panic of the task.
    in_hand: Rows,
    is_open: bool,
    /// When the live sessions are to be marked next.
    mark_at: Instant,
    pause: Duration,
    letters: DeadLetters,
}

/// Builds both ends of the queue.
pub fn room_news(log: Arc<dyn SessionLog>, node: NodeId, clock: Clock) -> (RoomTeller, RoomNewsWriter) {
    let counts = Arc::new(RoomNewsCounts::default());
    let (teller, told) = RoomTeller::new(Arc::clone(&counts));
    let writer = RoomNewsWriter {
        told,
        log,
        node,
        clock,
        counts,
        waiting: VecDeque::new(),
        ledger: Ledger::default(),
        talk: Talk::default(),
        in_hand: Rows::default(),
        is_open: true,
        mark_at: Instant::now(),
        pause: RETRY_AFTER,
        letters: DeadLetters::default(),
    };
    (teller, writer)
}

impl RoomNewsWriter {
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
    pub fn counts(&self) -> Arc<RoomNewsCounts> {
        Arc::clone(&self.counts)
    }

    /// Stores changes until the sender is dropped and everything is stored; sessions that are still open end
    /// then. It may be run again after a panic.
    pub async fn run(&mut self) {
        self.store().await;
        while self.is_open || !self.waiting.is_empty() {
            if self.waiting.is_empty() {
                self.is_open = self.wait().await;
            }
            self.in_hand = self.cut();
            self.store().await;
        }
        self.ledger.end_all((self.clock)());
        self.in_hand = self.ledger.take();
        self.store().await;
    }

    /// Waits for something to store; returns whether more changes may arrive.
    async fn wait(&mut self) -> bool {
        let mut taken = Vec::new();
        let due = self.next_due();
        let is_open = tokio::select! {
            count = self.told.recv_many(&mut taken, TAKEN_MAX) => count > 0,
            () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => true,
        };
        self.take_in(taken);
        is_open
    }

    /// Returns when there is something to store although no change arrives.
    fn next_due(&self) -> Option<Instant> {
        let talk = self.talk.next_due(Instant::now().into_std()).map(Instant::from_std);
        let mark = (self.ledger.live() > 0).then_some(self.mark_at);
        talk.into_iter().chain(mark).min()
    }

    fn take_in(&mut self, taken: Vec<RoomNews>) {
        for news in taken {
            self.talk.hear(&news);
            if !news.is_talk() {
                self.waiting.push_back(news);
            }
        }
        while self.waiting.len() > WAITING_MAX {
            let Some(oldest) = self.waiting.pop_front() else { break };
            self.ledger.fold_silently(oldest);
        }
        self.counts.unheard.store(self.ledger.unheard(), Ordering::Relaxed);
        self.counts.waiting.store(self.waiting.len() as u64, Ordering::Relaxed);
    }

    /// Takes what is stored next. Changes of who talks follow the changes before them, so they are included
    /// only when all of those are.
    fn cut(&mut self) -> Rows {
        let count = self.waiting.len().min(BATCH_LEN_MAX);
        for news in self.waiting.drain(..count) {
            self.ledger.fold(news);
        }
        let now = Instant::now();
        if self.waiting.is_empty() {
            for told in self.talk.due(now.into_std()) {
                self.ledger.tell(told);
            }
        }
        if now >= self.mark_at {
            self.ledger.seen((self.clock)());
            self.mark_at = now + MARK_EVERY;
        }
        self.ledger.take()
    }

    /// Stores the rows in hand, however long it takes, and goes on taking changes.
    async fn store(&mut self) {
        let (log, node, pause) = (Arc::clone(&self.log), self.node, self.pause);
        let letters = self.letters.clone();
        if !self.in_hand.is_empty() {
            // The rows return to `self` however the storing ends.
            let mut held = Held { rows: std::mem::take(&mut self.in_hand), writer: self };
            held.store(log.as_ref(), node, pause, &letters).await;
        }
        let events = std::mem::take(&mut self.in_hand).events.len() as u64;
        self.counts.stored.fetch_add(events, Ordering::Relaxed);
        self.counts.live.store(self.ledger.live() as u64, Ordering::Relaxed);
        self.counts.waiting.store(self.waiting.len() as u64, Ordering::Relaxed);
    }
}

/// Rows that are being stored while the writer goes on taking.
struct Held<'a> {
    rows: Rows,
    writer: &'a mut RoomNewsWriter,
}

impl Held<'_> {
    async fn store(&mut self, log: &dyn SessionLog, node: NodeId, pause: Duration, letters: &DeadLetters) {
        let storing = store_at_last(log, node, &self.rows, pause, letters);
        tokio::pin!(storing);
        loop {
            let mut taken = Vec::new();
            let is_open = self.writer.is_open;
            tokio::select! {
                biased;
                () = &mut storing => return,
                count = self.writer.told.recv_many(&mut taken, TAKEN_MAX), if is_open => {
                    self.writer.is_open = count > 0;
                }
            }
            self.writer.take_in(taken);
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.writer.in_hand = std::mem::take(&mut self.rows);
    }
}

async fn store_at_last(
    log: &dyn SessionLog,
    node: NodeId,
    rows: &Rows,
    pause: Duration,
    letters: &DeadLetters,
) {
    let mut is_failing = false;
    let mut refused = 0;
    while let Err(error) = log.store(node, rows).await {
        if Fault::of(&error) == Fault::Refused {
            refused += 1;
            // The database may refuse one session permanently: the others are stored.
            let parts = rows.by_session();
            if parts.len() > 1 {
                for part in parts {
                    Box::pin(store_at_last(log, node, &part, pause, letters)).await;
                }
                return;
            }
            if refused >= REFUSALS_MAX && letters.bury_text("room_history", rows, &error) {
                return;
            }
        }
        if !is_failing {
            tracing::error!(%error, "what happens in rooms waits for the database");
        }
        is_failing = true;
        tokio::time::sleep(pause).await;
    }
}

/// How often the database may refuse one session before its rows become a dead letter.
const REFUSALS_MAX: u32 = 3;
/// Changes in one transaction.
const BATCH_LEN_MAX: usize = 500;
/// How often live sessions are marked: after a crash their end times are exact to this plus the time of one
/// commit.
const MARK_EVERY: Duration = Duration::from_secs(2);
/// The pause before the database is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// Changes taken at once.
const TAKEN_MAX: usize = 256;
/// Largest number of changes that wait for the database; about 15 MB.
pub const WAITING_MAX: usize = 50_000;
