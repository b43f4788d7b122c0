//! The event log: in whatever order transactions commit, a reader misses no event and reads none twice.

use std::collections::BTreeSet;

use serde_json::{Map, json};
use sidetone_model::access::Scope;
use sidetone_model::event::{Event, EventKind, EventLog, Position, StreamedEvent};
use sidetone_model::idempotency::{Claim, Idempotency, KeptAnswer};
use sidetone_model::ids::{EventId, NodeId, OrganisationId, TeamId};
use sidetone_model::ports::CdrSink;
use sidetone_model::time::Timestamp;
use sidetone_store::{IdempotencyKeys, Store};
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Executor};
use uuid::Uuid;

use crate::common::database::TestDatabase;
use crate::common::records::{at, ended};
use crate::store::with_database;
use crate::store::with_store;

const ACME: OrganisationId = OrganisationId(Uuid::from_u128(0xACE));
const BOLT: OrganisationId = OrganisationId(Uuid::from_u128(0xB01));
const TEAM: TeamId = TeamId(Uuid::from_u128(0x7EA));

fn event(number: u32) -> Event {
    Event::of(EventKind::CallEnded, ACME, None, at(i64::from(number)), &json!({"number": number}))
}

fn of(organisation: OrganisationId, team: Option<TeamId>) -> Event {
    Event::new(EventKind::CallRinging, organisation, team, at(1), Map::new())
}

/// Reads from after `cursor` to the end, `limit` at a time.
async fn read_on(store: &Store, cursor: &mut Position, limit: u32) -> Vec<EventId> {
    let mut ids = Vec::new();
    loop {
        let batch = store.events_after(Scope::Everything, *cursor, limit).await.unwrap();
        assert!(batch.events.len() <= limit as usize);
        for placed in &batch.events {
            assert!(placed.position > *cursor, "positions only grow");
            *cursor = placed.position;
            ids.push(placed.event.id);
        }
        assert!(batch.next >= *cursor);
        *cursor = batch.next;
        if batch.is_last {
            return ids;
        }
    }
}

async fn all(store: &Store, scope: Scope) -> Vec<EventId> {
    let batch = store.events_after(scope, Position::default(), 100).await.unwrap();
    batch.events.into_iter().map(|placed| placed.event.id).collect()
}

#[test]
fn an_event_comes_back_as_it_was_written() {
    with_store(async |store| {
        let written = Event { team_id: Some(TEAM), ..event(7) };
        store.store_events(std::slice::from_ref(&written)).await.unwrap();
        let batch = store.events_after(Scope::Everything, Position::default(), 10).await.unwrap();
        assert!(batch.is_last);
        assert_eq!(batch.events.len(), 1);
        assert_eq!(batch.events[0].event, written);
        assert_eq!(batch.events[0].event.envelope(), written.envelope());
        assert_eq!(batch.next, batch.events[0].position);
        assert_eq!(store.events_end().await.unwrap(), batch.next);
    });
}

/// Events stored by this process are read from memory, equal to the log, until another process stores one.
#[test]
fn events_of_this_process_come_from_memory() {
    with_database(async |store, database| {
        let start = store.events_end().await.unwrap();
        assert_eq!(store.recent(start, 10), None, "nothing yet");
        store.store_events(&[event(1), event(2)]).await.unwrap();
        store.store_events(&[event(3)]).await.unwrap();
        let logged = store.events_after(Scope::Everything, start, 10).await.unwrap();
        let Some(recent) = store.recent(start, 10) else {
            assert!(database.url().starts_with("postgres"), "its readers give the positions");
            return;
        };
        let logged_events: Vec<StreamedEvent> = logged.events.iter().map(StreamedEvent::from).collect();
        let recent_events: Vec<StreamedEvent> =
            recent.events.iter().map(|event| StreamedEvent::clone(event)).collect();
        assert_eq!(recent_events, logged_events);
        assert_eq!((recent.next, recent.is_last), (logged.next, true));
        assert_eq!(store.recent(recent.next, 10), None, "nothing new");

        let other = Store::open(&database.database).await.unwrap();
        other.store_events(&[event(4)]).await.unwrap();
        store.store_events(&[event(5)]).await.unwrap();
        assert_eq!(store.recent(recent.next, 10), None, "the event of the other process is in the log alone");
        let mut cursor = recent.next;
        assert_eq!(read_on(store, &mut cursor, 10).await.len(), 2);
        other.close().await;
    });
}

/// A transaction that is rolled back leaves no event, also not in memory.
#[test]
fn what_is_rolled_back_is_not_passed_on() {
    with_store(async |store| {
        let start = store.events_end().await.unwrap();
        let twice = event(1);
        assert!(store.store_events(&[twice.clone(), twice.clone()]).await.is_err(), "one id twice");
        assert_eq!(store.recent(start, 10), None);
        store.store_events(&[twice]).await.unwrap();
        let mut cursor = start;
        assert_eq!(read_on(store, &mut cursor, 10).await.len(), 1);
    });
}

/// Two nodes write concurrently, each transaction with event ids created long before it commits; two readers continue
/// from what they have seen, all the time.
#[test]
fn readers_miss_nothing_while_transactions_end_in_any_order() {
    with_database(async |store, database| {
        let other_node = Store::open(&database.database).await.unwrap();
        let mut events: Vec<Event> = (0..600).map(event).collect();
        let expected: BTreeSet<EventId> = events.iter().map(|event| event.id).collect();
        // A fixed shuffle: neighbours commit far apart.
        events
            .sort_by_key(|event| u64::from(event.id.0.as_u128() as u32).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (mut cursor, mut other_cursor) = (Position::default(), Position::default());
        let (mut seen, mut seen_there) = (Vec::new(), Vec::new());
        for wave in events.chunks(60) {
            let writers = wave.chunks(3).enumerate().map(|(number, part)| {
                let (store, part) = (if number % 2 == 0 { store } else { &other_node }, part.to_vec());
                async move { store.store_events(&part).await.unwrap() }
            });
            let read_meanwhile = async {
                for _ in 0..5 {
                    seen.extend(read_on(store, &mut cursor, 7).await);
                    seen_there.extend(read_on(&other_node, &mut other_cursor, 100).await);
                }
            };
            futures_util::future::join(futures_util::future::join_all(writers), read_meanwhile).await;
        }
        seen.extend(read_on(store, &mut cursor, 7).await);
        seen_there.extend(read_on(&other_node, &mut other_cursor, 100).await);
        assert_eq!(seen, seen_there, "both nodes read one order");
        assert_eq!(seen.len(), expected.len(), "none twice");
        assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), expected, "none missed");
        other_node.close().await;
    });
}

/// An event whose transaction commits after a later one, and one that is rolled back.
#[test]
fn a_transaction_that_ends_late_is_read_late_and_not_missed() {
    with_database(async |store, database| {
        let (early, late, undone) = (event(1), event(2), event(3));
        if !database.url().starts_with("postgres") {
            // Only one transaction writes at a time, so this order cannot occur.
            return;
        }
        let mut slow = PgConnection::connect(&database.url()).await.unwrap();
        insert_unplaced(&mut slow, "BEGIN", &early).await;
        let mut broken = PgConnection::connect(&database.url()).await.unwrap();
        insert_unplaced(&mut broken, "BEGIN", &undone).await;

        store.store_events(std::slice::from_ref(&late)).await.unwrap();
        let mut cursor = Position::default();
        assert_eq!(read_on(store, &mut cursor, 10).await, [late.id]);
        assert_eq!(store.position_of(&Scope::Everything.into(), early.id).await.unwrap(), None);

        slow.execute("COMMIT").await.unwrap();
        broken.execute("ROLLBACK").await.unwrap();
        assert_eq!(read_on(store, &mut cursor, 10).await, [early.id]);
        assert_eq!(read_on(store, &mut cursor, 10).await, []);
        assert!(store.position_of(&Scope::Everything.into(), early.id).await.unwrap().is_some());
    });
}

async fn insert_unplaced(connection: &mut PgConnection, begin: &'static str, event: &Event) {
    connection.execute(begin).await.unwrap();
    sqlx::query("INSERT INTO events (id, organisation_id, kind, at_us, data) VALUES ($1, $2, $3, $4, '{}')")
        .bind(event.id.to_string())
        .bind(event.organisation_id.to_string())
        .bind(event.kind.as_str())
        .bind(event.timestamp.as_micros())
        .execute(connection)
        .await
        .unwrap();
}

/// More events than one placement handles.
#[test]
fn a_backlog_is_placed_in_parts() {
    with_store(async |store| {
        let events: Vec<Event> = (0..2500).map(event).collect();
        store.store_events(&events).await.unwrap();
        let mut cursor = Position::default();
        let read = read_on(store, &mut cursor, 5000).await;
        assert!(read.iter().eq(events.iter().map(|event| &event.id)));
    });
}

#[test]
fn a_scope_sees_its_own() {
    with_store(async |store| {
        let (acme, team, bolt) = (of(ACME, None), of(ACME, Some(TEAM)), of(BOLT, Some(TEAM)));
        let nobodys = of(ACME, Some(TeamId(Uuid::from_u128(9))));
        store.store_events(&[acme.clone(), team.clone(), bolt.clone(), nobodys.clone()]).await.unwrap();
        let own_team = Scope::Team { organisation: ACME, team: Some(TEAM) };
        let teamless = Scope::Team { organisation: ACME, team: None };
        assert_eq!(all(store, Scope::Everything).await, [acme.id, team.id, bolt.id, nobodys.id]);
        assert_eq!(all(store, Scope::Organisation(ACME)).await, [acme.id, team.id, nobodys.id]);
        assert_eq!(all(store, own_team).await, [team.id]);
        assert_eq!(all(store, teamless).await, []);
        assert!(store.position_of(&Scope::Organisation(BOLT).into(), bolt.id).await.unwrap().is_some());
        assert_eq!(store.position_of(&Scope::Organisation(ACME).into(), bolt.id).await.unwrap(), None);
        assert_eq!(store.position_of(&own_team.into(), acme.id).await.unwrap(), None);
        assert_eq!(
            store.position_of(&Scope::Everything.into(), EventId(Uuid::from_u128(1))).await.unwrap(),
            None
        );
    });
}

/// The position from which a reader gets every event with such an id or a greater one.
#[test]
fn reading_can_begin_at_an_instant() {
    with_store(async |store| {
        assert_eq!(store.position_before(event(0).id).await.unwrap(), Position::default());
        let id = |seconds: i64| EventId::first_at(at(seconds));
        let events: Vec<Event> =
            [0, 100, 200, 300].into_iter().map(|seconds| Event { id: id(seconds), ..event(0) }).collect();
        store.store_events(&events).await.unwrap();
        // Transactions may take a minute: events created up to a minute earlier may have later positions.
        for (seconds, expected) in [(-1, 0), (50, 0), (159, 1), (161, 2), (250, 2), (1000, 4)] {
            let before = store.position_before(id(seconds)).await.unwrap();
            let behind = store.events_after(Scope::Everything, before, 10).await.unwrap().events.len();
            assert_eq!(4 - behind, expected, "{seconds}");
        }
    });
}

/// During an upgrade a newer node stores event kinds that this one does not know.
#[test]
fn what_a_newer_version_stored_stops_nobody() {
    with_database(async |store, database| {
        let first = event(1);
        store.store_events(std::slice::from_ref(&first)).await.unwrap();
        change(database, "UPDATE events SET kind = 'call.teleported'").await;
        let second = event(2);
        store.store_events(std::slice::from_ref(&second)).await.unwrap();
        let mut cursor = Position::default();
        assert_eq!(read_on(store, &mut cursor, 1).await, [second.id]);
        assert_eq!(cursor, store.events_end().await.unwrap());
    });
}

async fn change(database: &TestDatabase, statement: &str) {
    let statement = sqlx::raw_sql(sqlx::AssertSqlSafe(statement));
    match database.url().starts_with("postgres") {
        true => {
            let mut connection = PgConnection::connect(&database.url()).await.unwrap();
            statement.execute(&mut connection).await.unwrap();
        }
        false => {
            let mut connection = sqlx::sqlite::SqliteConnection::connect(&database.url()).await.unwrap();
            statement.execute(&mut connection).await.unwrap();
        }
    }
}

#[test]
fn old_events_are_deleted_in_batches_and_positions_are_never_used_again() {
    with_store(async |store| {
        let now = Timestamp::from_micros(at(0).as_micros());
        let day = |days: i64| EventId::first_at(now.plus_micros(-days * 86_400_000_000));
        let mut old: Vec<Event> = (0..501).map(event).collect();
        for (number, event) in old.iter_mut().enumerate() {
            event.id = EventId(Uuid::from_u128(day(31).0.as_u128() + number as u128));
        }
        store.store_events(&old).await.unwrap();
        let kept = Event { id: day(29), ..event(1) };
        store.store_events(std::slice::from_ref(&kept)).await.unwrap();
        let end = store.events_end().await.unwrap();
        assert_eq!(store.purge_events(now).await.unwrap(), Store::EVENT_PURGE_BATCH);
        assert_eq!(store.purge_events(now).await.unwrap(), 1);
        assert_eq!(store.purge_events(now).await.unwrap(), 0);
        assert_eq!(all(store, Scope::Everything).await, [kept.id]);
        assert_eq!(store.purge_events(now.plus_micros(2 * 86_400_000_000)).await.unwrap(), 1);
        // The log is empty, and a reader at its end still misses nothing.
        let next = event(2);
        store.store_events(std::slice::from_ref(&next)).await.unwrap();
        assert_eq!(read_on(store, &mut end.clone(), 10).await, [next.id]);
    });
}

/// The bell rings with the commit; a ring before the reader listens is not lost.
#[test]
fn a_commit_rings_the_bell_and_a_rollback_does_not() {
    with_store(async |store| {
        let mut listener = store.event_bell().listen();
        let record = ended(1);
        store.store(std::slice::from_ref(&record)).await.unwrap();
        listener.news().await;
        assert_eq!(store.event_bell().events_total(), 1);
        // The same record again: nothing new.
        store.store(std::slice::from_ref(&record)).await.unwrap();
        // An existing id: nothing is stored.
        let known = all(store, Scope::Everything).await[0];
        assert!(store.store_events(&[event(1), Event { id: known, ..event(2) }]).await.is_err());
        assert_eq!(store.event_bell().events_total(), 1);
        assert_eq!(all(store, Scope::Everything).await, [known]);
    });
}

/// Events in a unit of work become readable, and the bell rings, when the unit is committed.
#[test]
fn an_event_of_a_unit_is_visible_with_the_unit() {
    with_store(async |store| {
        let keys = IdempotencyKeys::open(store.clone(), NodeId(Uuid::from_u128(1))).await.unwrap();
        for (number, kept) in [(1, None), (2, Some(200)), (3, Some(409))] {
            let before = store.event_bell().events_total();
            let claim = Claim { id: [number; 32], fingerprint: [0; 32] };
            let answer = kept.map(|status| KeptAnswer {
                status,
                content_type: None,
                location: None,
                sealed_body: String::new(),
            });
            keys.once(
                claim,
                at(0),
                Box::pin(async {
                    store.store_events(&[event(u32::from(number))]).await.unwrap();
                    assert_eq!(store.event_bell().events_total(), before, "not yet");
                    Ok(answer)
                }),
            )
            .await
            .unwrap();
            let is_kept = u64::from(kept == Some(200));
            assert_eq!(store.event_bell().events_total(), before + is_kept, "{kept:?}");
        }
        assert_eq!(all(store, Scope::Everything).await.len(), 1);
    });
}

/// Events from before positions existed keep their order.
#[test]
fn events_of_an_older_version_are_placed_by_their_ids() {
    with_database(async |store, database| {
        let events: Vec<Event> = (0..3).map(event).collect();
        store.store_events(&[events[2].clone(), events[0].clone(), events[1].clone()]).await.unwrap();
        let migration = include_str!("../../migrations/0080_event_position.sql");
        let start = migration.find("UPDATE events").unwrap();
        let end = start + migration[start..].find(';').unwrap();
        change(database, "UPDATE events SET position = NULL").await;
        change(database, &migration[start..end]).await;
        assert!(all(store, Scope::Everything).await.iter().eq(events.iter().map(|event| &event.id)));
    });
}

/// A record and its event are stored together, and the event has the record's team.
#[test]
fn the_event_of_a_record_has_its_team() {
    with_store(async |store| {
        let record = sidetone_model::cdr::Cdr { team_id: Some(TEAM), ..ended(1) };
        store.store(std::slice::from_ref(&record)).await.unwrap();
        let batch = store.events_after(Scope::Everything, Position::default(), 10).await.unwrap();
        let event = &batch.events[0].event;
        assert_eq!(
            (event.kind, event.organisation_id, event.team_id),
            (EventKind::CallEnded, record.organisation_id, Some(TEAM))
        );
        assert_eq!(event.data["call_uuid"], record.call_uuid.to_string());
    });
}
