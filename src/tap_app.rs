//! The composition root of `sidetone tap`: a captured interface instead of the switch, with the same journal,
//! database, events, webhooks and HTTP API.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::SeedableRng;
use rand::rngs::{StdRng, SysRng};
use sidetone_api::{Ports, SharedSettings};
use sidetone_model::ids::NodeId;
use sidetone_model::metrics::{Family, Metrics};
use sidetone_model::ports::{PortFuture, Readiness};
use sidetone_store::{IdempotencyKeys, Store};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use crate::app::{
    HTTP_STOP_MAX, Senders, StartError, WRITER_STOP_MAX, api_state, directory_ports, http_server, open_tls,
    panel, rate_ports, reload_tls, wall_clock,
};
use crate::cdr::journal::{Journal, JournalOptions};
use crate::cdr::reader::JournalReader;
use crate::cdr::writer::CdrWriter;
use crate::clock::steady_clock;
use crate::config::Config;
use crate::dead_letters::DeadLetters;
use crate::followers::serve_http;
use crate::metrics;
use crate::outbound_http::Client;
use crate::supervise::{Running, Supervisor, Task};
use crate::sweep::Sweeper;
use crate::tap::cdr_mapper::{CdrMapper, OwnerError};
use crate::tap::cdr_writer::{RecordedCall, TapWriter};
use crate::tap::counters::TapCounters;
use crate::tap::session::{TapSession, TappedCall};
use crate::tap::thread::{TapOptions, TapThread, TapThreadError};
use crate::tls::TlsStore;
use crate::webhooks::counters::WebhookCounters;

/// A running tap.
pub struct TapNode {
    /// The HTTP address; `None` if HTTP is off.
    pub http: Option<SocketAddr>,
    /// This node.
    pub node: NodeId,
    /// The name of the records' organisation.
    pub organisation: String,
    /// The database.
    pub store: Store,
    /// Its counters.
    pub counters: Arc<TapCounters>,
    thread: TapThread,
    running: RunningTasks,
    web: Option<(Running, SharedSettings)>,
    tls: TlsStore,
    stop: watch::Sender<bool>,
    supervisor: Supervisor,
}

/// The state of a tap's tasks, before they run.
struct Tasks {
    call_writer: TapWriter,
    ended: mpsc::Receiver<TappedCall>,
    writer: CdrWriter,
    sweeper: Sweeper,
    senders: Senders,
}

/// The tasks of a tap.
struct RunningTasks {
    call_writer: Running,
    writer: Running,
    sweeper: Running,
    events: Running,
    webhooks: Running,
}

impl Tasks {
    fn start(self, supervisor: &Supervisor, store: &Store, stopped: &watch::Receiver<bool>) -> RunningTasks {
        let Tasks { call_writer, ended, writer, sweeper, senders } = self;
        let Senders { events, listener, webhooks, .. } = senders;
        let stop = || stopped.clone();
        RunningTasks {
            call_writer: supervisor
                .keep(Task::TapWriter, (call_writer, ended), |(writer, ended)| Box::pin(writer.run(ended))),
            writer: supervisor.keep(Task::RecordWriter, (writer, store.clone()), |(writer, store)| {
                Box::pin(writer.run(store))
            }),
            sweeper: supervisor
                .keep(Task::Sweep, (sweeper, stop()), |(sweeper, stop)| Box::pin(sweeper.run(stop.clone()))),
            webhooks: supervisor.keep(Task::Webhooks, (webhooks, stop()), |(sender, stop)| {
                Box::pin(sender.run(stop.clone()))
            }),
            events: supervisor.keep(Task::Events, (events, listener, stop()), |(bus, heard, stop)| {
                Box::pin(bus.run(heard, stop.clone()))
            }),
        }
    }
}

/// Opens the journal of a tap, which is separate from that of a switch in the same directory.
fn open_journal(config: &Config, supervisor: &Supervisor) -> Result<(Journal, JournalReader), StartError> {
    let options = JournalOptions {
        reserve_bytes: config.node.journal_reserve_bytes,
        storage: None,
        supervisor: supervisor.clone(),
        clock: Some(steady_clock()),
    };
    let dir = config.node.data_dir.join("tap-journal");
    let (journal, reader, _) = Journal::open_with(&dir, &|_| {}, options)?;
    Ok((journal, reader))
}

/// The ports of a process without calls of its own: the database, and the tap's reports about itself.
async fn ports(
    store: &Store,
    metrics: TapMetrics,
    senders: &Senders,
    outbound: &Client,
    idempotency: IdempotencyKeys,
    rng: &mut StdRng,
) -> Result<Ports, StartError> {
    let (shared, metrics) = (Arc::new(store.clone()), Arc::new(metrics));
    Ok(Ports {
        ai_prices: Some(shared.clone()),
        call_recordings: None,
        call_requests: None,
        cdrs: shared.clone(),
        conversations: Some(shared.clone()),
        panel: Some(Arc::new(panel(store, rng).await?)),
        directory: Some(directory_ports(store, StdRng::from_rng(rng))),
        events: Some(Arc::new(senders.events.clone())),
        field_checks: Some(shared.clone()),
        idempotency: Arc::new(idempotency),
        keys: shared.clone(),
        leg_traces: None,
        live_calls: None,
        live_quality: None,
        live_rooms: None,
        metrics: metrics.clone(),
        notes: None,
        outgoing_urls: Some(Arc::new(outbound.policy().clone())),
        prompts: None,
        rates: Some(rate_ports(store)),
        readiness: metrics,
        recordings: None,
        registrations: None,
        signalling: None,
        nodes: None,
        peers: None,
        trunk_statuses: None,
        room_history: None,
        rooms: None,
        stored_quality: Some(shared.clone()),
        tenants: shared,
        webhooks: Some(senders.webhook_service.clone()),
    })
}

/// The parameters of a tap, in addition to the configuration.
pub struct TapStart {
    /// The interfaces, and how they are read.
    pub tap: TapOptions,
    /// The organisation of the records; `None` means the only one that exists.
    pub organisation: Option<String>,
    /// Whether HTTP is served.
    pub http: bool,
    /// Called for every finished call.
    pub tell: Box<dyn Fn(&RecordedCall) + Send + Sync>,
}

/// Why a tap cannot start; one line with the cause and a remedy.
#[derive(Debug, thiserror::Error)]
pub enum TapStartError {
    /// The organisation of the records cannot be determined.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// A part that a switch also has.
    #[error(transparent)]
    Start(#[from] StartError),
    /// No interface can be read.
    #[error(transparent)]
    Tap(#[from] TapThreadError),
}

impl TapNode {
    /// Starts everything. Must run within a tokio runtime.
    ///
    /// # Errors
    /// The first part that cannot start; everything started before is stopped.
    pub async fn start(config: &Config, start: TapStart) -> Result<TapNode, TapStartError> {
        let random = |error: rand::rngs::SysError| StartError::Random(error.to_string());
        let mut rng = StdRng::try_from_rng(&mut SysRng).map_err(random)?;
        let store = Store::open(&config.database).await.map_err(StartError::from)?;
        // A switch with the same configuration is another node.
        let name = format!("{}-tap", config.node.name);
        let node = store.node(&name, wall_clock()).await.map_err(StartError::from)?;
        let snapshot = store.directory().await.map_err(StartError::from)?;
        let named = start.organisation.as_deref().or(config.tap.organisation.as_deref());
        let mapper = CdrMapper::new(snapshot, named, node)?;
        let organisation = mapper.organisation_name().to_owned();

        let tls = open_tls(config).map_err(StartError::from)?;
        let web = if start.http { Some(listen(config).await?) } else { None };
        let http = web.as_ref().and_then(|web| web.local_addr().ok());
        let supervisor = Supervisor::default();
        let (journal, reader) = open_journal(config, &supervisor)?;
        let counters = Arc::new(TapCounters::default());
        let (calls, ended) = mpsc::channel(CALLS_LEN_MAX);
        let session = TapSession::with_thresholds(config.tap.verdict.clone());
        let thread = TapThread::start(start.tap, session, Arc::clone(&counters), calls, &supervisor)?;

        let (stop, stopped) = watch::channel(false);
        let call_writer = TapWriter {
            mapper,
            journal: journal.clone(),
            store: store.clone(),
            counters: Arc::clone(&counters),
            tell: start.tell,
        };
        let letters = DeadLetters::below(&config.node.data_dir);
        let writer = CdrWriter::new(reader).with_letters(letters.clone());
        let outbound = Client::new(&config.outbound_http, Vec::new()).map_err(StartError::from)?;
        let senders = Senders::new(&store, node, &outbound, &mut rng);
        let idempotency = IdempotencyKeys::open(store.clone(), node).await.map_err(StartError::from)?;
        let sweeper = Sweeper { store: store.clone(), keys: idempotency.clone(), clock: wall_clock };
        let metrics = TapMetrics {
            counters: Arc::clone(&counters),
            journal,
            stored: writer.stored(),
            letters,
            store: store.clone(),
            supervisor: supervisor.clone(),
            webhooks: senders.webhooks.counters(),
        };
        let web = match web {
            None => None,
            Some(web) => {
                let ports = ports(&store, metrics, &senders, &outbound, idempotency, &mut rng).await?;
                let state = api_state(config, &store, ports);
                let settings = state.settings();
                let server = http_server(config, &tls, web, state);
                Some((serve_http(&supervisor, server, stopped.clone()), settings))
            }
        };
        let tasks = Tasks { call_writer, ended, writer, sweeper, senders };
        let running = tasks.start(&supervisor, &store, &stopped);
        Ok(TapNode { http, node, organisation, store, counters, thread, running, web, tls, stop, supervisor })
    }

    /// Completes with the task whose failure stops the tap; the process must end then.
    pub async fn failed(&self) -> Task {
        self.supervisor.failed().await
    }

    /// Applies the settings that may change while it runs: to new requests, new connections and new calls.
    pub fn reload(&self, config: &Config) {
        reload_tls(&self.tls, config);
        if let Some((_, settings)) = &self.web {
            settings.replace(config.http.settings.clone());
        }
        self.thread.set_thresholds(config.tap.verdict.clone());
    }

    /// Ends the live calls, stores every record, and stops.
    pub async fn stop(self) {
        self.supervisor.stopping();
        let thread = self.thread;
        let _ = tokio::task::spawn_blocking(move || thread.stop()).await;
        // The call writer ends when the thread drops its channel, and the record writer when the call writer drops its
        // journal.
        let _ = self.running.call_writer.await;
        let _ = self.stop.send(true);
        let _ = self.running.sweeper.await;
        let _ = self.running.events.await;
        let _ = self.running.webhooks.await;
        if let Some((web, _)) = self.web {
            let _ = tokio::time::timeout(HTTP_STOP_MAX, web).await;
        }
        if tokio::time::timeout(WRITER_STOP_MAX, self.running.writer).await.is_err() {
            tracing::warn!(
                "the database did not take the last records; the journal keeps them for the next start"
            );
        }
        self.store.close().await;
    }
}

async fn listen(config: &Config) -> Result<TcpListener, StartError> {
    let address = config.http.listen;
    TcpListener::bind(address).await.map_err(|source| StartError::Http { address, source })
}

/// The content of `/metrics` and `/readyz`.
struct TapMetrics {
    counters: Arc<TapCounters>,
    journal: Journal,
    stored: Arc<AtomicU64>,
    letters: DeadLetters,
    store: Store,
    supervisor: Supervisor,
    webhooks: Arc<WebhookCounters>,
}

impl Metrics for TapMetrics {
    fn families(&self) -> PortFuture<'_, Vec<Family>> {
        Box::pin(async move {
            let mut families = metrics::of_process(&self.store).await;
            families.extend(self.counters.families());
            families.push(metrics::stored(&self.stored));
            families.push(metrics::journal_healthy(&self.journal));
            families.extend(metrics::disk(&self.journal));
            let posts = self.webhooks.panics.load(Ordering::Relaxed);
            families.push(self.supervisor.family(&[(Task::Webhooks, posts)]));
            families.push(metrics::dead_letters(&self.letters));
            Ok(families)
        })
    }
}

impl Readiness for TapMetrics {
    fn unready(&self) -> Vec<String> {
        let mut unready: Vec<String> =
            self.counters.faults.lock().iter().map(|fault| format!("tap: {fault}")).collect();
        if !self.journal.is_healthy() {
            unready.push("journal: the disk takes no records".to_owned());
        }
        unready.extend(self.supervisor.troubles());
        unready
    }
}

/// Calls that wait to be written to the journal.
const CALLS_LEN_MAX: usize = 4_096;
