//! Media figures of a live call: asks the relay for those of both legs, and passes on its warnings.

use std::fmt;
use std::time::{Duration, Instant};

use sidetone_call::quality::{self, WallClock};
use sidetone_media::session::{Report, Warning};
use sidetone_model::ids::CallId;
use sidetone_model::live_call::CallNews;
use sidetone_model::media_quality::{LegQuality, LegSide, LiveCallQuality, MediaWarning, QualityState};

use crate::call::Call;
use crate::control::Question;
use crate::face::{MediaCommand, PortId};
use crate::leg::Leg;
use crate::live::LiveCall;
use crate::machine::{Now, Output, Switch};

/// How a call's media does now; the answer comes once the relay has told of every leg.
pub struct AskMedia {
    /// The call.
    pub call: CallId,
    /// Receives the answer.
    pub tell: Tell,
}

/// What is told of the media of a call; it must not wait.
pub type Tell = Box<dyn FnOnce(LiveCallQuality) + Send>;

/// Whether an answer will follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedMedia {
    /// Too many wait already.
    Busy,
    /// The call does not exist, or no longer.
    Gone,
    /// The answer will follow.
    Soon,
}

/// Questions that wait for reports of the relay.
#[derive(Default)]
pub(super) struct MediaQuestions(Vec<Waiting>);

struct Waiting {
    call: CallId,
    since: Instant,
    /// Ports whose report has not arrived.
    missing: Vec<PortId>,
    legs: Vec<LegQuality>,
    tell: Tell,
}

impl Question for AskMedia {
    type Answer = AskedMedia;

    fn put(self, now: Now, switch: &mut Switch) -> AskedMedia {
        switch.ask_media(now, self)
    }
}

impl fmt::Debug for MediaQuestions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MediaQuestions({})", self.0.len())
    }
}

impl Switch {
    /// Requests the reports of a call's legs from the relay.
    pub(super) fn ask_media(&mut self, now: Now, AskMedia { call, tell }: AskMedia) -> AskedMedia {
        let waits = |waiting: &Waiting| now.instant.saturating_duration_since(waiting.since) < GIVEN_UP_AFTER;
        self.media_questions.0.retain(waits);
        if self.media_questions.0.len() >= QUESTIONS_MAX {
            return AskedMedia::Busy;
        }
        let Some(live) = self.calls.get(&call).filter(|live| live.state().is_some()) else {
            return AskedMedia::Gone;
        };
        let open = |(_, leg): &(LegSide, &Leg)| leg.is_open();
        let missing: Vec<PortId> = live.call.sides().filter(open).map(|(_, leg)| leg.port()).collect();
        // A party that has left a conference has its final report already.
        let legs: Vec<LegQuality> = live.call.sides().filter_map(|(_, leg)| leg.media().cloned()).collect();
        if missing.is_empty() {
            // No report can come: a room rings the party, whose leg is not open yet, or all legs are closed.
            tell(quality_of(call, live, now, legs));
            return AskedMedia::Soon;
        }
        for port in &missing {
            self.push(Output::Media(*port, MediaCommand::Snapshot));
        }
        self.media_questions.0.push(Waiting { call, since: now.instant, missing, legs, tell });
        AskedMedia::Soon
    }

    /// Handles the relay's report of a leg; answers the questions that are complete with it.
    pub(super) fn heard_of_media(&mut self, now: Now, call: CallId, port: PortId, report: &Report) {
        let is_awaited = |waiting: &Waiting| waiting.call == call && waiting.missing.contains(&port);
        if !self.media_questions.0.iter().any(is_awaited) {
            return;
        }
        let Some(live) = self.calls.get(&call) else { return };
        let leg = leg_at(live, port).map(|side| leg_now(live, side, report, now));
        let mut ready = Vec::new();
        for mut waiting in std::mem::take(&mut self.media_questions.0) {
            if is_awaited(&waiting) {
                waiting.missing.retain(|missing| *missing != port);
                waiting.legs.extend(leg.clone());
            }
            if waiting.missing.is_empty() {
                ready.push(waiting);
            } else {
                self.media_questions.0.push(waiting);
            }
        }
        for Waiting { legs, tell, .. } in ready {
            tell(quality_of(call, live, now, legs));
        }
    }

    /// Publishes a warning of the relay about a leg as an event of its call.
    pub(super) fn warned_of_media(&mut self, now: Now, port: PortId, warning: &Warning) {
        let Some(live) = self.ports.get(&port).and_then(|call| self.calls.get(call)) else { return };
        let (Some(call), Some(side)) = (live.view(), leg_at(live, port)) else { return };
        let party = live.number_of(side);
        let warning: MediaWarning = quality::warning(warning, side, live.call.whom(side), party, now.wall);
        self.push(Output::News(Box::new(CallNews::Media(call, Box::new(warning)).into())));
    }
}

/// Builds the quality of a live call from that of its legs.
fn quality_of(call: CallId, live: &LiveCall, now: Now, mut legs: Vec<LegQuality>) -> LiveCallQuality {
    let facts = live.call.facts();
    legs.sort_by_key(|leg| leg.leg);
    let quality = quality::call(call, QualityState::Live, now.wall, legs);
    LiveCallQuality { organisation_id: facts.organisation, team_id: facts.team, quality }
}

/// Builds the figures of a leg of a live call.
fn leg_now(live: &LiveCall, side: LegSide, report: &Report, now: Now) -> LegQuality {
    let (whom, clock) = (live.call.whom(side), WallClock::of(report, now.wall));
    let leg = quality::leg_of(report, side, whom, live.number_of(side), clock);
    if live.call.is_up() { leg } else { quality::before_answer(leg) }
}

/// Returns which leg of the call has that port; `None` for a fork that was not answered.
fn leg_at(live: &LiveCall, port: PortId) -> Option<LegSide> {
    live.call.sides().find(|(_, leg)| leg.port() == port).map(|(side, _)| side)
}

impl Call {
    /// Returns the legs that the record describes.
    pub(super) fn sides(&self) -> impl Iterator<Item = (LegSide, &Leg)> {
        let sides = [LegSide::A, LegSide::B].into_iter();
        sides.filter_map(|side| Some((side, self.leg(self.party_of(side)?)?)))
    }
}

/// How long a question waits for its reports.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(2);
/// Questions that may wait at once.
const QUESTIONS_MAX: usize = 256;
