//! The calling party of a call that a program requested: it is rung first, and the target is called when it has
//! answered.
//!
//! Its media are negotiated before the target is called. The target is offered the codecs of the calling party and
//! those that we can transcode to; the calling party gets no new offer. While it waits for the target, it negotiates
//! only with us.

use std::time::Instant;

use sidetone_model::call::HangupCause;
use sidetone_sip::sdp::SessionDescription;

use crate::ending::{Ending, Far};
use crate::io::{Output, Party};
use crate::parties::{Caller, Fork, Near, Parties, RequestPhase, State};
use crate::transcoding::answer_back;

/// Turns the fork that answered into the caller, and reports that the target can be called.
pub(super) fn caller_answered(parties: &mut Parties, ending: &mut Ending, now: Instant, place: usize) {
    parties.drop_forks(Some(place), HangupCause::LoseRace);
    // The record describes only the target.
    ending.far = Far::default();
    let forks = std::mem::take(&mut parties.forks);
    // The ids of these forks and of those of the target differ.
    parties.session_id = parties.session_id.wrapping_add(forks.len() as u64);
    parties.requested = Some(RequestPhase::Target { rung: forks.len() });
    let Some(Fork { leg, .. }) = forks.into_iter().nth(place) else { return };
    let offer = leg.settled();
    parties.near = Near::Party(Box::new(Caller { leg, offer }));
    parties.state = State::Ringing { deadline: now + parties.limits.ring, early: None };
    parties.describe(Party::Caller);
    parties.push(Output::CallerAnswered(place));
}

/// Answers an offer of the caller while the target is called.
pub(super) fn offer_alone(parties: &mut Parties, offer: Option<SessionDescription>) {
    let Near::Party(caller) = &mut parties.near else { return };
    let result = answer_alone(caller, offer);
    if result.is_ok() {
        parties.describe(Party::Caller);
    }
    parties.push(Output::OfferResult(Party::Caller, result));
}

fn answer_alone(caller: &mut Caller, offer: Option<SessionDescription>) -> Result<SessionDescription, u16> {
    // Without an offer, ours would have to wait for the ACK. The caller repeats its request.
    let offer = offer.ok_or(491_u16)?;
    let offer = caller.leg.srtp.admit(offer).map_err(|refused| refused.status())?;
    caller.leg.exchange.receive_offer(offer).map_err(|_| 491_u16)?;
    let result = caller.leg.answer_for_room();
    match &result {
        Ok(_) => caller.offer = caller.leg.settled(),
        Err(_) => caller.leg.exchange.roll_back(),
    }
    result
}

/// Returns the terms that the caller's audio and the target's have in common, or can be transcoded to. The caller has
/// its answer already.
pub(super) fn common_terms(caller: &Caller, heard: &SessionDescription) -> Option<SessionDescription> {
    let offered = caller.offer.as_ref()?;
    answer_back(offered, heard, caller.leg.local(), &caller.leg.policy).ok()
}
