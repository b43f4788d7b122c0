//! Complete recordings: opened for playback, and deleted after their retention time.

use std::fs::File;
use std::sync::Arc;

use sidetone_model::access::Scope;
use sidetone_model::ids::{ConferenceSessionId, NodeId, OrganisationId};
use sidetone_model::open_file::OpenFile;
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::recording::Recordings;
use sidetone_model::room::RoomName;
use sidetone_model::room::session::SessionRecording;
use sidetone_store::{RecordingPlace, Store};

use crate::far_files::{FarFiles, FilePlace};
use crate::open_file::{self, Opened};
use crate::recorder::disk::{DataDisk, existing};
use crate::recorder::recordings::{require_free, words};
use crate::recorder::thread::Begins;
use crate::recorder::wav_file::Disk as _;

/// The recordings of this node.
#[derive(Clone, Debug)]
pub struct Playback {
    node: NodeId,
    store: Store,
    disk: DataDisk,
    /// No recording starts if fewer bytes are free.
    reserve_bytes: u64,
    /// The recorder of this node.
    begins: Option<Begins>,
    /// The recordings of other nodes; `None` for a standalone node.
    far: Option<Arc<dyn FarFiles>>,
}

impl Playback {
    /// The recordings of `store` that are on this node, whose disk is `disk`.
    pub fn new(node: NodeId, store: Store, disk: DataDisk) -> Playback {
        Playback { node, store, disk, reserve_bytes: 0, begins: None, far: None }
    }

    /// Adds access to the recordings of other nodes.
    #[must_use]
    pub fn with_far(self, far: Option<Arc<dyn FarFiles>>) -> Playback {
        Playback { far, ..self }
    }

    /// The other node that has the file of a session, and the port to it.
    fn far(&self, found: &SessionRecording) -> Option<(NodeId, &Arc<dyn FarFiles>)> {
        self.far.as_ref().filter(|_| found.node != self.node).map(|far| (found.node, far))
    }

    /// Adds the recorder, and the bytes that it leaves free: they decide whether a recording may start.
    #[must_use]
    pub fn with_recorder(self, begins: Begins, reserve_bytes: u64) -> Playback {
        Playback { reserve_bytes, begins: Some(begins), ..self }
    }

    /// This node.
    pub(super) fn node(&self) -> NodeId {
        self.node
    }

    /// The database.
    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// The files.
    pub(super) fn disk(&self) -> &DataDisk {
        &self.disk
    }

    /// Deletes the file of a session, then its entry. A missing file counts as deleted.
    pub(super) async fn remove(&self, (organisation, session): RecordingPlace) -> Result<(), Problem> {
        let mut disk = self.disk.clone();
        beside(move || disk.remove(organisation, session)).await?;
        Ok(self.store.forget_recording((organisation, session)).await?)
    }

    /// Returns the recording of a session that is complete and has a length.
    async fn complete(
        &self,
        scope: Scope,
        room: RoomName,
        session: ConferenceSessionId,
    ) -> Result<SessionRecording, Problem> {
        let found = self.store.session_recording(scope, room, session).await?;
        if !found.is_recorded || (!found.is_live && found.bytes == Some(0)) {
            return Err(Problem::NotFound(
                "the session was not recorded, or its recording is deleted".to_owned(),
            ));
        }
        if found.is_live && found.bytes.is_some() {
            return Err(Problem::Conflict(
                "the room is live: a further recording may be added; read or delete it when the session has ended"
                    .to_owned(),
            ));
        }
        if found.is_live || found.bytes.is_none() {
            return Err(Problem::Conflict(
                "the session is still being recorded: its recording can be played or deleted once the room is \
                 empty"
                    .to_owned(),
            ));
        }
        Ok(found)
    }
}

impl Recordings for Playback {
    fn require_writable(&self, organisation: OrganisationId) -> PortFuture<'_, ()> {
        Box::pin(async move {
            if let Some(begins) = &self.begins {
                begins.require_place().map_err(|busy| Problem::Conflict(busy.to_string()))?;
            }
            let (mut disk, reserve_bytes) = (self.disk.clone(), self.reserve_bytes);
            let checked = beside(move || {
                let free = disk.free_bytes().and_then(|free_bytes| require_free(free_bytes, reserve_bytes));
                Ok(free.and_then(|()| disk.try_write(organisation)))
            });
            checked.await?.map_err(|error| {
                let cause = words(&error);
                Problem::Conflict(format!(
                    "the room is not recorded: {cause}; the operator has to check the disk"
                ))
            })
        })
    }

    fn open(
        &self,
        scope: Scope,
        room: RoomName,
        session: ConferenceSessionId,
    ) -> PortFuture<'_, Box<dyn OpenFile>> {
        Box::pin(async move {
            // The organisation is from the database, never from the request; so is the path.
            let found = self.complete(scope, room, session).await?;
            if let Some((node, far)) = self.far(&found) {
                let opened = far.open(node, place(found.organisation_id, session)).await?;
                return opened.ok_or_else(|| Problem::NotFound(GONE.to_owned()));
            }
            let path = self.disk.path(found.organisation_id, session);
            let opened = beside(move || {
                let file = existing(File::open(path))?;
                file.map(|file| Opened::new(file, HOLDS)).transpose()
            });
            let opened: Option<Opened> = opened.await?;
            let opened = opened.ok_or_else(|| {
                Problem::NotFound(
                    "the recording is not on this node: ask the node that the room was on".to_owned(),
                )
            })?;
            Ok(Box::new(opened) as Box<dyn OpenFile>)
        })
    }

    fn delete(&self, scope: Scope, room: RoomName, session: ConferenceSessionId) -> PortFuture<'_, ()> {
        Box::pin(async move {
            let found = self.complete(scope, room, session).await?;
            if let Some((node, far)) = self.far(&found) {
                far.remove(node, place(found.organisation_id, session)).await?;
                return Ok(self.store.forget_recording((found.organisation_id, session)).await?);
            }
            if found.node != self.node {
                let text = format!("the recording is on node {}: delete it there", found.node);
                return Err(Problem::Conflict(text));
            }
            self.remove((found.organisation_id, session)).await
        })
    }
}

fn place(organisation: OrganisationId, session: ConferenceSessionId) -> FilePlace {
    FilePlace::Recording { organisation, session }
}

/// Runs a disk operation on a blocking thread, separate from the threads that serve requests.
pub(super) async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Problem> {
    open_file::beside(HOLDS, work).await
}

/// Why a recording of another node cannot be read.
const GONE: &str = "the node that the room was on is gone, or has no file of the recording";
/// The content of the disk, for error messages.
const HOLDS: &str = "recordings";
