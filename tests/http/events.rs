//! The live stream of events: every row of the decision, over a database of the chosen kind.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use sidetone_model::event::{Event, EventKind, EventViewers};
use sidetone_model::ids::{EventId, ExtensionId, OrganisationId, TeamId};

use crate::common::records::at;
use crate::http::office::{KEEPER, Office};

/// One block of a stream.
#[derive(Debug, PartialEq)]
enum Block {
    Comment(String),
    Event { id: Option<String>, kind: String, data: Value },
    Retry(String),
}

/// An open stream.
struct Live<'o> {
    office: &'o Office,
    body: Body,
    text: String,
}

impl Live<'_> {
    /// The next block; `None` at the end.
    fn next(&mut self) -> Option<Block> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(parsed(&block));
            }
            let frame = async { tokio::time::timeout(PATIENCE, self.body.frame()).await };
            let frame = self.office.runtime.block_on(frame).expect("nothing comes");
            let Some(frame) = frame else {
                assert_eq!(self.text, "", "the stream ends between two blocks");
                return None;
            };
            self.text += std::str::from_utf8(&frame.unwrap().into_data().unwrap()).unwrap();
        }
    }

    /// The ids of the stored events, up to the comment `live`.
    fn stored(&mut self) -> Vec<EventId> {
        let mut ids = Vec::new();
        loop {
            match self.next().unwrap() {
                Block::Comment(text) if text == "live" => return ids,
                Block::Event { id: Some(id), .. } => ids.push(id.parse().unwrap()),
                Block::Retry(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The data of the `stream.gap` event with which the stream begins.
    fn gap(&mut self) -> Value {
        assert_eq!(self.next(), Some(Block::Retry("3000".to_owned())));
        match self.next().unwrap() {
            Block::Event { id: None, kind, data } if kind == "stream.gap" => data,
            other => panic!("{other:?}"),
        }
    }

    fn event(&mut self) -> EventId {
        match self.next().unwrap() {
            Block::Event { id: Some(id), .. } => id.parse().unwrap(),
            other => panic!("{other:?}"),
        }
    }
}

fn parsed(block: &str) -> Block {
    if let Some(comment) = block.strip_prefix(": ") {
        return Block::Comment(comment.to_owned());
    }
    if let Some(retry) = block.strip_prefix("retry: ") {
        return Block::Retry(retry.to_owned());
    }
    let mut lines = block.lines().peekable();
    let id = lines.next_if(|line| line.starts_with("id: ")).map(|line| line["id: ".len()..].to_owned());
    let kind = lines.next().unwrap().strip_prefix("event: ").unwrap().to_owned();
    let data = serde_json::from_str(lines.next().unwrap().strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(lines.next(), None, "{block}");
    Block::Event { id, kind, data }
}

impl Office {
    /// An open stream at `path` below `/events`, starting after `last`.
    fn follow(&self, token: &str, path: &str, last: Option<EventId>) -> Live<'_> {
        let headers: Vec<_> = last.map(|id| ("last-event-id", id.to_string())).into_iter().collect();
        let what = format!("GET /events{path}");
        let (status, body) = self.runtime.block_on(self.open_stream(token, &what, &headers));
        assert_eq!(status, 200, "{path}");
        Live { office: self, body, text: String::new() }
    }

    /// Stores an event of each of these kinds, organisations and teams.
    fn happen(&self, events: &[(EventKind, OrganisationId, Option<TeamId>)]) -> Vec<EventId> {
        let events: Vec<Event> = events
            .iter()
            .enumerate()
            .map(|(number, (kind, organisation, team))| {
                Event::of(*kind, *organisation, *team, at(number as i64), &json!({"number": number}))
            })
            .collect();
        self.runtime.block_on(self.store.store_events(&events)).unwrap();
        events.iter().map(|event| event.id).collect()
    }

    /// Stores `count` events of Acme.
    fn acme(&self, count: usize) -> Vec<EventId> {
        self.happen(&vec![(EventKind::CallEnded, self.names.acme, None); count])
    }

    /// Stores an event of Acme whose id has the time of second `seconds` of the office's day.
    fn acme_at(&self, seconds: i64) -> EventId {
        let event =
            Event::of(EventKind::CallEnded, self.names.acme, None, at(seconds), &json!({"number": seconds}));
        let event = Event { id: EventId::first_at(at(seconds)), ..event };
        self.runtime.block_on(self.store.store_events(std::slice::from_ref(&event))).unwrap();
        event.id
    }
}

#[test]
fn what_happens_is_shown_as_it_happens() {
    let office = Office::open();
    let mut live = office.follow(KEEPER, "", None);
    assert_eq!(live.next(), Some(Block::Retry("3000".to_owned())));
    assert_eq!(live.next(), Some(Block::Comment("live".to_owned())));
    for number in 0..3 {
        let id = office.acme(1)[0];
        let expected = json!({
            "id": id.to_string(),
            "type": "call.ended",
            "timestamp": at(0).to_string(),
            "organisation_id": office.names.acme.to_string(),
            "data": {"number": 0},
        });
        let shown = live.next().unwrap();
        let block = Block::Event { id: Some(id.to_string()), kind: "call.ended".to_owned(), data: expected };
        assert_eq!(shown, block, "{number}");
    }
}

#[test]
fn everybody_is_shown_what_they_may_see() {
    let office = Office::open();
    let names = office.names;
    let kind = EventKind::CallEnded;
    let happened = [
        (kind, names.acme, Some(names.support)),
        (kind, names.acme, Some(names.sales)),
        (kind, names.acme, None),
        (kind, names.bolt, Some(names.bolt_support)),
        (kind, names.bolt, Some(names.support)),
    ];
    let stored = office.happen(&happened);
    let seen: [(&str, &[usize]); 7] = [
        ("root@platform.test", &[0, 1, 2, 3, 4]),
        ("boss@acme.test", &[0, 1, 2]),
        ("mia@acme.test", &[0, 1, 2]),
        ("eve@acme.test", &[0]),
        ("bob@acme.test", &[0]),
        ("lost@acme.test", &[]),
        ("boss@bolt.test", &[3, 4]),
    ];
    let mut streams: Vec<_> = seen
        .iter()
        .map(|(email, seen)| {
            (office.follow(&office.login(email), "?since=2026-01-01T00:00:00Z", None), email, seen)
        })
        .collect();
    for (live, email, seen) in &mut streams {
        let expected: Vec<EventId> = seen.iter().map(|at| stored[*at]).collect();
        assert_eq!(live.stored(), expected, "{email}: stored");
    }
    let live_ones = office.happen(&happened);
    let end = office.happen(&[
        (EventKind::CallMissed, names.acme, Some(names.support)),
        (EventKind::CallMissed, names.bolt, Some(names.bolt_support)),
    ]);
    for (live, email, seen) in &mut streams {
        for at in seen.iter() {
            assert_eq!(live.event(), live_ones[*at], "{email}: live");
        }
        if !seen.is_empty() {
            // No other event arrived in between.
            let next = live.event();
            assert!(end.contains(&next), "{email}");
        }
    }
}

/// The viewers of an event of a room whose members have these teams and extensions.
fn viewers(teams: &[TeamId], extensions: &[ExtensionId]) -> EventViewers {
    EventViewers { teams: teams.iter().copied().collect(), extensions: extensions.iter().copied().collect() }
}

#[test]
fn a_team_gets_the_events_of_the_live_rooms_that_it_may_read() {
    let office = Office::open();
    let names = office.names;
    let boss = office.login("boss@acme.test");
    // Ada's extension is that of the agent without a team.
    let users = office.get(&boss, "/users?q=lost");
    let agent = json!({"name": "Lost", "kind": "human", "user_id": users.items("id")[0],
        "extension_id": names.ada.to_string()});
    let agent = office.ask(&boss, "POST /agents", agent);
    assert_eq!(agent.status, 201, "{}", agent.text);
    let rooms = [
        (names.acme, viewers(&[names.support], &[])),
        (names.acme, viewers(&[names.sales], &[names.ada])),
        (names.acme, viewers(&[names.sales], &[])),
        (names.bolt, viewers(&[names.support], &[names.ada])),
    ];
    let happen = || -> Vec<EventId> {
        let event = |(number, (organisation, viewers)): (usize, &(OrganisationId, EventViewers))| {
            let (kind, data) = (EventKind::ConferenceUpdated, json!({"number": number}));
            let event = Event::of(kind, *organisation, None, at(number as i64), &data);
            Event { viewers: Some(Arc::new(viewers.clone())), ..event }
        };
        let events: Vec<Event> = rooms.iter().enumerate().map(event).collect();
        office.runtime.block_on(office.store.store_events(&events)).unwrap();
        events.iter().map(|event| event.id).collect()
    };
    let stored = happen();
    let seen: [(&str, &[usize]); 5] = [
        ("eve@acme.test", &[0]),
        ("bob@acme.test", &[0]),
        ("lost@acme.test", &[1]),
        ("mia@acme.test", &[0, 1, 2]),
        ("boss@bolt.test", &[3]),
    ];
    let since = "?since=2026-01-01T00:00:00Z";
    let mut streams: Vec<_> =
        seen.iter().map(|(email, _)| office.follow(&office.login(email), since, None)).collect();
    for (live, (email, seen)) in streams.iter_mut().zip(seen) {
        let expected: Vec<EventId> = seen.iter().map(|at| stored[*at]).collect();
        assert_eq!(live.stored(), expected, "{email}: stored");
    }
    let live_ones = happen();
    let again = happen();
    for (live, (email, seen)) in streams.iter_mut().zip(seen) {
        for event in seen.iter().map(|at| live_ones[*at]).chain(seen.iter().map(|at| again[*at])) {
            assert_eq!(live.event(), event, "{email}: live, and nothing in between");
        }
    }
    // A client may continue after an event of the room; an event of another room is unknown to it.
    let eve = office.login("eve@acme.test");
    assert_eq!(office.follow(&eve, "", Some(stored[0])).stored(), [live_ones[0], again[0]]);
    assert_eq!(office.follow(&eve, "", Some(stored[2])).gap()["data"]["reason"], "unknown_id");
    // An agent that loses its extension must reconnect, and no longer gets the rooms of that extension.
    let change = json!({"extension_id": null});
    assert_eq!(office.ask(&boss, &format!("PATCH /agents/{}", agent.id()), change).status, 200);
    assert_eq!(streams[2].next(), None, "the stream ends");
    assert_eq!(office.follow(&office.login("lost@acme.test"), since, None).stored(), []);
}

#[test]
fn patterns_and_permissions_choose_the_kinds() {
    let office = Office::open();
    let boss = office.login("boss@acme.test");
    let (acme, everything) = (office.names.acme, EventKind::ALL.to_vec());
    let happened: Vec<_> = everything.iter().map(|kind| (*kind, acme, None)).collect();
    let ids = office.happen(&happened);
    let of = |kinds: &[EventKind]| -> Vec<EventId> {
        let chosen = everything.iter().zip(&ids).filter(|(kind, _)| kinds.contains(kind));
        chosen.map(|(_, id)| *id).collect()
    };
    use EventKind::*;
    let cases: [(&str, &[EventKind]); 7] = [
        ("", EventKind::ALL),
        ("&events=*", EventKind::ALL),
        ("&events=call.info.*", &[CallInfoAcked, CallInfoSent]),
        (
            "&events=conference.*,call.ended",
            &[CallEnded, ConferenceDialFailed, ConferenceMinutes, ConferenceUpdated],
        ),
        ("&events=conversation.completed,call.missed,call.missed", &[CallMissed, ConversationCompleted]),
        ("&events=recording.ready", &[RecordingReady]),
        ("&events=security.*", &[SecurityGuessing, SecurityPinGuessing]),
    ];
    for (query, kinds) in cases {
        let mut live = office.follow(&boss, &format!("?since=2026-01-01{query}"), None);
        assert_eq!(live.stored(), of(kinds), "{query}");
    }
    // A key that may only read conferences gets only events of rooms, and an error for kinds that it may never read.
    let body = json!({"name": "rooms", "preset": "conferences", "allow": ["127.0.0.1"]});
    let made = office.ask(&boss, "POST /api-keys", body);
    let rooms = made.body["key"].as_str().unwrap();
    let of_rooms = of(&[ConferenceDialFailed, ConferenceMinutes, ConferenceUpdated]);
    assert_eq!(office.follow(rooms, "?since=2026-01-01", None).stored(), of_rooms);
    assert_eq!(office.follow(rooms, "?since=2026-01-01&events=conference.*", None).stored(), of_rooms);
    let refused = office.get(rooms, "/events?events=conference.*,call.ended");
    assert_eq!(refused.error(), (403, "forbidden"));
    assert_eq!(refused.message(), "events call.ended: the caller lacks the permission calls:read");
    // A user with read permissions gets no events on guessed passwords.
    let member = office.login("mia@acme.test");
    let refused = office.get(&member, "/events?events=security.guessing");
    assert_eq!(refused.error(), (403, "forbidden"));
    assert!(refused.message().ends_with("directory:write"), "{}", refused.message());
    let body = json!({"name": "money", "permissions": ["billing:read"], "allow": ["127.0.0.1"]});
    let made = office.ask(&boss, "POST /api-keys", body);
    let refused = office.get(made.body["key"].as_str().unwrap(), "/events");
    assert_eq!(refused.error(), (403, "forbidden"));
    assert!(
        refused.message().ends_with("calls:read or conferences:read or directory:write or recordings:listen"),
        "{}",
        refused.message()
    );
}

#[test]
fn what_is_wrong_is_named() {
    let office = Office::open();
    let cases = [
        ("?events=", "events: must name at least one event"),
        ("?events=call.teleported", "events: 'call.teleported' is no event"),
        ("?events=call.ended,,call.missed", "events: '' is no event"),
        ("?events=call.*&events=*", "events: is given more than once"),
        ("?since=yesterday", "since: not an RFC 3339 timestamp"),
        ("?since=&limit=5", "limit: is not a parameter of this stream"),
        ("?access_token=x", "access_token: is not a parameter of this stream"),
    ];
    for (query, message) in cases {
        let answer = office.get(KEEPER, &format!("/events{query}"));
        assert_eq!(answer.error(), (400, "invalid_request"), "{query}");
        assert!(answer.message().contains(message), "{query}: {}", answer.message());
    }
    for ids in [&["", ""][..1], &["7"], &["00000000000070008000000000000000"], &["x", "y"]] {
        let headers: Vec<_> = ids.iter().map(|id| ("last-event-id", (*id).to_owned())).collect();
        let (status, body) = office.runtime.block_on(office.open_stream(KEEPER, "GET /events", &headers));
        let body = office.runtime.block_on(body.collect()).unwrap().to_bytes();
        assert_eq!(status, 400, "{ids:?}");
        assert!(std::str::from_utf8(&body).unwrap().contains("Last-Event-ID: must be the id of an event"));
    }
    // A token in the URL is not accepted: every log on the way would contain it.
    let nobody = office.ask_from("127.0.0.1", None, &format!("GET /events?token={KEEPER}"), Value::Null);
    assert_eq!(nobody.error(), (401, "unauthenticated"));
}

#[test]
fn who_comes_back_gets_what_they_missed() {
    let office = Office::open();
    let mut ids = office.acme(300);
    let bolts = office.happen(&[(EventKind::CallEnded, office.names.bolt, None)]);
    for seen in [0, 150, 299] {
        let mut live = office.follow(KEEPER, "", Some(ids[seen]));
        assert_eq!(live.stored(), ids[seen + 1..], "behind {seen}");
        // One more event, which the next case missed.
        ids.extend(office.acme(1));
        assert_eq!(live.event(), ids[ids.len() - 1], "and then what happens");
    }
    // The header takes precedence over the URL with which the client began.
    assert_eq!(office.follow(KEEPER, "?since=2026-01-01", Some(ids[298])).stored().len(), 4);
    // Later events count even when the client does not request their kind.
    assert_eq!(office.follow(KEEPER, "?events=call.missed", Some(ids[0])).stored(), []);
    // An event that the caller may not read counts as unknown.
    let gap = office.follow(KEEPER, "", Some(bolts[0])).gap();
    assert_eq!(gap["data"]["reason"], "unknown_id");
}

#[test]
fn an_instant_chooses_what_was_stored_since() {
    let office = Office::open();
    let ids: Vec<EventId> = [10, 20, 30].into_iter().map(|seconds| office.acme_at(seconds)).collect();
    for (since, first) in [(5, 0), (10, 0), (11, 1), (20, 1), (30, 2), (31, 3), (9_999_999, 3)] {
        let mut live = office.follow(KEEPER, &format!("?since={}", at(since).whole_millis()), None);
        assert_eq!(live.stored(), ids[first..], "{since}");
    }
}

#[test]
fn a_gap_is_told_and_never_silent() {
    let office = Office::open();
    // The office's clock is at second 100; later it is 15 hours and a minute ahead.
    let old = office.acme_at(90);
    office.pass((15 * 3600 + 60) * 1000);
    let now = 100 + 15 * 3600 + 60;
    let recent = office.acme_at(now - 3600);
    let unknown: EventId = "01890000-0000-7000-8000-000000000000".parse().unwrap();
    let cases = [
        ("", Some(old), "too_old"),
        ("?since=2025-12-01", None, "too_old"),
        ("", Some(unknown), "unknown_id"),
        ("", Some("00000000-0000-4000-8000-000000000000".parse().unwrap()), "unknown_id"),
    ];
    for (query, last, reason) in cases {
        let mut live = office.follow(KEEPER, query, last);
        let gap = live.gap();
        assert_eq!((&gap["type"], &gap["data"]["reason"]), (&json!("stream.gap"), &json!(reason)), "{query}");
        assert_eq!(gap["data"]["replay_from"], at(now - 15 * 3600).to_string());
        assert_eq!(live.stored(), [recent], "what there is follows");
    }
    assert_eq!(office.bus.gaps_total(), [("too_old", 2), ("unknown_id", 2)].into());
    // An event fifteen hours old causes no gap.
    let mut live = office.follow(KEEPER, &format!("?since={}", at(now - 15 * 3600 + 1)), None);
    assert_eq!(live.stored(), [recent]);
}

#[test]
fn a_caller_has_five_streams() {
    let office = Office::open();
    let mut streams: Vec<_> = (0..5).map(|_| office.follow(KEEPER, "", None)).collect();
    let refused = office.get(KEEPER, "/events");
    assert_eq!(refused.error(), (429, "rate_limited"));
    assert!(refused.header("retry-after").parse::<u32>().unwrap() >= 1);
    assert!(refused.message().starts_with("5 streams are open"), "{}", refused.message());
    assert_eq!(office.bus.open_streams(), 5);
    // Another user's streams are counted separately.
    drop(office.follow(&office.login("boss@acme.test"), "", None));
    streams.pop();
    let mut again = office.follow(KEEPER, "", None);
    assert_eq!(again.stored(), []);
    drop((streams, again));
    assert_eq!(office.bus.open_streams(), 0);
}

#[test]
fn a_stream_ends_with_what_it_was_opened_by() {
    let office = Office::open();
    let boss = office.login("boss@acme.test");
    let body = json!({"name": "crm", "preset": "read_only", "allow": ["127.0.0.1"]});
    let made = office.ask(&boss, "POST /api-keys", body);
    let key = made.body["key"].as_str().unwrap();
    let mut by_key = office.follow(key, "", None);
    by_key.stored();
    office.ask(&boss, &format!("DELETE /api-keys/{}", made.id()), Value::Null);
    assert_eq!(by_key.next(), None, "the key is deleted");

    let mia = office.login("mia@acme.test");
    let mut by_session = office.follow(&mia, "", None);
    by_session.stored();
    assert_eq!(office.ask(&mia, "POST /auth/logout", Value::Null).status, 204);
    assert_eq!(by_session.next(), None, "logged out");

    let mia = office.login("mia@acme.test");
    let user = office.get(&boss, "/users?q=mia").items("id")[0].to_owned();
    let mut by_member = office.follow(&mia, "", None);
    by_member.stored();
    let team = office.names.sales.to_string();
    let changed =
        office.ask(&boss, &format!("PATCH /users/{user}"), json!({"role": "agent", "team_id": team}));
    assert_eq!(changed.status, 200, "{}", changed.text);
    assert_eq!(by_member.next(), None, "another role");

    let mut expiring = office.follow(&boss, "", None);
    expiring.stored();
    office.pass((12 * 3600 + 5) * 1000);
    assert_eq!(expiring.next(), None, "twelve hours are over");

    let mut last = office.follow(KEEPER, "", None);
    last.stored();
    let end = office.acme(1);
    office.stop.send(true).unwrap();
    // An event that was sent before the end is still read.
    let shown = last.next();
    if let Some(Block::Event { id, .. }) = &shown {
        assert_eq!(id.as_deref(), Some(end[0].to_string().as_str()));
        assert_eq!(last.next(), None);
    } else {
        assert_eq!(shown, None, "the engine stops");
    }
}

const PATIENCE: Duration = Duration::from_secs(60);
