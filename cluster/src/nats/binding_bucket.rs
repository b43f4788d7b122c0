//! The bucket of bindings: `ORGANISATION.EXTENSION` → the registered phones of the extension.

use std::time::Duration;

use async_nats::jetstream::kv::{Store, UpdateErrorKind};
use bytes::Bytes;
use tokio::time::timeout;

use super::bucket::Bucket;
use super::connection::{Connection, REQUEST_MAX, chain};
use crate::bindings::{BindingKey, Input};

/// The bucket and its reader.
pub struct BindingBucket {
    bucket: Bucket,
    is_replayed: bool,
}

/// The writing side; clones share it.
#[derive(Clone, Debug)]
pub struct BindingStore(Store);

impl BindingBucket {
    /// Opens the bucket, creating it if necessary, and starts reading at its beginning.
    ///
    /// # Errors
    /// The error of NATS, or a timeout.
    pub async fn open(connection: &Connection) -> Result<Self, String> {
        let bucket = Bucket::open(connection, BINDINGS, ENTRY_AGE_MAX).await?;
        Ok(BindingBucket { bucket, is_replayed: false })
    }

    /// The writing side.
    pub fn store(&self) -> BindingStore {
        BindingStore(self.bucket.store.clone())
    }

    /// The next change for the machine; `None` for a change of no extension. Cancel-safe.
    ///
    /// # Errors
    /// The reader has ended and must be reopened.
    pub async fn next(&mut self) -> Result<Option<Input>, String> {
        if !self.is_replayed && self.bucket.stored_left == 0 {
            self.is_replayed = true;
            return Ok(Some(Input::Replayed));
        }
        let change = self.bucket.next().await?;
        let key = BindingKey::parse(&change.key);
        Ok(key.map(|key| Input::Seen(key, change.revision, change.value.to_vec())))
    }
}

impl BindingStore {
    /// Writes an entry if the stored one has this revision; 0: if no entry is stored.
    pub async fn write(&self, key: BindingKey, value: Vec<u8>, revision: u64) -> Input {
        let written = self.0.update(key.to_string(), Bytes::from(value), revision);
        match timeout(REQUEST_MAX, written).await {
            Ok(Ok(revision)) => Input::Written(key, revision),
            Ok(Err(error)) if error.kind() == UpdateErrorKind::WrongLastRevision => Input::Conflict(key),
            Ok(Err(_)) | Err(_) => Input::Failed(key),
        }
    }

    /// Reads an entry.
    pub async fn read(&self, key: BindingKey) -> Input {
        match timeout(REQUEST_MAX, self.0.entry(key.to_string())).await {
            Ok(Ok(Some(entry))) => Input::Seen(key, entry.revision, entry.value.to_vec()),
            Ok(Ok(None)) => Input::Absent(key),
            Ok(Err(error)) => {
                tracing::debug!(reason = chain(&error), "the bindings of an extension were not read");
                Input::Failed(key)
            }
            Err(_) => Input::Failed(key),
        }
    }
}

const BINDINGS: &str = "bindings";
/// Longer than any registration; older entries belong to nodes that are down.
const ENTRY_AGE_MAX: Duration = Duration::from_secs(3 * 3_600);
