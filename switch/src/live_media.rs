//! Media figures of a live call: requests those of both legs from the relay, and passes on its warnings.

use std::time::{Duration, Instant};

use sidetone_call::quality::{self, WallClock};
use sidetone_media::session::{Report, Warning};
use sidetone_model::ids::CallId;
use sidetone_model::live_call::CallEvent;
use sidetone_model::media_quality::{LegQuality, LegSide, LiveCallQuality, MediaWarning, QualityState};
use sidetone_model::time::Now;

use crate::call_table::CallTable;
use crate::io::{MediaCommand, PortId};
use crate::leg::Leg;
use crate::live::LiveCall;
use crate::queries::{Answer, QualityAnswer, ReplyToken};
use crate::switch_io::{Output, Outputs};

/// Queries that wait for reports of the relay.
#[derive(Default)]
pub(super) struct MediaQueries(Vec<Waiting>);

struct Waiting {
    token: ReplyToken,
    call: CallId,
    since: Instant,
    /// Ports whose report has not arrived.
    missing: Vec<PortId>,
    legs: Vec<LegQuality>,
}

impl MediaQueries {
    /// Requests the reports of a call's legs from the relay; the answer follows with the last of them.
    pub(super) fn ask(
        &mut self,
        now: Now,
        token: ReplyToken,
        call: CallId,
        calls: &CallTable,
        outputs: &mut Outputs,
    ) {
        let waits = |waiting: &Waiting| now.instant.saturating_duration_since(waiting.since) < GIVEN_UP_AFTER;
        let given_up = self.0.extract_if(.., |waiting| !waits(waiting));
        outputs.extend(given_up.map(|waiting| reply(waiting.token, QualityAnswer::Busy)));
        if self.0.len() >= QUERIES_MAX {
            return outputs.push_back(reply(token, QualityAnswer::Busy));
        }
        let Some(live) = calls.get(call).filter(|live| live.state().is_some()) else {
            return outputs.push_back(reply(token, QualityAnswer::Gone));
        };
        let open = |(_, leg): &(LegSide, &Leg)| leg.is_open();
        let missing: Vec<PortId> =
            live.call.parties().sides().filter(open).map(|(_, leg)| leg.port()).collect();
        // A party that has left a conference has its final report already.
        let legs: Vec<LegQuality> =
            live.call.parties().sides().filter_map(|(_, leg)| leg.media().cloned()).collect();
        if missing.is_empty() {
            // No report can arrive: a room rings the party, whose leg is not open yet, or all legs are closed.
            return outputs.push_back(reply(token, quality_of(call, live, now, legs)));
        }
        outputs.extend(missing.iter().map(|port| Output::Media(*port, MediaCommand::Snapshot)));
        self.0.push(Waiting { token, call, since: now.instant, missing, legs });
    }

    /// Handles the relay's report of a leg; answers the queries that are complete with it.
    pub(super) fn reported(
        &mut self,
        now: Now,
        (call, port): (CallId, PortId),
        report: &Report,
        calls: &CallTable,
        outputs: &mut Outputs,
    ) {
        let is_awaited = |waiting: &Waiting| waiting.call == call && waiting.missing.contains(&port);
        if !self.0.iter().any(is_awaited) {
            return;
        }
        let Some(live) = calls.get(call) else { return };
        let leg = leg_at(live, port).map(|side| leg_now(live, side, report, now));
        for waiting in self.0.iter_mut().filter(|waiting| is_awaited(waiting)) {
            waiting.missing.retain(|missing| *missing != port);
            waiting.legs.extend(leg.clone());
        }
        let complete = self.0.extract_if(.., |waiting| waiting.missing.is_empty());
        outputs
            .extend(complete.map(|waiting| reply(waiting.token, quality_of(call, live, now, waiting.legs))));
    }
}

fn reply(token: ReplyToken, answer: QualityAnswer) -> Output {
    Output::Reply(token, Answer::CallQuality(answer))
}

/// Notes a warning of the relay about a leg, and returns the event of its call.
pub(super) fn warning_event(
    now: Now,
    port: PortId,
    warning: &Warning,
    calls: &mut CallTable,
) -> Option<CallEvent> {
    let live = calls.get_mut(calls.call_at(port)?)?;
    let side = leg_at(live, port)?;
    let (whom, party) = (live.call.parties().whom(side), live.number_of(side));
    let warning: MediaWarning = quality::warning(warning, side, whom, party, now.wall);
    live.call.warned(side, warning.media_verdict);
    Some(CallEvent::Media(live.view()?, Box::new(warning)))
}

/// Builds the quality of a live call from that of its legs.
fn quality_of(call: CallId, live: &LiveCall, now: Now, mut legs: Vec<LegQuality>) -> QualityAnswer {
    let facts = live.call.facts();
    legs.sort_by_key(|leg| leg.leg);
    let quality = quality::call(call, QualityState::Live, now.wall, legs);
    let quality = LiveCallQuality { organisation_id: facts.organisation, team_id: facts.team, quality };
    QualityAnswer::Known(Box::new(quality))
}

/// Builds the figures of a leg of a live call.
fn leg_now(live: &LiveCall, side: LegSide, report: &Report, now: Now) -> LegQuality {
    let (whom, clock) = (live.call.parties().whom(side), WallClock::of(report, now.wall));
    let leg = quality::leg_of(report, side, whom, live.number_of(side), clock);
    if live.call.parties().is_up() { leg } else { quality::before_answer(leg) }
}

/// Returns which leg of the call has that port; `None` for a fork that was not answered.
fn leg_at(live: &LiveCall, port: PortId) -> Option<LegSide> {
    live.call.parties().sides().find(|(_, leg)| leg.port() == port).map(|(side, _)| side)
}

/// How long a query waits for its reports.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(2);
/// Most queries that may wait at the same time.
const QUERIES_MAX: usize = 256;
