//! Offers inside an answered call: hold, a new address, new codecs (RFC 3261 §14, RFC 3264 §8).
//!
//! A change that concerns only one party (its address) is answered from what the other negotiated. A change
//! that concerns both (direction, codecs) is offered on to the other party, and answered with its answer.

use std::time::Instant;

use sidetone_model::call::HangupCause;
use sidetone_sip::sdp::{self, SessionDescription};

use crate::call::Call;
use crate::face::{Input, Output, Party};
use crate::transcoding::{answer_back, offer_onward};

/// An offer of one party that was passed on and waits for the other's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Renegotiation {
    from: Party,
    to: Party,
}

impl Call {
    /// Handles an offer of a party inside its dialog.
    pub(super) fn offer(&mut self, from: Party, offer: Option<SessionDescription>) {
        if self.is_for_a_room(from) {
            return self.offer_in_room(from, offer);
        }
        let Some(to) = self.other(from) else {
            // The dialog is confirmed but the call is over: there is no other party.
            return self.push(Output::OfferResult(from, Err(481)));
        };
        // The callee may send an offer while the caller's 200 still waits for the journal. On the caller's
        // side an INVITE is then in progress, and no offer can be passed on before its ACK (RFC 3261 §14.1).
        // Holding the callee's offer back until the 200 is sent would end in 491 too. A 491 now makes the
        // callee repeat the offer within 2 s, by the timer of §14.1. A 481 would make it treat the whole
        // dialog as gone (RFC 5057 §5.1).
        if !self.is_up() || self.renegotiation.is_some() {
            return self.push(Output::OfferResult(from, Err(491)));
        }
        let Some(offer) = offer else { return self.offer_ours(from) };
        let Some(leg) = self.leg_mut(from) else { return };
        let same_terms = offer_keeps_terms(leg.exchange.negotiated(), &offer);
        if leg.exchange.receive_offer(offer.clone()).is_err() {
            return self.push(Output::OfferResult(from, Err(491)));
        }
        if same_terms {
            return self.answer_from_settled(from, to, &offer);
        }
        match self.offer_on(from, to, &offer) {
            Ok(onward) => {
                self.renegotiation = Some(Renegotiation { from, to });
                self.push(Output::Offer(to, onward));
            }
            Err(status) => self.refuse(from, status),
        }
    }

    /// Handles a party's answer to an offer of ours, which usually passed on the other party's offer.
    pub(super) fn offered(
        &mut self,
        now: Instant,
        to: Party,
        result: Result<Option<SessionDescription>, u16>,
    ) {
        if self.is_for_a_room(to) {
            return self.offered_in_room(now, to, result);
        }
        let Some(Renegotiation { from, .. }) = self.renegotiation.take_if(|open| open.to == to) else {
            return self.refresh_answered(to, result);
        };
        let answer = match result {
            Ok(Some(answer)) => answer,
            // A 2xx must contain an answer; without one it negotiates nothing (RFC 3261 §13.2.2.4).
            Ok(None) => return self.roll_back(from, to, 488),
            // The dialog is gone (RFC 5057 §5.1), so the call ends.
            Err(408 | 481) => {
                self.roll_back(from, to, 481);
                let cause = HangupCause::RecoveryOnTimerExpire;
                return self.handle_input(now, Input::HungUp(to, cause));
            }
            Err(status) => return self.roll_back(from, to, status),
        };
        let heard = self.leg_mut(to).map(|leg| leg.exchange.receive_answer(answer.clone()).is_ok());
        if heard != Some(true) {
            return self.roll_back(from, to, 488);
        }
        let reply = self.leg_mut(from).and_then(|leg| {
            let offered = leg.exchange.remote_offer()?.clone();
            let answer = answer_back(&offered, &answer, leg.local(), &leg.policy).ok()?;
            leg.exchange.send_answer(answer).ok()
        });
        match reply {
            Some(reply) => {
                self.reconnect();
                self.push(Output::OfferResult(from, Ok(reply)));
            }
            None => self.refuse(from, 488),
        }
    }

    /// Refreshes the dialog of a party (RFC 4028 §7.4) by repeating the present SDP as an offer. Does nothing
    /// during a negotiation, because its offer refreshes the dialog too.
    pub(super) fn refresh(&mut self, party: Party) {
        if !self.is_up() || self.renegotiation.is_some() {
            return;
        }
        let Some(leg) = self.leg_mut(party).filter(|leg| leg.is_open()) else { return };
        let current = leg.exchange.local().cloned();
        if let Some(offer) = current.and_then(|current| leg.exchange.send_offer(current).ok()) {
            self.push(Output::Offer(party, offer));
        }
    }

    /// Handles the answer to a refresh offer. The party may have changed its media address; a refusal changes
    /// nothing.
    fn refresh_answered(&mut self, party: Party, result: Result<Option<SessionDescription>, u16>) {
        let Some(leg) = self.leg_mut(party).filter(|leg| leg.exchange.local_offer().is_some()) else {
            return; // The call moved on: the answer belongs to nothing.
        };
        let taken = result.ok().flatten().is_some_and(|answer| leg.exchange.receive_answer(answer).is_ok());
        if taken {
            return self.reconnect();
        }
        leg.exchange.roll_back();
    }

    /// Handles a request for our offer: repeats the present SDP; the answer arrives with the ACK.
    fn offer_ours(&mut self, party: Party) {
        let offer = self.leg_mut(party).and_then(|leg| {
            let current = leg.exchange.local()?.clone();
            leg.exchange.send_offer(current).ok()
        });
        self.push(Output::OfferResult(party, offer.ok_or(491)));
    }

    /// Answers an offer that keeps direction and codecs; only this leg's media address changes.
    fn answer_from_settled(&mut self, from: Party, to: Party, offer: &SessionDescription) {
        // A caller that made no offer answers ours with its ACK. Until then nothing is negotiated, so this
        // offer must wait too.
        let Some(settled) = self.leg(to).and_then(|leg| leg.settled()) else { return self.refuse(from, 491) };
        let reply = self.leg_mut(from).and_then(|leg| {
            let answer = answer_back(offer, &settled, leg.local(), &leg.policy).ok()?;
            leg.exchange.send_answer(answer).ok()
        });
        match reply {
            Some(reply) => {
                self.reconnect();
                self.push(Output::OfferResult(from, Ok(reply)));
            }
            None => self.refuse(from, 488),
        }
    }

    /// Returns the offer for `to` that passes on what `from` offers.
    fn offer_on(
        &mut self,
        from: Party,
        to: Party,
        offer: &SessionDescription,
    ) -> Result<SessionDescription, u16> {
        let from_policy = self.leg(from).map(|leg| leg.policy.clone()).unwrap_or_default();
        let leg = self.leg_mut(to).ok_or(481_u16)?;
        let relayed = sdp::offer_from(offer, leg.local(), &from_policy, &leg.policy);
        // If the party already uses one of these codecs, offer no others, so that it does not change to
        // another.
        let onward = match relayed.ok().filter(|onward| leg.shares_a_codec_with(onward)) {
            Some(onward) => onward,
            None => offer_onward(offer, leg.local(), &from_policy, &leg.policy)
                .map_err(|refused| refused.status())?,
        };
        leg.exchange.send_offer(onward).map_err(|_| 491)
    }

    fn refuse(&mut self, from: Party, status: u16) {
        if let Some(leg) = self.leg_mut(from) {
            leg.exchange.roll_back();
        }
        self.push(Output::OfferResult(from, Err(status)));
    }

    fn roll_back(&mut self, from: Party, to: Party, status: u16) {
        if let Some(leg) = self.leg_mut(to) {
            leg.exchange.roll_back();
        }
        self.refuse(from, status);
    }

    fn reconnect(&mut self) {
        if let Some(callee) = self.callee() {
            self.connect(callee);
        }
    }

    /// Returns the party that `party` talks to, or will talk to once the caller's answer is sent.
    pub(super) fn other(&self, party: Party) -> Option<Party> {
        let callee = self.callee().filter(|_| self.has_caller())?;
        match party {
            Party::Caller => Some(Party::Callee(callee)),
            Party::Callee(place) if place == callee => Some(Party::Caller),
            Party::Callee(_) => None,
        }
    }
}

/// Whether an offer repeats the negotiated direction and audio codecs, so that the other party need not be
/// asked.
fn offer_keeps_terms(settled: Option<&sdp::Negotiated>, offer: &SessionDescription) -> bool {
    let (Some(settled), Some((_, audio))) = (settled, offer.carried_audio()) else { return false };
    let offered: Vec<_> = audio.codecs.iter().filter(|codec| codec.is_pass_through()).collect();
    let same_codecs =
        settled.payloads.iter().all(|payload| offered.iter().any(|codec| codec.matches(&payload.codec)));
    // The party's direction, reversed to our side, and its address must both mean that media flow as before.
    same_codecs && offer.direction_of(audio).reversed() == settled.direction
}
