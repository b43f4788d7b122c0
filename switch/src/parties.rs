//! The parties of one call: their legs and ports, the state of the call, and its outputs.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use sidetone_call::quality::{self as media_quality};
use sidetone_call::record::Facts;
use sidetone_media::verdict::Party as Whom;
use sidetone_model::call::{EndedBy, HangupCause};
use sidetone_model::call_parking::ParkedIn;
use sidetone_model::ids::CallId;
use sidetone_model::live_call::CallState;
use sidetone_model::media_quality::LegSide;
use sidetone_model::time::Timestamp;
use sidetone_sip::sdp::{CodecPolicy, IceRule, KeySeed, SessionDescription, SrtpRule};

use crate::call_mix::{LinkedMix, OwnMix};
use crate::io::{Awaited, KeyForm, Limits, LinkHold, MediaCommand, Output, Party, Peer, PortId};
use crate::leg::{Leg, LegProtection};

/// Both sides of a call.
#[derive(Debug)]
pub(super) struct Parties {
    pub(super) facts: Facts,
    pub(super) limits: Limits,
    pub(super) started: Instant,
    pub(super) near: Near,
    pub(super) forks: Vec<Fork>,
    pub(super) state: State,
    /// SDP session id of the caller's leg; those of the forks follow it.
    pub(super) session_id: u64,
    pub(super) group: u64,
    /// The source of the keys of its legs.
    keys: KeySeed,
    /// Whether its INVITE is refused because the caller offers no SRTP.
    pub(super) lacks_srtp: bool,
    /// Whether the call carried a fax (T.38).
    pub(super) fax: bool,
    /// The fork that answered first.
    pub(super) winner: Option<usize>,
    pub(super) answered_after: Option<Duration>,
    /// From the INVITE to the callee's answer, which precedes the answer to the caller.
    pub(super) far_answered_after: Option<Duration>,
    /// Whether its parties were moved into a room, or linked with another call, after they had talked.
    pub(super) merged: bool,
    /// Which party a requested call rings; `None` for other calls.
    pub(super) requested: Option<RequestPhase>,
    /// The link of a party with a party of another call.
    pub(super) link: Option<Box<Link>>,
    /// The link of the other party, while both are linked because they were moved to the node of a room.
    pub(super) twin: Option<Box<Link>>,
    /// The party of another call that a party of this one will be linked with.
    pub(super) awaiting: Option<Box<Awaited>>,
    /// The call's own mix, once a program has used hold, recording or a prompt.
    pub(super) own_mix: Option<Box<OwnMix>>,
    /// The party that is transferring the other one.
    pub(super) referrer: Option<Party>,
    /// Whether the caller and the fork that it hears have changed their session before the answer.
    pub(super) settled_early: bool,
    /// Whether the answer to the caller repeats that of a provisional response although the terms have changed since.
    pub(super) repeats_answer: bool,
    pub(super) outputs: VecDeque<Output>,
}

/// The party that a requested call rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestPhase {
    /// The calling party.
    Caller,
    /// The target, after this number of forks of the calling party.
    Target { rung: usize },
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
    /// Whether it sent no response at all for so long that the call no longer waits for it.
    pub(super) is_silent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForkState {
    /// It was cancelled or another fork won; a 2xx that crosses the CANCEL is acknowledged and hung up.
    Cancelled,
    /// It has a final response or its dialog is over.
    Ended,
    Ringing,
    /// Its dialog is confirmed.
    Up,
}

/// The link of a party with a party of another call.
#[derive(Debug)]
pub(super) struct Link {
    /// The party that stays in this call.
    pub(super) party: Party,
    /// The party of the other call; `None` while it is awaited.
    pub(super) peer: Option<Peer>,
    /// The terms of `party` that the other call has.
    pub(super) reported: Option<Peer>,
    /// The call that the transfer began in, if this call was the target of one.
    pub(super) from: Option<CallId>,
    /// The call that took over from a party of this one.
    pub(super) to: Option<CallId>,
    /// The slot that `party` waits in.
    pub(super) parked: Option<Parked>,
    /// The mix of both calls, while a program uses it.
    pub(super) mix: Option<Box<LinkedMix>>,
    /// Whether our last offer collided with one of the party, and must be repeated.
    pub(super) clashed: bool,
}

impl Link {
    /// A link of a party whose peer is awaited.
    pub(super) fn new(party: Party) -> Link {
        Link {
            party,
            peer: None,
            reported: None,
            from: None,
            to: None,
            parked: None,
            mix: None,
            clashed: false,
        }
    }

    /// Returns the hold that a program requested through either call.
    pub(super) fn hold(&self) -> Option<LinkHold> {
        self.mix.as_ref()?.hold
    }

    /// Whether the linked party is the caller of its call.
    pub(super) fn is_caller(&self) -> bool {
        self.party == Party::Caller
    }
}

/// A party that waits in a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parked {
    pub(super) place: ParkedIn,
    /// When it is returned to the extension that parked it; `None` once that time has come.
    pub(super) deadline: Option<Instant>,
}

#[derive(Debug)]
pub(super) enum State {
    /// The record waits for the media reports of its legs.
    Ending { cause: HangupCause, by: EndedBy, ended_after: Duration, deadline: Instant },
    /// It waits for the media ports that it needs to begin.
    Opening,
    /// The record was output.
    Over,
    /// It could not begin, and has no record.
    Refused,
    /// Forks ring; `early` is the fork whose early media the caller hears.
    Ringing { deadline: Instant, early: Option<usize> },
    /// The far side answered; the answer to the caller waits until the journal is written.
    Answering { answer: Option<SessionDescription> },
    /// Both sides are up.
    Up,
}

impl Parties {
    pub(super) fn new(
        now: Instant,
        (facts, limits): (Facts, Limits),
        (session_id, group): (u64, u64),
        keys: KeySeed,
    ) -> Self {
        Parties {
            facts,
            limits,
            started: now,
            near: Near::Room,
            forks: Vec::new(),
            state: State::Opening,
            session_id,
            group,
            keys,
            lacks_srtp: false,
            fax: false,
            winner: None,
            answered_after: None,
            far_answered_after: None,
            merged: false,
            requested: None,
            link: None,
            twin: None,
            awaiting: None,
            own_mix: None,
            referrer: None,
            settled_early: false,
            repeats_answer: false,
            outputs: VecDeque::new(),
        }
    }

    /// Returns the SRTP and ICE of a new leg. A browser always uses DTLS-SRTP, regardless of the rule; a phone of an
    /// extension that is configured for browsers uses SRTP if it can.
    pub(super) fn protection(&mut self, rule: SrtpRule, is_browser: bool, ice: IceRule) -> LegProtection {
        let rule = match rule {
            _ if is_browser => SrtpRule::Webrtc,
            SrtpRule::Webrtc => SrtpRule::Optional,
            rule => rule,
        };
        let has_keys = rule != SrtpRule::Off || ice != IceRule::Never;
        let seed = if has_keys { self.keys.split() } else { KeySeed::default() };
        LegProtection { srtp: rule, ice, seed }
    }

    /// Passes the negotiated terms of a party to the relay.
    pub(super) fn describe(&mut self, party: Party) {
        let Some(leg) = self.leg_mut(party) else { return };
        let (keys, description, is_fax) = (leg.secure(), leg.describe(), leg.is_fax());
        self.fax |= is_fax;
        self.tell(party, keys);
        self.tell(party, description);
        if let Some((port, commands)) = self.leg_mut(party).and_then(Leg::describe_video) {
            self.outputs.extend(commands.into_iter().map(|command| Output::Media(port, command)));
        }
    }

    /// Whether the record was output and nothing is left to do.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Over | State::Refused)
    }

    /// Returns the ports that the call holds or held.
    pub(super) fn ports(&self) -> impl Iterator<Item = PortId> + '_ {
        let of_leg = |(_, leg): (Party, &Leg)| {
            let video = leg.video.as_ref().map(|video| video.port());
            std::iter::once(leg.port()).chain(video)
        };
        self.legs().flat_map(of_leg)
    }

    /// Returns the party that uses a port for its audio.
    pub(super) fn party_at(&self, port: PortId) -> Option<Party> {
        self.legs().find(|(_, leg)| leg.port() == port).map(|(party, _)| party)
    }

    /// Returns the party that uses a port for its video.
    pub(super) fn party_with_video_at(&self, port: PortId) -> Option<Party> {
        let is_there = |leg: &Leg| leg.video.as_ref().is_some_and(|video| video.port() == port);
        self.legs().find(|(_, leg)| is_there(leg)).map(|(party, _)| party)
    }

    /// Returns the party that uses a port for its audio or its video.
    pub(super) fn party_with(&self, port: PortId) -> Option<Party> {
        self.party_at(port).or_else(|| self.party_with_video_at(port))
    }

    /// Whether the call has ended; its record may still be waiting.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.state, State::Ending { .. } | State::Over | State::Refused)
    }

    /// Returns the fork whose early media the caller hears.
    pub(super) fn early(&self) -> Option<usize> {
        match self.state {
            State::Ringing { early, .. } => early,
            _ => None,
        }
    }

    /// Returns the party that `party` hears before the answer; `None` while further forks ring, because the caller has
    /// one session with all of them.
    pub(super) fn early_other(&self, party: Party) -> Option<Party> {
        let place = self.early()?;
        let rings = |(at, fork): (usize, &Fork)| (fork.state == ForkState::Ringing).then_some(at);
        let mut ringing = self.forks.iter().enumerate().filter_map(rings);
        if ringing.next() != Some(place) || ringing.next().is_some() {
            return None;
        }
        match party {
            Party::Caller => Some(Party::Callee(place)),
            Party::Callee(at) => (at == place).then_some(Party::Caller),
        }
    }

    /// Whether the caller's INVITE had no offer.
    pub(super) fn lacks_offer(&self) -> bool {
        matches!(&self.near, Near::Party(caller) if caller.offer.is_none())
    }

    /// Returns when the caller's INVITE expires.
    pub(super) fn expires_at(&self) -> Option<Instant> {
        self.limits.expires.map(|expires| self.started + expires)
    }

    /// Whether it still waits for an answer.
    pub(super) fn is_ringing(&self) -> bool {
        matches!(self.state, State::Ringing { .. })
    }

    /// Whether the calling party of a requested call is being rung.
    pub(super) fn rings_caller(&self) -> bool {
        self.requested == Some(RequestPhase::Caller)
    }

    /// Whether the calling party of a requested call has answered and the target has not.
    pub(super) fn waits_for_target(&self) -> bool {
        matches!(self.requested, Some(RequestPhase::Target { .. })) && self.is_ringing()
    }

    /// Returns the position of a fork among the called legs, for the name of its leg. The first fork of a requested
    /// call's calling party has the name of the caller's leg.
    pub(super) fn leg_place(&self, place: usize) -> Option<usize> {
        match self.requested {
            None => Some(place),
            Some(RequestPhase::Caller) => place.checked_sub(1),
            Some(RequestPhase::Target { rung }) => Some(place.saturating_add(rung.saturating_sub(1))),
        }
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

    /// Ends a call that could not begin: closes its ports, and reports `status`.
    pub(super) fn refuse(&mut self, status: u16) {
        self.release(Party::Caller);
        for place in 0..self.forks.len() {
            self.release(Party::Callee(place));
        }
        self.state = State::Refused;
        self.outputs.retain(|output| matches!(output, Output::Media(_, MediaCommand::Close)));
        self.push(Output::Refused(status));
    }

    /// Whether it could not begin.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.state, State::Refused)
    }

    pub(super) fn push(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    /// Returns the callee that answered, once one did.
    pub(super) fn callee(&self) -> Option<usize> {
        match self.state {
            State::Answering { .. } | State::Up => self.winner,
            State::Ending { .. } | State::Opening | State::Over | State::Refused | State::Ringing { .. } => {
                None
            }
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

    /// Notes the User-Agent of a party.
    pub(super) fn answers_as(&mut self, party: Party, user_agent: &str) {
        if let Some(leg) = self.leg_mut(party) {
            leg.answers_as(user_agent);
        }
    }

    /// Notes the form of a party's keys; [`KeyForm::Unknown`] changes nothing.
    pub(super) fn has_keys(&mut self, party: Party, form: KeyForm) {
        if let Some(leg) = self.leg_mut(party) {
            leg.has_keys(form);
        }
    }

    pub(super) fn leg_mut(&mut self, party: Party) -> Option<&mut Leg> {
        match (party, &mut self.near) {
            (Party::Callee(fork), _) => self.forks.get_mut(fork).map(|fork| &mut fork.leg),
            (Party::Caller, Near::Party(caller)) => Some(&mut caller.leg),
            (Party::Caller, Near::Room) => None,
        }
    }

    pub(super) fn legs(&self) -> impl Iterator<Item = (Party, &Leg)> {
        let forks = self.forks.iter().enumerate().map(|(place, fork)| (Party::Callee(place), &fork.leg));
        self.caller().map(|leg| (Party::Caller, leg)).into_iter().chain(forks)
    }

    /// Describes both legs to the relay and bridges them; codecs that the peer lacks are transcoded.
    pub(super) fn connect(&mut self, place: usize) {
        if self.caller().is_none() || self.forks.get(place).is_none() {
            return;
        }
        self.describe(Party::Caller);
        self.describe(Party::Callee(place));
        self.bridge(place);
    }

    /// Relays between both legs, which are described already; codecs that the peer lacks are transcoded.
    pub(super) fn bridge(&mut self, place: usize) {
        let (Some(caller), Some(fork)) = (self.caller(), self.forks.get(place)) else { return };
        let commands = [
            (Party::Caller, caller.bridge_to(&fork.leg)),
            (Party::Callee(place), fork.leg.bridge_to(caller)),
        ];
        let plans = [
            (Party::Caller, caller.plan_towards(&fork.leg)),
            (Party::Callee(place), fork.leg.plan_towards(caller)),
        ];
        let keys = [
            (Party::Caller, caller.keys_towards(&fork.leg)),
            (Party::Callee(place), fork.leg.keys_towards(caller)),
        ];
        for (party, command) in commands {
            self.tell(party, command);
        }
        for (party, plan) in plans {
            let command = self.leg_mut(party).and_then(|leg| leg.transcode(plan));
            self.tell(party, command);
        }
        for (party, events) in keys {
            let command = self.leg_mut(party).and_then(|leg| leg.watch_keys(events));
            self.tell(party, command);
        }
        let port_of = |party| self.leg(party).and_then(Leg::video_port);
        let (caller, callee) = (port_of(Party::Caller), port_of(Party::Callee(place)));
        // Video is relayed between both legs or not at all.
        self.relay_video(Party::Caller, callee.filter(|_| caller.is_some()));
        self.relay_video(Party::Callee(place), caller.filter(|_| callee.is_some()));
    }

    /// Relays the video of a party to this port, or stops relaying it.
    fn relay_video(&mut self, party: Party, peer: Option<PortId>) {
        let Some(video) = self.leg_mut(party).and_then(|leg| leg.video.as_mut()) else { return };
        let (port, command) = (video.port(), video.relay_to(peer));
        self.outputs.extend(command.map(|command| Output::Media(port, command)));
    }

    /// Ends the relaying of the video of all parties: they no longer hear each other.
    pub(super) fn stop_video(&mut self) {
        for place in 0..self.forks.len() {
            self.relay_video(Party::Callee(place), None);
        }
        self.relay_video(Party::Caller, None);
    }

    pub(super) fn tell(&mut self, party: Party, command: Option<MediaCommand>) {
        if matches!(command, Some(MediaCommand::Join { .. } | MediaCommand::Unbridge)) {
            self.stop_video();
        }
        let port = self.leg(party).filter(|leg| leg.is_open()).map(Leg::port);
        if let (Some(port), Some(command)) = (port, command) {
            self.push(Output::Media(port, command));
        }
    }

    /// Closes a party's port, only once.
    pub(super) fn release(&mut self, party: Party) {
        self.release_because(party, HangupCause::NormalClearing);
    }

    /// Closes a party's port, only once; the cause is for the room that the party is in.
    pub(super) fn release_because(&mut self, party: Party, cause: HangupCause) {
        let Some(leg) = self.leg_mut(party) else { return };
        let (port, was_seated) = (leg.port(), leg.unseat());
        if was_seated {
            self.push(Output::Left(party, cause));
        }
        // Close the video first: its report must not arrive after the last one that the record waits for.
        if let Some(video) = self.leg_mut(party).and_then(|leg| leg.video.as_mut()) {
            let (port, command) = (video.port(), video.close());
            self.outputs.extend(command.map(|command| Output::Media(port, command)));
        }
        if let Some(command) = self.leg_mut(party).and_then(Leg::close) {
            self.push(Output::Media(port, command));
        }
    }

    pub(super) fn caller_has_settled(&self) -> bool {
        self.caller().is_some_and(|leg| leg.exchange.negotiated().is_some())
    }

    pub(super) fn bye_caller(&mut self, cause: HangupCause) {
        if self.has_caller() {
            self.push(Output::Bye(Party::Caller, cause));
        }
    }

    pub(super) fn bye_callee(&mut self, cause: HangupCause) {
        if let Some(callee) = self.winner
            && let Some(fork) = self.forks.get_mut(callee)
            && fork.state == ForkState::Up
        {
            self.push(Output::Bye(Party::Callee(callee), cause));
        }
    }

    /// Returns the wall-clock time at `after` from the INVITE.
    pub(super) fn wall(&self, after: Duration) -> Timestamp {
        self.facts.started_at.plus_micros(i64::try_from(after.as_micros()).unwrap_or(i64::MAX))
    }

    /// Returns the party that the record shows as that leg: `a` is the caller, or the party that a room
    /// called.
    pub(super) fn party_of(&self, side: LegSide) -> Option<Party> {
        match (side, &self.near) {
            (LegSide::A, Near::Party(_)) => Some(Party::Caller),
            (LegSide::A, Near::Room) | (LegSide::B, Near::Party(_)) => self.winner.map(Party::Callee),
            (LegSide::B, Near::Room) => None,
        }
    }

    /// Returns the legs that the record describes.
    pub(super) fn sides(&self) -> impl Iterator<Item = (LegSide, &Leg)> {
        let sides = [LegSide::A, LegSide::B].into_iter();
        sides.filter_map(|side| Some((side, self.leg(self.party_of(side)?)?)))
    }

    /// Returns the word for that leg's party in sentences.
    pub(super) fn whom(&self, side: LegSide) -> Whom {
        match self.near {
            Near::Party(_) => media_quality::party_of(side),
            Near::Room => Whom::Called,
        }
    }

    pub(super) fn side_of(&self, party: Party) -> Option<LegSide> {
        [LegSide::A, LegSide::B].into_iter().find(|side| self.party_of(*side) == Some(party))
    }

    /// Ends every fork except `kept`; `cause` is the reason sent to the others.
    pub(super) fn drop_forks(&mut self, kept: Option<usize>, cause: HangupCause) {
        for place in (0..self.forks.len()).filter(|place| Some(*place) != kept) {
            if let Some(fork) = self.forks.get_mut(place)
                && fork.state == ForkState::Ringing
            {
                fork.state = ForkState::Cancelled;
                self.push(Output::Cancel(place, cause));
            }
            self.release(Party::Callee(place));
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

    /// Whether its parties talked to each other before they were moved into a room: then each leaves
    /// separately.
    pub(super) fn is_merged(&self) -> bool {
        self.merged
    }

    /// Returns the number of forks that were added.
    pub(super) fn forked(&self) -> usize {
        self.forks.len()
    }

    /// Returns the offer of the caller and the codecs that it may use; `None` without one.
    pub(super) fn offer_of_caller(&self) -> Option<(SessionDescription, CodecPolicy)> {
        match &self.near {
            Near::Party(caller) => Some((caller.offer.clone()?, caller.leg.policy.clone())),
            Near::Room => None,
        }
    }

    /// Whether a party of the call is in a room.
    pub(super) fn has_seats(&self) -> bool {
        self.seats().next().is_some()
    }

    /// Returns the parties that are in a room.
    pub(super) fn seats(&self) -> impl Iterator<Item = Party> + '_ {
        let callee = self.winner.map(Party::Callee);
        let parties = std::iter::once(Party::Caller).chain(callee);
        parties.filter(|party| self.leg(*party).is_some_and(Leg::is_seated))
    }

    /// Whether a party negotiates its media with a room only.
    pub(super) fn is_for_a_room(&self, party: Party) -> bool {
        match (&self.near, self.winner) {
            _ if self.is_merged() => true,
            (Near::Room, Some(place)) => party == Party::Callee(place),
            (Near::Party(_), None) => party == Party::Caller && !self.is_ringing(),
            (Near::Room, None) | (Near::Party(_), Some(_)) => false,
        }
    }
}
