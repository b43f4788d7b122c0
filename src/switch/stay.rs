//! How long a call that is up may go on: its greatest length, and how long its parties may be silent.
//!
//! A phone that vanishes sends no BYE, and a call without an end holds its ports and is billed. Three limits end it
//! (session timers of the dialogs, RFC 4028, are the user agent's):
//!
//! - **Length**, from the answer: the lowest of the organisation's and the trunk's; `MAX_CALL_DURATION`.
//! - **Silence** of both parties of a call, neither RTP nor RTCP; `MEDIA_TIMEOUT`. One that talks keeps the call: the
//!   other may be muted, or listen to an announcement. While a party holds, the limit is that of a hold.
//! - **Silence** of one party in a room, whose phone may only listen: it is asked inside its dialog whether it is there
//!   (OPTIONS). An answer keeps the leg for as long again; 481, 408 or none ends this leg alone, by `MEDIA_TIMEOUT`.

use std::time::{Duration, Instant};

use sidetone_call::record::Facts;
use sidetone_model::call::HangupCause;
use sidetone_model::ids::{CallId, TrunkId};
use sidetone_sip::message::{Method, StatusCode};
use sidetone_sip::sdp::Direction;
use sidetone_sip::ua::{Extra, LegKey};

use crate::routing::Directory;
use crate::switch::call::Call;
use crate::switch::face::{Input, Limits, Output, Party, PortId};
use crate::switch::leg::{Leg, Probe};
use crate::switch::machine::{Now, Switch};

/// Since when a call is up, and by which terms.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stay {
    /// When the caller was answered.
    up_since: Option<Instant>,
    /// The limit of the trunk that the call goes out by.
    trunk_limit: Option<Duration>,
    terms: Terms,
    /// When the terms became what they are: silence before does not count.
    terms_since: Option<Instant>,
}

/// What decides how long a party may be silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Terms {
    merged: bool,
    caller_holds: bool,
    callee_holds: bool,
}

impl Stay {
    /// The call is up.
    pub(super) fn begin(&mut self, now: Instant) {
        (self.up_since, self.terms_since) = (Some(now), Some(now));
    }

    /// The call is tried over a trunk with this limit.
    pub(super) fn try_trunk(&mut self, limit: Option<Duration>) {
        self.trunk_limit = limit;
    }
}

impl Call {
    /// When [`Call::stay_timeout`] is due, of a call that is up.
    pub(super) fn stay_until(&self) -> Option<Instant> {
        [self.allotted_until(), self.parties_silent_until(), self.seats_silent_until()]
            .into_iter()
            .flatten()
            .min()
    }

    /// A limit of a call that is up may have come.
    pub(super) fn stay_timeout(&mut self, now: Instant) {
        let is_due = |until: Option<Instant>| until.is_some_and(|until| until <= now);
        if is_due(self.allotted_until()) {
            return self.end_by_us(now, HangupCause::MaxCallDuration);
        }
        if is_due(self.parties_silent_until()) {
            return self.end_by_us(now, HangupCause::MediaTimeout);
        }
        let silent: Vec<Party> =
            self.seats().filter(|party| is_due(self.seat_silent_until(*party))).collect();
        for party in silent {
            if let Some(leg) = self.leg_mut(party) {
                leg.probe = Probe::Asked;
                self.push(Output::Probe(party));
            }
        }
    }

    /// The relay says that nothing comes from the party of a port, or something again.
    pub(super) fn silent(&mut self, now: Instant, port: PortId, silent_for: Option<Duration>) {
        let Some(party) = self.party_at(port) else { return };
        if let Some(leg) = self.leg_mut(party) {
            // The clock began after the party fell silent when nothing else is possible.
            leg.silent_since = silent_for.map(|silent_for| now.checked_sub(silent_for).unwrap_or(now));
        }
    }

    /// A party that was asked whether it is there answered, or did not.
    pub(super) fn probed(&mut self, now: Instant, party: Party, is_there: bool) {
        let Some(leg) = self.leg_mut(party).filter(|leg| leg.probe == Probe::Asked) else { return };
        leg.probe = Probe::Answered(now);
        if !is_there && leg.is_seated() && leg.silent_since.is_some() {
            self.dismiss(now, party, HangupCause::MediaTimeout);
        }
    }

    /// Notes whether a party began or ceased to hold: what was allowed before does not count from then on.
    pub(super) fn note_terms(&mut self, now: Instant) {
        let holds = |party: Option<Party>| party.and_then(|party| self.leg(party)).is_some_and(is_on_hold);
        let terms = Terms {
            merged: self.is_merged(),
            caller_holds: holds(Some(Party::Caller)),
            callee_holds: holds(self.winner.map(Party::Callee)),
        };
        if self.stay.terms != terms {
            self.stay.terms = terms;
            self.stay.terms_since = self.stay.up_since.map(|_| now);
        }
    }

    fn allotted_until(&self) -> Option<Instant> {
        let limit = self.limits.call.min(self.stay.trunk_limit.unwrap_or(Duration::MAX));
        self.stay.up_since?.checked_add(limit)
    }

    /// When both parties that talk to each other have been silent for too long.
    fn parties_silent_until(&self) -> Option<Instant> {
        let callee = Party::Callee(self.callee()?);
        if self.is_for_a_room(Party::Caller) || self.is_for_a_room(callee) {
            return None;
        }
        let (caller, callee) = (self.leg(Party::Caller)?, self.leg(callee)?);
        let since = caller.silent_since?.max(callee.silent_since?).max(self.stay.terms_since?);
        since.checked_add(self.silence_allowed(is_on_hold(caller) || is_on_hold(callee))?)
    }

    fn seats_silent_until(&self) -> Option<Instant> {
        self.seats().filter_map(|party| self.seat_silent_until(party)).min()
    }

    /// When a party in a room has been silent for so long that it is asked whether it is there.
    fn seat_silent_until(&self, party: Party) -> Option<Instant> {
        let leg = self.leg(party)?;
        let since = leg.silent_since?.max(self.stay.terms_since?);
        let since = match leg.probe {
            Probe::Answered(at) => since.max(at),
            Probe::Asked => return None,
            Probe::None => since,
        };
        since.checked_add(self.silence_allowed(is_on_hold(leg))?)
    }

    fn silence_allowed(&self, on_hold: bool) -> Option<Duration> {
        if on_hold { self.limits.silence_on_hold } else { self.limits.silence }
    }
}

impl Switch {
    /// How long a call of these facts may take: a trunk makes its organisation's limit lower, never higher.
    pub(super) fn limits_of(&self, facts: &Facts) -> Limits {
        let limits = self.config.limits;
        let organisation = self.directory.organisation(facts.organisation);
        let own = organisation.and_then(|known| known.max_call_seconds).map(seconds);
        let trunk = facts.trunk.and_then(|trunk| limit_of_trunk(&self.directory, trunk));
        Limits { call: own.unwrap_or(limits.call).min(trunk.unwrap_or(Duration::MAX)), ..limits }
    }

    /// Asks a party inside its dialog whether it is there.
    pub(super) fn probe(&mut self, now: Now, id: CallId, party: Party) {
        let leg = self.calls.get(&id).and_then(|live| live.key_of(party));
        let sent = leg.map(|leg| self.ua.request_within(now.instant, leg, Method::Options, &Extra::new()));
        if !matches!(sent, Some(Ok(_))) {
            // A full table says nothing about the party: it is asked again later.
            self.tell_call(now, id, Input::Probed(party, true));
        }
    }

    /// What came of a probe: `None` is no answer at all. Any but these two is the peer's own (RFC 5057 §5.1).
    pub(super) fn probe_answered(&mut self, now: Now, leg: LegKey, status: Option<StatusCode>) {
        let gone = [StatusCode::NO_TRANSACTION, StatusCode::REQUEST_TIMEOUT];
        let is_there = status.is_some_and(|status| !gone.contains(&status));
        self.tell_leg(now, leg, |party| Some(Input::Probed(party, is_there)));
    }
}

/// How long a call over a trunk lasts at most, when the trunk has a limit of its own.
pub(super) fn limit_of_trunk(directory: &Directory, trunk: TrunkId) -> Option<Duration> {
    directory.trunk(trunk)?.max_call_seconds.map(seconds)
}

/// Whether the party, or who talks to it, holds: then silence is to be expected.
fn is_on_hold(leg: &Leg) -> bool {
    leg.exchange.negotiated().is_some_and(|settled| settled.direction != Direction::SendRecv)
}

fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}
