//! The composition root of `sidetone tap`: a captured interface instead of the switch, with the same journal,
//! database, events, webhooks and HTTP API.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::SeedableRng;
use rand::rngs::{StdRng, SysRng};
use sidetone_api::{ApiState, HttpServer};
use sidetone_model::ids::NodeId;
use sidetone_model::metrics::{Family, Metrics};
use sidetone_model::ports::{PortFuture, Readiness};
use sidetone_store::{IdempotencyKeys, Store};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, watch};

use crate::app::{
    HTTP_STOP_MAX, StartError, WRITER_STOP_MAX, directory_ports, panel, rate_ports, wall_clock,
};
use crate::cdr::journal::{Journal, JournalOptions};
use crate::cdr::writer::CdrWriter;
use crate::clock::steady_clock;
use crate::config::Config;
use crate::dead_letters::DeadLetters;
use crate::events::Bus;
use crate::followers::serve_http;
use crate::metrics;
use crate::outbound_http::Client;
use crate::supervise::{Running, Supervisor, Task};
use crate::sweep::Sweeper;
use crate::tap::book::{Book, OwnerError};
use crate::tap::counters::TapCounters;
use crate::tap::scribe::{Scribe, Told};
use crate::tap::session::TapSession;
use crate::tap::thread::{TapOptions, TapThread, TapThreadError};
use crate::webhooks::counters::WebhookCounters;
use crate::webhooks::desk::Desk;
use crate::webhooks::worker::Worker;

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
    scribe: Running,
    writer: Running,
    web: Option<Running>,
    sweeper: Running,
    events: Running,
    webhooks: Running,
    stop: watch::Sender<bool>,
    supervisor: Supervisor,
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
    pub tell: Box<dyn Fn(&Told) + Send + Sync>,
}

/// Why a tap cannot start; one line with the cause and what to do.
#[derive(Debug, thiserror::Error)]
pub enum TapStartError {
    /// The organisation of the records cannot be determined.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// A part that a switch has too.
    #[error(transparent)]
    Start(#[from] StartError),
    /// No interface can be read.
    #[error(transparent)]
    Tap(#[from] TapThreadError),
}

impl TapNode {
    /// Starts everything. Runs within a tokio runtime.
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
        let book = Book::new(snapshot, named, node)?;
        let organisation = book.organisation_name().to_owned();

        let web = if start.http { Some(listen(config).await?) } else { None };
        let http = web.as_ref().and_then(|web| web.local_addr().ok());
        let journal_dir = config.node.data_dir.join("tap-journal");
        let supervisor = Supervisor::default();
        let options = JournalOptions {
            reserve_bytes: config.node.journal_reserve_bytes,
            storage: None,
            supervisor: supervisor.clone(),
            clock: Some(steady_clock()),
        };
        let opened = Journal::open_with(&journal_dir, &|_| {}, options).map_err(StartError::from)?;
        let (journal, reader, _) = opened;
        let counters = Arc::new(TapCounters::default());
        let (calls, ended) = mpsc::channel(CALLS_LEN_MAX);
        let session = TapSession::with_thresholds(config.tap.verdict.clone());
        let thread = TapThread::start(start.tap, session, Arc::clone(&counters), calls, &supervisor)?;

        let (stop, stopped) = watch::channel(false);
        let scribe = Scribe {
            book,
            journal: journal.clone(),
            store: store.clone(),
            counters: Arc::clone(&counters),
            tell: start.tell,
        };
        let letters = DeadLetters::below(&config.node.data_dir);
        let writer = CdrWriter::new(reader).with_letters(letters.clone());
        let stored = writer.stored();
        let outbound = Client::new(&config.outbound_http, Vec::new()).map_err(StartError::from)?;
        let wake = Arc::new(Notify::new());
        let desk = Desk::new(store.clone(), StdRng::from_rng(&mut rng), Arc::clone(&wake));
        let carrier = Arc::new(outbound.clone());
        let sender =
            Worker::new(store.clone(), node, carrier, Arc::new(wall_clock), StdRng::from_rng(&mut rng), wake);
        let (bus, heard_events) = (Bus::new(&store), store.event_bell().listen());
        let idempotency = IdempotencyKeys::open(store.clone(), node).await.map_err(StartError::from)?;
        let sweeper = Sweeper { store: store.clone(), keys: idempotency.clone(), clock: wall_clock };
        let seen = Arc::new(TapMetrics {
            counters: Arc::clone(&counters),
            journal: journal.clone(),
            stored,
            letters,
            store: store.clone(),
            supervisor: supervisor.clone(),
            webhooks: sender.counters(),
        });
        let served = match web {
            None => None,
            Some(web) => {
                let shared = Arc::new(store.clone());
                let state = ApiState::new(shared.clone(), shared.clone(), seen.clone(), Arc::new(wall_clock))
                    .with_tenants(Arc::new(store.clone()))
                    .with_stored_quality(shared.clone())
                    .with_panel(panel(&store, &mut rng).await?)
                    .with_settings(config.http.settings.clone())
                    .with_conversations(shared.clone(), shared)
                    .with_idempotency(Arc::new(idempotency))
                    .with_events(Arc::new(bus.clone()))
                    .with_directory(directory_ports(&store, StdRng::from_rng(&mut rng)))
                    .with_rates(rate_ports(&store))
                    .with_outgoing_urls(Arc::new(outbound.policy().clone()))
                    .with_webhooks(Arc::new(desk))
                    .with_metrics(seen);
                Some(serve_http(&supervisor, HttpServer::new(web, state), stopped.clone()))
            }
        };
        let (written, counted) = (store.clone(), Arc::clone(&counters));
        Ok(TapNode {
            http,
            node,
            organisation,
            store,
            counters: counted,
            thread,
            scribe: supervisor
                .keep(Task::TapScribe, (scribe, ended), |(scribe, ended)| Box::pin(scribe.run(ended))),
            writer: supervisor
                .keep(Task::RecordWriter, (writer, written), |(writer, store)| Box::pin(writer.run(store))),
            web: served,
            sweeper: supervisor.keep(Task::Sweep, (sweeper, stopped.clone()), |(sweeper, stop)| {
                Box::pin(sweeper.run(stop.clone()))
            }),
            webhooks: supervisor.keep(Task::Webhooks, (sender, stopped.clone()), |(sender, stop)| {
                Box::pin(sender.run(stop.clone()))
            }),
            events: supervisor.keep(Task::Events, (bus, heard_events, stopped), |(bus, heard, stop)| {
                Box::pin(bus.run(heard, stop.clone()))
            }),
            stop,
            supervisor,
        })
    }

    /// Completes with the task whose failure stops the tap; the process has to end then.
    pub async fn failed(&self) -> Task {
        self.supervisor.failed().await
    }

    /// Ends the live calls, stores every record, and stops.
    pub async fn stop(self) {
        self.supervisor.stopping();
        let thread = self.thread;
        let _ = tokio::task::spawn_blocking(move || thread.stop()).await;
        // The scribe ends when the thread drops its channel, and the writer when the scribe drops its
        // journal.
        let _ = self.scribe.await;
        let _ = self.stop.send(true);
        let _ = self.sweeper.await;
        let _ = self.events.await;
        let _ = self.webhooks.await;
        if let Some(web) = self.web {
            let _ = tokio::time::timeout(HTTP_STOP_MAX, web).await;
        }
        if tokio::time::timeout(WRITER_STOP_MAX, self.writer).await.is_err() {
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
