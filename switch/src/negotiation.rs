//! Offers inside an answered call: hold, a new address, new codecs (RFC 3261 §14, RFC 3264 §8).
//!
//! A change that concerns only one party (its address) is answered from the negotiated terms of the other party. A
//! change that concerns both (direction, codecs, video) is passed on as an offer to the other party, and answered with
//! its answer. T.38 is passed on like any other change; a leg that cannot carry it refuses, and keeps its audio. Before
//! the answer, the caller and the fork that it hears may do the same, if both have reliable responses (RFC 3311 §5.1).

use std::time::{Duration, Instant};

use sidetone_call::media_plan;
use sidetone_model::call::HangupCause;
use sidetone_sip::sdp::{self, Codec, Direction, Media, Negotiated, OfferAnswerError, SessionDescription};

use crate::conference_leg::{offer_in_room, offered_in_room};
use crate::converted_keys::{answer_events, has_events, offer_events, takes_keys};
use crate::ending::Ending;
use crate::io::{KeyForm, Output, Party};
use crate::leg::Leg;
use crate::outcome::offer_refusal;
use crate::parties::{Near, Parties};
use crate::transcoding::{answer_back, offer_onward};

/// The offers between the parties.
#[derive(Debug, Default)]
pub(super) struct Negotiation {
    renegotiation: Option<Renegotiation>,
}

/// An offer of one party that was passed on and waits for the other's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Renegotiation {
    from: Party,
    to: Party,
    /// Whether it was cancelled, by its sender or at its deadline. `to` has not responded yet, and its session is
    /// unknown until then.
    is_withdrawn: bool,
    /// When its sender gets a refusal. A 100 stops the timers of the INVITE, so without this limit a party that never
    /// answers would block every later offer of both parties.
    deadline: Instant,
}

impl Negotiation {
    /// Whether no offer waits for its answer.
    pub(super) fn is_idle(&self) -> bool {
        self.renegotiation.is_none()
    }

    /// Returns when the open offer is refused.
    pub(super) fn until(&self) -> Option<Instant> {
        self.renegotiation.filter(|open| !open.is_withdrawn).map(|open| open.deadline)
    }

    /// Refuses an offer whose answer is overdue, and cancels the one that passed it on.
    pub(super) fn timeout(&mut self, parties: &mut Parties, now: Instant) {
        if self.until().is_none_or(|until| until > now) {
            return;
        }
        if let Some(Renegotiation { from, .. }) = self.renegotiation {
            self.withdrawn(parties, from);
            parties.push(Output::OfferResult(from, Err(504)));
        }
    }

    /// Forgets an offer that was passed on: its parties no longer talk to each other.
    pub(super) fn forget(&mut self) {
        self.renegotiation = None;
    }

    /// Handles the end of a fork before the answer: an offer passed on to it is refused, and its own offer is dropped.
    pub(super) fn fork_ended(&mut self, parties: &mut Parties, place: usize) {
        // The 487 of a cancelled fork arrives after the call is up.
        if !parties.is_ringing() {
            return;
        }
        let fork = Party::Callee(place);
        let open = self.renegotiation.take_if(|open| open.from == fork || open.to == fork);
        let Some(Renegotiation { from, to, .. }) = open else { return };
        if to == fork {
            self.refuse(parties, from, 488);
        } else if let Some(leg) = parties.leg_mut(to) {
            leg.exchange.roll_back();
        }
    }

    /// Handles an offer of a party inside its dialog.
    pub(super) fn offer(
        &mut self,
        parties: &mut Parties,
        now: Instant,
        from: Party,
        offer: Option<SessionDescription>,
    ) {
        let early = parties.early_other(from);
        if parties.is_ringing() && early.is_none() {
            return parties.push(Output::OfferResult(from, Err(488)));
        }
        if parties.is_for_a_room(from) {
            return offer_in_room(parties, from, offer);
        }
        let Some(to) = parties.other(from).or(early) else {
            // The dialog is confirmed but the call is over: there is no other party.
            return parties.push(Output::OfferResult(from, Err(481)));
        };
        // The callee may send an offer while the caller's 200 still waits for the journal. On the caller's
        // side an INVITE is then in progress, and no offer can be passed on before its ACK (RFC 3261 §14.1).
        // Holding the callee's offer back until the 200 is sent would also end in 491. A 491 now makes the
        // callee repeat the offer within 2 s, by the timer of §14.1. A 481 would make it treat the
        // dialog as ended (RFC 5057 §5.1).
        if !(parties.is_up() || early.is_some()) || self.renegotiation.is_some() {
            return parties.push(Output::OfferResult(from, Err(491)));
        }
        let Some(offer) = offer else { return self.offer_ours(parties, from) };
        let Some((leg, other)) = parties.leg(from).zip(parties.leg(to)) else { return };
        let mut offer = match leg.admit(offer) {
            Ok(offer) => offer,
            Err(refused) => return parties.push(Output::OfferResult(from, Err(refused.status()))),
        };
        if other.video.is_none() {
            offer.refuse_video();
        }
        let same_terms = offer_keeps_terms(leg.exchange.negotiated(), &offer);
        // With transcoded audio, the device at the far end may not understand the fax.
        let is_transcoded = [from, to].iter().any(|party| parties.leg(*party).is_some_and(Leg::transcodes));
        if offer.carried_fax().is_some() && is_transcoded {
            return parties.push(Output::OfferResult(from, Err(488)));
        }
        let Some(leg) = parties.leg_mut(from) else { return };
        if leg.exchange.receive_offer(offer.clone()).is_err() {
            return parties.push(Output::OfferResult(from, Err(491)));
        }
        if same_terms {
            return self.answer_from_settled(parties, from, to, &offer);
        }
        match self.offer_on(parties, from, to, &offer) {
            Ok(onward) => {
                let deadline = now + ANSWER_WITHIN;
                self.renegotiation = Some(Renegotiation { from, to, is_withdrawn: false, deadline });
                parties.push(Output::Offer(to, onward));
            }
            Err(status) => self.refuse(parties, from, status),
        }
    }

    /// Handles a party's answer to our offer, which usually passed on the other party's offer.
    pub(super) fn offered(
        &mut self,
        parties: &mut Parties,
        ending: &mut Ending,
        now: Instant,
        to: Party,
        result: Result<Option<SessionDescription>, u16>,
    ) {
        if parties.is_for_a_room(to) {
            return offered_in_room(parties, ending, now, to, result);
        }
        let Some(Renegotiation { from, is_withdrawn, .. }) = self.renegotiation.take_if(|open| open.to == to)
        else {
            return self.own_offer_answered(parties, ending, now, to, result);
        };
        if is_withdrawn {
            return self.withdrawn_answered(parties, ending, now, to, result);
        }
        let answer = match result {
            Ok(Some(answer)) => answer,
            // A 2xx must contain an answer; without one it negotiates nothing (RFC 3261 §13.2.2.4).
            // The 200 has ended the former session in any case, so that session is offered again.
            Ok(None) => {
                self.roll_back(parties, from, to, 488);
                return self.refresh(parties, to);
            }
            // The dialog has ended (RFC 5057 §5.1), so the call ends.
            Err(408 | 481) if !parties.is_ringing() => {
                self.roll_back(parties, from, to, 481);
                let cause = HangupCause::RecoveryOnTimerExpire;
                return ending.hung_up(parties, now, to, cause);
            }
            Err(status) => return self.roll_back(parties, from, to, offer_refusal(status)),
        };
        let Some(leg) = parties.leg_mut(to) else { return };
        if let Err(unheard) = leg.exchange.receive_answer(answer.clone()) {
            self.roll_back(parties, from, to, 488);
            // A 2xx that refuses the media has also ended the former media, so they are offered again.
            if matches!(unheard, OfferAnswerError::Negotiation(_)) {
                self.refresh(parties, to);
            }
            return;
        }
        let answer = leg.heard(answer);
        let form = parties.leg(to).map_or(KeyForm::Unknown, Leg::key_form);
        let offered = parties.leg(from).and_then(|leg| leg.exchange.remote_offer().cloned());
        let reply = parties.leg_mut(from).zip(offered.as_ref());
        let reply = reply.and_then(|(leg, offered)| answer_for(leg, offered, &answer, form));
        match reply {
            Some(reply) => {
                note_early(parties, from, offered.as_ref());
                self.reconnect(parties);
                parties.push(Output::OfferResult(from, Ok(reply)));
            }
            None => self.refuse(parties, from, 488),
        }
    }

    /// Handles the CANCEL of an offer by its sender, which keeps its former session (RFC 3261 §14.1): the offer that
    /// passed it on is cancelled too.
    pub(super) fn withdrawn(&mut self, parties: &mut Parties, from: Party) {
        let open = self.renegotiation.as_mut().filter(|open| open.from == from && !open.is_withdrawn);
        let Some(open) = open else { return };
        open.is_withdrawn = true;
        let to = open.to;
        if let Some(leg) = parties.leg_mut(from) {
            leg.exchange.roll_back();
        }
        parties.push(Output::CancelOffer(to));
    }

    /// Handles the response to a cancelled offer. A 2xx that crossed the CANCEL has changed the session of that party,
    /// so the former one is offered again.
    fn withdrawn_answered(
        &mut self,
        parties: &mut Parties,
        ending: &mut Ending,
        now: Instant,
        to: Party,
        result: Result<Option<SessionDescription>, u16>,
    ) {
        if let Some(leg) = parties.leg_mut(to) {
            leg.exchange.roll_back();
        }
        match result {
            Ok(_) => self.refresh(parties, to),
            Err(408 | 481) => ending.hung_up(parties, now, to, HangupCause::RecoveryOnTimerExpire),
            Err(_) => {}
        }
    }

    /// Refreshes the dialog of a party (RFC 4028 §7.4) by repeating the present SDP as an offer. Does nothing
    /// during a negotiation, because its offer refreshes the dialog too.
    pub(super) fn refresh(&mut self, parties: &mut Parties, party: Party) {
        if !parties.is_up() || self.renegotiation.is_some() {
            return;
        }
        let Some(leg) = parties.leg_mut(party).filter(|leg| leg.is_open()) else { return };
        let current = leg.exchange.in_force().cloned();
        if let Some(offer) = current.and_then(|current| leg.exchange.send_offer(current).ok()) {
            parties.push(Output::Offer(party, offer));
        }
    }

    /// Offers again to a party whose offer collided with ours, if it still lacks the terms of the other party.
    pub(super) fn offer_due(&mut self, parties: &mut Parties, party: Party) {
        if let Some(other) = parties.other(party) {
            self.pass_on_terms(parties, other);
        }
    }

    /// Handles the answer to an offer of our own, which passed on no open offer: a refresh, or the terms that
    /// the other party accepted by its ACK. The party may have changed its media address.
    fn own_offer_answered(
        &mut self,
        parties: &mut Parties,
        ending: &mut Ending,
        now: Instant,
        party: Party,
        result: Result<Option<SessionDescription>, u16>,
    ) {
        let Some(leg) = parties.leg_mut(party).filter(|leg| leg.exchange.local_offer().is_some()) else {
            return; // Outdated: no offer of ours is open.
        };
        let is_gone = matches!(result, Err(408 | 481));
        let taken = result.ok().flatten().is_some_and(|answer| leg.exchange.receive_answer(answer).is_ok());
        if taken {
            return self.reconnect(parties);
        }
        leg.exchange.roll_back();
        // The dialog has ended (RFC 5057 §5.1, RFC 4028 §10), so the call ends. Any other refusal changes nothing.
        if is_gone {
            ending.hung_up(parties, now, party, HangupCause::RecoveryOnTimerExpire);
        }
    }

    /// Handles a request for our offer (RFC 3261 §14.2); the answer arrives with the ACK. A party may also resume a
    /// held call in this way. So the offer does not repeat the party's own hold; only a hold by the other party
    /// limits it.
    fn offer_ours(&mut self, parties: &mut Parties, party: Party) {
        let other = parties.other(party).and_then(|other| parties.leg(other));
        let direction = other.map_or(Direction::SendRecv, |leg| leg.exchange.wanted_by_party());
        let offer = parties.leg_mut(party).and_then(|leg| {
            let mut fresh = leg.exchange.in_force()?.clone();
            let is_ours =
                |media: &&mut Media| media.is_carried() || media.is_fax() || media.is_carried_video();
            for media in fresh.media.iter_mut().filter(is_ours) {
                media.direction = direction;
            }
            leg.exchange.send_offer(fresh).ok()
        });
        parties.push(Output::OfferResult(party, offer.ok_or(491)));
    }

    /// Handles the ACK with the answer to an offer that the party requested.
    pub(super) fn offer_taken(&mut self, parties: &mut Parties, party: Party) {
        self.reconnect(parties);
        self.pass_on_terms(parties, party);
    }

    /// Offers the negotiated terms of `from` to the other party, if the two directions do not match.
    fn pass_on_terms(&mut self, parties: &mut Parties, from: Party) {
        self.pass_on_unless(parties, from, has_directions_of);
    }

    /// Offers the caller the terms of the callee if the two do not match, after the ACK of an answer that was made
    /// before those terms.
    pub(super) fn catch_up(&mut self, parties: &mut Parties) {
        let Some(callee) = parties.other(Party::Caller) else { return };
        let suits = |own: &Negotiated, theirs: &Negotiated| {
            has_directions_of(own, theirs) && reaches(own, theirs) && reaches(theirs, own)
        };
        self.pass_on_unless(parties, callee, suits);
    }

    /// Offers the negotiated terms of `from` to the other party, unless its own suit them.
    fn pass_on_unless(
        &mut self,
        parties: &mut Parties,
        from: Party,
        suits: impl FnOnce(&Negotiated, &Negotiated) -> bool,
    ) {
        let Some(to) = parties.other(from).filter(|_| parties.is_up() && self.is_idle()) else { return };
        let Some((own, theirs)) = parties.leg(from).zip(parties.leg(to)) else { return };
        let settled = own.exchange.negotiated().zip(theirs.exchange.negotiated());
        if settled.is_none_or(|(settled, present)| suits(settled, present)) {
            return;
        }
        if let Some(terms) = own.settled()
            && let Ok(onward) = self.offer_on(parties, from, to, &terms)
        {
            parties.push(Output::Offer(to, onward));
        }
    }

    /// Answers an offer that keeps direction and codecs; only this leg's media address changes.
    fn answer_from_settled(
        &mut self,
        parties: &mut Parties,
        from: Party,
        to: Party,
        offer: &SessionDescription,
    ) {
        // A caller that made no offer answers ours with its ACK. Until then nothing is negotiated, so this
        // offer must wait too.
        let Some(settled) = parties.leg(to).and_then(|leg| leg.settled()) else {
            return self.refuse(parties, from, 491);
        };
        let form = parties.leg(to).map_or(KeyForm::Unknown, Leg::key_form);
        let reply = parties.leg_mut(from).and_then(|leg| answer_for(leg, offer, &settled, form));
        match reply {
            Some(reply) => {
                note_early(parties, from, Some(offer));
                self.reconnect(parties);
                parties.push(Output::OfferResult(from, Ok(reply)));
            }
            None => self.refuse(parties, from, 488),
        }
    }

    /// Returns the offer for `to` that passes on what `from` offers.
    fn offer_on(
        &mut self,
        parties: &mut Parties,
        from: Party,
        to: Party,
        offer: &SessionDescription,
    ) -> Result<SessionDescription, u16> {
        let from_policy = parties.leg(from).map(|leg| leg.policy.clone()).unwrap_or_default();
        let form = parties.leg(from).map_or(KeyForm::Unknown, Leg::key_form);
        let leg = parties.leg_mut(to).ok_or(481_u16)?;
        let relayed = sdp::offer_from(offer, leg.local(), &from_policy, &leg.policy);
        // If the party already uses one of these codecs, offer no others, so that it does not change to
        // another.
        let mut onward = match relayed.ok().filter(|onward| leg.shares_a_codec_with(onward)) {
            Some(onward) => onward,
            None => offer_onward(offer, leg.local(), &from_policy, &leg.policy)
                .map_err(|refused| refused.status())?,
        };
        if takes_keys(form, offer) {
            offer_events(&mut onward);
        }
        leg.add_video(&mut onward, offer);
        leg.exchange.send_offer(onward).map_err(|refused| match refused {
            OfferAnswerError::Negotiation(refused) => refused.status(),
            OfferAnswerError::NoOffer | OfferAnswerError::Pending | OfferAnswerError::Shape => 491,
        })
    }

    fn refuse(&mut self, parties: &mut Parties, from: Party, status: u16) {
        if let Some(leg) = parties.leg_mut(from) {
            leg.exchange.roll_back();
        }
        parties.push(Output::OfferResult(from, Err(status)));
    }

    fn roll_back(&mut self, parties: &mut Parties, from: Party, to: Party, status: u16) {
        if let Some(leg) = parties.leg_mut(to) {
            leg.exchange.roll_back();
        }
        self.refuse(parties, from, status);
    }

    fn reconnect(&mut self, parties: &mut Parties) {
        if let Some(callee) = parties.callee().or(parties.early()) {
            parties.connect(callee);
        }
    }
}

/// Notes a change of the session before the answer; the answer then contains no new session description.
fn note_early(parties: &mut Parties, from: Party, offered: Option<&SessionDescription>) {
    if !parties.is_ringing() {
        return;
    }
    parties.settled_early = true;
    // If another target answers, it answers this offer.
    if let (Party::Caller, Near::Party(caller)) = (from, &mut parties.near) {
        caller.offer = offered.cloned();
    }
}

/// Answers the offer of a party from the other party's answer; `form` is the other party's key form.
fn answer_for(
    leg: &mut Leg,
    offered: &SessionDescription,
    answered: &SessionDescription,
    form: KeyForm,
) -> Option<SessionDescription> {
    let mut answer = answer_back(offered, answered, leg.local(), &leg.policy).ok()?;
    if takes_keys(form, answered) && !has_events(answered) {
        answer_events(&mut answer, offered);
    }
    leg.accept_video(&mut answer, offered, answered);
    leg.exchange.send_answer(answer).ok()
}

/// Whether the directions of two parties match, of their audio and of their video.
fn has_directions_of(own: &Negotiated, theirs: &Negotiated) -> bool {
    let video = [own, theirs].map(|terms| terms.video.as_ref().map(|video| video.terms.direction));
    let [own_video, their_video] = video;
    own.direction.reversed() == theirs.direction && own_video.map(Direction::reversed) == their_video
}

/// Whether each codec of `from` is also one of `to`, or can be transcoded to one.
fn reaches(from: &Negotiated, to: &Negotiated) -> bool {
    let converts = media_plan::formats(to).is_some();
    let is_known = |codec: &Codec| to.payloads.iter().any(|other| other.codec.matches(codec));
    let mut audio = from.payloads.iter().map(|payload| &payload.codec).filter(|codec| !codec.is_auxiliary());
    audio.all(|codec| is_known(codec) || (converts && media_plan::is_mixable(codec)))
}

/// Whether an offer repeats the negotiated direction and audio codecs, or lines of T.38, so that it need not be passed
/// on to the other party.
fn offer_keeps_terms(settled: Option<&Negotiated>, offer: &SessionDescription) -> bool {
    let Some(settled) = settled else { return false };
    if let Some((_, fax)) = offer.carried_fax() {
        return settled.t38 == fax.t38 && offer.direction_of(fax).reversed() == settled.direction;
    }
    let Some((_, audio)) = offer.carried_audio().filter(|_| !settled.is_fax()) else { return false };
    let offered: Vec<_> = audio.codecs.iter().filter(|codec| codec.is_pass_through()).collect();
    let same_codecs =
        settled.payloads.iter().all(|payload| offered.iter().any(|codec| codec.matches(&payload.codec)));
    // The party's direction, reversed to our side, and its address must both mean that media flow as before.
    same_codecs && offer.direction_of(audio).reversed() == settled.direction && keeps_video(settled, offer)
}

/// Whether an offer repeats the negotiated video: its direction, its formats and its lines; or still has no video.
fn keeps_video(settled: &Negotiated, offer: &SessionDescription) -> bool {
    let (Some(settled), Some((_, video))) = (&settled.video, offer.carried_video()) else {
        return settled.video.is_some() == offer.carried_video().is_some();
    };
    let section = &settled.section;
    section.codecs.iter().all(|codec| video.codecs.contains(codec))
        && section.video == video.video
        && offer.direction_of(video).reversed() == settled.terms.direction
}

/// How long a party may take to answer an offer that is passed on: longer than the 32 s after which a request without any
/// response times out (RFC 3261 §17.1.1.2), which shows that the party is gone.
const ANSWER_WITHIN: Duration = Duration::from_secs(34);
