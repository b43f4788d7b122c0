//! The end of a call, and the contents of its record.
//!
//! A call lasts until its last party has left. Its record describes the caller's leg, or, for a call placed
//! by a room, the leg that answered.

use std::time::{Duration, Instant};

use sidetone_call::quality::{self as media_quality, WallClock};
use sidetone_call::record::{Outcome, build};
use sidetone_media::session::Report;

use sidetone_model::call::{EndedBy, HangupCause};
use sidetone_model::call_prompt::PlayResult;
use sidetone_model::cdr::Cdr;
use sidetone_model::media_quality::{CallQuality, LegSide, QualityState};
use sidetone_model::quality::{MediaVerdict, Quality};
use sidetone_model::time::Timestamp;
use sidetone_sip::sdp::SessionDescription;

use crate::io::{Output, Party, PortId};
use crate::leg::Leg;
use crate::linked_mix;
use crate::parties::{ForkState, Near, Parties, State};

/// How the far end and the media of a call ended, for its record.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// The far end's result of the last attempt.
    pub(super) far: Far,
    /// Why the caller's leg ended, when a room keeps the other party.
    left: Option<HangupCause>,
    /// The media figures of the record, once the report of its leg has arrived.
    quality: Option<Quality>,
    /// The same for the called party's leg.
    quality_b: Option<Quality>,
    /// The actual codec of the received audio.
    heard_codec: Option<String>,
}

/// The result of the far end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Far {
    /// Its final response.
    pub(super) status: Option<u16>,
    /// The hangup cause of that response, or of its BYE.
    pub(super) cause: Option<HangupCause>,
    /// The status sent to the caller: the final response, or a substitute when there was none.
    pub(super) reply: Option<u16>,
}

impl Ending {
    /// Handles the caller's CANCEL. Its cause is ORIGINATOR_CANCEL, unless its Reason contains another one.
    pub(super) fn cancelled(&mut self, parties: &mut Parties, now: Instant, cause: HangupCause) {
        match parties.state {
            State::Ringing { .. } => {
                parties.drop_forks(None, cause);
                parties.push(Output::Reject(487, None));
                self.finish(parties, now, cause, EndedBy::Caller);
            }
            // The callee answered before the CANCEL arrived, and the caller has no 200 yet.
            State::Answering { .. } => {
                parties.bye_callee(cause);
                parties.push(Output::Reject(487, None));
                self.finish(parties, now, cause, EndedBy::Caller);
            }
            State::Opening => parties.refuse(487),
            State::Ending { .. } | State::Over | State::Refused | State::Up => {} // Too late (RFC 3261 §9.2).
        }
    }

    pub(super) fn hung_up(&mut self, parties: &mut Parties, now: Instant, party: Party, cause: HangupCause) {
        if let Party::Callee(place) = party
            && let Some(fork) = parties.forks.get_mut(place)
        {
            fork.state = ForkState::Ended;
            if parties.callee() != Some(place) {
                parties.release(party);
                return; // A fork that answered too late hangs up before our BYE reaches it.
            }
        }
        let by = by_party(party, cause);
        if parties.is_up() && parties.referrer == Some(party) && !parties.is_merged() {
            // It is transferring the other party, which waits for the result.
            if let Some(other) = parties.other(party) {
                parties.await_peer(other);
            }
        }
        if parties.is_merged() {
            return self.leave(parties, now, party, cause, by);
        }
        match (&parties.state, party) {
            (State::Up | State::Answering { .. }, Party::Caller) => parties.bye_callee(cause),
            (State::Up, Party::Callee(_)) => parties.bye_caller(cause),
            (State::Answering { .. }, Party::Callee(_)) => parties.push(Output::Reject(480, Some(cause))),
            (State::Ringing { .. }, Party::Caller) => parties.drop_forks(None, cause),
            (State::Opening, _) => return parties.refuse(487),
            (State::Ending { .. } | State::Over | State::Refused, _)
            | (State::Ringing { .. }, Party::Callee(_)) => return,
        }
        self.far.cause = self.far.status.is_some().then_some(cause);
        self.finish(parties, now, cause, by);
    }

    /// Hangs up one party that is in a room, or linked with another call; the call ends with its last party.
    pub(super) fn dismiss(
        &mut self,
        parties: &mut Parties,
        now: Instant,
        party: Party,
        cause: HangupCause,
        by: EndedBy,
    ) {
        if !parties.is_merged() {
            return self.end_by_us(parties, now, cause);
        }
        if !parties.leg(party).is_some_and(Leg::is_open) {
            return; // It hung up at the same moment.
        }
        parties.push(Output::Bye(party, cause));
        if let Party::Callee(place) = party
            && let Some(fork) = parties.forks.get_mut(place)
        {
            fork.state = ForkState::Ended;
        }
        self.leave(parties, now, party, cause, by);
    }

    pub(super) fn end_by_us(&mut self, parties: &mut Parties, now: Instant, cause: HangupCause) {
        let refusal = if cause == HangupCause::AllottedTimeout { 402 } else { 503 };
        match parties.state {
            State::Ringing { .. } => {
                parties.drop_forks(None, cause);
                parties.push(Output::Reject(refusal, Some(cause)));
            }
            State::Answering { .. } => {
                parties.bye_callee(cause);
                parties.push(Output::Reject(refusal, Some(cause)));
            }
            State::Up => {
                self.far.cause = self.far.status.is_some().then_some(cause);
                parties.bye_callee(cause);
                parties.bye_caller(cause);
            }
            State::Opening => return parties.refuse(refusal),
            State::Ending { .. } | State::Over | State::Refused => return,
        }
        self.finish(parties, now, cause, EndedBy::System);
    }

    /// Releases a party of a merged call. The other parties stay; the call ends with the last one.
    fn leave(&mut self, parties: &mut Parties, now: Instant, party: Party, cause: HangupCause, by: EndedBy) {
        parties.release_because(party, cause);
        match party {
            Party::Caller => self.left = Some(cause),
            Party::Callee(_) => self.far.cause = Some(cause),
        }
        if !parties.has_seats() {
            self.finish(parties, now, self.left.unwrap_or(cause), by);
        } else if parties.unlink(party) {
            parties.push(Output::Unlinked(party, cause));
        }
    }

    /// Handles the report of a closed port. If we had not closed it, the relay gave it up: its party no
    /// longer hears anything and is hung up.
    pub(super) fn report(&mut self, parties: &mut Parties, now: Instant, port: PortId, report: &Report) {
        if let Some(party) = parties.party_with_video_at(port) {
            if let Some(video) = parties.leg_mut(party).and_then(|leg| leg.video.as_mut()) {
                video.reported(report.video);
            }
            return self.complete_if_reported(parties);
        }
        let Some(party) = parties.party_at(port) else { return };
        let deaf = parties.leg(party).is_some_and(Leg::is_open);
        if parties.party_of(LegSide::A) == Some(party) {
            self.heard_codec = report.codec.clone();
            self.quality = Some(media_quality::figures(report));
        } else if parties.party_of(LegSide::B) == Some(party) {
            self.quality_b = Some(media_quality::figures(report));
        }
        let at = parties.wall(now.saturating_duration_since(parties.started));
        let media = parties.side_of(party).filter(|_| had_media(report));
        let clock = WallClock::of(report, at);
        let media = media.map(|side| media_quality::leg_of(report, side, parties.whom(side), None, clock));
        if let Some(leg) = parties.leg_mut(party) {
            leg.reported(media);
        }
        self.complete_if_reported(parties);
        if deaf {
            self.dismiss(parties, now, party, HangupCause::NormalTemporaryFailure, EndedBy::System);
        }
    }

    /// Outputs the record of an ended call when the last report has arrived. In other states only one leg has left, and
    /// the others continue.
    fn complete_if_reported(&mut self, parties: &mut Parties) {
        if matches!(parties.state, State::Ending { .. }) && !self.awaits_reports(parties) {
            self.complete(parties);
        }
    }

    /// Closes every port after the last leg ended; the record then waits for the reports of the legs that it
    /// describes.
    pub(super) fn finish(&mut self, parties: &mut Parties, now: Instant, cause: HangupCause, by: EndedBy) {
        let linked: Vec<Party> =
            parties.links().filter(|link| link.peer.is_some()).map(|link| link.party).collect();
        for party in linked {
            parties.push(Output::Unlinked(party, cause));
        }
        parties.end_recording();
        parties.end_prompt(PlayResult::CallEnded);
        linked_mix::end(parties, PlayResult::CallEnded);
        let ended_after = now.saturating_duration_since(parties.started);
        for place in 0..parties.forks.len() {
            parties.release_because(Party::Callee(place), cause);
        }
        parties.release_because(Party::Caller, cause);
        parties.state = State::Ending { cause, by, ended_after, deadline: now + parties.limits.report };
        if !self.awaits_reports(parties) {
            self.complete(parties);
        }
    }

    /// Whether a leg that the record describes has no report yet.
    fn awaits_reports(&self, parties: &Parties) -> bool {
        parties.sides().any(|(_, leg)| !leg.has_reported())
    }

    /// Outputs the record, with the reports that have arrived.
    pub(super) fn complete(&mut self, parties: &mut Parties) {
        let State::Ending { cause, by, ended_after, .. } = parties.state else { return };
        let mut quality = self.quality.take().unwrap_or_default();
        if parties.answered_after.is_none() {
            // The callee rang while our port waited for the caller's audio: an unanswered RTP session.
            quality.verdict = Some(MediaVerdict::Unanswered);
        }
        let mut record =
            self.record(parties, parties.answered_after, Some(ended_after), Some(cause), quality);
        record.ended_by = Some(by);
        let media = self.media(parties, parties.wall(ended_after), quality.verdict);
        record.media = if parties.rings_caller() {
            let media = media.unwrap_or_else(|| CallQuality::nothing_of(&record));
            Some(Box::new(media.without_caller(cause)))
        } else {
            media.map(|media| Box::new(media.ended_as(&record)))
        };
        parties.state = State::Over;
        parties.push(Output::Ended(Box::new(record)));
    }

    /// Returns the media figures of the legs; `None` when there was no media.
    fn media(
        &mut self,
        parties: &mut Parties,
        at: Timestamp,
        verdict: Option<MediaVerdict>,
    ) -> Option<CallQuality> {
        let sides = [LegSide::A, LegSide::B].map(|side| parties.party_of(side));
        let legs: Vec<_> = sides
            .into_iter()
            .flatten()
            .filter_map(|party| parties.leg_mut(party).and_then(Leg::take_media))
            .collect();
        let media = media_quality::call(parties.facts.call, QualityState::Final, at, legs);
        // If the answer never reached the caller, the call counts as unanswered, whatever media there was.
        (!media.legs.is_empty()).then(|| media.with_verdict(verdict))
    }

    pub(super) fn record(
        &self,
        parties: &Parties,
        answered_after: Option<Duration>,
        ended_after: Option<Duration>,
        cause: Option<HangupCause>,
        quality: Quality,
    ) -> Cdr {
        let micros = |after: Duration| i64::try_from(after.as_micros()).unwrap_or(i64::MAX);
        // A room has no codec: the record of a call with a room has only the codec of its leg.
        let callee = match parties.near {
            Near::Party(_) => parties.winner.and_then(|place| parties.forks.get(place)),
            Near::Room => None,
        };
        let callee = callee.filter(|_| answered_after.is_some());
        // If SDP negotiated several codecs, the record names the one that was received. Relayed audio keeps
        // its codec.
        let heard = self.heard_codec.as_ref();
        let relayed = heard.filter(|name| callee.is_some_and(|fork| fork.leg.has_codec(name)));
        let leg_a = parties.party_of(LegSide::A).and_then(|party| parties.leg(party));
        let own = heard.cloned().or_else(|| leg_a?.codec());
        let placed_from = parties.awaiting.as_ref().map(|awaited| awaited.from);
        let outcome = Outcome {
            answered_after_us: answered_after.map(micros),
            ended_after_us: ended_after.map(micros),
            codec_a: own.filter(|_| answered_after.is_some()),
            codec_b: relayed.cloned().or_else(|| callee.and_then(|fork| fork.leg.codec())),
            hangup_cause: cause,
            bridge_cause: self.far.cause,
            sip_status: self.far.status,
            ended_by: None,
            fax: parties.fax && answered_after.is_some(),
            transferred_from: parties.links().find_map(|link| link.from).or(placed_from),
            transferred_to: parties.links().find_map(|link| link.to),
            quality,
            quality_b: self.quality_b.filter(|_| answered_after.is_some()),
            device_a: leg_a.map(Leg::device).unwrap_or_default(),
            device_b: callee.map(|fork| fork.leg.device()).unwrap_or_default(),
        };
        build(&parties.facts, outcome)
    }

    /// Waits until the answered call is in the journal; only then is the caller answered.
    pub(super) fn await_journal(
        &mut self,
        parties: &mut Parties,
        now: Instant,
        answer: Option<SessionDescription>,
    ) {
        parties.state = State::Answering { answer };
        let answered_after = Some(now.saturating_duration_since(parties.started));
        parties.far_answered_after = answered_after;
        let record = self.record(parties, answered_after, None, None, Quality::default());
        parties.push(Output::Journal(Box::new(record)));
    }
}

/// Returns the side that ended a call when a party left; a party whose dialog broke did not end it.
fn by_party(party: Party, cause: HangupCause) -> EndedBy {
    match (cause, party) {
        (HangupCause::RecoveryOnTimerExpire, _) => EndedBy::System,
        (_, Party::Callee(_)) => EndedBy::Callee,
        (_, Party::Caller) => EndedBy::Caller,
    }
}

/// Whether there was media: SDP negotiated some, or packets arrived anyway.
fn had_media(report: &Report) -> bool {
    report.verdict.is_some() || report.counters.datagrams > 0
}
