//! Limits of an answered call: its length, and how long its parties may be silent.
//!
//! A phone that vanishes sends no BYE; a call that never ends would hold its ports and be billed. Three
//! limits end such a call (the user agent handles session timers of dialogs, RFC 4028):
//!
//! - **Length**, from the answer: the lower of the organisation's and the trunk's limit; `MAX_CALL_DURATION`.
//! - **Silence** of both parties of a call, neither RTP nor RTCP; `MEDIA_TIMEOUT`. A single party that sends
//!   keeps the call: the other may be muted, or listen to an announcement. While a party holds, the limit for
//!   a hold applies.
//! - **Silence** of one party in a room, whose phone may only listen: it is probed inside its dialog
//!   (OPTIONS). An answer keeps the leg for as long again; 481, 408 or no answer ends only this leg, with
//!   `MEDIA_TIMEOUT`.

use std::time::{Duration, Instant};

use sidetone_call::record::Facts;
use sidetone_model::call::HangupCause;
use sidetone_model::ids::{CallId, TrunkId};
use sidetone_sip::message::{Method, StatusCode};
use sidetone_sip::sdp::Direction;
use sidetone_sip::ua::{Extra, LegKey};

use crate::call::Call;
use crate::face::{Input, Limits, Output, Party, PortId};
use crate::leg::{Leg, Probe};
use crate::machine::{Now, Switch};
use crate::routing::Directory;

/// Since when a call is answered, and under which terms.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stay {
    /// When the caller was answered.
    up_since: Option<Instant>,
    /// The limit of the trunk that carries the call.
    trunk_limit: Option<Duration>,
    terms: Terms,
    /// When the terms last changed: silence before that does not count.
    terms_since: Option<Instant>,
}

/// The state that decides which silence limit applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Terms {
    merged: bool,
    caller_holds: bool,
    callee_holds: bool,
}

impl Stay {
    /// Starts the limits: the call is answered.
    pub(super) fn begin(&mut self, now: Instant) {
        (self.up_since, self.terms_since) = (Some(now), Some(now));
    }

    /// Sets the limit of the trunk that is tried.
    pub(super) fn try_trunk(&mut self, limit: Option<Duration>) {
        self.trunk_limit = limit;
    }
}

impl Call {
    /// Returns when [`Call::stay_timeout`] is due for an answered call.
    pub(super) fn stay_until(&self) -> Option<Instant> {
        [self.allotted_until(), self.parties_silent_until(), self.seats_silent_until()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Applies the limits of an answered call that are due.
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

    /// Records that the party of a port is silent, or sends again.
    pub(super) fn silent(&mut self, now: Instant, port: PortId, silent_for: Option<Duration>) {
        let Some(party) = self.party_at(port) else { return };
        if let Some(leg) = self.leg_mut(party) {
            // Just after the clock's start, the start of the silence may not be representable; then it counts
            // from now.
            leg.silent_since = silent_for.map(|silent_for| now.checked_sub(silent_for).unwrap_or(now));
        }
    }

    /// Handles the result of a probe.
    pub(super) fn probed(&mut self, now: Instant, party: Party, is_there: bool) {
        let Some(leg) = self.leg_mut(party).filter(|leg| leg.probe == Probe::Asked) else { return };
        leg.probe = Probe::Answered(now);
        if !is_there && leg.is_seated() && leg.silent_since.is_some() {
            self.dismiss(now, party, HangupCause::MediaTimeout);
        }
    }

    /// Records whether a party began or stopped to hold; silence is counted again from then on.
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

    /// Returns when both parties of a relayed call have been silent for too long.
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

    /// Returns when a party in a room has been silent for so long that it must be probed.
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
    /// Returns the limits for a call with these facts: a trunk can lower its organisation's limit, not raise
    /// it.
    pub(super) fn limits_of(&self, facts: &Facts) -> Limits {
        let limits = self.config.limits;
        let organisation = self.directory.organisation(facts.organisation);
        let own = organisation.and_then(|known| known.max_call_seconds).map(seconds);
        let trunk = facts.trunk.and_then(|trunk| limit_of_trunk(&self.directory, trunk));
        Limits { call: own.unwrap_or(limits.call).min(trunk.unwrap_or(Duration::MAX)), ..limits }
    }

    /// Probes inside its dialog whether a party is still there.
    pub(super) fn probe(&mut self, now: Now, id: CallId, party: Party) {
        let leg = self.calls.get(&id).and_then(|live| live.key_of(party));
        let sent = leg.map(|leg| self.ua.request_within(now.instant, leg, Method::Options, &Extra::new()));
        if !matches!(sent, Some(Ok(_))) {
            // The probe could not be sent, for example because a table is full, which shows nothing about the
            // party: try later.
            self.tell_call(now, id, Input::Probed(party, true));
        }
    }

    /// Handles the response to a probe; `None` means none arrived. Only 481 and 408 mean that the dialog is
    /// gone (RFC 5057 §5.1).
    pub(super) fn probe_answered(&mut self, now: Now, leg: LegKey, status: Option<StatusCode>) {
        let gone = [StatusCode::NO_TRANSACTION, StatusCode::REQUEST_TIMEOUT];
        let is_there = status.is_some_and(|status| !gone.contains(&status));
        self.tell_leg(now, leg, |party| Some(Input::Probed(party, is_there)));
    }
}

/// Returns the longest duration of a call over the trunk, if the trunk has its own limit.
pub(super) fn limit_of_trunk(directory: &Directory, trunk: TrunkId) -> Option<Duration> {
    directory.trunk(trunk)?.max_call_seconds.map(seconds)
}

/// Whether either side of the leg holds, so that silence is expected.
fn is_on_hold(leg: &Leg) -> bool {
    leg.exchange.negotiated().is_some_and(|settled| settled.direction != Direction::SendRecv)
}

fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}
