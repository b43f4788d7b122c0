//! How a call ends, and what its record says.
//!
//! A call lasts for as long as somebody is up in it. Its record tells of the caller's leg; of a call that a room made,
//! of the leg of whoever answered.

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

use crate::switch::call::{Call, ForkState, Near, State};
use crate::switch::face::{Output, Party, PortId};
use crate::switch::leg::Leg;

impl Call {
    pub(super) fn cancelled(&mut self, now: Instant) {
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

    /// Hangs up one party that sits in a room; with the last the call is over.
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

    /// A party of a merged call is gone. The others stay: the call is over with the last of them.
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

    /// A port is closed. One that nobody told to close was given up by the relay, and its party hears nothing more.
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
        // Otherwise the leg has left, others go on.
        if matches!(self.state, State::Ending { .. }) && !self.awaits_reports() {
            self.complete();
        }
        if deaf {
            self.dismiss(now, party, HangupCause::NormalTemporaryFailure);
        }
    }

    /// The last leg is over: every port is closed, and the record waits for the reports of the legs that it tells of.
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

    /// Whether a leg that the record tells of has not been reported on yet.
    fn awaits_reports(&self) -> bool {
        self.sides().any(|(_, leg)| !leg.has_reported())
    }

    /// Why it ends, while its record waits.
    pub(super) fn ending(&self) -> Option<(HangupCause, Option<u16>)> {
        match self.state {
            State::Ending { cause, .. } => Some((cause, self.far.status)),
            State::Answering { .. } | State::Over | State::Ringing { .. } | State::Up => None,
        }
    }

    /// Gives out the record, with the reports that have come.
    pub(super) fn complete(&mut self) {
        let State::Ending { cause, ended_after, .. } = self.state else { return };
        let mut quality = self.quality.take().unwrap_or_default();
        if self.answered_after.is_none() {
            // The callee was rung with a port of ours waiting for the caller's audio: an RTP session, unanswered.
            quality.verdict = Some(MediaVerdict::Unanswered);
        }
        let mut record = self.record(self.answered_after, Some(ended_after), Some(cause), quality);
        let media = self.media(self.wall(ended_after), quality.verdict);
        record.media = media.map(|media| Box::new(media.ended_as(&record)));
        self.state = State::Over;
        self.push(Output::Ended(Box::new(record)));
    }

    /// What the legs' ports said of them; `None` when there was no media at all.
    fn media(&mut self, at: Timestamp, verdict: Option<MediaVerdict>) -> Option<CallQuality> {
        let sides = [LegSide::A, LegSide::B].map(|side| self.party_of(side));
        let legs: Vec<_> = sides
            .into_iter()
            .flatten()
            .filter_map(|party| self.leg_mut(party).and_then(Leg::take_media))
            .collect();
        let media = media_quality::call(self.facts.call, QualityState::Final, at, legs);
        // A caller who was never told of the answer had an unanswered call, whatever came of it meanwhile.
        (!media.legs.is_empty()).then(|| media.with_verdict(verdict))
    }

    /// The wall-clock time so long after the INVITE.
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
        // A room has no codec: a call with one has but the codec of its leg.
        let callee = match self.near {
            Near::Party(_) => self.winner.and_then(|place| self.forks.get(place)),
            Near::Room => None,
        };
        let callee = callee.filter(|_| answered_after.is_some());
        // Of several codecs that SDP settled, the one that was heard; and audio is relayed as it comes.
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

    /// Whose leg the record tells of as that: `a` is the caller's, or that of whoever answered a room.
    pub(super) fn party_of(&self, side: LegSide) -> Option<Party> {
        match (side, &self.near) {
            (LegSide::A, Near::Party(_)) => Some(Party::Caller),
            (LegSide::A, Near::Room) | (LegSide::B, Near::Party(_)) => self.winner.map(Party::Callee),
            (LegSide::B, Near::Room) => None,
        }
    }

    /// How sentences call the party of that leg.
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

/// Whether there is anything to tell: SDP settled something, or packets came all the same.
fn had_media(report: &Report) -> bool {
    report.verdict.is_some() || report.counters.datagrams > 0
}
