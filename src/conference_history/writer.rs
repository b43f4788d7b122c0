//! The task that stores the changes that the switch reports of rooms.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sidetone_model::ids::NodeId;
use sidetone_model::ports::PortFuture;
use sidetone_model::room::event::RoomEvent;
use sidetone_model::room::rows::{Rows, SessionLog};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::conference_history::sender::{HistoryCounters, HistorySender};
use crate::conference_history::session_rows::SessionRows;
use crate::conference_history::talk_throttle::TalkThrottle;
use crate::dead_letters::{DeadLetters, Letter};
use crate::storing::{Group, Retries, Storing};

/// Stores the sessions of a node and the events of its rooms: all waiting changes, of all rooms, in one transaction.
///
/// While the database is unavailable, up to [`WAITING_MAX`] changes wait. Beyond that the oldest lose their events;
/// the stored sessions still include them. Talk changes wait as one state, whatever their number.
pub struct HistoryWriter {
    told: mpsc::Receiver<RoomEvent>,
    log: Arc<dyn SessionLog>,
    node: NodeId,
    clock: Clock,
    counts: Arc<HistoryCounters>,
    waiting: VecDeque<RoomEvent>,
    session_rows: SessionRows,
    talk: TalkThrottle,
    /// Taken from the session rows and not stored yet; it survives a panic of the task.
    in_hand: Rows,
    is_open: bool,
    /// When the live sessions are to be marked next.
    mark_at: Instant,
    retries: Retries,
}

/// Builds both ends of the queue.
pub fn history(log: Arc<dyn SessionLog>, node: NodeId, clock: Clock) -> (HistorySender, HistoryWriter) {
    let counts = Arc::new(HistoryCounters::default());
    let (sender, told) = HistorySender::new(Arc::clone(&counts));
    let writer = HistoryWriter {
        told,
        log,
        node,
        clock,
        counts,
        waiting: VecDeque::new(),
        session_rows: SessionRows::default(),
        talk: TalkThrottle::default(),
        in_hand: Rows::default(),
        is_open: true,
        mark_at: Instant::now(),
        retries: Retries::new("history of rooms"),
    };
    (sender, writer)
}

impl HistoryWriter {
    /// Returns the writer with another pause after a failure.
    #[must_use]
    pub fn with_pause(mut self, pause: Duration) -> Self {
        self.retries.pause = pause;
        self
    }

    /// Returns the writer with `letters` for rows that the database refuses permanently.
    #[must_use]
    pub fn with_letters(mut self, letters: DeadLetters) -> Self {
        self.retries.letters = letters;
        self
    }

    /// Returns its counters.
    pub fn counts(&self) -> Arc<HistoryCounters> {
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
        self.session_rows.end_all((self.clock)());
        self.in_hand = self.session_rows.take();
        self.store().await;
    }

    /// Waits for changes to store; returns whether more may arrive.
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

    /// Returns when rows must be stored even if no change arrives.
    fn next_due(&self) -> Option<Instant> {
        let talk = self.talk.next_due(Instant::now().into_std()).map(Instant::from_std);
        let mark = (self.session_rows.live() > 0).then_some(self.mark_at);
        talk.into_iter().chain(mark).min()
    }

    fn take_in(&mut self, taken: Vec<RoomEvent>) {
        for event in taken {
            self.talk.take(&event);
            if !event.is_talk() {
                self.waiting.push_back(event);
            }
        }
        while self.waiting.len() > WAITING_MAX {
            let Some(oldest) = self.waiting.pop_front() else { break };
            self.session_rows.fold_silently(oldest);
        }
        self.counts.discarded.store(self.session_rows.discarded(), Ordering::Relaxed);
        self.counts.waiting.store(self.waiting.len() as u64, Ordering::Relaxed);
    }

    /// Takes the rows to be stored next. Talk changes follow the changes before them, so they are included only after
    /// all of those.
    fn cut(&mut self) -> Rows {
        let count = self.waiting.len().min(BATCH_LEN_MAX);
        for event in self.waiting.drain(..count) {
            self.session_rows.fold(event);
        }
        let now = Instant::now();
        if self.waiting.is_empty() {
            for told in self.talk.due(now.into_std()) {
                self.session_rows.send(told);
            }
        }
        if now >= self.mark_at {
            self.session_rows.seen((self.clock)());
            self.mark_at = now + MARK_EVERY;
        }
        self.session_rows.take()
    }

    /// Stores the taken rows, however long it takes, and continues to receive changes.
    async fn store(&mut self) {
        let (log, node, retries) = (Arc::clone(&self.log), self.node, self.retries.clone());
        if !self.in_hand.is_empty() {
            // The rows return to `self` however the storing ends.
            let mut held = Held { rows: std::mem::take(&mut self.in_hand), writer: self };
            held.store(&Sink { log: log.as_ref(), node }, &retries).await;
        }
        let events = std::mem::take(&mut self.in_hand).events.len() as u64;
        self.counts.stored.fetch_add(events, Ordering::Relaxed);
        self.counts.live.store(self.session_rows.live() as u64, Ordering::Relaxed);
        self.counts.waiting.store(self.waiting.len() as u64, Ordering::Relaxed);
    }
}

/// Rows that are being stored while the writer continues to receive.
struct Held<'a> {
    rows: Rows,
    writer: &'a mut HistoryWriter,
}

impl Held<'_> {
    async fn store(&mut self, sink: &Sink<'_>, retries: &Retries) {
        let storing = retries.store_all(sink, &self.rows);
        tokio::pin!(storing);
        loop {
            let mut taken = Vec::new();
            let is_open = self.writer.is_open;
            tokio::select! {
                biased;
                _ = &mut storing => return,
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

struct Sink<'s> {
    log: &'s dyn SessionLog,
    node: NodeId,
}

impl Storing<Rows, ()> for Sink<'_> {
    fn store<'a>(&'a self, rows: &'a Rows) -> PortFuture<'a, ()> {
        self.log.store(self.node, rows)
    }
}

impl Letter for Rows {
    fn kind(&self) -> &'static str {
        "room_history"
    }

    /// Its log form: the command cannot store it again.
    fn content(&self) -> Result<serde_json::Value, serde_json::Error> {
        Ok(format!("{self:?}").into())
    }
}

impl Group for Rows {
    /// The rows of each session: the database may refuse one session permanently, and then stores the others.
    fn each(&self) -> Vec<Self> {
        let parts = self.by_session();
        if parts.len() > 1 { parts } else { vec![self.clone()] }
    }
}

/// Changes in one transaction.
const BATCH_LEN_MAX: usize = 500;
/// How often live sessions are marked: after a crash, their end times are exact to this plus the time of one commit.
const MARK_EVERY: Duration = Duration::from_secs(2);
/// Changes received in one step.
const TAKEN_MAX: usize = 256;
/// Largest number of changes that wait for the database; about 15 MB.
pub const WAITING_MAX: usize = 50_000;
