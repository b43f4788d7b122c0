//! A bucket of the key-value store: opened, created by the first node, read from its beginning.

use std::time::Duration;

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::push::{Ordered, OrderedConfig};
use async_nats::jetstream::kv::Store;
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use futures_util::StreamExt as _;

use super::connection::{Connection, chain};

/// An open bucket, and what reads its changes.
pub(super) struct Bucket {
    pub(super) store: Store,
    reader: Ordered,
    /// Entries that were there when the reader began and were not read yet.
    pub(super) stored_left: u64,
}

impl Bucket {
    /// Opens the bucket `kind` of the cluster, which is created if there is none, and reads it from the last value of
    /// every key on. Entries are kept in memory by the servers of NATS, and go `max_age` after they were written.
    ///
    /// # Errors
    /// What NATS answered, or that it did not.
    pub(super) async fn open(
        connection: &Connection,
        kind: &str,
        max_age: Duration,
    ) -> Result<Bucket, String> {
        let opened = tokio::time::timeout(OPEN_MAX, Self::open_unbounded(connection, kind, max_age));
        opened.await.unwrap_or_else(|_| Err("NATS does not answer".to_owned()))
    }

    async fn open_unbounded(connection: &Connection, kind: &str, max_age: Duration) -> Result<Self, String> {
        let store = open_store(connection, kind, max_age).await?;
        // The watch of the client filters by several subjects, which servers before 2.10 do not know.
        let consumer = store
            .stream
            .create_consumer(OrderedConfig {
                deliver_subject: connection.client.new_inbox(),
                filter_subject: format!("{}>", store.prefix),
                deliver_policy: DeliverPolicy::LastPerSubject,
                ..OrderedConfig::default()
            })
            .await
            .map_err(|error| chain(&error))?;
        let stored_left = consumer.cached_info().num_pending;
        let reader = consumer.messages().await.map_err(|error| chain(&error))?;
        Ok(Bucket { store, reader, stored_left })
    }

    /// The next value that was written; a deletion has an empty one.
    ///
    /// # Errors
    /// The reader has ended and must be opened again.
    pub(super) async fn next(&mut self) -> Result<Change, String> {
        match self.reader.next().await {
            Some(Ok(message)) => {
                let key = message.subject.as_str().strip_prefix(&self.store.prefix).unwrap_or_default();
                let revision = message.info().map_err(|error| error.to_string())?.stream_sequence;
                self.stored_left = self.stored_left.saturating_sub(1);
                Ok(Change { key: key.to_owned(), value: message.payload.clone(), revision })
            }
            Some(Err(error)) => Err(chain(&error)),
            None => Err("the reader of NATS has ended".to_owned()),
        }
    }
}

/// Opens the bucket `kind` of the cluster without a reader; it is created if there is none.
///
/// # Errors
/// What NATS answered.
pub(super) async fn open_store(
    connection: &Connection,
    kind: &str,
    max_age: Duration,
) -> Result<Store, String> {
    let name = format!("{}_{kind}", connection.settings.name);
    if let Ok(store) = connection.jetstream.get_key_value(name.as_str()).await {
        return Ok(store);
    }
    // As the client makes a bucket, which first asks for figures of the account that servers before 2.10 do not have; and
    // messages may be deleted, so that an entry goes without a mark.
    let config = Config {
        name: format!("KV_{name}"),
        subjects: vec![format!("$KV.{name}.>")],
        max_messages_per_subject: 1,
        max_age,
        storage: StorageType::Memory,
        num_replicas: connection.settings.replicas,
        discard: DiscardPolicy::New,
        allow_rollup: true,
        allow_direct: true,
        ..Config::default()
    };
    let created = connection.jetstream.create_stream(config).await;
    created.map_err(|error| chain(&error))?;
    connection.jetstream.get_key_value(name.as_str()).await.map_err(|error| chain(&error))
}

/// A change of an entry.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// Its key.
    pub(super) key: String,
    /// Its value; empty when it was deleted.
    pub(super) value: bytes::Bytes,
    /// The place of the change in the bucket.
    pub(super) revision: u64,
}

/// How long opening may take: four requests, each with its own deadline.
const OPEN_MAX: Duration = Duration::from_secs(5);
