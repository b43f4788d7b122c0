//! How a call ends, and what its record says.
//!
//! A call lasts for as long as somebody is up in it. Its record tells of the caller's leg; of a call that a room made,
//! of the leg of whoever answered.

use std::time::{Duration, Instant};

use sidetone_media::session::Report;
use sidetone_model::call::HangupCause;
use sidetone_model::cdr::Cdr;
use sidetone_model::quality::{MediaVerdict, Quality};

use crate::cdr::build::{Outcome, build};
use crate::switch::call::{Call, ForkState, Near, State};
use crate::switch::face::{Output, Party, PortId};
use crate::switch::leg::Leg;
use crate::switch::outcome::quality;

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
        let deaf = self.party_at(port).filter(|party| self.leg(*party).is_some_and(Leg::is_open));
        if self.measured().map(Leg::port) == Some(port) {
            self.heard_codec = report.codec.clone();
            let quality = quality(report);
            match self.state {
                State::Ending { .. } => self.complete(quality),
                // The leg that the record tells of has left, others go on.
                State::Answering { .. } | State::Over | State::Ringing { .. } | State::Up => {
                    self.quality = Some(quality);
                }
            }
        }
        if let Some(party) = deaf {
            self.dismiss(now, party, HangupCause::NormalTemporaryFailure);
        }
    }

    /// The last leg is over: every port is closed, and the record waits for the report of the leg that it tells of.
    pub(super) fn finish(&mut self, now: Instant, cause: HangupCause) {
        let ended_after = now.saturating_duration_since(self.started);
        for place in 0..self.forks.len() {
            self.release(Party::Callee(place));
        }
        self.release(Party::Caller);
        self.state = State::Ending { cause, ended_after, deadline: now + self.limits.report };
        if let Some(quality) = self.quality.take() {
            self.complete(quality);
        } else if self.measured().is_none() {
            self.complete(Quality::default());
        }
    }

    /// Why it ends, while its record waits.
    pub(super) fn ending(&self) -> Option<(HangupCause, Option<u16>)> {
        match self.state {
            State::Ending { cause, .. } => Some((cause, self.far.status)),
            State::Answering { .. } | State::Over | State::Ringing { .. } | State::Up => None,
        }
    }

    pub(super) fn complete(&mut self, mut quality: Quality) {
        let State::Ending { cause, ended_after, .. } = self.state else { return };
        if self.answered_after.is_none() {
            // The callee was rung with a port of ours waiting for the caller's audio: an RTP session, unanswered.
            quality.verdict = Some(MediaVerdict::Unanswered);
        }
        let record = self.record(self.answered_after, Some(ended_after), Some(cause), quality);
        self.state = State::Over;
        self.push(Output::Ended(Box::new(record)));
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
        let own = heard.cloned().or_else(|| self.measured()?.codec());
        let outcome = Outcome {
            answered_after_us: answered_after.map(micros),
            ended_after_us: ended_after.map(micros),
            codec_a: own.filter(|_| answered_after.is_some()),
            codec_b: relayed.cloned().or_else(|| callee.and_then(|fork| fork.leg.codec())),
            hangup_cause: cause,
            bridge_cause: self.far.cause,
            sip_status: self.far.status,
            quality,
        };
        build(&self.facts, outcome)
    }

    /// The leg that the record tells of.
    fn measured(&self) -> Option<&Leg> {
        match self.near {
            Near::Party(_) => self.caller(),
            Near::Room => self.leg(Party::Callee(self.winner?)),
        }
    }
}
