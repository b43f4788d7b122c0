//! The destination of the responses.

use sidetone_model::note::Note;
use sidetone_model::ports::PortFuture;

use crate::call_info::payload::AnsweredCall;

/// Takes the responses of call-info URLs. A note and a failure both become a note record of the call, with source
/// `url`.
pub trait NoteSink: Send + Sync + 'static {
    /// Sends a note to the phones of the call. If the call has ended, or has no phone, a failed note is stored.
    fn note<'a>(&'a self, call: &'a AnsweredCall, note: Note) -> PortFuture<'a, ()>;

    /// Stores a failed note with its reason, a sentence fragment that only the organisation sees.
    fn failed<'a>(&'a self, call: &'a AnsweredCall, reason: String) -> PortFuture<'a, ()>;
}
