//! The media quality of a call that has ended, by its record.

use crate::call::HangupCause;
use crate::cdr::Cdr;
use crate::failure;
use crate::media_quality::call::{CallQuality, NO_MEDIA, QualityState};
use crate::media_quality::callee::{CalleeQuality, FIGURES_ALONE};
use crate::port_future::PortFuture;
use crate::quality::MediaVerdict;

impl CallQuality {
    /// The quality of a call of which no media figures are stored.
    pub fn nothing_of(cdr: &Cdr) -> Self {
        let verdict = cdr.quality.verdict;
        let sentence = match verdict {
            Some(MediaVerdict::Unanswered) | None if cdr.answered_at.is_none() => {
                failure::of_record(cdr).unwrap_or_else(|| NO_MEDIA.to_owned())
            }
            Some(_) => FIGURES_ALONE.to_owned(),
            // An engine that crashed during the call could not report.
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

    /// The same quality with the sentence of the record, if the record states why the call was not answered.
    #[must_use]
    pub fn ended_as(mut self, cdr: &Cdr) -> Self {
        if let Some(sentence) = failure::of_record(cdr) {
            self.sentence = sentence;
        }
        self
    }

    /// The same quality with the sentence of a call that a program requested and whose calling party, which rings
    /// first, did not answer. It is stored with the record, because the record itself does not show which party rang.
    #[must_use]
    pub fn without_caller(self, cause: HangupCause) -> Self {
        CallQuality { sentence: failure::of_calling_party(cause), ..self }
    }
}

/// The media of calls that have ended.
pub trait StoredQuality: Send + Sync {
    /// The stored quality of a record; the caller must be allowed to see the record. `None` if nothing was
    /// stored.
    fn of_record<'a>(&'a self, cdr: &'a Cdr) -> PortFuture<'a, Option<CallQuality>>;
}
