//! Sessions of rooms, their ends after a crash, and their meetings, on SQLite and on PostgreSQL.

use serde_json::{Value, json};
use sidetone_model::access::Scope;
use sidetone_model::directory::{Ha1, Srtp, Video};
use sidetone_model::event::{EventKind, EventReader, Position};
use sidetone_model::ids::{
    AgentId, CallId, ConferenceSessionId, ExtensionId, LegId, NodeId, OrganisationId, RoomId, TeamId,
};
use sidetone_model::page::Window;
use sidetone_model::problem::Problem;
use sidetone_model::room::event::{Person, RoomChange, RoomEvent};
use sidetone_model::room::meeting::{
    MeetingAgent, MeetingNote, MeetingReport, MeetingState, MeetingTurn, Meetings,
};
use sidetone_model::room::rows::{
    EventSource, InviteRow, NewEvent, PersonRow, RecordingRow, Rows, SessionRow,
};
use sidetone_model::room::session::RoomSessions;
use sidetone_model::room::{Invite, InviteReason, InviteState, NewRoom, Pin, Role, RoomName, RoomPin, Rooms};
use sidetone_model::team::{self, AgentKind, NewAgent};
use sidetone_store::{ExtensionRow, Orphaned, Store};
use uuid::Uuid;

use crate::common::records::{at, organisation};
use crate::common::schema::documented;
use crate::store::with_store;

pub(crate) const NODE: NodeId = NodeId(Uuid::from_u128(0x0DE));
pub(crate) const EVERYTHING: Scope = Scope::Everything;

pub(crate) fn session(number: u128) -> ConferenceSessionId {
    ConferenceSessionId(Uuid::from_u128(0x5E55_0000 + number))
}

/// A room and its organisation.
#[derive(Clone, Copy)]
pub(crate) struct Home {
    pub(crate) room: RoomId,
    pub(crate) owner: OrganisationId,
}

pub(crate) async fn home(store: &Store) -> Home {
    let mut write = store.write().await.unwrap();
    let (owner, _) = write.declare_organisation(&crate::store::acme(), at(0)).await.unwrap();
    write.commit().await.unwrap();
    let new = NewRoom {
        organisation_id: owner,
        name: "Board".to_owned(),
        number: "200".to_owned(),
        participant_pin: RoomPin::Given(Pin::default()),
        moderator_pin: Pin::default(),
        wait_for_moderator: false,
        end_when_moderator_leaves: false,
        record: false,
        record_channels: 1,
        announce_names: false,
        max_members: 0,
        minutes_email: String::new(),
    };
    Home { room: store.create(EVERYTHING, new, at(0)).await.unwrap().id, owner }
}

pub(crate) fn row(home: Home, number: u128) -> SessionRow {
    SessionRow {
        id: session(number),
        organisation_id: home.owner,
        room: home.room.into(),
        room_id: Some(home.room),
        room_name: "Board".to_owned(),
        started_at: at(i64::try_from(number).unwrap()),
        ended_at: None,
        seen_at: at(i64::try_from(number).unwrap() + 9),
        peak_members: 2,
        is_recorded: false,
        is_recording: false,
        recording_channels: 1,
        events: 0,
        revision: 7,
    }
}

fn person(home: Home, number: u128, member: u32) -> PersonRow {
    person_on(home, number, member, CallId(Uuid::from_u128(member.into())))
}

pub(crate) fn person_on(home: Home, number: u128, member: u32, call_uuid: CallId) -> PersonRow {
    PersonRow {
        session: session(number),
        organisation_id: home.owner,
        person: Person {
            member,
            name: format!("Person {member}"),
            number: format!("10{member}"),
            role: if member == 1 { Role::Moderator } else { Role::Participant },
            extension_id: (member == 1).then_some(ExtensionId(Uuid::from_u128(0xE1))),
            team_id: None,
            call_uuid,
            leg: LegId(Uuid::from_u128(member.into())),
            joined_at: at(i64::from(member)),
        },
        left_at: None,
        talked_ms: 0,
    }
}

fn invite(
    home: Home,
    number: u128,
    place: usize,
    state: InviteState,
    last_reason: InviteReason,
) -> InviteRow {
    let extension_id = ExtensionId(Uuid::from_u128(0xE0 + place as u128));
    let (number_of, name) = (format!("20{place}"), String::new());
    let invite = Invite { extension_id, number: number_of, name, state, last_reason };
    InviteRow { session: session(number), organisation_id: home.owner, place, invite }
}

fn joined(row: &SessionRow, seq: u64) -> NewEvent {
    let news = RoomEvent {
        organisation_id: row.organisation_id,
        room: row.room,
        room_id: row.room_id,
        session: row.id,
        at: row.started_at,
        revision: seq,
        what: RoomChange::Locked(seq.is_multiple_of(2)),
    };
    NewEvent { session: row.id, position: seq, seq, what: EventSource::Room(news), viewers: None }
}

pub(crate) async fn events(store: &Store, kind: EventKind) -> Vec<(OrganisationId, Value)> {
    let batch = store.events_after(Scope::Everything, Position::default(), 500).await.unwrap();
    batch.events.iter().for_each(|placed| documented(&placed.event));
    let of_kind = batch.events.into_iter().filter(|placed| placed.event.kind == kind);
    of_kind.map(|placed| (placed.event.organisation_id, Value::Object(placed.event.data))).collect()
}

async fn read(store: &Store, room: RoomId) -> Vec<Value> {
    let page = store.sessions(EVERYTHING, room.into(), Window::default(), at(100)).await.unwrap();
    assert_eq!(page.total as usize, page.items.len());
    page.items.iter().map(|session| serde_json::to_value(session).unwrap()).collect()
}

#[test]
fn a_session_is_read_as_it_was_stored() {
    with_store(async |store| {
        let home = home(store).await;
        let Home { room, owner } = home;
        let rows = Rows {
            sessions: vec![row(home, 1), row(home, 2)],
            people: vec![person(home, 1, 1), person(home, 1, 2)],
            invites: vec![
                invite(home, 1, 0, InviteState::Joined, InviteReason::None),
                invite(home, 1, 1, InviteState::Waiting, InviteReason::Busy),
            ],
            ..Rows::default()
        };
        store.store_sessions(NODE, &rows).await.unwrap();
        let [second, first] = read(store, room).await.try_into().unwrap();
        assert_eq!((&second["id"], &second["members"]), (&json!(session(2)), &json!([])));
        let expected = json!({
            "id": session(1), "room": format!("svc-room-{room}"), "room_id": room, "started_at": at(1), "ended_at": null, "duration_seconds": 99,
            "peak_members": 2,
            "members": [
                {"member": 1, "name": "Person 1", "number": "101", "role": "moderator",
                 "extension_id": Uuid::from_u128(0xE1), "call_uuid": Uuid::from_u128(1), "joined_at": at(1),
                 "left_at": null, "talk_seconds": 0},
                {"member": 2, "name": "Person 2", "number": "102", "role": "participant", "extension_id": null,
                 "call_uuid": Uuid::from_u128(2), "joined_at": at(2), "left_at": null,
                 "talk_seconds": 0},
            ],
            "invites": [
                {"extension_id": Uuid::from_u128(0xE0), "number": "200", "name": "", "state": "joined", "last_reason": ""},
                {"extension_id": Uuid::from_u128(0xE1), "number": "201", "name": "", "state": "waiting",
                 "last_reason": "busy"},
            ],
            "has_recording": false, "recording_bytes": 0, "recording_channels": 1,
        });
        assert_eq!(first, expected);
        // A change replaces the stored values; a recording is added when it is complete.
        let ended = SessionRow { ended_at: Some(at(61)), is_recorded: true, peak_members: 3, ..row(home, 1) };
        // The phone of member 2 called again and kept its member id.
        let mut left = PersonRow { left_at: Some(at(61)), talked_ms: 12_999, ..person(home, 1, 2) };
        left.person.call_uuid = CallId(Uuid::from_u128(22));
        let recording = RecordingRow {
            session: session(1),
            organisation_id: owner,
            bytes: 1044,
            error: Some("the disk is full".to_owned()),
        };
        let rows = Rows {
            sessions: vec![ended],
            people: vec![left],
            recordings: vec![recording],
            ..Rows::default()
        };
        store.store_sessions(NODE, &rows).await.unwrap();
        let found = store.session(EVERYTHING, room.into(), session(1), at(100)).await.unwrap();
        assert_eq!((found.ended_at, found.duration_seconds, found.peak_members), (Some(at(61)), 60, 3));
        assert_eq!((found.members[0].left_at, found.members[1].left_at), (None, Some(at(61))));
        assert_eq!((found.members[0].talk_seconds, found.members[1].talk_seconds), (0, 12));
        assert_eq!(found.members[1].call_uuid, CallId(Uuid::from_u128(22)));
        assert_eq!((found.has_recording, found.recording_bytes), (true, 1044));
        assert_eq!(found.recording_error.as_deref(), Some("the disk is full"));
        let recording = store.session_recording(EVERYTHING, room, session(1)).await.unwrap();
        assert_eq!((recording.is_live, recording.is_recorded, recording.bytes), (false, true, Some(1044)));
    });
}

#[test]
fn an_event_is_stored_once_however_often_it_is_tried() {
    with_store(async |store| {
        let home = home(store).await;
        let session = SessionRow { events: 2, ..row(home, 1) };
        let events_of = vec![joined(&session, 1), joined(&session, 2)];
        let rows = Rows { sessions: vec![session], events: events_of, ..Rows::default() };
        store.store_sessions(NODE, &rows).await.unwrap();
        // The response to the commit was lost.
        store.store_sessions(NODE, &rows).await.unwrap();
        let seqs: Vec<Value> = events(store, EventKind::ConferenceUpdated)
            .await
            .iter()
            .map(|(_, data)| data["seq"].clone())
            .collect();
        assert_eq!(seqs, [1, 2]);
    });
}

#[test]
fn sessions_that_a_crash_cut_off_end_as_they_were_last_seen() {
    with_store(async |store| {
        let home = home(store).await;
        let room = home.room;
        let cut_off = SessionRow { events: 4, is_recorded: true, ..row(home, 1) };
        let over = SessionRow { ended_at: Some(at(20)), ..row(home, 2) };
        let rows = Rows {
            sessions: vec![cut_off, over],
            people: vec![person(home, 1, 1), PersonRow { left_at: Some(at(3)), ..person(home, 1, 2) }],
            invites: vec![
                invite(home, 1, 0, InviteState::Ringing, InviteReason::Busy),
                invite(home, 1, 1, InviteState::Declined, InviteReason::Declined),
            ],
            ..Rows::default()
        };
        store.store_sessions(NODE, &rows).await.unwrap();
        let elsewhere = NodeId(Uuid::from_u128(0xE15E));
        store
            .store_sessions(elsewhere, &Rows { sessions: vec![row(home, 3)], ..Rows::default() })
            .await
            .unwrap();
        store.store_sessions(NODE, &Rows { seen_at: Some(at(30)), ..Rows::default() }).await.unwrap();

        assert_eq!(store.close_sessions(Orphaned::Of(NODE)).await.unwrap(), 1);
        assert_eq!(store.close_sessions(Orphaned::Of(NODE)).await.unwrap(), 0);
        let found = store.session(EVERYTHING, room.into(), session(1), at(100)).await.unwrap();
        assert_eq!(found.ended_at, Some(at(30)), "the last mark");
        assert_eq!((found.members[0].left_at, found.members[1].left_at), (Some(at(30)), Some(at(3))));
        let states: Vec<_> = found.invites.iter().map(|invite| (invite.state, invite.last_reason)).collect();
        let cancelled = (InviteState::Cancelled, InviteReason::RoomEnded);
        assert_eq!(states, [cancelled, (InviteState::Declined, InviteReason::Declined)]);
        let [(owner, data)] = events(store, EventKind::ConferenceUpdated).await.try_into().unwrap();
        assert_eq!(owner, owner);
        assert_eq!((&data["action"], &data["seq"]), (&json!("ended"), &json!(5)));
        assert!(data["revision"].as_u64().unwrap() > 1_000_000);
        // The user of the member's extension sees it.
        let seeing = async |extension: u128| {
            let scope = Scope::Team { organisation: home.owner, team: None };
            let reader = EventReader { scope, extensions: vec![ExtensionId(Uuid::from_u128(extension))] };
            store.events_after(reader, Position::default(), 100).await.unwrap().events.len()
        };
        assert_eq!((seeing(0xE1).await, seeing(0xE2).await), (1, 0));
        assert_eq!(
            store.unfinished_recordings(NODE).await.unwrap(),
            [(owner, session(1))],
            "to be looked for"
        );

        // A session of another node is live until that node has been silent for long.
        assert_eq!(store.close_sessions(Orphaned::Since(at(12))).await.unwrap(), 0);
        assert_eq!(store.close_sessions(Orphaned::Since(at(13))).await.unwrap(), 1);
        let found = store.session(EVERYTHING, room.into(), session(3), at(100)).await.unwrap();
        assert_eq!(found.ended_at, Some(at(12)));
    });
}

/// Viewers of a live room are in the agent's team where the extension has none; the same holds for the end after a
/// crash.
#[test]
fn the_team_of_an_agent_sees_the_end_that_a_crash_caused() {
    with_store(async |store| {
        let home = home(store).await;
        let mut write = store.write().await.unwrap();
        let (team, _) = write.declare_team(home.owner, "support", at(0)).await.unwrap();
        let line = ExtensionRow {
            organisation_id: home.owner,
            number: "101".to_owned(),
            name: "Ada".to_owned(),
            team_id: None,
            ha1: Some(Ha1 { md5: "0".repeat(32), sha256: "0".repeat(64) }),
            codecs: vec![],
            strict_source: None,
            srtp: Srtp::Off,
            video: Video::Off,
            forwarding: None,
            do_not_disturb: None,
            language: None,
            max_registrations: 10,
            notify_message_waiting: false,
        };
        let (extension, _) = write.declare_extension(&line, at(0)).await.unwrap();
        write.commit().await.unwrap();
        let agent = NewAgent {
            organisation_id: home.owner,
            team_id: Some(team),
            name: "Ada".to_owned(),
            kind: AgentKind::Human,
            extension_id: Some(extension),
            user_id: None,
        };
        team::Agents::create(store, agent, at(0)).await.unwrap();
        let member = person(home, 1, 1);
        let member =
            PersonRow { person: Person { extension_id: Some(extension), ..member.person }, ..member };
        let rows = Rows { sessions: vec![row(home, 1)], people: vec![member], ..Rows::default() };
        store.store_sessions(NODE, &rows).await.unwrap();
        assert_eq!(store.close_sessions(Orphaned::Of(NODE)).await.unwrap(), 1);
        let seen = async |team| {
            let scope = Scope::Team { organisation: home.owner, team: Some(team) };
            let reader = EventReader { scope, extensions: vec![] };
            store.events_after(reader, Position::default(), 100).await.unwrap().events.len()
        };
        assert_eq!((seen(team).await, seen(TeamId(Uuid::from_u128(9))).await), (1, 0));
    });
}

#[test]
fn sessions_are_shown_to_whom_their_room_is_shown() {
    with_store(async |store| {
        let home = home(store).await;
        let Home { room, owner } = home;
        store.store_sessions(NODE, &Rows { sessions: vec![row(home, 1)], ..Rows::default() }).await.unwrap();
        let window = Window::default();
        let (own, foreign) = (Scope::Organisation(owner), Scope::Organisation(organisation(2)));
        assert_eq!(store.sessions(own, room.into(), window.clone(), at(9)).await.unwrap().total, 1);
        let refused = store.sessions(foreign, room.into(), window.clone(), at(9)).await;
        assert!(matches!(refused, Err(Problem::Forbidden(_))), "{refused:?}");
        let unknown = store.sessions(foreign, RoomId(Uuid::nil()).into(), window.clone(), at(9)).await;
        assert!(matches!(unknown, Err(Problem::NotFound(_))), "{unknown:?}");
        let unknown = store.session(own, room.into(), session(9), at(9)).await;
        assert!(matches!(unknown, Err(Problem::NotFound(_))), "{unknown:?}");
        let refused = store.session_recording(foreign, room, session(1)).await;
        assert!(matches!(refused, Err(Problem::Forbidden(_))), "{refused:?}");
    });
}

/// Merged calls have no stored room: their organisation finds their sessions by the name of their room.
#[test]
fn sessions_of_merged_calls_are_shown_to_their_organisation() {
    with_store(async |store| {
        let home = home(store).await;
        let name = RoomName::Merged(CallId(Uuid::from_u128(0xCA11)));
        let merged = |number| SessionRow { room: name, room_id: None, ..row(home, number) };
        let recording =
            RecordingRow { session: session(1), organisation_id: home.owner, bytes: 100, error: None };
        let over = SessionRow { ended_at: Some(at(5)), is_recorded: true, ..merged(1) };
        let rows =
            Rows { sessions: vec![over, row(home, 2)], recordings: vec![recording], ..Rows::default() };
        store.store_sessions(NODE, &rows).await.unwrap();
        let (own, foreign) = (Scope::Organisation(home.owner), Scope::Organisation(organisation(2)));
        let page = store.sessions(own, name, Window::default(), at(9)).await.unwrap();
        let found: Vec<_> = page.items.iter().map(|found| (found.id, found.room, found.room_id)).collect();
        assert_eq!((page.total, found), (1, vec![(session(1), name, None)]));
        assert_eq!(store.session(own, name, session(1), at(9)).await.unwrap().recording_bytes, 100);
        assert_eq!(store.session_recording(own, name, session(1)).await.unwrap().bytes, Some(100));
        // The session of a stored room does not belong to these calls.
        let other = store.session(own, name, session(2), at(9)).await;
        assert!(matches!(other, Err(Problem::NotFound(_))), "{other:?}");
        let nowhere = RoomName::Merged(CallId(Uuid::nil()));
        let unknown = store.sessions(foreign, nowhere, Window::default(), at(9)).await;
        assert!(matches!(unknown, Err(Problem::NotFound(_))), "{unknown:?}");
        let refused = store.sessions(foreign, name, Window::default(), at(9)).await;
        assert!(matches!(refused, Err(Problem::Forbidden(_))), "{refused:?}");
        let refused = store.session_recording(foreign, name, session(1)).await;
        assert!(matches!(refused, Err(Problem::Forbidden(_))), "{refused:?}");
        // Its recording has the same retention time as others.
        let mut write = store.write().await.unwrap();
        write.declare_recording_retention(home.owner, 1, at(6)).await.unwrap();
        write.commit().await.unwrap();
        let expired = store.expired_recordings(NODE, at(5 + 86_400)).await.unwrap();
        assert_eq!(expired, [(home.owner, session(1))]);
    });
}

fn report(state: MeetingState) -> MeetingReport {
    MeetingReport {
        agent: MeetingAgent { id: AgentId(Uuid::from_u128(0xA6)), name: "TapWriter".to_owned() },
        state,
        minutes: (state == MeetingState::Ready).then(|| "It was decided.".to_owned()),
        minutes_error: (state == MeetingState::Failed).then(|| "the model was away".to_owned()),
        notes: vec![MeetingNote { at: at(3).whole_millis(), text: "Ship it".to_owned() }],
        turns: vec![MeetingTurn {
            seq: 1,
            at: at(2).whole_millis(),
            speaker: "Ada".to_owned(),
            text: "Ship it?".to_owned(),
        }],
        replies_unheard: vec![MeetingNote { at: at(4).whole_millis(), text: "Shall I?".to_owned() }],
        delivered_to: vec!["minutes@acme.test".to_owned()],
    }
}

#[test]
fn minutes_are_told_once_however_often_they_are_reported() {
    with_store(async |store| {
        let home = home(store).await;
        let Home { room, owner } = home;
        let rows = Rows {
            sessions: vec![row(home, 1), row(home, 2)],
            people: vec![person(home, 1, 1), person(home, 1, 2)],
            ..Rows::default()
        };
        store.store_sessions(NODE, &rows).await.unwrap();
        let none = store.meeting(EVERYTHING, room, session(1)).await;
        assert!(matches!(none, Err(Problem::NotFound(_))), "{none:?}");
        use MeetingState::{Failed, Ready, Running, Writing};
        for (state, created) in [(Running, true), (Running, false), (Writing, false), (Failed, false)] {
            let reported = store.report(EVERYTHING, room, session(1), report(state), at(50)).await.unwrap();
            assert_eq!(reported.created, created, "{state}");
        }
        assert!(events(store, EventKind::ConferenceMinutes).await.is_empty());
        let mut delivered = report(Ready);
        delivered.delivered_to.push("board@acme.test".to_owned());
        for report in [report(Ready), report(Ready), delivered.clone()] {
            store.report(EVERYTHING, room, session(1), report, at(60)).await.unwrap();
        }
        let late = store.report(EVERYTHING, room, session(1), report(Running), at(61)).await;
        assert!(matches!(late, Err(Problem::Conflict(_))), "{late:?}");
        let expected = json!({"session_id": session(1), "room_id": room, "room": format!("svc-room-{room}"),
            "members": [{"name": "Person 1", "role": "moderator"}, {"name": "Person 2", "role": "participant"}],
            "minutes": "It was decided.", "delivered_to": ["minutes@acme.test"]});
        assert_eq!(events(store, EventKind::ConferenceMinutes).await, [(owner, expected)]);
        assert_eq!(store.meeting(EVERYTHING, room, session(1)).await.unwrap().report, delivered);

        store.report(EVERYTHING, room, session(2), report(Failed), at(62)).await.unwrap();
        let page = store.meetings(EVERYTHING, room, Window::default()).await.unwrap();
        let agent = json!({"id": Uuid::from_u128(0xA6), "name": "TapWriter"});
        assert_eq!(
            serde_json::to_value(&page.items).unwrap(),
            json!([
                {"session_id": session(2), "agent": agent, "state": "failed", "has_minutes": false,
                 "minutes_error": "the model was away", "notes": 1, "turns": 1},
                {"session_id": session(1), "agent": agent, "state": "ready", "has_minutes": true, "notes": 1,
                 "turns": 1},
            ])
        );
        let foreign = Scope::Organisation(organisation(2));
        let refused = store.report(foreign, room, session(1), report(Ready), at(63)).await;
        assert!(matches!(refused, Err(Problem::Forbidden(_))), "{refused:?}");
        let unknown = store.report(EVERYTHING, room, session(9), report(Ready), at(63)).await;
        assert!(matches!(unknown, Err(Problem::NotFound(_))), "{unknown:?}");
    });
}
