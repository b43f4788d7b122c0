//! The tasks that store sessions, from the start of the engine to its end.

use std::sync::Arc;
use std::time::Duration;

use sidetone_model::ids::{ConferenceSessionId, NodeId, OrganisationId};
use sidetone_model::room::rows::{RecordingRow, Rows};
use sidetone_model::time::Timestamp;
use sidetone_store::{Orphaned, Store, StoreError};
use tokio::sync::watch;

use crate::clock::Clock;
use crate::conference_history::sender::{HistoryCounters, HistorySender};
use crate::conference_history::writer::history;
use crate::dead_letters::DeadLetters;
use crate::supervise::{Running, Supervisor, Task};

/// Repairs the file of a recording that a crash interrupted. Returns its length (0 if there is no file) and why it is
/// incomplete.
pub type Recover = dyn Fn(OrganisationId, ConferenceSessionId) -> (u64, Option<String>) + Send + Sync;

/// The parts of a running engine that the sessions use.
pub struct HistoryTasks {
    counts: Arc<HistoryCounters>,
    writer: Running,
    sweeper: Running,
}

impl HistoryTasks {
    /// Starts the tasks, and returns the sender for the switch. Sessions that an earlier run of the node left
    /// open are closed at the time of their last mark, before any caller can join a room; their recordings
    /// are repaired.
    ///
    /// # Errors
    /// When the database returns an error.
    pub async fn open(
        store: &Store,
        node: NodeId,
        clock: Clock,
        recover: &Recover,
        stop: watch::Receiver<bool>,
        supervisor: &Supervisor,
        letters: &DeadLetters,
    ) -> Result<(HistoryTasks, HistorySender), StoreError> {
        while store.close_sessions(Orphaned::Of(node)).await? == Store::SESSION_BATCH {}
        let found = recovered(store, node, recover).await?;
        if !found.is_empty() {
            store.store_sessions(node, &Rows { recordings: found, ..Rows::default() }).await?;
        }
        let (sender, writer) = history(Arc::new(store.clone()), node, Arc::clone(&clock));
        let writer = writer.with_letters(letters.clone());
        let counts = writer.counts();
        let for_sweeper = (store.clone(), clock, stop);
        let sweeper = supervisor.keep(Task::RoomSweep, for_sweeper, |(store, clock, stop)| {
            Box::pin(sweep(store, clock, stop.clone()))
        });
        let writer = supervisor.keep(Task::ConferenceHistory, writer, |writer| Box::pin(writer.run()));
        Ok((HistoryTasks { counts, writer, sweeper }, sender))
    }

    /// Returns the counters.
    pub fn counts(&self) -> Arc<HistoryCounters> {
        Arc::clone(&self.counts)
    }

    /// Stores waiting changes, and stops. Call it after the switch has stopped, because the switch reports changes
    /// until its end.
    pub async fn stop(self) {
        let _ = self.sweeper.await;
        if tokio::time::timeout(STOP_MAX, self.writer).await.is_err() {
            tracing::warn!(
                "the database did not take the ends of sessions; they are closed at the next start"
            );
        }
    }
}

/// Repairs the recordings that a crash interrupted, and stores the results.
async fn recovered(store: &Store, node: NodeId, recover: &Recover) -> Result<Vec<RecordingRow>, StoreError> {
    let unfinished = store.unfinished_recordings(node).await?;
    let rows = unfinished.into_iter().map(|(organisation_id, session)| {
        let (bytes, error) = recover(organisation_id, session);
        RecordingRow { session, organisation_id, bytes, error }
    });
    Ok(rows.collect())
}

/// Closes the sessions of nodes that crashed and did not restart.
async fn sweep(store: &Store, clock: &Clock, mut stop: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(SWEEP_EVERY) => {}
        }
        let silent_since: Timestamp = clock().plus_micros(-SILENT_US);
        if let Err(error) = store.close_sessions(Orphaned::Since(silent_since)).await {
            tracing::warn!(%error, "sessions without a live room cannot be closed now");
        }
    }
}

/// A session without a mark for this long is closed; a live session is marked every few seconds.
const SILENT_US: i64 = 5 * 60 * 1_000_000;
/// Longest time for storing waiting changes at the end.
const STOP_MAX: Duration = Duration::from_secs(10);
const SWEEP_EVERY: Duration = Duration::from_secs(60);
