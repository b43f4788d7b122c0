//! The tasks of the notes, from the start of the engine to its end.

use std::sync::Arc;
use std::time::Duration;

use sidetone_model::ids::NodeId;
use sidetone_model::time::Timestamp;
use sidetone_store::{Store, StoreError};
use tokio::sync::{mpsc, watch};

use crate::clock::Clock;
use crate::dead_letters::DeadLetters;
use crate::driver::Handle;
use crate::notes::{ConferenceNotes, NoteCounters, NoteService, NoteWriter, PhoneReply, dispatcher, follow};
use crate::supervise::{Running, Supervisor, Task};

/// The parts of a running engine that the notes use.
pub struct NoteTasks {
    service: NoteService,
    from_conferences: ConferenceNotes,
    counters: Arc<NoteCounters>,
    stop: watch::Sender<bool>,
    writer: Running,
    sweeper: Running,
}

impl NoteTasks {
    /// The channel of the switch's reports; [`NoteTasks::open`] takes the receiving end.
    pub fn replies() -> (mpsc::Sender<PhoneReply>, mpsc::Receiver<PhoneReply>) {
        mpsc::channel(REPLIES_MAX)
    }

    /// Starts the tasks. Notes that an earlier run of the node was sending are marked as failed: it is
    /// unknown whether a phone shows them, and sending them again might show them twice.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn open(
        store: &Store,
        switch: &Handle,
        node: NodeId,
        replies: mpsc::Receiver<PhoneReply>,
        clock: Clock,
        supervisor: &Supervisor,
        letters: &DeadLetters,
    ) -> Result<NoteTasks, StoreError> {
        give_up(store, Some(node), clock().plus_micros(1), RESTARTED).await?;
        let counters = Arc::new(NoteCounters::default());
        let (dispatcher, queue) = dispatcher();
        let (orders, writer) =
            NoteWriter::new(Arc::new(store.clone()), dispatcher.clone(), Arc::clone(&counters));
        let phones = Arc::new(switch.clone());
        let (stop, stopped) = watch::channel(false);
        let to_writer = (phones.clone(), orders.clone());
        drop(supervisor.keep(Task::NoteDispatch, (queue, to_writer), |(queue, (phones, orders))| {
            Box::pin(async move { queue.run(phones.as_ref(), orders).await })
        }));
        let followed = (replies, orders.clone(), switch.clone(), Arc::clone(&clock), supervisor.clone());
        drop(supervisor.keep(
            Task::PhoneReplies,
            followed,
            |(replies, orders, switch, clock, supervisor)| {
                Box::pin(follow(replies, orders, switch, clock, supervisor))
            },
        ));
        let swept = (store.clone(), Arc::clone(&clock), stopped.clone());
        let sweeper = supervisor.keep(Task::NoteSweep, swept, |(store, clock, stopped)| {
            Box::pin(sweep(store, clock, stopped.clone()))
        });
        let from_conferences = ConferenceNotes::new(orders.clone(), node, Arc::clone(&clock));
        let service = NoteService::new(store.clone(), phones, (orders, dispatcher), node, clock)
            .supervised(supervisor.clone());
        let writer = supervisor.keep(
            Task::NoteWriter,
            (writer.with_letters(letters.clone()), stopped),
            |(writer, stopped)| Box::pin(writer.run(stopped.clone())),
        );
        Ok(NoteTasks { service, from_conferences, counters, stop, writer, sweeper })
    }

    /// Returns the service that sends notes.
    pub fn service(&self) -> NoteService {
        self.service.clone()
    }

    /// Returns the sender for the notes of conference rooms.
    pub fn from_conferences(&self) -> ConferenceNotes {
        self.from_conferences.clone()
    }

    /// Returns the counters.
    pub fn counters(&self) -> Arc<NoteCounters> {
        Arc::clone(&self.counters)
    }

    /// Stores waiting changes, and stops. Call it after the switch and the HTTP server have stopped.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.sweeper.await;
        if tokio::time::timeout(STOP_MAX, self.writer).await.is_err() {
            tracing::warn!("the last receipts of notes could not be stored");
        }
    }
}

/// Marks receipts as failed, batch after batch.
async fn give_up(
    store: &Store,
    node: Option<NodeId>,
    before: Timestamp,
    why: &str,
) -> Result<(), StoreError> {
    while store.fail_pending_notes(node, before, why).await? == Store::NOTE_BATCH {
        tokio::time::sleep(SWEEP_PAUSE).await;
    }
    Ok(())
}

/// Deletes notes whose retention time is over, and marks receipts as failed whose node crashed and did not
/// restart.
async fn sweep(store: &Store, clock: &Clock, mut stop: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(SWEEP_EVERY) => {}
        }
        if let Err(error) = sweep_once(store, clock()).await {
            tracing::warn!(%error, "old notes cannot be deleted now");
        }
    }
}

async fn sweep_once(store: &Store, now: Timestamp) -> Result<(), StoreError> {
    give_up(store, None, now.plus_micros(-UNHEARD_US), UNHEARD).await?;
    while store.purge_notes(now).await? == Store::NOTE_BATCH {
        tokio::time::sleep(SWEEP_PAUSE).await;
    }
    Ok(())
}

/// Largest number of unprocessed reports of the switch.
const REPLIES_MAX: usize = 16_384;
const RESTARTED: &str = "the engine was restarted before the phone answered";
/// Longest time for storing waiting changes at the end.
const STOP_MAX: Duration = Duration::from_secs(5);
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// Pause between two batches, in which others can write.
const SWEEP_PAUSE: Duration = Duration::from_millis(100);
const UNHEARD: &str = "no answer of the phone is known";
/// Far longer than the last phone takes to respond or time out.
const UNHEARD_US: i64 = 5 * 60 * 1_000_000;
