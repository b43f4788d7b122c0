//! A row that the database refuses permanently, among many that it accepts.

use std::collections::BTreeMap;
use std::time::Duration;

use sidetone::cdr::journal::Journal;
use sidetone::cdr::writer::CdrWriter;
use sidetone::dead_letters::{DeadLetters, replay};
use sidetone::events::call_events::call_events;
use sidetone_model::access::Scope;
use sidetone_model::call::Direction;
use sidetone_model::event::Position;
use sidetone_model::ids::CallId;
use sidetone_model::live_call::{CallEvent, CallState, LiveCall};
use sidetone_model::page::Window;
use sidetone_model::ports::CdrLog;
use sidetone_store::Store;
use uuid::Uuid;

use crate::common::database::{Kind, TestDatabase, kinds};
use crate::common::records::{TempDir, at, ended, organisation};

/// Makes the database refuse a row of `table` whose `column` holds `value`.
async fn refuse(database: &TestDatabase, kind: Kind, condition: &'static str) {
    let statements: &[&'static str] = match (kind, condition) {
        (Kind::Postgres, "cdrs") => {
            &["ALTER TABLE cdrs ADD CONSTRAINT refused CHECK (caller_number IS DISTINCT FROM 'refused')"]
        }
        (Kind::Postgres, _) => {
            &["ALTER TABLE events ADD CONSTRAINT refused CHECK (data NOT LIKE '%refused%')"]
        }
        (Kind::Sqlite, "cdrs") => {
            &["CREATE TRIGGER refused BEFORE INSERT ON cdrs WHEN NEW.caller_number = 'refused'
             BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"]
        }
        (Kind::Sqlite, _) => {
            &["CREATE TRIGGER refused BEFORE INSERT ON events WHEN NEW.data LIKE '%refused%'
             BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"]
        }
    };
    for statement in statements {
        database.texts(statement).await;
    }
}

async fn allow(database: &TestDatabase, kind: Kind, table: &str) {
    match (kind, table) {
        (Kind::Postgres, "cdrs") => database.texts("ALTER TABLE cdrs DROP CONSTRAINT refused").await,
        (Kind::Postgres, _) => database.texts("ALTER TABLE events DROP CONSTRAINT refused").await,
        (Kind::Sqlite, _) => database.texts("DROP TRIGGER refused").await,
    };
}

/// Runs one case on a database of every kind that refuses rows of `table`.
fn with_refusals(table: &'static str, case: impl AsyncFn(&Store, &TestDatabase, Kind, &TempDir)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        for kind in kinds() {
            let dir = TempDir::new();
            let database = TestDatabase::new(kind, dir.path()).await;
            let store = Store::open(&database.database).await.unwrap();
            refuse(&database, kind, table).await;
            case(&store, &database, kind, &dir).await;
            store.close().await;
        }
    });
}

const SOON: Duration = Duration::from_secs(60);

#[test]
fn a_record_that_is_refused_for_good_holds_up_no_other_and_can_be_stored_later() {
    with_refusals("cdrs", async |store, database, kind, dir| {
        let letters = DeadLetters::below(dir.path());
        let (journal, reader, _) = Journal::open(&dir.path().join("journal")).unwrap();
        let mut writer =
            CdrWriter::new(reader).with_pause(Duration::from_millis(5)).with_letters(letters.clone());
        for number in 0..30 {
            let mut cdr = ended(number);
            if number == 7 {
                cdr.caller_number = Some("refused".to_owned());
            }
            assert!(journal.ended(cdr).unwrap().await);
        }
        drop(journal);
        tokio::time::timeout(SOON, writer.run(store)).await.expect("one row stops nothing");
        let scope = Scope::Organisation(organisation(1));
        let window = Window::at(0, 500);
        assert_eq!(store.list(scope, window.clone().into()).await.unwrap().total, 29, "{kind:?}");
        let found = letters.list().unwrap();
        let [(_, Ok(letter))] = &found[..] else { panic!("{kind:?}: {found:?}") };
        assert_eq!((letter.kind.as_str(), letters.written()), ("call_record", 1));
        assert!(letter.reason.contains("refused"), "{}", letter.reason);
        assert!(replay(store, letter).await.is_err(), "the cause is still there");
        allow(database, kind, "cdrs").await;
        assert_eq!(replay(store, letter).await, Ok(true));
        let stored = CdrLog::find(store, ended(7).call_uuid).await.unwrap().unwrap();
        assert_eq!(stored.started_at, ended(7).started_at, "to the microsecond");
        assert_eq!(store.list(scope, window.clone().into()).await.unwrap().total, 30, "{kind:?}");
    });
}

fn news(number: u128, caller: &str) -> CallEvent {
    CallEvent::Ringing(LiveCall {
        uuid: CallId(Uuid::from_u128(number)),
        organisation_id: organisation(1),
        direction: Direction::Internal,
        caller: Some(caller.to_owned()),
        destination: None,
        state: CallState::Ringing,
        started_at: at(0),
        ringing_at: Some(at(1)),
        answered_at: None,
        extension_id: None,
        agent_id: None,
        team_id: None,
        trunk_id: None,
        reference: None,
        variables: BTreeMap::new(),
        held_by: None,
        recording: None,
        parked: None,
        playing: None,
        legs: Vec::new(),
    })
}

#[test]
fn an_event_that_is_refused_for_good_holds_up_no_other_and_can_be_stored_later() {
    with_refusals("events", async |store, database, kind, dir| {
        let letters = DeadLetters::below(dir.path());
        let (sender, events) = call_events();
        let (journal, reader, _) = Journal::open(&dir.path().join("journal")).unwrap();
        drop(journal);
        let mut writer = CdrWriter::new(reader)
            .with_events(events)
            .with_pause(Duration::from_millis(5))
            .with_letters(letters.clone());
        for number in 0..20 {
            sender.send(news(number, if number == 3 { "refused" } else { "1001" }));
        }
        drop(sender);
        tokio::time::timeout(SOON, writer.run(store)).await.expect("one row stops nothing");
        let scope = Scope::Organisation(organisation(1));
        let count = async || store.events_after(scope, Position(0), 100).await.unwrap().events.len();
        assert_eq!(count().await, 19, "{kind:?}");
        let found = letters.list().unwrap();
        let [(_, Ok(letter))] = &found[..] else { panic!("{kind:?}: {found:?}") };
        assert_eq!(letter.kind, "event");
        allow(database, kind, "events").await;
        assert_eq!(replay(store, letter).await, Ok(true));
        assert_eq!(count().await, 20, "{kind:?}");
    });
}
