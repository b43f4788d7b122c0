//! Assembles and starts the engine of a switch; stopping is in the reverse order.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sidetone_api::SharedSettings;
use sidetone_call::media_plan;
use sidetone_media::net::{Relay, RelayError};
use sidetone_model::ids::{CallId, NodeId};
use sidetone_model::room::rows::{RecordingRow, Rows};
use sidetone_sip::flow::Protocol;
use sidetone_sip::transport::BindError;
use sidetone_store::{Store, StoreError};
use sidetone_switch::machine::Settings;
use sidetone_switch::queries::PhonesOnCall;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::certificates::reload_tls;
use super::switching::limits;
use crate::call_recordings::CallRecordingEnds;
use crate::cdr::journal::{Journal, JournalError};
use crate::clock::wall_clock;
use crate::cluster::ClusterStart;
use crate::conference_history::HistoryTasks;
use crate::config::{Config, Sip};
use crate::driver::{Handle, Request};
use crate::events::Bus;
use crate::load::Load;
use crate::notes::NoteTasks;
use crate::outbound_http::RootsError;
use crate::process;
use crate::recorder::{Ended, Recorder};
use crate::supervise::{Running, Supervisor, Task};
use crate::tls::{NodeTlsError, TlsError, TlsStore};
use crate::traces::{TraceSettings, Traces};

/// A running engine.
pub struct Engine {
    /// The UDP addresses for SIP, with the ports that were actually bound.
    pub sip: Vec<SocketAddr>,
    /// The transports and addresses for SIP over connections.
    pub sip_connections: Vec<(Protocol, SocketAddr)>,
    /// The HTTP address.
    pub http: SocketAddr,
    /// This node.
    pub node: NodeId,
    /// The measured load.
    pub load: Arc<Load>,
    /// The database.
    pub store: Store,
    pub(super) switch: Handle,
    pub(super) supervisor: Supervisor,
    pub(super) journal: Option<Journal>,
    pub(super) running: RunningTasks,
    pub(super) notes: NoteTasks,
    pub(super) sessions: HistoryTasks,
    pub(super) bus: Bus,
    pub(super) callbacks: Running,
    pub(super) stop: watch::Sender<bool>,
    pub(super) drain: Arc<Notify>,
    pub(super) draining: Arc<AtomicBool>,
    pub(super) relay: Arc<Relay>,
    pub(super) recorder: Recorder,
    pub(super) traces: Traces,
    pub(super) recorded: JoinHandle<Recorded>,
    pub(super) http_settings: SharedSettings,
    pub(super) tls: TlsStore,
}

/// The tasks that the engine awaits at its end.
pub(super) struct RunningTasks {
    pub(super) driver: Running,
    /// Store the SIP messages of calls; they end after the driver.
    pub(super) signalling: Vec<Running>,
    pub(super) records: Running,
    pub(super) web: Running,
    /// Tasks that end by themselves when stopped.
    pub(super) followers: Vec<Running>,
}

/// Passes results of recordings to the switch.
pub(super) struct Recorded {
    pub(super) ended: mpsc::Receiver<Ended>,
    /// Results that arrived after the end of the switch.
    pub(super) untold: Vec<Ended>,
    pub(super) of_calls: CallRecordingEnds,
    pub(super) switch: Handle,
}

/// Why the engine cannot start; one line with the cause and a remedy.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The node cannot join its cluster.
    #[error("{0}")]
    Cluster(#[from] ClusterStart),
    /// The HTTP address cannot be bound.
    #[error("[http] listen {address}: {source}; {}", process::bind_advice(source, address.port()))]
    Http {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The journal cannot be opened.
    #[error("[node] data_dir: {0}")]
    Journal(#[from] JournalError),
    /// The client for outgoing requests cannot be built.
    #[error("{0}")]
    Outbound(#[from] RootsError),
    /// The system provides no random numbers.
    #[error("the system provides no random numbers: {0}")]
    Random(String),
    /// The thread for recordings cannot be started.
    #[error("the recorder cannot start: {0}")]
    Recorder(#[source] io::Error),
    /// The thread for traces cannot be started.
    #[error("traces of legs cannot start: {0}")]
    Traces(#[source] io::Error),
    /// The relay cannot start.
    #[error("[media] ports: {0}")]
    Relay(#[from] RelayError),
    /// A SIP address cannot be bound.
    #[error("[sip] {}: {}; {}", .0, .0.source, process::bind_advice(&.0.source, .0.address.port()))]
    Sip(#[from] BindError),
    /// A certificate, key or authority of TLS between nodes cannot be used.
    #[error("{0}")]
    NodeTls(#[from] NodeTlsError),
    /// A certificate, key or authority cannot be used.
    #[error("{0}")]
    Tls(#[from] TlsError),
    /// The database cannot be opened or read.
    #[error("[database] url: failed to {0}")]
    Store(#[from] StoreError),
}

impl Engine {
    /// Completes with the task whose failure stops the calls of the process, once all call records that the engine
    /// has are in the journal. The process must end then.
    pub async fn failed(&self) -> Task {
        let task = self.supervisor.failed().await;
        if let Some(journal) = &self.journal
            && task != Task::Journal
            && !journal.flush(wall_clock(), JOURNAL_FLUSH_MAX).await
        {
            tracing::error!("the journal did not take the last records in time");
        }
        task
    }

    /// Completes when an operator requests, over the cluster, that the node drains. The process must stop the engine
    /// then.
    pub async fn drain_requested(&self) {
        self.drain.notified().await;
    }

    /// The addresses for SIP over connections of this transport.
    pub fn sip_over(&self, protocol: Protocol) -> impl Iterator<Item = SocketAddr> {
        self.sip_connections.iter().filter(move |(over, _)| *over == protocol).map(|(_, address)| *address)
    }

    /// The owner of the engine's tasks.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Whether the switch answers a query within two seconds.
    pub async fn answers(&self) -> bool {
        self.switch.ask(PhonesOnCall(CallId(Uuid::nil()))).await.is_ok()
    }

    /// Returns the number of live calls.
    pub fn live_calls(&self) -> usize {
        self.switch.live_calls()
    }

    /// Returns the number of open event streams.
    pub fn event_streams(&self) -> u64 {
        self.bus.open_streams()
    }

    /// Returns the number of gaps reported to event streams, by reason.
    pub fn event_gaps_total(&self) -> BTreeMap<&'static str, u64> {
        self.bus.gaps_total()
    }

    /// Returns the number of registered bindings.
    pub fn bindings(&self) -> usize {
        self.switch.bindings()
    }

    /// Applies the settings that may change during calls: to new requests, new connections and new calls.
    pub async fn reload(&self, config: &Config) {
        reload_tls(&self.tls, config);
        self.http_settings.replace(config.http.settings.clone());
        self.relay.set_thresholds(config.media.verdict.clone());
        self.relay.set_strict_source(media_plan::strict_source(config.media.strict_source));
        self.traces.set(trace_settings(config));
        let Sip { digest, md5_only, .. } = &config.sip;
        let settings =
            Settings { digest: digest.clone(), md5_only: md5_only.clone(), limits: limits(config) };
        self.switch.send(Request::Settings(settings)).await;
    }

    /// Accepts no new calls, lets live ones continue for `limit` at most, stores every record, and stops.
    pub async fn stop(self, limit: Duration) {
        self.draining.store(true, Ordering::Relaxed);
        self.supervisor.stopping();
        drop(self.journal);
        self.switch.send(Request::Drain(limit)).await;
        let RunningTasks { driver, signalling, records, web, followers } = self.running;
        let _ = driver.await;
        store_signalling(signalling).await;
        // Recordings in progress are completed; the disk may be slow.
        let recorder = self.recorder;
        let _ = tokio::task::spawn_blocking(move || recorder.stop()).await;
        let traces = self.traces;
        let _ = tokio::task::spawn_blocking(move || traces.stop()).await;
        let completed = self.recorded.await.map(|recorded| recorded.untold).unwrap_or_default();
        // The journal closes with its last clone; the writer ends once everything is stored.
        let _ = self.stop.send(true);
        for follower in followers {
            let _ = follower.await;
        }
        let _ = tokio::time::timeout(HTTP_STOP_MAX, web).await;
        // Their calls have ended.
        self.callbacks.abort();
        self.notes.stop().await;
        self.sessions.stop().await;
        store_completed(&self.store, self.node, completed).await;
        if tokio::time::timeout(WRITER_STOP_MAX, records).await.is_err() {
            tracing::warn!(
                "the database did not take the last records; the journal keeps them for the next start"
            );
        }
        self.store.close().await;
    }
}

/// Waits until the SIP messages of the last calls are stored; without a database they are lost.
async fn store_signalling(tasks: Vec<Running>) {
    for task in tasks {
        let abort = task.abort_handle();
        if tokio::time::timeout(WRITER_STOP_MAX, task).await.is_err() {
            tracing::warn!("the database did not take the SIP messages of the last calls; they are lost");
            abort.abort();
        }
    }
}

/// Stores results of recordings that arrived after the end of the switch.
async fn store_completed(store: &Store, node: NodeId, completed: Vec<Ended>) {
    let recordings: Vec<RecordingRow> = completed
        .into_iter()
        .map(|Ended { organisation: organisation_id, session, bytes, error, .. }| RecordingRow {
            session,
            organisation_id,
            bytes,
            error,
        })
        .collect();
    if recordings.is_empty() {
        return;
    }
    let rows = Rows { recordings, ..Rows::default() };
    let stored = store.store_sessions(node, &rows);
    if !matches!(tokio::time::timeout(WRITER_STOP_MAX, stored).await, Ok(Ok(()))) {
        tracing::warn!(
            "the database did not take the last recordings; they are looked for at the next start"
        );
    }
}

/// The directory of traces.
pub(super) fn trace_dir(config: &Config) -> PathBuf {
    config.node.data_dir.join("traces")
}

pub(super) fn trace_settings(config: &Config) -> TraceSettings {
    TraceSettings { on: config.media.trace, days: config.media.trace_days }
}

/// The directory of the journal; an engine locks it.
pub(crate) fn journal_dir(config: &Config) -> PathBuf {
    config.node.data_dir.join("journal")
}

/// How long writing the last records to the disk may take when the process has to end.
const JOURNAL_FLUSH_MAX: Duration = Duration::from_secs(5);
/// How long requests in progress may take at the end.
pub(crate) const HTTP_STOP_MAX: Duration = Duration::from_secs(5);
/// How long writing the last records into the database may take.
pub(crate) const WRITER_STOP_MAX: Duration = Duration::from_secs(10);
