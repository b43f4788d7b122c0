//! The writer: which notes are stored together, which are sent and when, and an unavailable database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sidetone_model::ids::{CallId, ExtensionId, LegId, NodeId, NoteId, OrganisationId, TeamId};
use sidetone_model::note::rules::outcome;
use sidetone_model::note::{
    Acknowledgement, CallPhones, Change, Committed, Destination, Dispatch, NewNote, NoteChannel, NoteLevel,
    NoteLog, NoteSource, PhoneAnswer, Phones, Tap, Tapper, Written,
};
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::time::Timestamp;
use tokio::sync::watch;
use uuid::Uuid;

use crate::notes::{NoteCounters, NoteWriter, Orders, dispatcher};

/// A log that keeps its transactions, and phones that keep the notes they received.
#[derive(Default)]
struct World {
    transactions: Mutex<Vec<Vec<Change>>>,
    sent: Mutex<Vec<NoteId>>,
    is_away: AtomicBool,
    /// Whether its disk takes six seconds.
    is_slow: AtomicBool,
    takes_nothing: AtomicBool,
}

impl NoteLog for World {
    fn write_changes<'a>(&'a self, changes: &'a [Change]) -> PortFuture<'a, Vec<Written>> {
        Box::pin(async move {
            // As long as a disk takes, so that other orders arrive in the meantime.
            let is_slow = self.is_slow.load(Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(if is_slow { 6_000 } else { 5 })).await;
            if self.is_away.load(Ordering::Relaxed) {
                return Err(Problem::Unavailable { reason: "away".to_owned(), retry_after_s: 1 });
            }
            self.transactions.lock().push(changes.to_vec());
            Ok(vec![Written::Done; changes.len()])
        })
    }

    fn is_within_unit(&self) -> bool {
        false
    }

    fn write_within<'a>(&'a self, _note: &'a NewNote, _committed: Committed) -> PortFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn owner_of_call(&self, _call: CallId) -> PortFuture<'_, Option<(OrganisationId, Option<TeamId>)>> {
        Box::pin(async { Ok(None) })
    }
}

impl Phones for World {
    fn on_call(&self, _call: CallId) -> PortFuture<'_, Option<CallPhones>> {
        Box::pin(async { Ok(None) })
    }

    fn devices_of(&self, _extension: ExtensionId) -> PortFuture<'_, Vec<String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn send(&self, notes: Vec<Dispatch>) -> PortFuture<'_, ()> {
        Box::pin(async move {
            if self.takes_nothing.load(Ordering::Relaxed) {
                return Err(Problem::Busy { retry_after_s: 1 });
            }
            self.sent.lock().extend(notes.iter().map(|dispatch| dispatch.note));
            Ok(())
        })
    }
}

impl World {
    /// Running tasks; they end with the sender.
    fn run(
        self: &Arc<Self>,
    ) -> (Orders, Arc<NoteCounters>, watch::Sender<bool>, tokio::task::JoinHandle<()>) {
        let counters = Arc::new(NoteCounters::default());
        let (dispatcher, queue) = dispatcher();
        let (orders, writer) = NoteWriter::new(Arc::clone(self) as _, dispatcher, Arc::clone(&counters));
        let (stop, stopped) = watch::channel(false);
        let mut writer = writer;
        let task = tokio::spawn(async move { writer.run(stopped).await });
        let (phones, to_writer) = (Arc::clone(self) as Arc<dyn Phones>, orders.clone());
        let mut queue = queue;
        tokio::spawn(async move { queue.run(phones.as_ref(), &to_writer).await });
        (orders, counters, stop, task)
    }

    fn stored(&self) -> Vec<Change> {
        self.transactions.lock().concat()
    }
}

fn note(number: u128) -> (NewNote, Option<Dispatch>) {
    let id = NoteId(Uuid::from_u128(number));
    let call = CallId(Uuid::from_u128(1));
    let note = NewNote {
        id,
        organisation_id: OrganisationId(Uuid::nil()),
        team_id: None,
        channel: NoteChannel::Info,
        call_uuid: Some(call),
        extension_id: None,
        room: None,
        title: "a".to_owned(),
        level: NoteLevel::Info,
        ack: true,
        source: NoteSource::Api,
        sent_at: Timestamp::default(),
        payload: "{}".into(),
        error: None,
        node: NodeId(Uuid::nil()),
        receipts: Vec::new(),
    };
    let to = Destination::Call(call, vec![LegId(Uuid::nil())]);
    (note, Some(Dispatch { note: id, to, payload: "{}".into() }))
}

fn answered(number: u128) -> Change {
    let note = NoteId(Uuid::from_u128(number));
    Change::Answered { note, place: 0, outcome: outcome(PhoneAnswer::Status(200)) }
}

fn tap(number: u128) -> Tap {
    let by = Tapper::Leg { organisation: OrganisationId(Uuid::nil()), leg: LegId(Uuid::nil()) };
    let acknowledgement = Acknowledgement { id: NoteId(Uuid::from_u128(number)), at: None };
    Tap { by, acknowledgement, now: Timestamp::default() }
}

#[tokio::test(start_paused = true)]
async fn what_comes_at_one_time_is_one_transaction_and_sent_in_its_order() {
    let world = Arc::new(World::default());
    let (orders, counters, _stop, _task) = world.run();
    let all = (0..200).map(|number| {
        let orders = orders.clone();
        async move {
            let (note, dispatch) = note(number);
            orders.store(note, dispatch).await
        }
    });
    for stored in futures_util::future::join_all(all).await {
        stored.unwrap();
    }
    assert!(world.transactions.lock().len() <= 2, "{}", world.transactions.lock().len());
    tokio::time::sleep(Duration::from_millis(1)).await;
    let ids: Vec<u128> = world.sent.lock().iter().map(|id| id.0.as_u128()).collect();
    assert_eq!(ids, (0..200).collect::<Vec<_>>());
    assert_eq!(counters.sent(), [("info", 200), ("message", 0)]);
}

#[tokio::test(start_paused = true)]
async fn a_database_that_is_away_sends_nothing_and_forgets_no_answer() {
    let world = Arc::new(World::default());
    let (orders, _, _stop, _task) = world.run();
    world.is_away.store(true, Ordering::Relaxed);
    let (new, dispatch) = note(1);
    let (refused, refused_tap, ()) =
        tokio::join!(orders.store(new, dispatch), orders.tap(tap(1)), orders.answered(answered(7)));
    assert!(refused.is_err() && refused_tap.is_err());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(world.sent.lock().is_empty() && world.stored().is_empty());
    world.is_away.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.stored(), [answered(7)]);
}

/// A phone retransmits its acknowledgement in the meantime.
#[tokio::test(start_paused = true)]
async fn a_tap_waits_for_a_database_that_was_away_for_a_moment() {
    let world = Arc::new(World::default());
    let (orders, _, _stop, _task) = world.run();
    world.is_away.store(true, Ordering::Relaxed);
    orders.answered(answered(7)).await;
    // The writer pauses now.
    tokio::time::sleep(Duration::from_millis(6)).await;
    world.is_away.store(false, Ordering::Relaxed);
    assert_eq!(orders.tap(tap(1)).await.unwrap(), Written::Done);
    assert_eq!(world.stored(), [answered(7), Change::Acked(tap(1))]);
}

/// An acknowledgement that waited too long is not stored, because the phone was asked to send it again.
#[tokio::test(start_paused = true)]
async fn a_tap_that_had_to_wait_too_long_is_not_stored() {
    let world = Arc::new(World::default());
    let (orders, _, _stop, _task) = world.run();
    world.is_slow.store(true, Ordering::Relaxed);
    orders.answered(answered(7)).await;
    tokio::time::sleep(Duration::from_millis(6)).await;
    world.is_slow.store(false, Ordering::Relaxed);
    let late = orders.tap(tap(1)).await;
    assert!(matches!(late, Err(Problem::Busy { .. })), "{late:?}");
    assert_eq!(orders.tap(tap(1)).await.unwrap(), Written::Done);
    assert_eq!(world.stored(), [answered(7), Change::Acked(tap(1))]);
}

#[tokio::test(start_paused = true)]
async fn a_switch_that_takes_nothing_fails_the_receipts() {
    let world = Arc::new(World::default());
    let (orders, counters, _stop, _task) = world.run();
    world.takes_nothing.store(true, Ordering::Relaxed);
    let (new, dispatch) = note(1);
    orders.store(new.clone(), dispatch).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let failed = Change::Answered { note: new.id, place: 0, outcome: outcome(PhoneAnswer::NotTaken) };
    assert_eq!(world.stored(), [Change::Sent(Box::new(new)), failed]);
    assert_eq!(counters.receipts(), [("sent", 0), ("failed", 1)]);
}

#[tokio::test(start_paused = true)]
async fn what_waits_at_the_end_is_stored() {
    let world = Arc::new(World::default());
    let (orders, _, stop, task) = world.run();
    for number in 0..1_000 {
        orders.answered(answered(number)).await;
    }
    stop.send(true).unwrap();
    task.await.unwrap();
    assert_eq!(world.stored().len(), 1_000);
    let (new, dispatch) = note(1);
    assert!(orders.store(new, dispatch).await.is_err());
}
