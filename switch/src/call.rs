//! One call: a back-to-back user agent (RFC 7092) as a state machine.
//!
//! It handles session descriptions and media ports but no SIP messages: the switch turns requests and
//! responses into [`Input`]s, and [`Output`]s into requests and responses. A call has two sides. A side is a
//! party or a conference room. A room has neither dialog nor port: a party in the call then joins the room's
//! mix instead of being relayed to another party. The bindings of an extension ring at once; the first answer
//! wins and the others are cancelled. Trunks are tried in turn.
//!
//! `ringing` finds an answer; `ending` ends a call and decides what its record contains; `negotiation` and
//! `seating` handle offers between answered parties, and between a party and a room; `stay` limits the
//! duration of an answered call.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use sidetone_call::record::Facts;
use sidetone_model::call::HangupCause;
use sidetone_model::live_call::CallState;
use sidetone_model::quality::Quality;
use sidetone_sip::sdp::{CodecPolicy, SessionDescription};

use crate::face::{
    Callees, Input, LegName, Limits, MediaCommand, Output, Party, PortId, Ports, Setup, Sides, Stillborn,
};
use crate::leg::Leg;
use crate::negotiation::Renegotiation;
use crate::stay::Stay;

/// State of one call.
#[derive(Debug)]
pub struct Call {
    pub(super) facts: Facts,
    pub(super) limits: Limits,
    pub(super) started: Instant,
    pub(super) near: Near,
    pub(super) forks: Vec<Fork>,
    pub(super) state: State,
    pub(super) renegotiation: Option<Renegotiation>,
    /// The codecs offered to every fork.
    pub(super) callee_policy: CodecPolicy,
    /// SDP session id of the caller's leg; those of the forks follow it.
    pub(super) session_id: u64,
    group: u64,
    /// Whether forks are tried one after the other.
    pub(super) in_turn: bool,
    /// The fork that answered first.
    pub(super) winner: Option<usize>,
    /// The far end's result of the last attempt.
    pub(super) far: Far,
    pub(super) answered_after: Option<Duration>,
    /// From the INVITE to the callee's answer, which precedes the answer to the caller.
    pub(super) far_answered_after: Option<Duration>,
    /// Whether its parties were moved into a room after they had talked.
    pub(super) merged: bool,
    /// Why the caller's leg ended, when a room keeps the other party.
    pub(super) left: Option<HangupCause>,
    /// The media figures of the record, once the report of its leg has arrived.
    pub(super) quality: Option<Quality>,
    /// The same for the called party's leg.
    pub(super) quality_b: Option<Quality>,
    /// The codec that the recorded audio was really encoded with.
    pub(super) heard_codec: Option<String>,
    /// The limits of its duration.
    pub(super) stay: Stay,
    outputs: VecDeque<Output>,
}

/// The calling side.
#[derive(Debug)]
pub(super) enum Near {
    Party(Box<Caller>),
    Room,
}

#[derive(Debug)]
pub(super) struct Caller {
    pub(super) leg: Leg,
    /// The offer of its INVITE.
    pub(super) offer: Option<SessionDescription>,
}

#[derive(Debug)]
pub(super) struct Fork {
    pub(super) leg: Leg,
    pub(super) state: ForkState,
    /// Whether it sent a ringing response.
    pub(super) rings: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForkState {
    /// It was cancelled or another fork won; a 2xx that crosses is acknowledged and hung up.
    Cancelled,
    /// It has a final response or its dialog is over.
    Ended,
    Ringing,
    /// Its dialog is confirmed.
    Up,
}

#[derive(Debug)]
pub(super) enum State {
    /// The record waits for the media reports of its legs.
    Ending { cause: HangupCause, ended_after: Duration, deadline: Instant },
    /// The record was output.
    Over,
    /// Forks ring; `early` is the fork whose early media the caller hears.
    Ringing { deadline: Instant, early: Option<usize> },
    /// The far side answered; the answer to the caller waits until the journal is written.
    Answering { answer: Option<SessionDescription> },
    /// Both sides are up.
    Up,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Far {
    /// Its final response.
    pub(super) status: Option<u16>,
    /// The hangup cause of that response, or of its BYE.
    pub(super) cause: Option<HangupCause>,
    /// The status sent to the caller: the final response, or a substitute when there was none.
    pub(super) reply: Option<u16>,
}

impl Call {
    /// Creates a call. It rings all of the callee's bindings at once, waits for its first [`Input::Attempt`],
    /// or is answered for a room.
    ///
    /// # Errors
    /// [`Stillborn`], with 488 when there is no common codec, and 503 when there is no free port.
    pub fn new(now: Instant, setup: Setup, ports: &mut dyn Ports) -> Result<Call, Stillborn> {
        let Setup { facts, limits, sides, session_id, group } = setup;
        let (caller, callee) = match sides {
            Sides::Bridge { caller, callee } => (Some(caller), Some(callee)),
            Sides::FromRoom { callee } => (None, Some(callee)),
            Sides::IntoRoom { caller } => (Some(caller), None),
        };
        let near = match caller {
            None => Near::Room,
            Some(caller) => {
                let Some(port) = ports.open(LegName { call: facts.call, fork: None }, group, caller.at)
                else {
                    return Err(Stillborn { status: 503, facts: Box::new(facts), ports: Vec::new() });
                };
                let leg = Leg::new(port, session_id, caller.policy, Some(caller.at));
                Near::Party(Box::new(Caller { leg, offer: caller.offer }))
            }
        };
        let deadline = now + limits.ring;
        let mut call = Call {
            facts,
            limits,
            started: now,
            near,
            forks: Vec::new(),
            state: State::Ringing { deadline, early: None },
            renegotiation: None,
            callee_policy: callee.as_ref().map(|callee| callee.policy.clone()).unwrap_or_default(),
            session_id,
            group,
            in_turn: callee.as_ref().is_some_and(|callee| callee.callees == Callees::InTurn),
            winner: None,
            far: Far::default(),
            answered_after: None,
            far_answered_after: None,
            merged: false,
            left: None,
            quality: None,
            quality_b: None,
            heard_codec: None,
            stay: Stay::default(),
            outputs: VecDeque::new(),
        };
        let begun = match callee.map(|callee| callee.callees) {
            None => call.take_for_a_room(now),
            Some(callees) => call.begin_to_ring(callees, ports),
        };
        match begun {
            Ok(()) => Ok(call),
            Err(status) => Err(call.stillborn(status)),
        }
    }

    /// Handles an input; drain [`Call::poll_output`] afterwards.
    pub fn handle_input(&mut self, now: Instant, input: Input) {
        match input {
            Input::Acknowledged(party, answer) => self.acknowledged(now, party, answer),
            Input::Answered(fork, answer) => self.answered(now, fork, answer),
            Input::Attempt(attempt) => self.attempt(now, attempt),
            Input::Cancelled => self.cancelled(now),
            Input::Dismiss(party, cause) => self.dismiss(now, party, cause),
            Input::End(cause) => self.end_by_us(now, cause),
            Input::Exhausted(status, cause) => self.exhausted(now, status, cause),
            Input::Failed(fork, status) => self.failed(now, fork, status, Some(status)),
            Input::HungUp(party, cause) => self.hung_up(now, party, cause),
            Input::Journalled => self.journalled(now),
            Input::Merge(without) => self.merge(now, without),
            Input::Offer(party, offer) => self.offer(party, offer),
            Input::OfferDue(party) => self.offer_due(party),
            Input::Offered(party, result) => self.offered(now, party, result),
            Input::Probed(party, is_there) => self.probed(now, party, is_there),
            Input::Provisional(fork, status, answer) => self.provisional(fork, status, answer),
            Input::Refresh(party) => self.refresh(party),
            Input::Report(port, report) => self.report(now, port, &report),
            Input::Silent(port, silent_for) => self.silent(now, port, silent_for),
            Input::Timeout => self.timeout(now),
            Input::Warn => self.warn(),
            Input::Unreached(fork, status) => self.failed(now, fork, status, None),
        }
        self.note_terms(now);
    }

    /// Returns the next action; drain to `None` after every input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns when to feed [`Input::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Ending { deadline, .. } | State::Ringing { deadline, .. } => Some(deadline),
            State::Up => self.stay_until(),
            State::Answering { .. } | State::Over => None,
        }
    }

    /// Whether the record was output and nothing is left to do.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// Returns the ports that the call holds or held.
    pub fn ports(&self) -> impl Iterator<Item = PortId> + '_ {
        self.legs().map(|(_, leg)| leg.port())
    }

    /// Returns the party that uses a port.
    pub fn party_at(&self, port: PortId) -> Option<Party> {
        self.legs().find(|(_, leg)| leg.port() == port).map(|(party, _)| party)
    }

    /// Whether the call has ended; its record may still be waiting.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::Ending { .. } | State::Over)
    }

    /// Returns the facts of its INVITE.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Whether it still waits for an answer.
    pub fn is_ringing(&self) -> bool {
        matches!(self.state, State::Ringing { .. })
    }

    /// Returns the media group of its ports.
    pub fn group(&self) -> u64 {
        self.group
    }

    /// Returns the state of a fork; `None` once it is over, or if it was never invited.
    pub(super) fn fork_state(&self, place: usize) -> Option<CallState> {
        let fork = self.forks.get(place)?;
        match fork.state {
            ForkState::Cancelled | ForkState::Ended => None,
            ForkState::Ringing if fork.rings => Some(CallState::Ringing),
            ForkState::Ringing => Some(CallState::Queued),
            ForkState::Up => Some(CallState::Answered),
        }
    }

    /// Whether the caller's leg is still open; a call that a room placed has none.
    pub(super) fn has_caller(&self) -> bool {
        self.caller().is_some_and(Leg::is_open)
    }

    /// Returns the time from the INVITE to the caller's 200.
    pub(super) fn answered_after(&self) -> Option<Duration> {
        self.answered_after
    }

    /// Returns the time from the INVITE to the callee's 200.
    pub(super) fn far_answered_after(&self) -> Option<Duration> {
        self.far_answered_after
    }

    pub(super) fn push(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    /// Returns the callee that answered, once one did.
    pub(super) fn callee(&self) -> Option<usize> {
        match self.state {
            State::Answering { .. } | State::Up => self.winner,
            State::Ending { .. } | State::Over | State::Ringing { .. } => None,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.state, State::Up)
    }

    pub(super) fn caller(&self) -> Option<&Leg> {
        self.leg(Party::Caller)
    }

    pub(super) fn leg(&self, party: Party) -> Option<&Leg> {
        match (party, &self.near) {
            (Party::Callee(fork), _) => self.forks.get(fork).map(|fork| &fork.leg),
            (Party::Caller, Near::Party(caller)) => Some(&caller.leg),
            (Party::Caller, Near::Room) => None,
        }
    }

    /// Updates the source address of a party's SIP, for example after a change of its network.
    pub(super) fn heard_from(&mut self, party: Party, at: IpAddr) {
        if let Some(leg) = self.leg_mut(party) {
            leg.signalling = Some(at);
        }
    }

    pub(super) fn leg_mut(&mut self, party: Party) -> Option<&mut Leg> {
        match (party, &mut self.near) {
            (Party::Callee(fork), _) => self.forks.get_mut(fork).map(|fork| &mut fork.leg),
            (Party::Caller, Near::Party(caller)) => Some(&mut caller.leg),
            (Party::Caller, Near::Room) => None,
        }
    }

    fn legs(&self) -> impl Iterator<Item = (Party, &Leg)> {
        let forks = self.forks.iter().enumerate().map(|(place, fork)| (Party::Callee(place), &fork.leg));
        self.caller().map(|leg| (Party::Caller, leg)).into_iter().chain(forks)
    }

    fn stillborn(self, status: u16) -> Stillborn {
        let ports = self.ports().collect();
        Stillborn { status, facts: Box::new(self.facts), ports }
    }

    /// The journal entry is written: answers the caller, and seats the parties that go into a room.
    fn journalled(&mut self, now: Instant) {
        let state = std::mem::replace(&mut self.state, State::Over);
        let State::Answering { answer } = state else {
            self.state = state; // The caller hung up while the disk was writing.
            return;
        };
        self.answered_after = Some(now.saturating_duration_since(self.started));
        self.state = State::Up;
        self.stay.begin(now);
        self.tell(Party::Caller, Some(MediaCommand::Answered));
        self.push(Output::Answer(answer));
        self.seat_who_came_for_a_room();
    }

    fn timeout(&mut self, now: Instant) {
        match self.state {
            State::Ringing { deadline, .. } if deadline <= now => self.ring_out(now),
            // The relay did not deliver a report in time: the record is output without its figures.
            State::Ending { deadline, .. } if deadline <= now => self.complete(),
            State::Up => self.stay_timeout(now),
            _ => {}
        }
    }

    /// Plays the credit warning to the caller, or to the party that a room called.
    fn warn(&mut self) {
        let party = match (&self.near, self.winner) {
            (Near::Room, Some(place)) => Party::Callee(place),
            (Near::Party(_), _) | (Near::Room, None) => Party::Caller,
        };
        if self.is_up() {
            self.tell(party, Some(MediaCommand::Tone));
        }
    }

    /// Describes both legs to the relay and bridges them; codecs that the other side lacks are transcoded.
    pub(super) fn connect(&mut self, place: usize) {
        let (Some(caller), Some(fork)) = (self.caller(), self.forks.get(place)) else { return };
        let commands = [
            (Party::Caller, caller.describe()),
            (Party::Callee(place), fork.leg.describe()),
            (Party::Caller, caller.bridge_to(&fork.leg)),
            (Party::Callee(place), fork.leg.bridge_to(caller)),
        ];
        let plans = [
            (Party::Caller, caller.plan_towards(&fork.leg)),
            (Party::Callee(place), fork.leg.plan_towards(caller)),
        ];
        for (party, command) in commands {
            self.tell(party, command);
        }
        for (party, plan) in plans {
            let command = self.leg_mut(party).and_then(|leg| leg.transcode(plan));
            self.tell(party, command);
        }
    }

    pub(super) fn tell(&mut self, party: Party, command: Option<MediaCommand>) {
        let port = self.leg(party).filter(|leg| leg.is_open()).map(Leg::port);
        if let (Some(port), Some(command)) = (port, command) {
            self.push(Output::Media(port, command));
        }
    }

    /// Closes a party's port, only once.
    pub(super) fn release(&mut self, party: Party) {
        let Some(leg) = self.leg_mut(party) else { return };
        let (port, was_seated) = (leg.port(), leg.unseat());
        if was_seated {
            self.push(Output::Left(party));
        }
        if let Some(command) = self.leg_mut(party).and_then(Leg::close) {
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
            (true, _) if self.is_for_a_room(party) => self.settle_in_room(party),
            (true, Some(callee)) => self.connect(callee),
            (true, None) => {}
            // We made the offer, and the party's ACK contains no acceptable answer (RFC 3261 §13.2.2.4).
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
        self.caller().is_some_and(|leg| leg.exchange.negotiated().is_some())
    }
}
