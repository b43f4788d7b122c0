//! Writes finished calls into the journal, from which they are stored in the database, and reports them to the
//! observer.

use std::sync::Arc;
use std::time::Duration;

use sidetone_model::call::HangupCause;
use sidetone_model::cdr::Cdr;
use sidetone_model::media_quality::CallQuality;
use sidetone_model::quality::MediaVerdict;
use sidetone_store::{Store, StoreError};
use sidetone_switch::routing::Directory;
use tokio::sync::mpsc;

use super::cdr_mapper::{CdrMapper, Entry};
use super::counters::TapCounters;
use super::session::TappedCall;
use crate::cdr::journal::{Journal, JournalFull};

/// The writer of finished calls.
pub struct TapWriter {
    /// Converts calls to records.
    pub mapper: CdrMapper,
    /// The journal for the records.
    pub journal: Journal,
    /// The store with the directory.
    pub store: Store,
    /// Returns the counters.
    pub counters: Arc<TapCounters>,
    /// Called for every call.
    pub tell: Box<dyn Fn(&RecordedCall) + Send + Sync>,
}

/// A call as reported to the observer.
#[derive(Debug)]
pub struct RecordedCall {
    /// The record.
    pub cdr: Cdr,
    /// Its media quality.
    pub quality: CallQuality,
}

impl TapWriter {
    /// Writes every call until the channel is closed.
    pub async fn run(&mut self, calls: &mut mpsc::Receiver<TappedCall>) {
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            tokio::select! {
                biased;
                call = calls.recv() => match call {
                    Some(call) => self.write(&call).await,
                    None => return,
                },
                _ = look.tick() => {
                    if let Err(error) = self.look().await {
                        // The old directory is used; it will be read again soon.
                        tracing::debug!(%error, "the directory cannot be read again");
                    }
                }
            }
        }
    }

    async fn write(&mut self, call: &TappedCall) {
        let Entry { cdr, quality } = self.mapper.write(call);
        let is_fine = matches!(cdr.worse_verdict(), None | Some(MediaVerdict::Ok | MediaVerdict::Unanswered));
        TapCounters::add(&self.counters.calls, 1);
        TapCounters::add(&self.counters.faulty_calls, u64::from(!is_fine));
        let told = RecordedCall { cdr, quality };
        (self.tell)(&told);
        let mut record = told.cdr;
        // A stalled disk delays this task and eventually the reading of calls, and loses none.
        while let Err(JournalFull { record: Some(back) }) = self.journal.ended(record) {
            record = *back;
            tokio::time::sleep(JOURNAL_PAUSE).await;
        }
    }

    async fn look(&mut self) -> Result<(), StoreError> {
        if self.store.directory_revision().await? != self.mapper.revision() {
            self.mapper.replace(Directory::new(self.store.directory().await?));
        }
        Ok(())
    }
}

impl RecordedCall {
    /// The call on one line, with colours if they are `wanted`.
    pub fn line(&self, wanted: bool) -> String {
        let RecordedCall { cdr, quality } = self;
        let number = |number: &Option<String>| number.clone().unwrap_or_else(|| "unknown".to_owned());
        // For a call without judged media the hangup cause is shown.
        let cause = cdr.hangup_cause.map_or("-", HangupCause::as_str);
        let worse = cdr.worse_verdict();
        let verdict = worse.map_or(cause, MediaVerdict::as_str);
        let colour = match worse {
            Some(MediaVerdict::Ok) => GREEN,
            None | Some(MediaVerdict::Unanswered) => GREY,
            Some(_) => RED,
        };
        let verdict = if wanted { format!("{colour}{verdict}{PLAIN}") } else { verdict.to_owned() };
        format!(
            "{} {} -> {} {}:{:02} {verdict}: {}",
            cdr.started_at.whole_millis(),
            printable(&number(&cdr.caller_number)),
            printable(&number(&cdr.destination_number)),
            cdr.billsec / 60,
            cdr.billsec % 60,
            printable(&quality.sentence),
        )
    }
}

/// Text from the network, without control characters for the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

const GREEN: &str = "\u{1b}[32m";
const GREY: &str = "\u{1b}[90m";
const RED: &str = "\u{1b}[31m";
const PLAIN: &str = "\u{1b}[0m";
/// How often the directory is checked.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The pause before a journal whose queue is full is tried again.
const JOURNAL_PAUSE: Duration = Duration::from_millis(100);
