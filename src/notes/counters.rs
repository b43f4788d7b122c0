//! Counters of notes.

use std::sync::atomic::{AtomicU64, Ordering};

use sidetone_model::note::{NoteChannel, NoteStatus};

/// Notes and their receipts since the start of the engine.
#[derive(Debug, Default)]
pub struct NoteCounters {
    info: AtomicU64,
    message: AtomicU64,
    taken: AtomicU64,
    failed: AtomicU64,
    acked: AtomicU64,
    refused: AtomicU64,
}

impl NoteCounters {
    pub(super) fn accepted(&self, channel: NoteChannel) {
        let counter = match channel {
            NoteChannel::Info => &self.info,
            NoteChannel::Message => &self.message,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn answered(&self, status: NoteStatus) {
        let counter = if status == NoteStatus::Failed { &self.failed } else { &self.taken };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn acked(&self, counts: bool) {
        let counter = if counts { &self.acked } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that were stored for sending, by channel.
    pub fn sent(&self) -> [(&'static str, u64); 2] {
        [("info", self.info.load(Ordering::Relaxed)), ("message", self.message.load(Ordering::Relaxed))]
    }

    /// Receipts of phones: those that accepted a note, and those that did not.
    pub fn receipts(&self) -> [(&'static str, u64); 2] {
        [("sent", self.taken.load(Ordering::Relaxed)), ("failed", self.failed.load(Ordering::Relaxed))]
    }

    /// Acknowledgements: those that were accepted, and those that were refused.
    pub fn acknowledgements(&self) -> [(&'static str, u64); 2] {
        [("counted", self.acked.load(Ordering::Relaxed)), ("refused", self.refused.load(Ordering::Relaxed))]
    }
}
