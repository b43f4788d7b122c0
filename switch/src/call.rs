//! One call: a back-to-back user agent (RFC 7092) as a state machine.
//!
//! It handles session descriptions and media ports but no SIP messages: the switch turns requests and
//! responses into [`Input`]s, and [`Output`]s into requests and responses. A call has two sides. A side is a
//! party or a conference room. A room has neither dialog nor port: a party in the call then joins the room's
//! mix instead of being relayed to another party. The bindings of an extension ring at the same time; the first
//! answer wins and the others are cancelled. Trunks are tried in turn.
//!
//! `parties` are the legs and the state of the call. `ringing` finds an answer; `ending` ends a call and decides what
//! its record contains; `negotiation` and `conference_leg` handle offers between answered parties, and between a
//! party and a room; `stay` limits the duration of an answered call.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Instant;

use sidetone_call::record::Facts;
use sidetone_model::call::{EndedBy, HangupCause};
use sidetone_model::call_operation::RecordStep;
use sidetone_model::cdr::Called;
use sidetone_model::media_quality::LegSide;
use sidetone_model::quality::MediaVerdict;
use sidetone_sip::sdp::{IceRule, NegotiationError, SessionDescription};

use crate::conference_leg::{
    merge, offer_due, seat_caught_up, seat_who_came_for_a_room, settle_in_room, take_for_a_room,
};
use crate::ending::Ending;
use crate::io::{
    CalleeSide, Callees, CallerSide, Input, KeyForm, Linking, MediaCommand, Onward, Output, Party, Port,
    PortId, Setup, Sides,
};
use crate::leg::Leg;
use crate::link;
use crate::linked_mix;
use crate::negotiation::Negotiation;
use crate::own_mix;
use crate::parties::{Caller, Near, Parked, Parties, RequestPhase, State};
use crate::requested_leg::offer_alone;
use crate::ringing::Ringing;
use crate::stay::Stay;

/// State of one call.
#[derive(Debug)]
pub struct Call {
    parties: Parties,
    ringing: Ringing,
    negotiation: Negotiation,
    ending: Ending,
    stay: Stay,
    /// The caller, until its port is open.
    caller: Option<Box<CallerSide>>,
    /// The targets, until the call rings them.
    callees: Option<Callees>,
}

impl Call {
    /// Creates a call. It opens its ports by [`Output::OpenPort`]; then it rings all of the callee's bindings,
    /// waits for its first [`Input::Attempt`], or is answered for a room.
    pub fn new(now: Instant, setup: Setup) -> Call {
        let Setup { facts, limits, sides, session_id, group, keys } = setup;
        let requested = matches!(sides, Sides::Requested { .. }).then_some(RequestPhase::Caller);
        let mut awaiting = None;
        let (caller, callee) = match sides {
            Sides::Bridge { caller, callee } => (Some(caller), Some(callee)),
            Sides::ForPeer { awaited, callee } => {
                awaiting = Some(awaited);
                (None, Some(callee))
            }
            Sides::FromRoom { callee } | Sides::Requested { caller: callee } => (None, Some(callee)),
            Sides::IntoRoom { caller } => (Some(caller), None),
            Sides::TakeOver { caller, awaited } => {
                awaiting = Some(awaited);
                (Some(caller), None)
            }
        };
        let in_turn = callee.as_ref().is_some_and(|callee| callee.callees == Callees::InTurn);
        let callee_policy = callee.as_ref().map(|callee| callee.policy.clone()).unwrap_or_default();
        let callee_srtp = callee.as_ref().map(|callee| callee.srtp).unwrap_or_default();
        let forwards = callee.as_ref().map(|callee| callee.forwards).unwrap_or_default();
        let mut call = Call {
            parties: Parties::new(now, (facts, limits), (session_id, group), keys),
            ringing: Ringing::new(in_turn, callee_policy, callee_srtp, forwards),
            negotiation: Negotiation::default(),
            ending: Ending::default(),
            stay: Stay::default(),
            caller: None,
            callees: callee.map(|callee| callee.callees),
        };
        call.parties.requested = requested;
        call.parties.awaiting = awaiting;
        match caller {
            Some(caller) => {
                let video = call.callees.is_some() && may_have_video(&caller);
                call.parties.push(Output::OpenPort { fork: None, towards: caller.at, video });
                call.caller = Some(Box::new(caller));
            }
            None => call.begin(now),
        }
        call
    }

    /// Handles an opened port: that of the caller first, then those of the forks.
    fn port_opened(&mut self, now: Instant, port: Option<Port>) {
        let Call { parties, ringing, ending, .. } = self;
        if !matches!(parties.state, State::Opening) {
            return ringing.port_opened(parties, ending, now, port);
        }
        let (Some(port), Some(caller)) = (port, self.caller.take()) else { return parties.refuse(503) };
        let is_browser = caller.offer.as_ref().is_some_and(|offer| offer.wants_webrtc());
        let has_ice = caller.offer.as_ref().is_some_and(|offer| offer.wants_plain_ice());
        let ice = if has_ice { IceRule::WhenOffered } else { IceRule::Never };
        let protection = parties.protection(caller.srtp, is_browser, ice);
        let mut leg = Leg::new(port, parties.session_id, caller.policy, Some(caller.at), protection);
        leg.calls_as(caller.user_agent);
        leg.has_keys(caller.key_form);
        let offer = caller.offer.map(|offer| leg.admit(offer)).transpose();
        let lacks_srtp = offer.is_err();
        parties.near = Near::Party(Box::new(Caller { leg, offer: offer.unwrap_or_default() }));
        if lacks_srtp {
            parties.lacks_srtp = true;
            return parties.refuse(NegotiationError::NoSrtp.status());
        }
        self.begin(now);
    }

    /// Rings the callee, or answers for a room, once the caller's port is open.
    fn begin(&mut self, now: Instant) {
        let Call { parties, ringing, ending, .. } = self;
        match self.callees.take() {
            Some(callees) => ringing.begin(parties, parties.started, callees),
            None => {
                if let Err(status) = take_for_a_room(parties, ending, now) {
                    parties.refuse(status);
                }
            }
        }
    }

    /// Handles an input; drain [`Call::poll_output`] afterwards.
    pub fn handle_input(&mut self, now: Instant, input: Input) {
        let Call { parties, ringing, negotiation, ending, stay, .. } = self;
        if let Some(place) = fork_ended_by(&input, parties) {
            negotiation.fork_ended(parties, place);
        }
        match input {
            Input::Acknowledged(party, answer) => self.acknowledged(now, party, answer),
            Input::Answered(fork, answer) => ringing.answered(parties, ending, now, fork, answer),
            Input::Attempt(attempt) => {
                if parties.is_ringing() {
                    stay.try_trunk(attempt.limit);
                }
                ringing.attempt(parties, attempt);
            }
            Input::Cancelled(cause) => ending.cancelled(parties, now, cause),
            Input::Divert(diverted) => ringing.divert(parties, ending, now, *diverted),
            Input::Doubted(party) => stay.doubted(parties, now, party),
            Input::EnterRoom(facts) => ringing.enter_room(parties, ending, now, *facts),
            Input::NotDiverted => ringing.not_diverted(parties, ending, now),
            Input::Dismiss(party, cause) => ending.dismiss(parties, now, party, cause, EndedBy::System),
            Input::End(cause) => ending.end_by_us(parties, now, cause),
            Input::Exhausted(status, cause) => ringing.exhausted(parties, ending, now, status, cause),
            Input::Failed(fork, status, cause) => {
                ringing.failed(parties, ending, now, fork, status, Some((status, cause)));
            }
            Input::Hold(holder) if negotiation.is_idle() => own_mix::hold(parties, holder),
            Input::HungUp(Party::Caller, _) if parties.waits_for_target() => {
                ending.hung_up(parties, now, Party::Caller, HangupCause::OriginatorCancel);
            }
            Input::HungUp(party, cause) => ending.hung_up(parties, now, party, cause),
            Input::Journalled => self.journalled(now),
            Input::Link(party, linking) => self.link(party, *linking),
            Input::Linked(mix, step) => link::mix(parties, mix, step),
            Input::Merge(without) if negotiation.is_idle() => merge(parties, ending, now, without),
            Input::Offer(party, offer) => self.offer(now, party, offer),
            Input::OfferDue(party) => self.offer_due(party),
            Input::Offered(party, result) => self.offered(now, party, result),
            Input::OfferWithdrawn(party) => negotiation.withdrawn(parties, party),
            Input::Onward(onward) => self.go_on(now, onward),
            Input::Park(party, place, until) => {
                negotiation.forget();
                link::park(parties, party, Parked { place, deadline: Some(until) });
            }
            Input::PeerChanged(party, peer) => link::peer_changed(parties, party, peer.map(|peer| *peer)),
            Input::PeerLeft(party, cause) => link::peer_left(parties, ending, now, party, cause),
            Input::PickUp(awaited) => ringing.picked_up(parties, ending, now, awaited),
            Input::Play(prompt, languages) => own_mix::play(parties, prompt, languages),
            Input::Played(port, token) if parties.link.is_some() => linked_mix::played(parties, port, token),
            Input::Played(port, token) => own_mix::played(parties, port, token),
            Input::PortOpened(port) => self.port_opened(now, port),
            Input::Probed(party, is_there) => stay.probed(parties, ending, now, party, is_there),
            Input::Provisional(fork, status, answer) => ringing.provisional(parties, fork, status, answer),
            Input::Record(step) if negotiation.is_idle() || !matches!(step, RecordStep::Start(_)) => {
                own_mix::record(parties, step);
            }
            // A negotiation is in progress.
            Input::Hold(_) | Input::Merge(_) | Input::Record(_) => {}
            Input::Referring(by) => parties.referrer = by,
            Input::Refresh(party) => negotiation.refresh(parties, party),
            Input::Report(port, report) => ending.report(parties, now, port, &report),
            Input::SeatLinked(party) => self.seat_linked(party),
            Input::Silent(port, silent_for) => stay.silent(parties, now, port, silent_for),
            Input::Timeout => self.timeout(now),
            Input::Unheard(fork) => ringing.unheard(parties, ending, now, fork),
            Input::Warn => self.warn(),
            Input::Unreached(fork, status) => ringing.failed(parties, ending, now, fork, status, None),
        }
        self.stay.note_terms(&self.parties, now);
    }

    /// Returns the next action; drain to `None` after every input.
    pub fn poll_output(&mut self) -> Option<Output> {
        let output = self.parties.outputs.pop_front();
        if output.is_none() && matches!(self.parties.state, State::Up) {
            // A call may be up for hours; its queue needs no memory meanwhile.
            self.parties.outputs = VecDeque::new();
        }
        output
    }

    /// Returns when to feed [`Input::Timeout`].
    pub fn next_timeout(&self) -> Option<Instant> {
        match self.parties.state {
            State::Ringing { deadline, .. } => self.ringing.asks_at.into_iter().chain([deadline]).min(),
            State::Ending { deadline, .. } => Some(deadline),
            State::Up => {
                let open = self.negotiation.until().into_iter().chain(link::parked_until(&self.parties));
                self.stay.until(&self.parties).into_iter().chain(open).min()
            }
            State::Answering { .. } | State::Opening | State::Over | State::Refused => None,
        }
    }

    /// Whether the record was output and nothing is left to do.
    pub fn is_over(&self) -> bool {
        self.parties.is_over()
    }

    /// Whether the call has ended; its record may still be waiting.
    pub fn has_ended(&self) -> bool {
        self.parties.has_ended()
    }

    /// Whether it still waits for an answer.
    pub fn is_ringing(&self) -> bool {
        self.parties.is_ringing()
    }

    /// Whether it has neither been answered nor ended.
    pub(super) fn is_unanswered(&self) -> bool {
        matches!(self.parties.state, State::Opening | State::Ringing { .. })
    }

    /// Returns the facts of its INVITE.
    pub fn facts(&self) -> &Facts {
        &self.parties.facts
    }

    /// Records the extension that is called. A requested call does this only once its calling party has answered.
    pub(super) fn calls(&mut self, called: Option<Called>) {
        self.parties.facts.called = called;
    }

    /// Returns the media group of its ports.
    pub fn group(&self) -> u64 {
        self.parties.group
    }

    /// Returns the ports that the call holds or held.
    pub fn ports(&self) -> impl Iterator<Item = PortId> + '_ {
        self.parties.ports()
    }

    /// Whether it could not begin.
    pub(super) fn is_refused(&self) -> bool {
        self.parties.is_refused()
    }

    /// Returns the legs of both sides, to read.
    pub(super) fn parties(&self) -> &Parties {
        &self.parties
    }

    /// Whether the parties may be moved into a room now.
    pub(super) fn can_merge(&self) -> bool {
        self.parties.can_merge() && self.negotiation.is_idle()
    }

    /// Updates the source address of a party's SIP, for example after a change of its network.
    pub(super) fn heard_from(&mut self, party: Party, at: IpAddr) {
        self.parties.heard_from(party, at);
    }

    /// Notes the User-Agent of a party.
    pub(super) fn answers_as(&mut self, party: Party, user_agent: &str) {
        self.parties.answers_as(party, user_agent);
    }

    /// Notes the verdict of a warning about the audio of a leg.
    pub(super) fn warned(&mut self, side: LegSide, verdict: Option<MediaVerdict>) {
        let party = self.parties.party_of(side);
        if let Some(leg) = party.and_then(|party| self.parties.leg_mut(party)) {
            leg.warned = verdict;
        }
    }

    /// Notes the form of a party's keys; [`KeyForm::Unknown`] changes nothing.
    pub(super) fn has_keys(&mut self, party: Party, form: KeyForm) {
        self.parties.has_keys(party, form);
    }

    fn link(&mut self, party: Party, linking: Linking) {
        self.negotiation.forget();
        link::link(&mut self.parties, party, linking);
    }

    fn seat_linked(&mut self, party: Party) {
        self.negotiation.forget();
        link::enter_room(&mut self.parties, party);
    }

    /// Handles an offer of a party inside its dialog.
    fn offer(&mut self, now: Instant, party: Party, offer: Option<SessionDescription>) {
        let Call { parties, negotiation, .. } = self;
        if party == Party::Caller && parties.waits_for_target() {
            offer_alone(parties, offer);
        } else if parties.is_linked(party) {
            link::offer(parties, party, offer);
        } else if parties.own_mix.is_some() {
            own_mix::offer(parties, party, offer);
        } else {
            negotiation.offer(parties, now, party, offer);
        }
    }

    /// Repeats our offer to a party after it collided with an offer of that party.
    fn offer_due(&mut self, party: Party) {
        let Call { parties, negotiation, .. } = self;
        if parties.is_linked(party) {
            link::align(parties, party);
        } else if parties.own_mix.is_some() {
            own_mix::align(parties);
        } else if parties.is_for_a_room(party) {
            offer_due(parties, party);
        } else {
            negotiation.offer_due(parties, party);
        }
    }

    /// Handles a party's answer to our offer inside its dialog, or its refusal.
    fn offered(&mut self, now: Instant, party: Party, result: Result<Option<SessionDescription>, u16>) {
        let Call { parties, negotiation, ending, .. } = self;
        if parties.is_linked(party) {
            link::offered(parties, ending, now, party, result);
        } else if parties.own_mix.is_some() {
            own_mix::offered(parties, ending, now, party, result);
        } else {
            negotiation.offered(parties, ending, now, party, result);
        }
    }

    /// The journal entry is written: answers the caller, and seats the parties that go into a room.
    fn journalled(&mut self, now: Instant) {
        let state = std::mem::replace(&mut self.parties.state, State::Over);
        let State::Answering { answer } = state else {
            self.parties.state = state; // The caller hung up while the disk was writing.
            return;
        };
        self.parties.answered_after = Some(now.saturating_duration_since(self.parties.started));
        self.parties.state = State::Up;
        // A transfer that began while the call rang is a pick-up, which the answer ends.
        self.parties.referrer = None;
        self.stay.begin(now);
        self.parties.tell(Party::Caller, Some(MediaCommand::Answered));
        self.parties.push(Output::Answer(answer));
        seat_who_came_for_a_room(&mut self.parties);
    }

    /// Calls the target of a requested call, unless the calling party hung up meanwhile.
    fn go_on(&mut self, now: Instant, onward: Onward) {
        let Call { parties, ringing, ending, .. } = self;
        if !parties.waits_for_target() {
            return;
        }
        match onward {
            Onward::Callee(CalleeSide { policy, srtp, callees, forwards }) => {
                *ringing = Ringing::new(callees == Callees::InTurn, policy, srtp, forwards);
                ringing.begin(parties, now, callees);
            }
            Onward::Refused(status, cause) => {
                parties.push(Output::Reject(status, Some(cause)));
                ending.finish(parties, now, cause, EndedBy::System);
            }
            Onward::Room => ending.await_journal(parties, now, None),
        }
    }

    fn timeout(&mut self, now: Instant) {
        let Call { parties, ringing, negotiation, ending, stay, .. } = self;
        match parties.state {
            State::Ringing { deadline, .. } if deadline <= now => ringing.ring_out(parties, ending, now),
            State::Ringing { .. } => ringing.ask_heard(parties, now),
            // The relay did not deliver a report in time: the record is output without its figures.
            State::Ending { deadline, .. } if deadline <= now => ending.complete(parties),
            State::Up => {
                negotiation.timeout(parties, now);
                stay.timeout(parties, ending, now);
                link::timeout(parties, now);
            }
            _ => {}
        }
    }

    /// Plays the credit warning to the caller, or to the party that a room called.
    fn warn(&mut self) {
        let party = match (&self.parties.near, self.parties.winner) {
            (Near::Room, Some(place)) => Party::Callee(place),
            (Near::Party(_), _) | (Near::Room, None) => Party::Caller,
        };
        if self.parties.is_up() {
            self.parties.tell(party, Some(MediaCommand::Tone));
        }
    }

    fn acknowledged(&mut self, now: Instant, party: Party, answer: Option<SessionDescription>) {
        let Call { parties, ending, negotiation, .. } = self;
        let Some(leg) = parties.leg_mut(party) else { return };
        if leg.exchange.local_offer().is_none() {
            // The usual ACK: our 2xx had the answer. An offer of ours may have waited for it.
            if parties.is_linked(party) {
                link::align(parties, party);
            } else if parties.own_mix.is_some() {
                own_mix::align(parties);
            } else if party == Party::Caller && std::mem::take(&mut parties.repeats_answer) {
                if parties.is_for_a_room(party) {
                    seat_caught_up(parties, party);
                } else {
                    negotiation.catch_up(parties);
                }
            }
            return;
        }
        let settled = answer.is_some_and(|answer| leg.exchange.receive_answer(answer).is_ok());
        match (settled, parties.callee()) {
            (true, _) if parties.is_linked(party) => link::settled(parties, party),
            (true, _) if parties.own_mix.is_some() => own_mix::settled(parties, party),
            (true, _) if parties.is_for_a_room(party) => settle_in_room(parties, party),
            (true, Some(_)) => negotiation.offer_taken(parties, party),
            (true, None) => {}
            // We made the offer, and the party's ACK contains no acceptable answer (RFC 3261 §13.2.2.4).
            (false, _) if party == Party::Caller && parties.is_up() && !parties.caller_has_settled() => {
                ending.end_by_us(parties, now, HangupCause::IncompatibleDestination);
            }
            (false, _) => {
                if let Some(leg) = parties.leg_mut(party) {
                    leg.exchange.roll_back();
                }
            }
        }
    }
}

/// Whether a calling party may have video. Not with ICE, which browsers need: video ports do not support it.
fn may_have_video(caller: &CallerSide) -> bool {
    let has_ice = |offer: &SessionDescription| offer.wants_webrtc() || offer.wants_plain_ice();
    caller.policy.has_video() && !caller.offer.as_ref().is_some_and(has_ice)
}

/// Returns the fork that an input ends before the answer. For a forwarded call, that is the fork whose early media
/// the caller hears.
fn fork_ended_by(input: &Input, parties: &Parties) -> Option<usize> {
    match input {
        Input::Divert(_) => parties.early(),
        Input::Failed(fork, ..) | Input::Unreached(fork, _) => Some(*fork),
        _ => None,
    }
}
