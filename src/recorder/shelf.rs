//! Recordings that are complete: opened to be played, and deleted when they were kept long enough.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use sidetone_model::access::Scope;
use sidetone_model::ids::{ConferenceSessionId, RoomId};
use sidetone_model::ports::PortFuture;
use sidetone_model::problem::Problem;
use sidetone_model::recording::{Recording, Recordings};
use sidetone_model::time::Timestamp;

use crate::recorder::disk::{DataDisk, existing};
use crate::store::Store;

/// The recordings of this node.
#[derive(Clone, Debug)]
pub struct Shelf {
    store: Store,
    disk: DataDisk,
}

/// An open file.
struct Opened {
    file: Arc<File>,
    bytes: u64,
    modified_at: Timestamp,
}

impl Shelf {
    /// The recordings that the store tells of, on this disk.
    pub fn new(store: Store, disk: DataDisk) -> Shelf {
        Shelf { store, disk }
    }

    /// The database.
    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// The files.
    pub(super) fn disk(&self) -> &DataDisk {
        &self.disk
    }
}

impl Recordings for Shelf {
    fn open(
        &self,
        scope: Scope,
        room: RoomId,
        session: ConferenceSessionId,
    ) -> PortFuture<'_, Box<dyn Recording>> {
        Box::pin(async move {
            // Whose it is comes from the database, never from who asks; so does the path.
            let found = self.store.session_recording(scope, room, session).await?;
            let none = || Problem::NotFound("the session was not recorded".to_owned());
            if !found.is_recorded || (!found.is_live && found.bytes == Some(0)) {
                return Err(none());
            }
            if found.is_live || found.bytes.is_none() {
                return Err(Problem::Conflict(
                    "the session is still being recorded: its recording can be played once the room is empty"
                        .to_owned(),
                ));
            }
            let path = self.disk.path(found.organisation_id, session);
            let opened =
                beside(move || existing(File::open(path)).and_then(|file| file.map(opened).transpose()));
            let opened: Option<Opened> = opened.await?;
            let opened = opened.ok_or_else(|| {
                Problem::NotFound(
                    "the recording is not on this node: ask the node that the room was on".to_owned(),
                )
            })?;
            Ok(Box::new(opened) as Box<dyn Recording>)
        })
    }
}

impl Recording for Opened {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn modified_at(&self) -> Timestamp {
        self.modified_at
    }

    fn read(&self, at: u64, len: usize) -> PortFuture<'_, Vec<u8>> {
        let file = Arc::clone(&self.file);
        Box::pin(beside(move || {
            let mut piece = vec![0; len];
            file.read_exact_at(&mut piece, at)?;
            Ok(piece)
        }))
    }
}

fn opened(file: File) -> std::io::Result<Opened> {
    let metadata = file.metadata()?;
    let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let modified_at = Timestamp::from_micros(i64::try_from(modified.as_micros()).unwrap_or(i64::MAX));
    Ok(Opened { bytes: metadata.len(), modified_at, file: Arc::new(file) })
}

/// Does what waits for the disk beside the threads that serve others.
pub(super) async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|error| Problem::Internal(error.to_string()))?;
    done.map_err(|error| Problem::Internal(format!("the disk of recordings: {error}")))
}
