//! How a call finds an answer: forks that ring at once, or attempts in turn (RFC 3261 §16.7).

use std::net::IpAddr;
use std::time::Instant;

use sidetone_call::media_plan;
use sidetone_model::call::HangupCause;
use sidetone_model::quality::Quality;
use sidetone_sip::sdp::{self, Codec, CodecPolicy, Direction, SessionDescription};

use crate::call::{Call, Far, Fork, ForkState, Near, State};
use crate::face::{Attempt, Callees, LegName, MediaCommand, Output, Party, Port, Ports};
use crate::leg::Leg;
use crate::outcome::{another_may_mend, better, refusal};
use crate::transcoding::{answer_back, offer_onward, offer_unasked};

impl Call {
    /// Rings the callee, or waits for the first attempt.
    ///
    /// # Errors
    /// The status that gives the reason.
    pub(super) fn begin_to_ring(&mut self, callees: Callees, ports: &mut dyn Ports) -> Result<(), u16> {
        if let Near::Party(caller) = &mut self.near
            && let Some(offer) = caller.offer.clone()
        {
            caller.leg.exchange.receive_offer(offer).map_err(|_| 488_u16)?;
        }
        let Callees::AtOnce(callees_at) = callees else { return Ok(()) };
        for callee_at in callees_at {
            let leg = LegName { call: self.facts.call, fork: Some(self.forks.len()) };
            let Some(port) = ports.open(leg, self.group(), callee_at) else { break };
            self.ring(port, callee_at)?;
        }
        if self.forks.is_empty() { Err(503) } else { Ok(()) }
    }

    /// Adds a fork and invites it.
    fn ring(&mut self, port: Port, at: IpAddr) -> Result<(), u16> {
        let place = self.forks.len();
        // The session ids of one call differ in their low bits (RFC 8866 §5.2: unique per session and host).
        let fork_session = self.session_id.wrapping_add(1).wrapping_add(place as u64);
        let mut leg = Leg::new(port, fork_session, self.callee_policy.clone(), Some(at));
        let offer = match &self.near {
            Near::Party(caller) => match &caller.offer {
                Some(offered) => offer_onward(offered, leg.local(), &caller.leg.policy, &leg.policy)
                    .map_err(|refused| refused.status()),
                None => {
                    let codecs = offer_unasked(&caller.leg.policy, &leg.policy);
                    Ok(sdp::offer(leg.local(), codecs, Direction::SendRecv))
                }
            },
            Near::Room => Ok(leg.offer_to_room()),
        };
        let offer = offer.and_then(|offer| leg.exchange.send_offer(offer).map_err(|_| 488_u16));
        self.forks.push(Fork { leg, state: ForkState::Ringing, rings: false });
        self.push(Output::Invite(place, offer?));
        Ok(())
    }

    /// Rings the next target in turn.
    pub(super) fn attempt(&mut self, now: Instant, attempt: Attempt) {
        if !self.is_ringing() {
            return self.push(Output::Media(attempt.port.id, MediaCommand::Close));
        }
        // The record describes only the last attempt.
        self.far = Far::default();
        self.facts.trunk = Some(attempt.trunk);
        self.stay.try_trunk(attempt.limit);
        if let Some(tariff) = &mut self.facts.tariff {
            tariff.cost = attempt.cost;
        }
        if let Err(status) = self.ring(attempt.port, attempt.at) {
            self.give_up_on_forks(now, status);
        }
    }

    /// Handles the end of all attempts: the caller gets the result of the last one.
    pub(super) fn exhausted(&mut self, now: Instant, status: u16, cause: HangupCause) {
        if !self.is_ringing() {
            return;
        }
        match self.far.reply {
            Some(told) => self.give_up_on_forks(now, refusal(told)),
            None => {
                self.push(Output::Reject(status));
                self.finish(now, cause);
            }
        }
    }

    /// Handles the end of the ringing time.
    pub(super) fn ring_out(&mut self, now: Instant) {
        self.far = Far::default();
        self.drop_forks(None);
        self.push(Output::Reject(480));
        self.finish(now, HangupCause::NoAnswer);
    }

    pub(super) fn provisional(&mut self, place: usize, status: u16, answer: Option<SessionDescription>) {
        let State::Ringing { early, .. } = &mut self.state else {
            return; // A provisional response after the call was decided changes nothing.
        };
        let Some(fork) = self.forks.get_mut(place).filter(|fork| fork.state == ForkState::Ringing) else {
            return;
        };
        fork.rings = true;
        // A room does not hear early media, and a caller without an offer cannot.
        let hears = matches!(&self.near, Near::Party(caller) if caller.offer.is_some());
        let Some(answer) = answer.filter(|_| early.is_none_or(|other| other == place)) else {
            // Once the caller hears one fork, a 180 of another without SDP would only confuse its phone.
            if early.is_none() {
                self.push(Output::Ring(status, None));
            }
            return;
        };
        if !hears {
            if matches!(self.near, Near::Room) {
                // The 200 may come without SDP (RFC 3261 §13.2.1).
                let _ = fork.leg.exchange.receive_answer(answer);
            }
            return self.push(Output::Ring(status, None));
        }
        let Ok(_) = fork.leg.exchange.receive_answer(answer.clone()) else {
            self.push(Output::Ring(status, None));
            return;
        };
        *early = Some(place);
        match self.answer_for_caller(&answer) {
            Some(answer) => {
                self.connect(place);
                self.push(Output::Ring(status, Some(answer)));
            }
            None => self.push(Output::Ring(status, None)),
        }
    }

    pub(super) fn answered(&mut self, now: Instant, place: usize, answer: Option<SessionDescription>) {
        let Some(fork) = self.forks.get_mut(place) else { return };
        if !matches!(self.state, State::Ringing { .. }) || fork.state != ForkState::Ringing {
            // A 2xx that crossed our CANCEL: the dialog exists and must be ended (RFC 3261 §9.1).
            fork.state = ForkState::Ended;
            self.push(Output::Bye(Party::Callee(place)));
            return;
        }
        let settled = match &answer {
            Some(answer) => fork.leg.exchange.receive_answer(answer.clone()).is_ok(),
            // A 2xx may omit SDP if a provisional response had it (RFC 3261 §13.2.1).
            None => fork.leg.exchange.negotiated().is_some(),
        };
        let heard = answer.or_else(|| fork.leg.settled()).filter(|_| settled);
        fork.state = ForkState::Up;
        let reply = match (heard, &self.near) {
            (None, _) => None,
            (Some(_), Near::Room) => Some(None),
            (Some(heard), Near::Party(_)) => self.answer_for_caller(&heard).map(Some),
        };
        let Some(reply) = reply else { return self.disagree(now, place) };
        self.far = Far { status: Some(200), cause: None, reply: None };
        self.drop_forks(Some(place));
        self.winner = Some(place);
        match self.near {
            Near::Party(_) => self.connect(place),
            Near::Room => {
                let description = self.leg(Party::Callee(place)).and_then(Leg::describe);
                self.tell(Party::Callee(place), description);
            }
        }
        self.tell(Party::Callee(place), Some(MediaCommand::Answered));
        self.await_journal(now, reply);
    }

    /// Handles a fork that answered with SDP that the caller cannot use.
    fn disagree(&mut self, now: Instant, place: usize) {
        let cause = Some(HangupCause::IncompatibleDestination);
        self.far = Far { status: Some(200), cause, reply: Some(488) };
        if let Some(fork) = self.forks.get_mut(place) {
            fork.state = ForkState::Ended;
        }
        self.push(Output::Bye(Party::Callee(place)));
        self.release(Party::Callee(place));
        self.give_up_on_forks(now, 488);
    }

    /// Waits until the answered call is in the journal; only then is the caller answered.
    pub(super) fn await_journal(&mut self, now: Instant, answer: Option<SessionDescription>) {
        self.state = State::Answering { answer };
        let answered_after = Some(now.saturating_duration_since(self.started));
        self.far_answered_after = answered_after;
        let record = self.record(answered_after, None, None, Quality::default());
        self.push(Output::Journal(Box::new(record)));
    }

    /// Handles the end of a fork with `status`; `response` is the status that it really sent, if any.
    pub(super) fn failed(&mut self, now: Instant, place: usize, status: u16, response: Option<u16>) {
        let Some(fork) = self.forks.get_mut(place) else { return };
        let was = std::mem::replace(&mut fork.state, ForkState::Ended);
        self.release(Party::Callee(place));
        let State::Ringing { early, .. } = self.state else { return };
        if was != ForkState::Ringing {
            return; // The 487 to our own CANCEL says nothing about the far end.
        }
        let preferred = |before: Option<u16>, new: u16| before.map_or(new, |before| better(before, new));
        self.far.reply = Some(preferred(self.far.reply, status));
        if let Some(response) = response {
            self.far.status = Some(preferred(self.far.status, response));
            self.far.cause = self.far.status.map(HangupCause::from_sip_status);
        }
        // A caller who heard early media knows the reason; another trunk would only repeat it.
        if self.in_turn && early.is_none() && another_may_mend(status) {
            return self.push(Output::NextAttempt(status));
        }
        // A 6xx declines for all forks (RFC 3261 §16.7 step 5).
        let everybody = status >= 600;
        if everybody || self.forks.iter().all(|fork| fork.state == ForkState::Ended) {
            let status = self.far.reply.unwrap_or(status);
            self.give_up_on_forks(now, refusal(status));
        }
    }

    /// Ends the call, because no fork can answer any more: the caller gets `status`.
    fn give_up_on_forks(&mut self, now: Instant, status: u16) {
        self.drop_forks(None);
        self.push(Output::Reject(status));
        let cause = self.far.cause.unwrap_or(HangupCause::from_sip_status(status));
        self.finish(now, cause);
    }

    /// Ends every fork except `kept`.
    pub(super) fn drop_forks(&mut self, kept: Option<usize>) {
        for place in (0..self.forks.len()).filter(|place| Some(*place) != kept) {
            if let Some(fork) = self.forks.get_mut(place)
                && fork.state == ForkState::Ringing
            {
                fork.state = ForkState::Cancelled;
                self.push(Output::Cancel(place));
            }
            self.release(Party::Callee(place));
        }
    }

    /// Returns our answer to the caller, made from a fork's answer; for a caller that made no offer, our
    /// offer.
    fn answer_for_caller(&mut self, heard: &SessionDescription) -> Option<SessionDescription> {
        let Near::Party(caller) = &mut self.near else { return None };
        let local = caller.leg.local();
        let Some(offered) = caller.offer.clone() else {
            let (_, audio) = heard.carried_audio()?;
            // Only one audio codec: with two, the caller might choose another one than the callee already
            // sends.
            let mut codecs = caller.leg.policy.apply(&audio.codecs);
            if codecs.iter().all(Codec::is_auxiliary) {
                // The caller may use no codec that the callee took, so it is offered what we can transcode
                // to.
                codecs = offer_unasked(&CodecPolicy::ANY, &caller.leg.policy);
                codecs.retain(media_plan::is_mixable);
            }
            let first = codecs.iter().position(|codec| !codec.is_auxiliary());
            let mut place = 0..;
            codecs.retain(|codec| codec.is_auxiliary() | (place.next() == first));
            let offer = sdp::offer(local, codecs, heard.direction_of(audio));
            return caller.leg.exchange.send_offer(offer).ok();
        };
        let answer = answer_back(&offered, heard, local, &caller.leg.policy).ok()?;
        caller.leg.exchange.send_answer(answer).ok()
    }
}
