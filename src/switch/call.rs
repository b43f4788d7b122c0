//! One call between a caller and a callee: a back-to-back user agent (RFC 7092) as a machine.
//!
//! It knows descriptions and media ports but no SIP message: the switch turns requests and responses into
//! [`Input`]s and [`Output`]s back into them. The bindings of an extension ring at once; the first answer wins, the
//! others are cancelled. Ways to the world are tried in turn. Audio is relayed, never transcoded here.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use sidetone_media::session::Report;
use sidetone_model::call::HangupCause;
use sidetone_model::cdr::Cdr;
use sidetone_model::live_call::CallState;
use sidetone_model::quality::{MediaVerdict, Quality};
use sidetone_sip::sdp::{self, CodecPolicy, Direction, SessionDescription};

use crate::cdr::build::{Facts, Outcome, build};
use crate::switch::face::{
    Attempt, Callees, Input, Limits, MediaCommand, Output, Party, Port, PortId, Ports, Setup, Stillborn,
};
use crate::switch::leg::Leg;
use crate::switch::negotiation::Renegotiation;
use crate::switch::outcome::{another_may_mend, better, quality, refusal};

/// One call.
#[derive(Debug)]
pub struct Call {
    facts: Facts,
    limits: Limits,
    started: Instant,
    pub(super) caller: Leg,
    pub(super) forks: Vec<Fork>,
    state: State,
    pub(super) renegotiation: Option<Renegotiation>,
    offer: Option<SessionDescription>,
    /// The codecs of every fork.
    callee_policy: CodecPolicy,
    /// SDP session id of the caller's leg; those of the forks follow it.
    session_id: u64,
    /// Whether forks are tried one after the other.
    in_turn: bool,
    /// The fork that answered first.
    winner: Option<usize>,
    /// What the far end said of the last attempt.
    far: Far,
    answered_after: Option<Duration>,
    /// When the callee answered, before the caller was told.
    far_answered_after: Option<Duration>,
    /// What the caller's audio was really encoded with.
    heard_codec: Option<String>,
    outputs: VecDeque<Output>,
}

#[derive(Debug)]
pub(super) struct Fork {
    pub(super) leg: Leg,
    state: ForkState,
    /// Whether it said that it rings.
    rings: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForkState {
    /// It was cancelled or lost the race; a 2xx that crosses is acknowledged and hung up.
    Cancelled,
    /// It has a final response or its dialog is over.
    Ended,
    /// No final response yet.
    Ringing,
    /// Its dialog is confirmed.
    Up,
}

#[derive(Debug)]
enum State {
    /// The record waits for the caller's media report.
    Ending { cause: HangupCause, ended_after: Duration, deadline: Instant },
    /// The record was given out.
    Over,
    /// Forks ring; `early` is the one whose early media the caller hears.
    Ringing { deadline: Instant, early: Option<usize> },
    /// The callee answered; the caller's 200 waits for the journal.
    Answering { answer: SessionDescription },
    /// Both sides are up.
    Up,
}

#[derive(Clone, Copy, Debug, Default)]
struct Far {
    /// Its final response.
    status: Option<u16>,
    /// What that response or its hang-up means.
    cause: Option<HangupCause>,
    /// The status that the caller is told: the final response, or what silence stands for.
    reply: Option<u16>,
}

impl Call {
    /// A call that rings all of the callee's bindings at once, or waits for its first [`Input::Attempt`].
    ///
    /// # Errors
    /// [`Stillborn`], with 488 without a codec in common and 503 without a free port.
    pub fn new(now: Instant, setup: Setup, ports: &mut dyn Ports) -> Result<Call, Stillborn> {
        let Setup { facts, limits, offer, caller_policy, callee_policy, caller_at, callees, session_id } =
            setup;
        let Some(port) = ports.open(session_id, caller_at) else {
            return Err(Stillborn { status: 503, facts: Box::new(facts), ports: Vec::new() });
        };
        let caller = Leg::new(port, session_id, caller_policy, Some(caller_at));
        let deadline = now + limits.ring;
        let mut call = Call {
            facts,
            limits,
            started: now,
            caller,
            forks: Vec::new(),
            state: State::Ringing { deadline, early: None },
            renegotiation: None,
            offer: offer.clone(),
            callee_policy,
            session_id,
            in_turn: callees == Callees::InTurn,
            winner: None,
            far: Far::default(),
            answered_after: None,
            far_answered_after: None,
            heard_codec: None,
            outputs: VecDeque::new(),
        };
        if let Some(offer) = offer
            && call.caller.exchange.receive_offer(offer).is_err()
        {
            return Err(call.stillborn(488));
        }
        let Callees::AtOnce(callees_at) = callees else { return Ok(call) };
        for callee_at in callees_at {
            let Some(port) = ports.open(session_id, callee_at) else { break };
            if let Err(status) = call.ring(port, callee_at) {
                return Err(call.stillborn(status));
            }
        }
        if call.forks.is_empty() { Err(call.stillborn(503)) } else { Ok(call) }
    }

    /// Feeds what happened; drain [`Call::poll_output`] afterwards.
    pub fn handle_input(&mut self, now: Instant, input: Input) {
        match input {
            Input::Acknowledged(party, answer) => self.acknowledged(now, party, answer),
            Input::Answered(fork, answer) => self.answered(now, fork, answer),
            Input::Attempt(attempt) => self.attempt(now, attempt),
            Input::Cancelled => self.cancelled(now),
            Input::End(cause) => self.end_by_us(now, cause),
            Input::Exhausted(status, cause) => self.exhausted(now, status, cause),
            Input::Failed(fork, status) => self.failed(now, fork, status, Some(status)),
            Input::HungUp(party, cause) => self.hung_up(now, party, cause),
            Input::Journalled => self.journalled(now),
            Input::Offer(party, offer) => self.offer(party, offer),
            Input::Offered(party, result) => self.offered(now, party, result),
            Input::Provisional(fork, status, answer) => self.provisional(fork, status, answer),
            Input::Report(port, report) => self.report(port, &report),
            Input::Timeout => self.timeout(now),
            Input::Warn => self.warn(),
            Input::Unreached(fork, status) => self.failed(now, fork, status, None),
        }
    }

    /// The next thing to do; drain to `None` after every input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to feed [`Input::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Ending { deadline, .. } | State::Ringing { deadline, .. } => Some(deadline),
            State::Answering { .. } | State::Over | State::Up => None,
        }
    }

    /// Whether the record was given out and nothing is left to do.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// The ports that the call holds or held.
    pub fn ports(&self) -> impl Iterator<Item = PortId> + '_ {
        std::iter::once(self.caller.port()).chain(self.forks.iter().map(|fork| fork.leg.port()))
    }

    /// Whether its caller's leg is over.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::Ending { .. } | State::Over)
    }

    /// What is known of it from its INVITE.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Whether it still looks for somebody to answer.
    pub fn is_ringing(&self) -> bool {
        matches!(self.state, State::Ringing { .. })
    }

    /// How far a fork is; `None` once it is over, or was never invited.
    pub(super) fn fork_state(&self, place: usize) -> Option<CallState> {
        let fork = self.forks.get(place)?;
        match fork.state {
            ForkState::Cancelled | ForkState::Ended => None,
            ForkState::Ringing if fork.rings => Some(CallState::Ringing),
            ForkState::Ringing => Some(CallState::Queued),
            ForkState::Up => Some(CallState::Answered),
        }
    }

    /// From the INVITE to the caller's 200.
    pub(super) fn answered_after(&self) -> Option<Duration> {
        self.answered_after
    }

    /// From the INVITE to the callee's 200.
    pub(super) fn far_answered_after(&self) -> Option<Duration> {
        self.far_answered_after
    }

    /// The media group of its ports.
    pub fn group(&self) -> u64 {
        self.session_id
    }

    pub(super) fn push(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    /// The callee that is in the call, once one is.
    pub(super) fn callee(&self) -> Option<usize> {
        match self.state {
            State::Answering { .. } | State::Up => self.winner,
            State::Ending { .. } | State::Over | State::Ringing { .. } => None,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.state, State::Up)
    }

    pub(super) fn leg(&self, party: Party) -> Option<&Leg> {
        match party {
            Party::Callee(fork) => self.forks.get(fork).map(|fork| &fork.leg),
            Party::Caller => Some(&self.caller),
        }
    }

    pub(super) fn leg_mut(&mut self, party: Party) -> Option<&mut Leg> {
        match party {
            Party::Callee(fork) => self.forks.get_mut(fork).map(|fork| &mut fork.leg),
            Party::Caller => Some(&mut self.caller),
        }
    }

    fn stillborn(self, status: u16) -> Stillborn {
        let ports = self.ports().collect();
        Stillborn { status, facts: Box::new(self.facts), ports }
    }

    /// Adds a fork and invites it.
    fn ring(&mut self, port: Port, at: IpAddr) -> Result<(), u16> {
        let place = self.forks.len();
        // Session ids of one call differ in their low bits (RFC 8866 §5.2: unique per session and host).
        let fork_session = self.session_id.wrapping_add(1).wrapping_add(place as u64);
        let mut leg = Leg::new(port, fork_session, self.callee_policy.clone(), Some(at));
        let offer = match &self.offer {
            Some(offered) => sdp::offer_from(offered, leg.local(), &self.caller.policy, &leg.policy)
                .map_err(|refused| refused.status()),
            None => {
                let codecs = leg.policy.apply(&self.caller.policy.codecs());
                Ok(sdp::offer(leg.local(), codecs, Direction::SendRecv))
            }
        };
        let offer = offer.and_then(|offer| leg.exchange.send_offer(offer).map_err(|_| 488_u16));
        self.forks.push(Fork { leg, state: ForkState::Ringing, rings: false });
        self.push(Output::Invite(place, offer?));
        Ok(())
    }

    /// Tries the next way.
    fn attempt(&mut self, now: Instant, attempt: Attempt) {
        if !self.is_ringing() {
            return self.push(Output::Media(attempt.port.id, MediaCommand::Close));
        }
        // The record tells of the last attempt alone.
        self.far = Far::default();
        self.facts.trunk = Some(attempt.trunk);
        if let Some(tariff) = &mut self.facts.tariff {
            tariff.cost = attempt.cost;
        }
        if let Err(status) = self.ring(attempt.port, attempt.at) {
            self.give_up_on_forks(now, status);
        }
    }

    /// There is nothing left to try: the caller is told what the last attempt came to.
    fn exhausted(&mut self, now: Instant, status: u16, cause: HangupCause) {
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

    fn provisional(&mut self, place: usize, status: u16, answer: Option<SessionDescription>) {
        let State::Ringing { early, .. } = &mut self.state else {
            return; // A provisional response after the call was decided changes nothing.
        };
        let Some(fork) = self.forks.get_mut(place).filter(|fork| fork.state == ForkState::Ringing) else {
            return;
        };
        fork.rings = true;
        let Some(answer) =
            answer.filter(|_| self.offer.is_some() && early.is_none_or(|other| other == place))
        else {
            // Once the caller hears one fork, a bare 180 of another would only confuse its phone.
            if early.is_none() {
                self.push(Output::Ring(status, None));
            }
            return;
        };
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

    fn answered(&mut self, now: Instant, place: usize, answer: Option<SessionDescription>) {
        let Some(fork) = self.forks.get_mut(place) else { return };
        if !matches!(self.state, State::Ringing { .. }) || fork.state != ForkState::Ringing {
            // A 2xx that crossed our CANCEL: the dialog stands and is ended (RFC 3261 §9.1).
            fork.state = ForkState::Ended;
            self.push(Output::Bye(Party::Callee(place)));
            return;
        }
        let settled = match &answer {
            Some(answer) => fork.leg.exchange.receive_answer(answer.clone()).is_ok(),
            // A 2xx without a description follows a provisional response that had it (RFC 3261 §13.2.1).
            None => fork.leg.exchange.negotiated().is_some(),
        };
        let heard = answer.or_else(|| fork.leg.settled()).filter(|_| settled);
        fork.state = ForkState::Up;
        let reply = heard.and_then(|heard| self.answer_for_caller(&heard));
        let Some(reply) = reply else {
            let cause = Some(HangupCause::IncompatibleDestination);
            self.far = Far { status: Some(200), cause, reply: Some(488) };
            if let Some(fork) = self.forks.get_mut(place) {
                fork.state = ForkState::Ended;
            }
            self.push(Output::Bye(Party::Callee(place)));
            self.release(Party::Callee(place));
            self.give_up_on_forks(now, 488);
            return;
        };
        self.far = Far { status: Some(200), cause: None, reply: None };
        self.drop_forks(Some(place));
        self.connect(place);
        self.tell(Party::Callee(place), Some(MediaCommand::Answered));
        self.winner = Some(place);
        self.state = State::Answering { answer: reply };
        let answered_after = Some(now.saturating_duration_since(self.started));
        self.far_answered_after = answered_after;
        let record = self.record(answered_after, None, None, Quality::default());
        self.push(Output::Journal(Box::new(record)));
    }

    fn journalled(&mut self, now: Instant) {
        let state = std::mem::replace(&mut self.state, State::Over);
        let State::Answering { answer } = state else {
            self.state = state; // The caller hung up while the disk was writing.
            return;
        };
        self.answered_after = Some(now.saturating_duration_since(self.started));
        self.state = State::Up;
        self.tell(Party::Caller, Some(MediaCommand::Answered));
        self.push(Output::Answer(answer));
    }

    /// A fork is over with `status` in effect; `response` is what it really said.
    fn failed(&mut self, now: Instant, place: usize, status: u16, response: Option<u16>) {
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
        // Whoever heard the far end speak has been told why; another trunk would only tell it again.
        if self.in_turn && early.is_none() && another_may_mend(status) {
            return self.push(Output::NextAttempt(status));
        }
        // Somebody declined for everybody (RFC 3261 §16.7 step 5).
        let everybody = status >= 600;
        if everybody || self.forks.iter().all(|fork| fork.state == ForkState::Ended) {
            let status = self.far.reply.unwrap_or(status);
            self.give_up_on_forks(now, refusal(status));
        }
    }

    /// No fork answers any more: the caller gets `status`.
    fn give_up_on_forks(&mut self, now: Instant, status: u16) {
        self.drop_forks(None);
        self.push(Output::Reject(status));
        let cause = self.far.cause.unwrap_or(HangupCause::from_sip_status(status));
        self.finish(now, cause);
    }

    fn cancelled(&mut self, now: Instant) {
        match self.state {
            State::Ringing { .. } => {
                self.drop_forks(None);
                self.push(Output::Reject(487));
                self.finish(now, HangupCause::OriginatorCancel);
            }
            // The callee answered while the CANCEL was on its way and the caller has no 200 yet.
            State::Answering { .. } => {
                self.bye_callee();
                self.push(Output::Reject(487));
                self.finish(now, HangupCause::OriginatorCancel);
            }
            State::Ending { .. } | State::Over | State::Up => {} // Too late (RFC 3261 §9.2).
        }
    }

    fn hung_up(&mut self, now: Instant, party: Party, cause: HangupCause) {
        if let Party::Callee(place) = party
            && let Some(fork) = self.forks.get_mut(place)
        {
            fork.state = ForkState::Ended;
            if self.callee() != Some(place) {
                self.release(party);
                return; // A fork that had lost hangs up before our BYE reaches it.
            }
        }
        match (&self.state, party) {
            (State::Up | State::Answering { .. }, Party::Caller) => self.bye_callee(),
            (State::Up, Party::Callee(_)) => self.push(Output::Bye(Party::Caller)),
            (State::Answering { .. }, Party::Callee(_)) => self.push(Output::Reject(480)),
            (State::Ringing { .. }, Party::Caller) => self.drop_forks(None),
            (State::Ending { .. } | State::Over, _) | (State::Ringing { .. }, Party::Callee(_)) => return,
        }
        self.far.cause = self.far.status.is_some().then_some(cause);
        self.finish(now, cause);
    }

    fn end_by_us(&mut self, now: Instant, cause: HangupCause) {
        let refusal = if cause == HangupCause::AllottedTimeout { 402 } else { 503 };
        match self.state {
            State::Ringing { .. } => {
                self.drop_forks(None);
                self.push(Output::Reject(refusal));
            }
            State::Answering { .. } => {
                self.bye_callee();
                self.push(Output::Reject(refusal));
            }
            State::Up => {
                self.bye_callee();
                self.push(Output::Bye(Party::Caller));
            }
            State::Ending { .. } | State::Over => return,
        }
        self.finish(now, cause);
    }

    /// The caller hears that the call cannot go on for long.
    fn warn(&mut self) {
        if self.is_up() {
            self.tell(Party::Caller, Some(MediaCommand::Tone));
        }
    }

    fn bye_callee(&mut self) {
        if let Some(callee) = self.winner {
            self.push(Output::Bye(Party::Callee(callee)));
        }
    }

    fn timeout(&mut self, now: Instant) {
        match self.state {
            State::Ringing { deadline, .. } if deadline <= now => {
                self.far = Far::default();
                self.drop_forks(None);
                self.push(Output::Reject(480));
                self.finish(now, HangupCause::NoAnswer);
            }
            // The relay owes a report and does not give it: the record is worth more than its figures.
            State::Ending { deadline, .. } if deadline <= now => self.complete(Quality::default()),
            _ => {}
        }
    }

    fn report(&mut self, port: PortId, report: &Report) {
        if port == self.caller.port() && matches!(self.state, State::Ending { .. }) {
            self.heard_codec = report.codec.clone();
            self.complete(quality(report));
        }
    }

    /// The caller's leg is over: every port is closed, and the record waits for the caller's report.
    fn finish(&mut self, now: Instant, cause: HangupCause) {
        let ended_after = now.saturating_duration_since(self.started);
        for place in 0..self.forks.len() {
            self.release(Party::Callee(place));
        }
        self.release(Party::Caller);
        self.state = State::Ending { cause, ended_after, deadline: now + self.limits.report };
    }

    fn complete(&mut self, mut quality: Quality) {
        let State::Ending { cause, ended_after, .. } = self.state else { return };
        if self.answered_after.is_none() {
            // The callee was rung with a port of ours waiting for the caller's audio: an RTP session, unanswered.
            quality.verdict = Some(MediaVerdict::Unanswered);
        }
        let record = self.record(self.answered_after, Some(ended_after), Some(cause), quality);
        self.state = State::Over;
        self.push(Output::Ended(Box::new(record)));
    }

    fn record(
        &self,
        answered_after: Option<Duration>,
        ended_after: Option<Duration>,
        cause: Option<HangupCause>,
        quality: Quality,
    ) -> Cdr {
        let micros = |after: Duration| i64::try_from(after.as_micros()).unwrap_or(i64::MAX);
        let callee = self.winner.and_then(|place| self.forks.get(place)).filter(|_| answered_after.is_some());
        // Of several codecs that SDP settled, the one that was heard; and audio is relayed as it comes.
        let heard = self.heard_codec.as_ref();
        let relayed = heard.filter(|name| callee.is_some_and(|fork| fork.leg.has_codec(name)));
        let outcome = Outcome {
            answered_after_us: answered_after.map(micros),
            ended_after_us: ended_after.map(micros),
            codec_a: heard.cloned().or_else(|| self.caller.codec()).filter(|_| answered_after.is_some()),
            codec_b: relayed.cloned().or_else(|| callee.and_then(|fork| fork.leg.codec())),
            hangup_cause: cause,
            bridge_cause: self.far.cause,
            sip_status: self.far.status,
            quality,
        };
        build(&self.facts, outcome)
    }

    /// Ends every fork but `kept`.
    fn drop_forks(&mut self, kept: Option<usize>) {
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

    /// Our answer to the caller, made from what a fork answered; for a caller that made no offer, our offer.
    fn answer_for_caller(&mut self, heard: &SessionDescription) -> Option<SessionDescription> {
        let local = self.caller.local();
        let Some(offered) = self.offer.clone() else {
            let (_, audio) = heard.carried_audio()?;
            // One audio codec: were there two, the caller might take another than the callee already sends.
            let mut codecs = self.caller.policy.apply(&audio.codecs);
            let first = codecs.iter().position(|codec| !codec.is_auxiliary());
            let mut place = 0..;
            codecs.retain(|codec| codec.is_auxiliary() | (place.next() == first));
            let offer = sdp::offer(local, codecs, heard.direction_of(audio));
            return self.caller.exchange.send_offer(offer).ok();
        };
        let answer = sdp::answer_to(&offered, heard, local).ok()?;
        self.caller.exchange.send_answer(answer).ok()
    }

    /// Describes both legs and relays between them.
    pub(super) fn connect(&mut self, place: usize) {
        let Some(fork) = self.forks.get(place) else { return };
        let commands = [
            (Party::Caller, self.caller.describe()),
            (Party::Callee(place), fork.leg.describe()),
            (Party::Caller, self.caller.bridge_to(&fork.leg)),
            (Party::Callee(place), fork.leg.bridge_to(&self.caller)),
        ];
        for (party, command) in commands {
            self.tell(party, command);
        }
    }

    fn tell(&mut self, party: Party, command: Option<MediaCommand>) {
        let port = self.leg(party).filter(|leg| leg.is_open()).map(Leg::port);
        if let (Some(port), Some(command)) = (port, command) {
            self.push(Output::Media(port, command));
        }
    }

    fn release(&mut self, party: Party) {
        let Some(leg) = self.leg_mut(party) else { return };
        let port = leg.port();
        if let Some(command) = leg.close() {
            self.push(Output::Media(port, command));
        }
    }

    fn acknowledged(&mut self, now: Instant, party: Party, answer: Option<SessionDescription>) {
        let Some(leg) = self.leg_mut(party) else { return };
        if leg.exchange.local_offer().is_none() {
            return; // The usual ACK: our 2xx had the answer.
        }
        let settled = answer.is_some_and(|answer| leg.exchange.receive_answer(answer).is_ok());
        match (settled, self.callee()) {
            (true, Some(callee)) => self.connect(callee),
            (true, None) => {}
            // We offered, and the party acknowledged without agreeing on anything (RFC 3261 §13.2.2.4).
            (false, _) if party == Party::Caller && self.is_up() && !self.caller_has_settled() => {
                self.end_by_us(now, HangupCause::IncompatibleDestination);
            }
            (false, _) => {
                if let Some(leg) = self.leg_mut(party) {
                    leg.exchange.roll_back();
                }
            }
        }
    }

    fn caller_has_settled(&self) -> bool {
        self.caller.exchange.negotiated().is_some()
    }
}
