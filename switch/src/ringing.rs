//! Ringing of a call's targets: forks that ring at the same time, or attempts in turn (RFC 3261 §16.7).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use sidetone_call::media_plan;
use sidetone_call::record::Facts;
use sidetone_model::call::{Direction as CallDirection, EndedBy, HangupCause};
use sidetone_model::forwarding::ForwardReason;
use sidetone_sip::sdp::{self, Codec, CodecPolicy, Direction, IceRule, SessionDescription, SrtpRule};

use crate::conference_leg::take_for_a_room;
use crate::converted_keys::{answer_events, has_events, takes_keys};
use crate::ending::{Ending, Far};
use crate::io::{
    Attempt, Awaited, CalleeAt, CalleeSide, Callees, Diverted, Forwards, KeyForm, MediaCommand, Output,
    Party, Port,
};
use crate::leg::Leg;
use crate::outcome::{another_may_mend, better, refusal};
use crate::parties::{Fork, ForkState, Near, Parties, State};
use crate::requested_leg::{caller_answered, common_terms};
use crate::transcoding::{answer_back, offer_onward, offer_unasked};

/// How the callee is rung.
#[derive(Debug)]
pub(super) struct Ringing {
    /// Whether forks are tried one after the other.
    in_turn: bool,
    /// The codecs offered to every fork.
    callee_policy: CodecPolicy,
    /// The SRTP rule of every fork.
    callee_srtp: SrtpRule,
    /// The addresses of parallel forks without a port; the port of the first one was requested.
    unopened: VecDeque<CalleeAt>,
    /// The attempt whose port was requested.
    attempt: Option<Attempt>,
    /// Which results of the forks forward the call.
    forwards: Forwards,
    /// The result of the forks while the call may still be forwarded.
    result: Option<u16>,
    /// When forks that sent no response no longer delay the result of the others; only for several parallel forks.
    pub(super) asks_at: Option<Instant>,
}

impl Ringing {
    pub(super) fn new(
        in_turn: bool,
        callee_policy: CodecPolicy,
        callee_srtp: SrtpRule,
        forwards: Forwards,
    ) -> Self {
        Ringing {
            forwards,
            result: None,
            in_turn,
            callee_policy,
            callee_srtp,
            unopened: VecDeque::new(),
            attempt: None,
            asks_at: None,
        }
    }

    /// Starts to ring the callee: requests the first port, or the first attempt. Without a caller's port the
    /// call cannot begin.
    pub(super) fn begin(&mut self, parties: &mut Parties, now: Instant, callees: Callees) {
        parties.state = State::Ringing { deadline: self.deadline(parties, now), early: None };
        // The calling party of a requested call has its answer already.
        if parties.requested.is_none()
            && let Near::Party(caller) = &mut parties.near
            && let Some(offer) = caller.offer.clone()
            && caller.leg.exchange.receive_offer(offer).is_err()
        {
            return parties.refuse(488);
        }
        if parties.facts.forwarded.is_some() && matches!(parties.near, Near::Party(_)) {
            parties.push(Output::Ring(181, None));
        }
        self.ring_all(parties, now, callees);
    }

    /// Returns the end of the ringing time.
    fn deadline(&self, parties: &Parties, now: Instant) -> Instant {
        let ring = parties.limits.ring;
        let deadline = now + self.forwards.no_answer.map_or(ring, |no_answer| no_answer.min(ring));
        parties.expires_at().map_or(deadline, |expires_at| deadline.min(expires_at))
    }

    /// Requests the first port, or the first attempt.
    fn ring_all(&mut self, parties: &mut Parties, now: Instant, callees: Callees) {
        match callees {
            Callees::AtOnce(callees_at) => {
                self.asks_at = (callees_at.len() > 1).then(|| now + SILENT_AFTER);
                self.unopened = callees_at.into();
                self.open_next(parties);
            }
            Callees::InTurn => parties.push(Output::FirstAttempt),
        }
    }

    /// Requests the port of the next parallel fork.
    fn open_next(&mut self, parties: &mut Parties) {
        match self.unopened.front() {
            Some(target) => {
                let fork = parties.leg_place(parties.forks.len());
                let is_browser = target.is_browser && self.callee_srtp == SrtpRule::Webrtc;
                let is_plain = !is_browser && !target.has_ice;
                let video = self.callee_policy.has_video() && is_plain && caller_may_have_video(parties);
                parties.push(Output::OpenPort { fork, towards: target.at, video });
            }
            None if parties.forks.is_empty() => parties.refuse(503),
            None => {}
        }
    }

    /// Handles the port of a fork, which is rung with it. `None` when no port is free.
    pub(super) fn port_opened(
        &mut self,
        parties: &mut Parties,
        ending: &mut Ending,
        now: Instant,
        port: Option<Port>,
    ) {
        if !parties.is_ringing() {
            // The call was answered or has failed meanwhile.
            let ids = port.iter().flat_map(Port::ids);
            return parties.outputs.extend(ids.map(|id| Output::Media(id, MediaCommand::Close)));
        }
        if let Some(attempt) = self.attempt.take() {
            return match port {
                Some(port) => self.ring_attempt(parties, ending, now, attempt, port),
                None => self.exhausted(parties, ending, now, 503, HangupCause::SwitchCongestion),
            };
        }
        let target = self.unopened.pop_front();
        match port.zip(target) {
            Some((port, target)) => match self.ring(parties, port, target) {
                Ok(()) if self.unopened.is_empty() => {}
                Ok(()) => self.open_next(parties),
                Err(status) => parties.refuse(status),
            },
            // Ring only the forks that have a port.
            None => {
                self.unopened.clear();
                self.open_next(parties);
            }
        }
    }

    /// Adds a fork and invites it.
    fn ring(&mut self, parties: &mut Parties, port: Port, target: CalleeAt) -> Result<(), u16> {
        let CalleeAt { at, is_browser, has_ice } = target;
        let place = parties.forks.len();
        // The session ids of one call differ in their low bits (RFC 8866 §5.2: unique per session and host).
        let fork_session = parties.session_id.wrapping_add(1).wrapping_add(place as u64);
        let is_browser = is_browser && self.callee_srtp == SrtpRule::Webrtc;
        // A browser has ICE by its own rule.
        let ice = if has_ice && !is_browser { IceRule::Offered } else { IceRule::Never };
        let protection = parties.protection(self.callee_srtp, is_browser, ice);
        let mut leg = Leg::new(port, fork_session, self.callee_policy.clone(), Some(at), protection);
        let offer = match &parties.near {
            Near::Party(caller) => match &caller.offer {
                Some(offered) => offer_onward(offered, leg.local(), &caller.leg.policy, &leg.policy)
                    .map(|offer| with_video(&leg, offered, caller.leg.with_events(offered, offer)))
                    .map_err(|refused| refused.status()),
                None => {
                    let codecs = offer_unasked(&caller.leg.policy, &leg.policy);
                    Ok(sdp::offer(leg.local(), codecs, Direction::SendRecv))
                }
            },
            Near::Room => match &parties.awaiting {
                Some(awaited) => offer_onward(&awaited.settled, leg.local(), &awaited.policy, &leg.policy)
                    .map_err(|refused| refused.status()),
                None => Ok(leg.offer_to_room()),
            },
        };
        let offer = offer.and_then(|offer| leg.exchange.send_offer(offer).map_err(|_| 488_u16));
        // Most calls have one fork, and `push` would reserve space for four.
        parties.forks.reserve_exact(1);
        parties.forks.push(Fork { leg, state: ForkState::Ringing, rings: false, is_silent: false });
        parties.push(Output::Invite(place, offer?));
        Ok(())
    }

    /// Requests the port for the next target in turn.
    pub(super) fn attempt(&mut self, parties: &mut Parties, attempt: Attempt) {
        if parties.is_ringing() {
            let fork = parties.leg_place(parties.forks.len());
            let video = attempt.policy.has_video() && caller_may_have_video(parties);
            parties.push(Output::OpenPort { fork, towards: attempt.at, video });
            self.attempt = Some(attempt);
        }
    }

    /// Rings the next target in turn.
    fn ring_attempt(
        &mut self,
        parties: &mut Parties,
        ending: &mut Ending,
        now: Instant,
        attempt: Attempt,
        port: Port,
    ) {
        // The record describes only the last attempt.
        ending.far = Far::default();
        (self.callee_srtp, self.callee_policy) = (attempt.srtp, attempt.policy);
        // A forwarded call from a trunk remains a call of that trunk.
        if parties.facts.direction != CallDirection::Inbound {
            parties.facts.trunk = Some(attempt.trunk);
        }
        if let Some(tariff) = &mut parties.facts.tariff {
            tariff.cost = attempt.cost;
        }
        let target = CalleeAt { at: attempt.at, is_browser: false, has_ice: false };
        if let Err(status) = self.ring(parties, port, target) {
            self.give_up_on_forks(parties, ending, now, status);
        }
    }

    /// Handles the end of all attempts: the caller gets the result of the last one.
    pub(super) fn exhausted(
        &mut self,
        parties: &mut Parties,
        ending: &mut Ending,
        now: Instant,
        status: u16,
        cause: HangupCause,
    ) {
        if !parties.is_ringing() {
            return;
        }
        match ending.far.reply {
            Some(reply) => self.give_up_on_forks(parties, ending, now, refusal(reply)),
            None => {
                parties.push(Output::Reject(status, Some(cause)));
                ending.finish(parties, now, cause, EndedBy::System);
            }
        }
    }

    /// Handles the end of the ringing time.
    pub(super) fn ring_out(&mut self, parties: &mut Parties, ending: &mut Ending, now: Instant) {
        let expires_at = parties.expires_at();
        if expires_at.is_some_and(|expires_at| expires_at <= now) {
            return ending.cancelled(parties, now, HangupCause::OriginatorCancel);
        }
        if let (Some(rang), State::Ringing { deadline, .. }) =
            (self.forwards.no_answer.take(), &mut parties.state)
        {
            // If the call cannot be forwarded, the phones continue to ring.
            let last = now + parties.limits.ring.saturating_sub(rang);
            *deadline = expires_at.map_or(last, |expires_at| last.min(expires_at));
            return parties.push(Output::Redirected(ForwardReason::NoAnswer));
        }
        ending.far = Far::default();
        parties.drop_forks(None, HangupCause::NoAnswer);
        parties.push(Output::Reject(480, Some(HangupCause::NoAnswer)));
        let by = if parties.rings_caller() { EndedBy::Caller } else { EndedBy::System };
        ending.finish(parties, now, HangupCause::NoAnswer, by);
    }

    pub(super) fn provisional(
        &mut self,
        parties: &mut Parties,
        place: usize,
        status: u16,
        answer: Option<SessionDescription>,
    ) {
        let State::Ringing { early, .. } = parties.state else {
            return; // Too late: the call was answered or has failed.
        };
        let Some(fork) = parties.forks.get_mut(place).filter(|fork| fork.state == ForkState::Ringing) else {
            return;
        };
        (fork.rings, fork.is_silent) = (true, false);
        // A room does not hear early media, and a caller without an offer cannot.
        let hears = matches!(&parties.near, Near::Party(caller) if caller.offer.is_some());
        // Once the caller hears one fork, a 180 of another would only confuse its phone.
        if early.is_some_and(|heard| heard != place) {
            if let Some(answer) = answer {
                // The caller hears it if the other fork refuses.
                let _ = fork.leg.exchange.receive_answer(answer);
            }
            return;
        }
        let Some(answer) = answer else { return parties.push(Output::Ring(status, None)) };
        if !hears {
            if matches!(parties.near, Near::Room) {
                // The 200 may come without SDP (RFC 3261 §13.2.1).
                let _ = fork.leg.exchange.receive_answer(answer);
            }
            return parties.push(Output::Ring(status, None));
        }
        let Ok(_) = fork.leg.exchange.receive_answer(answer.clone()) else {
            parties.push(Output::Ring(status, None));
            return;
        };
        let answer = fork.leg.heard(answer);
        self.hear(parties, place, status, &answer);
    }

    /// Lets the caller hear a fork that has answered its offer in a provisional response.
    fn hear(&mut self, parties: &mut Parties, place: usize, status: u16, heard: &SessionDescription) {
        if let State::Ringing { early, .. } = &mut parties.state {
            *early = Some(place);
        }
        let form = fork_key_form(parties, place);
        let answer = self.answer_for_caller(parties, heard, form);
        if answer.is_some() {
            parties.connect(place);
        }
        parties.push(Output::Ring(status, answer));
    }

    /// Lets the caller hear another fork that still rings: the one that it heard has ended.
    fn hear_another(&mut self, parties: &mut Parties) {
        parties.settled_early = false;
        if let State::Ringing { early, .. } = &mut parties.state {
            *early = None;
        }
        let rings = |fork: &Fork| fork.state == ForkState::Ringing && fork.rings;
        let mut forks = parties.forks.iter().enumerate().filter(|(_, fork)| rings(fork));
        if let Some((place, heard)) = forks.find_map(|(place, fork)| Some((place, fork.leg.settled()?))) {
            return self.hear(parties, place, 183, &heard);
        }
        if parties.forks.iter().any(rings) {
            parties.push(Output::Ring(180, None));
        }
    }

    pub(super) fn answered(
        &mut self,
        parties: &mut Parties,
        ending: &mut Ending,
        now: Instant,
        place: usize,
        answer: Option<SessionDescription>,
    ) {
        let Some(fork) = parties.forks.get_mut(place) else { return };
        if !matches!(parties.state, State::Ringing { .. }) || fork.state != ForkState::Ringing {
            // A 2xx that crossed our CANCEL: the dialog exists and must be ended (RFC 3261 §9.1).
            fork.state = ForkState::Ended;
            parties.push(Output::Bye(Party::Callee(place), HangupCause::LoseRace));
            return;
        }
        // The session was changed after the answer in a provisional response; the 2xx may only repeat that answer.
        let is_settled = parties.settled_early && parties.early() == Some(place);
        let Some(fork) = parties.forks.get_mut(place) else { return };
        let answer = answer.filter(|_| !is_settled);
        let settled = match &answer {
            Some(answer) => fork.leg.exchange.receive_answer(answer.clone()).is_ok(),
            // A 2xx may omit SDP if a provisional response had it (RFC 3261 §13.2.1).
            None => fork.leg.exchange.negotiated().is_some(),
        };
        let answer = answer.map(|answer| fork.leg.heard(answer));
        let heard = answer.or_else(|| fork.leg.settled()).filter(|_| settled);
        fork.state = ForkState::Up;
        let reply = match (heard, &parties.near) {
            (None, _) => None,
            (Some(_), Near::Room) => Some(None),
            (Some(_), Near::Party(caller)) if is_settled => Some(caller.leg.exchange.local().cloned()),
            (Some(heard), Near::Party(_)) => {
                let form = fork_key_form(parties, place);
                self.answer_for_caller(parties, &heard, form).map(Some)
            }
        };
        let Some(reply) = reply else { return self.disagree(parties, ending, now, place) };
        if parties.rings_caller() {
            return caller_answered(parties, ending, now, place);
        }
        ending.far = Far { status: Some(200), cause: None, reply: None };
        parties.drop_forks(Some(place), HangupCause::LoseRace);
        parties.winner = Some(place);
        match parties.near {
            Near::Party(_) => parties.connect(place),
            Near::Room => parties.describe(Party::Callee(place)),
        }
        parties.tell(Party::Callee(place), Some(MediaCommand::Answered));
        ending.await_journal(parties, now, reply);
    }

    /// Handles the answer of a party of another call instead of the ringing forks.
    pub(super) fn picked_up(
        &mut self,
        parties: &mut Parties,
        ending: &mut Ending,
        now: Instant,
        awaited: Box<Awaited>,
    ) {
        if !parties.is_ringing() {
            return;
        }
        // Video is not relayed between two calls.
        let mut settled = awaited.settled.clone();
        settled.refuse_video();
        match self.answer_for_caller(parties, &settled, KeyForm::Unknown) {
            Some(answer) => {
                ending.far = Far { status: Some(200), cause: None, reply: None };
                parties.drop_forks(None, HangupCause::LoseRace);
                parties.describe(Party::Caller);
                parties.awaiting = Some(awaited);
                ending.await_journal(parties, now, Some(answer));
            }
            None => self.give_up_on_forks(parties, ending, now, 488),
        }
    }

    /// Rings new targets: the called extension has forwarded the call.
    pub(super) fn divert(
        &mut self,
        parties: &mut Parties,
        ending: &mut Ending,
        now: Instant,
        diverted: Diverted,
    ) {
        if !parties.is_ringing() {
            return;
        }
        let Diverted { facts, callee: CalleeSide { policy, srtp, callees, forwards } } = diverted;
        self.leave_forks(parties, facts);
        self.forwards = forwards;
        parties.state = State::Ringing { deadline: self.deadline(parties, now), early: None };
        (ending.far, self.callee_policy, self.callee_srtp) = (Far::default(), policy, srtp);
        self.in_turn = callees == Callees::InTurn;
        // The call of a room has no caller to notify, and has not rung yet.
        if matches!(parties.near, Near::Party(_)) {
            parties.push(Output::Ring(181, None));
        }
        self.ring_all(parties, now, callees);
    }

    /// Cancels the forks that still ring, because the call is forwarded.
    fn leave_forks(&mut self, parties: &mut Parties, facts: Facts) {
        let reason = facts.forwarded.as_ref().map(|forwarded| forwarded.reason);
        parties.facts = facts;
        (self.result, self.forwards) = (None, Forwards::default());
        parties.settled_early = false;
        self.unopened.clear();
        let cause = match reason {
            // Phones list the call as missed.
            Some(ForwardReason::NoAnswer) => HangupCause::NoAnswer,
            _ => HangupCause::LoseRace,
        };
        parties.drop_forks(None, cause);
    }

    /// Answers the caller for a room: the called extension has forwarded the call there.
    pub(super) fn enter_room(
        &mut self,
        parties: &mut Parties,
        ending: &mut Ending,
        now: Instant,
        facts: Facts,
    ) {
        if !parties.is_ringing() {
            return;
        }
        self.leave_forks(parties, facts);
        if parties.waits_for_target() {
            // The calling party of a requested call has its answer already.
            return ending.await_journal(parties, now, None);
        }
        if let Err(status) = take_for_a_room(parties, ending, now) {
            self.give_up_on_forks(parties, ending, now, status);
        }
    }

    /// Handles a call that is not forwarded: it has failed, unless its forks still ring.
    pub(super) fn not_diverted(&mut self, parties: &mut Parties, ending: &mut Ending, now: Instant) {
        if let Some(status) = self.result.take().filter(|_| parties.is_ringing()) {
            let status = self.status_for_caller(ending, status);
            self.give_up_on_forks(parties, ending, now, status);
        }
    }

    /// Handles a fork that answered with SDP that the caller cannot use.
    fn disagree(&mut self, parties: &mut Parties, ending: &mut Ending, now: Instant, place: usize) {
        let cause = Some(HangupCause::IncompatibleDestination);
        ending.far = Far { status: Some(200), cause, reply: Some(488) };
        if let Some(fork) = parties.forks.get_mut(place) {
            fork.state = ForkState::Ended;
        }
        parties.push(Output::Bye(Party::Callee(place), HangupCause::IncompatibleDestination));
        parties.release(Party::Callee(place));
        self.give_up_on_forks(parties, ending, now, 488);
    }

    /// Handles the end of a fork with `status`; `response` is the status that it actually sent, if any, and
    /// the cause of that response.
    pub(super) fn failed(
        &mut self,
        parties: &mut Parties,
        ending: &mut Ending,
        now: Instant,
        place: usize,
        status: u16,
        response: Option<(u16, HangupCause)>,
    ) {
        let Some(fork) = parties.forks.get_mut(place) else { return };
        let was = std::mem::replace(&mut fork.state, ForkState::Ended);
        parties.release(Party::Callee(place));
        let State::Ringing { early, .. } = parties.state else { return };
        if was != ForkState::Ringing {
            return; // The 487 to our own CANCEL is no result of the far end.
        }
        let preferred = |before: Option<u16>, new: u16| before.map_or(new, |before| better(before, new));
        ending.far.reply = Some(preferred(ending.far.reply, status));
        if let Some((response, cause)) = response {
            let chosen = preferred(ending.far.status, response);
            if chosen == response {
                ending.far.cause = Some(cause);
            }
            ending.far.status = Some(chosen);
        }
        // A caller who heard early media knows the reason; another trunk would only repeat it.
        if self.in_turn && early.is_none() && another_may_mend(status) {
            return parties.push(Output::NextAttempt(status));
        }
        // A 6xx declines for all forks (RFC 3261 §16.7 step 5).
        let everybody = status >= 600;
        if everybody || is_decided(parties) {
            self.decide(parties, ending, now, ending.far.reply.unwrap_or(status));
        } else if early == Some(place) {
            self.hear_another(parties);
        }
    }

    /// Ends the call with this result of its forks, unless it may be forwarded.
    fn decide(&mut self, parties: &mut Parties, ending: &mut Ending, now: Instant, status: u16) {
        let Forwards { busy, no_answer, unregistered } = self.forwards;
        let reason = match status {
            301 | 302 => Some(ForwardReason::Redirected),
            486 | 600 | 603 if busy => Some(ForwardReason::Busy),
            480 if no_answer.is_some() => Some(ForwardReason::NoAnswer),
            // No phone has sent a final response.
            _ if unregistered && ending.far.status.is_none() => Some(ForwardReason::Unregistered),
            _ => None,
        };
        match reason {
            Some(reason) => {
                self.result = Some(status);
                parties.push(Output::Redirected(reason));
            }
            None => {
                let status = self.status_for_caller(ending, status);
                self.give_up_on_forks(parties, ending, now, status);
            }
        }
    }

    /// The status for the caller when the forks have ended with `status`. Phones that the network refused, for example
    /// those of a lost node, count as not registered.
    fn status_for_caller(&self, ending: &Ending, status: u16) -> u16 {
        let is_unreachable = status == 503 && ending.far.status.is_none() && !self.in_turn;
        if is_unreachable { 480 } else { refusal(status) }
    }

    /// Queries which forks have sent no response at all, when that is due.
    pub(super) fn ask_heard(&mut self, parties: &mut Parties, now: Instant) {
        if self.asks_at.is_none_or(|at| at > now) {
            return;
        }
        self.asks_at = None;
        for place in 0..parties.forks.len() {
            if parties.forks.get(place).is_some_and(|fork| fork.state == ForkState::Ringing && !fork.rings) {
                parties.push(Output::AskHeard(place));
            }
        }
    }

    /// Handles a fork that has sent no response: an unreachable phone must not delay the result of the others.
    pub(super) fn unheard(&mut self, parties: &mut Parties, ending: &mut Ending, now: Instant, place: usize) {
        if !parties.is_ringing() {
            return;
        }
        if let Some(fork) = parties.forks.get_mut(place).filter(|fork| fork.state == ForkState::Ringing) {
            fork.is_silent = true;
        }
        if let Some(status) = ending.far.reply.filter(|_| is_decided(parties)) {
            self.decide(parties, ending, now, status);
        }
    }

    /// Ends the call, because no fork can answer any more: the caller gets `status`.
    fn give_up_on_forks(&mut self, parties: &mut Parties, ending: &mut Ending, now: Instant, status: u16) {
        let cause = ending.far.cause.unwrap_or(HangupCause::from_sip_status(status));
        parties.drop_forks(None, cause);
        parties.push(Output::Reject(status, Some(cause)));
        let by = match ending.far.status {
            Some(300..) if parties.rings_caller() => EndedBy::Caller,
            Some(300..) => EndedBy::Callee,
            _ => EndedBy::System,
        };
        if parties.rings_caller() {
            // The responses are those of the calling party; the target was never called.
            ending.far = Far::default();
        }
        ending.finish(parties, now, cause, by);
    }

    /// Returns our answer to the caller, made from a fork's answer; for a caller that made no offer, our
    /// offer. `form` is the key form of the fork's party.
    ///
    /// A caller that has an answer keeps it, whichever target answers with other terms: the audio is transcoded, or the
    /// caller gets an offer after its ACK.
    fn answer_for_caller(
        &mut self,
        parties: &mut Parties,
        heard: &SessionDescription,
        form: KeyForm,
    ) -> Option<SessionDescription> {
        let is_requested = parties.requested.is_some();
        let Near::Party(caller) = &mut parties.near else { return None };
        if is_requested {
            return common_terms(caller, heard);
        }
        let local = caller.leg.local();
        let Some(offered) = caller.offer.clone() else {
            let (_, audio) = heard.carried_audio()?;
            // Only one audio codec: with two, the caller might choose another one than the callee already
            // sends.
            let mut codecs = caller.leg.policy.apply(&audio.codecs);
            if codecs.iter().all(Codec::is_auxiliary) {
                // The caller may use none of the callee's codecs, so it is offered those that we can transcode
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
        let mut answer = answer_back(&offered, heard, local, &caller.leg.policy).ok()?;
        if takes_keys(form, heard) && !has_events(heard) {
            answer_events(&mut answer, &offered);
        }
        caller.leg.accept_video(&mut answer, &offered, heard);
        let Some(early) = caller.leg.early_answer().cloned() else {
            return caller.leg.exchange.send_answer(answer).ok();
        };
        parties.repeats_answer = !has_terms_of(&early, &answer);
        Some(early)
    }
}

/// Whether two answers to one offer have the same codecs and directions.
fn has_terms_of(answer: &SessionDescription, other: &SessionDescription) -> bool {
    let terms = |of: &SessionDescription| {
        let carried = [of.carried_audio(), of.carried_video()];
        carried.map(|section| section.map(|(_, media)| (media.codecs.clone(), of.direction_of(media))))
    };
    terms(answer) == terms(other)
}

/// Whether the caller has a port for video.
fn caller_may_have_video(parties: &Parties) -> bool {
    parties.caller().is_some_and(|leg| leg.video.is_some())
}

/// Returns our offer for a fork with the video that the caller offers.
fn with_video(fork: &Leg, offered: &SessionDescription, mut offer: SessionDescription) -> SessionDescription {
    fork.add_video(&mut offer, offered);
    offer
}

/// Returns the form of a fork's keys without telephone events.
fn fork_key_form(parties: &Parties, place: usize) -> KeyForm {
    parties.forks.get(place).map_or(KeyForm::Unknown, |fork| fork.leg.key_form())
}

/// Whether every fork has ended, except those that have sent no response at all.
fn is_decided(parties: &Parties) -> bool {
    parties.forks.iter().all(|fork| fork.state == ForkState::Ended || fork.is_silent)
}

/// How long a phone may send no response while others of the extension ring: long enough for three lost INVITEs over
/// UDP (RFC 3261 §17.1.1.2: sent at 0, 0.5, 1.5 and 3.5 seconds).
const SILENT_AFTER: Duration = Duration::from_secs(4);
