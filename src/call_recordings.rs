//! Recordings of calls: a row is stored before the switch starts one, and completed when the recorder has closed the
//! file.

use std::fs::File;
use std::sync::Arc;

use sidetone_model::call_operation::{CallOperation, RecordStep};
use sidetone_model::call_recording::{CallRecording, CallRecordingEnd, CallRecordings, RecordAction};
use sidetone_model::ids::{CallId, CallRecordingId, NodeId};
use sidetone_model::live_call::LiveCall;
use sidetone_model::open_file::OpenFile;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_store::{Store, StoreError};
use sidetone_switch::queries::Operate;
use uuid::Uuid;

use crate::clock::Clock;
use crate::driver::Handle;
use crate::far_files::{FarFiles, FilePlace};
use crate::open_file::{self, Opened};
use crate::recorder::{DataDisk, Disk as _, Ended, recover};

/// Records calls on behalf of programs, and opens the files.
#[derive(Clone)]
pub struct CallRecordingService {
    /// The store.
    pub store: Store,
    /// The switch.
    pub switch: Handle,
    /// This node.
    pub node: NodeId,
    /// The clock.
    pub clock: Clock,
    /// The files.
    pub disk: DataDisk,
    /// No recording starts if fewer bytes are free.
    pub reserve_bytes: u64,
    /// The recordings of other nodes; `None` for a standalone node.
    pub far: Option<Arc<dyn FarFiles>>,
}

impl CallRecordingService {
    async fn begin(&self, call: &LiveCall) -> Result<CallRecordingId, Problem> {
        self.require_room().await?;
        let recording = CallRecording {
            id: CallRecordingId(Uuid::now_v7()),
            call_uuid: call.uuid,
            linked_call_uuid: None,
            organisation_id: call.organisation_id,
            team_id: call.team_id,
            started_at: (self.clock)(),
            ended_at: None,
            bytes: 0,
            seconds: 0,
            error: None,
        };
        self.store.begin_call_recording(self.node, &recording).await?;
        let begun = self.operate(call.uuid, RecordStep::Start(recording.id)).await;
        match begun {
            Err(problem) => {
                self.store.discard_call_recording(recording.organisation_id, recording.id).await?;
                Err(problem)
            }
            Ok(other) if other != call.uuid => self.link(&recording, other).await,
            Ok(_) => Ok(recording.id),
        }
    }

    /// Stores the other call whose party is recorded too. If that fails, the recording is stopped: one of its calls
    /// would not list it.
    async fn link(&self, recording: &CallRecording, other: CallId) -> Result<CallRecordingId, Problem> {
        let linked = self.store.link_call_recording(recording.organisation_id, recording.id, other).await;
        if let Err(error) = linked {
            // The calls may have ended by now; then the recording has ended too.
            let _ = self.operate(recording.call_uuid, RecordStep::Stop).await;
            return Err(error.into());
        }
        Ok(recording.id)
    }

    /// Returns the linked call that is recorded too; without one, the call itself.
    async fn operate(&self, call: CallId, step: RecordStep) -> Result<CallId, Problem> {
        Ok(self.switch.ask(Operate(CallOperation::Record(call, step))).await??)
    }

    async fn require_room(&self) -> Result<(), Problem> {
        let mut disk = self.disk.clone();
        let free_bytes = open_file::beside(HOLDS, move || disk.free_bytes()).await?;
        if free_bytes < self.reserve_bytes {
            return Err(Problem::Conflict(format!(
                "the disk of recordings has {} MiB left, fewer than [recordings] reserve_mb keeps free",
                free_bytes >> 20
            )));
        }
        Ok(())
    }
}

impl CallRecordings for CallRecordingService {
    fn order<'a>(&'a self, call: &'a LiveCall, action: RecordAction) -> PortFuture<'a, CallRecordingId> {
        Box::pin(async move {
            let step = match action {
                RecordAction::Start => return self.begin(call).await,
                RecordAction::Pause => RecordStep::Pause,
                RecordAction::Resume => RecordStep::Resume,
                RecordAction::Stop => RecordStep::Stop,
            };
            let none = || Problem::Conflict("the call is not recorded".to_owned());
            let recording = call.recording.ok_or_else(none)?;
            self.operate(call.uuid, step).await?;
            Ok(recording.id)
        })
    }

    fn list(&self, call: CallId) -> PortFuture<'_, Vec<CallRecording>> {
        Box::pin(async move { Ok(self.store.recordings_of_call(call).await?) })
    }

    fn delete<'a>(&'a self, recording: &'a CallRecording) -> PortFuture<'a, ()> {
        Box::pin(async move {
            require_complete(recording)?;
            let place = (recording.organisation_id, recording.id.0.into());
            let node = self.store.node_of_call_recording(place).await?;
            if let Some(node) = node.filter(|node| *node != self.node) {
                if let Some(far) = &self.far {
                    far.remove(node, place_of(recording)).await?;
                    return Ok(self.store.forget_call_recording(place).await?);
                }
                return Err(Problem::Conflict(format!("the recording is on node {node}: delete it there")));
            }
            // The file is deleted first: after a crash in between, the deletion can be repeated.
            let mut disk = self.disk.clone();
            open_file::beside(HOLDS, move || disk.remove(place.0, place.1)).await?;
            Ok(self.store.forget_call_recording(place).await?)
        })
    }

    fn open<'a>(&'a self, recording: &'a CallRecording) -> PortFuture<'a, Box<dyn OpenFile>> {
        Box::pin(async move {
            require_complete(recording)?;
            let none = |text: &str| Problem::NotFound(text.to_owned());
            if let Some(far) = &self.far {
                let node =
                    self.store.node_of_call_recording((recording.organisation_id, recording.id.0.into()));
                if let Some(node) = node.await?.filter(|node| *node != self.node) {
                    let opened = far.open(node, place_of(recording)).await?;
                    return opened.ok_or_else(|| {
                        none("the node that the call was on is gone, or has no file of the recording")
                    });
                }
            }
            // The organisation and the id are from the database, never from the request.
            let path = self.disk.path(recording.organisation_id, recording.id.0.into());
            let opened = open_file::beside(HOLDS, move || match File::open(path) {
                Ok(file) => Opened::new(file, HOLDS).map(Some),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            });
            let opened = opened.await?;
            let opened = opened.ok_or_else(|| {
                none("the recording is not on this node: ask the node that the call was on")
            })?;
            Ok(Box::new(opened) as Box<dyn OpenFile>)
        })
    }
}

/// The file of a recording.
fn place_of(recording: &CallRecording) -> FilePlace {
    FilePlace::Recording { organisation: recording.organisation_id, session: recording.id.0.into() }
}

/// Returns an error while a recording is in progress, and if it has no file.
fn require_complete(recording: &CallRecording) -> Result<(), Problem> {
    if recording.ended_at.is_none() {
        let text = "the recording is still being written: it can be played or deleted once it has ended";
        return Err(Problem::Conflict(text.to_owned()));
    }
    if recording.bytes == 0 {
        let text = "the recording has no file, is deleted, or its retention time is over";
        return Err(Problem::NotFound(text.to_owned()));
    }
    Ok(())
}

/// Stores the ends of calls' recordings, and keeps those that the database could not store.
pub struct CallRecordingEnds {
    store: Store,
    clock: Clock,
    pending: Vec<CallRecordingEnd>,
}

impl CallRecordingEnds {
    /// Starts with nothing to store.
    pub fn new(store: Store, clock: Clock) -> Self {
        Self { store, clock, pending: Vec::new() }
    }

    /// Stores the end of a recording, and those that failed before. An end that is never stored is found at the next
    /// start.
    pub async fn store(&mut self, ended: &Ended) {
        let Ended { organisation, session, bytes, error, .. } = ended;
        if self.pending.len() < PENDING_MAX {
            self.pending.push(CallRecordingEnd {
                id: session.0.into(),
                organisation_id: *organisation,
                bytes: *bytes,
                error: error.clone(),
                at: (self.clock)(),
            });
        }
        self.retry().await;
    }

    /// Stores the ends that failed before.
    pub async fn retry(&mut self) {
        while let Some(end) = self.pending.last() {
            if let Err(error) = self.store.complete_call_recording(end).await {
                tracing::warn!(%error, "the end of a call's recording cannot be stored now");
                return;
            }
            self.pending.pop();
        }
    }

    /// Whether an end waits for the database.
    pub fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }
}

/// Repairs the files of recordings that an earlier run of the node left open, and stores their ends.
///
/// # Errors
/// When the database returns an error.
pub async fn recover_all(
    store: &Store,
    node: NodeId,
    disk: &DataDisk,
    clock: &Clock,
) -> Result<(), StoreError> {
    for (organisation_id, session) in store.unfinished_call_recordings(node).await? {
        let (bytes, error) = recover(disk, organisation_id, session, 2);
        let end = CallRecordingEnd { id: session.0.into(), organisation_id, bytes, error, at: clock() };
        store.complete_call_recording(&end).await?;
    }
    Ok(())
}

/// The kind of the files, for error messages.
const HOLDS: &str = "recordings";
/// Ends that wait for the database; the others are found at the next start.
const PENDING_MAX: usize = 1_024;
