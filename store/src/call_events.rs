//! The events of a record's end.

use serde::Serialize;
use serde_json::{Map, Value};
use sidetone_model::call::{Direction, HangupCause};
use sidetone_model::cdr::{Called, Cdr};
use sidetone_model::event::{Event, EventKind};
use sidetone_model::ids::{CallId, ExtensionId, TeamId};
use sidetone_model::time::Timestamp;

/// The event of a finished record. It contains the tokens of the call's AI if the conversation was stored
/// first.
pub(super) fn ended(cdr: &Cdr, ai_tokens: Option<u64>) -> Event {
    // Without the fields of `margin:read`, because a receiver of the event may lack that permission.
    let mut view = cdr.view(false);
    view.ai_tokens = ai_tokens;
    let mut data = match serde_json::to_value(view) {
        Ok(Value::Object(data)) => data,
        _ => Map::new(),
    };
    // Fields of every call event, in addition to the record's own field names.
    let texts = [("caller", &cdr.caller_number), ("destination", &cdr.destination_number)];
    for (name, number) in texts {
        data.extend(number.clone().map(|number| (name.to_owned(), Value::from(number))));
    }
    data.extend(cdr.extension_id.map(|id| ("extension_id".to_owned(), Value::from(id.to_string()))));
    Event::new(EventKind::CallEnded, cdr.organisation_id, cdr.team_id, end(cdr), data)
}

/// The event of an unanswered call to an extension; it belongs to the team of the extension's user.
pub(super) fn missed(cdr: &Cdr) -> Option<Event> {
    let called = cdr.called.filter(|_| cdr.answered_at.is_none())?;
    let Called { extension_id, team_id } = called;
    let data = Missed {
        call_uuid: cdr.call_uuid,
        direction: cdr.direction,
        caller: cdr.caller_number.as_deref(),
        destination: cdr.destination_number.as_deref(),
        extension_id,
        team_id,
        started_at: cdr.started_at,
        ended_at: cdr.ended_at,
        hangup_cause: cdr.hangup_cause,
    };
    Some(Event::of(EventKind::CallMissed, cdr.organisation_id, team_id, end(cdr), &data))
}

fn end(cdr: &Cdr) -> Timestamp {
    cdr.ended_at.unwrap_or(cdr.started_at)
}

/// The payload of `call.missed`.
#[derive(Serialize)]
struct Missed<'a> {
    call_uuid: CallId,
    direction: Direction,
    #[serde(skip_serializing_if = "Option::is_none")]
    caller: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<&'a str>,
    extension_id: ExtensionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    team_id: Option<TeamId>,
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
    hangup_cause: Option<HangupCause>,
}
