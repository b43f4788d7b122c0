//! The bucket of answered calls: `NODE.CALL` → the data that another node needs to record the call when its node dies.

use std::time::Duration;

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::push::OrderedConfig;
use async_nats::jetstream::kv::Store;
use bytes::Bytes;
use futures_util::StreamExt as _;
use sidetone_model::ids::{CallId, NodeId};
use tokio::time::timeout;

use super::bucket::open_store;
use super::connection::{Connection, REQUEST_MAX, chain};

/// The bucket; clones share it.
#[derive(Clone, Debug)]
pub struct CallBucket {
    store: Store,
    inbox: async_nats::Client,
}

/// An entry of the bucket.
#[derive(Clone, Debug)]
pub struct StoredCall {
    /// The call.
    pub call: CallId,
    /// Its content.
    pub value: Bytes,
    /// The revision of the entry, by which it is removed.
    pub revision: u64,
}

impl CallBucket {
    /// Opens the bucket, creating it if necessary.
    ///
    /// # Errors
    /// The error of NATS, or a timeout.
    pub async fn open(connection: &Connection) -> Result<Self, String> {
        let opened = timeout(OPEN_MAX, open_store(connection, CALLS, ENTRY_AGE_MAX)).await;
        let store = opened.map_err(|_| NO_ANSWER.to_owned())??;
        Ok(CallBucket { store, inbox: connection.client.clone() })
    }

    /// Writes the entry of a call, and returns its revision.
    ///
    /// # Errors
    /// The error of NATS, or a timeout.
    pub async fn put(&self, node: NodeId, call: CallId, value: Bytes) -> Result<u64, String> {
        match timeout(REQUEST_MAX, self.store.put(key(node, call), value)).await {
            Ok(result) => result.map_err(|error| chain(&error)),
            Err(_) => Err(NO_ANSWER.to_owned()),
        }
    }

    /// Removes the entry with this revision. A deletion by key would leave a marker of each call in the memory of NATS.
    ///
    /// # Errors
    /// The error of NATS, or a timeout; a missing entry is not an error.
    pub async fn remove(&self, revision: u64) -> Result<(), String> {
        match timeout(REQUEST_MAX, self.store.stream.delete_message(revision)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) if chain(&error).contains("no message found") => Ok(()),
            Ok(Err(error)) => Err(chain(&error)),
            Err(_) => Err(NO_ANSWER.to_owned()),
        }
    }

    /// Reads every entry of a node.
    ///
    /// # Errors
    /// The error of NATS, or a timeout.
    pub async fn of_node(&self, node: NodeId) -> Result<Vec<StoredCall>, String> {
        timeout(READ_MAX, self.read(node)).await.unwrap_or_else(|_| Err(NO_ANSWER.to_owned()))
    }

    async fn read(&self, node: NodeId) -> Result<Vec<StoredCall>, String> {
        let prefix = format!("{}{node}.", self.store.prefix);
        let consumer = self.store.stream.create_consumer(OrderedConfig {
            deliver_subject: self.inbox.new_inbox(),
            filter_subject: format!("{prefix}*"),
            deliver_policy: DeliverPolicy::LastPerSubject,
            ..OrderedConfig::default()
        });
        let consumer = consumer.await.map_err(|error| chain(&error))?;
        let mut left = consumer.cached_info().num_pending;
        let mut messages = consumer.messages().await.map_err(|error| chain(&error))?;
        let mut calls = Vec::new();
        while left > 0 {
            let Some(message) = messages.next().await else {
                return Err("the reader of NATS has ended".to_owned());
            };
            let message = message.map_err(|error| chain(&error))?;
            let info = message.info().map_err(|error| error.to_string())?;
            let revision = info.stream_sequence;
            left = info.pending;
            let call = message.subject.as_str().strip_prefix(&prefix).and_then(|call| call.parse().ok());
            if let Some(call) = call.filter(|_| !message.payload.is_empty()) {
                calls.push(StoredCall { call, value: message.payload.clone(), revision });
            }
        }
        Ok(calls)
    }
}

fn key(node: NodeId, call: CallId) -> String {
    format!("{node}.{call}")
}

const CALLS: &str = "calls";
/// Longer than any call; older entries are leftovers.
const ENTRY_AGE_MAX: Duration = Duration::from_secs(2 * 86_400);
const NO_ANSWER: &str = "NATS does not answer";
const OPEN_MAX: Duration = Duration::from_secs(5);
/// The timeout of reading the calls of a node: 20,000 calls are some 40 MB.
const READ_MAX: Duration = Duration::from_secs(30);
