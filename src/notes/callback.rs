//! The responses of call-info URLs, sent as notes into their calls.

use sidetone_model::access::Scope;
use sidetone_model::note::{NewNote, Note, NoteChannel, NoteSource};
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;

use crate::call_info::{AnsweredCall, NoteSink};
use crate::notes::NoteService;

impl NoteSink for NoteService {
    fn note<'a>(&'a self, call: &'a AnsweredCall, note: Note) -> PortFuture<'a, ()> {
        Box::pin(async move {
            let scope = Scope::Organisation(call.organisation_id);
            match self.to_call(scope, call.call_uuid, note.clone(), NoteSource::Url).await {
                Ok(_) => Ok(()),
                // No client waits for a response: the call's list of notes shows why it was not sent.
                Err(Problem::Conflict(reason) | Problem::NotFound(reason)) => {
                    self.keep_failed(self.unsent(call, Some(&note), reason)).await
                }
                Err(problem) => Err(problem),
            }
        })
    }

    fn failed<'a>(&'a self, call: &'a AnsweredCall, reason: String) -> PortFuture<'a, ()> {
        Box::pin(self.keep_failed(self.unsent(call, None, reason)))
    }
}

impl NoteService {
    /// A note that is sent to no phone.
    fn unsent(&self, call: &AnsweredCall, note: Option<&Note>, reason: String) -> NewNote {
        let blank = self.blank(call.organisation_id, NoteChannel::Info, NoteSource::Url);
        let whole = note.map_or(blank.clone(), |note| blank.saying(note));
        NewNote { call_uuid: Some(call.call_uuid), team_id: call.team_id, error: Some(reason), ..whole }
    }
}
