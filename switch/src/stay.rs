//! Limits of an answered call: its length, and how long its parties may be silent.
//!
//! A phone that vanishes sends no BYE; a call that never ends would hold its ports and be billed. Three
//! limits end such a call (the user agent handles session timers of dialogs, RFC 4028):
//!
//! - **Length**, from the answer: the lower of the organisation's and the trunk's limit; `MAX_CALL_DURATION`.
//! - **Silence** of both parties of a call, neither RTP nor RTCP; `MEDIA_TIMEOUT`. A single party that sends
//!   keeps the call: the other may be muted, or listen to an announcement. While a party holds, the limit for
//!   a hold applies.
//! - **Silence** of one party in a room, whose phone may only listen: after [`SEAT_SILENCE`] it is probed inside its
//!   dialog (OPTIONS), whether or not a side holds. A response keeps the leg for the same time again; 481, 408 or no
//!   response within [`PROBE_WAIT`] ends only this leg, with `MEDIA_TIMEOUT`. A member whose phone is unreachable
//!   therefore leaves within 30 s.

use std::time::{Duration, Instant};

use sidetone_model::call::{EndedBy, HangupCause};
use sidetone_sip::sdp::Direction;

use crate::ending::Ending;
use crate::io::{Output, Party, PortId};
use crate::leg::{Leg, Probe};
use crate::parties::Parties;

/// The state for the limits of an answered call.
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

    /// Returns when [`Stay::timeout`] is due for an answered call.
    pub(super) fn until(&self, parties: &Parties) -> Option<Instant> {
        [self.allotted_until(parties), self.parties_silent_until(parties), self.seats_silent_until(parties)]
            .into_iter()
            .flatten()
            .min()
    }

    /// Applies the limits of an answered call that are due.
    pub(super) fn timeout(&mut self, parties: &mut Parties, ending: &mut Ending, now: Instant) {
        let is_due = |until: Option<Instant>| until.is_some_and(|until| until <= now);
        if is_due(self.allotted_until(parties)) {
            return ending.end_by_us(parties, now, HangupCause::MaxCallDuration);
        }
        if is_due(self.parties_silent_until(parties)) {
            return ending.end_by_us(parties, now, HangupCause::MediaTimeout);
        }
        let silent: Vec<Party> =
            parties.seats().filter(|party| is_due(self.seat_silent_until(parties, *party))).collect();
        for party in silent {
            match parties.leg(party).map(|leg| leg.probe) {
                Some(Probe::Asked(_)) => self.probed(parties, ending, now, party, false),
                _ => self.probe(parties, now, party),
            }
        }
    }

    /// Probes a silent party in a room immediately, because it did not answer a request inside its dialog, or
    /// its phone calls again.
    pub(super) fn doubted(&mut self, parties: &mut Parties, now: Instant, party: Party) {
        let is_doubtful = |leg: &Leg| {
            leg.is_seated() && leg.silent_since.is_some() && !matches!(leg.probe, Probe::Asked(_))
        };
        if parties.leg(party).is_some_and(is_doubtful) {
            self.probe(parties, now, party);
        }
    }

    fn probe(&mut self, parties: &mut Parties, now: Instant, party: Party) {
        let Some(leg) = parties.leg_mut(party) else { return };
        leg.probe = Probe::Asked(now);
        parties.push(Output::Probe(party));
    }

    /// Records that the party of a port is silent, or sends again.
    pub(super) fn silent(
        &mut self,
        parties: &mut Parties,
        now: Instant,
        port: PortId,
        silent_for: Option<Duration>,
    ) {
        let Some(party) = parties.party_at(port) else { return };
        if let Some(leg) = parties.leg_mut(party) {
            // Just after the clock's start, the start of the silence may not be representable; then it counts
            // from now.
            leg.silent_since = silent_for.map(|silent_for| now.checked_sub(silent_for).unwrap_or(now));
            if silent_for.is_none() {
                leg.probe = Probe::None;
            }
        }
    }

    /// Handles the result of a probe.
    pub(super) fn probed(
        &mut self,
        parties: &mut Parties,
        ending: &mut Ending,
        now: Instant,
        party: Party,
        is_there: bool,
    ) {
        let Some(leg) = parties.leg_mut(party).filter(|leg| matches!(leg.probe, Probe::Asked(_))) else {
            return;
        };
        leg.probe = Probe::Answered(now);
        if !is_there && leg.is_seated() && leg.silent_since.is_some() {
            ending.dismiss(parties, now, party, HangupCause::MediaTimeout, EndedBy::System);
        }
    }

    /// Records whether a party began or stopped to hold; the count of silence then restarts.
    pub(super) fn note_terms(&mut self, parties: &Parties, now: Instant) {
        let holds = |party: Option<Party>| party.and_then(|party| parties.leg(party)).is_some_and(is_on_hold);
        let terms = Terms {
            merged: parties.is_merged(),
            caller_holds: parties.holder().is_some() || holds(Some(Party::Caller)),
            callee_holds: parties.holder().is_some() || holds(parties.winner.map(Party::Callee)),
        };
        if self.terms != terms {
            self.terms = terms;
            self.terms_since = self.up_since.map(|_| now);
        }
    }

    fn allotted_until(&self, parties: &Parties) -> Option<Instant> {
        let limit = parties.limits.call.min(self.trunk_limit.unwrap_or(Duration::MAX));
        self.up_since?.checked_add(limit)
    }

    /// Returns when both parties of a relayed call have been silent for too long.
    fn parties_silent_until(&self, parties: &Parties) -> Option<Instant> {
        let callee = Party::Callee(parties.callee()?);
        if parties.is_for_a_room(Party::Caller) || parties.is_for_a_room(callee) {
            return None;
        }
        let (caller, callee) = (parties.leg(Party::Caller)?, parties.leg(callee)?);
        let since = caller.silent_since?.max(callee.silent_since?).max(self.terms_since?);
        let on_hold = parties.holder().is_some() || is_on_hold(caller) || is_on_hold(callee);
        since.checked_add(self.silence_allowed(parties, on_hold)?)
    }

    fn seats_silent_until(&self, parties: &Parties) -> Option<Instant> {
        parties.seats().filter_map(|party| self.seat_silent_until(parties, party)).min()
    }

    /// Returns when a party in a room, or linked with another call, has been silent for so long that it must be
    /// probed, or when its probe has waited for an answer for too long.
    fn seat_silent_until(&self, parties: &Parties, party: Party) -> Option<Instant> {
        let leg = parties.leg(party)?;
        let (since, silence) = if parties.is_linked(party) {
            let silence = self.silence_allowed(parties, is_on_hold(leg));
            (leg.silent_since?.max(self.terms_since?), silence?)
        } else {
            let silence = parties.limits.silence.map_or(SEAT_SILENCE, |limit| limit.min(SEAT_SILENCE));
            (leg.silent_since?.max(self.up_since?), silence)
        };
        match leg.probe {
            Probe::Answered(at) => since.max(at).checked_add(silence),
            Probe::Asked(at) => at.checked_add(PROBE_WAIT),
            Probe::None => since.checked_add(silence),
        }
    }

    fn silence_allowed(&self, parties: &Parties, on_hold: bool) -> Option<Duration> {
        if on_hold { parties.limits.silence_on_hold } else { parties.limits.silence }
    }
}

/// Whether either side of the leg holds, so that silence is expected.
fn is_on_hold(leg: &Leg) -> bool {
    leg.exchange.negotiated().is_some_and(|settled| settled.direction != Direction::SendRecv)
}

/// How long a party in a room may send neither RTP nor RTCP before it is probed; `[media] timeout_seconds` may be
/// shorter. A muted phone that sends no packets costs one OPTIONS in this time.
const SEAT_SILENCE: Duration = Duration::from_secs(15);

/// How long a probe waits for its answer: five transmissions over UDP (RFC 3261 §17.1.2.2).
const PROBE_WAIT: Duration = Duration::from_secs(10);
