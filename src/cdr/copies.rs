//! Copies of the calls in the journal, for the other nodes of a cluster: with them, they record the calls of a node
//! that dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sidetone_model::cdr::Cdr;
use sidetone_model::ids::CallId;
use tokio::sync::mpsc;

/// A fact about a call.
#[derive(Debug)]
pub enum CallCopy {
    /// The call was answered: its record so far.
    Answered(Arc<Cdr>),
    /// The call has ended: its record, without the figures of its media.
    Ended(Arc<Cdr>),
    /// The records of these calls are in the database.
    Stored(Vec<CallId>),
}

/// The sending side of copies; clones share it. It never blocks.
#[derive(Clone, Debug)]
pub struct CallCopies {
    copies: mpsc::Sender<CallCopy>,
    dropped: Arc<AtomicU64>,
}

impl CallCopies {
    /// The sender and the receiver of copies, and the number of copies that were dropped because the queue was full.
    pub fn new() -> (Self, mpsc::Receiver<CallCopy>, Arc<AtomicU64>) {
        let (copies, received) = mpsc::channel(QUEUE_LEN_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        (CallCopies { copies, dropped: Arc::clone(&dropped) }, received, dropped)
    }

    /// Copies an answered call.
    pub fn answered(&self, cdr: &mut Cdr) {
        self.send(CallCopy::Answered(bare(cdr)));
    }

    /// Copies an ended call.
    pub fn ended(&self, cdr: &mut Cdr) {
        self.send(CallCopy::Ended(bare(cdr)));
    }

    /// Reports records that are in the database.
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

/// A copy without the figures of the media, which are large; the record contains the verdict without them.
fn bare(cdr: &mut Cdr) -> Arc<Cdr> {
    let media = cdr.media.take();
    let copy = Arc::new(cdr.clone());
    cdr.media = media;
    copy
}

/// The calls of a few seconds at a thousand calls each second.
const QUEUE_LEN_MAX: usize = 8_192;
