//! The bucket of live rooms: `ORGANISATION.ROOM` → the node that owns it. An entry is deleted when its lease expires.

use async_nats::jetstream::kv::{Store, UpdateErrorKind};
use bytes::Bytes;
use tokio::time::timeout;

use super::bucket::Bucket;
use super::connection::{Connection, REQUEST_MAX};
use crate::leases::{Input, LEASE, OperationId, Outcome, RoomKey};

/// The bucket and its reader.
pub struct RoomBucket(Bucket);

/// The writing side; clones share it.
#[derive(Clone, Debug)]
pub struct RoomStore(Store);

impl RoomBucket {
    /// Opens the bucket, creating it if necessary, and starts reading at its beginning.
    ///
    /// # Errors
    /// The error of NATS, or a timeout.
    pub async fn open(connection: &Connection) -> Result<Self, String> {
        Bucket::open(connection, ROOMS, LEASE).await.map(RoomBucket)
    }

    /// The writing side.
    pub fn store(&self) -> RoomStore {
        RoomStore(self.0.store.clone())
    }

    /// The next change for the machine; `None` for a change of no room. Cancel-safe.
    ///
    /// # Errors
    /// The reader has ended and must be reopened.
    pub async fn next(&mut self) -> Result<Option<Input>, String> {
        let change = self.0.next().await?;
        let key = RoomKey::parse(&change.key);
        Ok(key.map(|key| Input::Seen(key, change.revision, change.value.to_vec())))
    }
}

impl RoomStore {
    /// Writes an entry if the stored one has this revision; 0: if no entry is stored.
    pub async fn write(&self, key: RoomKey, id: OperationId, value: Vec<u8>, revision: u64) -> Input {
        let written = self.0.update(key.to_string(), Bytes::from(value), revision);
        let outcome = match timeout(REQUEST_MAX, written).await {
            Ok(Ok(revision)) => Outcome::Written(revision),
            Ok(Err(error)) if error.kind() == UpdateErrorKind::WrongLastRevision => Outcome::Conflict,
            Ok(Err(_)) | Err(_) => Outcome::Failed,
        };
        Input::Done(key, id, outcome)
    }

    /// Reads an entry.
    pub async fn read(&self, key: RoomKey, id: OperationId) -> Input {
        let outcome = match timeout(REQUEST_MAX, self.0.entry(key.to_string())).await {
            Ok(Ok(Some(entry))) => Outcome::Found(entry.revision, entry.value.to_vec()),
            Ok(Ok(None)) => Outcome::Absent,
            Ok(Err(_)) | Err(_) => Outcome::Failed,
        };
        Input::Done(key, id, outcome)
    }
}

const ROOMS: &str = "rooms";
