//! What is known of the media of a call that is over, by its record.

use crate::cdr::Cdr;
use crate::failure;
use crate::media_quality::call::{CallQuality, NO_MEDIA, QualityState};
use crate::media_quality::callee::{CalleeQuality, FIGURES_ALONE};
use crate::port_future::PortFuture;
use crate::quality::MediaVerdict;

impl CallQuality {
    /// What can be said of a call of whose media nothing is kept.
    pub fn nothing_of(cdr: &Cdr) -> Self {
        let verdict = cdr.quality.verdict;
        let sentence = match verdict {
            Some(MediaVerdict::Unanswered) | None if cdr.answered_at.is_none() => {
                failure::of_record(cdr).unwrap_or_else(|| NO_MEDIA.to_owned())
            }
            Some(_) => FIGURES_ALONE.to_owned(),
            // An engine that died with the call could not tell.
            None => "Nothing is known of this call's media.".to_owned(),
        };
        CallQuality {
            call_uuid: cdr.call_uuid,
            state: QualityState::Final,
            at: cdr.ended_at.unwrap_or(cdr.started_at),
            rules_version: None,
            media_verdict: verdict,
            reason: None,
            blame: None,
            sentence,
            media_verdict_worse: cdr.worse_verdict(),
            callee: cdr.media_b.and_then(CalleeQuality::of_record),
            flags: Vec::new(),
            legs: Vec::new(),
        }
    }

    /// The same of a call whose record says why it was not answered.
    #[must_use]
    pub fn ended_as(mut self, cdr: &Cdr) -> Self {
        if let Some(sentence) = failure::of_record(cdr) {
            self.sentence = sentence;
        }
        self
    }
}

/// The media of calls that are over.
pub trait StoredQuality: Send + Sync {
    /// What was kept of a record that the caller was found to be allowed to see; `None` when nothing was.
    fn of_record<'a>(&'a self, cdr: &'a Cdr) -> PortFuture<'a, Option<CallQuality>>;
}
