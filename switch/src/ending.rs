//! How a call ends, and what its record contains.
//!
//! A call lasts until its last party has left. Its record describes the caller's leg, or, for a call placed
//! by a room, the leg that answered.

use std::time::{Duration, Instant};

use sidetone_call::quality::{self as media_quality, WallClock};
use sidetone_call::record::{Outcome, build};
use sidetone_media::session::Report;
use sidetone_media::verdict::Party as Whom;
use sidetone_model::call::HangupCause;
use sidetone_model::cdr::Cdr;
use sidetone_model::media_quality::{CallQuality, LegSide, QualityState};
use sidetone_model::quality::{MediaVerdict, Quality};
use sidetone_model::time::Timestamp;

use crate::call::{Call, ForkState, Near, State};
use crate::face::{Output, Party, PortId};
use crate::leg::Leg;

impl Call {
    pub(super) fn cancelled(&mut self, now: Instant) {
        match self.state {
            State::Ringing { .. } => {
                self.drop_forks(None);
                self.push(Output::Reject(487));
                self.finish(now, HangupCause::OriginatorCancel);
            }
            // The callee answered while the CANCEL was on its way, and the caller has no 200 yet.
            State::Answering { .. } => {
                self.bye_callee();
                self.push(Output::Reject(487));
                self.finish(now, HangupCause::OriginatorCancel);
            }
            State::Ending { .. } | State::Over | State::Up => {} // Too late (RFC 3261 §9.2).
        }
    }

    pub(super) fn hung_up(&mut self, now: Instant, party: Party, cause: HangupCause) {
        if let Party::Callee(place) = party
            && let Some(fork) = self.forks.get_mut(place)
        {
            fork.state = ForkState::Ended;
            if self.callee() != Some(place) {
                self.release(party);
                return; // A fork that had lost hangs up before our BYE reaches it.
            }
        }
        if self.is_merged() {
            return self.leave(now, party, cause);
        }
        match (&self.state, party) {
            (State::Up | State::Answering { .. }, Party::Caller) => self.bye_callee(),
            (State::Up, Party::Callee(_)) => self.bye_caller(),
            (State::Answering { .. }, Party::Callee(_)) => self.push(Output::Reject(480)),
            (State::Ringing { .. }, Party::Caller) => self.drop_forks(None),
            (State::Ending { .. } | State::Over, _) | (State::Ringing { .. }, Party::Callee(_)) => return,
        }
        self.far.cause = self.far.status.is_some().then_some(cause);
        self.finish(now, cause);
    }

    /// Hangs up one party that is in a room; the call ends with its last party.
    pub(super) fn dismiss(&mut self, now: Instant, party: Party, cause: HangupCause) {
        if !self.is_merged() {
            return self.end_by_us(now, cause);
        }
        if !self.leg(party).is_some_and(Leg::is_open) {
            return; // It hung up at the same moment.
        }
        self.push(Output::Bye(party));
        if let Party::Callee(place) = party
            && let Some(fork) = self.forks.get_mut(place)
        {
            fork.state = ForkState::Ended;
        }
        self.leave(now, party, cause);
    }

    pub(super) fn end_by_us(&mut self, now: Instant, cause: HangupCause) {
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
                self.bye_caller();
            }
            State::Ending { .. } | State::Over => return,
        }
        self.finish(now, cause);
    }

    /// Releases a party of a merged call. The other parties stay; the call ends with the last one.
    fn leave(&mut self, now: Instant, party: Party, cause: HangupCause) {
        self.release(party);
        match party {
            Party::Caller => self.left = Some(cause),
            Party::Callee(_) => self.far.cause = Some(cause),
        }
        if !self.has_seats() {
            self.finish(now, self.left.unwrap_or(cause));
        }
    }

    fn bye_caller(&mut self) {
        if self.has_caller() {
            self.push(Output::Bye(Party::Caller));
        }
    }

    fn bye_callee(&mut self) {
        if let Some(callee) = self.winner
            && let Some(fork) = self.forks.get_mut(callee)
            && fork.state == ForkState::Up
        {
            self.push(Output::Bye(Party::Callee(callee)));
        }
    }

    /// Handles the report of a closed port. If we had not closed it, the relay gave it up: its party no
    /// longer hears anything and is hung up.
    pub(super) fn report(&mut self, now: Instant, port: PortId, report: &Report) {
        let Some(party) = self.party_at(port) else { return };
        let deaf = self.leg(party).is_some_and(Leg::is_open);
        if self.party_of(LegSide::A) == Some(party) {
            self.heard_codec = report.codec.clone();
            self.quality = Some(media_quality::figures(report));
        } else if self.party_of(LegSide::B) == Some(party) {
            self.quality_b = Some(media_quality::figures(report));
        }
        let at = self.wall(now.saturating_duration_since(self.started));
        let media = self.side_of(party).filter(|_| had_media(report));
        let clock = WallClock::of(report, at);
        let media = media.map(|side| media_quality::leg_of(report, side, self.whom(side), None, clock));
        if let Some(leg) = self.leg_mut(party) {
            leg.reported(media);
        }
        // In other states one leg has left and the others go on.
        if matches!(self.state, State::Ending { .. }) && !self.awaits_reports() {
            self.complete();
        }
        if deaf {
            self.dismiss(now, party, HangupCause::NormalTemporaryFailure);
        }
    }

    /// Closes every port after the last leg ended; the record then waits for the reports of the legs that it
    /// describes.
    pub(super) fn finish(&mut self, now: Instant, cause: HangupCause) {
        let ended_after = now.saturating_duration_since(self.started);
        for place in 0..self.forks.len() {
            self.release(Party::Callee(place));
        }
        self.release(Party::Caller);
        self.state = State::Ending { cause, ended_after, deadline: now + self.limits.report };
        if !self.awaits_reports() {
            self.complete();
        }
    }

    /// Whether a leg that the record describes has no report yet.
    fn awaits_reports(&self) -> bool {
        self.sides().any(|(_, leg)| !leg.has_reported())
    }

    /// Returns the cause and the SIP status of a call whose record waits.
    pub(super) fn ending(&self) -> Option<(HangupCause, Option<u16>)> {
        match self.state {
            State::Ending { cause, .. } => Some((cause, self.far.status)),
            State::Answering { .. } | State::Over | State::Ringing { .. } | State::Up => None,
        }
    }

    /// Outputs the record, with the reports that have arrived.
    pub(super) fn complete(&mut self) {
        let State::Ending { cause, ended_after, .. } = self.state else { return };
        let mut quality = self.quality.take().unwrap_or_default();
        if self.answered_after.is_none() {
            // The callee rang while a port of ours waited for the caller's audio: that is an unanswered RTP
            // session.
            quality.verdict = Some(MediaVerdict::Unanswered);
        }
        let mut record = self.record(self.answered_after, Some(ended_after), Some(cause), quality);
        let media = self.media(self.wall(ended_after), quality.verdict);
        record.media = media.map(|media| Box::new(media.ended_as(&record)));
        self.state = State::Over;
        self.push(Output::Ended(Box::new(record)));
    }

    /// Returns the media figures of the legs; `None` when there was no media.
    fn media(&mut self, at: Timestamp, verdict: Option<MediaVerdict>) -> Option<CallQuality> {
        let sides = [LegSide::A, LegSide::B].map(|side| self.party_of(side));
        let legs: Vec<_> = sides
            .into_iter()
            .flatten()
            .filter_map(|party| self.leg_mut(party).and_then(Leg::take_media))
            .collect();
        let media = media_quality::call(self.facts.call, QualityState::Final, at, legs);
        // If the answer never reached the caller, the call counts as unanswered, whatever media there was.
        (!media.legs.is_empty()).then(|| media.with_verdict(verdict))
    }

    /// Returns the wall-clock time at `after` from the INVITE.
    pub(super) fn wall(&self, after: Duration) -> Timestamp {
        self.facts.started_at.plus_micros(i64::try_from(after.as_micros()).unwrap_or(i64::MAX))
    }

    pub(super) fn record(
        &self,
        answered_after: Option<Duration>,
        ended_after: Option<Duration>,
        cause: Option<HangupCause>,
        quality: Quality,
    ) -> Cdr {
        let micros = |after: Duration| i64::try_from(after.as_micros()).unwrap_or(i64::MAX);
        // A room has no codec: the record of a call with a room has only the codec of its leg.
        let callee = match self.near {
            Near::Party(_) => self.winner.and_then(|place| self.forks.get(place)),
            Near::Room => None,
        };
        let callee = callee.filter(|_| answered_after.is_some());
        // If SDP negotiated several codecs, the record names the one that was received. Relayed audio keeps
        // its codec.
        let heard = self.heard_codec.as_ref();
        let relayed = heard.filter(|name| callee.is_some_and(|fork| fork.leg.has_codec(name)));
        let own = heard.cloned().or_else(|| self.leg(self.party_of(LegSide::A)?)?.codec());
        let outcome = Outcome {
            answered_after_us: answered_after.map(micros),
            ended_after_us: ended_after.map(micros),
            codec_a: own.filter(|_| answered_after.is_some()),
            codec_b: relayed.cloned().or_else(|| callee.and_then(|fork| fork.leg.codec())),
            hangup_cause: cause,
            bridge_cause: self.far.cause,
            sip_status: self.far.status,
            quality,
            quality_b: self.quality_b.filter(|_| answered_after.is_some()),
        };
        build(&self.facts, outcome)
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

    /// Returns the word for that leg's party in sentences.
    pub(super) fn whom(&self, side: LegSide) -> Whom {
        match self.near {
            Near::Party(_) => media_quality::party_of(side),
            Near::Room => Whom::Called,
        }
    }

    fn side_of(&self, party: Party) -> Option<LegSide> {
        [LegSide::A, LegSide::B].into_iter().find(|side| self.party_of(*side) == Some(party))
    }
}

/// Whether there was media: SDP negotiated some, or packets arrived anyway.
fn had_media(report: &Report) -> bool {
    report.verdict.is_some() || report.counters.datagrams > 0
}
