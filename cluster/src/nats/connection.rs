//! The connection to NATS that all parts of a node share.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::jetstream::context::ContextBuilder;
use async_nats::jetstream::{self};
use async_nats::{Client, ConnectOptions, Event};

use super::settings::ClusterSettings;

/// The connection; clones share it.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(super) client: Client,
    pub(super) jetstream: jetstream::Context,
    pub(super) settings: Arc<ClusterSettings>,
    pub(super) connects: Arc<AtomicU64>,
}

/// The reason why NATS cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The file of authorities cannot be read.
    #[error("[cluster] extra_ca {}: {source}; check its path and its owner", file.display())]
    Authorities {
        /// The file.
        file: std::path::PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The client cannot be set up, or the server refuses it.
    #[error("[cluster] nats {servers}: {reason}")]
    Refused {
        /// The servers, without passwords.
        servers: String,
        /// The message of the client.
        reason: String,
    },
    /// No answer before the deadline.
    #[error("[cluster] nats {servers}: no answer within {} s; check that a NATS server runs there with JetStream", PROBE_MAX.as_secs())]
    Timeout {
        /// The servers, without passwords.
        servers: String,
    },
}

impl Connection {
    /// Starts to connect, and retries forever; a server that does not answer is no error here.
    ///
    /// # Errors
    /// The authorities cannot be read, or the settings are wrong.
    pub async fn open(settings: ClusterSettings, node: &str) -> Result<Self, ConnectError> {
        let connects = Arc::new(AtomicU64::new(0));
        let options = options(&settings, node)?.retry_on_initial_connect().event_callback({
            let connects = Arc::clone(&connects);
            move |event| {
                let connects = Arc::clone(&connects);
                async move { note(&connects, &event) }
            }
        });
        Self::connect(settings, options, connects).await
    }

    async fn connect(
        settings: ClusterSettings,
        options: ConnectOptions,
        connects: Arc<AtomicU64>,
    ) -> Result<Self, ConnectError> {
        let client = options.connect(settings.addresses()).await.map_err(|error| ConnectError::Refused {
            servers: settings.to_string(),
            reason: chain(&error),
        })?;
        let jetstream = ContextBuilder::new().timeout(REQUEST_MAX).build(client.clone());
        Ok(Connection { client, jetstream, settings: Arc::new(settings), connects })
    }

    /// The number of times a connection was established.
    pub fn connects(&self) -> u64 {
        self.connects.load(Ordering::Relaxed)
    }

    /// Sends the queued messages.
    pub async fn flush(&self) {
        // Best effort: a server that does not answer in time gets no more.
        let _ = tokio::time::timeout(REQUEST_MAX, self.client.flush()).await;
    }

    /// Sends the queued messages, and closes the connection.
    pub async fn close(&self) {
        self.flush().await;
        let _ = tokio::time::timeout(REQUEST_MAX, self.client.drain()).await;
    }
}

/// Tries the servers once, for `sidetone check`: a connection, the login, and JetStream. Nothing is created.
///
/// # Errors
/// The failed step, and how to fix it.
pub async fn probe(settings: ClusterSettings) -> Result<(), ConnectError> {
    let servers = settings.to_string();
    let refused = |reason| ConnectError::Refused { servers: servers.clone(), reason };
    let tried = async {
        let options = options(&settings, "sidetone check")?;
        let connection = Connection::connect(settings, options, Arc::default()).await?;
        let bucket = format!("KV_{}_nodes", connection.settings.name);
        let found = connection.jetstream.get_stream(bucket).await;
        connection.close().await;
        match found.map(drop).map_err(|error| chain(&error)) {
            // The first node creates it.
            Err(reason) if !reason.contains("stream not found") => Err(refused(format!(
                "JetStream does not answer ({reason}); start nats-server with -js, and let the user use it"
            ))),
            _ => Ok(()),
        }
    };
    match tokio::time::timeout(PROBE_MAX, tried).await {
        Ok(result) => result,
        Err(_) => Err(ConnectError::Timeout { servers: servers.clone() }),
    }
}

fn options(settings: &ClusterSettings, node: &str) -> Result<ConnectOptions, ConnectError> {
    let mut options = ConnectOptions::new()
        .name(format!("sidetone {node}"))
        .connection_timeout(CONNECT_MAX)
        .request_timeout(Some(REQUEST_MAX))
        .ping_interval(PING_EVERY)
        .client_capacity(QUEUE_LEN_MAX)
        .reconnect_delay_callback(|attempts| {
            let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
            RECONNECT_STEP.saturating_mul(attempts).min(RECONNECT_DELAY_MAX)
        });
    if let Some(file) = &settings.extra_ca {
        // The client reads the file only when it connects; a missing file is found here.
        std::fs::File::open(file)
            .map_err(|source| ConnectError::Authorities { file: file.clone(), source })?;
        options = options.add_root_certificates(file.clone());
    }
    Ok(options)
}

fn note(connects: &AtomicU64, event: &Event) {
    match event {
        Event::Connected => {
            connects.fetch_add(1, Ordering::Relaxed);
            tracing::debug!("connected to NATS");
        }
        Event::Disconnected => tracing::debug!("the connection to NATS is closed"),
        Event::SlowConsumer(_) => {
            tracing::warn!("messages of NATS were dropped: they came faster than they were read")
        }
        // The member task logs the consequences of a failure, once.
        other => tracing::debug!(event = %other, "NATS reports"),
    }
}

/// The text of an error with its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// The timeout of one connection attempt.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// The timeout of one request to the server.
pub(super) const REQUEST_MAX: Duration = Duration::from_secs(2);
/// The timeout of [`probe`].
const PROBE_MAX: Duration = Duration::from_secs(5);
/// The ping interval; a connection without an answer to two pings is reopened.
const PING_EVERY: Duration = Duration::from_secs(2);
/// The maximum number of commands queued for the connection.
const QUEUE_LEN_MAX: usize = 4_096;
const RECONNECT_STEP: Duration = Duration::from_millis(100);
const RECONNECT_DELAY_MAX: Duration = Duration::from_secs(2);
