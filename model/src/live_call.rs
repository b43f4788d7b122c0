//! Live calls as readers see them, and the port that returns them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::access::Scope;
use crate::call::{Direction, words};
use crate::call_parking::ParkedIn;
use crate::call_prompt::LivePrompt;
use crate::event::{Event, EventKind};
use crate::ids::{AgentId, CallId, CallRecordingId, ExtensionId, LegId, OrganisationId, TeamId, TrunkId};
use crate::media_quality::MediaWarning;
use crate::page::{Page, Window};
use crate::port_future::PortFuture;
use crate::quality::MediaVerdict;
use crate::time::Timestamp;

words! {
    /// The state of a live call or of one of its legs. Finished calls are not listed; their record has the hangup
    /// cause.
    CallState {
        /// Both sides talk.
        Answered = "answered",
        /// It was placed, and the far end has not responded yet.
        Queued = "queued",
        /// The far end rings.
        Ringing = "ringing",
    }
}

words! {
    /// The side of a call that a leg is on.
    LegRole {
        /// It was called.
        Callee = "callee",
        /// It called.
        Caller = "caller",
    }
}

/// A call that is up or being set up. Nullable fields are always present; other fields are absent when they have no
/// value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LiveCall {
    /// The call, and later its record's `call_uuid`.
    pub uuid: CallId,
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// Where it came from and goes to.
    pub direction: Direction,
    /// The caller's number; absent when withheld.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// The number as routed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// The state of the call.
    pub state: CallState,
    /// When it was placed.
    pub started_at: Timestamp,
    /// When the far end began to ring; absent before, and when it answered without ringing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ringing_at: Option<Timestamp>,
    /// When the caller was answered; null until then.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub answered_at: Option<Timestamp>,
    /// The extension of the call: the caller's, or the called one for an inbound call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension_id: Option<ExtensionId>,
    /// The agent of that extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The team of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team_id: Option<TeamId>,
    /// The trunk that carries the outside leg.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trunk_id: Option<TrunkId>,
    /// The text that the program gave when it requested the call; absent for other calls.
    #[cfg_attr(feature = "openapi", schema(example = "ticket-4711"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The texts that the program gave when it requested the call; absent without any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// The leg that a program let put the other party on hold; absent while none does. A hold by a phone itself is not
    /// shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<LegId>,
    /// The slot that its party waits in; absent unless it is parked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parked: Option<ParkedIn>,
    /// The prompt that a program plays; absent while there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub playing: Option<LivePrompt>,
    /// The recording that a program has begun; absent while there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<LiveRecording>,
    /// Its legs, the caller's first; a phone that stopped ringing has no leg.
    pub legs: Vec<LiveLeg>,
}

/// A recording under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LiveRecording {
    /// The recording.
    pub id: CallRecordingId,
    /// Whether it is paused: it records silence.
    pub paused: bool,
}

/// One party's side of a live call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LiveLeg {
    /// The leg's id, constant while the leg lasts.
    pub uuid: LegId,
    /// Which side it is.
    pub role: LegRole,
    /// The extension at its far end; absent for an outside party.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension_id: Option<ExtensionId>,
    /// The number of the party at its far end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    /// Their name; may be empty.
    pub name: String,
    /// The state of the leg.
    pub state: CallState,
    /// The negotiated codec; null until it is answered.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub codec: Option<String>,
    /// When it was answered; null until then.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub answered_at: Option<Timestamp>,
    /// The verdict on the audio from this party that `call.media_warning` reported last; absent while it reported none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_verdict: Option<MediaVerdict>,
}

/// A change of a live call that is reported immediately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallEvent {
    /// Both sides talk.
    Answered(LiveCall),
    /// The media quality of a leg has become worse, or is good again.
    Media(LiveCall, Box<MediaWarning>),
    /// The far end rings.
    Ringing(LiveCall),
}

impl CallEvent {
    /// The call at the time of the change.
    pub fn call(&self) -> &LiveCall {
        let (CallEvent::Answered(call) | CallEvent::Media(call, _) | CallEvent::Ringing(call)) = self;
        call
    }

    /// Returns the event for the change.
    pub fn event(&self) -> Event {
        let call = self.call();
        let (kind, at) = match self {
            CallEvent::Answered(_) => (EventKind::CallAnswered, call.answered_at),
            CallEvent::Media(_, warning) => return warning.event(call),
            CallEvent::Ringing(_) => (EventKind::CallRinging, call.ringing_at),
        };
        let at = at.unwrap_or(call.started_at);
        Event::new(kind, call.organisation_id, call.team_id, at, call.event_data())
    }
}

impl LiveCall {
    /// The payload of an event: the call without the fields that the envelope or the event's name contains, and without
    /// the program's texts, which its callbacks contain.
    fn event_data(&self) -> Map<String, Value> {
        let mut data = Map::from_iter([("call_uuid".to_owned(), Value::from(self.uuid.to_string()))]);
        if let Ok(Value::Object(fields)) = serde_json::to_value(self) {
            let told_elsewhere = ["uuid", "organisation_id", "state", "reference", "variables"];
            data.extend(fields.into_iter().filter(|(name, _)| !told_elsewhere.contains(&name.as_str())));
        }
        data
    }
}

/// A query of live calls, newest first; every given filter must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveCallQuery {
    /// One of the organisations in scope.
    pub organisation_id: Option<OrganisationId>,
    /// Calls with a leg of that extension.
    pub extension_id: Option<ExtensionId>,
    /// The direction.
    pub direction: Option<Direction>,
    /// The state of the call.
    pub state: Option<CallState>,
    /// The call that is parked in that slot.
    pub parked_slot: Option<u16>,
    /// The window.
    pub window: Window,
}

/// The fields of a call that the filters use.
#[derive(Clone, Copy, Debug)]
pub struct Outline<F> {
    /// Whose it is.
    pub organisation_id: OrganisationId,
    /// Where it came from and goes to.
    pub direction: Direction,
    /// The state of the call.
    pub state: CallState,
    /// The slot in which its party is parked.
    pub parked_slot: Option<u16>,
    /// Whether an extension takes part in the call.
    pub has_extension: F,
}

impl LiveCallQuery {
    /// Whether every filter holds for a call.
    pub fn matches(&self, call: Outline<impl Fn(ExtensionId) -> bool>) -> bool {
        self.organisation_id.is_none_or(|wanted| wanted == call.organisation_id)
            && self.direction.is_none_or(|wanted| wanted == call.direction)
            && self.state.is_none_or(|wanted| wanted == call.state)
            && self.parked_slot.is_none_or(|wanted| call.parked_slot == Some(wanted))
            && self.extension_id.is_none_or(|wanted| (call.has_extension)(wanted))
    }
}

/// The live calls.
pub trait LiveCalls: Send + Sync {
    /// A page of the calls inside `scope` that the query selects, newest first.
    fn list(&self, scope: Scope, query: LiveCallQuery) -> PortFuture<'_, Page<LiveCall>>;

    /// Returns one call, of any organisation; the caller decides with [`Scope::covers`] whether it may be
    /// shown, because "of another organisation" and "unknown" get different answers.
    fn find(&self, call: CallId) -> PortFuture<'_, Option<LiveCall>>;
}

impl MediaWarning {
    /// Returns a new event for the warning.
    pub fn event(&self, call: &LiveCall) -> Event {
        let mut data = Map::from_iter([("call_uuid".to_owned(), Value::from(call.uuid.to_string()))]);
        data.insert("direction".to_owned(), Value::from(call.direction.as_str()));
        for (name, number) in [("caller", &call.caller), ("destination", &call.destination)] {
            data.extend(number.clone().map(|number| (name.to_owned(), Value::from(number))));
        }
        if let Ok(Value::Object(fields)) = serde_json::to_value(self) {
            data.extend(fields);
        }
        Event::new(EventKind::CallMediaWarning, call.organisation_id, call.team_id, self.at, data)
    }
}
