//! Copies of the calls that the journal takes, for the other nodes of a cluster: what they need to record the calls of a
//! node that dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sidetone_model::cdr::Cdr;
use sidetone_model::ids::CallId;
use tokio::sync::mpsc;

/// A fact about a call.
#[derive(Debug)]
pub enum CallCopy {
    /// It was answered: its record so far.
    Answered(Arc<Cdr>),
    /// It is over: its record, without the figures of its media.
    Ended(Arc<Cdr>),
    /// The records of these calls are in the database.
    Stored(Vec<CallId>),
}

/// Where copies go; clones share it. Nothing waits for it.
#[derive(Clone, Debug)]
pub struct CallCopies {
    copies: mpsc::Sender<CallCopy>,
    dropped: Arc<AtomicU64>,
}

impl CallCopies {
    /// The sender and the receiver of copies, and the number of those that found the queue full.
    pub fn new() -> (Self, mpsc::Receiver<CallCopy>, Arc<AtomicU64>) {
        let (copies, received) = mpsc::channel(QUEUE_LEN_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        (CallCopies { copies, dropped: Arc::clone(&dropped) }, received, dropped)
    }

    /// A call was answered.
    pub fn answered(&self, cdr: &mut Cdr) {
        self.send(CallCopy::Answered(bare(cdr)));
    }

    /// A call is over.
    pub fn ended(&self, cdr: &mut Cdr) {
        self.send(CallCopy::Ended(bare(cdr)));
    }

    /// Records are in the database.
    pub fn stored(&self, cdrs: &[Cdr]) {
        if !cdrs.is_empty() {
            self.send(CallCopy::Stored(cdrs.iter().map(|cdr| cdr.call_uuid).collect()));
        }
    }

    fn send(&self, copy: CallCopy) {
        if self.copies.try_send(copy).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A copy without the figures of the media, which are large and are not copied; the record has the verdict without them.
fn bare(cdr: &mut Cdr) -> Arc<Cdr> {
    let media = cdr.media.take();
    let copy = Arc::new(cdr.clone());
    cdr.media = media;
    copy
}

/// A few seconds of calls at a thousand calls a second.
const QUEUE_LEN_MAX: usize = 8_192;
