//! A bucket of the key-value store: created by the first node, read from its beginning.

use std::time::Duration;

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::push::{Ordered, OrderedConfig};
use async_nats::jetstream::kv::Store;
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};
use futures_util::StreamExt as _;

use super::connection::{Connection, chain};

/// An open bucket and the reader of its changes.
pub(super) struct Bucket {
    pub(super) store: Store,
    reader: Ordered,
    /// Entries that were stored when the reader started and are not read yet.
    pub(super) stored_left: u64,
}

impl Bucket {
    /// Opens the bucket `kind` of the cluster, creating it if necessary, and starts reading at the last value of every
    /// key. The servers of NATS keep entries in memory and delete them `max_age` after they were written.
    ///
    /// # Errors
    /// The error of NATS, or a timeout.
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
        // The client's own watch filters by several subjects, which servers before 2.10 do not support.
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

    /// The next written value; it is empty after a deletion.
    ///
    /// # Errors
    /// The reader has ended and must be reopened.
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

/// Opens the bucket `kind` of the cluster without a reader, creating it if necessary.
///
/// # Errors
/// The error of NATS.
pub(super) async fn open_store(
    connection: &Connection,
    kind: &str,
    max_age: Duration,
) -> Result<Store, String> {
    let name = format!("{}_{kind}", connection.settings.name);
    if let Ok(store) = connection.jetstream.get_key_value(name.as_str()).await {
        return Ok(store);
    }
    // Same settings as in the client, with two differences. The client first queries account figures that servers
    // before 2.10 lack. Here messages can be deleted, so an entry is removed without leaving a marker.
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
    /// Its value; empty after a deletion.
    pub(super) value: bytes::Bytes,
    /// The sequence number of the change in the bucket.
    pub(super) revision: u64,
}

/// The timeout of opening: four requests, each with its own deadline.
const OPEN_MAX: Duration = Duration::from_secs(5);
