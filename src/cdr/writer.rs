//! The writer: stores the reports of the switch about calls in the database, many calls in one transaction.
//!
//! A group contains the ended calls of the journal, each with its quality and its events, and the events of live
//! calls that precede them. The first group is stored immediately, the next ones at a pace that slows down with the
//! load (`pace`): the cost of a transaction is per group, not per call.
//!
//! If the database is unavailable, records are only delayed: the current group is tried until it is stored, and the
//! rest waits in the journal's files. A record that the database refuses permanently becomes a dead letter
//! (`dead_letters.rs`) and does not delay others. A record that is stored already (a replay after a crash between the
//! commit and the removal of the segment) changes nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sidetone_model::cdr::Cdr;
use sidetone_model::ports::{CallRows, CallSink, PortFuture, Stored};
use sidetone_model::rating::Drawn;
use sidetone_model::switch_event::SwitchEvent;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::cdr::copies::CallCopies;
use crate::cdr::reader::JournalReader;
use crate::cdr::segment;
use crate::dead_letters::{DeadLetters, Letter, event_to_json};
use crate::events::call_events::CallEventQueue;
use crate::storing::{Group, Retries, Storing};

/// The task between the journal and the database.
pub struct CdrWriter {
    reader: JournalReader,
    /// Events of live calls; none without a switch.
    events: CallEventQueue,
    /// Taken from the journal and not stored yet; they survive a panic of the task.
    records: Vec<Cdr>,
    live: Vec<SwitchEvent>,
    /// When the next group may be stored.
    due: Instant,
    is_journal_open: bool,
    retries: Retries,
    stored: Arc<AtomicU64>,
    drawn: Option<mpsc::Sender<Vec<Drawn>>>,
    copies: Option<CallCopies>,
}

impl CdrWriter {
    /// A writer of the records of `reader`.
    pub fn new(reader: JournalReader) -> Self {
        Self {
            reader,
            events: CallEventQueue::closed(),
            records: Vec::new(),
            live: Vec::new(),
            due: Instant::now(),
            is_journal_open: true,
            retries: Retries::new("call records"),
            stored: Arc::default(),
            drawn: None,
            copies: None,
        }
    }

    /// Returns the writer with the events of live calls.
    #[must_use]
    pub fn with_events(mut self, events: CallEventQueue) -> Self {
        self.events = events;
        self
    }

    /// Returns the writer with another pause after a failure.
    #[must_use]
    pub fn with_pause(mut self, pause: Duration) -> Self {
        self.retries.pause = pause;
        self
    }

    /// Returns the writer with `drawn`, which receives the deductions from credits.
    #[must_use]
    pub fn telling(mut self, drawn: mpsc::Sender<Vec<Drawn>>) -> Self {
        self.drawn = Some(drawn);
        self
    }

    /// Returns the writer with `copies`, which is notified of stored records.
    #[must_use]
    pub fn copying(mut self, copies: Option<CallCopies>) -> Self {
        self.copies = copies;
        self
    }

    /// Returns the writer with `letters` for records that the database refuses permanently.
    #[must_use]
    pub fn with_letters(mut self, letters: DeadLetters) -> Self {
        self.retries.letters = letters;
        self
    }

    /// Counts the records that this writer added to the database.
    pub fn stored(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.stored)
    }

    /// Stores calls until the journal and the event queue are closed and everything is stored.
    ///
    /// It is cancel-safe, and may be run again after a panic.
    pub async fn run(&mut self, sink: &dyn CallSink) {
        while self.gather().await {
            let began = Instant::now();
            let rows = CallRows { events: &self.live, records: &self.records };
            let stored = self.retries.store_all(&Sink(sink), &rows).await;
            let is_full = rows.records.len() >= RECORDS_MAX || rows.events.len() >= EVENTS_MAX;
            // If more records wait already, they are not delayed.
            self.due = began + if is_full { Duration::ZERO } else { pace(rows) };
            let (mut new, mut drawn) = (0, Vec::new());
            for part in stored {
                new += part.new;
                drawn.extend(part.drawn);
            }
            self.events.stored(self.live.len() as u64);
            self.live.clear();
            let records = std::mem::take(&mut self.records);
            self.stored.fetch_add(new as u64, Ordering::Relaxed);
            if let Some(listener) = self.drawn.as_ref().filter(|_| !drawn.is_empty()) {
                // The receiver no longer exists once the switch has stopped.
                let _ = listener.send(drawn).await;
            }
            if let Some(copies) = &self.copies {
                copies.stored(&records);
            }
            self.reader.settle(&records);
        }
        self.reader.finish();
    }

    /// Takes the next group; returns whether there is one. A group that was taken before is stored first.
    async fn gather(&mut self) -> bool {
        while self.live.is_empty() && self.records.is_empty() {
            if self.is_journal_open {
                tokio::time::sleep_until(self.due).await;
            }
            // Records first: the events of a call are sent before its record is journalled.
            self.records = self.next_records().await;
            self.events.take(&mut self.live, EVENTS_MAX);
            if !(self.live.is_empty() && self.records.is_empty()) {
                break;
            }
            self.reader.settle(&[]);
            let (is_journal_open, are_events_open) = (self.is_journal_open, self.events.is_open());
            tokio::select! {
                is_open = self.reader.changed(), if is_journal_open => self.is_journal_open = is_open,
                () = self.events.changed(), if are_events_open => {}
                else => return false,
            }
        }
        true
    }

    async fn next_records(&mut self) -> Vec<Cdr> {
        let mut failing = false;
        loop {
            // Records that were just written are in memory, or in a page or two of a file: not worth a blocking
            // thread.
            match self.reader.next_batch(RECORDS_MAX) {
                Ok(batch) => return batch,
                Err(error) if failing => tracing::debug!(%error, "the journal still cannot be read"),
                Err(error) => tracing::error!(%error, "the journal cannot be read, trying again"),
            }
            failing = true;
            tokio::time::sleep(self.retries.pause).await;
        }
    }
}

/// The time between two groups: with more rows a group is larger, not more frequent.
fn pace(rows: CallRows<'_>) -> Duration {
    let rows = u32::try_from(rows.events.len() + rows.records.len()).unwrap_or(u32::MAX);
    PACE_MIN.saturating_add(PACE_PER_ROW.saturating_mul(rows)).min(PACE_MAX)
}

struct Sink<'s>(&'s dyn CallSink);

impl Storing<CallRows<'_>, Stored> for Sink<'_> {
    fn store<'a>(&'a self, rows: &'a CallRows<'_>) -> PortFuture<'a, Stored> {
        self.0.store_calls(*rows)
    }
}

impl Letter for CallRows<'_> {
    fn kind(&self) -> &'static str {
        match (self.records, self.events) {
            ([], [SwitchEvent::Request(_), ..]) => "call_request",
            ([], _) => "event",
            _ => "call_record",
        }
    }

    fn content(&self) -> Result<serde_json::Value, serde_json::Error> {
        match (self.records, self.events) {
            ([record, ..], _) => segment::to_json(record),
            ([], [event, ..]) => match event.event() {
                Some(event) => event_to_json(&event),
                None => Ok(serde_json::Value::String(format!("{event:?}"))),
            },
            ([], []) => Ok(serde_json::Value::Null),
        }
    }
}

impl Group for CallRows<'_> {
    fn each(&self) -> Vec<Self> {
        let events =
            self.events.iter().map(|event| CallRows { events: std::slice::from_ref(event), records: &[] });
        let records =
            self.records.iter().map(|cdr| CallRows { events: &[], records: std::slice::from_ref(cdr) });
        events.chain(records).collect()
    }
}

/// Records in one transaction.
const RECORDS_MAX: usize = 500;
/// Events of live calls in one transaction.
const EVENTS_MAX: usize = 2_000;
/// The shortest time between two groups.
const PACE_MIN: Duration = Duration::from_millis(20);
/// The time that each row of a group adds until the next group.
const PACE_PER_ROW: Duration = Duration::from_millis(5);
/// The longest time between two groups: as long as an event of a live call may wait.
const PACE_MAX: Duration = Duration::from_millis(250);
