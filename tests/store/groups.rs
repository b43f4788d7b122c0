//! Calls are stored in groups: the test counts the writer's transactions, in simulated time on a real database.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sidetone::cdr::journal::Journal;
use sidetone::cdr::writer::CdrWriter;
use sidetone::events::call_events::call_events;
use sidetone_model::access::Scope;
use sidetone_model::call::Direction;
use sidetone_model::event::{EventKind, EventLog, Position};
use sidetone_model::ids::CallId;
use sidetone_model::live_call::{CallEvent, CallState, LiveCall};
use sidetone_model::ports::{CallRows, CallSink, CdrLog, PortFuture, Stored};
use sidetone_store::Store;
use tokio::runtime::{Builder, Runtime};
use tokio::task::spawn_blocking;

use crate::common::database::{Kind, TestDatabase, kinds};
use crate::common::records::{TempDir, at, ended, organisation};

/// The database on its own runtime: simulated time stands still while it works. A transaction takes [`COMMIT`].
struct Apart {
    store: Store,
    runtime: Arc<Runtime>,
}

impl CallSink for Apart {
    fn store_calls<'a>(&'a self, rows: CallRows<'a>) -> PortFuture<'a, Stored> {
        let (events, records) = (rows.events.to_vec(), rows.records.to_vec());
        let (store, runtime) = (self.store.clone(), Arc::clone(&self.runtime));
        Box::pin(async move {
            let stored = spawn_blocking(move || {
                runtime.block_on(store.store_calls(CallRows { events: &events, records: &records }))
            });
            let stored = stored.await.unwrap();
            tokio::time::sleep(COMMIT).await;
            stored
        })
    }
}

fn live(call: CallId) -> LiveCall {
    LiveCall {
        uuid: call,
        organisation_id: organisation(1),
        direction: Direction::Inbound,
        caller: None,
        destination: None,
        state: CallState::Ringing,
        started_at: at(0),
        ringing_at: Some(at(1)),
        answered_at: Some(at(2)),
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
    }
}

/// Places `rate` calls a second for some simulated seconds: each rings, is answered and ends. Returns the number of
/// calls, and of the transactions.
fn transactions(kind: Kind, rate: u32) -> (u64, u64) {
    let runtime = Arc::new(Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());
    let dir = TempDir::new();
    let database = runtime.block_on(TestDatabase::new(kind, dir.path()));
    let store = runtime.block_on(Store::open(&database.database)).unwrap();
    let before = store.event_bell().writes_total();
    let (journal, reader, _) = Journal::open(&dir.path().join("journal")).unwrap();
    let (sender, events) = call_events();
    let sink = Apart { store: store.clone(), runtime: Arc::clone(&runtime) };
    let calls = rate * SECONDS;
    let simulated = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    simulated.block_on(async {
        let writer = async {
            let mut writer = CdrWriter::new(reader).with_events(events);
            writer.run(&sink).await;
        };
        let placed = async {
            let every = Duration::from_millis(10);
            let together = rate / 100;
            for number in (0..calls).step_by(together as usize) {
                let mut last = None;
                for number in number..number + together {
                    let record = ended(number.into());
                    sender.send(CallEvent::Ringing(live(record.call_uuid)));
                    sender.send(CallEvent::Answered(live(record.call_uuid)));
                    last = Some(journal.ended(record).unwrap());
                }
                assert!(spawn_blocking(move || last.unwrap().wait()).await.unwrap());
                tokio::time::sleep(every).await;
            }
            drop((journal, sender));
        };
        tokio::join!(writer, placed);
    });
    let written = store.event_bell().writes_total() - before;
    runtime.block_on(async {
        let page = store.list(Scope::Organisation(organisation(1)), Default::default()).await.unwrap();
        assert_eq!(page.total, u64::from(calls));
        assert_eq!(events_in_order(&store).await, u64::from(calls) * 3);
        store.close().await;
    });
    (u64::from(calls), written)
}

/// Counts the events; checks that those of each call are in the order in which they happened.
async fn events_in_order(store: &Store) -> u64 {
    let mut seen = std::collections::HashMap::new();
    let (mut cursor, mut count) = (Position::default(), 0);
    loop {
        let batch = EventLog::after(store, &Scope::Everything.into(), cursor, 500).await.unwrap();
        for placed in batch.events {
            count += 1;
            let kinds: &mut Vec<EventKind> =
                seen.entry(placed.event.data["call_uuid"].to_string()).or_default();
            kinds.push(placed.event.kind);
        }
        cursor = batch.next;
        if batch.is_last {
            break;
        }
    }
    let order = [EventKind::CallRinging, EventKind::CallAnswered, EventKind::CallEnded];
    assert!(seen.values().all(|kinds| kinds[..] == order), "each call rings, is answered and ends");
    count
}

#[test]
fn many_calls_share_a_transaction() {
    for kind in kinds() {
        let (calls, written) = transactions(kind, 400);
        println!("{kind:?}: {calls} calls at 400 a second in {written} transactions");
        assert!(written * 50 <= calls, "{kind:?}: {written} transactions for {calls} calls at 400 a second");
        let (calls, written) = transactions(kind, 100);
        println!("{kind:?}: {calls} calls at 100 a second in {written} transactions");
        assert!(written * 8 <= calls, "{kind:?}: {written} transactions for {calls} calls at 100 a second");
    }
}

/// Simulated; rows arrive in the meantime.
const COMMIT: Duration = Duration::from_millis(4);
/// Simulated.
const SECONDS: u32 = 3;
