//! Where what was answered goes.

use sidetone_model::note::Note;
use sidetone_model::ports::PortFuture;

use crate::call_info::payload::AnsweredCall;

/// Takes what call-info URLs answer. Both become a sent-note record of the call, with source `url`.
pub trait NoteSink: Send + Sync + 'static {
    /// Sends a note to the phones of the call. When the call is over, or has no phone, that is a failed note as well.
    fn note<'a>(&'a self, call: &'a AnsweredCall, note: Note) -> PortFuture<'a, ()>;

    /// Keeps a failed note with its reason, a sentence fragment for the organisation's own eyes.
    fn failed<'a>(&'a self, call: &'a AnsweredCall, reason: String) -> PortFuture<'a, ()>;
}
