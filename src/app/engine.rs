//! The engine of a switch, put together and started; it stops in the reverse order.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::rngs::{StdRng, SysRng};
use rand::{Rng, RngExt, SeedableRng};
use sidetone_api::{
    ApiState, DirectoryPorts, HttpServer, Panel, RatePorts, RoomHistory, SharedSettings, TokenKey,
};
use sidetone_call::media_plan;
use sidetone_media::net::{Relay, RelayError};
use sidetone_model::ids::NodeId;
use sidetone_model::room::Rooms;
use sidetone_model::room::rows::{RecordingRow, Rows};
use sidetone_sip::transport::{BindError, Sockets, TcpLimits};
use sidetone_store::{IdempotencyKeys, Store, StoreError};
use sidetone_switch::machine::Settings;
use sidetone_switch::rating::{Tariffs, settle};
use sidetone_switch::routing::Directory;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;

use super::switching::{limits, our_addresses, start_relay, switch};
use crate::accounts::hash::HashError;
use crate::accounts::{Passwords, People};
use crate::call_info::{AnsweredCall, CallInfo};
use crate::call_news::call_news;
use crate::cdr::journal::{Journal, JournalError, JournalOptions};
use crate::cdr::writer::CdrWriter;
use crate::clock::{ClockCounts, instant, steady_clock, wall_clock};
use crate::config::{Config, Sip, Transport};
use crate::dead_letters::DeadLetters;
use crate::dns::Resolver;
use crate::driver::{Driver, Handle, Request};
use crate::events::Bus;
use crate::followers::{Followers, serve_http};
use crate::metrics::EngineMetrics;
use crate::notes::NoteRoom;
use crate::outbound_http::{Client, RootsError};
use crate::process;
use crate::provision::{Lines, RoomPins};
use crate::readiness::EngineReadiness;
use crate::recorder::{DataDisk, Ended, Recorder, Shelf, recover};
use crate::room_news::SessionRoom;
use crate::sound::{self, Followed, Library};
use crate::studio::{ENDED_LEN_MAX, NodeStudio, pass_on_recordings};
use crate::supervise::{Running, Supervisor, Task};
use crate::sweep::Sweeper;
use crate::trace_files::TraceFiles;
use crate::traces::{TraceSettings, Traces};
use crate::watch::{DRAWN_LEN_MAX, Heard, pass_on_draws};
use crate::webhooks::desk::Desk;
use crate::webhooks::worker::Worker;

/// A running engine.
pub struct Engine {
    /// The UDP addresses for SIP, with the ports that were actually bound.
    pub sip: Vec<SocketAddr>,
    /// The TCP addresses for SIP.
    pub sip_tcp: Vec<SocketAddr>,
    /// The HTTP address.
    pub http: SocketAddr,
    /// This node.
    pub node: NodeId,
    /// The database.
    pub store: Store,
    switch: Handle,
    supervisor: Supervisor,
    journal: Option<Journal>,
    driver: Running,
    writer: Running,
    news: Running,
    web: Running,
    /// Tasks that end by themselves when stopped.
    followers: Vec<Running>,
    notes: NoteRoom,
    sessions: SessionRoom,
    bus: Bus,
    callbacks: Running,
    stop: watch::Sender<bool>,
    draining: Arc<AtomicBool>,
    relay: Arc<Relay>,
    recorder: Recorder,
    traces: Traces,
    recorded: JoinHandle<Recorded>,
    http_settings: SharedSettings,
}

/// Why the engine cannot start; one line with the cause and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The HTTP address cannot be bound.
    #[error("[http] listen {address}: {source}; {}", process::bind_advice(source, address.port()))]
    Http {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Passwords cannot be hashed.
    #[error("failed to {0}")]
    Hash(#[from] HashError),
    /// The journal cannot be opened.
    #[error("[node] data_dir: {0}")]
    Journal(#[from] JournalError),
    /// The client for outgoing requests cannot be built.
    #[error("{0}")]
    Outbound(#[from] RootsError),
    /// The system provides no random numbers.
    #[error("the system gives no random numbers: {0}")]
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
    /// The database cannot be opened or read.
    #[error("[database] url: failed to {0}")]
    Store(#[from] StoreError),
}

impl Engine {
    /// Starts everything that `config` describes. Runs within a tokio runtime.
    ///
    /// # Errors
    /// The first part that cannot start; everything started before is stopped.
    pub async fn start(config: &Config) -> Result<Engine, StartError> {
        let mut rng =
            StdRng::try_from_rng(&mut SysRng).map_err(|error| StartError::Random(error.to_string()))?;
        let supervisor = Supervisor::default();
        let store = Store::open(&config.database).await?;
        let node = store.node(&config.node.name, wall_clock()).await?;
        let idempotency = IdempotencyKeys::open(store.clone(), node).await?;
        let directory = Directory::new(store.directory().await?);
        let (accounts, rates) = (store.accounts().await?, store.rates().await?);
        let heard =
            Heard { directory: directory.revision(), rates: rates.revision, accounts: accounts.clone() };
        let tariffs = Arc::new(Tariffs::new(rates));

        let listen = |over| config.sip.listeners(over).collect::<Vec<SocketAddr>>();
        let sockets = Sockets::bind(&listen(Transport::Udp), &listen(Transport::Tcp), TcpLimits::default())?;
        let sender = sockets.sender();
        let sip: Vec<SocketAddr> = sender.udp().listeners().map(|(_, local)| local).collect();
        let tcp = sender.tcp().clone();
        let sip_tcp: Vec<SocketAddr> = sender.tcp().listeners().map(|(_, local)| local).collect();
        let web = TcpListener::bind(config.http.listen)
            .await
            .map_err(|source| StartError::Http { address: config.http.listen, source })?;
        let http =
            web.local_addr().map_err(|source| StartError::Http { address: config.http.listen, source })?;

        let (journal, mut reader, recovery) = {
            let tariffs = Arc::clone(&tariffs);
            // Calls that a crash interrupted are settled as of that time: the current rates include those
            // that were in force then.
            let options = JournalOptions {
                reserve_bytes: config.node.journal_reserve_bytes,
                storage: None,
                supervisor: supervisor.clone(),
                clock: Some(steady_clock()),
            };
            Journal::open_with(&journal_dir(config), &move |cdr| settle(cdr, tariffs.fx()), options)?
        };
        if recovery.crashed_calls > 0 || recovery.damaged_segments > 0 {
            tracing::warn!(
                calls = recovery.crashed_calls,
                damaged_segments = recovery.damaged_segments,
                "the journal of an earlier run was replayed; its answered calls ended with CRASH"
            );
        }

        process::raise_open_files();
        let notices = Arc::new(Notify::new());
        let relay = Arc::new(start_relay(config, &mut rng, &notices, supervisor.beat_of(Task::Relay))?);
        let mut switch = switch(config, node, directory, sender, &mut rng);
        switch.bill_by(instant(), tariffs, accounts, reader.take_undrawn());
        let external = config.sip.external_address;
        let (driver, handle) = Driver::new(
            switch,
            sockets,
            Arc::clone(&relay),
            notices,
            external,
            journal.clone(),
            Resolver::new(&config.sip.dns),
        );
        let driver = driver.supervised(supervisor.clone());
        let (recorded, ended) = mpsc::channel(ENDED_LEN_MAX);
        let disk = DataDisk::of(&config.node.data_dir);
        let recorder = Recorder::start(disk, config.recordings.reserve_bytes, &supervisor, move |told| {
            // After the end of the engine there is no receiver.
            let _ = recorded.blocking_send(told);
        })
        .map_err(StartError::Recorder)?;
        let passed_on = Recorded { ended, untold: Vec::new(), switch: handle.clone() };
        let recorded = supervisor.keep_state(Task::Recordings, passed_on, |recorded| {
            let Recorded { ended, untold, switch } = recorded;
            Box::pin(pass_on_recordings(ended, untold, switch))
        });
        let library = Library::new();
        let studio = NodeStudio { library: library.clone(), recordings: recorder.begins() };
        let driver = driver.sounding(studio, rng.random());
        let traces = start_traces(config, node, &supervisor)?;
        let driver = driver.traced(traces.begins());
        let letters = DeadLetters::below(&config.node.data_dir);
        let (note_news, note_news_heard) = NoteRoom::news();
        let notes = NoteRoom::open(
            &store,
            &handle,
            node,
            note_news_heard,
            Arc::new(wall_clock),
            &supervisor,
            &letters,
        )
        .await?;
        let driver = driver.noting(note_news);
        let outbound = Client::new(&config.outbound_http, our_addresses(config))?;
        let (call_info, callbacks) = call_info(&outbound, &store, &notes, &supervisor);
        let call_info_counts = call_info.counts();
        let (teller, news) = call_news();
        let news = news.with_letters(letters.clone());
        let teller = teller.telling(move |call| call_info.answered(AnsweredCall::of(call)));
        let driver = driver.telling(move |news| teller.tell(news));
        let (stop, stopped) = watch::channel(false);
        let disk = DataDisk::of(&config.node.data_dir);
        let shelf = Shelf::new(store.clone(), disk.clone());
        let recover = move |organisation, session| recover(&disk, organisation, session);
        let (sessions, room_teller) = SessionRoom::open(
            &store,
            node,
            Arc::new(wall_clock),
            &recover,
            stopped.clone(),
            &supervisor,
            &letters,
        )
        .await?;
        let room_notes = notes.from_rooms();
        let driver = driver
            .telling_of_rooms(move |news| room_teller.tell(news))
            .noting_rooms(move |note| room_notes.tell(note));
        let (draws, drawn) = mpsc::channel(DRAWN_LEN_MAX);
        // It ends with the writer.
        drop(supervisor.keep(Task::CreditDraws, (drawn, handle.clone()), |(drawn, switch)| {
            Box::pin(pass_on_draws(drawn, switch))
        }));
        let writer = CdrWriter::new(reader).telling(draws).with_letters(letters.clone());
        let panel = panel(&store, &mut rng).await?;
        let (events, heard_events) = (Bus::new(&store), store.event_bell().listen());
        let mut followed = Followed::default();
        followed.catch_up(&store, &library).await?;
        let prompts = sound::Desk::new(store.clone(), library.clone());
        let sweeper = Sweeper { store: store.clone(), keys: idempotency.clone(), clock: wall_clock };
        let wake = Arc::new(Notify::new());
        let desk = Desk::new(store.clone(), StdRng::from_rng(&mut rng), Arc::clone(&wake));
        let carrier = Arc::new(outbound.clone());
        let sender =
            Worker::new(store.clone(), node, carrier, Arc::new(wall_clock), StdRng::from_rng(&mut rng), wake);
        let clock_counts = Arc::new(ClockCounts::default());
        let database_away = Arc::new(AtomicBool::new(false));
        let metrics = EngineMetrics {
            relay: Arc::clone(&relay),
            switch: handle.clone(),
            tcp,
            journal: journal.clone(),
            journal_dir: journal_dir(config),
            letters,
            notes: notes.counters(),
            recordings: recorder.counters(),
            traces: traces.counters(),
            sessions: sessions.counts(),
            stored: writer.stored(),
            news: news.counts(),
            call_info: call_info_counts,
            store: store.clone(),
            events: events.clone(),
            webhooks: sender.counters(),
            supervisor: supervisor.clone(),
            clock: Arc::clone(&clock_counts),
        };
        let draining = Arc::new(AtomicBool::new(false));
        let readiness = EngineReadiness {
            journal: journal.clone(),
            switch: handle.clone(),
            draining: Arc::clone(&draining),
            supervisor: supervisor.clone(),
            database_away: Arc::clone(&database_away),
        };
        let state = ApiState::new(
            Arc::new(store.clone()),
            Arc::new(store.clone()),
            Arc::new(readiness),
            Arc::new(wall_clock),
        )
        .with_tenants(Arc::new(store.clone()))
        .with_panel(panel)
        .with_settings(config.http.settings.clone())
        .with_conversations(Arc::new(store.clone()), Arc::new(store.clone()))
        .with_notes(Arc::new(notes.service()))
        .with_idempotency(Arc::new(idempotency))
        .with_events(Arc::new(events.clone()))
        .with_live_calls(Arc::new(handle.clone()))
        .with_live_quality(Arc::new(handle.clone()))
        .with_stored_quality(Arc::new(store.clone()))
        .with_leg_traces(Arc::new(TraceFiles::new(trace_dir(config))))
        .with_live_rooms(Arc::new(handle.clone()))
        .with_directory(directory_ports(&store, StdRng::from_rng(&mut rng)))
        .with_rooms(rooms(&store, config, StdRng::from_rng(&mut rng)))
        .with_rates(rate_ports(&store))
        .with_room_history(room_history(config, &store))
        .with_outgoing_urls(Arc::new(outbound.policy().clone()))
        .with_webhooks(Arc::new(desk))
        .with_prompts(Arc::new(prompts))
        .with_recordings(Arc::new(shelf.clone()))
        .with_metrics(Arc::new(metrics));

        let http_settings = state.settings();
        let web = HttpServer::new(web, state);
        let followers = Followers {
            clock: clock_counts,
            database_away,
            directory: heard,
            events: (events.clone(), heard_events),
            handle: handle.clone(),
            node,
            shelf,
            sounds: (library, followed),
            store: store.clone(),
            sweeper,
            webhooks: sender,
        };
        Ok(Engine {
            sip,
            sip_tcp,
            http,
            node,
            driver: supervisor.vital(
                Task::Sip,
                driver,
                |driver| Box::pin(driver.run()),
                |driver| Box::pin(driver.save()),
            ),
            writer: supervisor.keep(Task::RecordWriter, (writer, store.clone()), |(writer, store)| {
                Box::pin(writer.run(store))
            }),
            news: supervisor
                .keep(Task::CallNews, (news, store.clone()), |(news, store)| Box::pin(news.run(store))),
            web: serve_http(&supervisor, web, stopped.clone()),
            followers: followers.start(&supervisor, &stopped),
            store,
            journal: Some(journal),
            notes,
            sessions,
            bus: events,
            callbacks,
            switch: handle,
            stop,
            draining,
            relay,
            recorder,
            traces,
            recorded,
            http_settings,
            supervisor,
        })
    }

    /// Completes with the task whose failure stops the calls of the process, once everything that the engine
    /// knows of calls is in the journal. The process has to end then.
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

    /// The owner of the engine's tasks.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
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
        let _ = self.driver.await;
        // Recordings under way are completed; the disk may be slow.
        let recorder = self.recorder;
        let _ = tokio::task::spawn_blocking(move || recorder.stop()).await;
        let traces = self.traces;
        let _ = tokio::task::spawn_blocking(move || traces.stop()).await;
        let completed = self.recorded.await.map(|recorded| recorded.untold).unwrap_or_default();
        // The journal closes with its last clone; the writer ends once everything is stored.
        let _ = self.stop.send(true);
        for follower in self.followers {
            let _ = follower.await;
        }
        let _ = tokio::time::timeout(HTTP_STOP_MAX, self.web).await;
        // The calls that they concern are over.
        self.callbacks.abort();
        self.notes.stop().await;
        self.sessions.stop().await;
        store_completed(&self.store, self.node, completed).await;
        let last = async { tokio::join!(self.writer, self.news) };
        if tokio::time::timeout(WRITER_STOP_MAX, last).await.is_err() {
            tracing::warn!(
                "the database did not take the last records; the journal keeps them for the next start"
            );
        }
        self.store.close().await;
    }
}

/// Results of recordings on their way to the switch.
struct Recorded {
    ended: mpsc::Receiver<Ended>,
    /// Results that arrived after the end of the switch.
    untold: Vec<Ended>,
    switch: Handle,
}

/// The directory of traces.
fn trace_dir(config: &Config) -> PathBuf {
    config.node.data_dir.join("traces")
}

/// Starts the thread that writes traces of legs below the data directory.
fn start_traces(config: &Config, node: NodeId, supervisor: &Supervisor) -> Result<Traces, StartError> {
    let dir = trace_dir(config);
    let reserve_bytes = config.recordings.reserve_bytes;
    Traces::start(dir, node.to_string(), trace_settings(config), reserve_bytes, wall_clock, supervisor)
        .map_err(StartError::Traces)
}

fn trace_settings(config: &Config) -> TraceSettings {
    TraceSettings { on: config.media.trace, days: config.media.trace_days }
}

/// Stores results of recordings that arrived after the end of the switch.
async fn store_completed(store: &Store, node: NodeId, completed: Vec<Ended>) {
    let recordings: Vec<RecordingRow> = completed
        .into_iter()
        .map(|Ended { organisation: organisation_id, session, bytes, error }| RecordingRow {
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

/// The ports for users who log in.
pub async fn panel(store: &Store, rng: &mut StdRng) -> Result<Panel, StartError> {
    let mut fresh = [0; TokenKey::LEN];
    rng.fill_bytes(&mut fresh);
    let secret = store.session_secret(fresh, wall_clock()).await?;
    let people = Arc::new(People::new(store.clone(), Passwords::new(rng)?));
    let store = Arc::new(store.clone());
    Ok(Panel {
        accounts: people.clone(),
        agents: store.clone(),
        keys: people.clone(),
        teams: store,
        token_key: TokenKey::new(secret),
        users: people,
    })
}

/// The call-info callbacks, with their task.
fn call_info(
    client: &Client,
    store: &Store,
    notes: &NoteRoom,
    supervisor: &Supervisor,
) -> (CallInfo, Running) {
    let (targets, sink) = (Arc::new(store.clone()), Arc::new(notes.service()));
    CallInfo::start(client.clone(), targets, sink, Arc::new(wall_clock), supervisor)
}

/// The ports for managing the directory over HTTP: the store, and the function that makes the credentials of
/// phones.
pub(crate) fn directory_ports(store: &Store, rng: StdRng) -> DirectoryPorts {
    let shared = Arc::new(store.clone());
    DirectoryPorts {
        extensions: Arc::new(Lines::new(store.clone(), rng)),
        numbers: shared.clone(),
        organisations: shared.clone(),
        trunks: shared,
    }
}

/// The conference rooms: the store, and the generator of PINs.
fn rooms(store: &Store, config: &Config, rng: StdRng) -> Arc<dyn Rooms> {
    Arc::new(RoomPins::new(store.clone(), config.rooms.default_pin, rng))
}

pub(crate) fn rate_ports(store: &Store) -> RatePorts {
    let shared = Arc::new(store.clone());
    RatePorts { cost: shared.clone(), fx: shared.clone(), sell: shared }
}

/// The history of conference rooms.
fn room_history(config: &Config, store: &Store) -> RoomHistory {
    let shared = Arc::new(store.clone());
    RoomHistory { sessions: shared.clone(), meetings: config.ai.enabled.then_some(shared) }
}

/// The directory of the journal; an engine locks it.
pub(crate) fn journal_dir(config: &Config) -> PathBuf {
    config.node.data_dir.join("journal")
}

/// How long writing the last records to the disk may take when the process has to end.
const JOURNAL_FLUSH_MAX: Duration = Duration::from_secs(5);
/// How long requests in hand may take at the end.
pub(crate) const HTTP_STOP_MAX: Duration = Duration::from_secs(5);
/// How long writing the last records into the database may take.
pub(crate) const WRITER_STOP_MAX: Duration = Duration::from_secs(10);
