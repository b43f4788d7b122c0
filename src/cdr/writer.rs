//! The writer: moves ended calls from the journal into the database, many in one transaction.
//!
//! An unavailable database only delays: the batch in hand is tried until it is stored, and the rest waits in
//! the journal's files. A record that the database refuses permanently becomes a dead letter
//! (`dead_letters.rs`) and delays no other. A record that is stored already (a replay after a crash between
//! the commit and the removal of the segment) changes nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sidetone_model::cdr::Cdr;
use sidetone_model::ports::{CdrSink, PortFuture, Stored};
use sidetone_model::rating::Drawn;
use tokio::sync::mpsc;

use crate::cdr::reader::JournalReader;
use crate::cdr::segment;
use crate::dead_letters::{DeadLetters, Letter, Storing, store_all};

/// The task between the journal and the database.
#[derive(Debug)]
pub struct CdrWriter {
    reader: JournalReader,
    /// Read from the journal and not stored yet; it survives a panic of the task.
    in_hand: Vec<Cdr>,
    pause: Duration,
    stored: Arc<AtomicU64>,
    drawn: Option<mpsc::Sender<Vec<Drawn>>>,
    letters: DeadLetters,
}

impl CdrWriter {
    /// A writer of the records of `reader`.
    pub fn new(reader: JournalReader) -> Self {
        Self {
            reader,
            in_hand: Vec::new(),
            pause: RETRY_AFTER,
            stored: Arc::default(),
            drawn: None,
            letters: DeadLetters::default(),
        }
    }

    /// Returns the writer with another pause after a failure.
    #[must_use]
    pub fn with_pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Returns the writer with `drawn`, which receives the deductions from credits.
    #[must_use]
    pub fn telling(mut self, drawn: mpsc::Sender<Vec<Drawn>>) -> Self {
        self.drawn = Some(drawn);
        self
    }

    /// Returns the writer with `letters` for what the database refuses permanently.
    #[must_use]
    pub fn with_letters(mut self, letters: DeadLetters) -> Self {
        self.letters = letters;
        self
    }

    /// Counts the records that this writer added to the database.
    pub fn stored(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.stored)
    }

    /// Stores ended calls until the journal is closed and everything in it is stored.
    ///
    /// Cancelling it at any point loses nothing, and it may be run again after a panic.
    pub async fn run(&mut self, sink: &dyn CdrSink) {
        loop {
            if self.in_hand.is_empty() {
                self.in_hand = self.next_batch().await;
            }
            if self.in_hand.is_empty() {
                self.reader.settle(&[]);
                if !self.reader.changed().await {
                    break;
                }
                continue;
            }
            let stored =
                store_all(&Sink(sink), &self.in_hand, self.pause, &self.letters, "call records").await;
            let (mut new, mut drawn) = (0, Vec::new());
            for part in stored {
                new += part.new;
                drawn.extend(part.drawn);
            }
            let batch = std::mem::take(&mut self.in_hand);
            self.stored.fetch_add(new as u64, Ordering::Relaxed);
            if let Some(listener) = self.drawn.as_ref().filter(|_| !drawn.is_empty()) {
                // The receiver is gone once the switch has stopped.
                let _ = listener.send(drawn).await;
            }
            self.reader.settle(&batch);
        }
        self.reader.finish();
    }

    async fn next_batch(&mut self) -> Vec<Cdr> {
        let mut failing = false;
        loop {
            // A page or two of a file that was just written: not worth a blocking thread.
            match self.reader.next_batch(BATCH_LEN_MAX) {
                Ok(batch) => return batch,
                Err(error) if failing => tracing::debug!(%error, "the journal still cannot be read"),
                Err(error) => tracing::error!(%error, "the journal cannot be read, trying again"),
            }
            failing = true;
            tokio::time::sleep(self.pause).await;
        }
    }
}

struct Sink<'s>(&'s dyn CdrSink);

impl Storing<Cdr, Stored> for Sink<'_> {
    fn store<'a>(&'a self, cdrs: &'a [Cdr]) -> PortFuture<'a, Stored> {
        self.0.store(cdrs)
    }
}

impl Letter for Cdr {
    fn kind(&self) -> &'static str {
        "call_record"
    }

    fn content(&self) -> Result<serde_json::Value, serde_json::Error> {
        segment::to_json(self)
    }
}

/// Records in one transaction.
const BATCH_LEN_MAX: usize = 500;
/// The pause before the database or the disk is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(500);
