//! The section `webhooks` of the document: real events match it. Events written only by the database (notes, minutes
//! and recordings) are checked where `tests/store` reads them, on both databases.

use std::collections::BTreeMap;

use serde_json::Value;
use sidetone_model::access::Scope;
use sidetone_model::call::{Direction, HangupCause};
use sidetone_model::call_prompt::{LivePrompt, PlayResult, PlaySide, PromptEnded};
use sidetone_model::cdr::{Called, Cdr};
use sidetone_model::event::{Event, EventKind, Position};
use sidetone_model::guessing::{GuessLimit, Guessing};
use sidetone_model::ids::{ApiKeyId, CallId, ConferenceSessionId, ExtensionId, LegId, RoomId};
use sidetone_model::live_call::{CallEvent, CallState, LegRole, LiveCall, LiveLeg};
use sidetone_model::media_quality::{LegSide, MediaChange, MediaWarning};
use sidetone_model::pin_guessing::{PinGuessing, PinLimit};
use sidetone_model::prompt::Prompt;
use sidetone_model::quality::MediaVerdict;
use sidetone_model::recording::RecordingFailed;
use sidetone_model::room::event::{MemberChange, MergedBy, Person, RoomChange, RoomEvent};
use sidetone_model::room::{DialFailure, DialKind, MemberGain, PlayingSound, Role, RoomDialFailed};
use uuid::Uuid;

use crate::common::records::{answered, at, ended, organisation};
use crate::common::schema::{DOCUMENT, documented};
use crate::http::engine::Engine;

fn id<T: From<Uuid>>(number: u128) -> T {
    Uuid::from_u128(number).into()
}

/// Every event is valid by the schema of its kind.
fn check(events: &[Event], expected: &[&str]) {
    events.iter().for_each(documented);
    let mut seen: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, expected);
}

#[test]
fn the_events_of_records_are_the_documented_ones() {
    let engine = Engine::start(|ids| {
        let called = Called { extension_id: id(7), team_id: Some(id(8)) };
        let missed = Cdr { called: Some(called), answered_at: None, hangup_cause: None, ..ended(3) };
        [ended(1), answered(2), missed].map(|cdr| Cdr { organisation_id: ids.acme, ..cdr }).into()
    });
    let events = engine.stored_events(Scope::Everything, Position::default());
    assert_eq!(events.len(), 4);
    check(&events, &["call.ended", "call.missed"]);
}

#[test]
fn the_events_of_live_calls_and_rooms_are_the_documented_ones() {
    let leg = LiveLeg {
        uuid: id::<LegId>(3),
        role: LegRole::Caller,
        extension_id: Some(id(7)),
        number: Some("1001".to_owned()),
        name: "Ada".to_owned(),
        state: CallState::Answered,
        codec: Some("PCMU".to_owned()),
        answered_at: Some(at(2)),
        media_verdict: None,
    };
    let call = LiveCall {
        uuid: id(4),
        organisation_id: organisation(1),
        direction: Direction::Internal,
        caller: Some("1001".to_owned()),
        destination: None,
        state: CallState::Answered,
        started_at: at(1),
        ringing_at: Some(at(1)),
        answered_at: Some(at(2)),
        extension_id: Some(id(7)),
        agent_id: None,
        team_id: Some(id(8)),
        trunk_id: None,
        reference: Some("ticket-4711".to_owned()),
        variables: BTreeMap::from([("crm".to_owned(), "17".to_owned())]),
        held_by: None,
        parked: None,
        playing: None,
        recording: None,
        legs: vec![leg.clone(), LiveLeg { codec: None, answered_at: None, ..leg }],
    };
    let ringing = LiveCall { answered_at: None, ..call.clone() };
    let warning = MediaWarning {
        leg: LegSide::A,
        party: Some("1001".to_owned()),
        state: MediaChange::NoAudio,
        media_verdict: Some(MediaVerdict::NoInboundMedia),
        previous: MediaVerdict::Ok,
        sentence: "No audio comes from 1001.".to_owned(),
        since: at(2),
        at: at(9),
    };
    let over =
        MediaWarning { party: None, state: MediaChange::AudioBack, media_verdict: None, ..warning.clone() };
    let room = |what| RoomEvent {
        organisation_id: organisation(1),
        room: RoomId(Uuid::from_u128(9)).into(),
        room_id: Some(id(9)),
        session: ConferenceSessionId(Uuid::from_u128(2)),
        at: at(3),
        revision: 7,
        what,
    };
    let ada = Person {
        member: 3,
        name: "Ada".to_owned(),
        number: "101".to_owned(),
        role: Role::Moderator,
        extension_id: None,
        team_id: None,
        call_uuid: id(4),
        leg: id(5),
        joined_at: at(1),
    };
    let by =
        MergedBy { extension_id: Some(id(7)), user_id: Some(id(6)), api_key_id: Some(ApiKeyId(Uuid::nil())) };
    let changes = [
        RoomChange::AllMuted(true),
        RoomChange::Ended,
        RoomChange::Joined(ada),
        RoomChange::Left { member: 3, cause: HangupCause::NormalClearing, talked_ms: 0 },
        RoomChange::Locked(true),
        RoomChange::Locked(false),
        RoomChange::Merged { calls: [CallId(Uuid::nil()); 2], by },
        RoomChange::Member { member: 3, change: MemberChange::Whisper(Some(4)) },
        RoomChange::Member {
            member: 3,
            change: MemberChange::Gain(MemberGain { gain_db: 6, automatic_gain: true }),
        },
        RoomChange::Muted { member: 3, muted: true },
        RoomChange::Playing(PlayingSound { prompt: Prompt::Alone.into(), member: Some(3) }),
        RoomChange::Played {
            sound: PlayingSound { prompt: Prompt::Alone.into(), member: None },
            stopped: true,
        },
        RoomChange::Recording(false),
    ];
    let mut events: Vec<Event> = changes.into_iter().map(|what| room(what).event(1).unwrap()).collect();
    events.push(room(RoomChange::Locked(true)).talk_event(2, 3, true, &[3]));
    let warned = [warning, over].map(|warning| CallEvent::Media(call.clone(), Box::new(warning)));
    let of_calls = warned.into_iter().chain([CallEvent::Answered(call), CallEvent::Ringing(ringing)]);
    events.extend(of_calls.map(|event| event.event()));
    events.push(
        Guessing {
            organisation_id: organisation(1),
            account: "1001@acme.test".to_owned(),
            extension_id: Some(ExtensionId(Uuid::nil())),
            source: "192.0.2.1".parse().unwrap(),
            limit: GuessLimit::Source,
            failures: 10,
            window_seconds: 300,
            left_out: 0,
            at: at(1),
        }
        .event(),
    );
    let of_pins = PinGuessing {
        organisation_id: organisation(1),
        room_id: id(9),
        limit: PinLimit::Room,
        number: "+442071230000".to_owned(),
        extension_id: None,
        trunk_id: Some(id(10)),
        failures: 10,
        window_seconds: 3_600,
        at: at(1),
    };
    events.push(of_pins.event());
    let not_joined = RoomDialFailed {
        organisation_id: organisation(1),
        room_id: id(9),
        room: RoomId(Uuid::from_u128(9)).into(),
        call_uuid: id(4),
        kind: DialKind::External,
        target: "+441632960001".to_owned(),
        role: Role::Participant,
        cause: DialFailure::Failed,
        sip_status: Some(503),
        at: at(1),
    };
    let busy = RoomDialFailed { cause: DialFailure::Busy, sip_status: None, ..not_joined.clone() };
    events.extend([not_joined, busy].map(|failed| failed.event()));
    let recording = RecordingFailed {
        organisation_id: organisation(1),
        session_id: id(2),
        room_id: Some(id(9)),
        room: RoomId(Uuid::from_u128(9)).into(),
        error: "the disk of recordings is full".to_owned(),
        bytes: 80,
        at: at(1),
    };
    events.push(recording.event());
    let prompt = LivePrompt { play_id: id(11), prompt: Prompt::Goodbye, side: PlaySide::Both };
    let ended = PromptEnded {
        organisation_id: organisation(1),
        team_id: None,
        call_uuid: id(4),
        prompt,
        result: PlayResult::Finished,
        at: at(1),
    };
    events.push(ended.event());
    check(
        &events,
        &[
            "call.answered",
            "call.conferenced",
            "call.media_warning",
            "call.prompt_ended",
            "call.ringing",
            "conference.dial_failed",
            "conference.updated",
            "recording.failed",
            "security.guessing",
            "security.pin_guessing",
        ],
    );
}

/// The section has every kind, and no other.
#[test]
fn every_kind_of_event_is_in_the_document() {
    let document = &*DOCUMENT;
    let known: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
    let documented: Vec<&String> = document["webhooks"].as_object().unwrap().keys().collect();
    assert_eq!(documented, known);
    assert_eq!(document["webhooks"]["call.ended"]["post"]["security"], Value::Array(Vec::new()));
}
